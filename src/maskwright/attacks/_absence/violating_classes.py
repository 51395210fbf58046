"""Classes that are known to violate: what they hold when everybody's value was drawn independently.

n people draw one of several sets of values (or none of them) with probabilities in the ratio of given weights. Known is
that some set is held by more people than its cap. Worlds without a violation are counted in integers, set by set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from maskwright.worlds.counting.binomial import log_binomial

EXACT = 60_000  # steps of the exact count; beyond, two sets that violate at once are neglected


def violating_shares(n: int, weights: Sequence[int], caps: Sequence[int]) -> list[Fraction]:
    """The expected share of each set in a class of n people that violates a cap.

    Args:
        n: people in the class.
        weights: how often each set occurs elsewhere; the last is that of everything else, which has no cap.
        caps: the most of each set that is allowed.

    Returns:
        One share per weight. Where the weights make a violation impossible, sets that occur nowhere else are taken
        to occur once; where the caps do, nothing is known, and the shares are those of the weights.
    """
    if all(cap >= n for cap in caps):
        return [Fraction(w, sum(weights)) for w in weights]
    if not any(w and cap < n for w, cap in zip(weights[:-1], caps, strict=True)):
        return violating_shares(n, [*(max(1, w) for w in weights[:-1]), weights[-1]], caps)
    if n * sum(min(cap, n) + 1 for cap in caps) * (len(caps) + 1) <= EXACT:
        return _exactly(n, weights, [*caps, n])
    return _approximately(n, weights, caps)


def _exactly(n: int, weights: Sequence[int], caps: Sequence[int]) -> list[Fraction]:
    whole = sum(weights)
    violating = whole**n - _safe(n, weights, caps)
    result = []
    for i, w in enumerate(weights):
        # of the worlds in which a given person has set i, those in which the others leave all well
        fewer = [cap - (i == j) for j, cap in enumerate(caps)]
        mine = w * (whole ** (n - 1) - _safe(n - 1, weights, fewer))
        result.append(Fraction(mine, violating))
    return result


def _safe(n: int, weights: Sequence[int], caps: Sequence[int]) -> int:
    """Σ n!/∏c! · ∏ w^c over all counts c within their caps that add up to n."""
    ways = [1] + [0] * n  # ways[j]: for j people, with the sets so far
    for w, cap in zip(weights, caps, strict=True):
        if cap < 0:
            return 0
        powers = [w**c for c in range(min(cap, n) + 1)]
        ways = [
            sum(ways[j - c] * math.comb(j, c) * powers[c] for c in range(min(cap, j) + 1))
            for j in range(n + 1)
        ]
    return ways[n]


def _approximately(n: int, weights: Sequence[int], caps: Sequence[int]) -> list[Fraction]:
    """Shares when at most one set violates: each by its own probability, in floating point."""
    whole = sum(weights)
    logs, means = [], []
    for w, cap in zip(weights[:-1], caps, strict=True):
        if not w or cap >= n or w == whole:
            logs.append(0.0 if w == whole and cap < n else -math.inf)
            means.append(1.0 if w == whole else 0.0)
            continue
        # what is further from the mean than forty deviations is nothing, beside what is left, in floating point
        mean, far = n * w / whole, 20 * math.sqrt(n) + 1000
        least = max(cap + 1, 0, math.floor(mean - far))
        j = np.arange(least, min(n, math.ceil(max(least, mean) + far)) + 1, dtype=np.float64)
        log = log_binomial(j, np.full(len(j), float(n)), w / whole)
        top = float(log.max())
        tail = np.exp(log - top)
        logs.append(top + math.log(float(tail.sum())))
        means.append(float((tail * j).sum() / tail.sum()) / n)
    most = max(logs)
    chances = [math.exp(x - most) for x in logs]
    result = []
    for i, w in enumerate(weights):
        share = 0.0
        for u, (chance, mean) in enumerate(zip(chances, means, strict=True)):
            rest = whole - weights[u]
            share += chance * (mean if i == u else (1 - mean) * w / rest if rest else 0.0)
        result.append(Fraction(share / math.fsum(chances)))
    return result
