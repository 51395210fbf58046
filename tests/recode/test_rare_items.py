"""k^m-anonymous sets: the published example, every small table, and the whole way to a verified release."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.domain.hierarchy import Hierarchy
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.hierarchies.groups import Groups
from maskwright.recode.rare_items import SetOwners, rare_combinations, with_merged_items, without_rare_items
from tests.amounts import amount
from tests.attacks.test_known_items import listed

SETS = st.lists(st.frozensets(st.sampled_from("abcd"), max_size=4), min_size=1, max_size=8)


def tree() -> Hierarchy:
    return Groups(groups=[["a", "b"], ["c", "d"]]).build("s", list("abcd"), Path(), ())


def common(sets: list[frozenset[str]], k: int, m: int) -> bool:
    return all(people >= k for people in listed(sets, m).values())


def test_the_published_example() -> None:
    """{abc, ab, ac, bc}: every two values are held by two people, all three by one."""
    sets = [frozenset(text) for text in ("abc", "ab", "ac", "bc")]
    assert not rare_combinations(sets, 2, 2)
    assert rare_combinations(sets, 2, 3) == {("a", "b", "c"): 1}
    assert without_rare_items(sets, 2, 2) == sets
    after = without_rare_items(sets, 2, 3)
    assert common(after, 2, 3)
    assert sum(map(len, after)) == 6  # without one c the others are rare, too


@settings(max_examples=amount(60, 3000), deadline=None)
@given(SETS, st.integers(1, 4), st.integers(1, 3))
def test_nothing_rare_is_left(sets: list[frozenset[str]], k: int, m: int) -> None:
    after = without_rare_items(sets, k, m)
    assert common(after, k, m)
    assert all(x <= y for x, y in zip(after, sets, strict=True))
    if common(sets, k, m):
        assert after == sets
    merged = with_merged_items(sets, k, m, tree())
    assert common(merged, k, m)
    branches = {
        "a": {"a", "{a, b}", "*"},
        "b": {"b", "{a, b}", "*"},
        "c": {"c", "{c, d}", "*"},
        "d": {"d", "{c, d}", "*"},
    }
    for values, shown in zip(sets, merged, strict=True):
        assert all(any(label in branches[v] for v in values) for label in shown)


def held_by(people: list[str], sets: list[frozenset[str]], m: int, linked: bool) -> dict[frozenset[str], int]:
    """By listing: how many people hold each combination, in a set of theirs or in all that are linked."""
    whole = {q: frozenset().union(*(s for p, s in zip(people, sets, strict=True) if p == q)) for q in people}
    shown = [(p, whole[p] if linked else s) for p, s in zip(people, sets, strict=True)]
    return {c: len({p for p, s in shown if c <= s}) for c in listed([s for _, s in shown], m)}


@settings(max_examples=amount(60, 3000), deadline=None)
@given(SETS, st.data(), st.integers(2, 3), st.integers(1, 3), st.booleans())
def test_people_with_several_sets_count_once(
    sets: list[frozenset[str]], data: st.DataObject, k: int, m: int, linked: bool
) -> None:
    people = data.draw(st.lists(st.sampled_from("ABC"), min_size=len(sets), max_size=len(sets)))
    owners = SetOwners(people, linked)
    held = held_by(people, sets, m, linked)
    rare = rare_combinations(owners.known(sets), k, m, owners)
    size = min((len(c) for c, n in held.items() if n < k), default=0)
    assert {frozenset(c): n for c, n in rare.items()} == {
        c: n for c, n in held.items() if n < k and len(c) == size
    }
    for after in (without_rare_items(sets, k, m, owners), with_merged_items(sets, k, m, tree(), owners)):
        assert all(n >= k for n in held_by(people, after, m, linked).values())
    if not rare:
        assert without_rare_items(sets, k, m, owners) == sets


VISITS = pd.DataFrame(
    [
        ("A", "21", "a;b"), ("A", "22", "a;b"), ("B", "23", "a"), ("B", "24", "b"), ("C", "25", "a;b"),
        ("D", "26", "a"), ("D", "27", "c"), ("D", "28", "c"), ("E", "29", "b"),
    ],
    columns=["id", "age", "s"],
)  # fmt: skip


@pytest.mark.parametrize("linked", [False, True])
def test_known_values_of_people_with_several_rows(tmp_path: Path, linked: bool) -> None:
    """c is in two rows of one person; a and b go together in three rows of two people, and in all rows of a third."""

    def asked(known: dict[str, Any]) -> dict[str, Any]:
        made = policy(known, output={"format": "csv"})
        made["columns"] |= {"id": "identifier"}
        made["columns"]["age"]["levels"] = ["any"]
        return made | {"unit": {"column": "id", "publish": "pseudonym"} if linked else "id"}

    with pytest.raises(PolicyNotMet, match=r"some 1 of its values are held together by 1 of those"):
        mw.anonymize(VISITS, asked({"k": 2}))
    most = 3 if linked else 2  # who hold a and b
    with pytest.raises(PolicyNotMet, match=rf"some 2 of its values are held together by {most} of those"):
        mw.anonymize(VISITS[VISITS["s"] != "c"], asked({"k": most + 1}))
    mw.anonymize(VISITS[VISITS["s"] != "c"], asked({"k": most}))
    merge = {"rare": "merge", "hierarchy": {"groups": [["a"], ["b", "c"]]}}
    for how in (merge, {"rare": "suppress"}):
        release = mw.anonymize(VISITS, asked({"k": 2, **how}), tmp_path / "r", overwrite=True)
        found = next(b for b in release.beliefs if b.attack == "known-items")
        assert found.measures["sets"]["s"]["by_sets_alone"]["fewest"] >= 2
        texts = pd.read_csv(tmp_path / "r" / "public" / "data.csv", dtype=str)["s"]
        assert "c" not in set(texts), texts
        checked = mw.verify(tmp_path / "r")
        assert checked.ok
        assert any("which rows are whose" in note for note in checked.notes) != linked
    manifest = tmp_path / "r" / "public" / "manifest.json"
    said = json.loads(manifest.read_text())
    said["tables"][0]["known_items"]["s"] = {"k": 5, "m": 1}  # a and b are in five rows each, of four people
    manifest.write_text(json.dumps(said))
    problems = mw.verify(tmp_path / "r", recount_only=True).problems
    found = [p for p in problems if "values are held together by" in p]
    assert bool(found) == linked


def test_merging_keeps_what_suppressing_loses() -> None:
    sets = [frozenset(x) for x in ("a", "b", "cd", "cd")]
    assert without_rare_items(sets, 2, 2) == [frozenset(), frozenset(), *sets[2:]]
    (label,) = set().union(*with_merged_items(sets, 2, 2, tree())[:2])
    assert with_merged_items(sets, 2, 2, tree()) == [frozenset([label])] * 2 + sets[2:]


TEXTS = ["a;b", "a;b", "a;b;c", "a;c", "c", "d;a", "b", "b"] * 2 + ["a;d;c"]


def policy(known: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}},
            "s": {"role": "sensitive", "multivalued": ";", "known_items": known},
        },
        "require": [{"model": "k-anonymity", "k": 2}],
        "method": {"name": "optimal-lattice"},
        **more,
    }


TABLE = pd.DataFrame({"age": [str(20 + i % 10) for i in range(17)], "s": TEXTS})


def shown(release: mw.Release) -> list[frozenset[str]]:
    return [frozenset(str(x).split(";")) - {"", "None", "nan"} for x in release.table["s"]]


def test_rare_combinations_are_refused_or_suppressed() -> None:
    with pytest.raises(
        PolicyNotMet, match=r"column 's': some [12] of its values are held together by 1 of those"
    ):
        mw.anonymize(TABLE, policy({"k": 2}))
    release = mw.anonymize(TABLE, policy({"k": 2, "rare": "suppress"}))
    assert common(shown(release), 2, 2)
    assert "1 of 17 sets are published with values taken out" in " ".join(release.notes)
    assert {p.status for p in release.promises} == {"measured"}  # no proof names it
    assert all(
        float(b.measures["sets"]["s"]["by_sets_alone"]["fewest"]) >= 2
        for b in release.beliefs
        if b.attack == "known-items"
    )


def test_rare_values_are_merged_and_verified(tmp_path: Path) -> None:
    merge = {"k": 4, "rare": "merge", "hierarchy": {"groups": [["a", "b"], ["c", "d"]]}}
    release = mw.anonymize(TABLE, policy(merge, output={"format": "csv"}), tmp_path / "r")
    assert "sets are published with values merged" in " ".join(release.notes)
    assert mw.verify(tmp_path / "r").ok
    assert (
        "at least 4 people hold any 2 of them" in (tmp_path / "r" / "public" / "data-card.html").read_text()
    )
    assert mw.verify(tmp_path / "r", policy(merge, output={"format": "csv"})).ok
    assert not mw.verify(tmp_path / "r", policy({"k": 18}, output={"format": "csv"})).ok
    manifest = tmp_path / "r" / "public" / "manifest.json"
    said = json.loads(manifest.read_text())
    assert said["tables"][0]["known_items"] == {"s": {"k": 4, "m": 2}}
    said["tables"][0]["known_items"]["s"]["k"] = 18  # more than there are
    manifest.write_text(json.dumps(said))
    shutil.rmtree(tmp_path / "r" / "private")
    found = mw.verify(tmp_path / "r", recount_only=True)
    assert any("values are held together by" in problem for problem in found.problems)


@pytest.mark.parametrize(
    ("known", "more", "message"),
    [
        ({"k": 2, "rare": "merge"}, {}, "rare: merge needs a `hierarchy`"),
        ({"k": 2, "hierarchy": "suppress"}, {}, "rare: merge needs a `hierarchy`"),
        ({"k": 1}, {}, "k"),
    ],
)
def test_refused_settings(known: dict[str, Any], more: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        mw.Policy.load(policy(known, **more))
