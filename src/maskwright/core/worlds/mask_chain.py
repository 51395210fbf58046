"""What MASK gives away to who knows it, where its worlds are too many to add up: a Markov chain over disguised classes.

The states are those of `mask_posterior`: how many classes of each kind (size, observed number) are disguised ones. One
class at a time becomes disguised or undisguised, with the probability that makes the likelihood the chain's stationary
law. Several chains from different starts are compared, and the interval is that between them.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maskwright.core.worlds.binomial import log_binomial
from maskwright.core.worlds.vectors import caps_of

Floats = NDArray[np.float64]
CHAINS = 4
T_QUANTILE = 5.84  # of Student's t with CHAINS − 1 degrees of freedom, for 99 %


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
    """`mask_posterior` by a Markov chain, 0 < theta < 1.

    Args:
        sizes: the members of each class.
        observed: the sensitive members it was published with, at most one in ell.
        ell: the diversity MASK was asked for.
        theta: the prior probability of being sensitive.
        steps: of each chain; the first half is forgotten.
        seed: of the draws.
    """
    kinds = Counter(zip(sizes, observed, strict=True))
    chain = _Chain(sorted(kinds, key=lambda k: -Fraction(k[1], k[0])), kinds, ell, theta)
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


class _Chain:
    """Kinds by falling share; `h` counts the disguised classes of each."""

    def __init__(
        self, kinds: list[tuple[int, int]], many: Counter[tuple[int, int]], ell: Fraction, theta: float
    ) -> None:
        self.kinds, self.ell = kinds, ell
        self.n, self.s = np.array([k[0] for k in kinds]), np.array([k[1] for k in kinds])
        self.m = np.array([many[k] for k in kinds])
        caps = caps_of([k[0] for k in kinds], ell)
        self.shown = np.array([_log(theta, n, [s])[0] for n, s in kinds])
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


def _log(theta: float, n: int, js: Sequence[int]) -> Floats:
    return log_binomial(np.array(js, dtype=np.float64), np.full(len(js), float(n)), theta)


def _tail(theta: float, n: int, cap: int) -> tuple[float, float]:
    """log P(more than cap), and the mean number given that."""
    if cap >= n:
        return -math.inf, 0.0
    js = np.arange(cap + 1, n + 1)
    logs = _log(theta, n, js.tolist())
    top = float(logs.max())
    weights = np.exp(logs - top)
    return top + math.log(float(weights.sum())), float((weights @ js) / weights.sum())
