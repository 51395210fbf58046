"""Noise: normal errors are added to numbers, independently or with the correlations of the data [Kim 1986].

Somebody who knows the covariance Σ of the errors believes that a published row y is person i's with a probability
proportional to exp(−(y − x_i)ᵀ Σ⁻¹ (y − x_i) / 2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
AT_ONCE = 1 << 22  # beliefs that are computed at once


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
    return _soft(y @ whiten, x @ whiten)


def noise_linkage(published: NDArray[Any], people: NDArray[Any], covariance: Floats) -> tuple[float, float]:
    """The mean belief in the right person, and the share of rows whose likeliest person is the right one.

    Row i of the published table is person i's; people of equal likelihood share what they get.
    """
    y, x = (np.asarray(v, dtype=np.float64) for v in (published, people))
    whiten = np.linalg.pinv(_root(covariance))
    y, x = y @ whiten, x @ whiten
    step = max(1, AT_ONCE // max(1, len(x)))
    truth = right = 0.0
    for start in range(0, len(y), step):
        beliefs = _soft(y[start : start + step], x)
        rows = np.arange(len(beliefs))
        mine, most = beliefs[rows, start + rows], beliefs.max(axis=1)
        truth += mine.sum()
        right += ((mine == most) / (beliefs == most[:, None]).sum(axis=1)).sum()
    return float(truth / len(y)), float(right / len(y))


def _soft(y: Floats, x: Floats) -> Floats:
    away = ((y[:, None, :] - x[None, :, :]) ** 2).sum(axis=2) / 2
    weights = np.exp(away.min(axis=1, keepdims=True) - away)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)


def _root(covariance: Floats) -> Floats:
    """A symmetric root, also of a covariance that has none of full rank."""
    values, vectors = np.linalg.eigh(np.atleast_2d(covariance))
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T, dtype=np.float64)
