"""Worlds one by one: all of them where they are few, drawn at random where they are many; for any model.

A world assigns the values of each published group to its people. Where worlds are drawn, one number bounds the beliefs
of everybody at once: P(secret | refused) ≤ P(secret) / P(refused). A violation among some of the groups is one among
all of them, so that of many groups a few that are likely to violate are enough for a lower bound of P(refused).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._minimality.refusals import RefusedParts, group_of_tuples, looked_at_values
from maskwright.attacks._shared.secrets import Secrets
from maskwright.domain.adversary import Target
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.worlds.counting.multisets import count_orders, distinct_orders
from maskwright.worlds.sampling.belief_intervals import binomial_lower

PEOPLE = 2_000  # whose values are dealt anew in each world that is drawn
CELLS = 600_000  # people times worlds that are looked at one by one
RISK = 0.01  # one minus the confidence of a bound
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class GroupedPeople:
    """The people of some groups, group by group, and the values that they have between them.

    Attributes:
        target: the release.
        tuples: the tuple of each person.
        group: the published group of each person.
        items: the values of the groups, in the same order of groups: a code, or a combination of codes.
        codes: per attribute that the models look at, the code that an item stands for.
    """

    target: Target
    tuples: Ints
    group: Ints
    items: Ints
    codes: dict[str, Ints]

    @staticmethod
    def of(target: Target, groups: Bools) -> GroupedPeople:
        """The people of these groups."""
        grouping, summary = target.grouping, target.grouping.summary
        of_tuple = group_of_tuples(grouping)
        inside = np.flatnonzero((of_tuple >= 0) & groups[of_tuple])
        inside = inside[np.argsort(of_tuple[inside], kind="stable")]
        tuples = np.repeat(inside, summary.sizes[inside])
        names = attributes_of(target)
        if len(names) == 1:
            counts = grouping.classes.sensitive[names[0]]
            chosen = groups[counts.owner]
            items = np.repeat(counts.codes[chosen], counts.counts[chosen]).astype(np.int64)
            codes = {names[0]: np.arange(len(counts.values) + 1)}
        else:
            assert summary.joint is not None  # noqa: S101 - `can_deal` says so
            joint, places = summary.joint, [list(summary.sensitive).index(name) for name in names]
            of_cell = of_tuple[joint.tuples]
            cells = np.flatnonzero((of_cell >= 0) & groups[of_cell])
            cells = cells[np.argsort(of_cell[cells], kind="stable")]
            kinds, number = np.unique(joint.values[places][:, cells], axis=1, return_inverse=True)
            items = np.repeat(number.reshape(-1), joint.rows[cells])
            codes = {name: kinds[i].astype(np.int64) for i, name in enumerate(names)}
        return GroupedPeople(target, tuples, of_tuple[tuples], items, codes)

    def segments(self) -> list[slice]:
        """The places of each group."""
        starts = np.flatnonzero(np.diff(self.group, prepend=-1)).tolist()
        return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(self.group)], strict=True)]

    def n_worlds(self) -> int:
        """The number of different worlds; counting stops beyond `CELLS`."""
        result = 1
        for part in self.segments():
            result *= count_orders(np.unique(self.items[part], return_counts=True)[1].tolist())
            if result > CELLS:
                break
        return result

    def every_world(self) -> Ints:
        """All different worlds, one row each; all are equally likely."""
        worlds = self.n_worlds()
        dealt = np.empty((worlds, len(self.tuples)), dtype=np.int64)
        stride, number = 1, np.arange(worlds)
        for part in self.segments():
            ways = np.array(list(distinct_orders(self.items[part].tolist())), dtype=np.int64)
            dealt[:, part] = ways[number // stride % len(ways)]
            stride *= len(ways)
        return dealt

    def draw(self, worlds: int, rng: np.random.Generator) -> Ints:
        """Independent worlds, one row each."""
        keys = rng.random((worlds, len(self.tuples)))
        order = np.lexsort((keys, np.broadcast_to(self.group, keys.shape)), axis=1)
        dealt = np.empty(order.shape, dtype=np.int64)
        np.put_along_axis(dealt, order, np.broadcast_to(self.items, order.shape), axis=1)
        return dealt

    def refused(self, dealt: Ints, parts: RefusedParts) -> Bools:
        """Whether, in each world, some part fails some model that the search looked at."""
        context, worlds = self.target.context, len(dealt)
        _, number = np.unique(parts.class_of[self.tuples], return_inverse=True)
        number = number.reshape(-1)
        n, sizes = int(number.max()) + 1, np.tile(np.bincount(number).astype(np.int64), worlds)
        owner = (np.arange(worlds)[:, None] * n + number[None, :]).reshape(-1)
        ones = np.ones(len(owner), dtype=np.int64)
        sensitive = {}
        for name, code in self.codes.items():
            counts = self.target.grouping.classes.sensitive[name]
            sensitive[name] = ValueCounts.collect(
                counts.values, n * worlds, owner, code[dealt.reshape(-1)], ones, counts.ordered
            )
        classes = Classes(sizes, sizes, sensitive)
        passes = np.ones(classes.n, dtype=bool)
        for model in looked_at_values(self.target.models):
            passes &= model.passing(classes, context)
        return np.asarray(~passes.reshape(worlds, n).all(axis=1), dtype=bool)


def attributes_of(target: Target) -> list[str]:
    """The sensitive columns that the search looked at."""
    names: dict[str, None] = {}
    for model in looked_at_values(target.models):
        name = model.attribute_name()
        names |= dict.fromkeys(target.grouping.classes.sensitive if name is None else [name])
    return list(names)


def can_deal(target: Target) -> bool:
    """Whether it is known which values belong together: one column needs nothing, several need joint counts."""
    return len(attributes_of(target)) == 1 or target.grouping.summary.joint is not None


def split_groups(target: Target, refused: Sequence[RefusedParts]) -> Bools:
    """Groups that some refused node divides; the others have nothing to do with it."""
    sizes = target.grouping.classes.sizes
    result = np.zeros(len(sizes), dtype=bool)
    for parts in refused:
        result |= np.bincount(parts.group, minlength=len(sizes)) > 1
    return result


@dataclass(frozen=True, eq=False)
class ListedWorlds:
    """All worlds in which some nodes are refused (`kept`), as a share of all worlds (`chance`).

    `groups` are the published groups that the worlds are about.
    """

    crowd: GroupedPeople
    kept: Ints
    chance: Fraction
    groups: Bools

    def beliefs(self, secrets: Secrets) -> dict[int, dict[int, Fraction]]:
        """The share of the people of each tuple who have each secret, over the worlds kept: secret → tuple → share."""
        crowd, n = self.crowd, len(self.kept)
        values = crowd.target.grouping.classes.sensitive[secrets.attribute].values
        tuples, number, sizes = np.unique(crowd.tuples, return_inverse=True, return_counts=True)
        result = {}
        for code, members in enumerate(secrets.sets, start=1):
            inside = np.isin(
                crowd.codes[secrets.attribute], [i + 1 for i, v in enumerate(values) if v in members]
            )
            held = np.bincount(number.reshape(-1), inside[self.kept].sum(axis=0), len(tuples)).astype(
                np.int64
            )
            shares = zip(tuples.tolist(), held.tolist(), sizes.tolist(), strict=True)
            result[code] = {t: Fraction(h, n * size) for t, h, size in shares}
        return result


def refusing_worlds(target: Target, refused: Sequence[RefusedParts]) -> ListedWorlds | None:
    """All worlds in which every one of these nodes is refused; None where there are too many to look at."""
    groups = split_groups(target, refused)
    people = int(target.grouping.classes.sizes[groups].sum())
    if not 0 < people <= PEOPLE:
        return None
    crowd = GroupedPeople.of(target, groups)
    if crowd.n_worlds() * people > CELLS:
        return None
    dealt = crowd.every_world()
    kept = _kept(crowd, dealt, refused)
    return ListedWorlds(crowd, kept, Fraction(len(kept), len(dealt)), groups)


def _kept(crowd: GroupedPeople, dealt: Ints, refused: Sequence[RefusedParts]) -> Ints:
    for parts in refused:
        dealt = dealt[crowd.refused(dealt, parts)]
        if not len(dealt):
            break
    return dealt


def refused_at_least(target: Target, refused: Sequence[RefusedParts], draws: int) -> float:
    """A lower bound, with 99 % confidence, for the probability that every one of these nodes is refused."""
    groups = _likely(target, refused, split_groups(target, refused))
    crowd = GroupedPeople.of(target, groups)
    rng = np.random.default_rng(0)  # the draws are no secret, and a report should be repeatable
    kept = _kept(crowd, crowd.draw(draws, rng), refused)
    return float(binomial_lower(np.array(len(kept)), float(draws), RISK))


def _likely(target: Target, refused: Sequence[RefusedParts], split: Bools) -> Bools:
    """Of the groups that are divided those with the most parts per person, up to `PEOPLE` people."""
    sizes = target.grouping.classes.sizes
    parts = np.zeros(len(sizes), dtype=np.int64)
    for one in refused:
        parts += np.bincount(one.group, minlength=len(sizes))
    order = np.flatnonzero(split)
    order = order[np.argsort(-(parts / sizes)[order], kind="stable")]
    enough = max(1, int(np.searchsorted(np.cumsum(sizes[order]), PEOPLE, side="right")))
    chosen = np.zeros(len(sizes), dtype=bool)
    chosen[order[:enough]] = True
    return chosen
