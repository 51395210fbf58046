"""Worlds drawn at random: how likely it was that finer nodes had to be refused, whatever the models ask.

For everybody and every secret P(secret | refused) ≤ P(secret) / P(refused), so that one probability, bounded from below
with stated confidence, bounds all beliefs at once. A violation among some of the groups is one among all of them:
where there are many groups, a few that are likely to violate are enough for the bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks.refusals import Parts, looked_at_values
from maskwright.core.adversary import Target
from maskwright.core.classes import Classes, Ints, ValueCounts

PEOPLE = 2_000  # whose values are dealt anew in each world
RISK = 0.01  # one minus the confidence of the bound


def refused_at_least(target: Target, refused: Sequence[Parts], draws: int) -> float:
    """A lower bound, with 99 % confidence, for the probability that every one of these nodes is refused.

    The worlds deal each group's values to its people; a node is refused when a class of it fails a model.
    """
    groups = _likely(target, refused)
    rng = np.random.default_rng(0)  # the draws are no secret, and a report should be repeatable
    dealt = _Deals(target, groups, draws, rng)
    every = np.ones(draws, dtype=bool)
    for parts in refused:
        every &= dealt.violated(parts)
    return binomial_lower(int(every.sum()), draws, RISK)


def _likely(target: Target, refused: Sequence[Parts]) -> NDArray[np.bool_]:
    """Groups to look at: those with the most parts per person, up to `PEOPLE` people (at least one group)."""
    sizes = target.grouping.classes.sizes
    parts = np.zeros(len(sizes), dtype=np.int64)
    for one in refused:
        parts += np.bincount(one.group, minlength=len(sizes))
    order = np.argsort(-parts / sizes, kind="stable")
    order = order[parts[order] > len(refused)]  # a group of one part tells nothing
    enough = max(1, int(np.searchsorted(np.cumsum(sizes[order]), PEOPLE, side="right")))
    chosen = np.zeros(len(sizes), dtype=bool)
    chosen[order[:enough]] = True
    return chosen


class _Deals:
    """Many worlds at once: the people of the chosen groups, and the values that each world deals them."""

    def __init__(
        self, target: Target, groups: NDArray[np.bool_], draws: int, rng: np.random.Generator
    ) -> None:
        self.models, self.context = looked_at_values(target.models), target.context
        self.draws, summary = draws, target.grouping.summary
        of_tuple = np.full(summary.n_tuples, -1, dtype=np.int64)
        of_tuple[target.grouping.allocation.tuples] = target.grouping.allocation.groups
        inside = np.flatnonzero((of_tuple >= 0) & groups[of_tuple])
        inside = inside[np.argsort(of_tuple[inside], kind="stable")]
        self.tuples = np.repeat(inside, summary.sizes[inside])
        group = of_tuple[self.tuples]
        self.values: dict[str, tuple[ValueCounts, Ints]] = {}
        keys = rng.random((draws, len(self.tuples)))
        # sorted by group, then at random: where row i of the group's list of values goes in each world
        order = np.lexsort((keys, np.broadcast_to(group, keys.shape)), axis=1)
        for name in {m.attribute_name() or "" for m in self.models} or set():
            for attribute in [name] if name else list(summary.sensitive):
                if attribute not in self.values:
                    self.values[attribute] = self._deal(target, attribute, groups, order)

    def _deal(
        self, target: Target, attribute: str, groups: NDArray[np.bool_], order: Ints
    ) -> tuple[ValueCounts, Ints]:
        counts = target.grouping.classes.sensitive[attribute]
        chosen = groups[counts.owner]
        listed = np.repeat(counts.codes[chosen], counts.counts[chosen]).astype(np.int64)
        dealt = np.empty(order.shape, dtype=np.int64)
        np.put_along_axis(dealt, order, np.broadcast_to(listed, order.shape), axis=1)
        return counts, dealt

    def violated(self, parts: Parts) -> NDArray[np.bool_]:
        """In which worlds some part fails some model."""
        mine, number = np.unique(parts.class_of[self.tuples], return_inverse=True)
        n, sizes = len(mine), np.bincount(number.reshape(-1)).astype(np.int64)
        owner = (np.arange(self.draws)[:, None] * n + number.reshape(-1)[None, :]).reshape(-1)
        all_sizes = np.tile(sizes, self.draws)
        sensitive = {
            name: ValueCounts.collect(
                counts.values, n * self.draws, owner, dealt.reshape(-1), np.ones(len(owner), np.int64),
                counts.ordered,
            )
            for name, (counts, dealt) in self.values.items()
        }  # fmt: skip
        classes = Classes(all_sizes, all_sizes, sensitive)
        passes = np.ones(classes.n, dtype=bool)
        for model in self.models:
            passes &= model.passing(classes, self.context)
        return ~passes.reshape(self.draws, n).all(axis=1)


def binomial_lower(successes: int, trials: int, risk: float) -> float:
    """The Clopper-Pearson bound: the smallest p for which so many successes are not too surprising."""
    if not successes:
        return 0.0
    low, high = 0.0, successes / trials
    for _ in range(60):
        p = (low + high) / 2
        tail = math.fsum(
            math.comb(trials, j) * p**j * (1 - p) ** (trials - j) for j in range(successes, trials + 1)
        )
        low, high = (p, high) if tail < risk else (low, p)
    return low
