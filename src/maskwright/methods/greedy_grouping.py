"""Greedy grouping: sorted rows are collected until the group satisfies the models [Cormode et al. 2010].

Rows are ordered by their quasi-identifiers and cut into buckets of `l` rows; buckets are appended to the open
group until it satisfies the models, then it is closed. With `extend: p` a group that could be closed goes on
with probability p (the randomised version). A trailing partial bucket and a last group that never satisfied
the models are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from maskwright.domain.exact import Exact
from maskwright.domain.grouping import Grouping, Trace
from maskwright.domain.method import Decisions, Method, Sets, Task
from maskwright.domain.model import Context, Model
from maskwright.domain.sensitive import Count
from maskwright.errors import PolicyNotMet
from maskwright.kernels.partition import Int32s
from maskwright.methods._rows.anatomize import Anatomize, anatomize_eligible
from maskwright.methods._rows.collecting import group_ends
from maskwright.methods._rows.group_labels import LabelStyle
from maskwright.methods._rows.group_requirement import GroupRequirement, refuse_unless_met
from maskwright.methods._rows.row_orders import OrderName, arranged_rows
from maskwright.methods._rows.rows import Partition, to_grouping
from maskwright.promise.lemmas.greedy_buckets import GREEDY

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
        anatomize: split the groups further into buckets with this many different values of the sensitive column.
    """

    name: ClassVar[str] = "greedy-grouping"
    proven_settings: ClassVar[frozenset[str]] = frozenset(
        {"l", "extend", "order", "priority", "labels", "anatomize"}
    )

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

    def decisions(self) -> Decisions:
        """Blind without models of values; with them the lemma of greedy grouping holds."""
        return Decisions(blind=True, lemma=GREEDY, extend=self.extend)

    def diversity_for(
        self, largest: Fraction, sets: Sets | None, attribute: str | None, least: int
    ) -> tuple[Fraction, Sets | None] | None:
        """The l by the lemma, but at least the size that other models ask for."""
        found = super().diversity_for(largest, sets, attribute, least)
        # buckets of l rows must be large enough for every model
        return found and (max(found[0], Fraction(least)), sets)

    def unmet_condition(self, ell: Fraction, models: Sequence[Model], context: Context) -> str:
        """The condition of the lemma that these settings and models do not meet; empty: all are met."""
        if ell.denominator != 1 or ell < 2 or self.l not in (None, int(ell)):
            return "the proof needs a whole l, and buckets of l rows"
        if not all(_implied_by_buckets(m, context, int(ell)) for m in models if m.use == "search"):
            return "the proof needs buckets of l rows that are closed by the diversity test alone"
        return ""

    def group(self, task: Task) -> Grouping:
        """Collect buckets of sorted rows until each group satisfies the models."""
        rows = arranged_rows(task, self.order, self.priority, self.name)
        requirement = GroupRequirement(task, rows, self.name)
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
            search |= {"dropped for their values": tail, "note": VOID}
        trace = Trace(bucket=bucket, dropped_for_values=tail)
        grouping = to_grouping(task, rows, parts, self.labels, search, trace)
        refuse_unless_met(task, grouping.classes, self.name)
        return anatomize_eligible(task, rows, parts, self.anatomize, self.labels, grouping)

    def partition(
        self, rng: np.random.Generator, requirement: GroupRequirement, order: Int32s, bucket: int
    ) -> tuple[Partition, int]:
        """The groups of the rows in this order, and how many rows a last group held that never passed."""
        buckets = len(order) // bucket
        closes = group_ends(requirement, order, bucket, self._coins(rng, buckets))
        ends = (np.flatnonzero(closes) + 1) * bucket
        start = np.concatenate([[0], ends]).astype(np.int64)
        return Partition(order[: int(start[-1])], start), buckets * bucket - int(start[-1])

    def _coins(self, rng: np.random.Generator, buckets: int) -> NDArray[np.uint8]:
        """Which buckets do not end a group that could end there: each with the exact probability `extend`."""
        if self.extend == 0:
            return np.zeros(buckets, dtype=np.uint8)
        drawn = rng.integers(0, self.extend.denominator, buckets) < self.extend.numerator
        return drawn.astype(np.uint8)


def _implied_by_buckets(model: Model, context: Context, bucket: int) -> bool:
    """Is a model about quasi-identifiers true of every group of whole buckets? (One about values is another matter.)"""
    if model.about == "sensitive":
        return model.least_size(context) <= bucket
    rules = model.kernel(context)
    return rules is not None and all(r.looks_at is None and r.size <= bucket for r in rules)
