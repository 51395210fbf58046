"""Wide tables: time grows with the columns, not with their square; nothing is read of what is not published."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.domain.unique_sets import minimal_uniques
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.engines.duckdb.engine import DuckDBEngine
from tests.amounts import cases


def wide(folder: Path, columns: int) -> Path:
    path = folder / f"{columns}.csv"
    lines = [[f"c{i}" for i in range(columns)], *([v] * columns for v in ("a", "b", "a", "b"))]
    path.write_text("\n".join(map(",".join, lines)) + "\n", encoding="utf-8")
    return path


def test_a_few_rows_are_looked_at_in_linear_time(tmp_path: Path) -> None:
    """Planned with every optimisation, a thousand columns took 27 s, fifty times as long as a hundred and fifty."""
    engine = open_engine(threads=1)
    taken = {}
    for columns in (150, 1_200):
        table = engine.open(wide(tmp_path, columns), Reading())
        before = time.process_time()
        [row, *_] = engine.sample(table, 5)
        taken[columns] = time.process_time() - before
        assert len(row) == columns
    engine.close()
    assert taken[1_200] < 30 * taken[150], taken


@pytest.mark.parametrize("columns", cases([150, 1_000, 2_000], brief=[150]))
def test_a_wide_table_is_published(tmp_path: Path, columns: int) -> None:
    roles: dict[str, Any] = {f"c{i}": "insensitive" if i % 3 else "identifier" for i in range(columns)}
    roles["c0"] = {"role": "quasi-identifier", "hierarchy": "suppress"}
    policy = {"columns": roles, "require": [{"model": "k-anonymity", "k": 2}], "method": {"name": "mondrian"}}
    before = time.process_time()
    release = mw.anonymize(wide(tmp_path, columns), policy, tmp_path / "release")
    assert time.process_time() - before < 2 + columns / 50
    assert release.path is not None


def test_examples_read_published_columns_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    sample = DuckDBEngine.sample

    def watched(self: DuckDBEngine, table: Any, rows: int, columns: Any = None) -> Any:
        asked.append([c.name for c in table.columns] if columns is None else list(columns))
        return sample(self, table, rows, columns)

    monkeypatch.setattr(DuckDBEngine, "sample", watched)
    roles: dict[str, Any] = {"c0": {"role": "quasi-identifier", "hierarchy": "suppress"}, "c1": "identifier"}
    mw.anonymize(
        wide(tmp_path, 4), {"columns": roles, "require": [{"model": "k-anonymity", "k": 2}]}, tmp_path / "r"
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
