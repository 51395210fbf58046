"""Counting the worlds in which some class exceeds its cap: exactly, and in floating point."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from maskwright.worlds.counting.binomial import log_binomial
from maskwright.worlds.counting.violation_counts import (
    ViolationCount,
    _packed,
    _shifted,
    count_rare_violations,
    count_violations,
    divide_series,
    kept_vectors,
    multiply_polynomials,
    polynomial_power,
)
from tests.oracles.worlds import after_violation, positive_rows

SMALL = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@st.composite
def capped(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    sizes = draw(SMALL)
    caps = [draw(st.integers(-1, n + 1)) for n in sizes]
    return sizes, caps, draw(st.integers(0, sum(sizes)))


@given(capped())
def test_counting_agrees_with_every_choice_of_sensitive_rows(case: tuple[list[int], list[int], int]) -> None:
    sizes, caps, sensitive = case
    kinds = Counter(zip(sizes, caps, strict=True))
    found = count_violations(kinds, sensitive, True)
    expected = after_violation(sizes, sensitive, caps)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert [found.share[kind] for kind in zip(sizes, caps, strict=True)] == expected
    worlds = list(positive_rows(sizes, sensitive))
    violating = sum(any(j > c for j, c in zip(w, caps, strict=True)) for w in worlds)
    assert found.violation == Fraction(violating, len(worlds))
    assert found.arithmetic == "exact" and found.relative_error == 0


@given(capped())
def test_the_table_of_vectors_is_complete_and_in_order(case: tuple[list[int], list[int], int]) -> None:
    sizes, caps, sensitive = case
    expected = [
        (v, math.prod(map(math.comb, sizes, v)))
        for v in itertools.product(*(range(n + 1) for n in sizes))
        if sum(v) == sensitive and any(j > c for j, c in zip(v, caps, strict=True))
    ]
    assert list(kept_vectors(sizes, caps, sensitive)) == expected


@st.composite
def larger(draw: st.DrawFn) -> tuple[Counter[tuple[int, int]], int]:
    sizes = draw(st.lists(st.integers(1, draw(st.sampled_from([1, 3, 10, 60]))), min_size=1, max_size=30))
    ell = draw(st.fractions(1, 12, max_denominator=4))
    kinds = Counter((n, math.floor(n / ell) + draw(st.integers(0, 1))) for n in sizes)
    everybody = sum(sizes)
    return kinds, draw(st.integers(0, everybody if draw(st.booleans()) else everybody // 8))


@given(larger())
def test_floating_point_keeps_its_promise(case: tuple[Counter[tuple[int, int]], int]) -> None:
    kinds, sensitive = case
    exact, floats = count_violations(kinds, sensitive, True), count_violations(kinds, sensitive, False)
    assert (exact is None) == (floats is None)
    if exact is None or floats is None:
        return
    assert floats.relative_error <= 1e-12
    assert abs(floats.violation - exact.violation) <= floats.relative_error * exact.violation
    for kind in kinds:
        scale = max(exact.share[kind], exact.before)
        assert abs(Fraction(floats.share[kind]) - exact.share[kind]) <= floats.relative_error * scale


RARE = [
    (Counter({(60, 50): 6, (25, 20): 3}), 69),
    (Counter({(200, 160): 5, (90, 75): 4}), 196),
    (Counter({(30, 25): 40}), 300),
    (Counter({(1000, 30): 10}), 100),
    (Counter({(200, 190): 1, (3000, 2999): 1}), 400),
]


@pytest.mark.parametrize(("kinds", "sensitive"), RARE)
def test_rare_violations_keep_their_digits(kinds: Counter[tuple[int, int]], sensitive: int) -> None:
    exact, floats = count_violations(kinds, sensitive, True), count_violations(kinds, sensitive, False)
    assert exact is not None and floats is not None
    assert 0 < exact.violation < Fraction(1, 10**6)
    assert floats.relative_error < 1e-11
    assert abs(Fraction(floats.violation) / exact.violation - 1) < floats.relative_error
    for kind in kinds:
        assert abs(Fraction(floats.share[kind]) - exact.share[kind]) < floats.relative_error * max(
            exact.share[kind], exact.before
        )


def far(found: ViolationCount, exact: ViolationCount) -> Fraction:
    """How far a result is off, in units of the error that it states."""
    off = [abs(Fraction(found.violation) / Fraction(exact.violation) - 1)]
    for kind, share in exact.share.items():
        off.append(abs(Fraction(found.share[kind]) - Fraction(share)) / max(share, exact.before))
    return max(off) / Fraction(found.relative_error)


def test_a_result_below_the_smallest_number() -> None:
    kinds = Counter({(600, 595): 2})
    floats, chosen, exact = (count_violations(kinds, 600, how) for how in (False, None, True))
    assert exact is not None and 0 < exact.violation < Fraction(1, 10**300)
    assert floats is not None and isinstance(floats.violation, Fraction) and floats.relative_error < 1e-11
    assert far(floats, exact) < 1
    assert chosen == floats


@st.composite
def rare(draw: st.DrawFn) -> tuple[Counter[tuple[int, int]], int]:
    sizes = draw(st.lists(st.one_of(st.integers(2, 30), st.integers(30, 400)), min_size=1, max_size=8))
    kinds = Counter((n, draw(st.integers(n // 2, n))) for n in sizes)
    return kinds, draw(st.integers(1, max(1, sum(sizes) // draw(st.sampled_from([2, 4, 10, 50])))))


@given(rare())
def test_counting_one_violation_at_a_time_keeps_its_promise(
    case: tuple[Counter[tuple[int, int]], int],
) -> None:
    kinds, sensitive = case
    everybody = sum(n * m for (n, _), m in kinds.items())
    exact = count_violations(kinds, sensitive, True)
    assume(exact is not None and 0 < sensitive < everybody)
    found = count_rare_violations(kinds, sensitive, everybody)
    assume(found.relative_error < 1)
    assert exact is not None and far(found, exact) < 1


def test_one_violation_at_a_time_says_when_it_does_not_apply() -> None:
    ordinary = count_rare_violations(Counter({(10, 2): 5}), 20, 50)
    certain = count_rare_violations(Counter({(10, 3): 1, (2, 2): 1}), 6, 12)
    several = count_rare_violations(
        Counter({(10, 3): 40}), 100, 400
    )  # each seldom, but nine of them on average
    assert ordinary.relative_error == certain.relative_error == several.relative_error == math.inf


LARGE = {
    "one that is dense": (Counter({(100_000, 50_000): 1, (10_000_000, 5_000_000): 1}), 60_000),
    "equal": (Counter({(1_000_000, 500_000): 10}), 1_000_000),
    "many": (Counter({(n, n // 2): 20 for n in range(400, 2000, 3)}), 100_000),
}


@pytest.mark.parametrize("name", LARGE)
def test_rare_violations_in_large_tables_take_no_time(name: str) -> None:
    """In integers each would take weeks, and floating point ends before."""
    kinds, sensitive = LARGE[name]
    started = time.process_time()
    found = count_violations(kinds, sensitive)
    assert time.process_time() - started < 3  # measured: 0.1 s
    assert found is not None and 0 < found.violation < Fraction(1, 10**250)
    assert found.relative_error < 1e-8
    held = math.fsum(m * n * found.share[n, cap] for (n, cap), m in kinds.items())
    assert held == pytest.approx(sensitive, rel=1e-8)
    if name == "one that is dense":  # it must be the small one, and it is hardly beyond its cap
        assert 0.5 < found.share[100_000, 50_000] < 0.501


def test_forty_thousand_classes_take_about_a_second() -> None:
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 2000, 40_000)
    kinds = Counter((int(n), int(n) // 2) for n in sizes)
    started = time.process_time()
    found = count_violations(kinds, 100_000)
    assert time.process_time() - started < 3  # measured: 0.2 s
    assert found is not None and found.arithmetic == "float"
    assert 0.01 < found.violation < 0.9 and found.relative_error < 1e-12
    held = math.fsum(m * n * found.share[n, cap] for (n, cap), m in kinds.items())
    assert held == pytest.approx(100_000, rel=1e-12)


def test_classes_without_an_effective_cap_share_the_rest_evenly() -> None:
    found = count_violations(Counter({(3, 0): 1, (2, 2): 1, (4, 9): 2}), 3, True)
    assert found is not None
    assert found.share[2, 2] == found.share[4, 9]
    assert 3 * found.share[3, 0] + 10 * found.share[2, 2] == 3


def test_small_problems_are_counted_exactly_and_large_ones_are_not() -> None:
    small, large = (
        count_violations(Counter({(4, 2): 10}), 12),
        count_violations(Counter({(n, n // 3): 50 for n in range(1, 60)}), 9000),
    )
    assert small is not None and small.arithmetic == "exact"
    assert large is not None and large.arithmetic == "float"


COEFFICIENTS = st.lists(st.integers(0, 10**30), min_size=1, max_size=12)


@given(COEFFICIENTS, COEFFICIENTS, st.integers(0, 25))
def test_both_ways_to_multiply_agree_with_the_definition(a: list[int], b: list[int], degree: int) -> None:
    length = min(degree + 1, len(a) + len(b) - 1)
    pairs = list(itertools.product(enumerate(a), enumerate(b)))
    expected = [sum(x * y for (i, x), (j, y) in pairs if i + j == k) for k in range(length)]
    assert _shifted(a, b, degree) == _packed(a, b, degree) == multiply_polynomials(a, b, degree) == expected


@given(st.lists(st.integers(0, 50), max_size=5), st.integers(1, 6), st.integers(0, 30))
def test_powers_and_quotients(tail: list[int], exponent: int, degree: int) -> None:
    f = [1, *tail]
    expected = [1]
    for _ in range(exponent):
        expected = multiply_polynomials(expected, f, degree)
    found = polynomial_power(f, exponent, degree)
    assert found == expected[: len(found)] and not any(expected[len(found) :])
    wide = expected + [0] * (degree + 1 - len(expected))
    assert _shifted(divide_series(wide, f), f, degree) == wide


@given(
    st.integers(1, 5000),
    st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000),
    st.data(),
)
def test_binomial_probabilities(n: int, theta: Fraction, data: st.DataObject) -> None:
    j = data.draw(st.integers(0, n))
    exact = math.comb(n, j) * theta.numerator**j * (theta.denominator - theta.numerator) ** (n - j)
    bits = exact.bit_length()
    mantissa = math.log(exact >> max(0, bits - 200)) + max(0, bits - 200) * math.log(2)
    expected = mantissa - n * math.log(theta.denominator)
    found = float(log_binomial(np.array(float(j)), np.array(float(n)), float(theta)))
    assert found == pytest.approx(expected, abs=1e-11 * (1 + n / 100), rel=1e-12)
