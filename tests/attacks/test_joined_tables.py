"""Background joins and intersections against enumeration of everything that the tables leave open."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maskwright as mw
from maskwright.attacks._joined_tables import JoinedPeople, joined_beliefs, link_rows
from maskwright.domain.beliefs import Beliefs
from maskwright.errors import UsageError
from maskwright.pipeline.attacking import target_of
from maskwright.worlds.statements.joined_releases import matching_shares

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
    assert "fitted" in found.worst.why
    assert 0 < found.worst.after <= 1


def test_the_fit_is_near_the_exact_count(monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.attacks import _joined_tables

    draw = np.random.default_rng(2)
    rows: Rows = [(str(i % 2), "xy"[i // 2 % 2], "ab"[draw.integers(2)]) for i in range(40)]
    targets = [target_of(release(rows, "a", level)) for level in ({"q": ["1"]}, {"p": ["1"]})]
    counts = [t.grouping.published_classes.sensitive["a"] for t in targets]
    cells = JoinedPeople.of(targets).cells([0, 1])
    exact = joined_beliefs(cells, counts)
    assert exact.exact.all()
    monkeypatch.setattr(_joined_tables, "MOST_PEOPLE", 0)
    fitted = joined_beliefs(cells, counts)
    assert not fitted.exact.any()
    assert np.abs(fitted.of - exact.of).max() < 0.02


def test_releases_of_other_people_are_refused() -> None:
    first = release([("1", "x", "a"), ("2", "x", "b")], "a", {})
    other = release([("1", "x", "a"), ("2", "y", "b")], "a", {})
    with pytest.raises(UsageError, match="same people"):
        mw.attack([first, other], "intersection")


# --- different attributes -----------------------------------------------------------------------------


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


def test_minimality_is_asked_of_each_table() -> None:
    rows: Rows = [(str(i % 4), "xy"[i % 2], "ab"[i // 4 % 2], "uv"[i % 3 == 0]) for i in range(16)]
    made = release(
        rows, "ab", {"p": ["0", "1"], "q": ["0", "1"]}, {"name": "codip", "plan": [["a"], ["b"]]},
        require=[{"model": "simple-l-diversity", "l": "3/2"}],
    )  # fmt: skip
    found = attack(made, "minimality")
    assert set(found.measures["tables"]) == {"table-1", "table-2"}
