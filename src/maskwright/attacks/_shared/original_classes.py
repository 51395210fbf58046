"""How the original classes lie in what was published: whole, side by side in a generalised class, or over several.

Local recoding may publish some rows of an original class as they are and generalise others, to one value or to several.
Values of rows in a class of their own are known; those of a *mixed* class are known only together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.adversary import Target
from maskwright.domain.classes import Ints
from maskwright.domain.exact import numbered_columns, numbered_values

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class OriginalCells:
    """Rows by original class, published group and *item*: the values of all sensitive columns of a row.

    Attributes:
        tuples, groups, items, rows: the cells of what was published.
        codes: per sensitive column the code that each item stands for.
        n_tuples, n_groups, n_items: how many there are.
    """

    tuples: Ints
    groups: Ints
    items: Ints
    rows: Ints
    codes: dict[str, Ints]
    n_tuples: int
    n_groups: int
    n_items: int


def cells_of(target: Target) -> OriginalCells | None:
    """The cells of a release; None where it is not known which values belong to one row, or rows are not people."""
    grouping, summary = target.grouping, target.grouping.summary
    names, allocation = list(summary.sensitive), grouping.allocation
    if not summary.rows_are_people or not names or (len(names) > 1 and summary.joint is None):
        return None
    if summary.joint is not None:
        tuples, rows, values = summary.joint.tuples, summary.joint.rows, summary.joint.values
    else:
        counts = summary.sensitive[names[0]]
        tuples, rows, values = counts.owner, counts.counts, counts.codes[None, :]
        if int(rows.sum()) != summary.n_rows:
            return None
    kinds, items = numbered_columns(values)
    if allocation.cells is not None:
        cell, groups, rows = allocation.cells, allocation.groups, allocation.rows
    else:
        group_of = np.full(summary.n_tuples, -1, dtype=np.int64)
        group_of[allocation.tuples] = allocation.groups
        cell, groups = np.arange(len(tuples)), group_of[tuples]
    # rows published as * were too few, whatever their values: nothing more is learned about them
    there = (groups >= 0) & (groups != (-2 if grouping.starred is None else grouping.starred))
    return OriginalCells(
        tuples[cell[there]].astype(np.int64), groups[there], items[cell[there]], rows[there],
        {name: kinds[i] for i, name in enumerate(names)},
        summary.n_tuples, grouping.classes.n, kinds.shape[1],
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class SetsOfItems:
    """The sets of values that each item belongs to; those of item i are `sets[start[i]:start[i + 1]]`."""

    start: Ints
    sets: Ints

    @staticmethod
    def of(cells: OriginalCells, sets: Sequence[tuple[str, Collection[int]]]) -> SetsOfItems:
        """Of numbered sets, each with its sensitive column and the codes in it."""
        owners, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for name, codes in cells.codes.items():
            mine = [
                (c, s) for s, (column, members) in enumerate(sets) if column == name for c in set(members)
            ]
            code, number = np.array(sorted(mine), dtype=np.int64).reshape(-1, 2).T
            first, last = np.searchsorted(code, codes, "left"), np.searchsorted(code, codes, "right")
            owners.append(np.repeat(np.arange(len(codes)), last - first))
            numbers.append(number[_ranges(first, last - first)])
        owner, numbered = np.concatenate(owners), np.concatenate(numbers)
        order = np.lexsort((numbered, owner))
        return SetsOfItems(np.searchsorted(owner[order], np.arange(cells.n_items + 1)), numbered[order])

    def each(self, items: Ints) -> tuple[Ints, Ints]:
        """The places of these items, once for every set of theirs, and the sets."""
        many = self.start[items + 1] - self.start[items]
        return np.repeat(np.arange(len(items)), many), self.sets[_ranges(self.start[items], many)]

    def inside(self, items: Ints, number: int) -> Bools:
        """Whether each of these items belongs to a set."""
        place, sets = self.each(items)
        found = np.zeros(len(items), dtype=bool)
        found[place[sets == number]] = True
        return found


def _ranges(first: Ints, many: Ints) -> Ints:
    """The numbers first, first + 1, …, so many of them, one range after the other."""
    before = np.cumsum(many) - many
    return np.arange(int(many.sum())) - np.repeat(before, many) + np.repeat(first, many)


@dataclass(frozen=True, eq=False)
class ClassesInGroups:
    """The rows of each original class in each group (one entry per pair), and the items of each group.

    Entries are sorted by group; `mixed` are the groups that hold rows of several original classes.
    """

    cells: OriginalCells
    classes: Ints
    group: Ints
    rows: Ints
    mixed: Bools

    @staticmethod
    def of(cells: OriginalCells) -> ClassesInGroups:
        """The spread of these cells."""
        key, where = numbered_values(cells.groups * cells.n_tuples + cells.tuples)
        rows = np.bincount(where, cells.rows, len(key)).astype(np.int64)
        group, classes = key // cells.n_tuples, key % cells.n_tuples
        return ClassesInGroups(cells, classes, group, rows, np.bincount(group, minlength=cells.n_groups) > 1)

    @cached_property
    def sizes(self) -> Ints:
        """The rows of each original class, over all groups."""
        return np.bincount(self.classes, self.rows, self.cells.n_tuples).astype(np.int64)

    @cached_property
    def start(self) -> Ints:
        """The place where the entries of each group begin."""
        return np.searchsorted(self.group, np.arange(self.cells.n_groups + 1))

    @cached_property
    def entries_of(self) -> dict[int, list[int]]:
        """The entries of each original class in mixed groups."""
        found: dict[int, list[int]] = {}
        for e in np.flatnonzero(self.mixed[self.group]).tolist():
            found.setdefault(int(self.classes[e]), []).append(e)
        return found

    @cached_property
    def _by_group(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.cells.groups, kind="stable")
        return order, np.searchsorted(self.cells.groups[order], np.arange(self.cells.n_groups + 1))

    def held(self, group: int) -> tuple[Ints, Ints]:
        """The items of a group in ascending order, and the rows of each."""
        order, start = self._by_group
        mine = order[start[group] : start[group + 1]]
        items, where = np.unique(self.cells.items[mine], return_inverse=True)
        return items, np.bincount(where.reshape(-1), self.cells.rows[mine], len(items)).astype(np.int64)

    @cached_property
    def _pure(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Cells in groups of one original class: by original class where they begin, items, rows."""
        cells = self.cells
        pure = np.flatnonzero(~self.mixed[cells.groups])
        pure = pure[np.argsort(cells.tuples[pure], kind="stable")]
        ends = np.searchsorted(cells.tuples[pure], np.arange(cells.n_tuples + 1))
        return ends[:-1], ends[1:], cells.items[pure], cells.rows[pure]

    def known(self, classes: Ints) -> tuple[Ints, Ints, Ints]:
        """The rows of these original classes whose value is known, because their group holds no other class.

        Entries of the place of the class, item, and rows; an item may come twice.
        """
        first, last, items, rows = self._pure
        many = last[classes] - first[classes]
        entry = _ranges(first[classes], many)
        return np.repeat(np.arange(len(classes)), many), items[entry], rows[entry]

    def parts(self, group: int) -> slice:
        """The entries of a group."""
        return slice(int(self.start[group]), int(self.start[group + 1]))

    def mixed_class(self, group: int) -> Mixed:
        """One mixed group with all that is known about the original classes in it."""
        part = self.parts(group)
        classes = self.classes[part]
        elsewhere: dict[int, dict[int, int]] = {}
        for i, c in enumerate(classes.tolist()):
            entries = self.entries_of[c]
            for e in entries if len(entries) > 1 else ():
                other = int(self.group[e])
                if other != group:
                    elsewhere.setdefault(other, {})[i] = int(self.rows[e])
        here, rows = self.held(group)
        place, theirs, many = self.known(classes)
        items = np.union1d(here, theirs)
        held = np.zeros(len(items), dtype=np.int64)
        held[np.searchsorted(items, here)] = rows
        known = np.zeros((len(classes), len(items)), dtype=np.int64)
        np.add.at(known, (place, np.searchsorted(items, theirs)), many)
        return Mixed(group, self.sizes[classes], self.rows[part], items, held, known, elsewhere)


@dataclass(frozen=True, eq=False)
class Mixed:
    """A group that holds rows of several original classes.

    Attributes:
        group: its number.
        sizes: rows of each original class in the whole release, and
        rows: in this group.
        items: those of the group, and of the other rows of its original classes whose values are known.
        held: of each of these items, the rows of the group.
        known: original class × one of these items → rows that lie in groups of their own.
        elsewhere: other mixed group → place of an original class → its rows there.
    """

    group: int
    sizes: Ints
    rows: Ints
    items: Ints
    held: Ints
    known: Ints
    elsewhere: dict[int, dict[int, int]]

    def labelled(self, kind: Ints) -> Ints:
        """The kinds of all items: those that only known rows have come after the kinds of the group."""
        return np.where(kind < 0, int(kind.max()) + 1 + np.arange(len(kind)), kind)
