"""Known items: the published example, and every set of values listed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.attacks.known_items import RareSets, rare_sets
from tests.amounts import amount

SETS = st.lists(st.frozensets(st.sampled_from("abcd"), max_size=4), min_size=1, max_size=7)


def counted(sets: Iterable[Iterable[str]], most: int, k: int) -> RareSets:
    """With the arrays of the attack."""
    pairs = [(i, "abcd".index(v)) for i, values in enumerate(sets) for v in values]
    person, item = (
        np.array(column, dtype=np.int64) for column in (zip(*pairs, strict=True) if pairs else ([], []))
    )
    return rare_sets(person, item, most, k)


def listed(sets: list[frozenset[str]], most: int) -> dict[frozenset[str], int]:
    """How many people hold each set of at most so many values that somebody holds."""
    known = {
        frozenset(c) for s in sets for n in range(1, most + 1) for c in itertools.combinations(sorted(s), n)
    }
    return {c: sum(c <= s for s in sets) for c in known}


def test_the_published_example() -> None:
    """{abc, ab, ac, bc}: every pair is held by two people, the three values together by one."""
    assert counted(["abc", "ab", "ac", "bc"], 2, 2) == RareSets(2, 2, 0, 0)
    three = counted(["abc", "ab", "ac", "bc"], 3, 2)
    assert (three.fewest, three.size, three.witness, three.people) == (1, 3, 0, 1)


@given(SETS, st.integers(1, 4), st.integers(1, 3))
def test_by_listing_every_set(sets: list[frozenset[str]], most: int, k: int) -> None:
    held = listed(sets, most)
    found = counted(sets, most, k)
    if held:
        assert found.fewest == min(held.values())
        assert found.people == sum(any(c <= s and n < k for c, n in held.items()) for s in sets)


def released(sets: list[frozenset[str]], **more: Any) -> mw.Release:
    frame = pd.DataFrame(
        {"p": ["12"[i % 2] for i in range(len(sets))], "s": [";".join(sorted(s)) for s in sets]}
    )
    policy = {
        "columns": {
            "p": {"role": "quasi-identifier", "hierarchy": "suppress", "levels": ["0"]},
            "s": {"role": "sensitive", "multivalued": ";"},
        },
        "require": [{"model": "k-anonymity", "k": 1}],
    }
    return mw.anonymize(frame, policy | more)


@settings(max_examples=amount(8, 500))
@given(SETS, st.integers(1, 3))
def test_inside_the_class_of_the_person(sets: list[frozenset[str]], items: int) -> None:
    if not any(sets):
        return
    found = mw.attack(released(sets), mw.attacks.KnownItems(items=items))
    classes = [listed(sets[i::2], items) for i in (0, 1)]
    assert found.worst.after == Fraction(1, min(n for held in classes for n in held.values()))
    alone = found.measures["sets"]["s"]["by_sets_alone"]
    assert alone["fewest"] == min(listed(sets, items).values())
    below = sum(
        any(c <= s and n < found.measures["k"] for c, n in classes[i % 2].items()) for i, s in enumerate(sets)
    )
    assert found.measures["sets"]["s"]["vulnerable_people"] == below


def test_it_runs_where_there_are_sets() -> None:
    made = released([frozenset("ab"), frozenset("ab"), frozenset("a"), frozenset("a")])
    (found,) = [b for b in made.beliefs if b.attack == "known-items"]
    assert found.worst.after == 1
    assert "2 values of s can be known" in found.worst.whom or "1 value of s can be known" in found.worst.whom


@settings(max_examples=amount(8, 300))
@given(
    st.lists(
        st.tuples(st.sampled_from("ABC"), st.frozensets(st.sampled_from("abc"))), min_size=4, max_size=8
    ),
    st.integers(1, 3),
    st.booleans(),
)
def test_several_rows_of_a_person(rows: list[tuple[str, frozenset[str]]], items: int, linked: bool) -> None:
    """Every set of values of a row, or of all rows that a pseudonym links: who has it, and where."""
    rows = [("A", rows[0][1]), ("A", rows[1][1]), *rows[2:]]
    if not any(held for _, held in rows):
        return
    frame = pd.DataFrame({
        "id": [p for p, _ in rows], "p": ["12"[i % 2] for i in range(len(rows))],
        "s": [";".join(sorted(held)) for _, held in rows],
    })  # fmt: skip
    policy = {
        "unit": {"column": "id", "publish": "pseudonym" if linked else None},
        "columns": {
            "id": "identifier",
            "p": {"role": "quasi-identifier", "hierarchy": "suppress", "levels": ["0"]},
            "s": {"role": "sensitive", "multivalued": ";"},
        },
        "require": [{"model": "k-anonymity", "k": 1}],
    }
    found = mw.attack(mw.anonymize(frame, policy), mw.attacks.KnownItems(items=items))
    everything = {q: frozenset().union(*(held for p, held in rows if p == q)) for q in "ABC"}
    placed = [("12"[i % 2], p, everything[p] if linked else held) for i, (p, held) in enumerate(rows)]
    fewest = []
    for places in ("1", "2", "12"):
        there = [(p, held) for q, p, held in placed if q in places]
        known = listed([held for _, held in there], items)
        fewest.append(min((len({p for p, held in there if c <= held}) for c in known), default=9))
    assert found.kind == "exact"
    assert found.worst.after == Fraction(1, min(fewest[:2]))
    assert found.measures["sets"]["s"]["by_sets_alone"]["fewest"] == fewest[2]
