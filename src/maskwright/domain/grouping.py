"""A grouping: which rows became indistinguishable, and under which labels. Methods make it; all else reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ancestors, Classes, Ints, ValueCounts
from maskwright.domain.exact import exact_bincount, numbered_values
from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.domain.marginals import Marginal
from maskwright.domain.summary import Summary


@dataclass(frozen=True, eq=False)
class Allocation:
    """How many rows of each tuple went to each group: (tuple, group) → rows; group -1 is suppressed.

    Full-domain methods keep whole tuples together (one entry per tuple, `cells` None). Methods that split the
    rows of one tuple over several groups name in `cells` the cell of `summary.cells` that each entry takes
    rows from; entries are then unique per (cell, group) and sorted by cell.
    """

    tuples: Ints
    groups: Ints
    rows: Ints
    cells: Ints | None = None


def allocated_classes(summary: Summary, allocation: Allocation, n_groups: int) -> Classes:
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
    levels: tuple[int, ...] | None = None  # of each text, where groups keep the level that they reached


@dataclass(frozen=True, eq=False)
class Rendering:
    """How one quasi-identifier is written in the release: by the policy and the values of published rows alone.

    Attributes:
        labels: the texts of the groups.
        level: the name of the level, where the column has one.
        ground: the text of each code where values are published as they are.
    """

    labels: Labels
    level: str | None
    ground: tuple[str | None, ...]


# how the labels of groups are found: at levels that the method chose, at those that each group reached on its way down
# from the coarsest ("reached"), as the smallest block, or by a label style
# (around the rows of a group), or around what the cuts leave of a column, whatever rows lie there ("fixed"), or
# from each value alone, whatever others there are ("given")
Labelling = Literal["levels", "reached", "blocks", "hierarchy", "ranges", "fixed", "given"]


@dataclass(frozen=True, eq=False)
class Changes:
    """Sensitive values that a method published wrongly on purpose (MASK).

    `rows[i]` of the rows of cell `cells[i]` that went to group `groups[i]` are published with code `codes[i]` of
    `attribute`; which of them is random. Entries are unique per (cell, group, code) and sorted so. `hierarchy` is that
    of the attribute, where it has one: it says how far apart two values are.
    """

    attribute: str
    cells: Ints
    groups: Ints
    codes: NDArray[np.int32]
    rows: Ints
    hierarchy: Hierarchy | None = None


@dataclass(frozen=True)
class Trace:
    """What a run of a method left behind that attacks and promises rely on; words for the report are in `search`.

    Attributes:
        complete: did the search run to its end?
        nodes: how many nodes the lattice had that it searched, where it was one.
        bucket: rows of a bucket, where rows were collected by buckets.
        dropped_for_values: rows that were dropped because of their values.
        attribute: the sensitive attribute whose values differ in every group, and
        distinct: how many different values of it every group has.
        dropped_first: were rows dropped at random, before the method looked at any value of those that remain?
        together: the block of each group, where a cut was accepted after another one had been refused: about
            that the values of all groups below it decided together. None: every group is explained by itself.
    """

    complete: bool = True
    nodes: int | None = None
    bucket: int | None = None
    dropped_for_values: int = 0
    attribute: str | None = None
    distinct: int | None = None
    dropped_first: bool = False
    together: Ints | None = field(default=None, compare=False)


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
        search: what the method did, in figures for the report alone (nodes, checks, alternatives).
        trace: what references, attacks and promises rely on of that.
        published: sensitive counts by group where the method distorts them, in place of the true ones in `classes`.
        changes: which rows were distorted, where any were.
        ancestors: the larger groups that the groups were split from, where the method splits groups.
        labelling: how the labels of the groups were found.
        marginals: per quasi-identifier how many published rows have each value, where that is published.
        renderings: per quasi-identifier how it is written in the release; None: as `labels` say.
    """

    summary: Summary
    allocation: Allocation
    labels: tuple[Labels, ...]
    classes: Classes
    levels: tuple[int, ...] | None = None
    starred: int | None = None
    search: dict[str, Any] = field(default_factory=dict)
    published: Mapping[str, ValueCounts] | None = None
    changes: Changes | None = None
    ancestors: Ancestors | None = None
    labelling: Labelling = "levels"
    renderings: tuple[Rendering, ...] | None = None
    trace: Trace = Trace()
    marginals: tuple[Marginal, ...] | None = None

    @property
    def published_labels(self) -> tuple[Labels, ...]:
        """The texts that a reader of the release sees."""
        return self.labels if self.renderings is None else tuple(r.labels for r in self.renderings)

    @property
    def labels_are_texts(self) -> bool:
        """Are labels written as texts even where they are the values themselves? Their type would tell of others."""
        return self.labelling == "given"

    @property
    def published_classes(self) -> Classes:
        """The classes that a reader of the release sees: those of `classes`, unless values were distorted."""
        if not self.published:
            return self.classes
        return replace(self.classes, sensitive={**self.classes.sensitive, **self.published})

    @cached_property
    def suppressed_rows(self) -> int:
        """Rows that lost all their quasi-identifiers: dropped, or published as `*`."""
        dropped = int(self.allocation.rows[self.allocation.groups < 0].sum())
        return dropped + (int(self.classes.rows[self.starred]) if self.starred is not None else 0)

    @property
    def dropped_rows(self) -> int:
        """The rows that are in no published group."""
        return int(self.allocation.rows[self.allocation.groups < 0].sum())

    @cached_property
    def cells(self) -> tuple[Ints, Ints, Ints]:
        """The published rows by cell of `summary.cells`: (cell, group, rows)."""
        allocation, joint = self.allocation, self.summary.cells
        if joint is None:
            raise ValueError("this summary has no joint counts")
        if allocation.cells is not None:
            cells, groups, rows = allocation.cells, allocation.groups, allocation.rows
        else:
            group_of = np.full(self.summary.n_tuples, -1, dtype=np.int64)
            group_of[allocation.tuples] = allocation.groups
            cells, groups, rows = np.arange(len(joint.rows)), group_of[joint.tuples], joint.rows
        there = groups >= 0
        return cells[there], groups[there], rows[there]

    def shown_cells(self, attribute: str) -> tuple[Ints, Ints, Ints, Ints]:
        """The published rows: (cell, group, code of an attribute as it is published, rows)."""
        cells, groups, rows = self.cells
        assert self.summary.cells is not None  # noqa: S101 - for the type checker
        codes = self.summary.cells.values[list(self.summary.sensitive).index(attribute)].astype(np.int64)
        changes = self.changes
        if changes is None or changes.attribute != attribute or not len(changes.rows):
            return cells, groups, codes[cells], rows
        n = self.classes.n
        keys = cells * n + groups
        order = np.argsort(keys, kind="stable")
        place = order[np.searchsorted(keys[order], changes.cells * n + changes.groups)]
        left = rows - exact_bincount(place, changes.rows, len(rows))
        there = left > 0
        return (
            np.concatenate([cells[there], changes.cells]),
            np.concatenate([groups[there], changes.groups]),
            np.concatenate([codes[cells[there]], changes.codes.astype(np.int64)]),
            np.concatenate([left[there], changes.rows]),
        )

    def row_counts(self, attribute: str) -> ValueCounts:
        """How many rows of each class are published with each value, whosever they are."""
        if self.summary.joint is not None:
            return self.published_classes.sensitive[attribute]
        _, groups, codes, rows = self.shown_cells(attribute)
        vc = self.summary.sensitive[attribute]
        return ValueCounts.collect(vc.values, self.classes.n, groups, codes, rows, vc.ordered)

    @property
    def discernibility(self) -> int:
        """Sum of squared class sizes, plus (suppressed rows) × (all rows)."""
        rows = [int(r) for g, r in enumerate(self.classes.rows.tolist()) if g != self.starred]
        return sum(r * r for r in rows) + self.suppressed_rows * self.summary.n_rows

    @property
    def published_rows(self) -> int:
        """The rows in published groups, starred ones included."""
        return int(self.classes.rows.sum())


def groups_as_read(grouping: Grouping) -> Grouping:
    """What a reader sees of groups of people with several rows: those whose labels read alike are one class.

    Where every row is a person, a class that is made of such groups satisfies what each of them does. Somebody with
    rows in two of them counts once, so that it must be counted anew.
    """
    n = grouping.classes.n
    if grouping.summary.personal is None or grouping.changes is not None or grouping.published or n < 2:
        return grouping
    number = np.zeros(n, dtype=np.int64)
    if grouping.starred is not None:
        number[grouping.starred] = 1  # suppressed rows stay apart: they are counted as such
    for labels in grouping.published_labels:
        seen: dict[str | None, int] = {}
        codes = np.array([seen.setdefault(text, len(seen)) for text in labels.texts], dtype=np.int64)
        number = numbered_values(number * len(labels.texts) + codes[labels.of_group])[1]
    found = int(number.max()) + 1
    if found == n:
        return grouping
    least = np.empty(found, dtype=np.int64)
    least[number[::-1]] = np.arange(n)[::-1]
    first = np.sort(least).tolist()
    number = np.argsort(np.argsort(least))[number]
    allocation = grouping.allocation
    groups = np.where(allocation.groups < 0, -1, number[allocation.groups])
    what = allocation.tuples if allocation.cells is None else allocation.cells
    (kept, into), at, inverse = np.unique(
        np.stack([what, groups]), axis=1, return_index=True, return_inverse=True
    )
    merged = Allocation(
        allocation.tuples[at], into, exact_bincount(inverse.reshape(-1), allocation.rows, len(at)),
        None if allocation.cells is None else kept,
    )  # fmt: skip
    renderings = grouping.renderings
    return replace(
        grouping,
        allocation=merged,
        labels=tuple(_labels_of(labels, first) for labels in grouping.labels),
        classes=allocated_classes(grouping.summary, merged, len(first)),
        starred=None if grouping.starred is None else int(number[grouping.starred]),
        ancestors=None if grouping.ancestors is None else grouping.ancestors.merged(number, len(first)),
        renderings=None
        if renderings is None
        else tuple(replace(r, labels=_labels_of(r.labels, first)) for r in renderings),
        trace=replace(grouping.trace, together=None),
    )


def _labels_of(labels: Labels, groups: list[int]) -> Labels:
    """The labels of some groups."""
    return replace(labels, of_group=labels.of_group[groups])


def exact_view(grouping: Grouping) -> Grouping:
    """What quasi-identifiers show when they are published as they are: every tuple is a class of its own.

    Rows that were dropped stay dropped, and starred ones starred; sensitive values are not part of this view, only
    which of them were changed is.
    """
    summary, allocation = grouping.summary, grouping.allocation
    starred = (
        allocation.groups == grouping.starred if grouping.starred is not None else np.zeros(0, dtype=bool)
    )
    shown = (allocation.groups >= 0) & ~starred if len(starred) else allocation.groups >= 0
    rows = np.bincount(allocation.tuples[shown], weights=allocation.rows[shown], minlength=summary.n_tuples)
    tuples = np.flatnonzero(rows)
    n = len(tuples) + bool(starred.any())
    number = np.full(summary.n_tuples, -1, dtype=np.int64)
    number[tuples] = np.arange(len(tuples))
    groups = np.where(allocation.groups < 0, -1, number[allocation.tuples])
    if starred.any():
        groups[starred] = n - 1
    alone = replace(allocation, groups=groups)
    classes = replace(allocated_classes(replace(summary, sensitive={}), alone, n), sensitive={})
    labels = []
    for a, (hierarchy, codes) in enumerate(zip(summary.attributes, summary.codes, strict=True)):
        level = hierarchy.levels[0]
        texts = level.labels if grouping.renderings is None else grouping.renderings[a].ground
        of_group = np.full(n, len(level.labels), dtype=np.int32)
        of_group[: len(tuples)] = level.blocks[codes[tuples]]
        coverage = np.append(level.leaves, hierarchy.base)
        labels.append(Labels(hierarchy.attribute, (*texts, TOP), coverage, of_group))
    changes = grouping.changes
    if changes is not None and summary.cells is not None:
        changes = replace(changes, groups=number[summary.cells.tuples[changes.cells]])
    return Grouping(
        summary, alone if summary.personal is not None else replace(alone, cells=None), tuple(labels), classes,
        tuple(0 for _ in labels), n - 1 if starred.any() else None, grouping.search, changes=changes,
        trace=grouping.trace,
    )  # fmt: skip
