"""Absence: what a dropped class must have held, against enumeration of every draw."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.attacks import absence
from maskwright.attacks.absence import Absence, violating_shares
from maskwright.domain.adversary import Adversary
from maskwright.domain.beliefs import NOT_COMPUTED
from maskwright.pipeline.attacking import attack_target
from tests.attacks.test_minimality import model, publish
from tests.oracles.absent_people import dropped_class


def by_listing(n: int, weights: list[int], caps: list[int]) -> list[Fraction] | None:
    total, held = 0, [0] * len(weights)
    for draw in product(range(len(weights)), repeat=n):
        if any(draw.count(i) > cap for i, cap in enumerate(caps)):
            weight = prod(weights[i] for i in draw)
            total += weight
            for i in range(len(weights)):
                held[i] += weight * draw.count(i)
    return [Fraction(h, n * total) for h in held] if total else None


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=3),
    st.integers(0, 4),
)
def test_shares_are_those_of_every_draw(n: int, sets: list[tuple[int, int]], rest: int) -> None:
    weights, caps = [w for w, _ in sets], [cap for _, cap in sets]
    expected = by_listing(n, [*weights, rest], caps)
    if expected is not None:
        assert violating_shares(n, [*weights, rest], caps) == expected


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 9), st.integers(0, 9))
def test_one_set_is_the_closed_form(n: int, ell: int, positives: int, others: int) -> None:
    found = violating_shares(n, [positives, others], [n // ell])
    expected = dropped_class(n, ell, Fraction(positives, positives + others))
    assert found[0] == (expected if ell > 1 else Fraction(positives, positives + others))
    assert sum(found) == 1


def test_a_value_that_is_nowhere_else_is_taken_to_occur_once() -> None:
    assert violating_shares(5, [0, 9], [2]) == violating_shares(5, [1, 9], [2])
    assert violating_shares(3, [0, 0], [1]) == [1, 0]
    assert violating_shares(3, [2, 3], [3]) == [Fraction(2, 5), Fraction(3, 5)]


@pytest.mark.parametrize("weights", [[30, 20, 50], [1, 2, 97], [7, 0, 93]])
def test_large_classes_are_nearly_as_exact(weights: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """With l = 2 no two sets can violate at once, so that nothing is neglected."""
    exact = violating_shares(40, weights, [20, 20])
    monkeypatch.setattr(absence, "EXACT", 0)
    found = violating_shares(40, weights, [20, 20])
    assert [float(x) for x in found] == pytest.approx([float(x) for x in exact], rel=1e-9)
    assert sum(map(float, violating_shares(5000, [1, 2, 97], [1000, 1000]))) == pytest.approx(1)


KEPT: list[Any] = [
    *[("1", "x", v) for v in "pqrqr" * 3], *[("2", "x", v) for v in "qqrrp" * 3],
    *[("4", "y", v) for v in "qqrrr" * 3],
]  # fmt: skip
ROWS: list[Any] = [*KEPT, *[("3", "y", v) for v in "pppqr"]]
FAILING = {"suppression": "0.1", "suppress": "failing-classes"}


def test_the_example_of_the_page() -> None:
    """Five people with three p were dropped; in the release 2 of 15 have p. At least 3/5 of them must."""
    requirement = model("simple-l-diversity", l=2, values=["p"])
    target = publish(ROWS, "optimal-lattice", [model("k-anonymity", k=2), requirement], **FAILING)
    assert target.grouping.dropped_rows == 5
    assert Absence().applies(target)
    found = Absence().run(target, Adversary())
    assert found.worst.after == dropped_class(5, 2, Fraction(2, 15)) == by_listing(5, [2, 13], [2])[0]  # type: ignore[index]
    assert found.worst.after > Fraction(3, 5)
    assert found.worst.before == Fraction(9, 50)
    assert found.worst.whom == "each of the 5 dropped people with a 3, b y"
    assert found.kind == "estimated"
    assert found.measures["vulnerable_people"] == found.measures["dropped_for_values"] == 5
    assert found.measures["dropped_people"] == 5
    assert found.as_dict()["measures"]["values_not_flagged"] == 2


def test_several_values_are_flagged() -> None:
    requirement = model("simple-l-diversity", l="5/3")
    rows = [*KEPT, *[("3", "y", v) for v in "ppppr"]]
    target = publish(rows, "optimal-lattice", [model("k-anonymity", k=2), requirement], **FAILING)
    assert target.grouping.dropped_rows == 5
    found = Absence().run(target, Adversary())
    expected = by_listing(5, [6, 18, 21, 0], [3, 3, 3])
    assert expected is not None
    assert found.worst.after == max(expected)


def test_where_it_does_not_apply() -> None:
    requirement = model("simple-l-diversity", l=2, values=["p"])
    models = [model("k-anonymity", k=2), requirement]
    assert not Absence().applies(publish(ROWS, "optimal-lattice", models, suppression="0.1"))
    starred = publish(
        [*ROWS, ("2", "y", "p")], "optimal-lattice", models[:1], suppressed_rows="star", **FAILING
    )
    assert not Absence().applies(starred)
    by_size = publish([*KEPT, ("3", "y", "p")], "optimal-lattice", models, **FAILING)
    assert by_size.grouping.dropped_rows == 1  # alone, and so too few whatever the value
    assert not Absence().applies(by_size)
    other = [models[0], model("distinct-l-diversity", l=3)]
    by_distinct = publish([*ROWS[:30], *[("4", "y", "q")] * 3], "optimal-lattice", other, **FAILING)
    assert by_distinct.grouping.dropped_rows == 3
    assert not Absence().applies(by_distinct)
    assert not any(Absence().unable(target) for target in (starred, by_size))
    [told] = attack_target(by_distinct, ["absence"], Adversary("knows-method", knows_method=True))
    assert (told.kind, told.worst.after) == (NOT_COMPUTED, 1)
    assert "3 people are missing because of their values" in told.worst.why
    by_shares = publish(ROWS, "optimal-lattice", models, **FAILING)
    assert Absence().applies(by_shares)
    [both] = attack_target(
        [by_shares, by_distinct], ["absence"], Adversary("knows-method", knows_method=True)
    )
    assert (both.kind, both.worst.why) == (NOT_COMPUTED, told.worst.why), (
        "what one table tells bounds not the other"
    )
