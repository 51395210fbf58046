"""Zayatz: how likely somebody who is unique in the sample is unique in the population [Zayatz 1991].

By Bayes, with the class sizes of the sample in place of those of the population:
P = (c₁/u)(n/N) / Σ_i (c_i/u)·Hyp(1; N, i, n), where c_i of the u classes have i people and Hyp(1; N, i, n) is the
chance that exactly one of i people is among n drawn from N.
"""

from __future__ import annotations

import numpy as np

from maskwright.population.counts import SampleCounts

SMALLEST = -745.0  # the exponential of less is 0


def unique_given_unique(counts: SampleCounts) -> float:
    """The probability that a unique of the sample is unique in the population; 0 where the sample has none."""
    singles = counts.of_size(1)
    if not singles:
        return 0.0
    seen = counts.sizes * np.exp(_left_out(counts))  # Hyp(1; N, i, n)·N/n
    return float(singles / (counts.classes * seen).sum())


def zayatz_uniques(counts: SampleCounts) -> float:
    """The expected number of population uniques: the sample's, extended by the sampling fraction."""
    return counts.of_size(1) * unique_given_unique(counts) / counts.fraction


def _left_out(counts: SampleCounts) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The logarithm of the chance that nobody else of a class is drawn, for each class size."""
    outside = counts.population - counts.people  # people who are not in the sample
    most = min(int(counts.sizes.max()) - 1, outside, _enough(counts.fraction))
    others = np.arange(most, dtype=np.float64)
    logs = np.append(0.0, np.cumsum(np.log((outside - others) / (counts.population - 1 - others))))
    return np.where(counts.sizes - 1 <= most, logs[np.minimum(counts.sizes - 1, most)], -np.inf)


def _enough(fraction: float) -> int:
    """So many others are never all left out: each is with at most 1 − fraction."""
    return int(SMALLEST / np.log1p(-fraction)) + 1 if fraction < 1 else 0
