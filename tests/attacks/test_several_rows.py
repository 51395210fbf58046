"""Several rows per person: the belief in some row of the person, against listing every assignment of values to rows."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.attacks import homogeneity
from maskwright.errors import PolicyNotMet
from tests.amounts import LONG
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


def by_listing(rows: list[Row]) -> dict[tuple[str, str], Fraction]:
    """The belief that each person has each value in some row: values are dealt anew inside each class."""
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
    return {pair: Fraction(n, total) for pair, n in held.items()}


@pytest.mark.parametrize("number", range(12))
def test_against_every_assignment(number: int) -> None:
    rng = Random(number)  # noqa: S311 - cases, not secrets
    rows = [(rng.choice("ABC"), rng.choice("xy"), rng.choice("pqr")) for _ in range(rng.randint(3, 6))]
    release = mw.anonymize(table(rows), policy("1"))
    [found] = [b for b in release.beliefs if b.attack == "homogeneity"]
    believed = by_listing(rows)
    assert found.worst.after == max(believed.values())
    assert found.kind == "exact"
    [skewed] = [b for b in release.beliefs if b.attack == "skewness"]
    people, having = len({p for p, _, _ in rows}), Counter(v for _, v in {(p, v) for p, _, v in rows})
    times = max(after * people / having[value] for (_, value), after in believed.items())
    assert (skewed.kind, skewed.measures["attributes"]["s"]["ratio"]) == ("exact", times)


SEVEN = [("A", "x", v) for v in "habcdef"] + [("B", "x", "g"), ("C", "x", "i"), ("D", "x", "j")]


def test_who_has_most_rows_of_a_class_is_believed_to_have_most_values() -> None:
    """Seven of ten rows, each value once: 7/10, though each value has a tenth of the rows."""
    with pytest.raises(PolicyNotMet, match=r"7/10.*somebody with 7 of the 10 rows.*larger classes"):
        mw.anonymize(table(SEVEN), policy("1/4"))
    forget()
    found = next(v for v in mw.anonymize(table(SEVEN), policy("7/10")).verdicts if v.model == "belief")
    assert (found.worst, found.status) == (Fraction(7, 10), "guaranteed")


def test_facts_about_people_with_several_rows() -> None:
    """A has seven of ten rows, all different: if she had another value of two, she would have this one, 21/23."""
    with pytest.raises(
        PolicyNotMet, match=r"21/23.*person 1 \(somebody with 7 of the 10 rows with q x\) has"
    ):
        mw.anonymize(table(SEVEN), policy("9/10", adversary="insider", facts=1))
    forget()
    release = mw.anonymize(table(SEVEN), policy("22/23", adversary="insider", facts=1))
    assert next(v for v in release.verdicts if v.model == "belief").status == "measured"


def test_who_is_above_a_bound_is_decided_exactly_and_once_for_each_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bounds that many beliefs are equal to, against a fraction for everybody."""
    draw = Random(5)  # noqa: S311
    rows = [(f"p{draw.randrange(150)}", f"q{i % 40}", draw.choice("xyz")) for i in range(300)]
    grouping = mw.anonymize(table(rows), policy("1")).grouping
    people = homogeneity.RowBeliefs.of(grouping, "s", [["x"], ["y"], ["z"]])
    every = {code: [people.exact(code, i) for i in range(len(people.first))] for code in people.codes}
    tried, computed = [], homogeneity._exactly
    monkeypatch.setattr(homogeneity, "_exactly", lambda *given: (tried.append(given[3]), computed(*given))[1])
    for code, beliefs in every.items():
        bounds = [b for b, _ in Counter(beliefs).most_common(3)]
        for bound in bounds:
            tried.clear()
            assert people.above(code, bound).tolist() == [b > bound for b in beliefs]
            assert 0 < len(tried) < beliefs.count(bound)


def test_a_gate_that_counts_people_is_not_covered() -> None:
    """Whether it passes depends on whose rows hold a value, and that is not published."""
    asked = policy("7/10") | {
        "require": [{"model": "k-anonymity", "k": 1}, {"model": "simple-l-diversity", "l": 2, "use": "gate"},
                    {"model": "belief", "max": "7/10"}]
    }  # fmt: skip
    found = next(v for v in mw.anonymize(table(SEVEN), asked).verdicts if v.model == "belief")
    assert found.status == "measured"
    assert "gate (simple-l-diversity)" in found.why


def test_groups_that_read_alike_are_refused_before_anything_is_written() -> None:
    """Buckets {p: a, x: b} and {p: c, y: a} read alike, and of their three people two have a.

    Which rows share a bucket is drawn, so that several tables are tried.
    """
    asked: dict[str, Any] = {
        "unit": "id",
        "columns": {"id": "identifier", "q": "quasi-identifier", "s": "sensitive"},
        "method": {"name": "anatomy", "l": 2},
        "require": [{"model": "k-anonymity", "k": 2}, {"model": "simple-l-diversity", "l": 2}],
    }
    alike = 0
    for number in range(8 if LONG else 4):
        rows = pa.table({"id": list("pxpy"), "q": [f"k{number}"] * 4, "s": list("abca")})
        with pytest.raises(PolicyNotMet) as refused:
            mw.anonymize(rows, asked)
        if "2/3" in str(refused.value):
            alike += 1
            assert "this release would satisfy l: 1.5; " in str(refused.value)
            assert "recoding: bucketize tells them apart; nothing was published" in str(refused.value)
            assert mw.anonymize(rows, asked | {"recoding": "bucketize"}).ok
        forget()
    assert alike


def test_no_remedy_names_a_method_that_a_unit_voids() -> None:
    """A gate that fails, and the ingredients of what is measured: neither balanced cuts nor buckets are covered."""
    asked = policy("1") | {
        "require": [{"model": "k-anonymity", "k": 1}, {"model": "simple-l-diversity", "l": 9, "use": "gate"}]
    }
    with pytest.raises(PolicyNotMet) as refused:
        mw.anonymize(table(SEVEN), asked)
    assert "use: search" in str(refused.value)
    assert "balanced" not in str(refused.value)
    forget()
    searched = policy("1") | {
        "require": [{"model": "k-anonymity", "k": 1}, {"model": "distinct-l-diversity", "l": 2}]
    }
    release = mw.anonymize(table(SEVEN), searched)
    instead = [i.instead for p in release.promises for i in p.ingredients if not i.covered]
    assert instead
    assert not any("balanced" in text or "anatomy" in text for text in instead)


@pytest.mark.parametrize("many", [0, 10**9])
def test_people_of_classes_marked_or_sorted(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homogeneity, "MANY", many)
    rng = np.random.default_rng(1)
    for _ in range(100):
        n, g = int(rng.integers(1, 30)), int(rng.integers(1, 12))
        keys = np.unique(rng.integers(0, n * g, rng.integers(1, 80)))
        person, group = keys // g, keys % g
        owned = homogeneity.OwnedRows(person, group, np.ones_like(keys), np.bincount(group, minlength=g))
        classes = np.unique(rng.integers(0, g, rng.integers(1, g + 1)))
        numbers = {p: i for i, p in enumerate(sorted(set(person.tolist())))}
        there = {numbers[p] for p, c in zip(person.tolist(), group.tolist(), strict=True) if c in classes}
        assert owned.people_of(classes).tolist() == sorted(there)
