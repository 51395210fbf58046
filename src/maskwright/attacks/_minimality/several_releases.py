"""Several small releases: the worlds in which the methods publish all of them.

A world says which values everybody has who is in any of the releases. Each release is published in it with some
probability, by its own method, its policy and its random choices; these are drawn independently of those of the others,
so the weight of a world is the product. Somebody who is in several releases has the same values in all of them. People
with the same quasi-identifiers in every release that they are in are told apart by nobody, and counted together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._minimality.enumeration import World, likely_worlds, seen_by_readers
from maskwright.attacks._minimality.replay import MORE, replay_assumption
from maskwright.attacks._minimality.world_tables import PublishedPeople
from maskwright.attacks._shared.findings import belief_limit
from maskwright.attacks._shared.secrets import NOTHING, label_text, secrets_of
from maskwright.attacks.intersection import JoinedPeople
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Ints
from maskwright.worlds.counting.multisets import count_orders, sub_multisets, subtract_counts
from maskwright.worlds.sampling.world_sampler import WorldBudget

STEPS = 10  # of dealing values, for each world that may be looked at
Values = tuple[str | None, ...]
Counts = tuple[int, ...]


@dataclass(frozen=True)
class FoundTogether:
    """What the choices of several methods tell together.

    Attributes:
        worst: the worst belief.
        vulnerable: people about whom some belief is above the bound of a policy.
        people: who are published in any of the releases.
        assumption: what that rests on; None: on nothing.
    """

    worst: Belief
    vulnerable: int
    people: int
    assumption: str | None


def found_together(
    targets: Sequence[Target], crowd: JoinedPeople, budget: WorldBudget
) -> FoundTogether | None:
    """The worst belief over the worlds in which all of these releases are published; None: it cannot be counted."""
    names = sorted(targets[0].grouping.summary.sensitive)
    if any(sorted(t.grouping.summary.sensitive) != names for t in targets):
        return None
    shared = replace(budget, seconds=budget.seconds / (len(targets) + 1))
    listed: list[_ReleaseWorlds] = []
    for target, kinds in zip(targets, crowd.tuples, strict=True):
        found = _ReleaseWorlds.of(target, kinds, names, shared)
        if found is None:
            return None
        listed.append(found)
    if any(_same_choices(a, b) for a, b in itertools.combinations(listed, 2)):
        return None
    joint = _JointWorlds(crowd.sizes.tolist(), listed, shared)
    return joint.worst(names) if joint.count() else None


@dataclass(frozen=True, eq=False)
class _ReleaseWorlds:
    """One of the releases, and in which worlds it is published.

    Attributes:
        target, places: it, and its people.
        unit: of each kind of people; -1: they are not in it.
        block: of each unit: values are dealt within it.
        items: the values of each item.
        likely: how probable it is in each world.
    """

    target: Target
    places: PublishedPeople
    unit: list[int]
    block: list[int]
    items: list[Values]
    likely: dict[World, Fraction]

    @staticmethod
    def of(target: Target, kinds: Ints, names: Sequence[str], budget: WorldBudget) -> _ReleaseWorlds | None:
        """What is known of a release; None: its worlds cannot be counted."""
        found = likely_worlds(target, budget)
        if found is None:
            return None
        places, blocks, likely = found
        unit_of = np.full(target.grouping.summary.n_tuples + 1, -1, dtype=np.int64)  # the last one: nobody's
        unit_of[places.tuples_of_units] = np.arange(places.n_units)
        block = np.zeros(places.n_units, dtype=np.int64)
        block[places.unit] = blocks
        texts = []
        for name in names:
            values = (None, *target.grouping.summary.sensitive[name].values)
            texts.append([values[code] for code in places.codes[name].tolist()])
        items = list(zip(*texts, strict=True))[: int(places.items.max(initial=-1)) + 1]
        return _ReleaseWorlds(target, places, unit_of[kinds].tolist(), block.tolist(), items, likely)

    @property
    def real(self) -> World:
        """The world that is so."""
        held = np.zeros((self.places.n_units, len(self.items)), dtype=np.int64)
        np.add.at(held, (self.places.unit, self.places.items), 1)
        return tuple(map(tuple, held.tolist()))

    def shows(self, unit: int) -> bool:
        """Whether somebody of a unit is published."""
        return unit >= 0 and bool((self.places.group[self.places.unit == unit] >= 0).any())


def _same_choices(a: _ReleaseWorlds, b: _ReleaseWorlds) -> bool:
    """Whether the random choices of two releases may be the same ones: the same was run on the same, and came out."""
    if a.target.method != b.target.method or list(a.target.models) != list(b.target.models):
        return False
    if all(share == 1 for share in (*a.likely.values(), *b.likely.values())):
        return False  # nothing depends on chance
    return seen_by_readers(a.target, a.target.grouping) == seen_by_readers(b.target, b.target.grouping)


class _JointWorlds:
    """The worlds in which every release is published: who holds what, kind by kind.

    The worlds of one release are gone through one by one; what else its people may be told apart by in other releases,
    and what people hold who are in others only, is dealt.
    """

    def __init__(self, sizes: Sequence[int], releases: Sequence[_ReleaseWorlds], budget: WorldBudget) -> None:
        base = max(releases, key=lambda r: (r.places.n_units, -len(r.likely)))
        self.releases = [base, *(r for r in releases if r is not base)]
        self.sizes = sizes
        self.items = sorted(
            {i for r in releases for i in r.items}, key=lambda i: [(v is None, v or "") for v in i]
        )
        self.order = sorted(range(len(sizes)), key=lambda k: (base.unit[k] < 0, base.unit[k]))
        self.likely = [{self._of_all(r, w): share for w, share in r.likely.items()} for r in self.releases]
        scales = [math.lcm(*(share.denominator for share in of.values()), 1) for of in self.likely]
        self.weight = [
            {w: int(share * n) for w, share in of.items()} for of, n in zip(self.likely, scales, strict=True)
        ]
        self.real = [self._of_all(r, r.real) for r in self.releases]
        self.steps, self.time = STEPS * MORE * budget.draws, budget.time(MORE)
        self.held = [[0] * len(self.items) for _ in sizes]
        self.kept = 0

    def _of_all(self, release: _ReleaseWorlds, world: World) -> World:
        """A world of one release, with the items of all."""
        at = [release.items.index(item) if item in release.items else -1 for item in self.items]
        return tuple(tuple(row[i] if i >= 0 else 0 for i in at) for row in world)

    def count(self) -> bool:
        """Count the worlds; false: they are too many, or what is so is not among them: somebody's values differ."""
        blocks = [self._blocks(i) for i in range(1, len(self.releases))]
        true = False
        for world, weight in self.weight[0].items():
            pools = [dict(enumerate(world)), *map(dict, blocks)]
            for rows in self._dealt(pools, 0, [()] * len(self.sizes)):
                tables = [self._seen(i, rows) for i in range(1, len(self.releases))]
                times = weight * math.prod(
                    of.get(table, 0) for of, table in zip(self.weight[1:], tables, strict=True)
                )
                if not times:
                    continue
                true |= [world, *tables] == self.real
                times *= math.prod(count_orders(row) for row in rows)
                self.kept += times
                for held, row in zip(self.held, rows, strict=True):
                    for item, n in enumerate(row):
                        held[item] += n * times
            if self.steps < 0:
                return False
        return true

    def _blocks(self, i: int) -> dict[int, Counts]:
        """What the people of each block of a release hold together."""
        found: dict[int, list[int]] = {}
        for block, row in zip(self.releases[i].block, self.real[i], strict=True):
            found[block] = [a + b for a, b in zip(found.get(block, [0] * len(row)), row, strict=True)]
        return {block: tuple(held) for block, held in found.items()}

    def _pools(self, kind: int) -> list[tuple[int, int]]:
        """What the values of a kind are taken from: (release, unit or block)."""
        units = [(i, r.unit[kind]) for i, r in enumerate(self.releases)]
        return [(i, u if i == 0 else self.releases[i].block[u]) for i, u in units if u >= 0]

    def _dealt(self, pools: list[dict[int, Counts]], at: int, rows: list[Counts]) -> Iterator[list[Counts]]:
        """Every way to deal what the pools hold to the kinds from this place on."""
        if at == len(self.order):
            yield rows
            return
        kind = self.order[at]
        mine = self._pools(kind)
        before = [pools[i][p] for i, p in mine]
        for taken in sub_multisets([min(held) for held in zip(*before, strict=True)], self.sizes[kind]):
            self.steps -= 1
            if self.steps < 0 or self.time.is_over:
                self.steps = -1
                return
            rows[kind] = taken
            for (i, p), held in zip(mine, before, strict=True):
                pools[i][p] = subtract_counts(held, taken)
            yield from self._dealt(pools, at + 1, rows)
        for (i, p), held in zip(mine, before, strict=True):
            pools[i][p] = held

    def _seen(self, i: int, rows: Sequence[Counts]) -> World:
        """The world of one release, where the kinds hold this."""
        release = self.releases[i]
        held: NDArray[np.int64] = np.zeros((release.places.n_units, len(self.items)), dtype=np.int64)
        for unit, row in zip(release.unit, rows, strict=True):
            if unit >= 0:
                held[unit] += row
        return tuple(map(tuple, held.tolist()))

    def worst(self, names: Sequence[str]) -> FoundTogether:
        """The worst belief about anybody who is published in any of the releases."""
        shown = [
            k for k, size in enumerate(self.sizes) if size and any(r.shows(r.unit[k]) for r in self.releases)
        ]
        worst, above = NOTHING, set[int]()
        for release in self.releases:
            for s in secrets_of(release.target):
                column, bound = names.index(s.attribute), belief_limit(release.target, s)
                for code, members in enumerate(s.sets, 1):
                    inside = [j for j, item in enumerate(self.items) if item[column] in members]
                    for k in shown:
                        after = Fraction(sum(self.held[k][j] for j in inside), self.kept * self.sizes[k])
                        if after > bound:
                            above.add(k)
                        if after > worst.after:
                            why = (
                                f"the methods publish all {len(self.releases)} releases only in some worlds, and in "
                                f"this share of those they have {s.name(code)}"
                            )
                            worst = Belief(s.before(code), after, self._whom(k), why)
        rests = {known for r in self.releases if (known := replay_assumption(r.target))}
        return FoundTogether(
            worst, sum(self.sizes[k] for k in above), sum(self.sizes[k] for k in shown),
            " and ".join(sorted(rests)) or None,
        )  # fmt: skip

    def _whom(self, kind: int) -> str:
        """People of a kind in words, by their quasi-identifiers in every release that they are in."""
        known: dict[str, None] = {}
        for release in self.releases:
            if (unit := release.unit[kind]) >= 0:
                at, summary = int(release.places.tuples_of_units[unit]), release.target.grouping.summary
                for hierarchy, codes in zip(summary.attributes, summary.codes, strict=True):
                    code = int(codes[at])
                    text = label_text(hierarchy.values[code - 1] if code else None)
                    known[f"{hierarchy.attribute} {text}"] = None
        size = self.sizes[kind]
        who = "the only person" if size == 1 else f"each of the {size} people"
        return f"{who} with {', '.join(known) or 'no quasi-identifiers'}"
