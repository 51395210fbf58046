"""Anatomy: buckets of rows whose sensitive values all differ, made without looking at QIs [Xiao, Tao 2006].

With random picks an adversary who knows the method believes exactly what a bucket shows, at most 1/l. Blocks of
rows that are alike (`block`) make the buckets more useful at no cost to that: they are cut from the order of the
quasi-identifiers alone, and nothing is published when one of them holds a value too often.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from maskwright.domain.grouping import Grouping, Trace
from maskwright.domain.method import Decisions, Method, Sets, Task
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.kernels.partition import Int32s
from maskwright.methods._rows.anatomize import (
    MOST,
    bucket_people,
    bucket_rows,
    eligible_blocks,
    sensitive_attribute,
)
from maskwright.methods._rows.collecting import group_ends
from maskwright.methods._rows.group_labels import LabelStyle
from maskwright.methods._rows.group_requirement import GroupRequirement, refuse_unless_met
from maskwright.methods._rows.lasting_groups import Newcomers
from maskwright.methods._rows.row_orders import OrderName, arranged_rows
from maskwright.methods._rows.rows import Partition, Rows, to_grouping
from maskwright.promise.lemmas.anatomy_buckets import RANDOM_PICKS


class Anatomy(Method):
    """Makes buckets of rows whose sensitive values all differ, at random otherwise.

    Attributes:
        l: different values in a bucket (default: by the models' parameters).
        attribute: the sensitive column, where there are several.
        by: frequency (one row each of the most frequent values), or ranges (rows whose values are neighbours, for a
            sensitive column with an order; the models alone say when a bucket is large enough).
        block: first cut the rows, in the order of their quasi-identifiers, into blocks of so many rows.
        order: of the blocks: lexicographic, or along a Hilbert curve.
        priority: the quasi-identifiers to sort by first (default: those with the fewest values first).
        labels: hierarchy (smallest block that covers the group) or ranges.
        person: the column by which people are known again in later releases (`--after`); their groups then last.
        newcomers: of later releases: buckets among themselves, or each alone with counterfeits.
    """

    name: ClassVar[str] = "anatomy"
    proven_settings: ClassVar[frozenset[str]] = frozenset(
        {"l", "attribute", "by", "block", "order", "priority", "labels", "person", "newcomers"}
    )

    l: int | None = Field(default=None, ge=1, le=MOST)  # noqa: E741 - the literature's name
    attribute: str | None = None
    by: Literal["frequency", "ranges"] = "frequency"
    block: int | None = Field(default=None, ge=2, le=10**9)
    order: OrderName = "lexicographic"
    priority: tuple[str, ...] | None = None
    labels: LabelStyle = "hierarchy"
    person: str | None = None
    newcomers: Newcomers = "buckets"

    @model_validator(mode="after")
    def _makes_sense(self) -> Anatomy:
        if self.person is not None and (self.by == "ranges" or self.block is not None or self.l is None):
            raise ValueError(
                "person: groups that last are made by frequency in the whole table, with a given l"
            )
        if self.newcomers == "alone" and self.person is None:
            raise ValueError("newcomers: it is about releases that follow others; name the column `person`")
        if self.by == "ranges" and (self.block is not None or self.l is not None):
            raise ValueError("by: ranges sorts by the sensitive column alone; remove block and l")
        return self

    def decisions(self) -> Decisions:
        """Rows of each value are picked at random, unless buckets are made by ranges of values."""
        random = self.by == "frequency"
        return Decisions(lemma=RANDOM_PICKS if random else None, picks_at_random=random)

    def diversity_for(
        self, largest: Fraction, sets: Sets | None, attribute: str | None, least: int
    ) -> tuple[Fraction, Sets | None] | None:
        """Buckets large enough for the largest set of values; None where they are about another column."""
        if self.decisions().lemma is None or self.attribute not in (None, attribute):
            return None  # its buckets are about another column
        # a bucket holds each value once, so that a set of values occurs as often as it has members
        members = max((len(set(s)) for s in sets or ()), default=1)
        return Fraction(math.ceil(members / largest)), None

    def lasting_by(self) -> str | None:
        """The column `person`."""
        return self.person

    def most_left_out(self, task: Task) -> int | None:
        """No row is left out."""
        return 0

    def group(self, task: Task) -> Grouping:
        """Make buckets inside blocks of rows."""
        in_order = self.by == "frequency" and self.block is not None
        rows = (
            arranged_rows(task, self.order, self.priority, self.name)
            if in_order
            else Rows.expand(task, self.name)
        )
        attribute = sensitive_attribute(task, self.attribute, self.name)
        search: dict[str, Any] = {"attribute": attribute, "by": self.by}
        trace = Trace(attribute=attribute)
        if task.given:
            parts = given_groups(task, rows)
            search |= {"l": self.l}
            trace = Trace(attribute=attribute, distinct=self.l)
        elif self.by == "ranges":
            parts = self._ranges(task, rows, attribute)
        else:
            l = self.l or self._by_the_models(task, attribute)  # noqa: E741
            parts = self._frequency(task, rows, attribute, l)
            search |= {"l": l, "block": self.block}
            trace = Trace(attribute=attribute, distinct=l)
        grouping = to_grouping(task, rows, parts, self.labels, search, trace)
        refuse_unless_met(task, grouping.classes, self.name)
        return grouping

    def _by_the_models(self, task: Task, attribute: str) -> int:
        """The largest l that a model asks of the attribute."""
        wanted = [
            rule.different
            for model in task.search
            for rule in model.kernel(task.context) or ()
            if rule.different is not None and rule.looks_at == attribute
        ]
        if not wanted:
            raise PolicyError(
                "method anatomy: no model says how many different values a bucket needs; give l"
            )
        return max(wanted)

    def _frequency(self, task: Task, rows: Rows, attribute: str, l: int) -> Partition:  # noqa: E741
        values = rows.values(attribute)
        n_values = len(rows.summary.sensitive[attribute].values) + 1
        blocks = cut_into_blocks(rows.n, self.block or rows.n)
        good, counts = eligible_blocks(values, n_values, blocks, l)
        if not good.all():
            worst = int((counts.max(axis=1) / blocks.sizes).argmax())
            most, size = int(counts[worst].max()), int(blocks.sizes[worst])
            where = "the table" if blocks.n_groups == 1 else f"block {worst + 1} of {blocks.n_groups}"
            remedy = (
                f"l: {size // most} would suffice"
                if size // most > 1
                else "that is too often for any l above 1"
            )
            larger = "" if blocks.n_groups == 1 else "; larger blocks may help"
            raise PolicyNotMet(
                f"anatomy: the most frequent value of {attribute!r} has {most} of the {size} rows of {where}, more "
                f"than one in {l}; {remedy}{larger}"
            )
        if rows.people is not None:
            return self._of_people(task, values, rows.people, blocks, l)
        return bucket_rows(values, n_values, blocks, l, task.rng, shuffled=self.block is None, counts=counts)

    def _of_people(
        self,
        task: Task,
        values: Int32s,
        people: Int32s,
        blocks: Partition,
        l: int,  # noqa: E741
    ) -> Partition:
        """Buckets of l people with l different values."""
        made, good = bucket_people(values, people, blocks, l, task.rng)
        if good.all():
            return made
        smaller = next(
            (j for j in range(l - 1, 1, -1) if bucket_people(values, people, blocks, j, task.rng)[1].all()),
            None,
        )
        where = "" if blocks.n_groups == 1 else f" in {int((~good).sum())} of {blocks.n_groups} blocks"
        raise PolicyNotMet(
            f"anatomy: with the rows of each person kept in different buckets, rows are left over{where} that no "
            f"bucket of {l} people with different values has room for; "
            + (
                f"l: {smaller} would suffice"
                if smaller
                else "optimal-lattice or mondrian keep k-anonymity in people"
            )
        )

    def _ranges(self, task: Task, rows: Rows, attribute: str) -> Partition:
        """Rows in the order of the sensitive value, collected until the models hold; the rest joins the last."""
        if not rows.summary.sensitive[attribute].ordered:
            raise PolicyError(
                f"method anatomy: by: ranges needs values with an order, and {attribute!r} has none; give it an "
                "`order`, or write by: frequency"
            )
        requirement = GroupRequirement(task, rows, self.name)
        order: Int32s = np.argsort(rows.values(attribute), kind="stable").astype(np.int32)
        closes = group_ends(requirement, order, 1, np.zeros(rows.n, dtype=np.uint8))
        ends = np.flatnonzero(closes) + 1
        if not len(ends):
            refuse_unless_met(task, rows.summary.totals(), "even with all rows in one group")
            raise PolicyNotMet(f"anatomy: no range of {attribute!r} satisfies the models")
        return Partition(order, np.concatenate([[0], ends[:-1], [rows.n]]).astype(np.int64))


def cut_into_blocks(n: int, size: int) -> Partition:
    """Rows 0…n−1 in blocks of `size`; the last one holds what is left, too."""
    starts = np.arange(max(1, n // size), dtype=np.int64) * size
    return Partition(np.arange(n, dtype=np.int32), np.append(starts, n))


def given_groups(task: Task, rows: Rows) -> Partition:
    """The groups that follow from earlier releases: rows that are alike share the groups that they are given."""
    joint = rows.joint
    columns = [
        [(None, *h.values)[code] for code in codes[joint.tuples].tolist()]
        for h, codes in zip(task.summary.attributes, task.summary.codes, strict=True)
    ]
    for counts, codes in zip(task.summary.sensitive.values(), joint.values, strict=True):
        columns.append([(None, *counts.values)[code] for code in codes.tolist()])
    groups = [task.given[key] for key in zip(*columns, strict=True)]
    group_of = np.empty(rows.n, dtype=np.int32)
    group_of[np.argsort(rows.cells, kind="stable")] = np.concatenate(groups)
    return Partition.of_groups(group_of)
