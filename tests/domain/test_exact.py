"""Exact numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from maskwright.domain.exact import (
    entropy_at_least,
    number_text,
    numbered_columns,
    share_text,
    sorted_distinct,
    text_of,
    to_fraction,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, Fraction(1, 10)), ("0.1", Fraction(1, 10)), ("1/3", Fraction(1, 3)), ("2%", Fraction(1, 50)),
        (" 5 ", Fraction(5)), (Decimal("0.30"), Fraction(3, 10)), (7, Fraction(7)), ("1e-2", Fraction(1, 100)),
        ("2.5 %", Fraction(1, 40)),
    ],
)  # fmt: skip
def test_reading(value: Any, expected: Fraction) -> None:
    assert to_fraction(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        "five",
        "1/0",
        float("nan"),
        float("inf"),
        True,
        None,
        "1e999999999",
        "9" * 200,
        [],
        "1e9_9_9",
        "1e999%",
    ],
)
def test_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="number"):
        to_fraction(value)


@given(st.fractions())
def test_text_is_exact(value: Fraction) -> None:
    assume(len(text_of(value)) <= 100)  # longer texts are no thresholds, and refused
    assert to_fraction(text_of(value)) == value


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6), st.fractions(Fraction(1, 2), 6, max_denominator=8)
)
def test_entropy_decision(counts: list[int], ell: Fraction) -> None:
    n = sum(counts)
    exact = n**n * ell.denominator**n >= ell.numerator**n * math.prod(c**c for c in counts)
    assert entropy_at_least(counts, ell) == exact


def test_entropy_ties_pass() -> None:
    for values in (2, 3, 4, 7):
        assert entropy_at_least([5] * values, Fraction(values))
        assert not entropy_at_least([5] * (values - 1) + [4], Fraction(values))


def test_show() -> None:
    assert number_text(Fraction(1, 4)) == "1 in 4 (25 %)"
    assert number_text(Fraction(2, 3)) == "66.67 % (2/3)"
    assert number_text(Fraction(67198479, 109000000)) == "61.65 %"
    assert number_text(Fraction(1, 10**6)) == "less than 0.001 %"
    assert number_text(Fraction(7, 2)) == "3.5"
    assert number_text(9.51475e-05) == "less than 0.0001"
    assert [number_text(150_812.4), number_text(Fraction(1_250_001, 2))] == ["150,812", "625,000"]
    assert number_text(float("inf")) == "inf"
    assert [share_text(Fraction(*x)) for x in ((1, 11), (3, 7), (1, 1), (0, 1))] == [
        "1 in 11",
        "42.9 %",
        "100 %",
        "0 %",
    ]
    assert number_text(Fraction(5)) == "5"
    assert number_text(0.5) == "0.5"


@given(st.lists(st.integers(-2, 40)) | st.lists(st.integers(0, 2**61)))
def test_distinct_numbers_are_those_of_a_set(numbers: list[int]) -> None:
    """Marked or sorted: few numbers up to 40 are marked, large and negative ones sorted."""
    assert sorted_distinct(np.array(numbers, dtype=np.int64)).tolist() == sorted(set(numbers))


@pytest.mark.parametrize("most", [1, 3, 2**20, 2**40])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_columns_are_numbered_in_the_order_of_their_numbers(most: int, width: int) -> None:
    values = np.random.default_rng(most + width).integers(0, most, (width, 200))
    values = values[:, np.random.default_rng(1).integers(0, 200, 300)]  # some of them several times
    distinct, number = numbered_columns(values)
    expected, inverse = np.unique(values, axis=1, return_inverse=True)
    assert (distinct == expected).all()
    assert (number == inverse.reshape(-1)).all()


def test_no_columns_have_no_numbers() -> None:
    distinct, number = numbered_columns(np.zeros((2, 0), dtype=np.int64))
    assert distinct.shape == (2, 0)
    assert len(number) == 0
