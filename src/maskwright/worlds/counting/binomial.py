"""Binomial probabilities in floating point, accurate to a few units of the last place [Loader 2000].

The textbook formula through log-gamma loses ten digits at a million trials; here the large terms cancel on paper.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@cache
def _small_stirling_errors() -> Floats:
    """log n! minus Stirling's approximation of it, for n = 0 … 15, where the series is not good enough."""
    with localcontext() as context:
        context.prec = 40
        half = Decimal("1.8378770664093454835606594728112352797228").copy_abs() / 2  # log(2π) / 2
        found = [Decimal(0)]
        for n in range(1, 16):
            x = Decimal(n)
            found.append(Decimal(math.factorial(n)).ln() - (x + Decimal("0.5")) * x.ln() + x - half)
        return np.array([float(x) for x in found])


def stirling_error(n: Floats) -> Floats:
    """log n! − log(√(2πn)(n/e)^n) for n ≥ 1."""
    table = _small_stirling_errors()
    x = np.maximum(n, 16.0)
    y = 1 / (x * x)
    series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x
    return np.where(n < 16, table[np.minimum(n, 15).astype(np.int64)], series)


def binomial_deviance(x: Floats, mean: Floats) -> Floats:
    """x·log(x/mean) + mean − x for x > 0, without cancellation where x is near the mean."""
    difference = x - mean
    v = difference / (x + mean)
    near = np.abs(v) < 0.1
    small = np.where(near, v, 0.0)
    total, term, square = difference * small, 2 * x * small, small * small
    for j in range(1, 11):
        term = term * square
        total = total + term / (2 * j + 1)
    far = x * np.log(x / mean) - difference
    return np.where(near, total, far)


def log_binomial(j: Floats, n: Floats, theta: float) -> Floats:
    """log P(j successes in n trials of probability theta), 0 < theta < 1, 0 ≤ j ≤ n; arrays of one shape."""
    other = n - j
    inside = (j > 0) & (other > 0)
    x, y, m = np.where(inside, j, 1.0), np.where(inside, other, 1.0), np.where(inside, n, 2.0)
    body = (
        stirling_error(m) - stirling_error(x) - stirling_error(y)
        - binomial_deviance(x, m * theta) - binomial_deviance(y, m * (1 - theta))
        - 0.5 * np.log(2 * math.pi * x * (y / m))
    )  # fmt: skip
    edge = np.where(j > 0, j * math.log(theta), other * math.log1p(-theta))
    return np.where(inside, body, edge)
