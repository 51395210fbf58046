"""Refusals: nodes that a full-domain search would rather have published, and refused because of sensitive values.

A search for the best, the lowest or a minimal node never publishes a node when a finer one that suppresses the same
rows satisfies the models. So whoever knows the method knows: at every *immediately finer* node that suppresses the same
rows and passes every requirement about quasi-identifiers, some class fails a model of sensitive values. (For models
that survive merging, nodes finer still tell nothing more: if they passed, so would these.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from maskwright.domain.adversary import Target
from maskwright.domain.classes import Classes, Ints
from maskwright.domain.grouping import Grouping
from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.domain.model import Model
from maskwright.domain.summary import Summary

Node = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RefusedParts:
    """A finer partition of what was published.

    Attributes:
        node: its levels; None where it is not a node of the lattice.
        words: what it is, for people.
        class_of: the part of each tuple; −1 for tuples that are not published, or are published as `*`.
        sizes: people of each part.
        group: the published group of each part.
    """

    node: Node | None
    words: str
    class_of: Ints
    sizes: Ints
    group: Ints

    @staticmethod
    def of(grouping: Grouping, class_of: Ints, node: Node | None, words: str) -> RefusedParts:
        """The parts that are numbered by `class_of` (−1: none), renumbered from 0 on without gaps."""
        inside = np.flatnonzero(class_of >= 0)
        _, number = np.unique(class_of[inside], return_inverse=True)
        dense = np.full(len(class_of), -1, dtype=np.int64)
        dense[inside] = number.reshape(-1)
        n = int(dense.max(initial=-1)) + 1
        sizes, group = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        np.add.at(sizes, dense[inside], grouping.summary.sizes[inside])
        group[dense[inside]] = group_of_tuples(grouping)[inside]
        return RefusedParts(node, words, dense, sizes, group)

    def classes(self, summary: Summary) -> Classes:
        """The parts with their true values."""
        return summary.classes(self.class_of, len(self.sizes))


def group_of_tuples(grouping: Grouping) -> Ints:
    """The published group of each tuple; −1: dropped. Only where the rows of a tuple stay together."""
    result = np.full(grouping.summary.n_tuples, -1, dtype=np.int64)
    result[grouping.allocation.tuples] = grouping.allocation.groups
    return result


def _varied_groups(grouping: Grouping) -> Ints:
    """The group of each tuple without the starred group, whose classes were too small whatever their values."""
    result = group_of_tuples(grouping)
    if grouping.starred is not None:
        result[result == grouping.starred] = -1
    return result


def raw_classes(grouping: Grouping, starred: bool = False) -> RefusedParts:
    """The classes of the table before recoding, inside each published class; of the starred one only if asked."""
    published = group_of_tuples(grouping) if starred else _varied_groups(grouping)
    tuples = np.where(published >= 0, np.arange(grouping.summary.n_tuples), -1)
    return RefusedParts.of(grouping, tuples, None, "exact values")


def node_classes(summary: Summary, node: Node) -> tuple[Ints, int]:
    """The class of each tuple when it is recoded to a node."""
    number, n = np.zeros(summary.n_tuples, dtype=np.int64), 1
    for hierarchy, codes, level in zip(summary.attributes, summary.codes, node, strict=True):
        blocks = hierarchy.levels[level].blocks[codes].astype(np.int64)
        unique, number = np.unique(number * (int(blocks.max(initial=0)) + 1) + blocks, return_inverse=True)
        number, n = number.reshape(-1), len(unique)
    return number, n


def finer_nodes(summary: Summary, node: Node) -> list[tuple[Node, str]]:
    """The immediately finer nodes, with what would be finer there."""
    found = []
    for a, hierarchy in enumerate(summary.attributes):
        for level in _below(hierarchy, node[a]):
            words = f"{hierarchy.attribute} at level {hierarchy.levels[level].name}"
            found.append(((*node[:a], level, *node[a + 1 :]), words))
    return found


def _below(hierarchy: Hierarchy, level: int) -> list[int]:
    """The immediate refinements of a level; only those that separate anything."""
    return [i for i, above in enumerate(hierarchy.covers) if level in above]


def finest_levels(grouping: Grouping, nodes: Sequence[Node]) -> Node:
    """The level of each attribute that tells most apart, of those that a release and some nodes use."""
    assert grouping.levels is not None  # noqa: S101 - for the type checker
    found = []
    for a, hierarchy in enumerate(grouping.summary.attributes):
        used = {grouping.levels[a], *(node[a] for node in nodes)}
        found.append(max(used, key=[len(level.labels) for level in hierarchy.levels].__getitem__))
    return tuple(found)


Reason = Literal["refused", "no finer", "other rows", "sizes"]


def _judge_node(target: Target, node: Node, words: str) -> tuple[Reason, RefusedParts | None]:
    """The reason why a finer node was refused, and its classes if that was because of sensitive values.

    "no finer": its classes are those that were published; "other rows": it would suppress other rows, so that the
    objective may have spoken against it; "sizes": a requirement about quasi-identifiers fails there.
    """
    grouping, summary = target.grouping, target.grouping.summary
    search = [m for m in target.models if m.use == "search"]
    class_of, n = node_classes(summary, node)
    classes = summary.classes(class_of, n)
    kept = _varied_groups(grouping) >= 0
    if not np.array_equal(classes.sizes[class_of] >= target.least_people, kept):
        return "other rows", None
    parts = RefusedParts.of(grouping, np.where(kept, class_of, -1), node, words)
    if len(parts.sizes) == len(np.unique(parts.group)):
        return "no finer", None
    for model in search:
        if model.about == "sensitive":
            continue
        if model.needs() or not model.passing(parts.classes(summary), target.context).all():
            return "sizes", None
    return "refused", parts


def find_refusals(target: Target) -> tuple[list[RefusedParts], dict[str, str]]:
    """The finer nodes that were refused because of values; and why the others tell nothing."""
    assert target.grouping.levels is not None  # noqa: S101 - for the type checker
    found, others = [], {}
    for node, words in finer_nodes(target.grouping.summary, target.grouping.levels):
        reason, parts = _judge_node(target, node, words)
        if parts is not None:
            found.append(parts)
        else:
            others[words] = EXPLAINED[reason]
    return found, others


EXPLAINED: dict[Reason, str] = {
    "no finer": "would publish the same classes",
    "other rows": "would suppress other rows, so it may have been refused for its loss",
    "sizes": "fails a requirement about quasi-identifiers, whatever the values",
}


def some_levels_were_excluded(grouping: Grouping) -> bool:
    """Whether the policy excluded levels from the search, so that a finer node may never have been tried."""
    nodes = grouping.trace.nodes
    return nodes is not None and nodes != math.prod(len(h.levels) for h in grouping.summary.attributes)


def part_in_words(target: Target, parts: RefusedParts, part: int) -> str:
    """The people of one part in words: `each of the 2 people with age 30-34, sex m`."""
    grouping, size = target.grouping, int(parts.sizes[part])
    first = int(np.flatnonzero(parts.class_of == part)[0])
    node = parts.node or (0,) * len(grouping.summary.attributes)
    labels = []
    for hierarchy, codes, level in zip(
        grouping.summary.attributes, grouping.summary.codes, node, strict=True
    ):
        text = hierarchy.levels[level].labels[hierarchy.levels[level].blocks[codes[first]]]
        if text != TOP:
            labels.append(f"{hierarchy.attribute} {'(missing)' if text is None else text}")
    who = "the only person" if size == 1 else f"each of the {size} people"
    return f"{who} with {', '.join(labels)}" if labels else who


def looked_at_values(models: Sequence[Model]) -> list[Model]:
    """The models that made the method look at sensitive values."""
    return [m for m in models if m.use == "search" and m.about == "sensitive"]
