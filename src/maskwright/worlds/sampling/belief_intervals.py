"""Beliefs from what was listed, drawn or walked: each between two ends, all of them at once with stated confidence.

The largest of many beliefs is known only if all are: the ends hold *simultaneously* (the risk is shared out among all
beliefs in question). Two ways narrow a belief down, and both are used: how often the secret was seen among the worlds
that were kept, and how many were kept at all, for

    P(secret | kept) ≤ P(secret) / P(kept),   P(secret | kept) ≥ (P(secret) − P(not kept)) / P(kept).

A zero-one outcome has the exact interval of Clopper and Pearson; a mean of outcomes between 0 and 1 the one that
follows from Chernoff's bound, n·KL(mean‖p) ≤ log(1/risk) [Hoeffding 1963, Theorem 1]. Both hold for every n and p: no
normal approximation that fails where beliefs are near 0 or 1 or draws are few. Ends are rounded outwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.worlds.counting.binomial import Floats, binomial_deviance, stirling_error
from maskwright.worlds.sampling.world_sampler import Bools, Tally

RISK = 0.01  # one minus the confidence of all intervals together
FEW = 20  # fewer worlds than this narrow nothing down
Kind = Literal["exact", "sampled", "estimated", "bounded"]
KINDS: tuple[Kind, ...] = ("exact", "sampled", "estimated", "bounded")
SLACK = 1e-10  # what rounding may have cost
STEPS = 60  # of bisection


@dataclass(frozen=True, eq=False)
class BeliefIntervals:
    """The belief that a person of a unit has a secret: unit × secret.

    Attributes:
        tally: where it comes from.
        inside: item × secret: does the item make the secret true?
        estimate: the belief; exact where `kind` is 0.
        low, high: its ends.
        kind: per unit the place in `KINDS`.
        least: per block, the least share of all worlds that is kept.
    """

    tally: Tally
    inside: Bools
    estimate: Floats
    low: Floats
    high: Floats
    kind: NDArray[np.int64]
    least: Floats

    def exact(self, unit: int, secret: int) -> Fraction:
        """The belief as a fraction; where it was not listed, the estimate to a millionth."""
        if self.kind[unit]:
            return Fraction(round(float(self.estimate[unit, secret]) * 10**6), 10**6)
        tally = self.tally
        worlds = int(tally.worlds[tally.block_of_unit[unit]]) * int(tally.sizes[unit])
        return Fraction(int(tally.held[unit][self.inside[:, secret]].sum()), worlds)

    def worst(self) -> tuple[int, int] | None:
        """The unit and the secret of the largest belief; among equals the one with the larger upper end."""
        if not self.estimate.size:
            return None
        top = float(self.estimate.max())
        near = np.argwhere(self.estimate >= top - 1e-9).tolist()
        unit, secret = max(near, key=lambda x: (self.exact(x[0], x[1]), self.high[x[0], x[1]]))
        return int(unit), int(secret)

    def range_of_worst(self) -> tuple[float, float]:
        """The ends between which the largest of all beliefs lies."""
        return float(self.low.max(initial=0.0)), float(self.high.max(initial=0.0))


def belief_intervals(tally: Tally, inside: Bools, risk: float = RISK) -> BeliefIntervals:
    """Beliefs in secrets that are sets of items, each with an interval; all intervals hold together, up to `risk`."""
    sizes, block = tally.sizes.astype(np.float64), tally.block_of_unit
    prior = tally.space.shares(tally.unit, tally.n_units) @ inside
    worlds = tally.worlds[block].astype(np.float64)
    held = (tally.held @ inside).astype(np.float64)
    share = np.divide(held, (worlds * sizes)[:, None], out=prior.copy(), where=(worlds * sizes > 0)[:, None])
    listed, walked = tally.listed[block], tally.walked[block]
    open_ = ~listed
    in_question = max(1, int((prior[open_] > 0).sum()))
    drawn_blocks = max(1, int((~tally.listed).sum()))
    least = np.where(
        tally.listed, tally.kept / np.maximum(tally.looked, 1),
        binomial_lower(tally.kept.astype(np.float64), tally.looked.astype(np.float64), risk / 2 / drawn_blocks),
    )  # fmt: skip
    low, high = share.copy(), share.copy()
    each = risk / 4 / in_question
    if open_.any():
        trials = np.where(walked, _effective(tally), worlds)[:, None]
        single = (sizes == 1) & ~walked
        ends = chernoff_interval(share, np.broadcast_to(trials, share.shape), each)
        exact_ends = exact_interval(held[single], np.broadcast_to(trials, share.shape)[single], each)
        for end, tight, target in zip(ends, exact_ends, (low, high), strict=True):
            end[single] = tight
            target[open_] = end[open_]
        kept = least[block][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            above = np.where(kept > 0, np.minimum(prior / kept, 1.0), (prior > 0) * 1.0)
            below = np.where(kept > 0, np.maximum(1 - (1 - prior) / kept, 0.0), 0.0)
        high = np.where(open_[:, None], np.minimum(high, above), high)
        low = np.where(open_[:, None], np.maximum(low, below), low)
        least_share, largest_share = tally.space.extremes(tally.unit, tally.n_units, inside)
        largest_share = np.minimum(largest_share * (1 + SLACK), 1.0)
        high = np.where(open_[:, None], np.minimum(high, largest_share), high)
        low = np.where(open_[:, None], np.maximum(low, least_share * (1 - SLACK)), low)
        low = np.minimum(low, high)
    estimate = np.clip(share, low, high)
    nothing = open_ & (worlds < FEW)
    kind = np.where(listed, 0, np.where(walked, 2, 1))
    kind = np.where(nothing, 3, kind)
    return BeliefIntervals(tally, inside, estimate, low, high, kind.astype(np.int64), least)


def _effective(tally: Tally) -> Floats:
    """Per unit, how many independent draws its beliefs are worth at least, where they come from chains."""
    result = np.full(tally.n_units, np.inf)
    if tally.chains is not None and tally.walked.any():
        worth = tally.chains.effective()
        np.minimum.at(result, tally.chains.cells // tally.space.n_items, worth)
    return np.where(np.isinf(result), tally.worlds[tally.block_of_unit], result)


def binomial_lower(successes: Floats, trials: Floats | float, risk: float) -> Floats:
    """The lower end of Clopper and Pearson: a smaller p makes this many successes less likely than `risk`."""
    every = np.asarray(successes, dtype=np.float64)
    pairs = every.reshape(-1), np.broadcast_to(np.asarray(trials, dtype=np.float64), every.shape).reshape(-1)
    # whole numbers up to a few thousand: far fewer different ones than beliefs
    (k, n), which = np.unique(np.stack(pairs), axis=1, return_inverse=True)
    inside = (k > 0) & (k < n)
    j, m = np.where(inside, k, 1.0), np.where(inside, n, 2.0)
    low, high = np.zeros(k.shape), j / m
    for _ in range(STEPS):
        p = (low + high) / 2
        unlikely = _at_least(j, m, p) < risk
        low, high = np.where(unlikely, p, low), np.where(unlikely, high, p)
    always = np.power(risk, 1 / np.maximum(n, 1))
    result = np.where(inside, low, np.where((k > 0) & (n > 0), always, 0.0))
    return np.asarray((result * (1 - SLACK))[which.reshape(-1)].reshape(every.shape))


def exact_interval(successes: Floats, trials: Floats | float, risk: float) -> tuple[Floats, Floats]:
    """Both ends of the exact interval, each missed with probability at most `risk`; without trials [0, 1]."""
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
        - binomial_deviance(k, n * p) - binomial_deviance(n - k, n * q) - 0.5 * np.log(2 * math.pi * k * ((n - k) / n))
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


def chernoff_interval(mean: Floats, trials: Floats | float, risk: float) -> tuple[Floats, Floats]:
    """Both ends of Chernoff's interval for means of independent values between 0 and 1."""
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
