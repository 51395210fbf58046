"""Symmetric grouping: sorted rows are halved as long as both halves satisfy the models [Cormode et al. 2010].

A group is split into `ways` parts whose sizes differ by at most one; the split is accepted when every part
satisfies the models and has at least `min_child` rows. Without that guard a model that looks at some values only
would let parts become so small that a refused split gives its rows away: three rows, one of them positive.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Decisions, Method, Task
from maskwright.kernels.partition import Int32s, even_bounds
from maskwright.methods._rows.anatomize import Anatomize, anatomize_eligible
from maskwright.methods._rows.group_labels import LabelStyle
from maskwright.methods._rows.group_requirement import GroupRequirement, refuse_unless_met
from maskwright.methods._rows.row_orders import OrderName, arranged_rows
from maskwright.methods._rows.rows import Partition, SplitTree, to_grouping
from maskwright.promise.lemmas.even_splits import EVEN_SPLIT


class SymmetricGrouping(Method):
    """Halves the rows in the order of their quasi-identifiers as long as both halves satisfy the models.

    Attributes:
        ways: parts that a group is split into.
        min_child: the fewest rows of a part (default: by the models' parameters).
        order: lexicographic, or along a Hilbert curve.
        priority: the quasi-identifiers to sort by first (default: those with the fewest values first).
        labels: hierarchy (smallest block that covers the group) or ranges.
        anatomize: split the groups further into buckets with this many different values of the sensitive column.
    """

    name: ClassVar[str] = "symmetric-grouping"
    proven_settings: ClassVar[frozenset[str]] = frozenset(
        {"ways", "min_child", "order", "priority", "labels", "anatomize"}
    )

    ways: int = Field(default=2, ge=2, le=1000)
    min_child: int | None = Field(default=None, ge=0, le=10**9)
    order: OrderName = "lexicographic"
    priority: tuple[str, ...] | None = None
    labels: LabelStyle = "hierarchy"
    anatomize: Anatomize = None

    def decisions(self) -> Decisions:
        """Blind without models of values; with them the lemma of even splits holds for halves."""
        lemma = EVEN_SPLIT if self.ways == 2 else None
        return Decisions(blind=True, lemma=lemma, shape="cuts", ways=self.ways, fewest=self.min_child)

    def most_left_out(self, task: Task) -> int | None:
        """No row is left out."""
        return 0

    def group(self, task: Task) -> Grouping:
        """Split the sorted rows as long as every part satisfies the models."""
        rows = arranged_rows(task, self.order, self.priority, self.name)
        requirement = GroupRequirement(task, rows, self.name)
        parts = self.partition(requirement, np.arange(rows.n, dtype=np.int32))
        search: dict[str, Any] = {
            "ways": self.ways,
            "order": self.order,
            "min_child": self.guard(requirement),
        }
        grouping = to_grouping(task, rows, parts, self.labels, search)
        whole = parts.n_groups == 1
        refuse_unless_met(task, grouping.classes, "even with all rows in one group" if whole else self.name)
        return anatomize_eligible(task, rows, parts, self.anatomize, self.labels, grouping)

    def guard(self, requirement: GroupRequirement) -> int:
        """The fewest rows of a part."""
        return max(1, requirement.least if self.min_child is None else self.min_child)

    def partition(self, requirement: GroupRequirement, order: Int32s) -> Partition:
        """Split from the top, all groups of one depth at once."""
        least = self.guard(requirement)
        lo, hi = np.array([0], dtype=np.int64), np.array([len(order)], dtype=np.int64)
        done: list[tuple[Ints, Ints]] = []
        splits = SplitTree()
        while len(lo):
            requirement.progress.check()
            large = (hi - lo) // self.ways >= least
            bounds = even_bounds(lo[large], hi[large], self.ways)
            good = requirement.passing(order, bounds[:, :-1].ravel(), bounds[:, 1:].ravel())
            large[large] = good.reshape(len(bounds), self.ways).all(axis=1)
            done.append((lo[~large], hi[~large]))
            splits.split(large, self.ways)
            accepted = even_bounds(lo[large], hi[large], self.ways)
            lo, hi = accepted[:, :-1].ravel(), accepted[:, 1:].ravel()
        lo, hi = (np.concatenate(side) for side in zip(*done, strict=True))
        return Partition.of_segments(order, lo, hi, splits)
