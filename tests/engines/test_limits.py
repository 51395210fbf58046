"""What an engine is told about memory, how far it is, and to stop; and columns at a coarser level."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from maskwright.domain.hierarchy import Hierarchy
from maskwright.engines import open_engine
from maskwright.engines.base import Reading, SensitiveSpec, SummarySpec
from maskwright.engines.duckdb.engine import DuckDBEngine
from maskwright.errors import Cancelled, HierarchyError, PolicyError
from maskwright.runtime.events import Event, Progress
from maskwright.runtime.memory_budget import MB


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DuckDBEngine]:
    made = open_engine(temp=tmp_path)
    assert isinstance(made, DuckDBEngine)
    yield made
    made.close()


def limit(engine: DuckDBEngine) -> str:
    return str(engine._db.con.execute("SELECT current_setting('memory_limit')").fetchall()[0][0])


@pytest.mark.parametrize(
    "setting", ["enable_external_access = true", "temp_directory = '/'", "TimeZone = 'UTC'"]
)
def test_memory_and_threads_alone_can_be_changed(engine: DuckDBEngine, setting: str) -> None:
    engine.allow(500 * MB)
    assert limit(engine) == "476.8 MiB"
    with pytest.raises(duckdb.InvalidInputException, match="locked"):
        engine._db.con.execute(f"SET {setting}")


def test_one_thread_for_a_while(engine: DuckDBEngine) -> None:
    def threads() -> int:
        return int(engine._db.con.execute("SELECT current_setting('threads')").fetchall()[0][0])

    engine._db.con.execute("SET threads = 3")
    with pytest.raises(KeyError), engine._db.one_thread():
        assert threads() == 1
        raise KeyError
    assert threads() == 3


SLOW = "SELECT count(*) FROM (SELECT md5(range::VARCHAR) AS h FROM range(200000000)) WHERE h = 'x'"


def test_a_running_query_is_stopped_within_a_second(engine: DuckDBEngine) -> None:
    """In seconds of CPU, of which the query takes all there are."""
    begin = time.process_time()
    progress = Progress(cancelled=lambda: time.process_time() > begin + 0.5)
    with pytest.raises(Cancelled), engine.watch(progress):
        engine._db.con.execute(SLOW).fetchall()
    assert time.process_time() - begin < 0.5 + 2 * (os.cpu_count() or 1)
    assert engine._db.con.execute("SELECT 1").fetchall() == [(1,)]


CTRL_C = f"""
import os, signal, threading, time
from maskwright.runtime.events import Progress
from maskwright.engines import open_engine
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process started in the background ignores it
engine = open_engine()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    with engine.watch(Progress()):
        engine._db.con.execute({SLOW!r}).fetchall()
except KeyboardInterrupt:
    print("stopped", time.process_time())
"""


def test_ctrl_c_stops_a_running_query() -> None:
    """It is not heard only when the query has ended, which takes many seconds of CPU on any machine."""
    done = subprocess.run([sys.executable, "-c", CTRL_C], capture_output=True, text=True, check=True)
    said, used = done.stdout.split()
    assert said == "stopped"
    assert float(used) < 2 + 2 * (os.cpu_count() or 1)


def test_how_far_a_query_is_comes_as_events(engine: DuckDBEngine) -> None:
    told: list[Event] = []
    progress = Progress(told.append, lambda: len(told) > 4)
    progress.step("counting")
    with pytest.raises(Cancelled), engine.watch(progress):
        engine._db.con.execute(SLOW).fetchall()
    shares = [e.share for e in told if e.kind == "progress"]
    assert len(shares) > 3
    assert all(s is not None and 0 < s < 1 for s in shares)
    assert shares == sorted(s or 0 for s in shares)
    assert all(e.text.endswith("left") and e.data["left"] > 0 for e in told[1:])


def test_a_listener_that_fails_is_heard(engine: DuckDBEngine) -> None:
    def fails(event: Event) -> None:
        if event.kind == "progress":
            raise RuntimeError("nobody listens")

    progress = Progress(fails)
    progress.step("counting")
    with pytest.raises(RuntimeError, match="nobody listens"), engine.watch(progress):
        engine._db.con.execute(SLOW).fetchall()


# --- how many combinations ----------------------------------------------------------------------------


def numbers(rows: int, path: Path) -> Path:
    with duckdb.connect() as con:
        con.execute(
            f"COPY (SELECT hash(range) % 400 AS a, hash(range + 9) % 500 AS b, hash(range + 3) % 5 AS s "  # noqa: S608
            f"FROM range({rows})) TO '{path}'"
        )
    return path


def widths(attribute: str, n: int) -> Hierarchy:
    values = [str(i) for i in range(n)]
    return Hierarchy.of(attribute, values, [("tens", [str(i // 10) for i in range(n)])], ordered=True)


@pytest.mark.parametrize("rows", [1_000, 600_000])
def test_combinations_are_estimated(engine: DuckDBEngine, tmp_path: Path, rows: int) -> None:
    table = engine.open(numbers(rows, tmp_path / "t.parquet"), Reading())
    spec = SummarySpec([widths("a", 400), widths("b", 500)], [SensitiveSpec("s", tuple("01234"))])
    found = engine.combinations(table, spec, [{}, {"a": 1}, {"a": 1, "b": 1}, {"b": 2}])
    counts = [
        engine._db.con.execute(
            f"SELECT count(DISTINCT ({a}, {b}, s)) FROM '{tmp_path / 't.parquet'}'"  # noqa: S608
        ).fetchall()[0][0]
        for a, b in (("a", "b"), ("a // 10", "b"), ("a // 10", "b // 10"), ("a", "0"))
    ]
    if rows == 1_000:  # below the size of the sample everything is looked at
        assert found == counts
    else:
        for mine, exact in zip(found, counts, strict=True):
            assert mine == pytest.approx(
                exact, rel=5 * (4 / exact) ** 0.5
            )  # five standard errors, one in 4 taken


def test_people_are_told_apart(engine: DuckDBEngine, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,who\n1,x\n1,y\n1,x\n2,x\n")
    table = engine.open(tmp_path / "t.csv", Reading())
    spec = SummarySpec([Hierarchy.of("a", ("1", "2"), [])], unit="who")
    assert engine.combinations(table, spec, [{}]) == [3]


# --- coarser columns ----------------------------------------------------------------------------------


def test_a_coarser_column(engine: DuckDBEngine, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,s\n12,x\n 12 ,y\n19,x\n25,x\n?,x\n,y\n")
    table = engine.open(tmp_path / "t.csv", Reading(missing=("?",)))
    whole = Hierarchy.of("a", ("12", "19", "25"), [("tens", ("10-19", "10-19", "20-29"))], ordered=True)
    coarse = engine.coarsen(table, [whole.cut_at(1)])
    assert [row["a"] for row in engine.sample(coarse, 9)] == ["10-19"] * 3 + ["20-29", None, None]
    summary = engine.summarise(coarse, SummarySpec([whole.cut_at(1)], [SensitiveSpec("s", ("x", "y"))]))
    assert summary.rows.tolist() == [2, 3, 1]
    assert engine.domain(coarse, "s").counts == (4, 2)


def test_a_coarser_column_refuses_what_it_does_not_know(engine: DuckDBEngine, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,s\n12,x\n13,x\n")
    table = engine.open(tmp_path / "t.csv", Reading(missing=("low",)))
    some = Hierarchy.of("a", ("12", "14", "15"), [("one", ("twelve", "more", "more"))])
    with pytest.raises(HierarchyError, match="column 'a': its hierarchy does not know '13'"):
        engine.coarsen(table, [some.cut_at(1)])
    for label in ("low", " low", ""):
        odd = Hierarchy.of("a", ("12", "13", "14"), [("one", (label, "more", "more"))])
        with pytest.raises(PolicyError, match="level 'one' has the label"):
            engine.coarsen(table, [odd.cut_at(1)])


@pytest.mark.parametrize("listed", [10_000, 200_000])
def test_rows_stay_in_their_order(
    engine: DuckDBEngine, tmp_path: Path, listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passes match rows by position, also where the coarse column has as many values as there are rows."""
    monkeypatch.setattr("maskwright.engines.sql.coarsening.LISTED", listed)
    path = tmp_path / "t.parquet"
    with duckdb.connect() as con:
        made = "SELECT (range * 7919) % 150000 AS a, range AS b FROM range(150000)"
        con.execute(f"COPY ({made}) TO '{path}'")
    coarse = engine.coarsen(engine.open(path, Reading()), [widths("a", 150_000).cut_at(1)])
    query = (
        f'SELECT count(*) FROM "{coarse.relation}" AS t POSITIONAL JOIN (SELECT range AS x FROM range(150000)) AS p '  # noqa: S608
        "WHERE t.r != p.x OR t.c1 != p.x OR t.c0 != (t.c1 * 7919 % 150000 // 10)::VARCHAR"
    )
    assert engine._db.con.execute(query).fetchall() == [(0,)]
