"""MASK: its plan, and what it gives away to an adversary who knows it [Wong et al. 2007].

MASK takes a k-anonymous table, finds the classes V that violate ℓ-diversity and makes each of them look like a
class drawn from L, the passing classes with the largest share of sensitive rows. Of the classes that show such a
share some are disguised, which is why the belief exceeds 1/ℓ (erratum W-5).

`mask_posterior` adds up all worlds. Where they are too many, `mask_estimate` walks a Markov chain over the same states:
how many classes of each kind (size, observed number) are disguised. One class at a time becomes disguised or
undisguised, with the probability that makes the likelihood the chain's stationary law. Several chains from different
starts are compared, and the interval is that between them.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maskwright.errors import UsageError
from maskwright.worlds.counting.binomial import log_binomial
from maskwright.worlds.counting.counting_limits import WORLDS, refuse_beyond, share_fraction, whole_numbers
from maskwright.worlds.counting.violation_counts import caps_of

Floats = NDArray[np.float64]
CHAINS = 4
T_QUANTILE = 5.84  # of Student's t with CHAINS − 1 degrees of freedom, for 99 %


@dataclass(frozen=True)
class MaskPlan:
    """Steps 2 and 3 of MASK.

    Attributes:
        violating: the classes that violate, V.
        models: the classes whose shares they may take, L, largest share first.
        wanted: u = ⌈(ℓ−1)|V|⌉, how many classes L should have; fewer where fewer pass.
        shares: the shares of L in ascending order, with repetitions, D.
        targets: for each class of V the different numbers of sensitive rows it may be left with.
    """

    violating: list[int]
    models: list[int]
    wanted: int
    shares: list[Fraction]
    targets: dict[int, list[int]]


def mask_plan(sizes: Sequence[int], sensitive: Sequence[int], ell: Fraction | int) -> MaskPlan:
    """The plan of MASK for classes of these sizes with these numbers of sensitive rows."""
    ell = Fraction(ell)
    _check_classes(sizes, sensitive)
    caps = caps_of(sizes, ell)
    shown = [Fraction(s, n) for n, s in zip(sizes, sensitive, strict=True)]
    violating = [i for i, s in enumerate(sensitive) if s > caps[i]]
    wanted = math.ceil((ell - 1) * len(violating))
    passing = [i for i, s in enumerate(sensitive) if s <= caps[i]]
    models = sorted(passing, key=lambda i: (-shown[i], i))[: max(wanted, 0)]
    shares = sorted(shown[i] for i in models)
    different = set(shares)  # few, and so are the sizes of classes
    left = {n: sorted({math.floor(p * n) for p in different}) for n in {sizes[i] for i in violating}}
    return MaskPlan(violating, models, wanted, shares, {i: left[sizes[i]] for i in violating})


def mask_posterior(
    sizes: Sequence[int],
    observed: Sequence[int],
    ell: Fraction | int,
    theta: Fraction | int,
    limit: int = WORLDS,
) -> list[Fraction] | None:
    """The belief, per class, that a member was sensitive before MASK, if MASK is known; None: it cannot be observed.

    Everybody is sensitive with probability theta, independently. A class outside V shows its true number, and
    those of V take shares that depend on the shown numbers and on V only, so it is enough to sum over V; classes
    of equal size and equal observed number are interchangeable, so it is enough to know how many of them V has.

    Args:
        sizes: the members of each class.
        observed: the sensitive members it was published with.
        ell: the diversity MASK was asked for.
        theta: the prior probability of being sensitive.
        limit: refuse (`TooManyWorlds`) beyond this many numbers of disguised classes.
    """
    ell, theta = Fraction(ell), share_fraction("theta", theta)
    _check_classes(sizes, observed)
    caps = caps_of(sizes, ell)
    if any(s > cap for s, cap in zip(observed, caps, strict=True)):
        return None
    kinds = Counter(zip(sizes, observed, strict=True))
    refuse_beyond(math.prod(m + 1 for m in kinds.values()), limit)
    facts = {(n, s): _Prior.of(n, s, cap, theta) for n, s, cap in zip(sizes, observed, caps, strict=True)}
    total, held = Fraction(0), dict.fromkeys(kinds, Fraction(0))
    for chosen in itertools.product(*(range(m + 1) for m in kinds.values())):
        hidden = dict(zip(kinds, chosen, strict=True))
        weight = _likelihood(kinds, hidden, facts, ell)
        total += weight
        for kind, m in kinds.items():
            true = hidden[kind] * facts[kind].mean_beyond + (m - hidden[kind]) * kind[1]
            held[kind] += weight * true / m
    if not total:
        return None
    return [held[n, s] / (total * n) for n, s in zip(sizes, observed, strict=True)]


@dataclass(frozen=True)
class _Prior:
    """Prior facts about a class: to hold exactly what it shows, to violate, and its mean if it violates."""

    shown: Fraction
    beyond: Fraction
    mean_beyond: Fraction

    @classmethod
    def of(cls, n: int, shown: int, cap: int, theta: Fraction) -> _Prior:
        """The prior facts about a class of n members, each sensitive with probability theta."""
        chance = [math.comb(n, j) * theta**j * (1 - theta) ** (n - j) for j in range(n + 1)]
        beyond = sum(chance[cap + 1 :], Fraction(0))
        counted = sum((j * chance[j] for j in range(cap + 1, n + 1)), Fraction(0))
        return cls(chance[shown], beyond, counted / beyond if beyond else Fraction(0))


def _likelihood(
    kinds: Counter[tuple[int, int]],
    hidden: dict[tuple[int, int], int],
    facts: dict[tuple[int, int], _Prior],
    ell: Fraction,
) -> Fraction:
    """The probability of the observation with `hidden[kind]` classes of each kind in V."""
    weight = Fraction(1)
    for kind, m in kinds.items():
        h = hidden[kind]
        weight *= math.comb(m, h) * facts[kind].shown ** (m - h) * facts[kind].beyond ** h
    disguised = sum(hidden.values())
    if not weight or not disguised:
        return weight
    left = max(math.ceil((ell - 1) * disguised), 0)
    shares: list[tuple[Fraction, int]] = []
    for n, s in sorted(kinds, key=lambda kind: -Fraction(kind[1], kind[0])):
        taken = min(left, kinds[n, s] - hidden[n, s])
        shares.append((Fraction(s, n), taken))
        left -= taken
    models = sum(taken for _, taken in shares)
    if not models:
        return Fraction(0)
    for (n, s), h in hidden.items():
        if h:
            fitting = sum(taken for p, taken in shares if math.floor(p * n) == s)
            weight *= Fraction(fitting, models) ** h
    return weight


def _check_classes(sizes: Sequence[int], sensitive: Sequence[int]) -> None:
    whole_numbers("sizes", sizes, 1)
    whole_numbers("sensitive rows", sensitive)
    if len(sizes) != len(sensitive):
        raise UsageError(f"{len(sensitive)} numbers of sensitive rows are given for {len(sizes)} classes")
    if any(s > n for n, s in zip(sizes, sensitive, strict=True)):
        raise UsageError("a class has more sensitive rows than rows")


@dataclass(frozen=True)
class MaskEstimate:
    """Per class the belief that a member is sensitive, half the width of its interval, and how well chains agree.

    `rhat` is the largest ratio of the spread over all chains to that within one (near 1: they agree) [Gelman, Rubin].
    """

    beliefs: list[float]
    half: list[float]
    rhat: float


def mask_estimate(
    sizes: Sequence[int], observed: Sequence[int], ell: Fraction, theta: float, steps: int, seed: int = 0
) -> MaskEstimate:
    """The estimate of `mask_posterior` by a Markov chain, 0 < theta < 1.

    Args:
        sizes: the members of each class.
        observed: the sensitive members it was published with, at most one in ell.
        ell: the diversity MASK was asked for.
        theta: the prior probability of being sensitive.
        steps: of each chain; the first half is forgotten.
        seed: of the draws.
    """
    kinds = Counter(zip(sizes, observed, strict=True))
    chain = _MaskChain(sorted(kinds, key=lambda k: -Fraction(k[1], k[0])), kinds, ell, theta)
    rng = np.random.default_rng(seed)
    means, within = [], []
    for number in range(CHAINS):
        start = np.zeros(len(chain.m), dtype=np.int64) if number % 2 == 0 else chain.guess(rng)
        found, variance = chain.run(start, steps, rng)
        means.append(found)
        within.append(variance)
    table = np.stack(means)
    between = table.var(axis=0, ddof=1)
    inside = np.stack(within).mean(axis=0)
    rhat = np.sqrt(np.divide(inside + between, inside, out=np.ones_like(inside), where=inside > 1e-15))
    half = T_QUANTILE * np.sqrt(between / CHAINS)
    place = {kind: i for i, kind in enumerate(chain.kinds)}
    where = [place[kind] for kind in zip(sizes, observed, strict=True)]
    middle = table.mean(axis=0)
    return MaskEstimate([float(middle[i]) for i in where], [float(half[i]) for i in where], float(rhat.max()))


class _MaskChain:
    """Kinds by falling share; `h` counts the disguised classes of each."""

    def __init__(
        self, kinds: list[tuple[int, int]], many: Counter[tuple[int, int]], ell: Fraction, theta: float
    ) -> None:
        self.kinds, self.ell = kinds, ell
        self.n, self.s = np.array([k[0] for k in kinds]), np.array([k[1] for k in kinds])
        self.m = np.array([many[k] for k in kinds])
        caps = caps_of([k[0] for k in kinds], ell)
        self.shown = np.array([_log_chances(theta, n, [s])[0] for n, s in kinds])
        tails = [_tail(theta, n, cap) for (n, _), cap in zip(kinds, caps, strict=True)]
        self.beyond, self.mean = np.array([t[0] for t in tails]), np.array([t[1] for t in tails])
        falling = [-Fraction(s, n) for n, s in kinds]  # ascending, for bisect
        # the shares p with ⌊p·n⌋ = s lie between two places of the falling order
        self.first = np.array([bisect.bisect_right(falling, -Fraction(s + 1, n)) for n, s in kinds])
        self.last = np.array([bisect.bisect_right(falling, -Fraction(s, n)) for n, s in kinds])
        self.log_factorial = np.array([math.lgamma(x + 1) for x in range(int(self.m.max()) + 1)])

    def weight(self, h: NDArray[np.int64]) -> float:
        """The logarithm of the likelihood of a state, up to a constant."""
        disguised = int(h.sum())
        orders = self.log_factorial[h] + self.log_factorial[self.m - h]
        base = float((self.m - h) @ self.shown - orders.sum())
        if not disguised:
            return base
        with np.errstate(invalid="ignore"):
            base += float(np.where(h > 0, h * self.beyond, 0.0).sum())
        left = max(math.ceil((self.ell - 1) * disguised), 0)
        free = self.m - h
        taken = np.clip(left - (np.cumsum(free) - free), 0, free)
        models = int(taken.sum())
        if not models:
            return -math.inf
        upto = np.concatenate([[0], np.cumsum(taken)])
        fitting = (upto[self.last] - upto[self.first])[h > 0]
        if (fitting == 0).any():
            return -math.inf
        return base + float(h[h > 0] @ np.log(fitting / models))

    def guess(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """A start: every class disguised by its own odds; nothing disguised where that cannot be."""
        odds = np.exp(np.clip(self.beyond - self.shown, -50, 50))
        h = rng.binomial(self.m, np.where(self.s > 0, odds / (1 + odds), 0.0) / 2).astype(np.int64)
        return h if self.weight(h) > -math.inf else np.zeros_like(h)

    def run(self, h: NDArray[np.int64], steps: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Mean belief of each kind over the second half of a chain, and its variance."""
        where = rng.choice(len(self.m), steps, p=self.m / self.m.sum())
        up, luck = rng.integers(0, 2, steps) * 2 - 1, np.log(rng.random(steps))
        now = self.weight(h)
        total, square, seen = np.zeros(len(h)), np.zeros(len(h)), 0
        for step in range(steps):
            i, x = where[step], up[step]
            if 0 <= h[i] + x <= self.m[i]:
                h[i] += x
                then = self.weight(h)
                if then - now > luck[step]:
                    now = then
                else:
                    h[i] -= x
            if step >= steps // 2:
                belief = (h * self.mean + (self.m - h) * self.s) / (self.m * self.n)
                total, square, seen = total + belief, square + belief * belief, seen + 1
        mean = total / seen
        return mean, np.maximum(square / seen - mean * mean, 0.0)


def _log_chances(theta: float, n: int, js: Sequence[int]) -> Floats:
    return log_binomial(np.array(js, dtype=np.float64), np.full(len(js), float(n)), theta)


def _tail(theta: float, n: int, cap: int) -> tuple[float, float]:
    """log P(more than cap), and the mean number given that."""
    if cap >= n:
        return -math.inf, 0.0
    js = np.arange(cap + 1, n + 1)
    logs = _log_chances(theta, n, js.tolist())
    top = float(logs.max())
    weights = np.exp(logs - top)
    return top + math.log(float(weights.sum())), float((weights @ js) / weights.sum())
