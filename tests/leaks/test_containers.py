"""What files and tables carry besides their rows: nothing that is not published, in any container and recoding."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import maskwright as mw
from maskwright.engines.sql import passing
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from tests.amounts import crossed
from tests.leaks.tables import RECODINGS

MARK = "Zq9"  # begins everything that is not published; chance does not write it
TOWNS = ["north", "south"]


def secretive() -> pd.DataFrame:
    """Forty people, and two who are suppressed with all that they alone have; everything else secret is dropped."""
    rows = [[f"{MARK}name{i}", TOWNS[i % 2], 20 + i % 4, ["flu", "cough", "ulcer"][i // 2 % 3], "AB"[i // 3 % 2]]
            for i in range(40)]  # fmt: skip
    rows += [[f"{MARK}gone{i}", f"{MARK}hamlet", 93, f"{MARK}plague", f"{MARK}ward"] for i in range(2)]
    frame = pd.DataFrame(rows, columns=["name", "town", "age", "disease", "ward"])
    frame[f"{MARK}column"] = [f"{MARK}note{i}" for i in range(42)]
    return frame


def policy(recoding: str, passes: bool, form: str | None = None) -> mw.Policy:
    columns: dict[str, Any] = {
        "name": "identifier",
        "town": {"role": "quasi-identifier", "hierarchy": "suppress", "levels": [0]},
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}},
        "disease": "sensitive",
    }
    if passes:
        columns["ward"] = {"role": "insensitive", "near_unique": "allow"}
    made: dict[str, Any] = {
        "version": 1, "columns": columns, "require": [{"model": "k-anonymity", "k": 4}],
        "method": {"name": "optimal-lattice", "suppression": "10%"}, "recoding": RECODINGS[recoding],
    }  # fmt: skip
    return mw.Policy.load(made | ({"output": {"format": form}} if form else {}))


def handed_in(kind: str) -> Any:
    """The table in the most talkative form of its kind: categories, an index, attributes, metadata, slices."""
    frame = secretive()
    if kind == "pandas":
        frame.index = pd.Index([f"{MARK}index{i}" for i in range(42)], name=f"{MARK}rows")
        frame.attrs = {"source": f"{MARK}clinic"}
        for name in ("town", "disease", "ward"):
            frame[name] = pd.Categorical(frame[name], categories=[*sorted(set(frame[name])), f"{MARK}unused"])
        return frame
    if kind == "polars":
        made = pl.from_pandas(frame)
        enum = pl.Enum([*sorted(set(frame["disease"])), f"{MARK}unused"])
        return made.with_columns(pl.col("town").cast(pl.Categorical), pl.col("disease").cast(enum))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    disease = table.column("disease").dictionary_encode()
    table = table.set_column(table.schema.get_field_index("disease"), "disease", disease)
    table = table.replace_schema_metadata({b"source": f"{MARK}clinic".encode()})
    if kind == "pyarrow":
        return table.slice(0, 42)
    return duckdb.connect().from_arrow(table)


def carried(table: Any, kind: str) -> bytes:
    """All bytes that go along when the table is passed on, uncompressed, with its schema and metadata."""
    if kind == "pandas":
        return pickle.dumps(table) + str(table.attrs).encode() + str(table.index).encode()
    if kind == "duckdb":
        database = [str(table.query("t", "SELECT * FROM duckdb_tables()").fetchall())]
        database += [str(table.query("t", "SELECT * FROM duckdb_views() WHERE NOT internal").fetchall())]
        return ("\n".join(database) + str(table.fetchall())).encode()
    arrow = table.to_arrow() if kind == "polars" else table
    out = io.BytesIO()
    with pa.ipc.new_stream(out, arrow.schema) as writer:
        writer.write_table(arrow)
    return out.getvalue() + str(arrow.schema.metadata).encode() + str(table).encode()


@pytest.mark.parametrize(("kind", "recoding"), crossed(["pandas", "polars", "pyarrow", "duckdb"], RECODINGS))
def test_tables_that_are_handed_back(kind: str, recoding: str) -> None:
    for passes in (False, True):
        source = handed_in(kind)
        release = publish_release(Job(source, policy(recoding, passes), attacks=()))
        assert release.grouping.dropped_rows == 2, "the test must drop somebody"
        for name, table in release.tables.items():
            content = carried(table, kind)
            assert MARK.encode() not in content, name
            assert b"flu" in content or b"north" in content, "the bytes must be readable"


def test_the_markers_would_be_seen() -> None:
    """The same look at what was handed in finds them, for every kind."""
    for kind in ("pandas", "polars", "pyarrow"):
        assert MARK.encode() in carried(handed_in(kind), kind)


@pytest.mark.parametrize(("recoding", "passes"), crossed(RECODINGS, [False, True]))
def test_parquet_files(recoding: str, passes: bool, tmp_path: Path) -> None:
    secretive().to_parquet(tmp_path / "t.parquet")
    publish_release(Job(tmp_path / "t.parquet", policy(recoding, passes, "parquet"), tmp_path / "r", attacks=(),
            keep_private="none"))  # fmt: skip
    files = sorted((tmp_path / "r" / "public").glob("*.parquet"))
    assert len(files) == (2 if recoding.startswith("bucketize") else 1)
    for path in files:
        content = path.read_bytes()
        assert MARK.encode() not in content
        file = pq.ParquetFile(path)
        meta = file.metadata
        assert meta.metadata is None, "no key-value metadata"
        assert meta.created_by.startswith("DuckDB")
        assert meta.num_row_groups == 1, "rows are cut after a fixed number, not by what they hold"
        shown = file.read()
        names = [c for c in shown.column_names if pa.types.is_string(shown.schema.field(c).type)]
        coded = pq.read_table(path, read_dictionary=names)
        for c, name in enumerate(shown.column_names):
            values = [v for v in shown.column(name).to_pylist() if v is not None]
            column = meta.row_group(0).column(c)
            statistics = column.statistics
            if statistics is not None:
                assert statistics.null_count in (None, shown.column(name).null_count)
                if statistics.has_min_max:
                    assert (statistics.min, statistics.max) == (min(values), max(values))
                if statistics.has_distinct_count:
                    assert statistics.distinct_count == len(set(values))
            if name in names:  # the dictionary page: every entry is the value of some row
                for chunk in coded.column(name).chunks:
                    assert set(chunk.dictionary.to_pylist()) <= set(values)


def excluded(path: Path, column: str, values: list[str]) -> int:
    """How many of these values the column's Bloom filter says are not there. It has one."""
    query = "SELECT bloom_filter_offset FROM parquet_metadata(?) WHERE path_in_schema = ?"
    offsets = duckdb.execute(query, [str(path), column]).fetchall()
    assert offsets
    assert all(offset is not None for (offset,) in offsets), "without a filter nothing is excluded"
    probe = f"SELECT bool_and(bloom_filter_excludes) FROM parquet_bloom_probe(?, '{column}', ?)"  # noqa: S608
    return sum(duckdb.execute(probe, [str(path), value]).fetchall() == [(True,)] for value in values)


@pytest.mark.parametrize("column", ["disease", "ward"])
def test_a_bloom_filter_knows_published_values_only(
    column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for values of suppressed people, the filters of the file answer as for values that never were.

    Enumerations are written without a filter; here no column has so few texts that it becomes one.
    """
    monkeypatch.setattr(passing, "MEMBERS", 1)
    frame = pd.concat([secretive()] * 30, ignore_index=True)
    frame["name"] = [f"{name} {i}" for i, name in enumerate(frame["name"])]
    gone, never = [f"{MARK}{i}" for i in range(60)], [f"never{i}" for i in range(60)]
    suppressed = frame["town"].str.startswith(MARK)
    for name in ("town", column):
        frame.loc[suppressed, name] = gone
    frame.to_parquet(tmp_path / "t.parquet")
    made = policy("generalise", True, "parquet")
    publish_release(Job(tmp_path / "t.parquet", made, tmp_path / "r", attacks=(), keep_private="none"))
    path = tmp_path / "r" / "public" / "data.parquet"
    assert excluded(path, column, never) >= 50, "the filter must tell what never was"
    assert excluded(path, column, gone) >= excluded(path, column, never) - 8
    assert excluded(path, column, sorted(set(frame.loc[~suppressed, column]))) == 0
    # with the suppressed people in it, the file of the same writer knows them
    duckdb.from_df(frame[[column]]).write_parquet(str(tmp_path / "all.parquet"), compression="zstd")
    assert excluded(tmp_path / "all.parquet", column, never) >= 50
    assert excluded(tmp_path / "all.parquet", column, gone) == 0


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_times_and_modes(form: str, tmp_path: Path) -> None:
    """All of public/ has one time in whole seconds: how long a step took is not told. private/ is the owner's alone."""
    secretive().to_csv(tmp_path / "t.csv", index=False)
    publish_release(Job(tmp_path / "t.csv", policy("generalise", True, form), tmp_path / "r", attacks=()))
    public = [tmp_path / "r" / "public", *(tmp_path / "r" / "public").rglob("*")]
    assert len(public) >= 5
    [time] = {p.stat().st_mtime_ns for p in public}
    assert time % 10**9 == 0
    assert {p.stat().st_uid for p in public} == {tmp_path.stat().st_uid}
    private = [tmp_path / "r" / "private", *(tmp_path / "r" / "private").rglob("*")]
    assert {oct(p.stat().st_mode & 0o077) for p in private} == {"0o0"}


def test_files_do_not_depend_on_the_day(tmp_path: Path) -> None:
    """Two seeded runs give the same bytes in public/, whenever they are made: there is no date or host inside."""
    secretive().to_csv(tmp_path / "t.csv", index=False)
    for form in ("csv", "parquet"):
        contents = []
        for place in ("a", "b"):
            destination = tmp_path / place / "r"
            destination.parent.mkdir(exist_ok=True)
            job = Job(tmp_path / "t.csv", policy("permute", True, form), destination, True, 1, attacks=(),
                      keep_private="none")  # fmt: skip
            publish_release(job)
            contents.append({p.name: p.read_bytes() for p in sorted((destination / "public").iterdir())})
        assert contents[0] == contents[1]


def test_many_rows_are_cut_by_number(tmp_path: Path) -> None:
    """Row groups end after a fixed number of rows, whatever is in them."""
    rng = np.random.default_rng(0)
    n = 260_000
    pl.DataFrame({"town": rng.integers(0, 5, n), "disease": np.sort(rng.integers(0, 3, n))}).write_parquet(
        tmp_path / "t.parquet"
    )
    made = {"version": 1, "columns": {"town": "quasi-identifier", "disease": "sensitive"},
            "require": [{"model": "k-anonymity", "k": 5}], "method": {"name": "optimal-lattice"}}  # fmt: skip
    publish_release(
        Job(tmp_path / "t.parquet", mw.Policy.load(made), tmp_path / "r", attacks=(), keep_private="none")
    )
    meta = pq.ParquetFile(tmp_path / "r" / "public" / "data.parquet").metadata
    sizes = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
    assert sum(sizes) == n
    assert len(set(sizes[:-1])) == 1
    assert sizes[-1] <= sizes[0]
