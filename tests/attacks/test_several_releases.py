"""What the choices of methods tell together, release by release: as the product itself comes to on every world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.attacks.minimality import Minimality
from maskwright.domain.beliefs import NOT_COMPUTED, Beliefs
from maskwright.policy.policy import Policy
from tests.amounts import LONG
from tests.promise.posterior import Outputs, enumerated
from tests.promise.product import Public, release_of
from tests.promise.small_engine import SmallTable
from tests.promise.tables import Case

FREE = {"model": "simple-l-diversity", "l": 2, "values": ["a"]}
FIVE = [("1", "x"), ("1", "x"), ("1", "y"), ("2", "x"), ("2", "y")]
Rows = Sequence[tuple[str, ...]]


def case_of(rows: Rows) -> Case:
    names = ("p", "q")[: len(rows[0])]
    people = tuple(str(i) for i in range(len(rows)))
    return Case(names, tuple(rows), people, {"s": ("a", "b")}, {"s": (1, 1)})


def policy_of(method: Any, names: str = "pq", free: str = "", model: Any = FREE) -> Policy:
    """`free`: the only column that may be kept; empty: any."""
    chosen = {
        n: {"hierarchy": "suppress", "levels": ["0", "1"] if n == free else ["1"]} if free else {}
        for n in names
    }
    return Policy.load({
        "columns": {n: {"role": "quasi-identifier", **more} for n, more in chosen.items()} | {"s": "sensitive"},
        "method": method,
        "require": [{"model": "k-anonymity", "k": 2}, model],
    })  # fmt: skip


def one_order(case: Case, world: Sequence[int]) -> tuple[int, ...]:
    """The order of the values of people who are alike that the product is run on."""
    result = list(world)
    for rows in case.kinds:
        for i, value in zip(rows, sorted(world[i] for i in rows), strict=True):
            result[i] = value
    return tuple(result)


def brute_force(
    cases: Sequence[Case],
    outputs: Sequence[Outputs],
    publics: Sequence[Public],
    people: Sequence[Sequence[int]],
) -> Fraction:
    """The worst belief, over all assignments of values to people; `people[i]`: whose the rows of table i are."""
    everybody = sorted({p for mine in people for p in mine})
    held: Counter[int] = Counter()
    total = Fraction(0)
    for values in product(range(2), repeat=len(everybody)):
        has = dict(zip(everybody, values, strict=True))
        weight = Fraction(1)
        for case, every, public, mine in zip(cases, outputs, publics, people, strict=True):
            world = one_order(case, [has[p] for p in mine])
            chance = every[public].likelihood.get(world, 0.0)
            weight *= Fraction(chance).limit_denominator(10_000)
        total += weight
        for p, value in has.items():
            held[p] += weight * (case.values[value] == ("a",))
    return max(held.values()) / total


def compared(
    cases: Sequence[Case], policies: Sequence[Policy], people: Sequence[Sequence[int]], listed: bool
) -> set[Fraction]:
    """The beliefs in the pairs of releases that some table leads to: of each belief one pair is attacked, in the long
    run every pair. Nobody may be dropped."""
    outputs = [enumerated(case, policy, 20_000) for case, policy in zip(cases, policies, strict=True)]
    everybody = sorted({p for mine in people for p in mine})
    pairs: dict[tuple[Public, ...], tuple[Fraction, list[SmallTable]]] = {}
    for values in product(range(2), repeat=len(everybody)):
        has = dict(zip(everybody, values, strict=True))
        worlds = [one_order(case, [has[p] for p in mine]) for case, mine in zip(cases, people, strict=True)]
        tables = [case.table([has[p] for p in mine]) for case, mine in zip(cases, people, strict=True)]
        for publics in product(*(
            [public for public, told in every.items() if told.likelihood.get(world) and all(told.there)]
            for every, world in zip(outputs, worlds, strict=True)
        )):  # fmt: skip
            if publics not in pairs:
                pairs[publics] = brute_force(cases, outputs, publics, people), tables
    rows = [
        {"person": str(p), "release": str(r)} | dict(zip(case.names, known, strict=True))
        for r, (case, mine) in enumerate(zip(cases, people, strict=True), 1)
        for p, known in zip(mine, case.known, strict=True)
    ]
    attack = Minimality(people=rows) if listed else Minimality()
    attacked = set[Fraction]()
    for publics, (true, tables) in pairs.items():
        if true in attacked and not LONG:
            continue
        attacked.add(true)
        releases = [release_of(*each) for each in zip(tables, policies, publics, strict=True)]
        belief = mw.attack(releases, attack)
        assert isinstance(belief, Beliefs)
        assert belief.kind == "exact", belief.sentence()
        if "together" in belief.measures:
            assert belief.measures["together"]["worst"].after == true
        assert belief.worst.after >= true
    return attacked


LATTICE = "optimal-lattice"
STRICT = {"name": "mondrian", "cut": "strict"}
PAIRS: dict[str, tuple[Rows, Policy, Policy]] = {
    "one column refused, then the other": (FIVE, policy_of(LATTICE, free="p"), policy_of(LATTICE, free="q")),
    "one column refused, then cuts": (FIVE, policy_of(LATTICE, free="p"), policy_of(STRICT)),
    "random groups and cuts": (
        [("1", "x"), ("1", "y"), ("2", "x"), ("3", "y")],
        policy_of("greedy-grouping"),
        policy_of(STRICT),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_releases_of_the_same_people(name: str) -> None:
    rows, *policies = PAIRS[name]
    case, everybody = case_of(rows), range(len(rows))
    assert len(compared([case, case], policies, [everybody, everybody], listed=False)) > 1


@pytest.mark.parametrize("method", [LATTICE, "greedy-grouping"])
def test_releases_of_overlapping_people_in_a_list(method: str) -> None:
    """Person 0 is in the first release only, 5 in the second; the others have other quasi-identifiers there."""
    cases = [case_of([("1",), ("1",), ("2",), ("2",)]), case_of([("4",), ("5",), ("4",), ("5",)])]
    policies = [policy_of(method, "p", "p" if method == LATTICE else ""), policy_of(LATTICE, "p", "p")]
    assert len(compared(cases, policies, [[0, 1, 2, 3], [1, 2, 3, 5]], listed=True)) > 1


def refused(rows: Rows, values: str, free: str) -> mw.Release:
    """A release that may keep one column only."""
    table = pd.DataFrame(rows, columns=list("pq")).assign(s=list(values))
    return mw.anonymize(table, policy_of(LATTICE, free=free))


def test_each_leaves_a_half_and_both_nothing() -> None:
    releases = [refused(FIVE, "aabbb", free) for free in "pq"]
    for release in releases:
        alone = mw.attack(release, "minimality")
        assert (alone.kind, alone.worst.after) == ("exact", Fraction(1, 2))
    found = mw.attack(releases, "minimality")
    assert (found.kind, found.worst.after) == ("exact", 1)
    assert found.worst.whom == "each of the 2 people with p 1, q x"
    assert found.measures["vulnerable_people"] == 2


def test_what_is_not_counted_counts_as_one() -> None:
    two = [refused(FIVE, "aabbb", "p"), refused(FIVE, "babab", "q")]  # somebody's value has changed
    many = [refused(FIVE * 3, "aabbb" * 3, free) for free in "pq"]  # 54 worlds, of which 4 · 10 are looked at
    for releases in (two, many):
        found = mw.attack(releases, Minimality(draws=10))
        assert (found.kind, found.worst.upper) == (NOT_COMPUTED, 1)
    assert mw.attack(many, "minimality").kind == "exact"
