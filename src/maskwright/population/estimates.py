"""Estimates of population uniqueness side by side, with what is known of their accuracy.

No estimator is right for all tables, so all of them are shown. Dankar's rule says which one to look at first
[Dankar et al. 2012]: Pitman up to a sampling fraction of 1/10, beyond it the smaller one of SNB and Zayatz.

Pitman-Yor: class sizes as a Pitman sampling partition, its two parameters by maximum likelihood [Hoshino 2001].

The likelihood of u classes among n people, c_j of them with j people, is up to a constant

    Π_{i=1}^{u−1} (θ + iα) / Π_{i=1}^{n−1} (θ + i) · Π_j (Π_{i=1}^{j−1} (i − α))^{c_j},   0 ≤ α < 1, θ > −α,

and a population of N is expected to have N·(θ+α)_{N−1} / (θ+1)_{N−1} uniques, with rising factorials. That is used
here, and not its limit N^α·Γ(θ+1)/Γ(θ+α) for large N, which other tools compute.

Zayatz: how likely somebody who is unique in the sample is unique in the population [Zayatz 1991].

By Bayes, with the class sizes of the sample in place of those of the population:
P = (c₁/u)(n/N) / Σ_i (c_i/u)·Hyp(1; N, i, n), where c_i of the u classes have i people and Hyp(1; N, i, n) is the
chance that exactly one of i people is among n drawn from N.

SNB: class sizes of the population as a shifted negative binomial [Chen, Keller-McNulty 1998].

Each of K classes has 1 + NB(a, b) people, so that K·b^a of them are expected to be unique. K is Shlosser's number;
a and b are such that the expected classes of one and of two people in the sample are those that it has. With q the
sampling fraction and D = (1−q)(1−b):

    c₁ = K·q·(b/(1−D))^a·(aD/(1−D) + 1)
    c₂ = K·a·b^a·q²(1−b)(2 − (1−a)D) / (2(1−D)^(a+2)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.population.counts import SampleCounts


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
SHAPE_HALVINGS = 100


def _solutions(counts: SampleCounts, classes: float) -> list[tuple[float, float]]:
    """Every (a, b) on the grid's scale that gives the sample's numbers of classes of one and of two."""
    found = []
    for rising in (True, False):
        differences = _pairs_missing(counts, classes, GRID, rising)
        changes = np.flatnonzero(np.sign(differences[:-1]) * np.sign(differences[1:]) < 0)
        for at in changes.tolist():
            low, high = float(GRID[at]), float(GRID[at + 1])
            below = differences[at] < 0
            for _ in range(SHAPE_HALVINGS):
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

    def _height(a: Floats) -> Floats:
        return np.asarray(np.log1p(growth * a) - slope * a - target, dtype=np.float64)

    with np.errstate(divide="ignore", invalid="ignore"):
        peak = np.maximum(0.0, 1 / slope - 1 / growth)
    low, high = (np.zeros_like(b), peak) if rising else (peak, peak + 1)
    if not rising:
        for _ in range(60):
            high = np.where(_height(high) > 0, 2 * high, high)
    there = (
        (_height(low) <= 0) & (_height(high) >= 0) if rising else (_height(low) >= 0) & (_height(high) <= 0)
    )
    for _ in range(SHAPE_HALVINGS):
        middle = (low + high) / 2
        upwards = (_height(middle) < 0) == rising
        low, high = np.where(upwards, middle, low), np.where(upwards, high, middle)
    return np.where(there, low, np.nan)


SMALLEST = -745.0  # the exponential of less is 0


def unique_given_unique(counts: SampleCounts) -> float:
    """The probability that a unique of the sample is unique in the population; 0 where the sample has none."""
    singles = counts.of_size(1)
    if not singles:
        return 0.0
    seen = counts.sizes * np.exp(_left_out(counts))  # Hyp(1; N, i, n)·N/n
    return float(singles / (counts.classes * seen).sum())


def zayatz_uniques(counts: SampleCounts) -> float:
    """The expected number of population uniques: the sample's, extended by the sampling fraction."""
    return counts.of_size(1) * unique_given_unique(counts) / counts.fraction


def _left_out(counts: SampleCounts) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The logarithm of the chance that nobody else of a class is drawn, for each class size."""
    outside = counts.population - counts.people  # people who are not in the sample
    most = min(int(counts.sizes.max()) - 1, outside, _enough(counts.fraction))
    others = np.arange(most, dtype=np.float64)
    logs = np.append(0.0, np.cumsum(np.log((outside - others) / (counts.population - 1 - others))))
    return np.where(counts.sizes - 1 <= most, logs[np.minimum(counts.sizes - 1, most)], -np.inf)


def _enough(fraction: float) -> int:
    """A number of people who are never all left out of the sample: each is with at most 1 − fraction."""
    return int(SMALLEST / np.log1p(-fraction)) + 1 if fraction < 1 else 0


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


HALVINGS = 200  # a bisection ends before that, when its ends meet


def pitman_parameters(counts: SampleCounts) -> tuple[float, float] | None:
    """θ and α of greatest likelihood; None where there is none (one class, or nobody shares one)."""
    if counts.n_classes in (1, counts.people):
        return None

    def _slope(alpha: float) -> float:
        return _alpha_score(counts, _best_theta(counts, alpha), alpha)

    low, high = 0.0, 1.0
    if _slope(0.0) <= 0:  # rarer uniques than any positive α would give
        return _best_theta(counts, 0.0), 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _slope(middle) > 0 else (low, middle)
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


Estimator = Literal["dankar", "pitman", "zayatz", "snb"]
UNIQUES: Mapping[str, Callable[[SampleCounts], float | None]] = {
    "pitman": pitman_uniques,
    "zayatz": zayatz_uniques,
    "snb": shifted_uniques,
}
SMALL_FRACTION = 0.1  # Dankar's rule: up to here Pitman
KNOWN_ACCURACY = (  # measured by experiments/population.py
    "With 299,285 people of Census-Income as the population, samples of a tenth led to 0.94 to 1.56 times the true "
    "share of uniques, samples of a hundredth to 1.52 to 5.29 times. These are estimates, and no guarantee."
)


@dataclass(frozen=True)
class UniquenessEstimates:
    """The estimated share of population uniques, by estimator.

    Attributes:
        shares: for each estimator; None: it gives no answer for these class sizes.
        chosen: the estimator that Dankar's rule picks; None: none of them gives an answer.
    """

    shares: Mapping[str, float | None]
    chosen: str | None


def uniqueness_estimates(counts: SampleCounts) -> UniquenessEstimates:
    """The share of the population that is unique, by every estimator."""
    shares = {name: _share(counts, name) for name in UNIQUES}
    return UniquenessEstimates(shares, _chosen(shares.__getitem__, counts.fraction))


def estimated_share(counts: SampleCounts, estimator: Estimator) -> float | None:
    """The share by one estimator, or by the one that Dankar's rule picks; None: it gives no answer."""
    found: dict[str, float | None] = {}

    def _share_of(name: str) -> float | None:
        if name not in found:
            found[name] = _share(counts, name)
        return found[name]

    name = _chosen(_share_of, counts.fraction) if estimator == "dankar" else estimator
    return None if name is None else _share_of(name)


def _share(counts: SampleCounts, name: str) -> float | None:
    """The share of population uniques by one estimator; counted where the sample is the population."""
    whole = counts.people == counts.population
    uniques = float(counts.of_size(1)) if whole else UNIQUES[name](counts)
    return None if uniques is None else uniques / counts.population


def _chosen(share: Callable[[str], float | None], fraction: float) -> str | None:
    """The estimator that Dankar's rule picks, among those that give an answer."""
    if fraction <= SMALL_FRACTION and share("pitman") is not None:
        return "pitman"
    answers = {name: found for name in ("snb", "zayatz") if (found := share(name)) is not None}
    return min(answers, key=lambda name: answers[name]) if answers else None
