"""Singling out: the published fractions, every hash listed, and boxes counted by hand."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.attacks.singling_out import chance_outside, isolation_chance
from maskwright.cli import main
from maskwright.errors import UsageError
from tests.amounts import amount
from tests.promise.draws import chance

COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20]}},
    "town": {"role": "quasi-identifier", "hierarchy": "suppress"},
}
PEOPLE = st.lists(st.tuples(st.integers(0, 45), st.sampled_from("abc")), min_size=2, max_size=14)


def released(people: list[tuple[int, str]], **method: Any) -> mw.Release:
    policy = {
        "version": 1,
        "columns": COLUMNS,
        "require": [{"model": "k-anonymity", "k": 2}],
        "method": method,
    }
    return mw.anonymize(pd.DataFrame(people, columns=["age", "town"]), policy, seed=1)


def rows_of(people: list[tuple[int, str]]) -> list[dict[str, Any]]:
    return [{"age": age, "town": town} for age, town in people]


def test_published_fractions() -> None:
    assert (isolation_chance(2), isolation_chance(5)) == (Fraction(1, 2), Fraction(256, 625))
    assert float(isolation_chance(11)) == pytest.approx(0.3855, abs=5e-5)
    assert isolation_chance(1) == 1


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_by_listing_every_hash(n: int) -> None:
    """Everybody falls into one of n parts: how often is exactly one in the first?"""
    hashes = list(itertools.product(range(n), repeat=n))
    assert isolation_chance(n) == Fraction(sum(h.count(0) == 1 for h in hashes), len(hashes))


def holds(label: str, value: str) -> bool:
    """What a reader makes of a label."""
    if label in ("*", value):
        return True
    low, dash, high = label.partition("-")
    if dash:
        return int(low) <= int(value) <= int(high)
    return value in label.strip("{}").split(", ")


@settings(max_examples=amount(8, 500))
@given(PEOPLE, st.data(), st.sampled_from(["mondrian", "local-recoding", "optimal-lattice"]))
def test_boxes_are_counted_as_a_reader_would(
    people: list[tuple[int, str]], data: st.DataObject, name: str
) -> None:
    """The control is drawn from values that the release knows, so that its labels say all."""
    ages, towns = sorted({a for a, _ in people}), sorted({t for _, t in people})
    outside = data.draw(
        st.lists(st.tuples(st.sampled_from(ages), st.sampled_from(towns)), min_size=1, max_size=6)
    )
    release = released(people, name=name)
    boxes = release.table.groupby(["age", "town"], sort=False).size()
    found = mw.attack(release, mw.attacks.SinglingOut(control=rows_of(outside)))
    empty = [
        (box, n) for box, n in boxes.items()
        if not any(holds(str(box[0]), str(age)) and holds(str(box[1]), town) for age, town in outside)
    ]  # fmt: skip
    if release.grouping.classes.n == len(boxes):
        assert found.measures["empty_boxes"] == len(empty)
        assert found.measures["control_people"] == len(outside)
        assert found.worst.after == max((isolation_chance(n) for _, n in empty), default=0)
        assert found.worst.before <= max(found.worst.after, Fraction(1, 2))


def test_a_value_between_two_lies_where_both_do() -> None:
    people = [(10, "a"), (19, "a"), (30, "b"), (39, "b")]
    release = released(people, name="mondrian", cut="relaxed")
    assert set(release.table["age"]) == {"10-19", "30-39"}, release.table
    for age, town, empty in ((15, "a", 1), (25, "a", 2), (99, "a", 2), (15, "z", 2)):
        found = mw.attack(release, mw.attacks.SinglingOut(control=[{"age": age, "town": town}]))
        assert found.measures["empty_boxes"] == empty, (age, town)
    assert found.worst.after == Fraction(1, 2)


def test_without_the_release_hardly_anybody_is_singled_out() -> None:
    """A box without any of 10,000 people: at most 4 in 10,000 of the table's people, halved."""
    assert chance_outside(1000, 2, 10_000) < Fraction(1, 5)
    assert chance_outside(1000, 2, 10) == pytest.approx(0.3681, abs=1e-3), "a small control says nothing"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = released([(10, "a"), (19, "a"), (30, "b"), (39, "b")], name="mondrian", cut="relaxed")
    assert "singling-out" not in [b.attack for b in release.beliefs]
    release.save(tmp_path / "r")
    (tmp_path / "c.csv").write_text("age,town\n15,a\n")
    assert main(["attack", str(tmp_path / "r"), "--control", str(tmp_path / "c.csv")]) == 0
    said = capsys.readouterr().out
    assert "singling-out (estimated)" in said
    assert "1 of 2 classes describe nobody of 1 people outside the release" in said
    (tmp_path / "c.csv").write_text("age\n15\n")
    assert main(["attack", str(tmp_path / "r"), "--control", str(tmp_path / "c.csv")]) == 2
    assert "'town'" in capsys.readouterr().err
    with pytest.raises(UsageError, match="nobody"):
        mw.attack(release, mw.attacks.SinglingOut(control=[]))


@pytest.mark.parametrize("number", range(amount(5, 100)))
def test_people_with_several_rows_count_once(number: int) -> None:
    """Boxes that describe nobody outside, and the people with a row in some of them."""
    draw = chance(number)
    rows = [
        (who, draw.randint(0, 79)) for who in ["A", "A", "B", *draw.choices("ABCD", k=draw.randint(1, 5))]
    ]
    outside = [(age, draw.choice("XY")) for _, age in rows if draw.random() < 0.3] or [(rows[0][1], "X")]
    asked = {
        "unit": "id",
        "columns": {"id": "identifier", "age": {**COLUMNS["age"], "levels": ["width 20"]}},
        "require": [{"model": "k-anonymity", "k": 1}],
        "method": "optimal-lattice",
    }
    release = mw.anonymize(pd.DataFrame(rows, columns=["id", "age"]), asked)
    control = [{"age": age, "id": who} for age, who in outside]
    found = mw.attack(release, mw.attacks.SinglingOut(control=control))
    assert found.measures["control_people"] == len({who for _, who in outside})
    boxes: dict[int, set[str]] = {}
    for person, age in rows:
        boxes.setdefault(age // 20, set()).add(person)
    empty = [people for box, people in boxes.items() if box not in {age // 20 for age, _ in outside}]
    assert found.measures["vulnerable_people"] == len(set().union(*empty))
    assert found.worst.after == max((isolation_chance(len(people)) for people in empty), default=0)
    without = mw.attack(release, mw.attacks.SinglingOut(control=[{"age": age} for age, _ in outside]))
    assert (without.kind, without.worst.after) == ("not computed", 1)
    assert "no column 'id' that says which of its rows are one person's" in without.worst.why
    with pytest.raises(UsageError, match="row 1 of the control is nobody's"):
        mw.attack(release, mw.attacks.SinglingOut(control=[{"age": 3, "id": ""}]))
