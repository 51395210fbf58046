"""Rows: the cells of a summary expanded row by row, and the way back from groups of rows to a grouping.

Rows of one cell are interchangeable, so that nothing but the cell of each row is kept (4 bytes). Their order is
random: whoever breaks ties by row number breaks them at random, and never by a sensitive value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ancestors, Classes, Ints, tree_of
from maskwright.domain.grouping import Allocation, Grouping, Trace
from maskwright.domain.method import Task
from maskwright.domain.summary import Joint, Summary
from maskwright.domain.unmet_requirements import refuse_no_rows
from maskwright.errors import PolicyError
from maskwright.kernels.partition import Int32s, count_values, first_rows
from maskwright.kernels.tuple_orders import allocation_entries, sorted_by
from maskwright.methods._rows.group_labels import AnyStyle, label_groups, label_regions

MOST_ROWS = 2**31 - 1  # rows are numbered in 32 bits


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table, numbered: `cells[i]` is the cell (of `summary.cells`) of row i."""

    summary: Summary
    cells: Int32s
    _values: dict[str, Int32s] = field(default_factory=dict, repr=False)
    _having: dict[str, tuple[Int32s, int]] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.cells)

    @property
    def joint(self) -> Joint:
        """The cells of the summary."""
        return joint_of(self.summary)

    @property
    def tuples(self) -> Int32s:
        """The tuple of each row."""
        return self.joint.tuples.astype(np.int32)[self.cells]

    @cached_property
    def people(self) -> Int32s | None:
        """Whose row each row is; None: every row is a person."""
        people = self.joint.people
        return None if people is None else people.astype(np.int32)[self.cells]

    def having(self, attribute: str) -> tuple[Int32s, int]:
        """A number for the person and the value of each row, and how many such numbers there are."""
        if attribute not in self._having:
            assert self.people is not None  # noqa: S101 - for the type checker
            keys = self.people.astype(np.int64) * (len(self.summary.sensitive[attribute].values) + 1)
            distinct, number = np.unique(keys + self.values(attribute), return_inverse=True)
            self._having[attribute] = number.reshape(-1).astype(np.int32), len(distinct)
        return self._having[attribute]

    def classes(self, order: Int32s, lo: Ints, hi: Ints, attributes: Iterable[str] | None = None) -> Classes:
        """Sizes and sensitive counts (of some attributes) of segments of a list of rows: of people, not of rows."""
        sizes = rows = hi - lo
        if self.people is not None:
            sizes = np.diff(first_rows(self.people, self.summary.n_people, order, lo, hi)[1])
        counts = {}
        for name in self.summary.sensitive if attributes is None else attributes:
            vc, listed, start, stop = self.summary.sensitive[name], order, lo, hi
            if self.people is not None:  # a value counts once per person
                listed, bounds = first_rows(*self.having(name), order, lo, hi)
                start, stop = bounds[:-1].copy(), bounds[1:].copy()
            counts[name] = count_values(self.values(name), vc.values, listed, start, stop, vc.ordered)
        return Classes(sizes, rows, counts)

    def values(self, attribute: str) -> Int32s:
        """The code of a sensitive attribute in each row."""
        if attribute not in self._values:
            index = list(self.summary.sensitive).index(attribute)
            self._values[attribute] = self.joint.values[index][self.cells]
        return self._values[attribute]

    @staticmethod
    def one_of_each_cell(summary: Summary) -> Rows:
        """Row i stands for all rows of cell i: a partition lists it once for each of them."""
        return Rows(summary, np.arange(len(joint_of(summary).rows), dtype=np.int32))

    @staticmethod
    def expand(task: Task, method: str) -> Rows:
        """All rows, in random order."""
        refuse_unfit(task.summary, method)
        joint = joint_of(task.summary)
        cells = np.repeat(np.arange(len(joint.rows), dtype=np.int32), joint.rows)
        task.rng.shuffle(cells)
        return Rows(task.summary, cells)


def joint_of(summary: Summary) -> Joint:
    """The cells of a summary."""
    if summary.cells is None:
        raise ValueError("this summary has no cells")
    return summary.cells


def refuse_unfit(summary: Summary, method: str) -> None:
    """Raise where the rows of a table cannot be told apart one by one."""
    refuse_no_rows(summary)
    if summary.n_rows > MOST_ROWS:
        raise PolicyError(f"method {method} takes at most {MOST_ROWS} rows; use optimal-lattice")


@dataclass(frozen=True, eq=False)
class Partition:
    """Groups of rows: group g holds `order[start[g]:start[g + 1]]`; rows that are not listed were dropped.

    Rows of one cell are the same to everybody, so that `order` may also name one of them again and again. `regions`:
    the least and the largest rank that the cuts leave to each group in each column.
    """

    order: Int32s
    start: Ints
    ancestors: Ancestors | None = None
    together: Ints | None = None
    regions: tuple[Int32s, Int32s] | None = None

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.start) - 1

    @property
    def sizes(self) -> Ints:
        """The rows of each group."""
        return np.diff(self.start)

    @staticmethod
    def of_segments(order: Int32s, lo: Ints, hi: Ints, splits: SplitTree | None = None) -> Partition:
        """Only these segments of `order`, in their order in it; `splits`: how they came about."""
        index = np.argsort(lo, kind="stable")
        ancestors = None if splits is None else tree_of(splits.finished[index], splits.parent)
        together = None if splits is None else splits.together(splits.finished[index])
        lo, hi = lo[index], hi[index]
        sizes = hi - lo
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if len(lo) and int(sizes.sum()) == int(hi[-1] - lo[0]):  # nothing lies between them
            return Partition(order[int(lo[0]) : int(hi[-1])], start, ancestors, together)
        places = np.arange(int(start[-1])) + np.repeat(lo - start[:-1], sizes)
        return Partition(order[places], start, ancestors, together)

    @staticmethod
    def of_groups(group_of: Int32s) -> Partition:
        """From the group of each row; −1: dropped."""
        n = int(group_of.max(initial=-1)) + 1
        order = sorted_by(group_of + np.int32(1), n + 1)
        dropped = int((group_of < 0).sum())
        sizes = np.bincount(group_of[group_of >= 0], minlength=n)
        return Partition(order[dropped:], np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


class SplitTree:
    """Remembers what groups were split from, while all groups of one depth are split at once."""

    def __init__(self) -> None:
        self.open = np.zeros(1, dtype=np.int64)  # the numbers of the groups that may be split
        self._parents = [np.full(1, -1, dtype=np.int64)]
        self._finished: list[Ints] = []
        self._used = 1
        self._late: list[Ints] = [np.empty(0, dtype=np.int64)]

    def split(
        self,
        accepted: NDArray[np.bool_],
        parts: int,
        whole: NDArray[np.bool_] | None = None,
        late: NDArray[np.bool_] | None = None,
    ) -> None:
        """The accepted ones of the open groups were split into `parts` parts; the others are finished.

        Those that are `whole` stay open undivided, behind the parts; `late` ones were split after a refused cut.
        """
        if late is not None:
            self._late.append(self.open[accepted & late])
        left = np.zeros(len(accepted), dtype=bool) if whole is None else whole
        self._finished.append(self.open[~accepted & ~left])
        self._parents.append(np.repeat(self.open[accepted], parts))
        fresh = self._used + np.arange(len(self._parents[-1]))
        self._used += len(fresh)
        self.open = np.concatenate([fresh, self.open[left]])

    @property
    def finished(self) -> Ints:
        """The numbers of the groups that were not split, in the order in which they were finished."""
        return np.concatenate([*self._finished, self.open])

    @property
    def parent(self) -> Ints:
        """The group that each group was split from; −1: the first."""
        return np.concatenate(self._parents)

    def together(self, leaves: Ints) -> Ints | None:
        """The block of each leaf: those below the same late split are one. None: no split was late."""
        under, block = np.zeros(self._used, dtype=bool), np.arange(self._used)
        under[np.concatenate(self._late)] = True
        if not under.any():
            return None
        first = 1
        for parent in self._parents[1:]:
            fresh = np.arange(first, first + len(parent))
            first += len(parent)
            inside = under[parent]
            block[fresh[inside]], under[fresh[inside]] = block[parent[inside]], True
        return np.unique(block[leaves], return_inverse=True)[1].reshape(-1).astype(np.int64)


def to_grouping(
    task: Task,
    rows: Rows,
    parts: Partition,
    labels: AnyStyle,
    search: dict[str, Any],
    trace: Trace | None = None,
) -> Grouping:
    """The grouping that a partition of the rows makes: allocation by cell, labels, classes."""
    listed = rows.cells[parts.order]
    names = tuple(h.attribute for h in rows.summary.attributes)
    tuples = rows.joint.tuples.astype(np.int32)
    if labels == "fixed":
        assert parts.regions is not None  # noqa: S101 - for the type checker
        texts, codes = label_regions(rows.summary, task.levels, *parts.regions)
    else:
        texts, codes = label_groups(rows.summary, task.levels, labels, tuples[listed], parts.start)
    classes = replace(classes_of(rows, parts), attributes=names, codes=codes)
    search = {"groups": parts.n_groups, "dropped_rows": rows.summary.n_rows - len(listed), **search}
    allocation = _allocate(rows.joint, listed, parts.start)
    return Grouping(
        rows.summary, allocation, texts, classes, search=search, ancestors=parts.ancestors, labelling=labels,
        trace=trace or Trace(),
    )  # fmt: skip


def classes_of(rows: Rows, parts: Partition) -> Classes:
    """Sizes and sensitive counts of the groups."""
    return rows.classes(parts.order, parts.start[:-1].copy(), parts.start[1:].copy())


def rows_of(grouping: Grouping) -> tuple[Rows, Partition]:
    """The rows of any grouping, cell by cell, and its groups as a partition of them: the way back."""
    joint, allocation = joint_of(grouping.summary), grouping.allocation
    if grouping.summary.n_rows > MOST_ROWS:
        raise PolicyError(f"to tell rows apart one by one there must be at most {MOST_ROWS} of them")
    if allocation.cells is None:  # whole tuples: every cell goes where its tuple went
        group_of = np.full(grouping.summary.n_tuples, -1, dtype=np.int32)
        group_of[allocation.tuples] = allocation.groups
        groups = np.repeat(group_of[joint.tuples], joint.rows)
        cells = np.repeat(np.arange(len(joint.rows), dtype=np.int32), joint.rows)
    else:
        groups = np.repeat(allocation.groups.astype(np.int32), allocation.rows)
        cells = np.repeat(allocation.cells.astype(np.int32), allocation.rows)
    return Rows(grouping.summary, cells), Partition.of_groups(groups)


def _allocate(joint: Joint, listed: Int32s, start: Ints) -> Allocation:
    """Entries (cell, group) → rows, sorted by cell, of groups that list the cells of their rows; −1: dropped rows."""
    cells, groups, counts = allocation_entries(listed, start, joint.rows)
    return Allocation(joint.tuples[cells], groups, counts, cells)
