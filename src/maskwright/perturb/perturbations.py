"""Noise, rank swapping, PRAM, rounding and coding: how a column is changed, and what somebody believes who knows how.

Noise: normal errors are added, independently or with the correlations of the data [Kim 1986]. Who knows their
covariance Σ believes that a published row y is person i's with a probability proportional to
exp(−(y − x_i)ᵀ Σ⁻¹ (y − x_i) / 2).

Rank swapping: each column's values change places with others of near rank [Moore 1996]. Who knows the window looks for
rows whose rank is within it in every column: the own row always is one of them [Nin, Herranz, Torra 2008].

PRAM: categories are changed at random by a matrix [Gouweleeuw et al. 1998]; what was true follows by Bayes.

Rounding, top and bottom coding: nothing is drawn; who repeats it, or takes the nearest row, finds people again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.perturb.microaggregation import standardised_columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
AT_ONCE = 1 << 22  # beliefs or distances that are computed at once


def noise_covariance(values: NDArray[Any], share: float, correlated: bool = False) -> Floats:
    """The covariance of the errors: a share of that of the data, or of its variances alone."""
    if not share > 0:
        raise ValueError(f"share: {share} is not allowed; the variance of the errors is a share above 0")
    found = np.atleast_2d(np.cov(np.asarray(values, dtype=np.float64), rowvar=False, ddof=0)) * share
    return found if correlated else np.diag(np.diag(found))


def noisy_values(values: NDArray[Any], covariance: Floats, rng: np.random.Generator) -> Floats:
    """The values with normal errors of this covariance."""
    table = np.asarray(values, dtype=np.float64)
    errors = rng.standard_normal(table.shape) @ _root(covariance)
    return np.asarray(table + errors, dtype=np.float64)


def noise_beliefs(published: NDArray[Any], people: NDArray[Any], covariance: Floats) -> Floats:
    """For each published row the belief that it is each person's, one column per person; rows add up to 1."""
    y, x = (np.asarray(v, dtype=np.float64) for v in (published, people))
    whiten = np.linalg.pinv(_root(covariance))
    away = (((y @ whiten)[:, None, :] - (x @ whiten)[None, :, :]) ** 2).sum(axis=2) / 2
    weights = np.exp(away.min(axis=1, keepdims=True) - away)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)


def noise_linkage(published: NDArray[Any], people: NDArray[Any], covariance: Floats) -> tuple[float, float]:
    """The mean belief in the right person, and the share of rows whose likeliest person is the right one.

    Row i of the published table is person i's; people of equal likelihood share what they get.
    """
    step = max(1, AT_ONCE // max(1, len(people)))
    truth = right = 0.0
    for start in range(0, len(published), step):
        beliefs = noise_beliefs(published[start : start + step], people, covariance)
        rows = np.arange(len(beliefs))
        mine, most = beliefs[rows, start + rows], beliefs.max(axis=1)
        truth += mine.sum()
        right += ((mine == most) / (beliefs == most[:, None]).sum(axis=1)).sum()
    return float(truth / len(published)), float(right / len(published))


def _root(covariance: Floats) -> Floats:
    """A symmetric root, also of a covariance that has none of full rank."""
    values, vectors = np.linalg.eigh(np.atleast_2d(covariance))
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T, dtype=np.float64)


def swapped_values(values: NDArray[Any], window: int, rng: np.random.Generator) -> NDArray[Any]:
    """Columns whose values were swapped in pairs, at most `window` ranks apart; ties are ordered at random.

    From the lowest value on, each one that was not swapped yet changes places with one of those that follow it within
    the window; where all of them were, it stays.
    """
    if window < 0:
        raise ValueError(f"window: {window} is not allowed; ranks are 0 or more apart")
    table = np.asarray(values)
    columns = table.reshape(len(table), -1)
    result = columns.copy()
    for c in range(columns.shape[1]):
        order = np.lexsort((rng.permutation(len(columns)), columns[:, c]))
        free = np.ones(len(order), dtype=bool)
        for i in range(len(order)):
            if not free[i]:
                continue
            others = i + 1 + np.flatnonzero(free[i + 1 : i + 1 + window])
            if len(others):
                j = int(others[rng.integers(len(others))])
                free[j] = False
                result[order[[i, j]], c] = columns[order[[j, i]], c]
            free[i] = False
    return result.reshape(table.shape)


def rank_candidates(people: NDArray[Any], published: NDArray[Any], window: int) -> NDArray[np.bool_]:
    """For each person (rows) the published rows (columns) that may be the person's.

    The rank of a value that occurs several times is a range; its distance from another one is that of the ranges.
    """
    theirs, shown = (np.asarray(v).reshape(len(v), -1) for v in (people, published))
    found = np.ones((len(theirs), len(shown)), dtype=bool)
    for c in range(shown.shape[1]):
        ordered = np.sort(shown[:, c])
        low, high = (np.searchsorted(ordered, theirs[:, c], side=side) for side in ("left", "right"))
        first, last = (np.searchsorted(ordered, shown[:, c], side=side) for side in ("left", "right"))
        found &= (first[None, :] - (high - 1)[:, None] <= window) & (
            low[:, None] - (last - 1)[None, :] <= window
        )
    return found


def rank_linkage(people: NDArray[Any], published: NDArray[Any], window: int) -> float:
    """The share of people who are linked to their own row, by guessing among the candidates; row i is person i's."""
    candidates = rank_candidates(people, published, window)
    own = candidates[np.arange(len(candidates)), np.arange(len(candidates))]
    return float((own / np.maximum(candidates.sum(axis=1), 1)).mean())


def randomised_codes(codes: Ints, matrix: NDArray[Any], rng: np.random.Generator) -> Ints:
    """Codes that were changed at random: code i becomes j with probability `matrix[i, j]`."""
    steps = np.cumsum(_transition(matrix), axis=1)
    steps[:, -1] = 1.0  # whatever was rounded away
    draws = rng.random(len(codes))
    return np.asarray((draws[:, None] >= steps[codes]).sum(axis=1), dtype=np.int64)


def invariant_matrix(matrix: NDArray[Any], shares: NDArray[Any]) -> Floats:
    """A matrix that keeps the shares of the categories in expectation: there by one matrix, and back by Bayes."""
    return np.asarray(_transition(matrix) @ true_given_published(matrix, shares), dtype=np.float64)


def true_given_published(matrix: NDArray[Any], shares: NDArray[Any]) -> Floats:
    """The belief in each true category (columns) given the published one (rows): π_j·P_ji / Σ_l π_l·P_li.

    Of a category that is never published, the shares themselves are believed.
    """
    prior = np.asarray(shares, dtype=np.float64)
    joint = (_transition(matrix) * prior[:, None]).T
    seen = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.where(seen > 0, joint / np.where(seen > 0, seen, 1), prior), dtype=np.float64)


def _transition(matrix: NDArray[Any]) -> Floats:
    """The matrix of probabilities, refused where it is none."""
    found = np.asarray(matrix, dtype=np.float64)
    square = found.ndim == 2 and found.shape[0] == found.shape[1]
    if not square or (found < 0).any() or not np.allclose(found.sum(axis=1), 1, atol=1e-9, rtol=0):
        raise ValueError("matrix: each row must have probabilities that add up to 1, one for each category")
    return found


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
