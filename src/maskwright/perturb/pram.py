"""PRAM: categories are changed at random by a matrix [Gouweleeuw et al. 1998], and Bayes for somebody who knows it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
