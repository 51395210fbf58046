"""The published labels of groups of whole tuples: per group and attribute the allowed label that covers least.

Classes are what a reader can tell apart, and a reader sees texts: two groups whose labels read the same in every
attribute are one class, whichever levels the texts come from. They are merged and labelled again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.core.classes import Classes, Ints, Originals
from maskwright.core.exact import dot
from maskwright.core.grouping import Allocation, Grouping, Labels
from maskwright.core.hierarchy import Hierarchy
from maskwright.core.method import Task
from maskwright.core.summary import Summary
from maskwright.methods.local_problem import Allowed

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Published:
    """Groups as they would be published.

    Attributes:
        group_of: the group of each tuple, -1: dropped.
        first: a tuple of each group.
        agree: by attribute, allowed level and group: are all its tuples in one block?
        labels: the texts, and what they cover.
        classes: sizes, sensitive counts, and the numbers of the labels.
        starred: the group of the suppressed rows, where they are published as `*`.
    """

    group_of: Ints
    first: Ints
    agree: list[Bools]
    labels: tuple[Labels, ...]
    classes: Classes
    starred: int | None

    def grouping(self, summary: Summary, search: dict[str, Any]) -> Grouping:
        tuples = np.arange(summary.n_tuples, dtype=np.int64)
        allocation = Allocation(tuples, self.group_of, summary.rows)
        classes = Classes(self.classes.sizes, self.classes.rows, self.classes.sensitive)
        return Grouping(summary, allocation, self.labels, classes, None, self.starred, search)


def publish(task: Task, allowed: Allowed, group_of: Ints, star: bool) -> Published | None:
    """Label the groups (numbers may have gaps; -1: suppressed); None where no label covers some group."""
    summary = task.summary
    while True:
        group_of, n = _renumbered(group_of)
        kept = group_of >= 0
        if n == 0:
            return None
        order = np.argsort(group_of, kind="stable")[np.count_nonzero(~kept) :]
        starts = np.searchsorted(group_of[order], np.arange(n))
        found = [_levels(summary, a, allowed[a], order, starts) for a in range(len(allowed))]
        first, levels = order[starts], np.stack([levels for _, levels in found])
        if (levels < 0).any():
            return None
        starred = n if star and not kept.all() else None
        if starred is not None:  # a group like any other, with the top as its label everywhere
            first = np.append(first, np.flatnonzero(~kept)[0])
            levels = np.column_stack([levels, [h.top for h in summary.attributes]])
        labels = tuple(_labels(summary, a, levels[a], first) for a in range(len(allowed)))
        codes = np.stack([x.of_group for x in labels])
        same = np.unique(codes, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
        if int(same.max()) + 1 == len(same):
            break
        # suppressed rows that read like a group are rows of that group
        joined = starred is not None and int((same == same[starred]).sum()) > 1
        group_of = np.where(kept, same[group_of], same[-1] if joined else -1)
    if starred is not None:
        group_of = np.where(kept, group_of, starred)
    classes = replace(
        summary.classes(group_of, len(same)),
        attributes=tuple(h.attribute for h in summary.attributes),
        codes=codes,
        originals=Originals.of(group_of, summary.sizes, len(same)) if "originals" in task.needs() else None,
    )
    return Published(group_of, first, [agree for agree, _ in found], labels, classes, starred)


def _renumbered(group_of: Ints) -> tuple[Ints, int]:
    """The same groups, numbered without gaps."""
    numbers, dense = np.unique(group_of, return_inverse=True)
    gone = int(len(numbers) > 0 and numbers[0] < 0)
    return dense.reshape(-1).astype(np.int64) - gone, len(numbers) - gone


def _levels(
    summary: Summary, a: int, allowed: tuple[int, ...], order: Ints, starts: Ints
) -> tuple[Bools, Ints]:
    """At which levels the groups agree, and the one of them that covers least (ties: the first; -1: none)."""
    hierarchy, codes = summary.attributes[a], summary.codes[a][order]
    agree = np.empty((len(allowed), len(starts)), dtype=bool)
    best = np.full(len(starts), np.iinfo(np.int64).max)
    chosen = np.full(len(starts), -1, dtype=np.int64)
    for p, number in enumerate(allowed):
        level = hierarchy.levels[number]
        block = level.blocks[codes]
        agree[p] = np.minimum.reduceat(block, starts) == np.maximum.reduceat(block, starts)
        covers = np.maximum(level.leaves[block[starts]], 1)
        better = agree[p] & (covers < best)
        best[better], chosen[better] = covers[better], number
    return agree, chosen


def _labels(summary: Summary, a: int, levels: Ints, first: Ints) -> Labels:
    """The texts of one attribute. A text that stands for several blocks covers all of them."""
    hierarchy = summary.attributes[a]
    texts: dict[str | None, int] = {}
    blocks_of: dict[int, list[tuple[int, int]]] = {}
    of_group = np.empty(len(levels), dtype=np.int32)
    for number in np.unique(levels).tolist():
        groups = np.flatnonzero(levels == number)
        level = hierarchy.levels[number]
        used, where = np.unique(level.blocks[summary.codes[a][first[groups]]], return_inverse=True)
        ids = []
        for block in used.tolist():
            ids.append(texts.setdefault(_shown(level.labels[block]), len(texts)))
            blocks_of.setdefault(ids[-1], []).append((number, block))
        of_group[groups] = np.array(ids, dtype=np.int32)[where.reshape(-1)]
    coverage = np.array([_covered(hierarchy, blocks_of[i]) for i in range(len(texts))], dtype=np.int64)
    return Labels(hierarchy.attribute, tuple(texts), coverage, of_group)


def _shown(text: str | None) -> str | None:
    """A label as it is written: without surrounding blanks, and never empty."""
    return (text.strip() or None) if text is not None else None


def _covered(hierarchy: Hierarchy, blocks: list[tuple[int, int]]) -> int:
    """How many ground values lie in any of the blocks."""
    inside = np.zeros(len(hierarchy.values), dtype=bool)
    for number, block in blocks:
        inside |= hierarchy.levels[number].blocks[1:] == block
    return int(inside.sum())


def information_loss(grouping: Grouping, shares: list[Fraction]) -> Fraction:
    """Weighted mean, over attributes and rows, of (coverage − 1)/(base − 1); a suppressed row loses everything.

    An attribute with a single ground value has nothing to lose.
    """
    rows = grouping.classes.rows.copy()
    if grouping.starred is not None:
        rows[grouping.starred] = 0
    loss = Fraction(0)
    for hierarchy, labels, share in zip(grouping.summary.attributes, grouping.labels, shares, strict=True):
        if hierarchy.base > 1:
            extra = np.maximum(labels.coverage[labels.of_group], 1) - 1
            lost = Fraction(dot(extra, rows), hierarchy.base - 1)
            loss += share * (lost + grouping.suppressed_rows)
    return loss / grouping.summary.n_rows
