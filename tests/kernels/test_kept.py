"""What a failing class must lose in any refinement, against all ways to take passing classes out of it."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from maskwright.domain.classes import Classes, ValueCounts
from maskwright.domain.rules import Closeness, Rule, SharesWithin
from maskwright.kernels.rule_checks import decide_classes
from tests.amounts import amount
from tests.support import equal_sets, ordered_sets, passes

Held = tuple[int, ...]  # people by value
TREE = tuple(
    (Fraction(1, 4), codes) for codes in ((1,), (2,), (3,), (4,), (1, 2), (3, 4))
)  # two levels below the top


def classes_of(held: list[Held]) -> Classes:
    """One class for each of these."""
    owner = np.array([i for i, c in enumerate(held) for n in c if n], dtype=np.int64)
    codes = np.array([v for c in held for v, n in enumerate(c, start=1) if n], dtype=np.int64)
    counts = np.array([n for c in held for n in c if n], dtype=np.int64)
    sizes = np.array([sum(c) for c in held], dtype=np.int64)
    names = tuple("abcd"[: len(held[0])])
    return Classes(sizes, sizes, {"s": ValueCounts.collect(names, len(held), owner, codes, counts)})


def most_kept(rule: Rule, held: Held) -> int:
    """The most people in disjoint passing classes, by trying all."""
    fits = [
        part
        for part in itertools.product(*(range(c + 1) for c in held))
        if sum(part) and passes(rule, sum(part), dict(enumerate(part, start=1)))
    ]

    @cache
    def _most(left: Held) -> int:
        inside = (p for p in fits if all(x <= y for x, y in zip(p, left, strict=True)))
        rest = (tuple(y - x for x, y in zip(p, left, strict=True)) for p in inside)
        return max((sum(left) - sum(r) + _most(r) for r in rest), default=0)

    return _most(held)


def rule_of(rng: np.random.Generator, kind: str) -> Rule:
    reference = (0, *(int(x) for x in rng.integers(1, 6, 4)))
    total = sum(reference)
    if kind == "shares":
        most = (Fraction(1), *(min(Fraction(1), Fraction(2 * c, total)) for c in reference[1:]))
        least = (Fraction(0), *(Fraction(c, 3 * total) for c in reference[1:]))
        return SharesWithin("s", most, least if rng.random() < 0.5 else (Fraction(0),) * 5)
    sets = {"equal": equal_sets(4), "ordered": ordered_sets(4), "tree": TREE}[kind]
    return Closeness("s", Fraction(int(rng.integers(1, 5)), 10), reference, sets)


@pytest.mark.parametrize("kind", ["equal", "ordered", "tree", "shares"])
def test_no_refinement_keeps_more_than_is_said(kind: str) -> None:
    rng = np.random.default_rng(7)
    tight = 0
    for _ in range(amount(12, 400)):
        rule = rule_of(rng, kind)
        held = [tuple(int(x) for x in rng.integers(0, 4, 4)) for _ in range(6)]
        ok, lost = decide_classes(rule, classes_of(held))
        for c, passed, least in zip(held, ok, lost, strict=True):
            kept = most_kept(rule, c)
            assert passed == passes(rule, sum(c), dict(enumerate(c, start=1)))
            assert least <= sum(c) - kept, (rule, c)
            tight += bool(not passed and least == sum(c) - kept)
    assert tight > 5  # the bound is reached, so that a weaker one is noticed


def test_a_class_of_the_wrong_values_loses_everybody() -> None:
    """Values that are less than 1 − t of the reference: no part of it is close, however small."""
    rule = Closeness("s", Fraction(1, 5), (0, 1, 1, 4, 4), equal_sets(4))
    _, lost = decide_classes(rule, classes_of([(5, 5, 0, 0), (0, 0, 5, 5), (0, 0, 5, 4)]))
    assert lost.tolist() == [10, 0, 0]
