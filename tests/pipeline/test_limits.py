"""Tables that are too large: memory is kept, refusals come early and say what to do, columns can be coarsened."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter, namedtuple
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import maskwright as mw
from maskwright.cli.commands import main
from maskwright.engines.duckdb import database
from maskwright.errors import Cancelled, DestinationError, HierarchyError, PolicyError, UsageError
from maskwright.policy.policy import Policy
from maskwright.runtime.events import Event
from maskwright.verification.verify import verify_folder
from tests.amounts import cases, crossed
from tests.patients import HEADER, patients
from tests.support import needs

FINE = """
SELECT CAST(hash(range) % 90 AS INTEGER) AS age, CAST(10000 + hash(range + 1000000000) % 900 AS INTEGER) AS zip,
       'country ' || hash(range + 2000000000) % 7 AS country, 'illness ' || hash(range + 3000000000) % 4 AS illness
FROM range({rows})
"""
COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}},
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "country": "quasi-identifier",
    "illness": "sensitive",
}


def fine(rows: int, path: Path) -> Path:
    """Almost every row has a combination of its own."""
    with duckdb.connect() as con:
        con.execute(f"COPY ({FINE.format(rows=rows)}) TO '{path}'")
    return path


def policy(columns: Mapping[str, Any] = COLUMNS, **more: Any) -> dict[str, Any]:
    return {"version": 1, "columns": columns, "require": [{"model": "k-anonymity", "k": 5}]} | more


def finest(**levels: Any) -> dict[str, Any]:
    return {n: {**c, "finest": levels[n]} if n in levels else c for n, c in COLUMNS.items()}


# --- memory -------------------------------------------------------------------------------------------

PEAK = """
import json, sys
import maskwright as mw
source, policy, target, memory = sys.argv[1:]
release = mw.anonymize(source, json.loads(policy), target, memory=memory)
# not ru_maxrss, which counts what the parent held when this process began
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
print(json.dumps({"peak": peak, "cells": release.grouping.summary.n_cells}))
"""
BUCKETIZED = {"method": {"name": "mondrian", "cut": "balanced"}, "recoding": "bucketize"}


LATTICE = {"method": "optimal-lattice"}


@pytest.mark.parametrize(
    ("asked", "memory"),
    cases([(LATTICE, "550MB"), (BUCKETIZED, "700MB")], brief=[(LATTICE, "550MB")]),
)
def test_the_whole_process_stays_below_its_limit(tmp_path: Path, asked: dict[str, Any], memory: str) -> None:
    """Measured by the system; arrays beside the engine take more than the engine itself."""
    source = fine(900_000, tmp_path / "fine.parquet")
    command = [
        sys.executable,
        "-c",
        PEAK,
        str(source),
        json.dumps(policy(**asked)),
        str(tmp_path / "r"),
        memory,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["cells"] > 700_000
    assert found["peak"] < int(memory[:-2]) * 10**6


def test_a_table_that_is_too_fine_is_refused_early(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = fine(900_000, tmp_path / "fine.parquet")
    (tmp_path / "policy.yaml").write_text(json.dumps(policy()))
    begin = time.process_time()
    command = ["anonymize", str(source), "-p", str(tmp_path / "policy.yaml"), "-o", str(tmp_path / "r")]
    assert main([*command, "--memory", "350MB"]) == 2
    assert time.process_time() - begin < 15
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("maskwright: there are about 74")  # 745 thousand
    assert "in 900,000 rows" in line
    assert "The finest column is 'zip' with 900 values. With columns: {" in line
    assert "which fits (--coarsen auto takes that); or allow 500 MB (--memory)" in line
    assert not (tmp_path / "r").exists()
    [remedy] = [part for part in line.split(". ") if part.startswith("With columns: ")]
    levels = [int(part.split("}")[0]) for part in remedy.split("finest: ")[1:]]
    names = [name for name in ("zip", "age") if f"{name}: {{finest" in remedy]
    assert len(names) == len(levels) > 0
    (tmp_path / "policy.yaml").write_text(json.dumps(policy(finest(**dict(zip(names, levels, strict=True))))))
    assert main([*command, "--memory", "350MB"]) == 0  # what was said to fit does


def test_no_level_would_do(tmp_path: Path) -> None:
    source = fine(900_000, tmp_path / "fine.parquet")
    plain = dict.fromkeys(("age", "zip", "country"), "quasi-identifier") | {"illness": "sensitive"}
    with pytest.raises(UsageError, match="No column has a level between its values and `\\*`"):
        mw.anonymize(source, policy(plain), memory="310MB")
    columns = COLUMNS | {"zip": "quasi-identifier"}
    with pytest.raises(UsageError, match=r"Even with columns: \{age: \{finest: 3\}\} \(level 'width 20'\)"):
        mw.anonymize(source, policy(columns), memory="310MB")


@pytest.mark.parametrize(
    ("rows", "words"),
    [(150_000, "the summary is hardly smaller than the table"), (250_000, "it fits, but closely")],
)
def test_it_fits_but(rows: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.pipeline.resource_checks.MANY", 100_000)
    told: list[Event] = []
    with pytest.raises(Cancelled):
        mw.anonymize(
            fine(rows, tmp_path / "fine.parquet"), policy(finest(zip=1) if rows > 200_000 else COLUMNS),
            memory="350MB", on_event=told.append, cancelled=lambda: any(words in e.text for e in told),
        )  # fmt: skip


def test_a_small_table_is_not_looked_at_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.engines.duckdb.engine import DuckDBEngine

    monkeypatch.setattr(DuckDBEngine, "combinations", lambda *_: pytest.fail("rows were read for nothing"))
    release = mw.anonymize(fine(5_000, tmp_path / "t.parquet"), policy())
    assert release.ok


def test_memory_is_checked_before_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(json.dumps(policy()))
    command = ["anonymize", "none.csv", "-p", str(tmp_path / "policy.yaml"), "-o", str(tmp_path / "r")]
    for memory, words in (("50MB", "is too little"), ("much", "is not an amount")):
        assert main([*command, "--memory", memory]) == 2
        assert words in capsys.readouterr().err


# --- coarsen: auto --------------------------------------------------------------------------------------


def room_for(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many cells of `fine` fit, and no more."""
    from maskwright.pipeline.resource_checks import WORKING
    from maskwright.runtime.memory_budget import MemoryBudget, summary_bytes

    amount = WORKING * summary_bytes(cells, len(COLUMNS) - 1, 1)
    monkeypatch.setattr(MemoryBudget, "arrays", property(lambda _: amount))


def levels_of(folder: Path) -> dict[str, str]:
    kept = Policy.load(folder / "private" / "policy.yaml")
    return {name: column.finest for name, column in kept.columns.items() if column.finest is not None}


def test_auto_takes_what_the_refusal_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = fine(4_000, tmp_path / "fine.parquet")
    room_for(2_500, monkeypatch)
    with pytest.raises(UsageError, match="which fits \\(--coarsen auto takes that\\)") as refused:
        mw.anonymize(source, policy(**LATTICE), tmp_path / "no")
    assert not (tmp_path / "no").exists()
    release = mw.anonymize(source, policy(**LATTICE), tmp_path / "auto", coarsen="auto", seed=1)
    levels = levels_of(tmp_path / "auto")
    assert levels
    assert all(f"{name}: {{finest: {level}}}" in str(refused.value) for name, level in levels.items())
    [note] = [line for line in release.notes if "(coarsen: auto)" in line]
    assert all(name in note for name in levels)
    told = [i for i in release.promises[0].ingredients if i.name == "coarsened to fit"]
    assert [i.setting for i in told] == [", ".join(levels)]
    mw.anonymize(source, policy(finest(**levels), **LATTICE), tmp_path / "said", seed=1)
    one, two = (tmp_path / name / "public" / "data.parquet" for name in ("auto", "said"))
    assert one.read_bytes() == two.read_bytes()
    assert mw.load(tmp_path / "auto").target.design.coarsened == tuple(levels)


def test_what_is_chosen_does_not_depend_on_sensitive_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, other = fine(4_000, tmp_path / "fine.parquet"), tmp_path / "other.parquet"
    alike = "CASE WHEN row_number() OVER () < 50 THEN illness ELSE 'illness 1' END AS illness"
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT * REPLACE ({alike}) FROM '{source}') TO '{other}'")  # noqa: S608
    room_for(2_500, monkeypatch)
    for path, name in ((source, "one"), (other, "two")):
        mw.anonymize(path, policy(**LATTICE), tmp_path / name, coarsen="auto")
    assert levels_of(tmp_path / "one") == levels_of(tmp_path / "two") != {}


def test_nothing_is_promised_of_levels_where_somebody_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = fine(4_000, tmp_path / "fine.parquet")
    room_for(2_500, monkeypatch)
    asked = policy(method={"name": "optimal-lattice", "suppression": "0.9"})
    release = mw.anonymize(source, asked, tmp_path / "r", coarsen="auto")
    assert release.grouping.dropped_rows > 0
    [told] = [i for i in release.promises[0].ingredients if i.name == "coarsened to fit"]
    assert not told.covered
    assert "`finest` in the policy" in told.instead


def test_what_fits_is_not_coarsened(tmp_path: Path) -> None:
    mw.anonymize(fine(1_000, tmp_path / "fine.parquet"), policy(**LATTICE), tmp_path / "r", coarsen="auto")
    assert levels_of(tmp_path / "r") == {}


@pytest.mark.parametrize(
    ("more", "words"),
    [({"coarsen": "all"}, "write 'auto'"), ({"coarsen": "auto", "after": "r"}, "that follows")],
)
def test_coarsening_that_cannot_be(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        mw.anonymize(tmp_path / "none.csv", policy(), **more)


# --- finest -------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *patients(200)])
    return path


def asked(age: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    columns = {
        "name": "identifier",
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}} | age,
        "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
        "sex": "quasi-identifier",
        "disease": "sensitive",
        "ward": {"role": "insensitive", "near_unique": "allow"},
    }
    return policy(columns) | more


def rows(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="") as file:
        return sorted(tuple(row) for row in csv.reader(file))


METHODS: list[dict[str, Any]] = [
    {"method": {"name": "optimal-lattice", "objective": "discernibility"}},
    {"method": "mondrian"},
    {"method": {"name": "mondrian", "cut": "balanced"}, "recoding": "bucketize"},
    {"method": {"name": "mondrian", "cut": "balanced"}, "recoding": "permute"},
]


@pytest.mark.parametrize("how", METHODS, ids=str)
def test_finest_is_the_same_as_coarsening_the_table_before(
    table: Path, tmp_path: Path, how: dict[str, Any]
) -> None:
    with table.open(newline="") as file:
        header, *given = list(csv.reader(file))
    low = 20
    for row in given:
        start = low + (int(row[1]) - low) // 5 * 5
        row[1] = f"{start}-{start + 4}"
    order = [f"{a}-{a + 4}" for a in range(20, 220, 5)]
    upper = [[f"{a // w * w}-{a // w * w + w - 1}" for a in range(20, 220, 5)] for w in (10, 20)]
    coarse = tmp_path / "coarse.csv"
    with coarse.open("w", newline="") as file:
        csv.writer(file).writerows([header, *given])
    with (tmp_path / "ages.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["level0", "10", "20"], *zip(order, *upper, strict=True)])
    by_hand = Policy.load(asked({"hierarchy": {"file": str(tmp_path / "ages.csv")}, "order": order}, **how))
    one = mw.anonymize(coarse, by_hand, tmp_path / "one", seed=1)
    two = mw.anonymize(table, asked({"finest": 1}, **how), tmp_path / "two", seed=1)
    assert np.array_equal(one.grouping.summary.codes, two.grouping.summary.codes)
    assert one.grouping.summary.attributes[0].values == two.grouping.summary.attributes[0].values
    assert one.metrics == two.metrics
    files = sorted(p.name for p in (tmp_path / "one" / "public").glob("*.csv") if p.name != "mapping.csv")
    for name in files:
        assert rows(tmp_path / "one" / "public" / name) == rows(tmp_path / "two" / "public" / name)
    assert verify_folder(tmp_path / "two").ok
    assert mw.attack(tmp_path / "two")


def test_finest_where_values_are_missing(tmp_path: Path) -> None:
    """Nulls and texts that mean missing have no label, and move nobody else's."""
    ages = [None if i % 7 == 0 else "?" if i % 7 == 1 else str(20 + i % 60) for i in range(3000)]
    frame = needs("polars").DataFrame({"age": ages})
    age = {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}, "finest": 1}
    release = mw.anonymize(frame, policy({"age": age}, missing={"tokens": ["?"]}))
    starts = [None if a in (None, "?") else 20 + (int(a) - 20) // 5 * 5 for a in ages]
    expected = Counter(None if start is None else f"{start}-{start + 4}" for start in starts)
    assert Counter(release.table["age"].to_list()) == expected


def test_finest_does_what_levels_do_with_fewer_combinations(tmp_path: Path) -> None:
    source = fine(20_000, tmp_path / "t.parquet")
    method = {
        "method": {"name": "optimal-lattice", "objective": "discernibility"},
        "output": {"format": "csv"},
    }
    only = {"levels": [1, 2, 3, 4]}
    columns = [COLUMNS | {"age": COLUMNS["age"] | only | more} for more in ({}, {"finest": "width 5"})]
    one = mw.anonymize(source, policy(columns[0], **method), tmp_path / "one", seed=1)
    two = mw.anonymize(source, policy(columns[1], **method), tmp_path / "two", seed=1)
    assert rows(tmp_path / "one" / "public" / "data.csv") == rows(tmp_path / "two" / "public" / "data.csv")
    assert two.grouping.summary.n_cells < one.grouping.summary.n_cells
    assert any(
        "coarsened before anything is counted" in note and "age (width 5)" in note for note in two.notes
    )


def test_the_mapping_is_of_the_values_in_the_table(table: Path, tmp_path: Path) -> None:
    release = mw.anonymize(table, asked({"finest": 1}), tmp_path / "r")
    [level] = [n for h, n in zip(release.grouping.summary.attributes, release.grouping.levels or (), strict=True)
               if h.attribute == "age"]  # fmt: skip
    labels = release.mapping["age"]
    assert list(labels) == [str(age) for age in range(20, 220)]
    whole, number = release.grouping.summary.attributes[0].uncut(level)
    for i, value in enumerate(whole.values):
        expected = whole.levels[number].labels[whole.levels[number].blocks[i + 1]]
        assert labels[value] == (expected,)
    with (tmp_path / "r" / "private" / "mapping.csv").open(newline="") as file:
        written = [row for row in csv.DictReader(file) if row["column"] == "age"]
    assert [row["value"] for row in written] == list(labels)
    assert {row["rows"] for row in written} == {""}


def test_new_rows_are_recoded_alike(table: Path, tmp_path: Path) -> None:
    pandas = needs("pandas")
    release = mw.anonymize(table, asked({"finest": 1}), tmp_path / "r")
    new = pandas.read_csv(table, dtype=str)
    labels = {value: found[0] for value, found in release.mapping["age"].items()}
    for source in (release, tmp_path / "r"):
        recoder = mw.Recoder.from_release(source, order="keep")
        assert recoder.transform(new)["age"].tolist() == [labels[v] for v in new["age"]]


def test_a_frame_with_numbers(tmp_path: Path, table: Path) -> None:
    pandas = needs("pandas")
    frame = pandas.read_csv(table)
    assert str(frame["age"].dtype) == "int64"
    for how in METHODS:
        release = mw.anonymize(frame, asked({"finest": 1}, **how))
        ages = next(t for t in release.tables.values() if "age" in t)["age"]
        assert all(isinstance(age, str) for age in ages)


def test_finest_is_refused_where_it_means_nothing(table: Path) -> None:
    with pytest.raises(HierarchyError, match="column 'age' has no level '9'; it has 0 "):
        mw.anonymize(table, asked({"finest": 9}))
    with pytest.raises(
        PolicyError,
        match="`finest` names the top level, at which nothing is left of it; make it an identifier",
    ):
        mw.anonymize(table, asked({"finest": "any"}))
    with pytest.raises(HierarchyError, match=r"has no level '0'; it has 1 .*those below `finest` too"):
        mw.anonymize(table, asked({"finest": 1, "levels": [0, 2]}))
    with pytest.raises(PolicyError, match="'finest' means nothing for a column with role sensitive"):
        Policy.load(asked({"role": "sensitive", "finest": 1}))


# --- disk ---------------------------------------------------------------------------------------------

Usage = namedtuple("Usage", "total used free")


def test_a_full_disk_is_noticed_before_any_work(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwright.engines.duckdb.engine import DuckDBEngine

    monkeypatch.setattr(
        "maskwright.pipeline.resource_checks.shutil.disk_usage", lambda _: Usage(10**6, 10**6 - 3000, 3000)
    )
    monkeypatch.setattr(DuckDBEngine, "open", lambda *_: pytest.fail("the table was opened"))
    with pytest.raises(
        DestinationError, match=r"has 3 kB free, and about .* kB are needed: .* for the release"
    ):
        mw.anonymize(table, asked({}), tmp_path / "r")
    assert not (tmp_path / "r").exists()
    assert not [p for p in tmp_path.iterdir() if "maskwright" in p.name]


def test_a_packed_table_is_as_long_as_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "p.csv.gz"
    text = b"age,sex\n" + b"30,m\n" * 20_000
    free = 60_000  # the packed file would fit a hundred times, its text does not
    monkeypatch.setattr(
        "maskwright.pipeline.resource_checks.shutil.disk_usage", lambda _: Usage(10**6, 10**6 - free, free)
    )
    policy = {"columns": {"sex": "quasi-identifier"}, "require": [{"model": "k-anonymity", "k": 2}]}
    source.write_bytes(gzip.compress(text))
    assert 10 * source.stat().st_size < free < len(text)
    with pytest.raises(DestinationError, match=r"about 220 kB are needed: 120 kB for the release and 100 kB"):
        mw.anonymize(source, policy, tmp_path / "r")
    source.write_bytes(
        gzip.compress(text[:1008]) + gzip.compress(b"")
    )  # as bgzip ends a file: it says nothing
    mw.anonymize(source, policy, tmp_path / "r")


def test_a_disk_that_is_really_small(tmp_path: Path) -> None:
    """A file system of 1 MB in memory; only where it may be mounted."""
    small = tmp_path / "small"
    small.mkdir()
    mount = shutil.which("mount") or "mount"
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        source = fine(400_000, tmp_path / "fine.parquet")
        with pytest.raises(DestinationError, match=r"has 1\.05 MB free"):
            mw.anonymize(source, policy(), small / "release")
        assert list(small.iterdir()) == []
    finally:
        subprocess.run([shutil.which("umount") or "umount", str(small)], check=True)


def test_rows_that_do_not_fit_in_memory_count(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwright.pipeline.resource_checks import DiskOutput, check_disk

    monkeypatch.setattr("maskwright.pipeline.resource_checks.shutil.disk_usage", lambda _: Usage(0, 0, 10**9))
    check_disk(DiskOutput(tmp_path, True, None, True), table, 3 * 10**9, 100_000_000)
    with pytest.raises(
        DestinationError, match=r"has 1 GB free, and about 1\.4 GB are needed: nothing for the release"
    ):
        check_disk(DiskOutput(tmp_path, False, None, True), object(), 10**9, 100_000_000)


# --- progress -----------------------------------------------------------------------------------------


def test_cancelling_stops_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked to stop while rows are counted: the query is not waited for.

    Only the watching thread hears of it, so that nothing but a query that was interrupted can end the run.
    """
    monkeypatch.setattr(database, "EVERY", 0.01)
    source = fine(3_000_000, tmp_path / "fine.parquet")
    steps: list[str] = []
    asked_at: list[float] = []

    def on_event(event: Event) -> None:
        if event.kind == "step":
            steps.append(event.text)

    def cancelled() -> bool:
        heard = "summarising" in steps and threading.current_thread().name == "maskwright-watcher"
        if heard:
            asked_at.append(time.process_time())
        return heard

    with pytest.raises(Cancelled):
        mw.anonymize(source, policy(), tmp_path / "r", memory="4GB", on_event=on_event, cancelled=cancelled)
    assert time.process_time() - asked_at[0] < 2.5  # of CPU: the machine may be busy
    assert steps[-1] == "summarising"
    assert not (tmp_path / "r").exists()


UNIQUE = """
SELECT 100000 + (range * 7919) % 20000 AS zip, range % 3 AS sex, range % 7 AS s,
       (100000 + (range * 7919) % 20000) // 1000 AS place, range // 2 AS pair
FROM range(20000)
"""
WRONG = """
SELECT count(*), count(*) FILTER (regexp_full_match(zip, '[0-9]{{3}}[*]+') AND left(zip, 3) != place::VARCHAR),
       count(DISTINCT zip)
FROM {}
"""


@pytest.mark.parametrize(("form", "how"), crossed(["parquet", "csv"], METHODS[:2]), ids=str)
def test_rows_keep_what_passes_through(tmp_path: Path, form: str, how: dict[str, Any]) -> None:
    """A coarse column with as many values as rows, and columns that belong to their row."""
    source = tmp_path / f"t.{form}"
    with duckdb.connect() as con:
        con.execute(f"COPY ({UNIQUE}) TO '{source}'")
    columns = {"zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}, "finest": 3},
               "sex": "quasi-identifier", "s": "sensitive", "place": {"role": "insensitive", "near_unique": "allow"},
               "pair": {"role": "insensitive", "near_unique": "allow"}}  # fmt: skip
    release = mw.anonymize(source, policy(columns) | how, tmp_path / "r")
    [name] = [f for f in release.tables.values() if "sensitive" not in f.name]
    read = f"read_csv('{name}', all_varchar = true)" if form == "csv" else f"'{name}'"
    with duckdb.connect() as con:
        [(rows_, wrong, labels)] = con.execute(WRONG.format(read)).fetchall()
    assert (rows_, wrong) == (20_000, 0)
    assert labels >= 20
