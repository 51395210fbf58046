"""How the original classes lie in what was published: whole, side by side in a generalised class, or over several.

Local recoding may publish some rows of an original class as they are and generalise others, to one value or to several.
Values of rows in a class of their own are known; those of a *mixed* class are known only together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.adversary import Target
from maskwright.domain.classes import Ints

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
    kinds, items = np.unique(values, axis=1, return_inverse=True)
    items = items.reshape(-1).astype(np.int64)
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
        {name: kinds[i].astype(np.int64) for i, name in enumerate(names)},
        summary.n_tuples, grouping.classes.n, kinds.shape[1],
    )  # fmt: skip


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
        key, where = np.unique(cells.groups * cells.n_tuples + cells.tuples, return_inverse=True)
        rows = np.bincount(where.reshape(-1), cells.rows, len(key)).astype(np.int64)
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

    def held(self, group: int) -> Ints:
        """The rows of a group by item."""
        order, start = self._by_group
        mine = order[start[group] : start[group + 1]]
        return np.bincount(self.cells.items[mine], self.cells.rows[mine], self.cells.n_items).astype(np.int64)

    @cached_property
    def _pure(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Cells in groups of one original class: by original class where they begin, items, rows."""
        cells = self.cells
        pure = np.flatnonzero(~self.mixed[cells.groups])
        pure = pure[np.argsort(cells.tuples[pure], kind="stable")]
        ends = np.searchsorted(cells.tuples[pure], np.arange(cells.n_tuples + 1))
        return ends[:-1], ends[1:], cells.items[pure], cells.rows[pure]

    def known(self, classes: Ints) -> Ints:
        """The rows of these original classes whose value is known, by item: their group holds no other class."""
        first, last, items, rows = self._pure
        many = last[classes] - first[classes]
        place = np.repeat(np.arange(len(classes)), many)
        entry = (
            np.arange(len(place)) - np.repeat(np.cumsum(many) - many, many) + np.repeat(first[classes], many)
        )
        table = np.zeros((len(classes), self.cells.n_items), dtype=np.int64)
        np.add.at(table, (place, items[entry]), rows[entry])
        return table

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
        return Mixed(
            group, self.sizes[classes], self.rows[part], self.held(group), self.known(classes), elsewhere
        )


@dataclass(frozen=True, eq=False)
class Mixed:
    """A group that holds rows of several original classes.

    Attributes:
        group: its number.
        sizes: rows of each original class in the whole release, and
        rows: in this group.
        held: item → rows of the group.
        known: original class × item → rows that lie in groups of their own.
        elsewhere: other mixed group → place of an original class → its rows there.
    """

    group: int
    sizes: Ints
    rows: Ints
    held: Ints
    known: Ints
    elsewhere: dict[int, dict[int, int]]

    def labelled(self, kind: Ints) -> Ints:
        """The kinds of all items: those that only known rows have come after the kinds of the group."""
        return np.where(kind < 0, int(kind.max()) + 1 + np.arange(len(kind)), kind)
