"""Rows, axes, orders and labels: the parts that the methods which partition rows share."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from maskwright.domain.hierarchy import Hierarchy
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.kernels import partition
from maskwright.kernels.tuple_orders import (
    allocation_entries,
    arrange_cells,
    by_digits,
    hilbert_digits,
    rank_matrix,
)
from maskwright.methods._rows.axes import axis_of
from maskwright.methods._rows.group_labels import label_groups
from maskwright.methods._rows.row_orders import arranged_rows
from maskwright.methods._rows.rows import Partition, Rows, to_grouping
from maskwright.models import MODELS
from tests.amounts import repeated
from tests.methods.row_tables import build, holds


def test_rows_are_expanded_in_random_order() -> None:
    table = build([[0], [0], [1]], {"s": ["a", "b", "a"]})
    orders = [tuple(Rows.expand(table.task([], seed), "test").cells.tolist()) for seed in range(30)]
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    assert len(set(orders)) > 3


def test_numbers_keep_their_distances_and_missing_comes_first() -> None:
    axis = axis_of(Hierarchy.of("a", ["-1.5", "0", "10"], [], ordered=True))
    assert axis.rank.tolist() == [0, 1, 2, 3]
    assert (axis.position[1:] - axis.position[1]).tolist() == [0, 3, 23]
    assert axis.position[0] < axis.position[1]
    dates = axis_of(Hierarchy.of("a", ["2024-01-01", "2024-05-01"], [], ordered=True))
    assert dates.position.tolist() == [0, 1, 2]
    wide = axis_of(Hierarchy.of("a", ["0", str(10**12)], [], ordered=True))
    assert wide.position.tolist() == [0, 1, 2]


def test_values_without_an_order_follow_their_tree() -> None:
    levels = [("kind", ["fruit", "root", "fruit", "root"]), ("place", ["x", "y", "x", "y"])]
    axis = axis_of(Hierarchy.of("a", ["apple", "beet", "cherry", "dill"], levels))
    assert [axis.hierarchy.values[c - 1] for c in axis.code[1:]] == ["apple", "cherry", "beet", "dill"]
    assert axis.rank[axis.code].tolist() == [0, 1, 2, 3, 4]


def test_lexicographic_order_with_a_priority() -> None:
    qi = [[2, 0], [1, 1], [0, 0], [1, 0]]
    table = build(qi, {})
    by_first = arranged_rows(table.task([]), "lexicographic", ["q0"], "test")
    assert [qi[i] for i in _rows(table.rows, by_first)] == sorted(qi)
    by_size = arranged_rows(table.task([]), "lexicographic", None, "test")  # q1 has fewer values
    assert [qi[i] for i in _rows(table.rows, by_size)] == sorted(qi, key=lambda row: (row[1], row[0]))
    with pytest.raises(PolicyError, match="twice"):
        arranged_rows(table.task([]), "lexicographic", ["q0", "q0"], "test")


def _rows(before: Rows, after: Rows) -> list[int]:
    return [int(np.flatnonzero(before.cells == cell)[0]) for cell in after.cells]


def test_equal_tuples_are_listed_in_every_order_alike() -> None:
    """Three rows of one tuple, with different values, between two others: six orders, about equally often."""
    table = build([[0], [1], [1], [1], [2]], {"s": ["a", "a", "b", "c", "b"]})
    seen = Counter(
        tuple(arranged_rows(table.task([], seed), "lexicographic", None, "test").cells.tolist())
        for seed in range(600)
    )
    assert len(seen) == 6
    assert all(cells[0] == 0 and cells[4] == 4 for cells in seen)
    assert min(seen.values()) > 60


def test_wide_keys_sort_like_tuples() -> None:
    rng = np.random.default_rng(0)
    qi = [[int(v) for v in rng.integers(0, 300, 9)] for _ in range(200)]
    table = build(qi, {})
    names = [f"q{a}" for a in range(9)]
    found = arranged_rows(table.task([]), "lexicographic", names, "test")
    assert [qi[i] for i in _rows(table.rows, found)] == sorted(qi)


@pytest.mark.parametrize(("d", "bits"), [(1, 3), (2, 1), (2, 3), (3, 2), (5, 1), (3, 5)])
def test_neighbours_on_the_curve_are_neighbours_in_space(d: int, bits: int) -> None:
    points = list(itertools.product(range(1 << bits), repeat=d))
    digits, radix = hilbert_digits(np.array(points, dtype=np.int32).T, [1 << bits] * d)
    assert len({tuple(int(w[i]) for w in digits) for i in range(len(points))}) == len(points)
    for a, b in itertools.pairwise(by_digits(digits, radix).tolist()):
        assert sum(abs(x - y) for x, y in zip(points[a], points[b], strict=True)) == 1


@pytest.mark.parametrize("seed", repeated(40))
def test_the_compiled_orders_and_their_twins_agree(seed: int) -> None:
    if partition.compiled is None:
        pytest.skip("no compiled kernel")
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 500)), int(rng.integers(1, 12))
    sizes = [int(s) for s in rng.choice([1, 2, 3, 10, 100, 5000, 2**16, 2**17 + 1], d)]
    ranks = np.stack([rng.integers(0, s, n) for s in sizes]).astype(np.int32)
    (ours, radix), (theirs, _) = hilbert_digits(ranks, sizes), hilbert_digits(ranks, sizes, None)
    assert np.array_equal(np.stack(ours), np.stack(theirs))
    assert all(int(digit.min()) >= 0 and int(digit.max()) < r for digit, r in zip(ours, radix, strict=True))
    tables = [rng.permutation(s).astype(np.int32) for s in sizes]
    assert np.array_equal(rank_matrix(ranks, tables), rank_matrix(ranks, tables, None))
    rows = rng.integers(0, 40, n)
    keys = rng.integers(0, 5 if seed % 2 else 2**63, int(rows.sum())).astype(np.uint64)
    cells = rng.integers(0, 9, len(keys)).astype(np.int32)
    sorting = rng.permutation(n).astype(np.int32)
    assert np.array_equal(
        arrange_cells(sorting, rows, keys, cells), arrange_cells(sorting, rows, keys, cells, None)
    )
    sizes_of = np.bincount(cells, minlength=9)
    listed = rng.permutation(cells)[: int(rng.integers(0, len(cells) + 1))]
    start = np.unique(np.concatenate([[0, len(listed)], rng.integers(0, len(listed) + 1, 20)]))
    expected = Counter((int(c), -1) for c in range(9) for _ in range(sizes_of[c] - int((listed == c).sum())))
    for g, (lo, hi) in enumerate(itertools.pairwise(start.tolist())):
        expected.update((c, g) for c in listed[lo:hi].tolist())
    for kernel in (partition.compiled, None):
        found = [column.tolist() for column in allocation_entries(listed, start, sizes_of, kernel)]
        assert list(zip(*found, strict=True)) == [(*key, expected[key]) for key in sorted(expected)]
        too_many = np.append(cells, np.int32(seed % 9))  # one row more than the cell has
        with pytest.raises(ValueError, match="do not fit"):
            allocation_entries(too_many, np.array([0, len(too_many)]), sizes_of, kernel)
        with pytest.raises(ValueError, match="do not fit"):
            allocation_entries(np.array([9], dtype=np.int32), np.array([0, 1]), sizes_of, kernel)
    with pytest.raises(ValueError, match="do not fit"):
        rank_matrix(ranks + 1, [table[:1] for table in tables])


def labelled(
    hierarchy: Hierarchy, groups: list[list[str | None]], style: str = "hierarchy", levels: object = None
) -> list[tuple[str | None, int]]:
    rows = [[v] for group in groups for v in group]
    table = build(rows, {}, [hierarchy])
    start = np.concatenate([[0], np.cumsum([len(g) for g in groups])])
    allowed = {} if levels is None else {"a": levels}
    (labels,), _ = label_groups(table.summary, allowed, style, table.rows.tuples, start)  # type: ignore[arg-type]
    return [(labels.texts[i], int(labels.coverage[i])) for i in labels.of_group]


def test_labels_are_the_smallest_block() -> None:
    tree = Hierarchy.of("a", list("abcd"), [("pairs", ["ab", "ab", "cd", "cd"])])
    groups = [["a", "a"], ["a", "b"], ["b", "c"], [None, None], [None, "a"]]
    assert labelled(tree, groups) == [("a", 1), ("ab", 2), ("*", 4), (None, 0), ("*", 4)]
    assert labelled(tree, [["a"], ["d"]], levels=[1, 2]) == [("ab", 2), ("cd", 2)]
    with pytest.raises(PolicyNotMet, match="allow the top level"):
        labelled(tree, [["a", "c"]], levels=[0, 1])


def test_a_dag_gives_the_smaller_of_two_blocks() -> None:
    levels = [("wide", ["x", "x", "x", "y"]), ("other", ["p", "q", "p", "q"])]
    dag = Hierarchy.of("a", list("abcd"), levels, chain=False)
    assert labelled(dag, [["a", "c"], ["a", "b"], ["b", "d"], ["a", "d"]]) == [
        ("p", 2),
        ("x", 3),
        ("q", 2),
        ("*", 4),
    ]


def test_ranges_and_sets() -> None:
    ages = Hierarchy.of("a", ["20", "25", "30", "35"], [], ordered=True)
    assert labelled(ages, [["20", "30"], ["25"], ["20", "35"], [None, "20"], [None]]) == [
        ("20-30", 3), ("25", 1), ("*", 4), ("*", 4), (None, 0)]  # fmt: skip
    cold = Hierarchy.of("a", ["-5", "0", "5"], [], ordered=True)
    assert labelled(cold, [["-5", "0"]]) == [("-5..0", 2)]
    tens = Hierarchy.of("a", ["20", "25", "30", "35"], [("ten", ["20s", "20s", "30s", "30s"])], ordered=True)
    assert labelled(tens, [["25", "30"]], "ranges") == [("25-30", 2)]
    assert labelled(tens, [["25", "30"]]) == [("*", 4)]
    assert labelled(tens, [["25", "25"]], "ranges", levels=[1, 2]) == [
        ("20s", 2)
    ]  # levels are obeyed in any style
    colours = Hierarchy.of("a", ["red", "green", "blue"], [])
    assert labelled(colours, [["red", "blue"], ["red", "green", "blue"], ["red"], [None, "red"]]) == [
        ("{red, blue}", 2), ("*", 3), ("red", 1), ("*", 3)]  # fmt: skip
    commas = Hierarchy.of("a", ["x, y", "x", "y, z"], [])
    assert labelled(commas, [["x, y", "x"]]) == [('{"x, y", "x"}', 2)]
    many = Hierarchy.of("a", [f"v{i:03d}" for i in range(150)], [])
    assert labelled(many, [["v001", "v149"], ["v070"]]) == [("{v001, v149}", 2), ("v070", 1)]


@pytest.mark.parametrize("seed", repeated(30))
def test_any_partition_makes_a_grouping(seed: int) -> None:
    """Two sensitive columns, missing values, dropped rows, all kinds of hierarchy."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    hierarchies = [
        Hierarchy.of("a", list("abcd"), [("pairs", ["ab", "ab", "cd", "cd"])]),
        Hierarchy.of("b", ["1", "2", "3"], [], ordered=True),
        Hierarchy.of("c", ["x", "y", "z"], []),
    ]
    values = [[None, *h.values] for h in hierarchies]
    qi = [[v[int(rng.integers(0, len(v)))] for v in values] for _ in range(n)]
    sensitive = {name: [["u", "v", None][int(rng.integers(0, 3))] for _ in range(n)] for name in ("s", "t")}
    table = build(qi, sensitive, hierarchies, {"s": ["u", "v"], "t": ["u", "v"]})
    group_of = rng.integers(-1, 4, n).astype(np.int32)
    group_of[0] = 0
    kept = np.unique(group_of[group_of >= 0])
    group_of = np.where(group_of >= 0, np.searchsorted(kept, group_of), -1).astype(np.int32)
    task = table.task([MODELS["k-anonymity"](k=1)])
    grouping = to_grouping(task, table.rows, Partition.of_groups(group_of), "hierarchy", {})
    holds(grouping, task)
    assert grouping.dropped_rows == int((group_of < 0).sum())
    assert grouping.classes.sizes.tolist() == np.bincount(group_of[group_of >= 0]).tolist()
