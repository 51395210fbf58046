"""SNB: class sizes of the population as a shifted negative binomial [Chen, Keller-McNulty 1998].

Each of K classes has 1 + NB(a, b) people, so that K·b^a of them are expected to be unique. K is Shlosser's number;
a and b are such that the expected classes of one and of two people in the sample are those that it has. With q the
sampling fraction and D = (1−q)(1−b):

    c₁ = K·q·(b/(1−D))^a·(aD/(1−D) + 1)
    c₂ = K·a·b^a·q²(1−b)(2 − (1−a)D) / (2(1−D)^(a+2)).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maskwright.population.counts import SampleCounts

Floats = NDArray[np.float64]


def shlosser_classes(counts: SampleCounts) -> float:
    """The number of classes in the population [Shlosser 1981; modified by Haas, Stokes 1998]."""
    q, i, f = counts.fraction, counts.sizes.astype(np.float64), counts.classes
    if not counts.of_size(1) or q >= 1:
        return float(counts.n_classes)
    missed = (1 - q) ** i
    both = -((1 - q**2) ** i) * np.expm1(-i * np.log1p(q))  # (1−q)^i·((1+q)^i − 1), without overflow
    first = (i * q**2 * (1 - q**2) ** (i - 1) * f).sum() / (both * f).sum()
    second = (missed * f).sum() / (i * q * (1 - q) ** (i - 1) * f).sum()
    return float(counts.n_classes + counts.of_size(1) * first * second**2)


def shifted_uniques(counts: SampleCounts) -> float | None:
    """The expected number of population uniques; None where no shifted negative binomial has these counts.

    Of several solutions the one whose population is nearest to the real one counts.
    """
    if not counts.of_size(1):
        return 0.0
    classes = shlosser_classes(counts)
    found = _solutions(counts, classes)
    if not found:
        return None
    a, b = min(found, key=lambda ab: abs(classes * (1 + ab[0] * (1 - ab[1]) / ab[1]) - counts.population))
    return float(min(classes * b**a, counts.population))


GRID = 1 / (
    1 + np.exp(-np.linspace(-30, 30, 601))
)  # values of b among which the sign of a difference changes
HALVINGS = 100


def _solutions(counts: SampleCounts, classes: float) -> list[tuple[float, float]]:
    """Every (a, b) on the grid's scale that gives the sample's numbers of classes of one and of two."""
    found = []
    for rising in (True, False):
        differences = _pairs_missing(counts, classes, GRID, rising)
        changes = np.flatnonzero(np.sign(differences[:-1]) * np.sign(differences[1:]) < 0)
        for at in changes.tolist():
            low, high = float(GRID[at]), float(GRID[at + 1])
            below = differences[at] < 0
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                if middle in (low, high):
                    break
                same = (_pairs_missing(counts, classes, np.array([middle]), rising)[0] < 0) == below
                low, high = (middle, high) if same else (low, middle)
            found.append((float(_shape(counts, classes, np.array([low]), rising)[0]), low))
    return found


def _pairs_missing(counts: SampleCounts, classes: float, b: Floats, rising: bool) -> Floats:
    """Expected minus observed classes of two, where those of one agree; NaN where they cannot."""
    q, a = counts.fraction, _shape(counts, classes, b, rising)
    rest = (1 - q) * (1 - b)
    power = a * np.log(b) - (a + 2) * np.log1p(-rest)
    expected = classes * a * q**2 * (1 - b) * (2 - (1 - a) * rest) / 2 * np.exp(power)
    return np.asarray(expected - counts.of_size(2), dtype=np.float64)


def _shape(counts: SampleCounts, classes: float, b: Floats, rising: bool) -> Floats:
    """The a for which the expected classes of one are those of the sample, for each b; NaN: there is none.

    e^{−λa}(1 + ma) begins with 1, may rise to a peak, and falls to 0: one solution on either side of the peak.
    """
    q, singles = counts.fraction, counts.of_size(1)
    rest = (1 - q) * (1 - b)
    slope, growth = np.log1p(-rest) - np.log(b), rest / (1 - rest)
    target = np.log(singles / (classes * q))

    def height(a: Floats) -> Floats:
        return np.asarray(np.log1p(growth * a) - slope * a - target, dtype=np.float64)

    with np.errstate(divide="ignore", invalid="ignore"):
        peak = np.maximum(0.0, 1 / slope - 1 / growth)
    low, high = (np.zeros_like(b), peak) if rising else (peak, peak + 1)
    if not rising:
        for _ in range(60):
            high = np.where(height(high) > 0, 2 * high, high)
    there = (height(low) <= 0) & (height(high) >= 0) if rising else (height(low) >= 0) & (height(high) <= 0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        upwards = (height(middle) < 0) == rising
        low, high = np.where(upwards, middle, low), np.where(upwards, high, middle)
    return np.where(there, low, np.nan)
