"""Small releases: every possible world, and in each of them every random choice of the method.

What the reader of a release sees is its classes: labels and values. Groups with identical labels are one class. A
world counts as often as the method, with its random choices, publishes the same from it. People with equal
quasi-identifiers are told apart by nobody, so that worlds which differ only among them are looked at once. The values
of people who were dropped are dealt with all others: what the whole table holds is taken to be known, not whose it is.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np

from maskwright.attacks._minimality.replay import Again, Replayed, can_draw, can_replay, decided_by_tuples
from maskwright.attacks._minimality.world_tables import PublishedPeople
from maskwright.domain.adversary import Target
from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping
from maskwright.domain.summary import Summary
from maskwright.worlds.counting.multisets import add_counts, count_orders, sub_multisets, subtract_counts
from maskwright.worlds.sampling.choices import TooManyChoices, every_choice
from maskwright.worlds.sampling.possible_worlds import WorldSpace
from maskwright.worlds.sampling.world_sampler import Tally, WorldBudget

ROWS = 16  # of a small release
MORE = 4  # times the runs and the seconds that drawing worlds may take: for an exact answer
PILOT = 25  # worlds after which it is asked, again and again, how long all will take
LARGEST = 2**62

World = tuple[tuple[int, ...], ...]  # unit → item → people


def every_world(target: Target, budget: WorldBudget) -> Replayed | None:
    """The tally over all worlds of a small release; None: they are too many, or the method cannot be run."""
    grouping = target.grouping
    if grouping.summary.n_rows > ROWS or not (can_replay(target) and can_draw(target)):
        return None
    if grouping.summary.joint is None or not _by_labels(target):
        return None
    places = _everybody(target)
    most = MORE * budget.draws
    # with one level for every column the class of a tuple is known, otherwise anybody may have been in any class
    known = grouping.levels is not None and not grouping.suppressed_rows
    blocks = places.group if known else places.group * 0
    number = _number(places, blocks, most)
    return None if number > most else _Enumeration(target, places, blocks, budget).run(number)


def _by_labels(target: Target) -> bool:
    """Whether a reader tells groups apart by their labels alone."""
    generalised = target.design is None or target.design.recoding == "generalise"
    return generalised and not target.exact and target.joined is None


def labels_repeat(target: Target) -> bool:
    """Whether several groups have the same labels, so that a reader takes them for one class."""
    grouping = target.grouping
    if not _by_labels(target) or grouping.classes.n < 2:
        return False
    texts = [[labels.texts[i] for i in labels.of_group.tolist()] for labels in grouping.published_labels]
    return len(set(zip(*texts, strict=True))) < grouping.classes.n


class _Enumeration:
    """The method, run on every world of a small release with every random choice."""

    def __init__(self, target: Target, places: PublishedPeople, blocks: Ints, budget: WorldBudget) -> None:
        self.target, self.places, self.blocks, self.budget = target, places, blocks, budget
        self.again = Again(target)
        self.search = [m for m in target.models if m.use == "search"]
        self.settled = decided_by_tuples(target)
        self.wanted = _seen(target.grouping)
        self.runs = 0
        self.started = time.thread_time()

    def _too_long(self, parts: float = 1) -> bool:
        """Whether it takes longer than it may; all of it takes `parts` times what was taken so far."""
        return (time.thread_time() - self.started) * parts > MORE * self.budget.seconds

    def run(self, number: int) -> Replayed | None:
        """Run the method on every world, of so many; None: that would take too long."""
        places = self.places
        n_items = int(places.items.max(initial=-1)) + 1
        weighed: list[tuple[World, Fraction]] = []
        every = Fraction(0)
        for i, (world, weight) in enumerate(_worlds(places, self.blocks), 1):
            every += weight
            chance = self._chance(places.summary(_dealt(places, world)))
            if chance is None or self._too_long(number / i if i % PILOT == 0 else 1):
                return None
            if chance:
                weighed.append((world, weight * chance))
        scale = math.lcm(*(share.denominator for _, share in weighed), 1)
        if every * scale * len(places.items) > LARGEST or not weighed:
            return None
        held = np.zeros((places.n_units, n_items), dtype=np.int64)
        for world, share in weighed:
            held += np.array(world, dtype=np.int64) * int(share * scale)
        kept = int(sum(share for _, share in weighed) * scale)
        shown = np.isin(
            places.unit, places.unit[places.group >= 0]
        )  # what is believed of others is not asked here
        if int(places.items[shown].max(initial=-1)) + 1 < n_items:
            return None  # a value that only people hold who were dropped
        units, unit = np.unique(places.unit[shown], return_inverse=True)  # nobody else has a belief here
        one = np.ones(1, dtype=np.int64)
        group = np.searchsorted(places.groups, _group_of_unit(places)[places.unit[shown]])
        order = np.argsort(group, kind="stable")
        tally = Tally(
            WorldSpace(group[order], places.items[shown][order], np.zeros(len(places.groups), dtype=np.int64)),
            unit[order], len(units), one * int(every * scale), one * kept, held[units], one * kept,
            one.astype(bool), ~one.astype(bool), one.astype(bool), not self.settled,
            runs=self.runs, seconds=time.thread_time() - self.started,
        )  # fmt: skip
        inside = replace(
            places, tuples=places.tuples[shown][order], group=places.groups[group[order]],
            items=places.items[shown][order], unit=unit[order], tuples_of_units=places.tuples_of_units[units],
        )  # fmt: skip
        return Replayed(inside, tally, by_labels=True)

    def _chance(self, summary: Summary) -> Fraction | None:
        """How probable it is that the method publishes the same; None: too many choices, or too long."""
        if self.settled:
            self.runs += 1
            return Fraction(self._same(self.again.run(summary, self.search)))
        found = Fraction(0)
        joint = summary.joint
        assert joint is not None  # noqa: S101 - for the type checker
        cells = np.repeat(np.arange(len(joint.rows)), joint.rows)
        try:
            for choices in every_choice(MORE * self.budget.draws - self.runs, (joint.tuples[cells], cells)):
                if self._too_long():
                    return None
                self.runs += 1
                made = self.again.run(summary, self.search, choices)
                found += choices.probability * self._same(made)
        except TooManyChoices:
            return None
        return found

    def _same(self, made: Grouping | None) -> bool:
        return made is not None and _seen(made) == self.wanted


def _everybody(target: Target) -> PublishedPeople:
    """The people of the table, also those who were dropped: in group −1, behind the others."""
    places = PublishedPeople.of(target)
    tuples, items = (
        np.concatenate(pair) for pair in zip((places.tuples, places.items), places.dropped, strict=True)
    )
    units, unit = np.unique(tuples, return_inverse=True)
    none = np.zeros(0, dtype=np.int64)
    return replace(
        places, tuples=tuples, items=items, group=np.concatenate([places.group, np.full(len(places.dropped[0]), -1)]),
        unit=unit.reshape(-1).astype(np.int64), tuples_of_units=units, dropped=(none, none),
    )  # fmt: skip


def _group_of_unit(places: PublishedPeople) -> Ints:
    """A group that holds people of the unit."""
    result = np.full(places.n_units, -1, dtype=np.int64)
    there = places.group >= 0
    result[places.unit[there][::-1]] = places.group[there][::-1]
    return result


def _seen(grouping: Grouping) -> Hashable:
    """What a reader sees of a grouping: the level of each column, and the rows of each class by their values."""
    joint = grouping.summary.joint
    assert joint is not None  # noqa: S101 - for the type checker
    labels = [[labels.texts[i] for i in labels.of_group.tolist()] for labels in grouping.labels]
    cells, groups, rows = grouping.cells
    found: Counter[Hashable] = Counter()
    for cell, group, n in zip(cells.tolist(), groups.tolist(), rows.tolist(), strict=True):
        found[tuple(texts[group] for texts in labels), tuple(joint.values[:, cell].tolist())] += n
    return grouping.levels, frozenset(found.items())


def _number(places: PublishedPeople, blocks: Ints, limit: int) -> int:
    """How many worlds there are to look at; counting stops beyond the limit."""
    total = 1
    for block in np.unique(blocks).tolist():
        mine = blocks == block
        sizes = np.unique(places.unit[mine], return_counts=True)[1].tolist()
        total *= _tables(tuple(np.unique(places.items[mine], return_counts=True)[1].tolist()), sizes, limit)
        if total > limit:
            break
    return total


def _tables(items: tuple[int, ...], sizes: Sequence[int], limit: int) -> int:
    """How many tables of counts have these sums of rows (`sizes`) and columns (`items`)."""
    ways = Counter({items: 1})
    for size in sizes:
        after: Counter[tuple[int, ...]] = Counter()
        for left, n in ways.items():
            for taken in sub_multisets(left, size):
                after[subtract_counts(left, taken)] += n
        ways = after
        if (
            sum(ways.values()) > limit * 100
        ):  # it only shrinks towards the end, where little is left to choose
            return limit + 1
    return sum(ways.values())


def _worlds(places: PublishedPeople, blocks: Ints) -> Iterator[tuple[World, int]]:
    """Every world as a table of counts, and in how many ways the people of each unit can hold that."""
    n_items = int(places.items.max(initial=-1)) + 1
    parts = []
    for block in np.unique(blocks).tolist():
        mine = blocks == block
        units, sizes = np.unique(places.unit[mine], return_counts=True)
        items = tuple(np.bincount(places.items[mine], minlength=n_items).tolist())
        parts.append(list(_filled(items, units.tolist(), sizes.tolist())))
    for chosen in product(*parts):
        rows = [(0,) * n_items for _ in range(places.n_units)]
        weight = 1
        for filled, ways in chosen:
            weight *= ways
            for unit, counts in filled:
                rows[unit] = add_counts(rows[unit], counts)
        yield tuple(rows), weight


Filled = tuple[tuple[int, tuple[int, ...]], ...]


def _filled(
    items: tuple[int, ...], units: Sequence[int], sizes: Sequence[int]
) -> Iterator[tuple[Filled, int]]:
    if not units:
        yield (), 1
        return
    for taken in sub_multisets(items, sizes[0]):
        ways = count_orders(taken)
        left = subtract_counts(items, taken)
        for filled, more in _filled(left, units[1:], sizes[1:]):
            yield ((units[0], taken), *filled), ways * more


def _dealt(places: PublishedPeople, world: World) -> Ints:
    """The item of each place."""
    result = np.empty(len(places.items), dtype=np.int64)
    for unit, counts in enumerate(world):
        result[places.unit == unit] = np.repeat(np.arange(len(counts)), counts)
    return result
