"""The same rule inside the database: cells are refused, escaped and read back as Python would."""

from __future__ import annotations

import csv
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskwright.domain.spreadsheets import escape_cell, unescape_cell, would_run
from maskwright.engines.base import ColumnInfo, Engine, Reading
from maskwright.engines.duckdb import formulas
from maskwright.engines.duckdb.engine import DuckDBEngine
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Relation
from maskwright.errors import InputError
from tests.engines.conftest import flat, plan

CELLS = st.lists(
    st.text(st.sampled_from("=+-@'\"\t\r\n;,.|1ex＝＋－＠ \u00a0\u200b\ufeffé"), max_size=8),
    min_size=1,
    max_size=30,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CELLS)
def test_the_database_agrees_with_python(engine: DuckDBEngine, cells: list[str]) -> None:
    import numpy as np

    db = engine._db
    harmless = np.full(len(cells), "x", dtype=object)
    with db.tables({"cells": {"c0": harmless, "c1": np.array(cells, dtype=object)}}):
        marked, unmarked = (f(clauses.column("c1")) for f in (formulas.marked, formulas.unmarked))
        rows = db.rows(
            clauses.select([clauses.column("c1"), marked, unmarked], clauses.relation("cells")), {}
        )
        assert [(v, escape_cell(v), unescape_cell(v)) for v in cells] == rows
        infos = tuple(ColumnInfo(name, "text", "VARCHAR") for name in "ab")
        table = Relation(infos, "path", "csv", "cells", "cells", clean=True)
        bad = any(map(would_run, cells))
        for names in (["b"], ["a", "b"]):  # by itself, and together with another column
            told = pytest.raises(InputError, match="column 'b': a spreadsheet would run")
            with told if bad else nullcontext():
                formulas.refuse_columns(db, table, names)


def test_written_and_read_back(engine: Engine, tmp_path: Path) -> None:
    header, rows = ["@id", "=b"], [["=1+1", "a"], ["'x", "a;=2"], ["-3", "'"], ["x", ""]]
    path = tmp_path / "in.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    table = engine.open(path, Reading())
    recoded = engine.recode(table, plan(header, {}))
    out = tmp_path / "out.csv"
    with pytest.raises(InputError, match="name of column '@id'"):
        engine.write(recoded, out, "csv")
    assert not out.exists()
    engine.write(recoded, out, "csv", "escape")
    with out.open(newline="", encoding="utf-8") as file:
        written = list(csv.reader(file))
    assert written[0] == ["'@id", "'=b"]
    assert sorted(written[1:]) == sorted([["'=1+1", "a"], ["''x", "a;'=2"], ["-3", "''"], ["x", ""]])
    back = engine.sample(engine.open(out, Reading(escaped=True)), 10)
    assert sorted((r["@id"], r["=b"] or "") for r in back) == sorted(map(tuple, rows))
    engine.write(recoded, out, "csv", "allow")
    assert "=1+1" in out.read_text(encoding="utf-8").replace("'", "")
    engine.write(recoded, tmp_path / "out.parquet", "parquet")


def test_the_error_names_the_column_and_the_remedy(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("a,b\nx,=HYPERLINK()\ny,z\n", encoding="utf-8")
    table = engine.recode(engine.open(path, Reading()), plan(["a", "b"], {"a": (flat("a", ["x", "y"]), 1)}))
    with pytest.raises(InputError, match=r"column 'b'.*'=HYPERLINK\(\)'.*formulas: escape.*allow"):
        engine.write(table, tmp_path / "out.csv", "csv")
