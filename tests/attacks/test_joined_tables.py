"""Background joins and intersections against enumeration of everything that the tables leave open."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.attacks import intersection
from maskwright.attacks.intersection import JoinedPeople, joined_beliefs, link_rows
from maskwright.cli import main
from maskwright.domain.beliefs import Beliefs
from maskwright.errors import UsageError
from maskwright.pipeline.attacking import target_of
from maskwright.worlds.statements.fact_beliefs import matching_shares
from tests.amounts import amount

Rows = list[tuple[str, ...]]


def release(
    rows: Rows, names: str, levels: dict[str, list[str]], method: Any = None, **more: Any
) -> mw.Release:
    """Columns p and q are quasi-identifiers that are exact or suppressed, `levels` says which; the rest sensitive."""
    frame = pd.DataFrame(rows, columns=list("pq" + names))
    roles: dict[str, Any] = {
        name: {"role": "quasi-identifier", "hierarchy": "suppress", "levels": levels.get(name, ["0"])}
        for name in "pq"
    }
    policy = {
        "columns": roles | dict.fromkeys(names, "sensitive"),
        "require": [{"model": "k-anonymity", "k": 1}],
        "method": method or "optimal-lattice",
        **more,
    }
    return mw.anonymize(frame, policy)


def attack(releases: Any, name: Any, **options: Any) -> Beliefs:
    found = mw.attack(releases, name, **options)
    assert isinstance(found, Beliefs)
    return found


TABLE = st.lists(st.tuples(*(st.sampled_from(v) for v in ("12", "xy", "abc", "uv"))), min_size=2, max_size=7)


@settings(max_examples=amount(10, 1_000))
@given(TABLE)
def test_background_join_is_the_worst_over_classes_known_values_and_targets(rows: Rows) -> None:
    made = release(rows, "ab", {"q": ["1"]})
    published = [tuple(row) for row in made.table.itertuples(index=False)]
    worst = Fraction(0)
    for known, target in ((2, 3), (3, 2)):
        for row in published:
            members = [i for i, r in enumerate(published) if r[0] == row[0]]
            found = matching_shares(published, members, {known: row[known]}, target)
            assert found is not None
            worst = max(worst, *found.values())
    assert attack(made, "background-join").worst.after == worst


def test_example_2_of_the_paper() -> None:
    """Asthma is 1/2 in the class of Bob; whoever knows that he is a teacher is certain."""
    rows: Rows = [("1", "x", "HT", "teacher"), ("1", "x", "HT", "lawyer"), ("2", "x", "DB", "farmer"),
                  ("2", "x", "AS", "teacher")]  # fmt: skip
    made = release(rows, "ab", {})
    found = attack(made, mw.attacks.BackgroundJoin(known=["b"]))
    assert found.worst.after == 1
    assert found.measures["certain_people"] == 4
    apart = release(rows, "ab", {}, {"name": "codip", "plan": [["a"], ["b"]]})
    assert all(b.attack != "background-join" for b in apart.beliefs)
    with pytest.raises(UsageError, match="does not apply"):
        mw.attack(apart, "background-join")


def test_what_is_shuffled_apart_cannot_be_joined() -> None:
    rows: Rows = [("1", "x", v, w) for v, w in ("au", "bv", "au", "bv")]
    joined = attack(release(rows, "ab", {}), "background-join")
    assert joined.worst.after == 1
    apart = release(rows, "ab", {}, recoding={"name": "permute"})
    assert all(b.attack != "background-join" for b in apart.beliefs)
    kept = release(rows, "ab", {}, recoding={"name": "permute", "together": [["a", "b"]]})
    assert attack(kept, "background-join").worst.after == 1


def test_sets_of_known_attributes() -> None:
    rows: Rows = [("1", "x", *v) for v in ("aau", "abv", "bav", "bbu", "aau", "abv", "bav", "bbu")]
    made = release(rows, "abc", {})
    assert attack(made, "background-join").worst.after == Fraction(1, 2)
    assert attack(made, mw.attacks.BackgroundJoin(size=2)).worst.after == 1
    assert attack(made, mw.attacks.BackgroundJoin(known=["a", "b"])).worst.after == 1
    with pytest.raises(UsageError, match="'z'"):
        mw.attack(made, mw.attacks.BackgroundJoin(known=["z"]))


# --- the same attribute in two releases ---------------------------------------------------------------


def consistent(rows: Rows, column: int, groupings: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
    """All ways to deal the values so that every release shows what it shows; rows with equal QIs are people too."""

    def shown(values: Sequence[str]) -> list[Any]:
        result = []
        for positions in groupings:
            classes: dict[tuple[str, ...], Counter[str]] = {}
            for row, value in zip(rows, values, strict=True):
                classes.setdefault(tuple(row[i] for i in positions), Counter())[value] += 1
            result.append(classes)
        return result

    true = shown([row[column] for row in rows])
    values = sorted({row[column] for row in rows})
    return [w for w in itertools.product(values, repeat=len(rows)) if shown(w) == true]


@settings(max_examples=amount(10, 1_000))
@given(
    st.lists(
        st.tuples(st.sampled_from("12"), st.sampled_from("xy"), st.sampled_from("abc")),
        min_size=2,
        max_size=7,
    )
)
def test_the_same_attribute_twice_is_counted_exactly(rows: Rows) -> None:
    first, second = release(rows, "a", {"q": ["1"]}), release(rows, "a", {"p": ["1"]})
    worlds = consistent(rows, 2, [[0], [1]])
    worst = max(
        Fraction(sum(w[i] == v for w in worlds), len(worlds))
        for i in range(len(rows))
        for v in {r[2] for r in rows}
    )
    found = attack([first, second], "intersection")
    assert found.kind == "exact"
    assert found.worst.after == worst
    assert found.measures["in_several_tables"] == ["a"]


def test_table_1_c_and_d_identify_every_diagnosis() -> None:
    """Publishing diagnosis under the pairings {13}{24} and {14}{23} reveals it, though each alone says 1/2."""
    rows: Rows = [("1", "x", "HT"), ("2", "y", "HT"), ("1", "y", "DB"), ("2", "x", "AS")]
    first, second = release(rows, "a", {"q": ["1"]}), release(rows, "a", {"p": ["1"]})
    assert (
        attack(first, "homogeneity").worst.after
        == attack(second, "homogeneity").worst.after
        == Fraction(1, 2)
    )
    assert attack([first, second], "intersection").worst.after == 1


def test_large_components_are_fitted_and_say_so() -> None:
    draw = np.random.default_rng(5)
    rows: Rows = [
        (str(draw.integers(3)), "xyz"[draw.integers(3)], "abc"[draw.integers(3)]) for _ in range(90)
    ]
    first, second = release(rows, "a", {"q": ["1"]}), release(rows, "a", {"p": ["1"]})
    found = attack([first, second], "intersection")
    assert found.kind == "estimated"
    assert "it is only certain that nobody believes more than" in found.worst.why
    assert 0 < found.worst.after < found.worst.upper <= 1


def test_the_fit_is_near_the_exact_count(monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.attacks import intersection

    draw = np.random.default_rng(2)
    rows: Rows = [(str(i % 2), "xy"[i // 2 % 2], "ab"[draw.integers(2)]) for i in range(40)]
    targets = [target_of(release(rows, "a", level)) for level in ({"q": ["1"]}, {"p": ["1"]})]
    counts = [t.grouping.published_classes.sensitive["a"] for t in targets]
    cells = JoinedPeople.of(targets).cells([0, 1])
    exact = joined_beliefs(cells, counts)
    assert exact.exact.all()
    monkeypatch.setattr(intersection, "MOST_PEOPLE", 0)
    fitted = joined_beliefs(cells, counts)
    assert not fitted.exact.any()
    assert np.abs(fitted.of - exact.of).max() < 0.02
    assert fitted.most is not None
    assert (fitted.most >= exact.of - 1e-12).all()
    assert fitted.most.min() < 1, "cells of ten people in classes of twenty are not certain of a rare value"


def test_releases_of_other_people_are_refused() -> None:
    first = release([("1", "x", "a"), ("2", "x", "b")], "a", {})
    other = release([("1", "z", "a"), ("2", "y", "b")], "a", {})
    with pytest.raises(UsageError, match="not about the same people"):
        mw.attack([first, other], "intersection")


# --- releases about overlapping people ----------------------------------------------------------------

ALL = {"p": ["1"], "q": ["1"]}


def two_hospitals(common: int) -> tuple[mw.Release, mw.Release]:
    """The values of the specification; so many people have been in both, and are the first of either."""
    first = ["flu", "HIV", "flu", "cold"]
    second = [*first[:common], *(v for v in ("HIV", "flu", "burn") if v not in first[:common])]
    return (
        release([(str(i), "x", v) for i, v in enumerate(first)], "a", ALL),
        release([(str(i if i < common else 9 - i), "x", v) for i, v in enumerate(second)], "a", ALL),
    )


@pytest.mark.parametrize(("common", "worst"), [(1, Fraction(2, 3)), (2, Fraction(1))])
def test_two_hospitals_with_common_patients(common: int, worst: Fraction) -> None:
    """One common patient of {flu, flu, HIV, cold} and {HIV, flu, burn}: flu 2/3; two: the third one has the burn."""
    found = attack(list(two_hospitals(common)), "intersection")
    assert found.kind == "exact"
    assert found.worst.after == worst
    assert found.measures["people"] == {
        "known": "matched", "in_several_tables": common, "in_any": 7 - common,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("common", "flu", "hiv"),
    [(1, Fraction(2, 3), Fraction(1, 3)), (2, Fraction(1, 2), Fraction(1, 2))],
)
def test_the_published_beliefs_about_common_patients(common: int, flu: Fraction, hiv: Fraction) -> None:
    """The weight of a value is the product of how often both hospitals have it; nobody common has a cold or burn."""
    targets = [target_of(r) for r in two_hospitals(common)]
    cells = JoinedPeople.of(targets).cells([0, 1])
    shown = [t.grouping.published_classes.sensitive["a"] for t in targets]
    values = sorted({v for c in shown for v in c.values})
    counts = [
        replace(
            c, values=tuple(values), codes=np.array([0, *(1 + values.index(v) for v in c.values)])[c.codes]
        )
        for c in shown
    ]
    found = joined_beliefs(cells, counts)
    both = int(np.flatnonzero((cells.classes >= 0).all(axis=0))[0])
    assert {values[code - 1]: share for code, share in found.fractions[both].items()} == {
        "flu": flu,
        "HIV": hiv,
    }


PEOPLE = st.lists(
    st.tuples(st.sampled_from("12"), st.sampled_from("xy"), st.sampled_from("abc"), st.integers(1, 3)),
    min_size=2,
    max_size=6,
    unique_by=lambda row: row[:2],
)


@settings(max_examples=amount(15, 1_000))
@given(PEOPLE, st.booleans())
def test_overlapping_people_against_all_worlds(people: list[tuple[str, str, str, int]], listed: bool) -> None:
    """Everybody is in the first table (1), the second (2) or both (3); every dealing that fits both is counted."""
    inside = [[i for i, row in enumerate(people) if row[3] & bit] for bit in (1, 2)]
    if not all(inside) or not set(inside[0]) & set(inside[1]):
        return
    made = [
        release([people[i][:3] for i in inside[0]], "a", {"q": ["1"]}),
        release([people[i][:3] for i in inside[1]], "a", {"p": ["1"]}),
    ]
    worlds = list(itertools.product("abc", repeat=len(people)))
    for column, members in enumerate(inside):
        for key in {people[i][column] for i in members}:
            group = [i for i in members if people[i][column] == key]
            true = Counter(people[i][2] for i in group)
            worlds = [w for w in worlds if Counter(w[i] for i in group) == true]
    worst = max(
        Fraction(sum(w[i] == v for w in worlds), len(worlds)) for i in range(len(people)) for v in "abc"
    )
    rows = [
        {"person": str(i), "release": str(r + 1), "p": people[i][0], "q": people[i][1]}
        for r, members in enumerate(inside)
        for i in members
    ]
    found = attack(made, mw.attacks.Intersection(people=rows) if listed else "intersection")
    assert (found.kind, found.worst.after) == ("exact", worst)


def test_the_command_takes_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value, other in (("r1", "1", "b"), ("r2", "2", "c")):
        release([(value, "x", "a"), (value, "x", other)], "a", {}).save(tmp_path / name)
    people = tmp_path / "people.csv"
    people.write_text("person,release,p,q\nA,1,1,x\nA,2,2,x\n")
    places = [str(tmp_path / "r1"), str(tmp_path / "r2")]
    assert main(["attack", *places, "--people", str(people), "--json"]) == 0
    found = {b["attack"]: b for b in json.loads(capsys.readouterr().out)["beliefs"]}
    assert found["intersection"]["worst"]["after"] == 1
    assert main(["attack", *places, "--attack", "intersection"]) == 2
    assert "not about the same people" in capsys.readouterr().err
    assert main(["attack", places[0], "--people", str(people)]) == 2
    assert "several releases" in capsys.readouterr().err


def test_a_list_says_who_is_the_same() -> None:
    """By their quasi-identifiers nobody is in both: one who moved between the releases is, and only the list knows."""
    first = release([("1", "x", v) for v in "ab"], "a", {})
    second = release([("2", "y", v) for v in "ac"], "a", {})
    rows = [
        {"person": "A", "release": "1", "p": "1", "q": "x"},
        {"person": "A", "release": "2", "p": "2", "q": "y"},
    ]
    found = attack([first, second], mw.attacks.Intersection(people=rows))
    assert (found.worst.after, found.kind) == (
        1,
        "exact",
    )  # a is all that both classes have, so b and c are the others'
    assert found.measures["people"] == {"known": "listed", "in_several_tables": 1, "in_any": 3}
    for wrong, problem in (
        ([{"release": "1", "p": "1", "q": "x"}], "'person'"),
        ([{"person": "A", "release": "3", "p": "1", "q": "x"}], "'3'"),
        ([{"person": "A", "release": "1", "p": "1"}], "'q'"),
        ([{"person": "A", "release": "1", "p": "7", "q": "x"}], "nobody"),
        ([rows[0], rows[0]], "already names"),
        ([rows[0] | {"person": str(i)} for i in range(3)], "3 people"),
    ):
        with pytest.raises(UsageError, match=problem):
            attack([first, second], mw.attacks.Intersection(people=wrong))


def test_tables_that_contradict_each_other_are_about_different_people() -> None:
    first, second = (release([("1", "x", v)] * 2, "a", {}) for v in "ab")
    found = attack([first, second], "intersection")
    assert found.measures["contradicted_people"] == 2
    assert found.kind == "estimated"


# --- people with equal quasi-identifiers, in several classes ----------------------------------------------


def anatomy(people: Sequence[tuple[str, str, str]], seed: int) -> mw.Release:
    """Buckets of two; everybody has a name, an age that others share, and a value."""
    made = {
        "columns": {"age": {"role": "quasi-identifier", "hierarchy": "suppress"}, "ill": "sensitive"},
        "require": [{"model": "simple-l-diversity", "l": 2, "use": "gate"}],
        "method": {"name": "anatomy", "l": 2}, "recoding": "bucketize",
    }  # fmt: skip
    return mw.anonymize(pd.DataFrame([p[1:] for p in people], columns=["age", "ill"]), made, seed=seed)


def ways_to_group(made: mw.Release, people: Sequence[tuple[str, str, str]], world: dict[str, str]) -> int:
    """In how many ways these people can be in the classes, by their ages and the values that they have in a world."""
    grouping = made.grouping
    ages, allocation = grouping.summary.attributes[0].values, grouping.allocation
    held = grouping.published_classes.sensitive["ill"]
    shown: dict[int, Counter[str]] = {}
    for g, code, n in zip(held.owner.tolist(), held.codes.tolist(), held.counts.tolist(), strict=True):
        shown.setdefault(g, Counter())[held.values[code - 1]] += n
    slots: dict[str, list[int]] = {}
    entries = zip(*(x.tolist() for x in (allocation.tuples, allocation.groups, allocation.rows)), strict=True)
    for t, g, rows in entries:
        slots.setdefault(ages[grouping.summary.codes[0, t] - 1], []).extend([g] * rows)
    by_age = [[p for p in people if p[1] == age] for age in slots]
    orders = [set(itertools.permutations(groups)) for groups in slots.values()]
    found = 0
    for chosen in itertools.product(*orders):
        dealt: dict[int, Counter[str]] = {}
        for mine, groups in zip(by_age, chosen, strict=True):
            for person, g in zip(mine, groups, strict=True):
                if g >= 0:
                    dealt.setdefault(g, Counter())[world[person[0]]] += 1
        found += dealt == shown
    return found


@pytest.mark.parametrize("number", range(amount(6, 400)))
def test_people_with_equal_quasi_identifiers_against_all_worlds(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person is one person in both releases, and nobody knows which of those of the same age."""
    draw = np.random.default_rng(number)
    several = list(zip("pqrstu", draw.choice(list("12"), 6).tolist(), "abcabc", strict=True))
    inside = [several, several] if number % 2 else [several[:4], several[2:]]
    made = [anatomy(people, seed) for seed, people in enumerate(inside)]
    names = [p[0] for p in several]
    worlds = {}
    for values in itertools.product("abc", repeat=6):
        world = dict(zip(names, values, strict=True))
        worlds[values] = ways_to_group(made[0], inside[0], world)
        worlds[values] *= ways_to_group(made[1], inside[1], world) if worlds[values] else 0
    total = sum(worlds.values())
    truth = max(
        Fraction(sum(n for w, n in worlds.items() if w[i] == v), total) for i in range(6) for v in "abc"
    )
    rows = [
        {"person": p[0], "release": str(r + 1), "age": p[1]}
        for r, people in enumerate(inside)
        for p in people
    ]
    found = attack(made, mw.attacks.Intersection(people=rows))
    assert (found.kind, found.worst.after) == ("exact", truth)
    assert (found.measures["certain_people"] > 0) == (truth == 1)
    monkeypatch.setattr(intersection, "MOST_PEOPLE", 0)
    fitted = attack(made, mw.attacks.Intersection(people=rows))
    assert fitted.worst.upper >= truth, "what counts is never too small"
    assert fitted.kind == "estimated" or (fitted.kind, fitted.worst.interval) == ("bounded", None)
    assert abs(fitted.worst.after - truth) < Fraction(1, 4), "it is right in the limit of large classes"
    assert truth == 1 or fitted.measures["certain_people"] == 0


@pytest.mark.parametrize("number", range(amount(4, 400)))
def test_what_counts_of_a_fit_is_not_below_the_exact_belief(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small classes, in which a fit is at its worst: numbers that are fitted may be too small, those that count not."""
    draw = np.random.default_rng(number)
    rows: Rows = [
        (str(draw.integers(3)), "xyz"[draw.integers(3)], "abc"[draw.integers(3)]) for _ in range(12)
    ]
    made = [release(rows, "a", level) for level in ({"q": ["1"]}, {"p": ["1"]})]
    exact = attack(made, "intersection")
    assert exact.kind == "exact"
    monkeypatch.setattr(intersection, "MOST_PEOPLE", 0)
    fitted = attack(made, "intersection")
    assert fitted.worst.upper >= exact.worst.after
    assert fitted.worst.upper < 1 or fitted.kind == "estimated" or fitted.worst.after == 1


# --- different attributes -----------------------------------------------------------------------------


@settings(max_examples=amount(10, 1_000))
@given(TABLE)
def test_different_attributes_add_nothing(rows: Rows) -> None:
    apart = release(rows, "ab", {"q": ["1"]}, {"name": "codip", "plan": [["a"], ["b"]]})
    found = attack(apart, "intersection")
    assert found.kind == "exact"
    assert found.worst.after == attack(apart, "homogeneity").worst.after


def brute_link(first: Sequence[str], second: Sequence[str]) -> Fraction:
    """The largest chance that two rows are about the same person: people i is in class first[i] and second[i]."""
    n, best = len(first), Fraction(0)

    def orders(classes: Sequence[str]) -> list[tuple[int, ...]]:
        """All ways in which the rows (sorted by class) can be those of the people."""
        rows = sorted(range(n), key=lambda i: (classes[i], i))
        return [
            p
            for p in itertools.permutations(range(n))
            if all(classes[p[j]] == classes[rows[j]] for j in range(n))
        ]

    left, right = orders(first), orders(second)
    for i, j in itertools.product(range(n), repeat=2):
        same = sum(a[i] == b[j] for a in left for b in right)
        best = max(best, Fraction(same, len(left) * len(right)))
    return best


@settings(max_examples=amount(10, 1_000))
@given(st.lists(st.tuples(st.sampled_from("12"), st.sampled_from("xy")), min_size=2, max_size=5))
def test_links_between_rows_are_those_of_all_correspondences(people: list[tuple[str, str]]) -> None:
    rows: Rows = [(p, q, "ab"[i % 2]) for i, (p, q) in enumerate(people)]
    targets = [target_of(release(rows, "a", level)) for level in ({"q": ["1"]}, {"p": ["1"]})]
    found = link_rows(JoinedPeople.of(targets), 0, 1)
    expected = brute_link([p for p, _ in people], [q for _, q in people])
    assert found["best_guess"] == pytest.approx(float(expected))
    assert 0 < found["expected_share"] <= found["best_guess"] + 1e-12


SETS = st.lists(
    st.tuples(st.sampled_from("12"), st.sets(st.sampled_from("abc"), min_size=1)), min_size=2, max_size=8
)


@settings(max_examples=amount(10, 1_000))
@given(SETS)
def test_values_of_one_set_in_two_tables_depend_on_each_other(people: list[tuple[str, set[str]]]) -> None:
    every = sorted(set().union(*(s for _, s in people)))
    if len(every) < 2:
        return
    frame = pd.DataFrame({"p": [p for p, _ in people], "s": [";".join(sorted(s)) for _, s in people]})
    bits = [f"s={v}" for v in every]
    made = mw.anonymize(
        frame,
        {
            "columns": {
                "p": {"role": "quasi-identifier", "hierarchy": "suppress"},
                "s": {"role": "sensitive", "multivalued": ";"},
            },
            "require": [{"model": "k-anonymity", "k": 1}],
            "method": {"name": "codip", "plan": [bits[:1], bits[1:]]},
        },
    )
    least, most = min(len(s) for _, s in people), max(len(s) for _, s in people)
    worst = Fraction(0)
    for p in {p for p, _ in people}:
        here = [s for q, s in people if q == p]
        parts = [[s & set(vs) for s in here] for vs in (every[:1], every[1:])]
        pairs = [a | b for a in parts[0] for b in parts[1] if least <= len(a | b) <= most]
        for v in every:
            worst = max(worst, Fraction(sum(v in s for s in pairs), len(pairs)))
    found = attack(made, "intersection")
    assert found.measures["attributes"]["s"]["worst"].after == worst
    free = attack(made, mw.attacks.Intersection(set_sizes={"s": (0, len(every))}))
    assert free.measures["attributes"]["s"]["worst"].after == attack(made, "homogeneity").worst.after


def test_what_two_choices_tell_together_is_what_both_leave_open() -> None:
    """Five people, two of whom are ill. One release would have kept p, the other q, had no class more than half ill.

    p was refused, so two of {1x, 1x, 1y} are ill, or {2x, 2y}: four worlds, and of nobody more than 1/2. The same of q.
    Only one world is among both: those with 1x are ill, for certain.
    """
    people = [("1", "x"), ("1", "x"), ("1", "y"), ("2", "x"), ("2", "y")]

    def shows(ill: set[int], place: int) -> bool:
        classes = [[i for i in range(5) if people[i][place] == v] for v in {p[place] for p in people}]
        return all(2 * len(ill & set(c)) <= len(c) for c in classes)

    worlds = [set(pair) for pair in itertools.combinations(range(5), 2)]
    refused = [[w for w in worlds if not shows(w, place)] for place in (0, 1)]
    assert [len(w) for w in refused] == [4, 4]
    assert [w for w in refused[0] if w in refused[1]] == [{0, 1}]

    rows: Rows = [(*p, "ab"[i > 1]) for i, p in enumerate(people)]
    two = {"require": [{"model": "simple-l-diversity", "l": 2, "values": ["a"]}]}
    made = [release(rows, "a", {"p": ["0", "1"], "q": ["0", "1"]} | {kept: ["1"]}, **two) for kept in "qp"]
    for each in made:
        assert attack(each, "minimality").worst.after == Fraction(1, 2)
    together = attack(made, "minimality")
    assert (together.kind, together.worst.after) == ("exact", 1)
    assert together.worst.whom == "each of the 2 people with p 1, q x"
    assert [b["worst"].after for b in together.measures["tables"].values()] == [Fraction(1, 2)] * 2
    gates = [release(rows, "a", {"p": ["0", "1"], "q": ["0", "1"]}) for _ in range(2)]
    assert attack(gates, "minimality").kind == "exact", "what was chosen by quasi-identifiers tells nothing"


def test_minimality_is_asked_of_each_table() -> None:
    rows: Rows = [(str(i % 4), "xy"[i % 2], "ab"[i // 4 % 2], "uv"[i % 3 == 0]) for i in range(16)]
    made = release(
        rows, "ab", {"p": ["0", "1"], "q": ["0", "1"]}, {"name": "codip", "plan": [["a"], ["b"]]},
        require=[{"model": "simple-l-diversity", "l": "3/2"}],
    )  # fmt: skip
    found = attack(made, "minimality")
    assert set(found.measures["tables"]) == {"table-1", "table-2"}
