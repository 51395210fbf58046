"""Individual risk: the chance that a record is re-identified in the population [Benedetti, Franconi 1998].

A class of f people in the sample stands for F in the population; given f, F is taken to be negative binomial with
success probability p = f/ΣW, the share of the class that was sampled. The risk is the mean of 1/F,

    r(f, p) = (p^f / f)·₂F₁(f, f; f+1; 1−p) = (p/f)·₂F₁(1, 1; f+1; 1−p) = p·∫₀¹ u^(f−1) / (p + (1−p)u) du.

The middle form is a series of positive terms, and needs few of them unless both f and p are small; there
r(1, p) = −p·ln p/(1−p) and r(f+1, p) = p/(1−p)·(1/f − r(f, p)), whose errors shrink while p < 1/2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEPS = 40  # of the recurrence; for larger classes the series ends sooner than that
PRECISE = 1e-17  # of a sum of at least 1: what comes after such a term does not change it


def individual_risks(frequencies: NDArray[Any], weights: NDArray[Any]) -> Floats:
    """The risk of each class, from its people in the sample and the people that it stands for.

    Args:
        frequencies: people of each class in the sample, at least 1.
        weights: the sum of their survey weights; less than the frequency counts as that many.
    """
    f = np.asarray(frequencies, dtype=np.float64)
    share = np.minimum(f / np.maximum(np.asarray(weights, dtype=np.float64), f), 1.0)
    few = (f <= STEPS) & (share < 0.5)
    result = np.empty(f.shape)
    result[few] = _by_recurrence(f[few], share[few])
    result[~few] = _by_series(f[~few], share[~few])
    return result


def _by_recurrence(f: Floats, p: Floats) -> Floats:
    """r(f, p) for small classes of which less than half was sampled."""
    odds = p / (1 - p)
    risk = -odds * np.log(p)
    left = np.flatnonzero(f > 1)
    step = 1
    while len(left):
        risk[left] = odds[left] * (1 / step - risk[left])
        step += 1
        left = left[f[left] > step]
    return risk


def _by_series(f: Floats, p: Floats) -> Floats:
    """r(f, p) by (p/f)·Σ k!·(1−p)^k / ((f+1)…(f+k))."""
    rest = 1 - p
    total, term = np.ones(f.shape), np.ones(f.shape)
    left = np.flatnonzero(rest > 0)
    k = 0
    while len(left):
        k += 1
        term[left] *= k * rest[left] / (f[left] + k)
        total[left] += term[left]
        left = left[term[left] > PRECISE]
    return p / f * total


def household_risks(risks: NDArray[Any], households: NDArray[Any], n_households: int) -> Floats:
    """The chance that at least one member of each household is re-identified: 1 − Π(1 − r).

    Args:
        risks: of each person.
        households: the number of each person's household, from 0 on.
        n_households: how many households there are.
    """
    with np.errstate(divide="ignore"):  # a person who is found for certain: the logarithm of 0
        none = np.log1p(-np.minimum(np.asarray(risks, dtype=np.float64), 1.0))
    return -np.expm1(np.bincount(households, weights=none, minlength=n_households))
