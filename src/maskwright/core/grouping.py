"""A grouping: which rows became indistinguishable, and under which labels. Methods make it; all else reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.core.classes import Classes, Ints
from maskwright.core.summary import Summary


@dataclass(frozen=True, eq=False)
class Allocation:
    """How many rows of each tuple went to each group: (tuple, group) → rows; group -1 is suppressed.

    Full-domain methods keep whole tuples together (one entry per tuple, `cells` None). Methods that split the
    rows of one tuple over several groups name in `cells` the cell of `summary.joint` that each entry takes
    rows from; entries are then unique per (cell, group) and sorted by cell.
    """

    tuples: Ints
    groups: Ints
    rows: Ints
    cells: Ints | None = None


def allocated(summary: Summary, allocation: Allocation, n_groups: int) -> Classes:
    """The classes that an allocation makes."""
    if allocation.cells is not None:
        return summary.cell_classes(allocation.cells, allocation.groups, allocation.rows, n_groups)
    group_of = np.full(summary.n_tuples, -1, dtype=np.int64)
    group_of[allocation.tuples] = allocation.groups
    return summary.classes(group_of, n_groups)


@dataclass(frozen=True, eq=False)
class Labels:
    """The published text of one attribute in each group, and how many ground values it covers.

    `texts[of_group[g]]` is what is published for group g; None is a missing value.
    """

    attribute: str
    texts: tuple[str | None, ...]
    coverage: Ints
    of_group: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Grouping:
    """The result of a method.

    Attributes:
        summary: what was grouped.
        allocation: which rows went where.
        labels: per quasi-identifier, in the order of `summary.attributes`.
        classes: sizes and true sensitive counts of the groups.
        levels: the lattice node, for full-domain recoding.
        starred: the group that holds the suppressed rows when they are published as `*`, else None.
        search: what the method did, for the report (nodes, checks, alternatives, proof of optimality).
    """

    summary: Summary
    allocation: Allocation
    labels: tuple[Labels, ...]
    classes: Classes
    levels: tuple[int, ...] | None = None
    starred: int | None = None
    search: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def suppressed_rows(self) -> int:
        """Rows that lost all their quasi-identifiers: dropped, or published as `*`."""
        dropped = int(self.allocation.rows[self.allocation.groups < 0].sum())
        return dropped + (int(self.classes.rows[self.starred]) if self.starred is not None else 0)

    @property
    def dropped_rows(self) -> int:
        return int(self.allocation.rows[self.allocation.groups < 0].sum())

    @property
    def published_rows(self) -> int:
        return int(self.classes.rows.sum())
