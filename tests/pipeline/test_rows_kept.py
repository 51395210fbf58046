"""At most so many rows per person: drawn before anything is counted, never by value, the same for the same input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import maskwright as mw
from maskwright.cli.commands import main
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.errors import InputError
from maskwright.identifiers.pseudonyms import Pseudonyms
from maskwright.pipeline.attacking import ADVERSARIES
from maskwright.policy.binding import promises_before
from maskwright.policy.policy import Policy
from tests.hospital import hospital_visits

DRAW = Pseudonyms(b"a key", "rows", "who")


def drawn(frame: pd.DataFrame, most: int, draw: Pseudonyms = DRAW) -> list[tuple[Any, ...]]:
    """The rows that are kept, in their order."""
    engine = open_engine()
    try:
        table = engine.draw_rows(engine.open(frame, Reading()), most, "who", draw)
        return [tuple(row.values()) for row in engine.sample(table, len(frame))]
    finally:
        engine.close()


def test_as_many_as_allowed_in_their_order_and_not_by_it() -> None:
    who = np.random.default_rng(1).integers(0, 30, 200)
    frame = pd.DataFrame({"who": who, "n": range(200)})
    kept = drawn(frame, 3)
    owners = pd.Series([row[0] for row in kept]).value_counts()
    every = frame["who"].astype(str).value_counts()
    assert owners.to_dict() == every.clip(upper=3).to_dict()
    assert [int(row[1]) for row in kept] == sorted(int(row[1]) for row in kept)
    assert set(drawn(frame, 2)) < set(kept) < set(drawn(frame, 4))
    assert set(drawn(frame.sample(frac=1, random_state=2), 3)) == set(kept)
    assert set(drawn(frame, 3, Pseudonyms(b"another key", "rows", "who"))) != set(kept)


def test_equal_rows_are_drawn_one_by_one() -> None:
    """Of flu, flu and HIV one row is kept: HIV by one person in three, not in two."""
    n = 3000
    frame = pd.DataFrame({"who": np.repeat(np.arange(n), 3), "disease": ["flu", "flu", "HIV"] * n})
    held = sum(row[1] == "HIV" for row in drawn(frame, 1))
    assert abs(held - n / 3) < 4 * (n * 2 / 9) ** 0.5


def test_missing_people_stay_to_be_refused() -> None:
    frame = pd.DataFrame({"who": [None, None, "a", "a"], "age": [1, 2, 3, 4]})
    assert [row[0] for row in drawn(frame, 1)].count(None) == 2
    with pytest.raises(InputError, match="missing in 2 rows"):
        mw.anonymize(frame, policy(["age"], column="who", rows=1))


def policy(quasi: list[str], sensitive: str | None = None, **unit: Any) -> Policy:
    """A policy about people of two in a class."""
    columns: dict[str, Any] = {unit["column"]: "identifier"} | dict.fromkeys(quasi, "quasi-identifier")
    if sensitive:
        columns[sensitive] = "sensitive"
    return Policy.load({"unit": unit, "columns": columns, "require": [{"model": "k-anonymity", "k": 2}]})


def test_what_it_costs_is_told_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = hospital_visits(600, 300)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    asked = policy(["birth_year", "sex"], "disease", column="patient_id", rows=2)
    (tmp_path / "policy.yaml").write_text(asked.to_yaml())
    more = int((frame["patient_id"].value_counts() - 2).clip(lower=0).sum())
    arguments = ["anonymize", str(tmp_path / "visits.csv"), "--policy", str(tmp_path / "policy.yaml")]
    assert main([*arguments, "--out", str(tmp_path / "r"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert (rows["input"], rows["dropped_per_person"]) == (600, more) and more > 50
    assert rows["published"] == 600 - more - rows["suppressed"]
    assert main([*arguments, "--out", str(tmp_path / "s")]) == 0
    told = capsys.readouterr()
    assert f"at most 2 rows of each person are kept: {more:,} of 600 rows" in told.err
    assert f"{more:,} rows (" in told.out and "left out at random" in told.out
    published = [(tmp_path / name / "public" / "data.csv").read_text() for name in "rs"]
    assert published[0] == published[1]
    assert "rows left out at random" in (tmp_path / "r" / "private" / "report.html").read_text()
    assert main(["verify", str(tmp_path / "r")]) == 0
    assert main(["attack", str(tmp_path / "r")]) == 0


def test_other_settings_keep_the_same_rows() -> None:
    """Nobody can collect the rows of a person by running other settings."""
    frame = pd.DataFrame({"who": np.repeat(np.arange(40), 5), "n": range(200)})
    made = []
    for sensitive in (None, "n"):
        quasi = ["n"] if sensitive is None else ["who2"]
        asked = policy(quasi, sensitive, column="who", rows=2)
        made.append(mw.anonymize(frame.assign(who2="x"), asked).grouping.summary)
    assert [s.n_rows for s in made] == [80, 80]
    values = made[1].sensitive["n"]
    shown = {values.values[c - 1] for c in values.codes.tolist()}
    assert shown == {made[0].attributes[0].values[c - 1] for c in made[0].codes[0].tolist()}


def test_the_promise_names_it() -> None:
    """Published with some rows and left out with others: no proof covers that, so it is measured."""
    plain, few = (
        policy(["birth_year"], "disease", column="patient_id", **more) for more in ({}, {"rows": 2})
    )
    [before], [after] = (promises_before(p, ADVERSARIES["knows-method"]) for p in (plain, few))
    assert before.status == "guaranteed" and after.status == "measured"
    assert [i.setting for i in after.uncovered] == ["patient_id, at most 2 rows"]
    release = mw.anonymize(hospital_visits(200, 100), few)
    assert {p.status for p in release.promises} == {"measured"}
