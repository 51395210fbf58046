"""Rounding, top and bottom coding, and linkage by distance: what is published of a number without any chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.perturb.microaggregation import standardised_columns

Floats = NDArray[np.float64]
AT_ONCE = 1 << 22


def rounded_values(values: NDArray[Any], base: float) -> Floats:
    """The nearest multiples of a base; what lies in the middle goes to the even one."""
    if not base > 0:
        raise ValueError(f"base: {base} is not allowed; it is a number above 0")
    return np.asarray(np.round(np.asarray(values, dtype=np.float64) / base) * base, dtype=np.float64)


def coded_extremes(values: NDArray[Any], low: float | None = None, high: float | None = None) -> Floats:
    """Values below `low` and above `high` replaced by the mean of those on that side."""
    result = np.array(values, dtype=np.float64)
    original = result.copy()
    for chosen in (
        original < low if low is not None else None,
        original > high if high is not None else None,
    ):
        if chosen is not None and chosen.any():
            result[chosen] = original[chosen].mean()
    return result


def image_linkage(published: NDArray[Any]) -> float:
    """The share of people linked to their own row by somebody who repeats what was done to their values.

    Where nothing is drawn, everybody with the same published values is a candidate, and nobody else.
    """
    table = np.asarray(published)
    _, sizes = np.unique(table.reshape(len(table), -1), axis=0, return_counts=True)
    return float(len(sizes) / len(table))


def distance_linkage(people: NDArray[Any], published: NDArray[Any]) -> float:
    """The share of people whose nearest published row is their own, on standardised columns.

    The baseline of somebody who knows nothing of the method; rows at equal distance share what they get.
    """
    shown = np.asarray(published, dtype=np.float64).reshape(len(published), -1)
    theirs = np.asarray(people, dtype=np.float64).reshape(len(people), -1)
    both = standardised_columns(np.concatenate([shown, theirs]))
    shown, theirs = both[: len(shown)], both[len(shown) :]
    step = max(1, AT_ONCE // max(1, shown.size))
    right = 0.0
    for start in range(0, len(theirs), step):
        away = ((theirs[start : start + step, None, :] - shown[None, :, :]) ** 2).sum(axis=2)
        rows = np.arange(len(away))
        nearest = away.min(axis=1)
        right += ((away[rows, start + rows] == nearest) / (away == nearest[:, None]).sum(axis=1)).sum()
    return float(right / len(theirs))
