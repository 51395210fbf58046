"""Formulas, joins, several releases and COUNT queries, against enumeration."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.reference_methods import count_actual, count_estimate, relative_error
from maskwright.worlds.statements.fact_beliefs import (
    Atom,
    ClassedRelease,
    Fact,
    belief_given_facts,
    implication_fact,
    joint_of_different_attributes,
    joint_of_same_attribute,
    matching_shares,
    negation_fact,
)
from tests.oracles.worlds import dealt, orders

BUCKETS = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4), min_size=1, max_size=3)


@st.composite
def questions(
    draw: st.DrawFn,
) -> tuple[list[list[str]], list[tuple[list[Atom], list[Atom]]], list[Atom], Atom]:
    buckets = draw(BUCKETS)
    people = [(b, i) for b, values in enumerate(buckets) for i in range(len(values))]
    atom = st.tuples(st.sampled_from(people), st.sampled_from("abcde"))
    atoms = st.lists(atom, min_size=1, max_size=2)
    return (
        buckets,
        draw(st.lists(st.tuples(atoms, atoms), max_size=3)),
        draw(st.lists(atom, max_size=2)),
        draw(atom),
    )


def everybody(buckets: list[list[str]]) -> list[dict[tuple[int, int], str]]:
    return [
        {(b, i): value for b, values in enumerate(world) for i, value in enumerate(values)}
        for world in itertools.product(*(orders(values) for values in buckets))
    ]


@given(questions())
def test_belief_given_a_formula(question: Any) -> None:
    buckets, implications, negations, target = question
    worlds = [
        w for w in everybody(buckets)
        if all(not all(w[p] == v for p, v in a) or any(w[p] == v for p, v in b) for a, b in implications)
        and all(w[p] != v for p, v in negations)
    ]  # fmt: skip
    person, value = target
    expected = Fraction(sum(w[person] == value for w in worlds), len(worlds)) if worlds else None
    knowledge = [*(implication_fact(a, b) for a, b in implications), *map(negation_fact, negations)]
    assert belief_given_facts(buckets, knowledge, target) == expected
    blind = [Fact(fact.people, fact.holds) for fact in knowledge]  # which values matter is not told
    assert belief_given_facts(buckets, blind, target) == expected


def test_any_predicate_is_allowed() -> None:
    buckets = [["a", "a", "b", "c"], ["a", "b"]]
    same = Fact(((0, 0), (1, 0)), lambda w: w[0, 0] == w[1, 0])
    worlds = [w for w in everybody(buckets) if w[0, 0] == w[1, 0]]
    expected = Fraction(sum(w[0, 1] == "a" for w in worlds), len(worlds))
    assert belief_given_facts(buckets, [same], ((0, 1), "a")) == expected


def test_knowledge_about_other_buckets_must_be_consistent_too() -> None:
    buckets = [["a", "b"], ["c", "c"]]
    impossible = negation_fact(((1, 0), "c"))
    assert belief_given_facts(buckets, [impossible], ((0, 0), "a")) is None
    assert belief_given_facts(buckets, [negation_fact(((1, 0), "d"))], ((0, 0), "a")) == Fraction(1, 2)


def test_people_nobody_mentions_cost_nothing() -> None:
    buckets = [[str(i % 50) for i in range(400)], ["x"] * 300 + ["y"] * 300]
    known = [implication_fact([((1, 0), "x")], [((0, 0), "7")]), negation_fact(((0, 1), "7"))]
    found = belief_given_facts(buckets, known, ((0, 0), "7"))
    assert found is not None and found > Fraction(8, 400)


def test_formulas_that_cannot_be_counted_are_refused() -> None:
    buckets = [[str(i) for i in range(30)]]
    chain = [Fact(((0, i), (0, i + 1)), lambda w: True) for i in range(12)]
    with pytest.raises(TooManyWorlds, match="sample"):
        belief_given_facts(buckets, chain, ((0, 0), "1"), limit=10_000)
    with pytest.raises(UsageError, match="no person 30 in bucket 0"):
        belief_given_facts(buckets, [], ((0, 30), "1"))


def test_m1_what_one_implication_discloses_in_figure_3() -> None:
    figure = [["flu", "flu", "lung", "lung", "mumps"], ["flu", "flu", "breast", "heart", "ovarian"]]
    assert belief_given_facts(
        figure, [implication_fact([((0, 1), "lung")], [((0, 0), "flu")])], ((0, 0), "flu")
    ) == Fraction(1, 2)
    assert belief_given_facts(figure, [negation_fact(((0, 0), "lung"))], ((0, 0), "flu")) == Fraction(2, 3)
    assert belief_given_facts(
        figure, [implication_fact([((1, 1), "flu")], [((0, 1), "flu")])], ((0, 1), "flu")
    ) == Fraction(10, 19)


def test_background_join() -> None:
    rows = [["HT", "teacher"], ["DB", "farmer"], ["AS", "teacher"], ["AS", "teacher"]]
    assert matching_shares(rows, [0, 1, 2, 3], {1: "teacher"}, 0) == {
        "HT": Fraction(1, 3),
        "AS": Fraction(2, 3),
    }
    assert matching_shares(rows, [0, 1], {1: "lawyer"}, 0) is None


@given(st.data())
def test_releases_of_overlapping_people(data: st.DataObject) -> None:
    """Against every assignment of values to everybody in any of three releases of some of the people."""
    n = data.draw(st.integers(2, 5))
    truth = [data.draw(st.sampled_from("xyz")) for _ in range(n)]
    releases = []
    for _ in range(data.draw(st.integers(1, 3))):
        label = [data.draw(st.integers(-1, 1)) for _ in range(n)]  # -1: not in it
        classes = [[i for i in range(n) if label[i] == c] for c in sorted(set(label) - {-1})]
        releases.append(ClassedRelease(classes, [[truth[i] for i in members] for members in classes]))
    there = sorted({i for r in releases for members in r.classes for i in members})
    if not there:
        return
    worlds = [dict(zip(there, world, strict=True)) for world in itertools.product("xyz", repeat=len(there))]
    worlds = [
        w
        for w in worlds
        if all(
            Counter(w[i] for i in members) == Counter(values)
            for r in releases
            for members, values in zip(r.classes, r.values, strict=True)
        )
    ]
    for person in there:
        counts = Counter(w[person] for w in worlds)
        expected = {v: Fraction(c, len(worlds)) for v, c in counts.items()}
        assert joint_of_same_attribute(releases, person) == expected


@pytest.mark.parametrize(
    ("common", "expected"),
    [
        (1, {"flu": Fraction(2, 3), "HIV": Fraction(1, 3)}),
        (2, {"flu": Fraction(1, 2), "HIV": Fraction(1, 2)}),
    ],
)
def test_two_groups_with_some_people_in_both(common: int, expected: dict[str, Fraction]) -> None:
    """The weight of a vector of values is the product of falling factorials [Ganta et al. 2008]."""
    first = ClassedRelease([range(4)], [["flu", "flu", "HIV", "cold"]])
    second = ClassedRelease([[*range(common), *range(10, 13 - common)]], [["HIV", "flu", "burn"]])
    assert joint_of_same_attribute([first, second], 0) == expected


@st.composite
def same_attribute(draw: st.DrawFn) -> tuple[list[ClassedRelease], int]:
    n = draw(st.integers(1, 6))
    truth = draw(st.lists(st.sampled_from("xyz"), min_size=n, max_size=n))
    releases = []
    for _ in range(draw(st.integers(1, 3))):
        label = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
        classes = [[i for i in range(n) if label[i] == c] for c in sorted(set(label))]
        values = [[truth[i] for i in members] for members in classes]
        if draw(st.integers(0, 9)) == 0:  # now and then releases that contradict each other
            values[0][0] = draw(st.sampled_from("xyz"))
        releases.append(ClassedRelease(classes, values))
    return releases, draw(st.integers(0, n - 1))


@given(same_attribute())
def test_several_releases_of_the_same_attribute(case: tuple[list[ClassedRelease], int]) -> None:
    releases, person = case
    first = releases[0]
    worlds = [
        world
        for world in dealt(list(zip(first.classes, first.values, strict=True)))
        if all(
            Counter(world[i] for i in members) == Counter(values)
            for release in releases
            for members, values in zip(release.classes, release.values, strict=True)
        )
    ]
    counts = Counter(world[person] for world in worlds)
    expected = {v: Fraction(c, len(worlds)) for v, c in counts.items()} if worlds else None
    assert joint_of_same_attribute(releases, person) == expected


@given(same_attribute())
def test_releases_of_different_attributes_multiply(case: tuple[list[ClassedRelease], int]) -> None:
    releases, person = case
    found = joint_of_different_attributes(releases, person)
    assert sum(found.values()) == 1
    for values, probability in found.items():
        expected = Fraction(1)
        for release, value in zip(releases, values, strict=True):
            mine = release.values[release.class_of(person)]
            expected *= Fraction(mine.count(value), len(mine))
        assert probability == expected


def test_d2_one_large_class_discloses_more_than_k_suggests() -> None:
    found = joint_of_different_attributes([ClassedRelease([range(6)], [["x"] * 5 + ["y"]])], 0)
    assert found[("x",)] == Fraction(5, 6)


def test_large_releases_that_share_cells_are_no_trouble() -> None:
    n = 40
    truth = ["x" if i % 3 else "y" for i in range(n)]
    by = [[[i for i in range(n) if i % m == c] for c in range(m)] for m in (2, 5)]
    releases = [
        ClassedRelease(classes, [[truth[i] for i in members] for members in classes]) for classes in by
    ]
    found = joint_of_same_attribute(releases, 0)
    assert found is not None and sum(found.values()) == 1


def test_releases_that_do_not_fit_are_refused() -> None:
    good = ClassedRelease([[0, 1]], [["x", "y"]])
    for bad in (
        ClassedRelease([[0, 0]], [["x", "y"]]),
        ClassedRelease([[0, 1]], [["x"]]),
    ):
        with pytest.raises(UsageError):
            joint_of_same_attribute([good, bad], 0)
    with pytest.raises(UsageError, match="not in the releases"):
        joint_of_same_attribute([good], 7)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab")), min_size=1, max_size=4),
        min_size=1,
        max_size=2,
    ),
    st.sets(st.integers(0, 2)),
    st.sets(st.sampled_from("ab")),
)
def test_the_estimate_of_a_count_is_its_mean_over_all_worlds(
    groups: Any, allowed: set[int], wanted: set[str]
) -> None:
    predicate = {0: allowed}
    published = [([[q] for q, _ in group], [v for _, v in group]) for group in groups]
    counts = []
    for world in itertools.product(*(orders(values) for _, values in published)):
        rows = [
            (q, v)
            for (qi, _), values in zip(published, world, strict=True)
            for q, v in zip(qi, values, strict=True)
        ]
        counts.append(count_actual(rows, predicate, wanted))
    estimate = count_estimate(published, predicate, wanted)
    assert estimate == Fraction(sum(counts), len(counts))


def test_relative_error_is_undefined_where_nothing_matches() -> None:
    assert relative_error(Fraction(3, 2), 2) == Fraction(1, 4)
    assert relative_error(Fraction(3, 2), 0) is None  # C-15
