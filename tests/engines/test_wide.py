"""Wide tables: time grows with the columns, not with their square; nothing is read of what is not published."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.domain.unique_sets import minimal_uniques
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.engines.duckdb.database import Database
from maskwright.engines.duckdb.engine import DuckDBEngine
from tests.amounts import cases


def wide(folder: Path, columns: int) -> Path:
    path = folder / f"{columns}.csv"
    lines = [[f"c{i}" for i in range(columns)], *([v] * columns for v in ("a", "b", "a", "b"))]
    path.write_text("\n".join(map(",".join, lines)) + "\n", encoding="utf-8")
    return path


def published(folder: Path, columns: int, known: int = 1) -> None:
    """A release of a table with so many quasi-identifiers, of whose other columns a third is not published."""
    roles: dict[str, Any] = {
        f"c{i}": {"role": "insensitive", "near_unique": "allow"} if i % 3 else "identifier"
        for i in range(columns)
    }
    roles |= {f"c{i}": {"role": "quasi-identifier", "hierarchy": "suppress"} for i in range(known)}
    policy = {
        "columns": roles, "require": [{"model": "k-anonymity", "k": 2}], "method": {"name": "mondrian"},
        "unit": "none",
    }  # fmt: skip
    assert mw.anonymize(wide(folder, columns), policy, folder / f"release {columns}").path is not None


def audited(folder: Path, columns: int) -> None:
    mw.audit(wide(folder, columns), ["c0", "c1"], ["c2"]).as_dict()


def suggested(folder: Path, columns: int) -> None:
    mw.suggest_policy(wide(folder, columns))


@pytest.mark.parametrize("task", [published, audited, suggested])
def test_columns_are_looked_at_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: Callable[[Path, int], None]
) -> None:
    """A query for each column bound the whole table each time: a thousand took 14 s, and an audit of 500 crashed."""
    asked: list[int] = []
    execute = Database.execute

    def counted(self: Database, query: Any, parameters: Any) -> Any:
        asked.append(1)
        return execute(self, query, parameters)

    monkeypatch.setattr(Database, "execute", counted)
    queries = {}
    for columns in (40, 190):
        asked.clear()
        task(tmp_path, columns)
        queries[columns] = len(asked)
    assert queries[190] - queries[40] < 50, "fewer than one for each three columns"


@pytest.mark.long
@pytest.mark.parametrize("task", [published, audited, suggested])
def test_time_grows_with_the_columns(tmp_path: Path, task: Callable[[Path, int], None]) -> None:
    task(tmp_path, 10)  # what is imported on the way
    taken = {}
    for columns in (500, 2_000):
        before = time.process_time()
        task(tmp_path, columns)
        taken[columns] = time.process_time() - before
    assert taken[2_000] < 8 * taken[500] + 1, taken


@pytest.mark.long
def test_ten_thousand_columns(tmp_path: Path) -> None:
    for task in (published, audited):
        before = time.process_time()
        task(tmp_path, 10_000)
        assert time.process_time() - before < 40, task


@pytest.mark.parametrize("known", cases([80, 300], brief=[80]))
def test_many_quasi_identifiers(tmp_path: Path, known: int) -> None:
    """The time to join their dictionaries in one query grew with the cube of their number: 300 took two minutes."""
    before = time.process_time()
    published(tmp_path, known, known)
    assert time.process_time() - before < 20


def test_a_column_among_many_is_counted_as_alone(tmp_path: Path) -> None:
    """Columns that are looked at together, with odd values among them, and each by itself."""
    values = [
        ["a", " a", ""],
        ["b", "b ", "b"],
        ["NA", "a", "c"],
        ["1", "2", "2"],
        ["", "", ""],
        ["x", "y", "z"],
    ]
    path = tmp_path / "t.csv"
    names = [f"n{i}" for i in range(len(values))]
    rows = [names, *map(list, zip(*values, strict=True))]
    path.write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
    engine = open_engine(threads=1)
    table = engine.open(path, Reading(missing=("NA",)))
    for limit in (None, 1):
        together = list(engine.domains(table, names, limit))
        assert together == [engine.domain(table, name, limit) for name in names]
    assert engine.lone_values(table, names) == [engine.uniqueness(table, [n])[1] for n in names]
    beside = [engine.uniqueness(table, ["n3", n])[1] for n in names]
    assert engine.lone_values(table, names, ["n3"]) == beside
    assert beside != engine.lone_values(table, names)
    domains = [d.values for d in engine.domains(table, names)]
    together = engine.in_order(table, names, domains, 2)
    assert [codes.tolist() for codes in together] == [
        engine.in_order(table, [n], [d], 2)[0].tolist() for n, d in zip(names, domains, strict=True)
    ]
    engine.close()


def test_rows_of_a_wide_table_are_shown_as_they_are(tmp_path: Path) -> None:
    engine = open_engine(threads=1)
    table = engine.open(wide(tmp_path, 250), Reading())
    assert engine.sample(table, 3) == [{f"c{i}": v for i in range(250)} for v in ("a", "b", "a")]
    assert engine.sample(table, 3, ["c7"]) == [{"c7": v} for v in ("a", "b", "a")]
    engine.close()


def test_examples_read_published_columns_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    sample = DuckDBEngine.sample

    def watched(self: DuckDBEngine, table: Any, rows: int, columns: Any = None) -> Any:
        asked.append([c.name for c in table.columns] if columns is None else list(columns))
        return sample(self, table, rows, columns)

    monkeypatch.setattr(DuckDBEngine, "sample", watched)
    roles: dict[str, Any] = {"c0": {"role": "quasi-identifier", "hierarchy": "suppress"}, "c1": "identifier"}
    mw.anonymize(
        wide(tmp_path, 4),
        {"columns": roles, "require": [{"model": "k-anonymity", "k": 2}], "unit": "none"},
        tmp_path / "r",
    )
    assert asked and all(names == ["c0"] for names in asked)


def test_a_hundred_quasi_identifiers_are_searched_for_small_sets_only() -> None:
    """Sets of three of them took minutes for four people; where nobody is alone there is nothing to look for."""
    names = [f"c{i}" for i in range(100)]
    codes = np.array([[0, 1, 2, 3]] * 100)
    before = time.process_time()
    alone = minimal_uniques(names, codes, np.array([1, 1, 1, 1]))
    assert (alone.most, alone.singled_out) == (2, 4)
    assert minimal_uniques(names, codes, np.array([2, 2, 2, 2])).singled_out == 0
    assert time.process_time() - before < 5


@pytest.mark.parametrize("unit", [None, "u"])
def test_dictionaries_joined_in_parts_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str | None
) -> None:
    """Two at a time instead of all: the summary, the recount, and which rows are published as what."""
    rng = np.random.default_rng(5)
    names = [f"c{i}" for i in range(5)]
    rows = [[*rng.choice(["a", "b", " b", ""], 5), str(rng.integers(0, 30))] for _ in range(60)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(map(",".join, [[*names, "u"], *rows])) + "\n", encoding="utf-8")
    columns: dict[str, Any] = {n: {"role": "quasi-identifier", "hierarchy": "suppress"} for n in names[:4]}
    columns |= {"c4": {"role": "insensitive", "near_unique": "allow"}} | (
        {"u": {"role": "identifier"}} if unit else {}
    )
    policy = {
        "columns": columns, "require": [{"model": "k-anonymity", "k": 3}],
        **({"unit": "u"} if unit else {}),
    }  # fmt: skip
    methods = [{"name": "optimal-lattice", "suppression": "1/5"}, *([] if unit else [{"name": "mondrian"}])]
    found = []
    for joined in (32, 2):
        monkeypatch.setattr("maskwright.engines.sql.coded_columns.JOINED", joined)
        monkeypatch.setattr("maskwright.engines.duckdb.recounting.JOINED", joined)
        engine = open_engine(threads=1)
        recount = engine.recount(engine.open(path, Reading()), names[:4], ["c4"], unit)
        engine.close()
        counted = [recount.codes.tolist(), recount.rows.tolist(), recount.people.tolist()]
        for method in methods:
            release = mw.anonymize(path, policy | {"method": method}, tmp_path / f"{joined} {method['name']}")
            [table] = release.tables.values()
            counted.append(table.read_text("utf-8"))
        found.append((*counted, recount.texts, recount.values["c4"].counts.tolist()))
    assert found[0] == found[1]
