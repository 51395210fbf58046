"""Preparing messy columns: every kind is found, repaired as stated, and counted; on policy, recoder and report."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.engines import open_engine
from maskwright.engines.base import Reading, Table
from maskwright.errors import InputError, PolicyError
from maskwright.policy.binding import reading_options
from maskwright.policy.policy import Policy
from maskwright.prepare import Preparation
from tests.prepare.messy import NAMES, PREPARE, messy_table

POLICY: dict[str, Any] = {
    "prepare": PREPARE,
    "columns": {
        "sex": "quasi-identifier",
        "weight": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 40]}},
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20, 40]}},
        "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
        "disease": "sensitive",
    },
    "require": [{"model": "k-anonymity", "k": 5}],
    "method": {"name": "optimal-lattice"},
}


def prepared(source: Any, **steps: Any) -> tuple[list[dict[str, str | None]], Table]:
    """The rows of a table whose columns were prepared."""
    engine = open_engine()
    try:
        prepare = tuple((name, Preparation.model_validate(step)) for name, step in steps.items())
        table = engine.open(source, Reading(prepare=prepare))
        return engine.sample(table, 10_000), table
    finally:
        engine.close()


def column(tmp_path: Path, *cells: str) -> Path:
    path = tmp_path / "column.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["a", "b"], *([cell, "x"] for cell in cells)])
    return path


def values(tmp_path: Path, step: Any, *cells: str) -> list[str | None]:
    return [row["a"] for row in prepared(column(tmp_path, *cells), a=step)[0]]


@pytest.mark.parametrize("seed", range(3))
def test_every_cell_becomes_what_it_means(tmp_path: Path, seed: int) -> None:
    made = messy_table(400, seed)
    rows, table = prepared(made.write(tmp_path / "messy.csv"), **PREPARE)
    for row, truth in zip(rows, made.truth, strict=True):
        shown = {name: row[name] for name in NAMES if name != "symptoms"}
        assert shown == {name: truth[name] for name in shown}
        assert ";".join(sorted(s.strip() for s in (row["symptoms"] or "").split(";"))) == truth["symptoms"]
        if truth["admitted"] is not None:
            assert row["stay"] == str((_day(truth["left"]) - _day(truth["admitted"])).days)
        else:
            assert row["stay"] is None
        born = _day(truth["born"])
        passed = (born.month, born.day) <= (6, 30)
        assert row["age"] == str(2024 - born.year - (not passed))
    counted = Counter({(r.column, r.what): r.rows for r in table.repairs if r.column not in ("stay", "age")})
    assert counted == made.found


def _day(text: str | None) -> date:
    assert text is not None
    return date.fromisoformat(text)


@pytest.mark.parametrize(
    ("cell", "form", "number"),
    [
        ("1,234,567.80", {"thousands": [","]}, "1234567.8"),
        ("1.234.567,80", {"thousands": ["."], "decimal": [","]}, "1234567.8"),
        ("1\u202f234,5 €", {"thousands": ["\u202f"], "decimal": [","], "signs": ["€"]}, "1234.5"),
        ("-€ 5", {"signs": ["€"]}, "-5"),
        ("€ -5.10", {"signs": ["€"]}, "-5.1"),
        ("\u22127", {}, "-7"),
        ("-0.00", {}, "0"),
        ("007", {}, "7"),
        (".5", {}, "0.5"),
        ("5.", {}, "5"),
        ("12,5", {"decimal": [".", ","]}, "12.5"),
        ("1180591620717411303424", {}, "1180591620717411303424"),
        ("5 ft", {"units": {"ft": "30.48"}}, "152.4"),
        ("6.25 in", {"units": {"in": "2.54"}}, "15.875"),
        ("12 %", {"signs": ["%"]}, "12"),
        ("7 $.a", {"signs": ["$.a"]}, "7"),
    ],
)
def test_a_number_as_people_write_it(tmp_path: Path, cell: str, form: Any, number: str) -> None:
    assert values(tmp_path, {"numbers": form}, cell) == [number]


@pytest.mark.parametrize("cell", ["1,23", "12,345,6", "1 2", "$", "abc", "1.2.3", "--5", "5 kg kg", "1e5"])
def test_what_is_no_number_is_refused_by_its_form(tmp_path: Path, cell: str) -> None:
    step = {"numbers": {"thousands": [","], "signs": ["$"], "units": {"kg": 1}}}
    with pytest.raises(InputError, match=r"column 'a': 1 row, do not fit prepare\.a\.numbers") as refused:
        values(tmp_path, step, cell, "12")
    if any(c.isalpha() for c in cell):
        assert cell not in str(refused.value)
    assert values(tmp_path, {**step, "otherwise": "missing"}, cell, "12") == [None, "12"]
    assert values(tmp_path, {**step, "otherwise": "keep"}, cell, "12") == [cell, "12"]
    assert values(tmp_path, {**step, "missing": [cell]}, cell, "12") == [None, "12"]
    assert values(tmp_path, {**step, "spellings": {"3": [cell]}}, cell, "12") == ["3", "12"]


@pytest.mark.parametrize(
    ("cell", "form", "day"),
    [
        ("2024-02-29", "%Y-%m-%d", "2024-02-29"),
        ("2023-02-29", "%Y-%m-%d", None),
        ("31.4.2024", "%d.%m.%Y", None),
        ("1.4.2024", "%d.%m.%Y", "2024-04-01"),
        ("20240401", "%Y%m%d", "2024-04-01"),
        ("1 Sept 2024", "%d %b %Y", "2024-09-01"),
        ("September 1, 2024", "%b %d, %Y", "2024-09-01"),
        ("01.04.29", "%d.%m.%y", "2029-04-01"),
        ("01.04.30", "%d.%m.%y", "1930-04-01"),
        ("2024-04-01 12:30:01.5", "%Y-%m-%d %H:%M:%S", "2024-04-01"),
        ("2024-04-01x", "%Y-%m-%d", None),
        ("0000-01-01", "%Y-%m-%d", None),
    ],
)
def test_a_date_in_its_format(tmp_path: Path, cell: str, form: str, day: str | None) -> None:
    step = {"dates": {"formats": [form], "first_year": 1930}, "otherwise": "missing"}
    assert values(tmp_path, step, cell) == [day]


def test_a_date_can_become_a_month_or_a_year(tmp_path: Path) -> None:
    for show, text in (("month", "2024-04"), ("year", "2024")):
        assert values(tmp_path, {"dates": {"formats": "%d.%m.%Y", "show": show}}, "1.4.2024") == [text]


def test_dates_that_two_formats_read_differently(tmp_path: Path) -> None:
    dates: dict[str, Any] = {"formats": ["%d/%m/%Y", "%m/%d/%Y"]}
    cells = ("03/04/2024", "04/04/2024", "13/04/2024", "04/13/2024")
    with pytest.raises(
        InputError, match=r"1 row \(1 different texts\) can be read as %d/%m/%Y and as %m/%d/%Y"
    ):
        values(tmp_path, {"dates": dates}, *cells)
    first = values(tmp_path, {"dates": {**dates, "ambiguous": "first"}}, *cells)
    assert first == ["2024-04-03", "2024-04-04", "2024-04-13", "2024-04-13"]
    assert values(tmp_path, {"dates": {**dates, "ambiguous": "missing"}}, *cells) == [None, *first[1:]]


def test_lists_are_kept_whole_or_by_their_first_value_or_length(tmp_path: Path) -> None:
    cells = ("a; b|c", "d", "| e")
    for keep, expected in (
        ("all", ["a; b;c", "d", "; e"]),
        ("first", ["a", "d", None]),
        ("count", ["3", "1", "1"]),
    ):
        step = {"lists": {"separators": [";", "|"], "keep": keep}, "otherwise": "missing"}
        assert values(tmp_path, step, *cells) == expected


@pytest.mark.parametrize(
    ("start", "end", "unit", "length"),
    [
        ("2023-01-31", "2023-02-28", "months", "0"),
        ("2023-01-31", "2023-03-31", "months", "2"),
        ("2000-02-29", "2001-02-28", "years", "0"),
        ("2000-02-29", "2001-03-01", "years", "1"),
        ("2024-01-01", "2024-01-14", "weeks", "1"),
        ("2024-03-01", "2024-03-01", "days", "0"),
    ],
)
def test_lengths_count_whole_units(tmp_path: Path, start: str, end: str, unit: str, length: str) -> None:
    path = tmp_path / "stays.csv"
    path.write_text(f"x,y\n{start},{end}\n{start},\n", encoding="utf-8")
    rows, _ = prepared(path, stay={"between": {"from": "x", "to": "y", "unit": unit}})
    assert [row["stay"] for row in rows] == [length, None]


def test_a_length_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stays.csv"
    path.write_text("x,y\n2024-01-02,2024-01-01\n2024-01-02,2024-01-03\n", encoding="utf-8")
    step: dict[str, Any] = {"between": {"from": "x", "to": "y"}}
    with pytest.raises(InputError, match="1 row have y before x"):
        prepared(path, stay=step)
    rows, _ = prepared(path, stay={**step, "otherwise": "missing"})
    assert [row["stay"] for row in rows] == [None, "1"]


def test_a_frame_is_prepared_like_a_file(tmp_path: Path) -> None:
    made = messy_table(60)
    rows, table = prepared(made.write(tmp_path / "messy.csv"), **PREPARE)
    again, beside = prepared(pd.DataFrame(made.cells), **PREPARE)
    assert again == rows
    assert beside.repairs == table.repairs


def test_a_date_column_is_prepared_by_its_text() -> None:
    frame = pd.DataFrame({"a": pd.to_datetime(["2024-01-31", "2023-05-01"]), "b": ["x", "y"]})
    step = {"dates": {"formats": ["%Y-%m-%d", "%Y-%m-%d %H:%M:%S"], "show": "year"}}
    assert [row["a"] for row in prepared(frame, a=step)[0]] == ["2024", "2023"]


def test_the_same_input_is_recognised_however_it_is_prepared(tmp_path: Path) -> None:
    path, engine = messy_table(30).write(tmp_path / "messy.csv"), open_engine()
    try:
        steps = tuple((name, Preparation.model_validate(step)) for name, step in PREPARE.items())
        plain, made = engine.open(path, Reading()), engine.open(path, Reading(prepare=steps))
        assert engine.fingerprint(plain) == engine.fingerprint(made)
    finally:
        engine.close()


def test_a_policy_with_it_is_written_and_read_again() -> None:
    policy = Policy.model_validate(POLICY)
    assert Policy.of(policy.to_dict(), "policy") == policy
    assert "from: admitted" in policy.to_yaml()
    assert hash(reading_options(policy)) == hash(reading_options(Policy.of(policy.to_dict(), "policy")))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"numbers": {}, "dates": {"formats": ["%Y-%m-%d"]}}, "`numbers` and `dates` cannot both be done"),
        ({"numbers": {"decimal": [","], "thousands": [","]}}, "a mark cannot stand both"),
        ({"numbers": {"decimal": ["x"]}}, "'x' is no mark in a number"),
        ({"numbers": {"units": {"kg": "1/3"}}}, "a factor is positive"),
        ({"dates": {"formats": ["%d.%m"]}}, "must have a day, a month and a year"),
        ({"dates": {"formats": ["%d.%m.%Q%Y"]}}, "%Q is not known"),
        ({"dates": {"formats": ["%d.%m.%y"]}}, "years of two digits need `first_year`"),
        ({"spellings": {"a": ["x"], "b": ["x"]}}, "'x' is listed for two values"),
        ({"spellings": {"a": ["b"], "b": []}}, "'b' is a value, and listed as a spelling"),
        ({"spellings": ["a"]}, "names no spellings"),
        ({"missing": ["x"], "spellings": {"a": ["x"]}}, "'x' is both missing and another spelling"),
        ({"lists": {"separators": [" "]}}, "cannot separate values"),
        ({"between": {"from": "x", "to": "2024-02-30"}}, "day"),
    ],
)
def test_settings_that_make_no_sense_are_refused(step: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Policy.of({**POLICY, "prepare": {"weight": step}}, "policy")


def test_a_length_of_dates_that_are_not_kept_to_the_day_is_refused() -> None:
    born = {"dates": {"formats": ["%d.%m.%Y"], "show": "year"}}
    with pytest.raises(PolicyError, match=r"prepare.age: a length needs the days of 'born'"):
        Policy.of({**POLICY, "prepare": {"born": born, "age": PREPARE["age"]}}, "policy")


def test_a_column_that_the_table_does_not_have_is_refused(tmp_path: Path) -> None:
    path = messy_table(30).write(tmp_path / "messy.csv")
    for name, step, missed in (
        ("sexx", {"missing": ["x"]}, "sexx"),
        ("n", {"between": {"from": "q", "to": "left"}}, "q"),
    ):
        with pytest.raises(InputError, match=f"prepare.{name}: the table has no column '{missed}'"):
            mw.anonymize(path, {**POLICY, "prepare": {**PREPARE, name: step}})
    with pytest.raises(InputError, match="'sex' should be a new column, but the table has one"):
        mw.anonymize(path, {**POLICY, "prepare": {**PREPARE, "sex": PREPARE["stay"]}})


def test_release_report_and_new_rows(tmp_path: Path) -> None:
    made = messy_table(300)
    path = made.write(tmp_path / "messy.csv")
    release = mw.anonymize(path, POLICY, destination=tmp_path / "release")
    assert release.ok
    published = pd.read_csv(tmp_path / "release" / "public" / "data.csv", dtype=str)
    assert set(published["sex"].dropna()) <= {"Female", "Male", "*"}
    counted = Counter(
        {(r.column, r.what): r.rows for r in release.repairs if r.column not in ("stay", "age")}
    )
    assert counted == made.found
    assert any(line.startswith("prepared sex: ") for line in release.notes)
    report = (tmp_path / "release" / "private" / "report.html").read_text(encoding="utf-8")
    assert "What was prepared" in report
    assert "a code that lost its zeros" in report
    public = "".join(p.read_text(encoding="utf-8") for p in (tmp_path / "release" / "public").iterdir())
    assert "see file" not in public
    # from the folder: the policy that was kept prepares new rows as it prepared the table
    recoder = mw.Recoder.from_release(tmp_path / "release", order="keep")
    new = recoder.transform(pd.DataFrame(made.cells))
    assert list(new["disease"]) == [row["disease"] for row in made.cells]
    kept = published[["sex", "weight", "age", "zip", "disease"]].fillna("")
    assert len(kept) == len(new), "nobody is left out at this size"
    assert Counter(kept.itertuples(index=False)) == Counter(
        new[kept.columns].fillna("").itertuples(index=False)
    )


@pytest.mark.parametrize(
    ("encoding", "delimiter"),
    [
        ("cp1252", ";"),
        pytest.param("utf-8-sig", "|", marks=pytest.mark.long),
        pytest.param("utf-16", "\t", marks=pytest.mark.long),
    ],
)
def test_a_messy_file_in_policy_report_and_new_rows(tmp_path: Path, encoding: str, delimiter: str) -> None:
    """Encodings, marks of order, delimiters, names that are empty or twice, and whole numbers of 25 digits."""
    made = messy_table(200, seed=8)
    numbers = [10**24 + 7 * (i // 50) for i in range(200)]
    path, again = tmp_path / "messy.csv", tmp_path / "new.csv"
    with path.open("w", newline="", encoding=encoding) as file:
        rows = csv.writer(file, delimiter=delimiter)
        rows.writerow([*NAMES, "disease", "", "site"])
        for row, number in zip(made.cells, numbers, strict=True):
            rows.writerow([*row.values(), number, "x", "Zürich"])
    again.write_bytes(path.read_bytes())
    found = mw.suggest_policy(path, tried=False).policy.input
    assert (found.encoding == "cp1252") == (encoding == "cp1252")
    assert found.names == "repair"
    passing = {"role": "insensitive", "near_unique": "allow"}
    columns = {**POLICY["columns"], "disease_2": passing, "site": passing}
    policy = {**POLICY, "columns": columns, "input": {"encoding": found.encoding, "names": "repair"}}
    release = mw.anonymize(path, policy, destination=tmp_path / "release")
    assert release.ok
    assert [c for c in release.policy.columns if c.startswith("disease")] == ["disease", "disease_2"]
    published = pd.read_csv(tmp_path / "release" / "public" / "data.csv", dtype=str)
    assert set(published["site"]) == {"Zürich"}
    assert set(published["disease_2"]) == set(map(str, numbers)), "every digit"
    report = (tmp_path / "release" / "private" / "report.html").read_text(encoding="utf-8")
    for (name, what), count in made.found.items():
        assert f"{count:,}" in report, (name, what)
    recoder = mw.Recoder.from_release(tmp_path / "release", order="keep")
    new = recoder.transform(again).df()
    assert Counter(new["sex"].fillna("")) == Counter(published["sex"].fillna(""))
    assert set(new["disease_2"]) == set(published["disease_2"])
