"""What the Spark engine does beyond giving the same results: values, frames, files, order, stopping."""

from __future__ import annotations

import csv
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import maskwright as mw
from maskwright.cli.commands import main
from maskwright.engines import open_engine
from maskwright.engines.base import Reading, SensitiveSpec, SummarySpec
from maskwright.engines.sql import table_queries
from maskwright.errors import HierarchyError, InputError, NotVerified
from maskwright.hierarchies.intervals import Intervals
from maskwright.identifiers.pseudonyms import Pseudonyms
from maskwright.runtime.events import Event
from maskwright.verification.verify import verify_folder
from tests.patients import HEADER, POLICY, patients, write_csv
from tests.spark import MARKS
from tests.spark.cluster import SMALL
from tests.spark.people import DISEASES, POLICIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS


def values() -> pa.Table:
    """What engines print differently, or might."""
    floats = [1.0, 1e20, -0.0, 0.1, 1e-5, 1.5e-7, 12345678.25, 1e15 + 0.5, float("nan"), float("inf"),
              -float("inf"), 0.00012345, 9.5e18, 1e100, None, 2.5e-300, -1e-4, 99.99]  # fmt: skip
    texts = ["a", " a ", "", "?", "\u00a0x\u2003", "007", "1.0", "e\u0301", "\t", "nan", "A", "a\nb", 'q"q', "\u3000",
             None, "x,y", "-9", "NULL"]  # fmt: skip
    n = len(floats)

    def filled(items: list[Any], kind: pa.DataType | None = None) -> pa.Array:
        return pa.array((items * n)[:n], kind)

    return pa.table({
        "double": floats,
        "finite": filled([1.5, float("nan"), 1.75]),  # NaN is not in the statistics of the file
        "float": filled([1.0, 1e20, 0.1, 1.5e-7, 16777216.0, 3.4e38, None], pa.float32()),
        "money": filled([Decimal("1.00"), Decimal("0.10"), Decimal("100.00"), None], pa.decimal128(10, 2)),
        "whole": filled([Decimal("100"), Decimal("0"), None], pa.decimal128(10, 0)),
        "tiny": filled([Decimal("0.000000001"), Decimal("10")], pa.decimal128(20, 9)),
        "day": filled([date(2024, 1, 31), date(1, 1, 1), date(9999, 12, 31), None]),
        "local": filled([datetime(2024, 1, 31, 12), datetime(1900, 1, 1, 0, 0, 0, 500000), None], pa.timestamp("us")),
        "instant": filled([datetime(2024, 7, 31, 12, tzinfo=UTC), None], pa.timestamp("us", tz="UTC")),
        "flag": filled([True, False, None]),
        "number": filled([1, -5, 2**62, None, 0]),
        "text": texts,
    })  # fmt: skip


def test_values_read_alike(spark: SparkSession, tmp_path: Path) -> None:
    """Every value has the same text and pseudonym, the same are missing, and combinations have the same codes."""
    path = tmp_path / "a [b] {c}*" / "values.parquet"  # a pattern for Spark, if it were taken as one
    path.parent.mkdir()
    parquet.write_table(values(), path)
    reading = Reading(missing=("?", "-9", "99.99", "1.5e-07"))
    found, domains, codes, hidden = [], [], [], []
    pseudonyms = {"text": Pseudonyms(b"key", "test", "text"), "double": Pseudonyms(b"key", "test", "double")}
    for name in ("duckdb", "spark"):
        engine = open_engine(name)
        table = engine.open(path, reading)
        rows = engine.sample(table, 100)
        found.append(Counter(tuple(sorted(row.items())) for row in rows))
        domains.append({c.name: engine.domain(table, c.name) for c in table.columns})
        wanted = tuple(SensitiveSpec(n, d.values) for n, d in domains[-1].items())
        joint = engine.summarise(table, SummarySpec((), wanted)).joint
        assert joint is not None
        codes.append(joint.values)
        hidden.append(Counter(map(str, engine.sample(engine.pseudonymise(table, pseudonyms), 100))))
        engine.close()
    assert hidden[0] == hidden[1] and not hidden[0].keys() & set(map(str, map(dict, found[0])))
    assert domains[0] == domains[1] and np.array_equal(codes[0], codes[1]) and codes[0].shape == (12, 18)
    assert found[0] == found[1] and found[0].total() == values().num_rows
    texts = {row["double"] for row in map(dict, found[1])}
    assert {"1", "1e+20", "0", "1e-05", "1000000000000000.5", "inf", "-inf", None} <= texts
    assert not texts & {"nan", "NaN", "99.99", "1.5e-07"}


def test_combinations_are_estimated_alike(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every combination, where the table is small; else a sample, which is a little off. Nulls are values, too."""
    n = 12_000
    columns = {
        "a": [i % 100 if i % 7 else None for i in range(n)],
        "b": [i // 100 % 100 if i % 5 else None for i in range(n)],
        "s": [f"s{i % 3}" for i in range(n)],
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    combinations = [set(zip(*columns.values(), strict=True))]
    coarse = [[x if x is None else x // 10 for x in columns[c]] for c in "ab"]
    combinations.append(set(zip(coarse[0], columns["b"], columns["s"], strict=True)))
    combinations.append(set(zip(*coarse, columns["s"], strict=True)))
    exact = [len(found) for found in combinations]
    values = [str(x) for x in range(100)]
    hierarchies = [Intervals(intervals=[10]).build(name, values, tmp_path, ()) for name in "ab"]
    spec = SummarySpec(hierarchies, (SensitiveSpec("s", ("s0", "s1", "s2")),))
    for name in ("duckdb", "spark"):
        engine = open_engine(name)
        table = engine.open(tmp_path / "t.parquet", Reading())
        choices = [{}, {"a": 1}, {"a": 1, "b": 1}]
        assert engine.combinations(table, spec, choices) == exact
        with monkeypatch.context() as patch:
            patch.setattr(table_queries, "SAMPLE", n // 4)
            found = engine.combinations(table, spec, choices)
        assert found != exact and all(abs(f - e) < 8 * e**0.5 for f, e in zip(found, exact, strict=True))
        engine.close()


def test_a_value_that_the_hierarchy_does_not_know_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """By whichever pass meets it first."""
    parquet.write_table(pa.table({"a": [5, 15, 25, 35, None]}), tmp_path / "t.parquet")
    known = Intervals(intervals=[10]).build("a", ["5", "15"], tmp_path, ())
    messages = []
    for name in ("duckdb", "spark"):
        engine = open_engine(name)
        table = engine.open(tmp_path / "t.parquet", Reading())
        with pytest.raises(HierarchyError) as counting:
            engine.summarise(table, SummarySpec((known,)))
        with pytest.raises(HierarchyError) as coarsening:
            engine.coarsen(table, [known.cut_at(1)])
        messages += [str(counting.value), str(coarsening.value)]
        engine.close()
    assert (
        set(messages) == {messages[0]}
        and "column 'a': its hierarchy does not know '25', '35'; " in messages[0]
    )


def test_csv_in_and_out(spark: SparkSession, tmp_path: Path) -> None:
    """Quotes, line ends and commas in values; blanks around them; a file of another encoding."""
    awkward = [[*row[:4], DISEASES[i // 2 % 4], f" {row[5]} "] for i, row in enumerate(patients(48))]
    source = tmp_path / "patients.csv"
    with source.open("w", newline="", encoding="cp1252") as file:
        csv.writer(file, delimiter=";", lineterminator="\r\n").writerows([HEADER, *awkward])
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY + "input: {encoding: cp1252}\n", encoding="utf-8")
    contents = []
    for engine in ("duckdb", "spark"):
        mw.anonymize(source, policy, tmp_path / engine, engine=engine, seed=1)
        with (tmp_path / engine / "public" / "data.csv").open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        contents.append((header, Counter(map(tuple, rows))))
    assert contents[0] == contents[1]
    assert any('the "English" one' in row and len(row) == 5 for row in contents[1][1])
    assert {p.name for p in (tmp_path / "spark" / "public").iterdir()} == {
        "data.csv", "data-card.html", "data-dictionary.json", "manifest.json"
    }  # fmt: skip
    assert verify_folder(tmp_path / "spark").ok


def test_a_csv_line_of_the_wrong_length_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "p.csv", [*patients(20), ["only", "two"]])
    with pytest.raises(InputError, match="line that cannot be read"):
        mw.anonymize(source, _policy(tmp_path), tmp_path / "out", engine="spark")
    assert not (tmp_path / "out").exists()


def _policy(folder: Path) -> Path:
    path = folder / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


def test_a_data_frame_gives_a_data_frame(spark: SparkSession, source: Path) -> None:
    """Spark by itself, in the caller's session, whose settings and views are left as they were."""
    frame = spark.read.parquet(f"file://{source}").withMetadata("ward", {"comment": "secret"})
    frame = frame.selectExpr("*", "MAP('note', note) AS notes")  # which cannot be hashed, nor published
    before = (dict(spark.conf.getAll), spark.catalog.listTables())
    release = mw.anonymize(frame, POLICIES["full-domain"], seed=5)
    table = release.table
    assert "notes" not in table.columns
    assert (dict(spark.conf.getAll), spark.catalog.listTables()) == before
    assert type(table) is type(frame) and table.sparkSession is spark
    here = mw.anonymize(source, POLICIES["full-domain"], seed=5).table
    assert Counter(map(tuple, table.collect())) == Counter(here.fetchall())
    types = {name: kind for name, kind in table.dtypes if name in ("ward", "cost", "seen", "born", "age")}
    assert types == {
        "ward": "string",
        "cost": "decimal(10,2)",
        "seen": "timestamp_ntz",
        "born": "date",
        "age": "string",
    }
    assert not any(field.metadata for field in table.schema.fields)


def test_a_table_that_is_handed_over_is_the_one_that_was_counted(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """It is stored, and stays so without the engine: nothing is made anew of a source that is another one by then."""
    path = tmp_path / "people.parquet"
    shutil.copy(source, path)
    release = mw.anonymize(path, POLICIES["full-domain"], engine="spark", seed=5)
    expected = mw.anonymize(source, POLICIES["full-domain"], seed=5).table.fetchall()
    path.unlink()
    table = release.table
    assert Counter(map(tuple, table.collect())) == Counter(expected)
    del release
    gc.collect()
    assert Counter(map(tuple, table.collect())) == Counter(expected)


def test_files_do_not_tell_how_the_source_was_stored(
    spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same files with the same rows in the same order, however they were distributed; also where choices are drawn.

    (Not the same bytes: footers list encodings in an order that depends on the Java process.)
    """
    frame = spark.read.parquet(f"file://{source}")
    monkeypatch.setattr("maskwright.engines.spark.published_rows.ROWS_PER_FILE", 70)
    found = []
    for parts in (1, 5):
        target = tmp_path / str(parts)
        mw.anonymize(frame.repartition(parts), POLICIES["permute-passed"], target, seed=5)
        files = (target / "public" / "data.parquet").iterdir()
        found.append({file.name: parquet.read_table(file).to_pylist() for file in files})
    assert found[0] == found[1]
    folder = tmp_path / "5" / "public" / "data.parquet"
    names = sorted(p.name for p in folder.iterdir())
    assert names == [f"part-{i:05}.parquet" for i in range(4)]
    for part in folder.iterdir():
        metadata = parquet.read_metadata(part).metadata or {}
        assert b"secret" not in b"".join(metadata.values())
        assert set(metadata) <= {b"org.apache.spark.version", b"org.apache.spark.sql.parquet.row.metadata"}
    assert verify_folder(tmp_path / "5").ok  # with DuckDB, which reads the folder as one table
    (folder / "part-00000.parquet").rename(folder / "part-99999.parquet")
    assert not verify_folder(tmp_path / "5").ok
    (folder / "part-99999.parquet").unlink()
    assert not verify_folder(tmp_path / "5").ok


def test_a_written_table_that_is_wrong_is_not_published(
    spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes on disk are counted on the cluster, whatever wrote them."""
    from maskwright.engines.spark import published_rows

    write = published_rows.write_parquet
    monkeypatch.setattr(
        published_rows, "write_parquet", lambda frame, names, path: write(frame.limit(200), names, path)
    )
    with pytest.raises(NotVerified):
        mw.anonymize(source, POLICIES["mondrian"], tmp_path / "out", engine="spark")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["summarising", "writing"])
def test_interrupted_it_stops_and_leaves_nothing(
    step: str, spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    flag, folder = str(tmp_path / "slow"), tmp_path / "folder"
    folder.mkdir()

    @F.udf("string", useArrow=False)
    def slow(value: str) -> str:
        if os.path.exists(flag):  # noqa: PTH110 - this runs on a worker
            time.sleep(0.5)
        return value

    frame = spark.read.parquet(f"file://{source}")
    frame = frame.withColumn("zip", slow("zip"))
    steps = []

    def on_event(event: Event) -> None:
        steps.append(event.text)
        if event.text == step:
            Path(flag).touch()
            threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()
            threading.Timer(6, Path(flag).unlink, (True,)).start()  # Spark lets tasks end that have begun

    with pytest.raises(KeyboardInterrupt):
        mw.anonymize(frame, POLICIES["mondrian-passed"], folder / "out", on_event=on_event)
    assert steps[-1] == step
    time.sleep(1)
    assert list(folder.iterdir()) == []
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_the_command(master: str, source: Path, tmp_path: Path) -> None:
    """As a newcomer types it: in a process of its own."""
    conf = tmp_path / "conf"
    conf.mkdir()
    settings = SMALL | {"spark.executor.memory": "600m", "spark.executor.cores": "1", "spark.cores.max": "2"}
    (conf / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in settings.items()))
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICIES["mondrian"]))
    command = [sys.executable, "-m", "maskwright.cli", "anonymize", str(source), "-p", str(policy), "-o",
               str(tmp_path / "out"), "--engine", "spark", "--master", master, "--memory", "1GB"]  # fmt: skip
    environment = os.environ | {"SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}
    (here := tmp_path / "here").mkdir()
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, cwd=here)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if " WARN " in line] == []  # Spark's log
    assert "k-anonymity" in done.stdout
    assert list(here.iterdir()) == []
    assert main(["verify", str(tmp_path / "out")]) == 0
