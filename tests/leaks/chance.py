"""What a random order looks like: statistics that are normal with mean 0 and deviation 1 when rows are shuffled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

LIMIT = 5.2  # a normal variable is beyond it, on either side, once in five million
ODDS = math.erfc(LIMIT / math.sqrt(2))


def ranked(values: Sequence[Any]) -> NDArray[np.float64]:
    """Ranks with ties in the middle; numbers that are written as text are numbers."""
    try:
        codes = np.array([float(v) for v in values])
    except ValueError:
        codes = np.unique(np.array(values, dtype=str), return_inverse=True)[1].reshape(-1).astype(float)
    _, number, counts = np.unique(codes, return_inverse=True, return_counts=True)
    result: NDArray[np.float64] = (np.cumsum(counts) - (counts + 1) / 2)[number.reshape(-1)]
    return result


def trend(values: Sequence[Any]) -> float:
    """Does the value rise or fall along the rows? Spearman's correlation with the place, times √(n − 1)."""
    x = ranked(values)
    n = len(x)
    if x.std() == 0:
        return 0.0
    return float(np.corrcoef(x, np.arange(n))[0, 1]) * math.sqrt(n - 1)


def neighbours(values: Sequence[Any]) -> float:
    """Are rows that stand beside each other alike? The sum of products of neighbouring ranks (Wald and Wolfowitz)."""
    x = ranked(values)
    n, x = len(x), x - x.mean()
    s2, s4 = float((x**2).sum()), float((x**4).sum())
    if s2 == 0:
        return 0.0
    products = float((x * np.roll(x, 1)).sum())
    mean = -s2 / (n - 1)
    variance = (s2**2 - s4) / (n - 1) + (s2**2 - 2 * s4) / ((n - 1) * (n - 2)) - mean**2
    return (products - mean) / math.sqrt(variance)


def statistics(values: Sequence[Any]) -> dict[str, float]:
    return {"trend": trend(values), "neighbours": neighbours(values)}


def together(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Of many runs: the sum of each statistic, and the sum of its squares, both as a normal variable.

    The squares of n runs add up to chi-square with n degrees of freedom. What is found is the normal variable that
    is as rarely, on either side, so far from 0: it is beyond the same limit as often as the others.
    """
    found = {}
    for name in runs[0]:
        z = np.array([run[name] for run in runs])
        found[name] = float(z.sum()) / math.sqrt(len(z))
        found[f"{name} squared"] = float(norm.isf(chi2.sf((z**2).sum(), len(z)) / 2))
    return found


def telling(found: dict[str, float]) -> dict[str, float]:
    """What chance does not explain."""
    return {k: z for k, z in found.items() if abs(z) > LIMIT}
