"""Hierarchies against brute force over pairs of values, and their stored form."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.errors import HierarchyError


def partition(hierarchy: Hierarchy, level: int) -> dict[str, object]:
    """Value → block of one level."""
    blocks = hierarchy.levels[level].blocks
    return {value: int(blocks[i + 1]) for i, value in enumerate(hierarchy.values)}


def refines_by_pairs(fine: dict[str, object], coarse: dict[str, object]) -> bool:
    return all(coarse[a] == coarse[b] for a in fine for b in fine if fine[a] == fine[b])


def longest_path(edges: dict[int, set[int]], start: int, end: int) -> int:
    if start == end:
        return 0
    return max((1 + longest_path(edges, j, end) for j in edges[start]), default=-(10**6))


def check_against_brute_force(hierarchy: Hierarchy) -> None:
    """Order, heights, covers, coverage: everything recomputed from the blocks of every pair of values."""
    n = len(hierarchy.levels)
    parts = [partition(hierarchy, i) for i in range(n)]
    order = [[refines_by_pairs(parts[i], parts[j]) for j in range(n)] for i in range(n)]
    if len(hierarchy.values) <= 1:  # the top equals the exact level, and is still the coarser of the two
        order = [[j >= i for j in range(n)] for i in range(n)]
    assert hierarchy.refines.tolist() == order
    for i in range(n):
        for j in range(i):
            assert not order[i][j], "a level comes after all that refine it, and no two are equal"
    strict = {i: {j for j in range(n) if j != i and order[i][j]} for i in range(n)}
    hasse = {i: {j for j in strict[i] if not any(j in strict[m] for m in strict[i])} for i in range(n)}
    assert [set(c) for c in hierarchy.covers] == [hasse[i] for i in range(n)]
    assert hierarchy.heights.tolist() == [longest_path(hasse, 0, j) for j in range(n)]
    assert hierarchy.height == longest_path(hasse, 0, n - 1)
    for i, level in enumerate(hierarchy.levels):
        assert level.leaves.sum() == len(hierarchy.values)
        for block, label in enumerate(level.labels):
            assert level.leaves[block] == sum(b == block for b in parts[i].values())
            assert (label is None) == (block == 0 and i < n - 1)
        assert len(set(level.labels)) == len(level.labels)
        assert level.blocks[0] == 0
    assert hierarchy.levels[-1].labels == (TOP,)
    assert partition(hierarchy, 0) == {v: i + 1 for i, v in enumerate(hierarchy.values)}


@st.composite
def random_levels(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, list[str]]]]:
    n = draw(st.integers(0, 7))
    labels = st.lists(st.sampled_from("ABC"), min_size=n, max_size=n)
    levels = draw(st.lists(labels, max_size=4))
    return [f"v{i}" for i in range(n)], [(f"l{i}", level) for i, level in enumerate(levels)]


@given(random_levels())
def test_any_partitions_form_a_partial_order(case: tuple[list[str], list[tuple[str, list[str]]]]) -> None:
    hierarchy = Hierarchy.of("x", *case, chain=False)
    check_against_brute_force(hierarchy)
    kept = {tuple(partition(hierarchy, i).values()) for i in range(len(hierarchy.levels))}
    for name, labels in case[1]:
        wanted = tuple(labels.index(label) for label in labels)
        numbered = {tuple(p.index(b) for b in p) for p in kept}
        assert wanted in numbered, f"partition {name} was lost"


@given(random_levels())
def test_a_chain_is_accepted_iff_every_pair_nests(
    case: tuple[list[str], list[tuple[str, list[str]]]],
) -> None:
    values, levels = case
    parts = [dict(zip(values, labels, strict=True)) for _, labels in levels]
    nests = all(refines_by_pairs(a, b) for a, b in pairwise(parts))
    if nests:
        hierarchy = Hierarchy.of("x", values, levels)
        check_against_brute_force(hierarchy)
        assert hierarchy.is_chain
    else:
        with pytest.raises(HierarchyError, match=r"together at level .* but apart at the coarser level"):
            Hierarchy.of("x", values, levels)


def test_a_nesting_error_names_both_values() -> None:
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.of("job", ["a", "b", "c"], [("one", ["X", "X", "Y"]), ("two", ["P", "Q", "Q"])])
    assert "'a' and 'b'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_constant_level_below_a_finer_one_is_refused() -> None:
    with pytest.raises(HierarchyError, match="'a' and 'b' are together"):
        Hierarchy.of("job", ["a", "b"], [("one", ["X", "X"]), ("two", ["P", "Q"])])


def test_a_value_listed_twice_is_refused() -> None:
    with pytest.raises(HierarchyError, match="'b' is listed twice"):
        Hierarchy.of("job", ["a", "b", "b"], [])


def test_a_level_number_wins_over_a_name() -> None:
    levels = [("2", ["x", "x", "y", "z"]), ("one", ["x", "x", "y", "y"])]
    hierarchy = Hierarchy.of("job", ["a", "b", "c", "d"], levels)
    assert [hierarchy.level_of(x) for x in (0, "1", 2, "one", "exact", "any")] == [0, 1, 2, 2, 0, 3]
    with pytest.raises(HierarchyError, match=r"no level 'two'; it has 0 \(exact\), 1 \(2\)"):
        hierarchy.level_of("two")


@given(random_levels(), st.booleans())
def test_the_stored_form_gives_back_the_hierarchy(
    case: tuple[list[str], list[tuple[str, list[str]]]], ordered: bool
) -> None:
    hierarchy = Hierarchy.of("x", *case, chain=False, ordered=ordered)
    again = Hierarchy.from_dict(json.loads(json.dumps(hierarchy.to_dict())))
    assert (again.attribute, again.values, again.ordered) == ("x", hierarchy.values, ordered)
    assert np.array_equal(again.refines, hierarchy.refines)
    for mine, theirs in zip(hierarchy.levels, again.levels, strict=True):
        assert (mine.name, mine.labels) == (theirs.name, theirs.labels)
        assert np.array_equal(mine.blocks, theirs.blocks)


@pytest.mark.parametrize(
    "damage",
    [
        {"values": None},
        {"values": ["a", 3]},
        {"levels": [{"name": "x", "labels": ["only one"]}]},
        {"levels": [{"name": "x"}]},
        {"levels": 5},
        {"chain": "yes"},
        {"attribute": None},
    ],
)
def test_a_damaged_store_is_refused(damage: dict[str, object]) -> None:
    stored = Hierarchy.of("x", ["a", "b"], []).to_dict()
    assert Hierarchy.from_dict(stored).values == ("a", "b")
    with pytest.raises(HierarchyError, match="stored hierarchy is damaged"):
        Hierarchy.from_dict({**stored, **damage})
    with pytest.raises(HierarchyError, match="stored hierarchy is damaged"):
        Hierarchy.from_dict({key: value for key, value in stored.items() if key not in damage})


@given(st.data())
def test_a_range_and_a_set_are_read_as_they_were_written(data: st.DataObject) -> None:
    """Values that look like numbers, ranges, lists or JSON themselves."""
    text = st.text(st.sampled_from('12-.,{}" a\\'), min_size=1, max_size=4).map(str.strip).filter(bool)
    values = data.draw(st.lists(text, min_size=3, max_size=6, unique=True))
    hierarchy = Hierarchy.of("zip", values, [("top", [TOP] * len(values))])
    codes = sorted(data.draw(st.sets(st.integers(1, len(values)), min_size=2)))
    written = hierarchy.value_labels.set_label(codes)
    if written not in values:
        assert hierarchy.codes_of(written, len(codes)).tolist() == codes
    first, last = codes[0], codes[-1]
    pairs = [(a, b) for a in range(1, len(values) + 1) for b in range(a + 1, len(values) + 1)]
    texts = [hierarchy.value_labels.range_label(a, b) for a, b in pairs if b - a == last - first]
    written = hierarchy.value_labels.range_label(first, last)
    if texts.count(written) == 1:  # a text that two ranges have says no more than that
        assert hierarchy.value_labels.listed_codes(written, last - first + 1).tolist() == list(
            range(first, last + 1)
        )


def test_a_set_of_numerals_is_no_list_of_numbers() -> None:
    hierarchy = Hierarchy.of("ward", ["1", "2", "10"], [("top", [TOP] * 3)])
    assert hierarchy.value_labels.set_label([1, 3]) == "{1, 10}"
    assert hierarchy.codes_of("{1, 10}", 2).tolist() == [1, 3]
    with pytest.raises(HierarchyError, match="no label of so many values"):
        hierarchy.codes_of("{1, 3}", 2)
