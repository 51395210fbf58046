"""Earth mover's distances equal the cost of the cheapest transport, found by trying every assignment."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.classes import ValueCounts
from maskwright.domain.distances import Kind, ValueTree, class_distances, distance_between
from maskwright.domain.hierarchy import Hierarchy
from maskwright.errors import HierarchyError

LEAVES = ("a", "b", "c", "d", "e")
# uneven, with a chain of single children above e
UNEVEN = {
    "a": "ab",
    "b": "ab",
    "ab": "m",
    "c": "m",
    "m": "top",
    "d": "top",
    "e": "e1",
    "e1": "e2",
    "e2": "top",
}
EVEN = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y", "x": "top", "y": "top"}


def heights(parent: dict[str, str]) -> dict[str, int]:
    def height(node: str) -> int:
        return 1 + max((height(child) for child in parent if parent[child] == node), default=-1)

    return {node: height(node) for node in {*parent, *parent.values()}}


def ground(kind: Kind, i: int, j: int, parent: dict[str, str]) -> Fraction:
    """How far apart two values are, by the definition."""
    if kind == "equal":
        return Fraction(int(i != j))
    if kind == "ordered":
        return Fraction(abs(i - j), len(LEAVES) - 1)
    height = heights(parent)

    def up(leaf: str) -> list[str]:
        path = [leaf]
        while path[-1] in parent:
            path.append(parent[path[-1]])
        return path

    common = next(node for node in up(LEAVES[i]) if node in up(LEAVES[j]))
    return Fraction(height[common], max(height.values()))


def cheapest(kind: Kind, p: list[int], q: list[int], parent: dict[str, str]) -> Fraction:
    cost = [[ground(kind, i, j, parent) for j in range(5)] for i in range(5)]
    return min(
        sum((cost[i][j] for i, j in zip(p, order, strict=True)), Fraction(0)) / len(p)
        for order in set(itertools.permutations(q))
    )


def tally(units: list[int]) -> list[int]:
    return [units.count(i) for i in range(5)]


units = st.integers(1, 5).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n) for _ in range(2)])
)


@given(units, st.sampled_from(["equal", "ordered", "hierarchical"]), st.sampled_from([UNEVEN, EVEN]))
def test_distance_is_the_cheapest_transport(
    pair: tuple[list[int], list[int]], kind: Kind, parent: dict[str, str]
) -> None:
    p, q = pair
    tree = ValueTree.of_parents(LEAVES, parent)
    assert distance_between(tally(p), tally(q), kind, tree) == cheapest(kind, p, q, parent)


@given(st.lists(st.integers(0, 4), min_size=5, max_size=5), st.integers(1, 10**30))
def test_scale_does_not_matter(counts: list[int], scale: int) -> None:
    if not sum(counts):
        counts = [1, 0, 0, 0, 0]
    reference = [3, 1, 0, 2, 5]
    tree = ValueTree.of_parents(LEAVES, UNEVEN)
    for kind in ("equal", "ordered", "hierarchical"):
        plain = distance_between(counts, reference, kind, tree)
        assert distance_between([c * scale for c in counts], reference, kind, tree) == plain
        assert distance_between(counts, [r * scale for r in reference], kind, tree) == plain


@given(st.lists(st.lists(st.integers(0, 6), min_size=6, max_size=6), max_size=4), st.integers(1, 10**17))
def test_many_classes_give_what_one_gives(rows: list[list[int]], scale: int) -> None:
    """Counts include missing (index 0); 64-bit and unlimited integers give the same."""
    cells = [(c, v, n) for c, row in enumerate(rows) for v, n in enumerate(row) if n]
    owner, codes, amounts = (np.array([cell[i] for cell in cells], dtype=np.int64) for i in range(3))
    counts = ValueCounts.collect(LEAVES, len(rows), owner, codes, amounts)
    reference = [2, 3, 1, 0, 4, 1]
    tree = ValueTree.of_parents(LEAVES, UNEVEN)
    for kind in ("equal", "ordered", "hierarchical"):
        expected = [
            distance_between(row[1:], reference[1:], kind, tree) if sum(row[1:]) else 0 for row in rows
        ]
        assert list(class_distances(counts, np.array(reference), kind, tree)) == expected
        assert list(class_distances(counts, np.array(reference) * scale, kind, tree)) == expected


def test_degenerate_domains() -> None:
    assert distance_between([3], [5], "ordered") == 0
    assert distance_between([3], [5], "hierarchical", ValueTree.of_parents(["a"], {})) == 0
    assert distance_between([3], [5], "equal") == 0
    assert distance_between([3, 0], [0, 0], "equal") == 1  # nothing to compare with


def test_levels_and_tree_of_the_same_hierarchy_agree() -> None:
    levels = Hierarchy.of(
        "x", LEAVES, [("one", ["ab", "ab", "c", "d", "e"]), ("two", ["m", "m", "m", "d", "e"])]
    )
    parent = {"a": "ab", "b": "ab", "ab": "m", "c": "m", "m": "*", "d": "*", "e": "*"}
    left, right = ValueTree.of_hierarchy(levels, LEAVES), ValueTree.of_parents(LEAVES, parent)
    p, q = [1, 2, 0, 1, 0], [1, 1, 1, 1, 3]
    assert left.height == right.height == 3
    assert distance_between(p, q, "hierarchical", left) == distance_between(p, q, "hierarchical", right)


def test_the_weighted_sets_of_a_tree_give_the_same_distance() -> None:
    tree = ValueTree.of_parents(LEAVES, UNEVEN)
    p, q = [1, 2, 0, 1, 0], [1, 1, 1, 1, 3]
    summed = sum(
        weight
        * abs(Fraction(sum(p[v - 1] for v in codes), sum(p)) - Fraction(sum(q[v - 1] for v in codes), sum(q)))
        for weight, codes in tree.sets()
    )
    assert distance_between(p, q, "hierarchical", tree) == summed


def test_what_is_no_tree_is_refused() -> None:
    with pytest.raises(HierarchyError, match="'x' is not a leaf"):
        ValueTree.of_parents(["a", "x"], {"a": "x"})
    with pytest.raises(HierarchyError, match="more than one root"):
        ValueTree.of_parents(["a", "b"], {"a": "x", "b": "y"})
