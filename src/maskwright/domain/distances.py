"""Earth mover's distances between a class and the whole table, exact, for many classes at once.

*equal*: all values are equally far apart, ½Σ|p − q|. *ordered*: m values in a row, equally spaced,
Σ_{i<m} |P_i − Q_i| / (m − 1) with cumulated shares P, Q. *hierarchical*: two values are as far apart as the
height of their lowest common ancestor over the height of the root.

Since every leaf has height 0, the last one is a tree metric in which the edge above a node N is
(height(parent) − height(N)) / 2H long, so the distance is Σ_N length(N)·|p(N) − q(N)|: no transport problem
has to be solved [Li, Li, Venkatasubramanian 2007].
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.segments import LIMIT, Ratios, Whole, class_sums, known_counts
from maskwright.errors import HierarchyError

Kind = Literal["equal", "ordered", "hierarchical"]


@dataclass(frozen=True, eq=False)
class ValueTree:
    """A tree over the values of an attribute.

    `paths[s, v]` is the node s steps above value v (0-based), itself first and the root left out; -1 past the
    root. `edge[node]` is height(parent) − height(node), `height` that of the root.
    """

    paths: NDArray[np.int64]
    edge: NDArray[np.int64]
    height: int

    @staticmethod
    def of_parents(leaves: Sequence[str], parent: Mapping[str, str]) -> ValueTree:
        """From child → parent; every one of `leaves` must be a leaf of the tree."""
        heights = dict.fromkeys([*leaves, *parent, *parent.values()], 0)
        for leaf in heights.keys() - set(parent.values()):
            node, steps = leaf, 0
            while node in parent:
                node, steps = parent[node], steps + 1
                heights[node] = max(heights[node], steps)
        paths = []
        for leaf in leaves:
            if heights[leaf]:
                raise HierarchyError(f"{leaf!r} is not a leaf of its hierarchy")
            path = [leaf]
            while path[-1] in parent:
                path.append(parent[path[-1]])
            paths.append(path[:-1])
        if len({_root(leaf, parent) for leaf in leaves}) > 1:
            raise HierarchyError("the hierarchy has more than one root")
        number = {node: i for i, node in enumerate(dict.fromkeys(n for path in paths for n in path))}
        table = np.full((max(map(len, paths), default=0), len(leaves)), -1, dtype=np.int64)
        for v, path in enumerate(paths):
            table[: len(path), v] = [number[node] for node in path]
        edge = np.array([heights[parent[node]] - heights[node] for node in number], dtype=np.int64)
        return ValueTree(table, edge, heights[_root(leaves[0], parent)] if leaves else 0)

    @staticmethod
    def of_hierarchy(hierarchy: Hierarchy, values: Sequence[str]) -> ValueTree:
        """From the levels of a chain; blocks that do not grow from a level to the next are one node."""
        ladder = np.argsort(hierarchy.heights, kind="stable")
        if not all(hierarchy.refines[a, b] for a, b in itertools.pairwise(ladder)):
            raise HierarchyError(
                f"hierarchical distance needs levels in a chain; those of {hierarchy.attribute!r} branch"
            )
        code = {value: i + 1 for i, value in enumerate(hierarchy.values)}
        for value in values:
            if value not in code:
                raise HierarchyError(f"the hierarchy of {hierarchy.attribute!r} lacks the value {value!r}")
        parent: dict[str, str] = {}
        for value in hierarchy.values:
            node, size = value, 1
            for i in ladder:
                level = hierarchy.levels[i]
                block = int(level.blocks[code[value]])
                if level.leaves[block] > size:
                    above, size = f"\0{i} {block}", int(level.leaves[block])  # no value looks like that
                    parent[node], node = above, above
        return ValueTree.of_parents(list(values), parent)

    def sets(self) -> list[tuple[Fraction, tuple[int, ...]]]:
        """Each node but the root: its weight, and the codes of the values below it."""
        below: dict[int, list[int]] = {}
        for row in self.paths:
            for v in np.flatnonzero(row >= 0).tolist():
                below.setdefault(int(row[v]), []).append(v + 1)
        return [(Fraction(int(self.edge[n]), 2 * self.height), tuple(sorted(vs))) for n, vs in below.items()]


def _root(node: str, parent: Mapping[str, str]) -> str:
    while node in parent:
        node = parent[node]
    return node


def class_distances(
    counts: ValueCounts, reference: Ints, kind: Kind, tree: ValueTree | None = None
) -> Ratios:
    """The distance of each class from the reference (counts by code); missing values are left out of both.

    A class without any value shows no distribution, and has distance 0. A reference without any has distance
    1 to every class that has one.
    """
    present = known_counts(counts)
    here = class_sums(present.counts, present.start)
    whole = reference.copy()
    whole[0] = 0
    total = int(whole.sum())
    if not total:
        return Ratios((here > 0).astype(np.int64), np.ones(len(here), dtype=np.int64))
    m = len(counts.values)
    factor = {"equal": 1, "ordered": m - 1, "hierarchical": 2 * tree.height if tree else 0}[kind]
    if factor == 0:  # a single value, or a tree that is one: nothing can differ
        return Ratios(np.zeros(len(here), dtype=np.int64), np.ones(len(here), dtype=np.int64))
    if len(here) and int(here.max()) * total * max(factor, m) * 2 >= LIMIT:
        here, whole = here.astype(object), whole.astype(object)
        present = replace(present, counts=present.counts.astype(object))
    if kind == "equal":
        moved = _equal(present, here, whole, total)
    elif kind == "ordered":
        moved = _ordered(present, here, whole, total)
    else:
        assert tree is not None  # noqa: S101 - factor would be 0
        moved = _hierarchical(present, here, whole, total, tree)
    return Ratios(moved, np.where(here > 0, here, 1) * (total * factor))


def distance_between(
    counts: Sequence[int], reference: Sequence[int], kind: Kind, tree: ValueTree | None = None
) -> Fraction:
    """The distance between two distributions given by counts of the same values, in order."""
    amounts = np.array(counts, dtype=object)  # Python integers: the counts may be of any size
    there = np.flatnonzero(amounts > 0)
    one = ValueCounts(
        ("",) * len(counts), np.array([0, len(there)]), (there + 1).astype(np.int32), amounts[there], True
    )
    return class_distances(one, np.array([0, *reference], dtype=object), kind, tree)[0]


def _equal(present: ValueCounts, here: Whole, whole: Whole, total: int) -> Whole:
    """Σ of what a class has too much of; the same is missing elsewhere."""
    surplus = present.counts * total - whole[present.codes] * here[present.owner]
    return class_sums(np.maximum(surplus, 0), present.start)


def _ordered(present: ValueCounts, here: Whole, whole: Whole, total: int) -> Whole:
    """Σ_i |C_i·total − R_i·here|. C is constant from one entry of a class to the next, while R rises, so the
    sign changes at most once on the way and prefix sums of R give the stretch on each side of the change.
    """
    order = np.lexsort((present.codes, present.owner))
    codes, counts, owner = present.codes[order].astype(np.int64), present.counts[order], present.owner
    ends = present.start[1:]
    m = len(whole) - 1
    cumulated = np.cumsum(whole[1:])  # R_i
    prefix = np.concatenate([[0], np.cumsum(cumulated)])
    running = np.cumsum(counts)
    before = np.concatenate([[0], running])[present.start[:-1]]
    held = running - before[owner]  # C from this entry to the next
    start, stop = codes - 1, np.empty_like(codes)
    stop[:-1] = start[1:]
    filled = ends[np.diff(present.start) > 0]
    stop[filled - 1] = m
    size = here[owner]
    target = held * total
    turn = np.searchsorted(cumulated, target // size, side="right")
    turn = np.clip(turn, start, stop)
    low = (turn - start) * target - size * (prefix[turn] - prefix[start])
    high = size * (prefix[stop] - prefix[turn]) - (stop - turn) * target
    moved = class_sums(low + high, present.start)
    first = np.zeros(len(here), dtype=np.int64)
    first[owner[filled - 1]] = start[present.start[:-1][np.diff(present.start) > 0]]
    result: Whole = moved + here * prefix[first]  # before the first entry C is 0
    return result


def _hierarchical(present: ValueCounts, here: Whole, whole: Whole, total: int, tree: ValueTree) -> Whole:
    """Σ_N edge(N)·|c(N)·total − r(N)·here|; nodes that a class lacks contribute edge(N)·r(N)·here."""
    n_nodes = len(tree.edge)
    below = np.zeros(n_nodes, dtype=whole.dtype)
    for path in tree.paths:
        np.add.at(below, path[path >= 0], whole[1:][path >= 0])
    node = tree.paths[:, present.codes - 1]
    step, entry = np.nonzero(node >= 0)
    owner, node = present.owner[entry], node[step, entry]
    order = np.lexsort((node, owner))
    owner, node = owner[order], node[order]
    new = np.flatnonzero(np.diff(owner * n_nodes + node, prepend=-1))
    bounds = np.append(new, len(node))
    owner, node = owner[new], node[new]
    inside = class_sums(present.counts[entry][order], bounds)
    expected = below[node] * here[owner]
    change = tree.edge[node] * (abs(inside * total - expected) - expected)
    per_class = np.searchsorted(owner, np.arange(len(here) + 1))
    moved: Whole = class_sums(change, per_class) + here * int((below * tree.edge).sum())
    return moved
