"""MASK against an adversary who knows it, and people who are missing for a reason; errata W-5 and W-6."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.errors import UsageError
from maskwright.worlds.counting.mask_worlds import mask_plan, mask_posterior
from tests.oracles.absent_people import dropped_class, dropped_tail

THETA = st.fractions(0, 1, max_denominator=5)
ELL = st.fractions(Fraction(3, 2), 4, max_denominator=2)


def chance(n: int, j: int, theta: Fraction) -> Fraction:
    return math.comb(n, j) * theta**j * (1 - theta) ** (n - j)


def mask_shows(sizes: Sequence[int], true: Sequence[int], seen: Sequence[int], ell: Fraction) -> Fraction:
    """The probability that MASK, run on the true numbers, publishes what is seen."""
    violating = [i for i, n in enumerate(sizes) if true[i] * ell > n]
    passing = [i for i in range(len(sizes)) if i not in violating]
    if any(true[i] != seen[i] for i in passing):
        return Fraction(0)
    passing.sort(key=lambda i: (-Fraction(true[i], sizes[i]), i))
    drawn = [Fraction(true[i], sizes[i]) for i in passing[: math.ceil((ell - 1) * len(violating))]]
    if violating and not drawn:
        return Fraction(0)
    found = Fraction(1)
    for i in violating:
        found *= Fraction(sum(math.floor(p * sizes[i]) == seen[i] for p in drawn), len(drawn))
    return found


def posterior_by_definition(
    sizes: Sequence[int], seen: Sequence[int], ell: Fraction, theta: Fraction
) -> list[Fraction] | None:
    total, held = Fraction(0), [Fraction(0)] * len(sizes)
    for true in itertools.product(*(range(n + 1) for n in sizes)):
        weight = mask_shows(sizes, true, seen, ell)
        for n, x in zip(sizes, true, strict=True):
            weight *= chance(n, x, theta)
        total += weight
        held = [h + weight * x for h, x in zip(held, true, strict=True)]
    return [h / (total * n) for h, n in zip(held, sizes, strict=True)] if total else None


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=4), ELL, THETA)
def test_an_adversary_who_knows_mask(classes: list[tuple[int, int]], ell: Fraction, theta: Fraction) -> None:
    sizes, seen = [n for n, _ in classes], [min(n, s) for n, s in classes]
    assert mask_posterior(sizes, seen, ell, theta) == posterior_by_definition(sizes, seen, ell, theta)


@given(st.fractions(0, 1, max_denominator=20))
def test_w5_the_belief_is_above_one_half(theta: Fraction) -> None:
    found = mask_posterior([2, 2], [1, 1], 2, theta)
    if theta in (0, 1):
        assert found is None or found == [Fraction(2 + theta, 4)] * 2
    else:
        assert found == [(2 + theta) / 4] * 2


def test_many_equal_classes_are_no_trouble() -> None:
    found = mask_posterior([4] * 24 + [5] * 16, [2] * 12 + [1] * 12 + [2] * 16, 2, Fraction(1, 3))
    assert found is not None and len(found) == 40
    assert found[0] > Fraction(1, 2) > found[12]


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=6), ELL)
def test_the_plan(classes: list[tuple[int, int]], ell: Fraction) -> None:
    sizes, held = [n for n, _ in classes], [min(n, s) for n, s in classes]
    plan = mask_plan(sizes, held, ell)
    shown = [Fraction(s, n) for n, s in zip(sizes, held, strict=True)]
    assert plan.violating == [i for i, p in enumerate(shown) if p * ell > 1]
    assert plan.wanted == math.ceil((ell - 1) * len(plan.violating))
    outside = [i for i in range(len(sizes)) if i not in plan.violating]
    assert len(plan.models) == min(plan.wanted, len(outside))  # W-6: fewer where fewer exist
    assert set(plan.models) <= set(outside)
    rest = [i for i in outside if i not in plan.models]
    assert all((shown[a], -a) > (shown[b], -b) for a in plan.models for b in rest)
    assert [shown[i] for i in plan.models] == sorted(plan.shares, reverse=True)
    for i, targets in plan.targets.items():  # W-6: what is kept never violates
        assert all(t * ell <= sizes[i] for t in targets)


def test_w6_without_a_passing_class_nothing_can_be_published() -> None:
    plan = mask_plan([2, 2], [2, 2], 2)
    assert (plan.violating, plan.models, plan.wanted, plan.shares, plan.targets) == (
        [0, 1],
        [],
        2,
        [],
        {0: [], 1: []},
    )
    assert mask_plan([2, 3, 9], [2, 1, 0], Fraction(5, 2)).wanted == 2


def test_bad_input_is_refused() -> None:
    for sizes, seen, ell, theta in ([2], [3], 2, 0), ([2], [1, 1], 2, 0), ([2], [1], 0, 0), ([2], [1], 2, 2):
        with pytest.raises(UsageError):
            mask_posterior(sizes, seen, ell, Fraction(theta))


@given(st.integers(1, 5), ELL, THETA)
def test_a_dropped_class(size: int, ell: Fraction, theta: Fraction) -> None:
    kept = [w for w in itertools.product((0, 1), repeat=size) if sum(w) * ell > size]
    weights = [theta ** sum(w) * (1 - theta) ** (size - sum(w)) for w in kept]
    found = dropped_class(size, ell, theta)
    if not sum(weights):
        assert found is None
        return
    assert found == sum(w * x[0] for w, x in zip(weights, kept, strict=True)) / sum(weights)
    assert found * ell > 1


def test_a_class_of_five_that_was_dropped_gives_at_least_three_fifths() -> None:
    beliefs = [dropped_class(5, 2, Fraction(i, 50)) for i in range(1, 51)]
    assert all(b is not None and b >= Fraction(3, 5) for b in beliefs)


@given(st.integers(2, 4), st.integers(1, 3), THETA)
def test_a_dropped_tail_of_greedy_grouping(ell: int, buckets: int, theta: Fraction) -> None:
    total, held = Fraction(0), [Fraction(0)] * buckets
    for world in itertools.product(range(ell + 1), repeat=buckets):
        if all(sum(world[:i]) > i for i in range(1, buckets + 1)):
            weight = math.prod((chance(ell, k, theta) for k in world), start=Fraction(1))
            total += weight
            held = [h + weight * k for h, k in zip(held, world, strict=True)]
    found = dropped_tail(ell, buckets, theta)
    assert found == ([h / (total * ell) for h in held] if total else None)
    if found:
        assert found[0] >= Fraction(2, ell)
