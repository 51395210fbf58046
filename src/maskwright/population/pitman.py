"""Pitman-Yor: class sizes as a Pitman sampling partition, its two parameters by maximum likelihood [Hoshino 2001].

The likelihood of u classes among n people, c_j of them with j people, is up to a constant

    Π_{i=1}^{u−1} (θ + iα) / Π_{i=1}^{n−1} (θ + i) · Π_j (Π_{i=1}^{j−1} (i − α))^{c_j},   0 ≤ α < 1, θ > −α,

and a population of N is expected to have N·(θ+α)_{N−1} / (θ+1)_{N−1} uniques, with rising factorials. That is used
here, and not its limit N^α·Γ(θ+1)/Γ(θ+α) for large N, which other tools compute.
"""

from __future__ import annotations

import math

from maskwright.population.counts import SampleCounts
from maskwright.population.gamma import digamma_rise, log_gamma_rise

HALVINGS = 200  # a bisection ends before that, when its ends meet


def pitman_parameters(counts: SampleCounts) -> tuple[float, float] | None:
    """θ and α of greatest likelihood; None where there is none (one class, or nobody shares one)."""
    if counts.n_classes in (1, counts.people):
        return None

    def slope(alpha: float) -> float:
        return _alpha_score(counts, _best_theta(counts, alpha), alpha)

    low, high = 0.0, 1.0
    if slope(0.0) <= 0:  # rarer uniques than any positive α would give
        return _best_theta(counts, 0.0), 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return _best_theta(counts, low), low


def pitman_uniques(counts: SampleCounts) -> float | None:
    """The expected number of population uniques; None where one person is all that is known.

    Where nobody in the sample shares a class, the likelihood grows up to α = 1: everybody is unique. Where everybody is
    in one class, it grows down to θ = −α: nobody is.
    """
    if counts.n_classes == counts.people:
        return float(counts.population) if counts.people > 1 else None
    if counts.n_classes == 1:
        return 0.0
    found = pitman_parameters(counts)
    return None if found is None else expected_uniques(*found, counts.population)


def expected_uniques(theta: float, alpha: float, people: int) -> float:
    """N·(θ+α)_{N−1} / (θ+1)_{N−1}: the expected uniques among so many people of a Pitman sampling partition."""
    rest = 1 - alpha
    first, last = theta + alpha, theta + alpha + people - 1
    return people * math.exp(log_gamma_rise(first, rest) - log_gamma_rise(last, rest))


def limiting_uniques(theta: float, alpha: float, people: int) -> float:
    """N^α·Γ(θ+1)/Γ(θ+α): what other tools compute, right for populations without end; for comparison only."""
    return math.exp(alpha * math.log(people) + log_gamma_rise(theta + alpha, 1 - alpha))


def _best_theta(counts: SampleCounts, alpha: float) -> float:
    """The θ of greatest likelihood for a given α: its score falls from +∞ at −α to below 0."""
    low = high = 0.0  # logarithms of θ + α
    while _theta_score(counts, math.exp(low) - alpha, alpha) <= 0:
        low -= 8
    while _theta_score(counts, math.exp(high) - alpha, alpha) > 0:
        high += 8
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        positive = _theta_score(counts, math.exp(middle) - alpha, alpha) > 0
        low, high = (middle, high) if positive else (low, middle)
    return math.exp(low) - alpha


def _theta_score(counts: SampleCounts, theta: float, alpha: float) -> float:
    """∂ log L/∂θ = Σ 1/(θ + iα) − Σ 1/(θ + i)."""
    return _inverse_sum(theta, alpha, counts.n_classes) - _inverse_sum(theta, 1.0, counts.people)


def _alpha_score(counts: SampleCounts, theta: float, alpha: float) -> float:
    """∂ log L/∂α = Σ i/(θ + iα) − Σ_j c_j·Σ_{i<j} 1/(i − α)."""
    classes = counts.n_classes
    if alpha == 0:
        gain = classes * (classes - 1) / (2 * theta)
    else:
        gain = (classes - 1 - theta * _inverse_sum(theta, alpha, classes)) / alpha
    return gain - float((counts.classes * digamma_rise(1 - alpha, counts.sizes - 1)).sum())


def _inverse_sum(theta: float, alpha: float, end: int) -> float:
    """Σ_{i=1}^{end−1} 1/(θ + iα)."""
    if alpha == 0:
        return (end - 1) / theta
    return float(digamma_rise((theta + alpha) / alpha, end - 1)) / alpha
