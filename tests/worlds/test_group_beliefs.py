"""Greedy grouping, plain and randomised, and even splits [Cormode et al. 2010], with errata C-1 … C-12."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.errors import UsageError
from maskwright.worlds.counting.group_beliefs import (
    even_split_beliefs,
    even_split_bound,
    greedy_ceiling,
    greedy_group,
    greedy_group_of_values,
    randomised_group,
)
from tests.oracles.worlds import after_violation, orders, positive_rows


def greedy_first_bucket(ell: int, buckets: int) -> Fraction:
    """p(b₁) in a greedy group of m ≥ 2 buckets: ∏_{j=1}^{ℓ−1} (mℓ−1−j)/(mℓ−m−j) ÷ ℓ."""
    rows = ell * buckets
    product = Fraction(1)
    for j in range(1, ell):
        product *= Fraction(rows - 1 - j, rows - buckets - j)
    return product / ell


def even_split_supremum(ell: Fraction | int) -> Fraction:
    """1/(ℓ−½), reached by children of 2ℓ and 2ℓ−1 rows with two positives.

    Proved for the smaller child; for the larger one, and for simple diversity over several values, enumeration
    finds nothing above it. The proven bound for all rows is 1/(ℓ−1), see `even_split_bound`.
    """
    return 1 / (ell - Fraction(1, 2))


def group_by_definition(ell: int, buckets: int, positives: int, p: Fraction) -> list[Fraction] | None:
    total, held = Fraction(0), [Fraction(0)] * buckets
    if positives > buckets:
        return None
    for world in positive_rows([ell] * buckets, positives):
        diverse = sum(sum(world[:i]) <= i for i in range(1, buckets))
        weight = p**diverse
        total += weight
        held = [h + weight * x for h, x in zip(held, world, strict=True)]
    return [h / (total * ell) for h in held] if total else None


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 5), st.fractions(0, 1, max_denominator=5))
def test_randomised_groups(ell: int, buckets: int, positives: int, p: Fraction) -> None:
    positives = min(positives, ell * buckets)
    assert randomised_group(ell, buckets, positives, p) == group_by_definition(ell, buckets, positives, p)


@pytest.mark.parametrize(("ell", "buckets"), [(2, 2), (3, 2), (2, 4), (3, 3), (4, 3), (3, 4), (5, 2)])
def test_greedy_groups_and_the_number_of_worlds_by_first_bucket(ell: int, buckets: int) -> None:
    found = greedy_group(ell, buckets)
    assert found.beliefs == group_by_definition(ell, buckets, buckets, Fraction(0))
    kept = [
        w for w in positive_rows([ell] * buckets, buckets) if all(sum(w[:i]) > i for i in range(1, buckets))
    ]
    by_first = Counter(w[0] for w in kept)
    assert found.first_bucket == dict(by_first)
    assert sum(found.first_bucket.values()) == Fraction(
        math.comb(ell * (buckets - 1), buckets), buckets - 1
    )  # C-11
    weighted = sum(k * n for k, n in found.first_bucket.items())
    assert weighted == Fraction(ell * (ell - 1), buckets - 1) * math.comb(ell * buckets - 2, buckets - 2)
    assert found.beliefs[0] == greedy_first_bucket(ell, buckets)
    assert found.beliefs[-1] == 0  # C-12: the last bucket holds no positive


@pytest.mark.parametrize("ell", [2, 3, 4, 6])
def test_c6_the_first_bucket_rises_towards_its_ceiling_and_never_to_e(ell: int) -> None:
    beliefs = [greedy_first_bucket(ell, m) for m in (2, 3, 5, 10, 40, 400)]
    assert ell * beliefs[0] == 2
    assert beliefs == sorted(beliefs)
    assert all(b < greedy_ceiling(ell) or ell == 2 for b in beliefs)
    assert float(ell * greedy_ceiling(ell)) < math.e
    assert float(beliefs[-1]) == pytest.approx(float(greedy_ceiling(ell)), rel=0.01)


def test_c7_the_largest_risk_at_six_is_below_what_was_measured() -> None:
    assert float(6 * greedy_ceiling(6)) == pytest.approx(2.48832)
    assert [round(float(n * greedy_ceiling(n)), 3) for n in range(2, 7)] == [2, 2.25, 2.37, 2.441, 2.488]


def test_c8_randomised_groups_may_lie_below_one_in_l_but_not_above_the_ceiling() -> None:
    assert randomised_group(2, 2, 1, Fraction(1, 2)) == [Fraction(1, 4), Fraction(1, 4)]
    for ell, m, p in itertools.product(
        (2, 3, 4), (2, 3, 5, 8), (Fraction(0), Fraction(1, 3), Fraction(4, 5), Fraction(1))
    ):
        for r in range(m + 1):
            found = randomised_group(ell, m, r, p)
            if found is None:
                continue
            assert found == sorted(found, reverse=True)  # Theorem 8
            assert found[0] <= greedy_ceiling(ell)
            if p == 1:
                assert set(found) == {Fraction(r, m * ell)}
            elif r == m:
                assert found[0] > Fraction(1, ell)


def values_by_definition(counts: list[int], ell: int, buckets: int) -> list[list[Fraction]] | None:
    kept = []
    for world in orders([v for v, c in enumerate(counts) for _ in range(c)]):
        prefixes = [Counter(world[: i * ell]) for i in range(1, buckets + 1)]
        if (
            all(max(c.values()) > i for i, c in enumerate(prefixes[:-1], 1))
            and max(prefixes[-1].values()) <= buckets
        ):
            kept.append(world)
    if not kept:
        return None
    return [
        [
            Fraction(sum(w[b * ell : (b + 1) * ell].count(v) for w in kept), len(kept) * ell)
            for v in range(len(counts))
        ]
        for b in range(buckets)
    ]


@given(st.sampled_from([(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 2), (4, 1), (4, 2)]), st.data())
def test_groups_of_several_values(shape: tuple[int, int], data: st.DataObject) -> None:
    ell, buckets = shape
    values = data.draw(st.lists(st.integers(0, 3), min_size=ell * buckets, max_size=ell * buckets))
    counts = sorted(Counter(values).values(), key=lambda c: data.draw(st.integers(0, 9)))
    assert greedy_group_of_values(counts, ell, buckets) == values_by_definition(counts, ell, buckets)


def test_c10_an_infrequent_value_may_be_likelier_in_a_later_bucket() -> None:
    found = greedy_group_of_values([3, 2, 1], 2, 3)
    assert found is not None
    assert [row[1] for row in found] == [0, Fraction(1, 3), Fraction(2, 3)]


def test_one_frequent_value_among_unique_ones_is_the_binary_case() -> None:
    for ell, m in (2, 3), (3, 3), (3, 4), (4, 3):
        found = greedy_group_of_values([m] + [1] * (ell * m - m), ell, m)
        assert found is not None
        assert [row[0] for row in found] == greedy_group(ell, m).beliefs


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(0, 6),
    st.fractions(1, 5, max_denominator=3),
)
def test_even_splits(sizes: list[int], positives: int, ell: Fraction) -> None:
    positives = min(positives, sum(sizes))
    expected = after_violation(sizes, positives, [math.floor(n / ell) for n in sizes])
    assert even_split_beliefs(sizes, positives, ell) == expected


def test_c1_c2_the_supremum_of_even_splits() -> None:
    for ell in range(2, 9):
        found = even_split_beliefs([2 * ell, 2 * ell - 1], 2, ell)
        assert found is not None and max(found) == even_split_supremum(ell) == Fraction(2, 2 * ell - 1)
        if ell >= 5:
            assert max(found) > 1 / (ell - Fraction(2, ell))  # C-1: the bound of the main text is false
        assert max(found) < 1 / (ell - Fraction(2, 3))  # C-2: that of the appendix is loose


@pytest.mark.parametrize("ell", [Fraction(2), Fraction(5, 2), Fraction(3), Fraction(4)])
def test_the_guarantee_of_even_splits_holds_for_every_small_group(ell: Fraction) -> None:
    largest = Fraction(0)
    for s in range(math.ceil(ell), math.ceil(7 * ell)):
        for sizes in ([s, s], [s, s - 1]):
            if min(sizes) < ell:
                continue
            for r in range(math.floor(sum(sizes) / ell) + 1):
                found = even_split_beliefs(sizes, r, ell)
                if found is not None:
                    largest = max(largest, *found)
                    assert max(found) < even_split_bound(ell)
                    if sizes[0] == sizes[1]:
                        assert set(found) == {Fraction(r, 2 * s)}
    assert largest <= even_split_supremum(ell)


def test_bad_input_is_refused() -> None:
    with pytest.raises(UsageError, match=r"not l·m"):
        greedy_group_of_values([1, 1], 2, 2)
    with pytest.raises(UsageError):
        randomised_group(2, 2, 1, 2)
    with pytest.raises(UsageError):
        greedy_group(0, 1)
    with pytest.raises(UsageError, match="makes no group"):
        greedy_group(1, 2)
    assert greedy_group_of_values([5, 1], 2, 3) is None
    assert greedy_group(3, 1).beliefs == [Fraction(1, 3)]


def test_hundreds_of_buckets_are_no_trouble() -> None:
    found = greedy_group(6, 120).beliefs
    assert found[0] == greedy_first_bucket(6, 120)
    assert sum(found) * 6 == 120
