"""Symmetric grouping: sorted rows are halved as long as both halves satisfy the models [Cormode et al. 2010].

A group is split into `ways` parts whose sizes differ by at most one; the split is accepted when every part
satisfies the models and has at least `min_child` rows. Without that guard a model that looks at some values only
would let parts become so small that a refused split gives its rows away: three rows, one of them positive.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from maskwright.core.classes import Ints
from maskwright.core.grouping import Grouping
from maskwright.core.method import Method, Task
from maskwright.kernels.partition import Int32s, even_bounds
from maskwright.methods.anatomize import Anatomize, anatomized
from maskwright.methods.labels import LabelStyle
from maskwright.methods.orders import OrderName, arranged
from maskwright.methods.requirement import Requirement, refuse_unless_met
from maskwright.methods.rows import Partition, SplitTree, to_grouping


class SymmetricGrouping(Method):
    """Halves the rows in the order of their quasi-identifiers as long as both halves satisfy the models.

    Attributes:
        ways: parts that a group is split into.
        min_child: the fewest rows of a part (default: by the models' parameters).
        order: lexicographic, or along a Hilbert curve.
        priority: the quasi-identifiers to sort by first (default: those with the fewest values first).
        labels: hierarchy (smallest block that covers the group) or ranges.
        anatomize: split the groups further into buckets with so many different values of the sensitive column.
    """

    name: ClassVar[str] = "symmetric-grouping"

    ways: int = Field(default=2, ge=2, le=1000)
    min_child: int | None = Field(default=None, ge=0, le=10**9)
    order: OrderName = "lexicographic"
    priority: tuple[str, ...] | None = None
    labels: LabelStyle = "hierarchy"
    anatomize: Anatomize = None

    def group(self, task: Task) -> Grouping:
        rows = arranged(task, self.order, self.priority, self.name)
        requirement = Requirement(task, rows, self.name)
        parts = self.partition(requirement, np.arange(rows.n, dtype=np.int32))
        search: dict[str, Any] = {
            "ways": self.ways,
            "order": self.order,
            "min_child": self.guard(requirement),
        }
        grouping = to_grouping(task, rows, parts, self.labels, search)
        whole = parts.n_groups == 1
        refuse_unless_met(task, grouping.classes, "even with all rows in one group" if whole else self.name)
        return anatomized(task, rows, parts, self.anatomize, self.labels, grouping)

    def guard(self, requirement: Requirement) -> int:
        return max(1, requirement.least if self.min_child is None else self.min_child)

    def partition(self, requirement: Requirement, order: Int32s) -> Partition:
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
