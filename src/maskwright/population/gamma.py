"""Differences of the logarithm of Γ, and of its derivative, that keep the digits which subtracting would lose."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LARGE = 16.0  # from here on Stirling's series has all digits of a double
PLAIN = 32  # so many terms are added one by one


def log_gamma_rise(x: float, step: float) -> float:
    """ln Γ(x + step) − ln Γ(x) for x > 0 and a step from 0 to 1."""
    if x < LARGE:
        return math.lgamma(x + step) - math.lgamma(x)
    rest = _stirling(x + step) - _stirling(x)
    return (x - 0.5) * math.log1p(step / x) + step * math.log(x + step) - step + rest


def digamma_rise(x: float, steps: NDArray[np.int64] | int) -> Floats:
    """ψ(x + steps) − ψ(x) = Σ_{i<steps} 1/(x + i) for x > 0, for each number of steps."""
    steps = np.asarray(steps)
    sums = np.append(0.0, np.cumsum(1 / (x + np.arange(PLAIN))))
    start, end = x + PLAIN, x + np.maximum(steps, PLAIN)
    far = sums[PLAIN] + np.log1p((end - start) / start) + _digamma_rest(end) - _digamma_rest(start)
    return np.where(steps <= PLAIN, sums[np.minimum(steps, PLAIN)], far)


def _stirling(x: float) -> float:
    """ln Γ(x) − (x − 1/2)·ln x + x − ln √(2π), for large x."""
    square = 1 / (x * x)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / x


def _digamma_rest(x: Any) -> Any:
    """ψ(x) − ln x, for large x."""
    square = 1 / (x * x)
    series = 1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132)))
    return -0.5 / x - square * series
