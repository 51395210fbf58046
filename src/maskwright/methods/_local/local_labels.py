"""Labels in local recoding: their prices, as a clustering problem, and those that groups of whole tuples are given.

A group is published under the allowed label of each attribute that covers least. Classes are what a reader can tell
apart, and a reader sees texts: two groups whose labels read the same in every attribute are one class, whichever levels
the texts come from. They are merged and labelled again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints, Originals
from maskwright.domain.exact import exact_dot
from maskwright.domain.grouping import Allocation, Grouping, Labels
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Task
from maskwright.domain.model import fewest_rows
from maskwright.domain.summary import Summary
from maskwright.kernels.clusters import STATES, ClusterProblem, Codes, TrieColumn, chain_column, dag_column

Bools = NDArray[np.bool_]
SCALE = 1 << 20  # the price of a row that has lost everything, where every attribute has something to lose
Allowed = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class LabelledGroups:
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
        """The grouping that these groups make."""
        tuples = np.arange(summary.n_tuples, dtype=np.int64)
        allocation = Allocation(tuples, self.group_of, summary.rows)
        classes = Classes(self.classes.sizes, self.classes.rows, self.classes.sensitive)
        return Grouping(
            summary, allocation, self.labels, classes, None, self.starred, search, labelling="blocks"
        )


def labelled_groups(task: Task, allowed: Allowed, group_of: Ints, star: bool) -> LabelledGroups | None:
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
    return LabelledGroups(group_of, first, [agree for agree, _ in found], labels, classes, starred)


def _renumbered(group_of: Ints) -> tuple[Ints, int]:
    """Groups numbered anew, without gaps."""
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
            lost = Fraction(exact_dot(extra, rows), hierarchy.base - 1)
            loss += share * (lost + grouping.suppressed_rows)
    return loss / grouping.summary.n_rows


def attribute_shares(task: Task) -> list[Fraction]:
    """How much each quasi-identifier weighs in the loss; they sum to 1."""
    raw = [task.weights.get(h.attribute, Fraction(1)) for h in task.summary.attributes]
    total = sum(raw)
    return [w / total for w in raw] if total else [Fraction(1, len(raw))] * len(raw)


def label_prices(hierarchy: Hierarchy, share: Fraction, level: int) -> Ints:
    """By code, the price of its label at a level: share·(coverage − 1)/(base − 1), in units of 1/`SCALE`."""
    unit = share * SCALE / max(1, hierarchy.base - 1)
    leaves, where = np.unique(np.maximum(hierarchy.levels[level].leaves, 1), return_inverse=True)
    by_block = np.array([int(unit * (n - 1)) for n in leaves.tolist()], dtype=np.int64)[where.reshape(-1)]
    return np.asarray(by_block[hierarchy.levels[level].blocks])


def problem_of(task: Task, allowed: Allowed, neighbours: int, limit: int) -> tuple[ClusterProblem, Ints]:
    """The problem, and the tuple at each place of its order.

    Values are numbered at random, so that ties, which go to the first tuple, are broken at random. Attributes
    with few values come first: then most of the tree of tuples need not be visited to find the nearest.
    """
    summary = task.summary
    made = [_column(task, a, allowed[a]) for a in range(len(allowed))]
    made.sort(key=lambda column: len(column.price))
    order = np.lexsort([column.codes for column in reversed(made)])
    columns = tuple(
        TrieColumn(np.ascontiguousarray(c.codes[order]), c.blocks, c.meet, c.price, c.table) for c in made
    )
    rows = np.ascontiguousarray(summary.rows[order], dtype=np.int64)
    sizes = np.ascontiguousarray(_people(task)[order], dtype=np.int64)
    width = max(1, min(neighbours, summary.n_tuples - 1))
    weights = zip(summary.attributes, attribute_shares(task), strict=True)
    full = int(SCALE * sum(share for hierarchy, share in weights if hierarchy.base > 1))
    least = fewest_rows(task.search, task.context, named=False)  # where clustering starts from
    return ClusterProblem(columns, rows, sizes, least, width, limit, full), order


def _column(task: Task, a: int, allowed: tuple[int, ...]) -> TrieColumn:
    hierarchy, share = task.summary.attributes[a], attribute_shares(task)[a]
    used, found = np.unique(task.summary.codes[a], return_inverse=True)
    number = task.rng.permutation(len(used))
    codes = number[found.reshape(-1)].astype(np.int32)
    used = used[np.argsort(number)]

    def _tables(levels: tuple[int, ...]) -> tuple[Codes, Codes, Codes]:
        blocks = np.stack([hierarchy.levels[n].blocks[used] for n in levels]).astype(np.int32)
        costs = np.stack([label_prices(hierarchy, share, n)[used] for n in levels]).astype(np.int32)
        return codes, np.ascontiguousarray(blocks), costs

    chain = _chain(hierarchy, allowed)
    if len(chain) < len(allowed):
        column = dag_column(*_tables(allowed))
        if column is not None:
            return column
    if len(chain) >= STATES:
        chain = (*chain[: STATES - 2], chain[-1])
    return chain_column(*_tables(chain))


def _chain(hierarchy: Hierarchy, allowed: tuple[int, ...]) -> tuple[int, ...]:
    """The allowed levels, or those that form a chain with the finest."""
    kept = [allowed[0]]
    for level in allowed[1:]:
        if hierarchy.refines[kept[-1], level]:
            kept.append(level)
    return tuple(kept)


def _people(task: Task) -> Ints:
    """People of each tuple. Somebody with rows in several tuples counts in one of them, drawn at random: then the
    sizes of any tuples add up to no more people than are there."""
    summary = task.summary
    if summary.shared is None:
        return summary.sizes
    entries = task.rng.permutation(len(summary.shared.people))
    _, first = np.unique(summary.shared.people[entries], return_index=True)
    homes = summary.shared.tuples[entries[first]]
    return np.asarray(summary.sizes + np.bincount(homes, minlength=summary.n_tuples))
