"""Linkage: prosecutor, journalist, marketer, vulnerable people, and what singles them out."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import maskwright as mw
from maskwright.attacks.linkage import Linkage
from maskwright.domain.adversary import Adversary
from maskwright.domain.beliefs import Beliefs
from maskwright.models.k_anonymity import KAnonymity
from tests.attacks.build import release
from tests.patients import write_csv

WHO = Adversary()


def test_by_hand() -> None:
    """Raw classes of 1, 1, 1 and 2 people, published as 3 and 2."""
    target = release(
        [{"a": ["x"], "b": ["x"], "c": ["y"]}, {"d": ["x", "y"]}], {"e": ["x"]}, models=[KAnonymity(k=3)]
    )
    found = Linkage().run(target, WHO)
    assert found.worst.before == 1
    assert found.worst.after == Fraction(1, 2)
    assert found.measures["after"]["average"] == "2/5"
    assert found.measures["threshold"] == Fraction(1, 3)
    assert found.measures["vulnerable_people"] == 2
    assert found.measures["vulnerable_share"] == Fraction(2, 5)
    assert found.measures["dropped_people"] == 1
    assert found.measures["singled_out"]["before"]["people"] == 4
    assert found.measures["singled_out"]["after"]["people"] == 0


def test_without_a_k_one_half_is_the_limit() -> None:
    found = Linkage().run(release([{"a": ["x"]}, {"b": ["x"], "c": ["y"]}]), WHO)
    assert found.measures["threshold"] == Fraction(1, 2)
    assert found.measures["vulnerable_people"] == 1
    assert "the only person" in found.worst.whom
    assert found.measures["singled_out"]["after"]["sets"] == [{"attributes": ["zip"], "people": 1}]


def test_sets_are_searched_only_when_asked_for() -> None:
    found = Linkage(unique_sets=0).run(release([{"a": ["x"]}, {"b": ["x"]}]), WHO)
    assert "singled_out" not in found.measures


def journalist(tmp_path: Path) -> tuple[mw.Release, Path]:
    """Two men and one woman of a town with four men and three women."""
    table = write_csv(tmp_path / "t.csv", [["30", "m"], ["31", "m"], ["30", "f"]], ["age", "sex"])
    people = [["30", "m"], ["30", "m"], ["31", "m"], ["35", "m"], ["30", "f"], ["31", "f"], ["32", "f"]]
    write_csv(tmp_path / "town.csv", people, ["age", "sex"])
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "columns:\n"
        "  age: {role: quasi-identifier, hierarchy: {intervals: [10]}, levels: [1]}\n"
        "  sex: {role: quasi-identifier, levels: [0]}\n"
        "population: {file: town.csv}\n"
        "require: [{model: k-anonymity, k: 1}]\n",
        encoding="utf-8",
    )
    return mw.anonymize(table, policy, tmp_path / "release"), tmp_path / "release"


def test_the_journalist_and_the_marketer(tmp_path: Path) -> None:
    made, folder = journalist(tmp_path)
    for what in (made, folder):  # the population is kept for later, too
        found = mw.attack(what, "linkage", adversary="journalist")
        assert isinstance(found, Beliefs)
        assert found.worst.after == Fraction(1, 3), "the woman is one of three"
        assert found.worst.before == 1, "one woman of the town is 30"
        after = found.measures["journalist"]["after"]
        assert after["highest"] == Fraction(1, 3)
        assert after["marketer"] == (2 * Fraction(1, 4) + Fraction(1, 3)) / 3
        before = found.measures["journalist"]["before"]
        assert before["marketer"] == (Fraction(1, 2) + 1 + 1) / 3
    neighbour = mw.attack(made, "linkage", adversary="neighbour")
    assert isinstance(neighbour, Beliefs)
    assert neighbour.worst.after == 1


def test_without_a_population_the_journalist_is_a_prosecutor() -> None:
    found = Linkage().run(release([{"a": ["x", "y"]}]), Adversary("journalist"))
    assert found.worst.after == Fraction(1, 2)
    assert "journalist" not in found.measures
