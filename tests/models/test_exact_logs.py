"""Comparisons of powers and logarithms are decided exactly, however close."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.exact import (
    entropy_at_least,
    exp_compared,
    fraction_below,
    rational_below,
    sign_of_log,
)
from maskwright.methods._lattice.nodes import max_groups, max_p

counts = st.lists(st.integers(1, 40), min_size=1, max_size=6)


@given(counts, st.fractions(Fraction(1, 2), 7, max_denominator=5))
def test_entropy_is_compared_as_when_multiplied_out(values: list[int], ell: Fraction) -> None:
    n = sum(values)
    direct = Fraction(n) ** n >= ell**n * math.prod(c**c for c in values)
    assert entropy_at_least(values, ell) == direct


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(-6, 6)), max_size=5))
def test_sign_of_log(powers: list[tuple[int, int]]) -> None:
    product = math.prod((Fraction(b) ** e for b, e in powers), start=Fraction(1))
    assert sign_of_log(powers) == (product > 1) - (product < 1)


def test_ties_of_large_numbers_are_seen_without_multiplying_out() -> None:
    assert sign_of_log([(6, 10**15), (2, -(10**15)), (3, -(10**15))]) == 0
    assert sign_of_log([(10**18 + 1, 1), (10**18, -1)]) == 1
    assert sign_of_log([(10**40, 1), (10**40 + 1, -1)]) == -1
    assert entropy_at_least([10**15] * 4, Fraction(4))
    assert not entropy_at_least([10**15, 10**15 + 1], Fraction(2))


def test_powers_of_e() -> None:
    assert exp_compared(Fraction(0), Fraction(1)) == 0
    assert exp_compared(Fraction(0), Fraction(2)) == -1
    assert exp_compared(Fraction(1), Fraction("2.718281828459045")) == 1
    assert exp_compared(Fraction(1), Fraction("2.718281828459046")) == -1
    e = sum((Fraction(1, math.factorial(i)) for i in range(40)), Fraction(0))  # below e by about 10^-48
    assert exp_compared(Fraction(1), e) == 1
    assert exp_compared(Fraction(1), e + Fraction(1, 10**46)) == -1
    assert exp_compared(Fraction(1), Fraction(-1)) == 1


def most_groups(frequencies: list[int], p: int) -> int:
    """The most disjoint groups of at least p different values each, by taking the p most frequent each time."""
    left, groups = sorted(frequencies), 0
    while sum(1 for f in left if f) >= p:
        left.sort()
        for i in range(1, p + 1):
            left[-i] -= 1
        groups += 1
    return groups


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(2, 5))
def test_the_bound_on_groups_is_attained_for_one_attribute(frequencies: list[int], p: int) -> None:
    bound = max_groups([frequencies], p)
    assert bound is not None
    assert most_groups(frequencies, p) == min(bound, sum(frequencies) // p)


def test_the_papers_example_of_the_conditions() -> None:
    table = [[300, 300, 200, 100, 100], [500, 300, 100, 40, 35, 25], [700, 200, 50, 10, 10, 10, 10, 5, 3, 2]]
    assert max_p(table) == 5
    assert [max_groups(table, p) for p in range(1, 7)] == [None, 300, 100, 50, 25, 0]
    assert max_p([]) == 0


@given(st.fractions(-2, 3), st.integers(1, 40))
def test_the_nearest_fraction_from_below(value: Fraction, limit: int) -> None:
    below = max(Fraction(math.floor(value * n), n) for n in range(1, limit + 1))
    assert rational_below(value, limit) == below
    # an irrational number just above it has the same neighbour, one just below a fraction does not reach it
    root = Decimal(2).sqrt() / 10**20
    assert fraction_below(lambda: Decimal(below.numerator) / below.denominator + root, limit) == below
    assert fraction_below(lambda: Decimal(below.numerator) / below.denominator - root, limit) < below
