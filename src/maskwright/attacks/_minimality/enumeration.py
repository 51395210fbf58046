"""Small releases: every possible world, and in each of them every random choice of the method.

What the reader of a release sees is its classes: labels and values. Groups with identical labels are one class, unless
the release has a table of groups. A world counts as often as the method, with its random choices, publishes the same
from it. People with equal quasi-identifiers are told apart by nobody, so that worlds which differ only among them are
looked at once. The values of people who were dropped are dealt with all others: what the whole table holds is taken to
be known, not whose it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._minimality.common_runs import (
    CommonRuns,
    NotCommon,
    Outcome,
    decides_by_models,
    rows_of_worlds,
)
from maskwright.attacks._minimality.refusals import looked_at_values
from maskwright.attacks._minimality.replay import (
    LISTED_ROWS,
    MORE,
    Again,
    Replayed,
    against_rivals,
    can_draw,
    can_replay,
    decided_by_tuples,
)
from maskwright.attacks._minimality.world_tables import PublishedPeople
from maskwright.attacks._shared.secrets import Secrets
from maskwright.domain.adversary import Target
from maskwright.domain.classes import Ints
from maskwright.domain.exact import sorted_distinct
from maskwright.domain.grouping import Grouping, groups_as_read
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.references import References, furnished_classes
from maskwright.domain.summary import Summary
from maskwright.worlds.counting.multisets import (
    add_counts,
    count_orders,
    count_tables,
    sub_multisets,
    subtract_counts,
)
from maskwright.worlds.sampling.choices import TooManyChoices, every_choice
from maskwright.worlds.sampling.possible_worlds import WorldSpace
from maskwright.worlds.sampling.world_sampler import Tally, WorldBudget

PILOT = 25  # worlds after which it is asked, again and again, how long all will take
LARGEST = 2**62
STEPS = 20  # of looking for worlds, for each that is found
FITTING = 20_000_000  # pairs of a tuple and a group that are compared

World = tuple[tuple[int, ...], ...]  # unit → item → people
Holdings = Counter[tuple[int, ...]]  # the codes of the sensitive values → rows
Filled = tuple[tuple[int, tuple[int, ...]], ...]


def every_world(target: Target, budget: WorldBudget) -> Replayed | None:
    """The tally over all worlds of a small release; None: they are too many, or the method cannot be run."""
    if not _is_listed(target):
        return None
    # with one level for every column the class of a tuple is known, otherwise anybody may have been in any class
    if _classes_known(target) and (rivals := Again(target).rivals()) is not None:
        found = against_rivals(target, rivals, budget)
        return replace(found, by_labels=True) if found.tally.listed.all() else None
    enumeration = _enumeration(target, budget)
    return None if enumeration is None else enumeration[0].run(enumeration[1])


def likely_worlds(
    target: Target, budget: WorldBudget
) -> tuple[PublishedPeople, Ints, dict[World, Fraction]] | None:
    """The people of a small release, the block of each, within which values are dealt, and how probable it is, in
    each world in which that may be, that the method publishes the same. None: that is too much to count."""
    enumeration = _enumeration(target, budget) if _is_listed(target) else None
    if enumeration is None:
        return None
    every, number = enumeration
    shares = every.shares(number)
    if shares is None:
        return None
    found: dict[World, Fraction] = {}
    for world, share in shares:  # a world comes in as many ways as its values have orders
        ways = math.prod(count_orders(counts) for counts in world)
        found[world] = found.get(world, Fraction(0)) + share / ways
    return every.places, every.blocks, found


def _is_listed(target: Target) -> bool:
    """Whether a release is so small, and so much is known of it, that every world can be looked at."""
    summary = target.grouping.summary
    return (
        summary.n_rows <= LISTED_ROWS
        and can_replay(target)
        and can_draw(target)
        and summary.joint is not None
    )


def _classes_known(target: Target) -> bool:
    return target.grouping.levels is not None and not target.grouping.suppressed_rows


def _enumeration(target: Target, budget: WorldBudget) -> tuple[Enumeration, int] | None:
    """Every world of a release, and how many they are; None: too many."""
    known, most = _classes_known(target), MORE * budget.draws
    places = PublishedPeople.of(target).with_dropped()
    if known or not _by_labels(target):
        blocks = places.group if known else places.group * 0
        number = _number(places, blocks, most)
        return None if number > most else (Enumeration(target, places, blocks, budget), number)
    worlds = ExplainedWorlds(target, places).listed(most)
    if worlds is None:
        return None
    return Enumeration(target, places, places.group * 0, budget, worlds=worlds), len(worlds)


def every_world_of_rows(
    target: Target, budget: WorldBudget
) -> tuple[PublishedPeople, list[tuple[World, int]]] | None:
    """The rows of a small release in which people have several, and the worlds in which the same is published.

    Whether a requirement that counts people holds depends on whose values they are: worlds in which one does not hold
    would not have been published, also where the method itself did not look.
    """
    grouping = target.grouping
    if grouping.summary.n_rows > LISTED_ROWS or grouping.changes is not None or not can_replay(target):
        return None
    if len(grouping.summary.sensitive) > 1 and (target.exact or target.joined is not None):
        return None  # columns may have been shuffled one at a time
    places = PublishedPeople.of(target).with_dropped()
    blocks = places.group if _classes_known(target) else places.group * 0
    most = MORE * budget.draws
    number = _number(places, blocks, most)
    if number > most:
        return None
    listed = Enumeration(target, places, blocks, budget, lambda made: holds_for(target, made))
    found = listed.weigh(number)
    return None if found is None else (places, found[0])


def holds_for(target: Target, made: Grouping) -> bool:
    """Whether every requirement about sensitive values holds for another grouping, as it is checked in a run."""
    models = [m for m in target.models if m.about == "sensitive" and m.name != "belief"]
    made = groups_as_read(made) if _by_labels(target) else made
    classes = furnished_classes(made, frozenset(n for m in models for n in m.needs()), target.census)
    references = References.of(made, target.context)
    return all(references.check(m, classes).ok for m in models)


def dealt_rows(target: Target, most: int) -> tuple[PublishedPeople, list[tuple[World, int]]] | None:
    """The published rows, and every world that deals the values of each group to its rows; None: too many."""
    places = PublishedPeople.of(target)
    if _number(places, places.group, most) > most:
        return None
    return places, list(_worlds_of_places(places, places.group))


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


def groups_are_told(target: Target) -> bool:
    """Whether everybody can say who is in which group: by labels and quasi-identifiers, or because it is published.

    Where labels overlap, or people with equal quasi-identifiers are in several groups, other groups of people can
    come out with the same labels, and whoever reads the release does not know which.
    """
    grouping, method = target.grouping, target.method
    if target.exact or grouping.levels is not None:
        return True
    if method is not None and not looked_at_values(target.models):
        how = method.decisions()
        if how.blind and how.by_tuples:
            return True
    return _labels_tell(grouping)


def in_one_group(grouping: Grouping, secrets: Secrets) -> bool:
    """Whether a group with the largest share of a secret holds all people with some quasi-identifiers."""
    allocation, shares = grouping.allocation, secrets.shares()
    worst = shares.argmax()
    radix = grouping.classes.n + 2
    tuples, groups = np.divmod(sorted_distinct(allocation.tuples * radix + allocation.groups + 2), radix)
    alone = groups[np.bincount(tuples)[tuples] == 1] - 2
    if worst is None:
        return True
    return bool(np.isin(secrets.counts.owner[shares.at_least(shares[worst])], alone).any())


def _labels_tell(grouping: Grouping) -> bool:
    """Whether the labels of one group only fit each tuple: that of all its rows, or none where they were dropped."""
    summary, allocation = grouping.summary, grouping.allocation
    if summary.n_tuples * grouping.classes.n > FITTING:
        return False
    place = np.full(summary.n_tuples, -1, dtype=np.int64)
    place[allocation.tuples] = allocation.groups
    if (place[allocation.tuples] != allocation.groups).any():
        return False
    return bool((labels_fit(grouping).sum(axis=0) == (place >= 0)).all())


def labels_fit(grouping: Grouping) -> NDArray[np.bool_]:
    """For each group and tuple: may the labels of the group stand for the tuple?"""
    summary, allocation, n = grouping.summary, grouping.allocation, grouping.classes.n
    fits = np.ones((n, summary.n_tuples), dtype=bool)
    members = [allocation.tuples[allocation.groups == group] for group in range(n)]
    if grouping.starred is not None:  # `*` may be anybody
        members[grouping.starred] = np.arange(summary.n_tuples)
    for a, (hierarchy, labels) in enumerate(zip(summary.attributes, grouping.labels, strict=True)):
        codes = summary.codes[a]
        for group in range(n):
            text = labels.texts[labels.of_group[group]]
            fits[group] &= _fitting(hierarchy, text, codes[members[group]])[codes]
    return fits


def _fitting(hierarchy: Hierarchy, text: str | None, members: NDArray[np.int32]) -> NDArray[np.bool_]:
    """The codes that a label may stand for: its blocks in the hierarchy, else all between those of the members."""
    found = np.zeros(len(hierarchy.levels[0].blocks), dtype=bool)
    for level in hierarchy.levels:
        found |= np.isin(level.blocks, [block for block, label in enumerate(level.labels) if label == text])
    if not found.any():
        found[int(members.min()) : int(members.max()) + 1] = True
    return found


class Enumeration:
    """The method, run on every world of a small release with every random choice."""

    def __init__(
        self, target: Target, places: PublishedPeople, blocks: Ints, budget: WorldBudget,
        gates: Callable[[Grouping], bool] | None = None, worlds: Sequence[tuple[World, int]] | None = None,
    ) -> None:  # fmt: skip
        self.target, self.places, self.blocks = target, places, blocks
        self.draws, self.time = MORE * budget.draws, budget.time(MORE)
        self.worlds = worlds  # those that come into question; None: all
        self.again = Again(target)
        self.search = [m for m in target.models if m.use == "search"]
        self.settled = decided_by_tuples(target)
        self.wanted, self.gates = seen_by_readers(target, target.grouping), gates
        self.runs = 0

    def _too_long(self, parts: float = 1) -> bool:
        """Whether it takes longer than it may; all of it takes `parts` times what was taken so far."""
        return self.time.spent * parts > self.time.seconds

    def weigh(self, number: int) -> tuple[list[tuple[World, int]], int] | None:
        """The worlds, of so many, in which the same is published, each with its weight, and the weight of all worlds.

        None: that would take too long.
        """
        weighed = self.shares(number)
        every = _all_ways(self.places, self.blocks)
        if not weighed:
            return None
        scale = math.lcm(*(share.denominator for _, share in weighed))
        if every * scale * len(self.places.items) > LARGEST:
            return None
        return [(world, int(share * scale)) for world, share in weighed], every * scale

    def shares(self, number: int) -> list[tuple[World, Fraction]] | None:
        """The worlds, of so many, in which the same is published: in how many ways people can hold that, times how
        probable it then is. None: that would take too long."""
        worlds = _worlds_of_places(self.places, self.blocks) if self.worlds is None else self.worlds
        if self.gates is None and decides_by_models(self.target):
            worlds = list(worlds)
            weighed = self._in_common(worlds)
            if weighed is not None or self._too_long():
                return weighed
        return self._one_by_one(worlds, number)

    def _one_by_one(
        self, worlds: Iterable[tuple[World, int]], number: int
    ) -> list[tuple[World, Fraction]] | None:
        """The worlds in which the same is published, by running the method on each."""
        found: list[tuple[World, Fraction]] = []
        for i, (world, weight) in enumerate(worlds, 1):
            chance = self._chance(self.places.summary(_dealt(self.places, world)))
            if chance is None or self._too_long(number / i if i % PILOT == 0 else 1):
                return None
            if chance:
                found.append((world, weight * chance))
        return found

    def _in_common(self, worlds: Sequence[tuple[World, int]]) -> list[tuple[World, Fraction]] | None:
        """The same by running the method once for all worlds in which its tests come out alike; None: too many."""
        items, most = rows_of_worlds([world for world, _ in worlds]), self.draws
        chance = [Fraction(0)] * len(worlds)
        try:
            runs = CommonRuns(self.target, self.places, items, self.settled, most, self._too_long)
            for outcome in runs.outcomes():
                self.runs += 1
                for i in self._alike(runs, outcome):
                    chance[i] += outcome.probability
        except (TooManyChoices, NotCommon):
            return None
        return [
            (world, weight * share) for (world, weight), share in zip(worlds, chance, strict=True) if share
        ]

    def _alike(self, runs: CommonRuns, outcome: Outcome) -> list[int]:
        """The worlds in which the outcome shows what was published."""
        made, target = outcome.made, self.target
        if made is None:
            return []
        tuples = [Counter(runs.tuples[outcome.group_of_row == g].tolist()) for g in range(made.classes.n)]
        values = list(
            zip(*(runs.codes[name].tolist() for name in target.grouping.summary.sensitive), strict=True)
        )
        held = runs.held(outcome.worlds, outcome.group_of_row)
        kinds, number = np.unique(held.reshape(len(held), -1), axis=0, return_inverse=True)
        alike = []
        for kind in kinds.reshape(-1, *held.shape[1:]).tolist():
            holdings = [Counter({v: k for v, k in zip(values, line, strict=True) if k}) for line in kind]
            alike.append(_shown(target, made, tuples, holdings) == self.wanted)
        return [int(w) for w in outcome.worlds[np.array(alike)[number.reshape(-1)]]]

    def run(self, number: int) -> Replayed | None:
        """The tally over every world, of so many; None: that would take too long."""
        places, found = self.places, self.weigh(number)
        if found is None:
            return None
        weighed, every = found
        n_items = int(places.items.max(initial=-1)) + 1
        held = np.zeros((places.n_units, n_items), dtype=np.int64)
        for world, weight in weighed:
            held += np.array(world, dtype=np.int64) * weight
        kept = sum(weight for _, weight in weighed)
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
            unit[order], len(units), one * every, one * kept, held[units], one * kept,
            one.astype(bool), ~one.astype(bool), one.astype(bool), not self.settled,
            runs=self.runs, seconds=self.time.spent,
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
        joint = summary.cells
        assert joint is not None  # noqa: S101 - for the type checker
        cells = np.repeat(np.arange(len(joint.rows)), joint.rows)
        try:
            for choices in every_choice(self.draws - self.runs, (joint.tuples[cells], cells)):
                if self._too_long():
                    return None
                self.runs += 1
                made = self.again.run(summary, self.search, choices)
                found += choices.probability * self._same(made)
        except TooManyChoices:
            return None
        return found

    def _same(self, made: Grouping | None) -> bool:
        if made is None or seen_by_readers(self.target, made) != self.wanted:
            return False
        return self.gates is None or self.gates(made)


class ExplainedWorlds:
    """The worlds in which people hold values so that each class can show what is published, by the labels alone.

    For each value its holders and the places of it in the published classes must go together; whoever is left over was
    dropped. In any other world the same is not published, whatever the method.
    """

    def __init__(self, target: Target, places: PublishedPeople) -> None:
        fits = labels_fit(target.grouping)
        self.fitting = [np.flatnonzero(fits[:, t]).tolist() for t in places.tuples_of_units.tolist()]
        self.sizes = np.bincount(places.unit, minlength=places.n_units).tolist()
        there, n_items = places.group >= 0, int(places.items.max(initial=-1)) + 1
        shown = np.zeros((n_items, target.grouping.classes.n), dtype=np.int64)
        np.add.at(shown, (places.items[there], places.group[there]), 1)
        self.shown = shown.tolist()
        self.items = tuple(np.bincount(places.items, minlength=n_items).tolist())
        self.spare = [n - sum(row) for n, row in zip(self.items, self.shown, strict=True)]
        self.order = sorted(range(places.n_units), key=lambda unit: len(self.fitting[unit]))
        self.known: dict[tuple[int, tuple[int, ...]], bool] = {}

    def listed(self, most: int) -> list[tuple[World, int]] | None:
        """The worlds, and in how many ways the people of each unit can hold that; None: they are too many."""
        found: list[tuple[World, int]] = []
        rows = [(0,) * len(self.items) for _ in self.order]
        steps = 0

        def deal(i: int, left: tuple[int, ...], weight: int) -> bool:
            """Deal the items that are left to the units from the i-th on; false: there are too many worlds."""
            nonlocal steps
            if i == len(self.order):
                found.append((tuple(rows), weight))
                return True
            unit = self.order[i]
            for taken in sub_multisets(left, self.sizes[unit]):
                steps += 1
                if steps > STEPS * most or len(found) > most:
                    return False
                rows[unit] = taken
                fine = all(
                    self._has_places(item, tuple(row[item] for row in rows))
                    for item, n in enumerate(taken)
                    if n
                )
                if fine and not deal(i + 1, subtract_counts(left, taken), weight * count_orders(taken)):
                    return False
            rows[unit] = (0,) * len(self.items)
            return True

        return found if deal(0, self.items, 1) else None

    def _has_places(self, item: int, held: tuple[int, ...]) -> bool:
        """Whether as many holders of a value have a place in the classes as are not dropped."""
        if (item, held) not in self.known:
            placed: list[list[int]] = [[] for _ in self.shown[item]]
            people = [unit for unit, n in enumerate(held) for _ in range(n)]
            left_over = sum(not self._place(item, unit, placed, set()) for unit in people)
            self.known[item, held] = left_over <= self.spare[item]
        return self.known[item, held]

    def _place(self, item: int, unit: int, placed: list[list[int]], seen: set[int]) -> bool:
        """Put somebody into a class, where others may have to make room."""
        for group in self.fitting[unit]:
            if group in seen:
                continue
            seen.add(group)
            if len(placed[group]) < self.shown[item][group]:
                placed[group].append(unit)
                return True
            for i, other in enumerate(placed[group]):
                if self._place(item, other, placed, seen):
                    placed[group][i] = unit
                    return True
        return False


def _group_of_unit(places: PublishedPeople) -> Ints:
    """A group that holds people of the unit."""
    result = np.full(places.n_units, -1, dtype=np.int64)
    there = places.group >= 0
    result[places.unit[there][::-1]] = places.group[there][::-1]
    return result


def seen_by_readers(target: Target, grouping: Grouping) -> Hashable:
    """What a reader sees of a grouping: the level of each column, and the rows of each class by their values.

    In tables of groups it is seen which rows are in a group together, with their quasi-identifiers or labels.
    """
    joint = grouping.summary.cells
    assert joint is not None  # noqa: S101 - for the type checker
    n = grouping.classes.n
    tuples: list[Counter[int]] = [Counter() for _ in range(n)]
    held: list[Holdings] = [Counter() for _ in range(n)]
    for cell, group, k in zip(*(part.tolist() for part in grouping.cells), strict=True):
        tuples[group][int(joint.tuples[cell])] += k
        held[group][tuple(joint.values[:, cell].tolist())] += k
    return _shown(target, grouping, tuples, held)


def _shown(
    target: Target, grouping: Grouping, tuples: Sequence[Counter[int]], held: Sequence[Holdings]
) -> Hashable:
    """The same, of groups whose rows and holdings are given."""
    texts = _texts(grouping)
    if _by_labels(target):
        found: Counter[Hashable] = Counter()
        for text, holdings in zip(texts, held, strict=True):
            for values, k in holdings.items():
                found[text, values] += k
        return grouping.levels, frozenset(found.items())
    names = list(target.grouping.summary.sensitive)
    blocks = [names] if target.joined is None else target.joined
    groups: Counter[Hashable] = Counter()
    for text, rows, holdings in zip(texts, tuples, held, strict=True):
        mine: Counter[Hashable] = Counter(rows) if target.exact else Counter({text: sum(rows.values())})
        for block in blocks:
            for values, k in holdings.items():
                mine[tuple(block), tuple(values[names.index(name)] for name in block)] += k
        groups[frozenset(mine.items())] += 1
    return grouping.levels, frozenset(groups.items())


def _texts(grouping: Grouping) -> list[tuple[str | None, ...]]:
    """What each group is labelled."""
    labels = [[each.texts[i] for i in each.of_group.tolist()] for each in grouping.labels]
    return list(zip(*labels, strict=True))


def _number(places: PublishedPeople, blocks: Ints, limit: int) -> int:
    """How many worlds there are to look at; counting stops beyond the limit."""
    total = 1
    for block in np.unique(blocks).tolist():
        mine = blocks == block
        sizes = np.unique(places.unit[mine], return_counts=True)[1].tolist()
        total *= count_tables(
            tuple(np.unique(places.items[mine], return_counts=True)[1].tolist()), sizes, limit
        )
        if total > limit:
            break
    return total


def _all_ways(places: PublishedPeople, blocks: Ints) -> int:
    """The weight of all worlds: in how many ways the values of each block can be dealt to its people."""
    total = 1
    for block in np.unique(blocks).tolist():
        total *= count_orders(tuple(np.bincount(places.items[blocks == block]).tolist()))
    return total


def _worlds_of_places(places: PublishedPeople, blocks: Ints) -> Iterator[tuple[World, int]]:
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
