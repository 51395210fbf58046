"""Greedy grouping: sorted rows are collected until the group satisfies the models [Cormode et al. 2010].

Rows are ordered by their quasi-identifiers and cut into buckets of `l` rows; buckets are appended to the open
group until it satisfies the models, then it is closed. With `extend: p` a group that could be closed goes on
with probability p (the randomised version). A trailing partial bucket and a last group that never satisfied
the models are dropped.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from maskwright.core.exact import Exact
from maskwright.core.grouping import Grouping
from maskwright.core.method import Method, Task
from maskwright.core.sensitive import Count
from maskwright.errors import PolicyNotMet
from maskwright.kernels.partition import Int32s
from maskwright.methods.anatomize import Anatomize, anatomized
from maskwright.methods.collect import closings
from maskwright.methods.labels import LabelStyle
from maskwright.methods.orders import OrderName, arranged
from maskwright.methods.requirement import Requirement, refuse_unless_met
from maskwright.methods.rows import Partition, to_grouping

VOID = (
    "rows were dropped because of their sensitive values: absence is information, and no bound of this method "
    "covers the people concerned"
)


class GreedyGrouping(Method):
    """Collects rows in the order of their quasi-identifiers until each group satisfies the models.

    Attributes:
        l: rows of a bucket (default: by the models' parameters); 1: row by row.
        extend: the probability with which a group that could be closed goes on; 0: never.
        order: lexicographic, or along a Hilbert curve.
        priority: the quasi-identifiers to sort by first (default: those with the fewest values first).
        labels: hierarchy (smallest block that covers the group) or ranges.
        anatomize: split the groups further into buckets with so many different values of the sensitive column.
    """

    name: ClassVar[str] = "greedy-grouping"

    l: Count | None = None  # noqa: E741 - the literature's name
    extend: Exact = Field(default=0, validate_default=True)
    order: OrderName = "lexicographic"
    priority: tuple[str, ...] | None = None
    labels: LabelStyle = "hierarchy"
    anatomize: Anatomize = None

    @field_validator("extend")
    @classmethod
    def _is_probability(cls, value: Fraction) -> Fraction:
        if not 0 <= value <= 1:
            raise ValueError("extend is a probability, between 0 and 1")
        if value.denominator >= 2**62:
            raise ValueError("extend has too many digits; write a simpler fraction")
        return value

    def group(self, task: Task) -> Grouping:
        rows = arranged(task, self.order, self.priority, self.name)
        requirement = Requirement(task, rows, self.name)
        bucket = self.l or requirement.least
        order = np.arange(rows.n, dtype=np.int32)
        parts, tail = self.partition(task.rng, requirement, order, bucket)
        if not parts.n_groups:
            refuse_unless_met(task, rows.summary.totals(), "even with all rows in one group")
            raise PolicyNotMet(
                f"greedy-grouping: no group of buckets of {bucket} rows satisfies the models; a smaller l may do"
            )
        search: dict[str, Any] = {"bucket": bucket, "order": self.order, "extend": str(self.extend)}
        if tail:
            search |= {"dropped_for_their_values": tail, "note": VOID}
        grouping = to_grouping(task, rows, parts, self.labels, search)
        refuse_unless_met(task, grouping.classes, self.name)
        return anatomized(task, rows, parts, self.anatomize, self.labels, grouping)

    def partition(
        self, rng: np.random.Generator, requirement: Requirement, order: Int32s, bucket: int
    ) -> tuple[Partition, int]:
        """The groups of the rows in this order, and how many rows a last group held that never passed."""
        buckets = len(order) // bucket
        closes = closings(requirement, order, bucket, self._coins(rng, buckets))
        ends = (np.flatnonzero(closes) + 1) * bucket
        start = np.concatenate([[0], ends]).astype(np.int64)
        return Partition(order[: int(start[-1])], start), buckets * bucket - int(start[-1])

    def _coins(self, rng: np.random.Generator, buckets: int) -> NDArray[np.uint8]:
        """Which buckets do not end a group that could end there: each with the exact probability `extend`."""
        if self.extend == 0:
            return np.zeros(buckets, dtype=np.uint8)
        drawn = rng.integers(0, self.extend.denominator, buckets) < self.extend.numerator
        return drawn.astype(np.uint8)
