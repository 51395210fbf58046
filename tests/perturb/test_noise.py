"""Noise: its covariance, and the belief of somebody who knows it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from maskwright.perturb.perturbations import noise_beliefs, noise_covariance, noise_linkage, noisy_values


def people(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).multivariate_normal([0, 5], [[1, 0.8], [0.8, 2]], n)


@pytest.mark.parametrize("correlated", [False, True])
def test_the_errors_have_the_covariance_that_was_asked_for(correlated: bool) -> None:
    values = people(200_000)
    wanted = noise_covariance(values, 0.25, correlated)
    assert np.diag(wanted) == pytest.approx(0.25 * values.var(axis=0))
    errors = noisy_values(values, wanted, np.random.default_rng(2)) - values
    assert np.cov(errors, rowvar=False) == pytest.approx(wanted, abs=0.01)
    assert (abs(wanted[0, 1]) > 0.1) == correlated


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6), st.floats(-5, 5), st.floats(0.1, 3))
def test_the_belief_is_bayes(known: list[float], shown: float, sigma: float) -> None:
    weights = [math.exp(-((shown - x) ** 2) / (2 * sigma**2)) for x in known]
    if sum(weights) < 1e-200:
        return
    found = noise_beliefs(np.array([[shown]]), np.array(known)[:, None], np.array([[sigma**2]]))
    assert found[0] == pytest.approx([w / sum(weights) for w in weights], abs=1e-9)


def test_the_belief_with_correlated_errors() -> None:
    values = people(30)
    covariance = noise_covariance(values, 0.3, correlated=True)
    shown = noisy_values(values, covariance, np.random.default_rng(3))
    found = noise_beliefs(shown, values, covariance)
    for y, belief in zip(shown, found, strict=True):
        density = np.array([multivariate_normal(x, covariance).pdf(y) for x in values])
        assert belief == pytest.approx(density / density.sum(), abs=1e-9)


def test_beliefs_are_calibrated() -> None:
    """The mean belief in the truth is what guessing by the beliefs would find; the best guess is no worse."""
    values = people(400)
    covariance = noise_covariance(values, 0.05)
    truths, guesses, expected = [], [], []
    for seed in range(10):
        shown = noisy_values(values, covariance, np.random.default_rng(seed))
        truth, right = noise_linkage(shown, values, covariance)
        truths.append(truth)
        guesses.append(right)
        expected.append(noise_beliefs(shown, values, covariance).max(axis=1).mean())
    assert np.mean(guesses) >= np.mean(truths)
    assert np.mean(guesses) == pytest.approx(np.mean(expected), abs=0.02)


def test_a_share_above_0_is_asked_for() -> None:
    with pytest.raises(ValueError, match="share: 0"):
        noise_covariance(people(5), 0)


def test_columns_that_do_not_vary_stay() -> None:
    values = np.array([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]])
    covariance = noise_covariance(values, 0.1, correlated=True)
    assert noisy_values(values, covariance, np.random.default_rng(1))[:, 1].tolist() == pytest.approx(
        [7, 7, 7]
    )
