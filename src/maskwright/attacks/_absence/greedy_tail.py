"""The dropped tail of greedy grouping: people who are missing because their group never satisfied the requirement.

Who knows the method knows that every prefix of the tail violated it (with `extend`: or went on by chance). Nothing is
published about these people, so the prior is that each holds a value of the set with its share in the release,
independently. Forward and backward sums over the buckets give what is then believed, bucket by bucket.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._minimality.refusals import looked_at_values
from maskwright.attacks._shared.secrets import columns_of
from maskwright.attacks._shared.thresholds import Threshold, thresholds_of
from maskwright.domain.adversary import Target

Floats = NDArray[np.float64]
LARGEST = 20_000_000  # numbers in a table; longer tails are not judged


@dataclass(frozen=True)
class Tail:
    """`buckets` buckets of `size` rows that were dropped because of one threshold; `extend`: as the method had it."""

    rule: Threshold
    size: int
    buckets: int
    extend: Fraction

    @property
    def people(self) -> int:
        """The number of people in the tail."""
        return self.size * self.buckets

    def beliefs(self, prior: float) -> Floats:
        """Per bucket, the belief that one of its people holds a value of the set; 1 where the prior rules it out."""
        if not 0 < prior < 1:
            return np.ones(self.buckets)
        # worlds in which so many violate are rare: they are dealt with a share at which they are not, and weighted by
        # how many hold the value in all, which is all that the prior depends on
        dealt = max(prior, float(self.rule.share)) if self.rule.share < 1 else prior
        deal = _binomial(self.size, dealt)
        most = self.people + 1
        held = np.arange(most)
        caps = self.rule.caps(self.size * np.arange(1, self.buckets + 1))
        # what the prefix up to each bucket tells: it violated, or it did not and went on by chance
        told = np.where(held[None, :] > caps[:, None], 1.0, float(self.extend))
        told[-1] = held > caps[-1]
        before = np.zeros((self.buckets, most))
        state = np.zeros(most)
        state[0] = 1.0
        for i in range(self.buckets):
            before[i] = state
            state = _scaled(np.convolve(state, deal)[:most] * told[i])
        odds = math.log(prior / (1 - prior)) - math.log(dealt / (1 - dealt))
        after, result = np.exp(odds * np.maximum(held - caps[-1] - 1, 0)), np.zeros(self.buckets)
        for i in reversed(range(self.buckets)):
            rest = told[i] * after  # by the number held up to and with bucket i
            joint = np.array([before[i][: most - j] @ rest[j:] * deal[j] for j in range(self.size + 1)])
            result[i] = np.arange(self.size + 1) @ joint / joint.sum() / self.size
            after = _scaled(np.convolve(rest, deal[::-1])[self.size :][:most])
        return result


def _binomial(n: int, p: float) -> Floats:
    """The probabilities of 0 … n successes."""

    def _log(j: int) -> float:
        ways = math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1)
        return ways + j * math.log(p) + (n - j) * math.log1p(-p)

    return np.exp([_log(j) for j in range(n + 1)])


def _scaled(weights: Floats) -> Floats:
    """Weights scaled so that the largest is 1: only ratios matter, and nothing underflows."""
    result: Floats = weights / weights.max()
    return result


def tail_of(target: Target) -> Tail | None:
    """The tail that greedy grouping dropped for its values, where one threshold was the reason; else None."""
    trace, method = target.grouping.trace, target.method
    rows, bucket = trace.dropped_for_values, trace.bucket
    if method is None or not rows or not bucket:
        return None
    search_models = [m for m in target.models if m.use == "search"]
    rules = thresholds_of(looked_at_values(target.models), target.context)
    if not rules or len(rules) != 1 or rules[0].attribute not in columns_of(target):
        return None
    if any(m.kernel(target.context) is None or m.least_size(target.context) > bucket for m in search_models):
        return None  # something else may have been the reason
    tail = Tail(rules[0], int(bucket), int(rows) // int(bucket), method.decisions().extend)
    return tail if tail.buckets * tail.people <= LARGEST else None
