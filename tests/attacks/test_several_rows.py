"""Several rows per person: the belief in some row of the person, against listing every assignment of values to rows."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.errors import PolicyNotMet
from tests.patients import forget

Row = tuple[str, str, str]  # person, quasi-identifier, value


def policy(largest: str, **belief: Any) -> dict[str, Any]:
    return {
        "unit": "id",
        "columns": {"id": "identifier", "q": "quasi-identifier", "s": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 1}, {"model": "belief", "max": largest, **belief}],
        "method": "optimal-lattice",
    }


def table(rows: list[Row]) -> pa.Table:
    return pa.table(dict(zip(("id", "q", "s"), map(list, zip(*rows, strict=True)), strict=True)))


def by_listing(rows: list[Row]) -> Fraction:
    """The worst belief that somebody has a value in some row: values are dealt anew inside each class."""
    classes: dict[str, list[Row]] = {}
    for row in rows:
        classes.setdefault(row[1], []).append(row)
    worlds = []
    for members in classes.values():
        people = [p for p, _, _ in members]
        worlds.append(
            [
                list(zip(people, dealt, strict=True))
                for dealt in itertools.permutations(v for _, _, v in members)
            ]
        )
    held: Counter[tuple[str, str]] = Counter()
    total = 0
    for world in itertools.product(*worlds):
        total += 1
        held.update({pair for part in world for pair in part})
    return max(Fraction(n, total) for n in held.values())


@pytest.mark.parametrize("number", range(12))
def test_against_every_assignment(number: int) -> None:
    rng = Random(number)  # noqa: S311 - cases, not secrets
    rows = [(rng.choice("ABC"), rng.choice("xy"), rng.choice("pqr")) for _ in range(rng.randint(3, 6))]
    release = mw.anonymize(table(rows), policy("1"))
    [found] = [b for b in release.beliefs if b.attack == "homogeneity"]
    assert found.worst.after == by_listing(rows)
    assert found.kind == "exact"


SEVEN = [("A", "x", v) for v in "habcdef"] + [("B", "x", "g"), ("C", "x", "i"), ("D", "x", "j")]


def test_who_has_most_rows_of_a_class_is_believed_to_have_most_values() -> None:
    """Seven of ten rows, each value once: 7/10, though each value has a tenth of the rows."""
    with pytest.raises(PolicyNotMet, match=r"7/10 .*somebody with 7 of the 10 rows.*larger classes"):
        mw.anonymize(table(SEVEN), policy("1/4"))
    forget()
    found = next(v for v in mw.anonymize(table(SEVEN), policy("7/10")).verdicts if v.model == "belief")
    assert (found.worst, found.status) == (Fraction(7, 10), "guaranteed")


def test_facts_about_people_with_several_rows_are_not_computed_and_count_as_one() -> None:
    with pytest.raises(PolicyNotMet, match="taken to be 1"):
        mw.anonymize(table(SEVEN), policy("9/10", adversary="insider", facts=1))
    forget()
    release = mw.anonymize(table(SEVEN), policy("1"))
    beliefs = mw.attack(release, "combined", adversary="insider")
    assert not isinstance(beliefs, list)
    assert (beliefs.kind, beliefs.worst.upper) == ("not computed", 1)
    assert "several rows" in beliefs.worst.why


def test_a_gate_that_counts_people_is_not_covered() -> None:
    """Whether it passes depends on whose rows hold a value, and that is not published."""
    asked = policy("7/10") | {
        "require": [{"model": "k-anonymity", "k": 1}, {"model": "simple-l-diversity", "l": 2, "use": "gate"},
                    {"model": "belief", "max": "7/10"}]
    }  # fmt: skip
    found = next(v for v in mw.anonymize(table(SEVEN), asked).verdicts if v.model == "belief")
    assert found.status == "measured"
    assert "gate (simple-l-diversity)" in found.why
