"""Minimal unique sets against their definition, on every small table that hypothesis can think of."""

from __future__ import annotations

import time
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain import unique_sets
from maskwright.domain.unique_sets import minimal_uniques
from tests.support import adult


@st.composite
def tables(draw: st.DrawFn) -> list[tuple[int, ...]]:
    width = draw(st.integers(1, 5))
    row = st.tuples(*[st.integers(0, 3)] * width)
    return draw(st.lists(row, min_size=1, max_size=12))


def by_definition(rows: list[tuple[int, ...]], most: int) -> dict[tuple[int, ...], set[tuple[int, ...]]]:
    """Set of attributes → the rows that it singles out and none of its parts does."""
    width = len(rows[0])
    counts = {
        columns: Counter(tuple(r[i] for i in columns) for r in rows)
        for size in range(width + 1)
        for columns in combinations(range(width), size)
    }

    def unique(row: tuple[int, ...], columns: tuple[int, ...]) -> bool:
        return counts[columns][tuple(row[i] for i in columns)] == 1

    found: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for columns in counts:
        if len(columns) > most:
            continue
        for row in rows:
            parts = [p for size in range(len(columns)) for p in combinations(columns, size)]
            if unique(row, columns) and not any(unique(row, p) for p in parts):
                found.setdefault(columns, set()).add(row)
    return found


@given(rows=tables(), most=st.integers(1, 5))
def test_against_the_definition(rows: list[tuple[int, ...]], most: int) -> None:
    counted = Counter(rows)
    classes = list(counted)
    codes = np.array(classes).T.reshape(len(rows[0]), -1)
    sizes = np.array([counted[c] for c in classes], dtype=np.int64)
    result = minimal_uniques([f"a{i}" for i in range(len(rows[0]))], codes, sizes, most)
    mine = {columns: {classes[c] for c in found.tolist()} for columns, found in result.found.items()}
    assert mine == by_definition(rows, most)
    assert result.singled_out == len({row for found in mine.values() for row in found})


def test_scores_and_contributions_by_hand() -> None:
    """Four people, three attributes; b and c together tell all of them apart."""
    rows = np.array([[1, 0, 0], [0, 1, 1], [0, 1, 0], [0, 0, 1]]).T
    result = minimal_uniques(["a", "b", "c"], rows, np.ones(4, np.int64), 2)
    assert result.sets() == [(("b", "c"), 4), (("a",), 1), (("a", "b"), 1), (("a", "c"), 1)]
    # a alone: (3-1)(3-2) = 2; a pair: 3-2 = 1. Person 0 has {a} and {b, c}, 1 {b, c}, 2 also {a, c}, 3 also {a, b}
    assert result.scores(4).tolist() == [3, 1, 2, 2]
    assert result.contributions() == {"b": Fraction(5, 8), "c": Fraction(5, 8), "a": Fraction(4, 8)}


def test_several_people_of_one_class_are_never_singled_out() -> None:
    result = minimal_uniques(["a"], np.array([[1, 2]]), np.array([2, 1]), 1)
    assert [c.tolist() for c in result.found.values()] == [[1]]
    assert result.people == 3


def test_one_person_needs_no_attribute() -> None:
    result = minimal_uniques(["a", "b"], np.array([[1], [1]]), np.array([1]), 2)
    assert result.sets() == [((), 1)]


def test_too_many_sets_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.arange(40).reshape(4, 10)
    monkeypatch.setattr(unique_sets, "MOST_CELLS", 45)
    assert minimal_uniques(list("abcd"), codes, np.ones(10, np.int64), 3).most == 1


def test_adult_in_a_moment() -> None:
    """All sets of up to four of nine attributes: 12,060 of 30,162 people are singled out by one of them."""
    summary = adult()
    names = [h.attribute for h in summary.attributes]
    begin = time.process_time()
    found = minimal_uniques(names, summary.codes, summary.sizes, 4)
    assert time.process_time() - begin < 3
    assert found.singled_out == 12_060
    assert next(iter(found.contributions())) == "age"
    plain = {
        t
        for columns in combinations(range(9), 2)
        for t in _alone(summary.codes[list(columns)], summary.sizes)
    }
    pairs = minimal_uniques(names, summary.codes, summary.sizes, 2)
    assert pairs.singled_out == len(plain)


def _alone(codes: np.ndarray, sizes: np.ndarray) -> list[int]:  # type: ignore[type-arg]
    people: Counter[tuple[int, ...]] = Counter()
    keys = [tuple(column) for column in codes.T.tolist()]
    for key, size in zip(keys, sizes.tolist(), strict=True):
        people[key] += size
    return [t for t, key in enumerate(keys) if people[key] == 1]
