"""Intervals of stated coverage for probabilities that were counted in independent draws.

A zero-one outcome has the exact interval of Clopper and Pearson; a mean of outcomes between 0 and 1 the one that
follows from Chernoff's bound, n·KL(mean‖p) ≤ log(1/risk) [Hoeffding 1963, Theorem 1]. Both hold for every n and p: no
normal approximation that fails where beliefs are near 0 or 1 or draws are few. Ends are rounded outwards.
"""

from __future__ import annotations

import math

import numpy as np

from maskwright.core.worlds.binomial import Floats, deviance, stirling_error

SLACK = 1e-10  # what rounding may have cost
STEPS = 60  # of bisection


def binomial_lower(successes: Floats, trials: Floats | float, risk: float) -> Floats:
    """Clopper-Pearson from below: a smaller p would make so many successes less likely than `risk`."""
    k = np.asarray(successes, dtype=np.float64)
    n = np.broadcast_to(np.asarray(trials, dtype=np.float64), k.shape)
    inside = (k > 0) & (k < n)
    j, m = np.where(inside, k, 1.0), np.where(inside, n, 2.0)
    low, high = np.zeros(k.shape), j / m
    for _ in range(STEPS):
        p = (low + high) / 2
        unlikely = _at_least(j, m, p) < risk
        low, high = np.where(unlikely, p, low), np.where(unlikely, high, p)
    always = np.power(risk, 1 / np.maximum(n, 1))
    result = np.where(inside, low, np.where((k > 0) & (n > 0), always, 0.0))
    return np.asarray(result * (1 - SLACK))


def clopper_pearson(successes: Floats, trials: Floats | float, risk: float) -> tuple[Floats, Floats]:
    """Both ends, each missed with probability `risk` at most; without trials everything is possible."""
    k = np.asarray(successes, dtype=np.float64)
    n = np.broadcast_to(np.asarray(trials, dtype=np.float64), k.shape)
    return binomial_lower(k, n, risk), 1 - binomial_lower(n - k, n, risk)


def _at_least(k: Floats, n: Floats, p: Floats) -> Floats:
    """P(at least k successes in n trials) for 0 < k < n and p below k/n: an incomplete beta function.

    C(n,k)·p^k·q^(n−k+1) times the continued fraction that converges fast below the mean, by Lentz's method.
    """
    p = np.maximum(p, 1e-300)
    q, b = 1 - p, n - k + 1
    log = (
        stirling_error(n) - stirling_error(k) - stirling_error(n - k)
        - deviance(k, n * p) - deviance(n - k, n * q) - 0.5 * np.log(2 * math.pi * k * ((n - k) / n))
    )  # fmt: skip
    tiny = 1e-300
    d = 1 / _away(1 - (k + b) * p / (k + 1), tiny)
    c, fraction = np.ones(k.shape), d
    for i in range(1, 2000):
        even = i * (b - i) * p / ((k + 2 * i - 1) * (k + 2 * i))
        d, c = 1 / _away(1 + even * d, tiny), _away(1 + even / c, tiny)
        fraction = fraction * d * c
        odd = -(k + i) * (k + b + i) * p / ((k + 2 * i) * (k + 2 * i + 1))
        d, c = 1 / _away(1 + odd * d, tiny), _away(1 + odd / c, tiny)
        change = d * c
        fraction = fraction * change
        if np.all(np.abs(change - 1) < 1e-14):
            break
    return np.asarray(np.exp(log) * q * fraction)


def _away(x: Floats, tiny: float) -> Floats:
    return np.where(np.abs(x) < tiny, tiny, x)


def chernoff(mean: Floats, trials: Floats | float, risk: float) -> tuple[Floats, Floats]:
    """Both ends for means of so many independent values between 0 and 1."""
    mean = np.clip(np.asarray(mean, dtype=np.float64), 0.0, 1.0)
    n = np.broadcast_to(np.asarray(trials, dtype=np.float64), mean.shape)
    room = np.divide(-math.log(risk), n, out=np.full(mean.shape, np.inf), where=n > 0)
    ends = []
    for bottom in (True, False):
        inside, outside = mean.copy(), np.full(mean.shape, 0.0 if bottom else 1.0)
        for _ in range(STEPS):
            middle = (inside + outside) / 2
            near = _divergence(mean, middle) <= room
            inside, outside = np.where(near, middle, inside), np.where(near, outside, middle)
        ends.append(np.where(np.isinf(room), 0.0 if bottom else 1.0, outside))
    return np.asarray(ends[0] * (1 - SLACK)), np.asarray(1 - (1 - ends[1]) * (1 - SLACK))


def _divergence(a: Floats, b: Floats) -> Floats:
    """KL of two zero-one distributions; infinite where b excludes what a allows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(a > 0, a * (np.log(a) - np.log(b)), 0.0)
        other = np.where(a < 1, (1 - a) * (np.log1p(-a) - np.log1p(-b)), 0.0)
    return one + other
