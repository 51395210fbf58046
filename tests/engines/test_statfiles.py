"""Excel, Stata, SPSS and SAS files: values, types, labels, what is missing, and what is refused."""

from __future__ import annotations

import builtins
import datetime
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.engines.base import Engine, Reading
from maskwright.engines.readers import statistics_files
from maskwright.errors import InputError
from tests.patients import HEADER, POLICY, patients, write_csv
from tests.support import needs

pd = needs("pandas")
pyreadstat = needs("pyreadstat")
openpyxl = needs("openpyxl")
needs("python_calamine")

DAY, NOON = datetime.date(2024, 1, 31), datetime.datetime(2024, 1, 31, 12, 0)
KINDS = {"t": "timestamp", "day": "date", "sex": "number", "age": "number", "name": "text"}


def statistics(path: Path, rows: int = 3) -> Path:
    table = pd.DataFrame(
        {
            "age": [20.0, 31.5, None] * (rows // 3),
            "sex": [1.0, 2.0, 9.0] * (rows // 3),
            "name": ["a", "", "c"] * (rows // 3),
            "day": [DAY, None, DAY] * (rows // 3),
            "t": [NOON] * rows,
        }
    )
    labels = {"sex": {1: "male", 2: "female"}}
    if path.suffix in (".sav", ".zsav"):
        compress = path.suffix == ".zsav"
        pyreadstat.write_sav(
            table, str(path), variable_value_labels=labels, missing_ranges={"sex": [9]}, compress=compress
        )
    elif path.suffix == ".dta":
        pyreadstat.write_dta(table, str(path), variable_value_labels=labels)
    elif path.suffix == ".por":
        pyreadstat.write_por(table, str(path))
    else:
        pyreadstat.write_xport(table, str(path))
    return path


def rows(engine: Engine, path: Path, **options: Any) -> list[dict[str, str | None]]:
    return engine.sample(engine.open(path, Reading(**options)), 10)


@pytest.mark.parametrize("suffix", ["sav", "zsav", "dta", "xpt", "por"])
def test_statistics_files(engine: Engine, tmp_path: Path, suffix: str) -> None:
    path = statistics(tmp_path / f"t.{suffix}")
    table = engine.open(path, Reading())
    assert {c.name.lower(): c.kind for c in table.columns} == KINDS
    found = [{k.lower(): v for k, v in row.items()} for row in engine.sample(table, 5)]
    nine = None if suffix in ("sav", "zsav") else "9"
    noon = "2024-01-31 12:00:00"
    assert found == [
        {"age": "20", "sex": "1", "name": "a", "day": "2024-01-31", "t": noon},
        {"age": "31.5", "sex": "2", "name": None, "day": None, "t": noon},
        {"age": None, "sex": nine, "name": "c", "day": "2024-01-31", "t": noon},
    ]


@pytest.mark.parametrize("suffix", ["sav", "dta"])
def test_value_labels(engine: Engine, tmp_path: Path, suffix: str) -> None:
    found = rows(engine, statistics(tmp_path / f"t.{suffix}"), labels=True)
    assert [row["sex"] for row in found] == ["male", "female", None if suffix == "sav" else "9"]


def test_many_parts(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics_files, "ROWS", 4)
    table = engine.open(statistics(tmp_path / "t.dta", 9), Reading())
    assert engine.count(table) == 9
    assert engine.domain(table, "age").counts == (3, 3)


def test_a_column_whose_type_shows_late(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics_files, "ROWS", 2)
    path = tmp_path / "t.sav"
    pyreadstat.write_sav(
        pd.DataFrame({"day": [None, None, DAY]}), str(path), variable_format={"day": "DATE11"}
    )
    with pytest.raises(InputError, match=r"column 'day' holds values that are not of the type DOUBLE"):
        engine.open(path, Reading())


def workbook(path: Path, content: dict[str, list[list[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, lines in content.items():
        sheet = book.create_sheet(name)
        for line in lines:
            sheet.append(line)
    book.save(path)
    return path


def test_excel(engine: Engine, tmp_path: Path) -> None:
    lines = [
        ["n", "zip", "day", "t", "flag", "mixed", "both"],
        [1, "007", DAY, NOON, True, "a", DAY],
        [2.5, " 13000 ", None, NOON, None, 3, NOON],
        [None] * 7,
        [None, None, DAY, NOON, False, True, DAY],
    ]
    table = engine.open(workbook(tmp_path / "t.xlsx", {"people": lines}), Reading())
    kinds = ["number", "text", "date", "timestamp", "boolean", "text", "text"]
    assert [c.kind for c in table.columns] == kinds
    noon, day = "2024-01-31 12:00:00", "2024-01-31"
    assert [list(row.values()) for row in engine.sample(table, 9)] == [
        ["1", "007", day, noon, "true", "a", day],
        ["2.5", "13000", None, noon, None, "3", noon],
        [None, None, day, noon, "false", "true", day],
    ]


def test_sheets(engine: Engine, tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", {"a": [["x"], [1]], "b": [["y"], [2]], "empty": []})
    with pytest.raises(
        InputError, match=r"several sheets \('a', 'b', 'empty'\); say which: input: {sheet: …}"
    ):
        engine.open(path, Reading())
    assert rows(engine, path, sheet="b") == [{"y": "2"}]
    assert rows(engine, path, sheet="b", header=False) == [{"column1": "y"}, {"column1": "2"}]
    with pytest.raises(InputError, match="there is no sheet 'c'"):
        engine.open(path, Reading(sheet="c"))
    with pytest.raises(InputError, match="the sheet is empty"):
        engine.open(path, Reading(sheet="empty"))


def test_names_in_a_sheet(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="column 2 has no name"):
        engine.open(workbook(tmp_path / "t.xlsx", {"a": [["x", None], [1, 2]]}), Reading())
    with pytest.raises(InputError, match="no rows"):
        engine.open(workbook(tmp_path / "u.xlsx", {"a": [["x", "y"]]}), Reading())


@pytest.mark.parametrize("suffix", ["xlsx", "xls", "ods", "dta", "sav", "sas7bdat", "xpt", "por"])
def test_damaged_files(engine: Engine, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(b"this is not a file of that kind, whatever its name may say")
    with pytest.raises(InputError, match="the file is damaged"):
        engine.open(path, Reading())


@pytest.mark.parametrize(("suffix", "package"), [("xlsx", "python_calamine"), ("sav", "pyreadstat")])
def test_without_the_extra(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, package: str
) -> None:
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(b"x")
    original = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == package:
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'maskwright\[files\]'"):
        engine.open(path, Reading())


def test_a_workbook_becomes_the_same_release_as_a_csv_file(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    lines = [[row[0], int(row[1]), *row[2:]] for row in patients()]
    book = workbook(tmp_path / "p.xlsx", {"people": [HEADER, *lines]})
    mw.anonymize(book, policy, tmp_path / "a", seed=1)
    mw.anonymize(write_csv(tmp_path / "p.csv", patients()), policy, tmp_path / "b", seed=1)
    assert (tmp_path / "a/public/data.csv").read_bytes() == (tmp_path / "b/public/data.csv").read_bytes()
