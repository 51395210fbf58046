"""Frames of every kind with columns that nobody expects, and damaged files, through every public way in."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import random
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
from pyarrow import parquet

import maskwright as mw
from maskwright.auditing.table_check import GUIDANCE
from maskwright.errors import MaskwrightError
from maskwright.suggest.advice import Answers
from maskwright.verification.verify import verify_folder
from tests.fuzz.harness import Target
from tests.fuzz.mangle import spoil
from tests.fuzz.tables import TYPES
from tests.patients import HEADER, patients

ROWS = 12
ODD = [
    None,
    pd.NA,
    pd.NaT,
    float("nan"),
    float("inf"),
    -0.0,
    "",
    " ",
    "a",
    "a\ud800",
    "\udfff",
    "\x00",
    1,
    True,
    10**40,
    -(2**63),
    b"\xff",
    [1],
    ["a\ud800"],
    {"a": 1},
    {1},
    (1, 2),
    object,
    1j,
    decimal.Decimal("NaN"),
    decimal.Decimal("1e50"),
    datetime.date.min,
    datetime.datetime.max,
    datetime.time(1),
    datetime.timedelta(days=1),
    uuid.UUID(int=1),
    np.int8(1),
    np.float16(1.5),
    np.array([1]),
    np.datetime64("NaT"),
]
SIMPLE = [
    "a",
    1,
    1.5,
    True,
    datetime.date(2020, 1, 1),
    datetime.timedelta(seconds=1),
    datetime.time(1),
    b"\xff",
    None,
]
POLARS = [
    pl.Int8,
    pl.Int128,
    pl.Float32,
    pl.String,
    pl.Binary,
    pl.Date,
    pl.Datetime("ns"),
    pl.Duration("ms"),
    pl.Duration("ns"),
    pl.Time,
    pl.Boolean,
    pl.Categorical,
    pl.Object,
    pl.List(pl.Int8),
    pl.Decimal(30, 2),
    pl.Null,
    pl.Enum(["a", "1", "b"]),
    pl.Datetime("ms", "Asia/Tokyo"),
    pl.Struct({"a": pl.String}),
    pl.Array(pl.Int8, 2),
    pl.UInt64,
]
SQL = [
    "uuid()",
    "INTERVAL 1 DAY",
    "error('no')",
    "1::UHUGEINT",
    "'a'::BLOB",
    "[1, 2]",
    "{'a': 1}",
    "NULL",
    "'x'::ENUM('x', 'y')",
    "'101'::BIT",
    "TIMETZ '01:00:00+02'",
    "MAP {1: 2}",
    "'1'::JSON",
    "1.5::DECIMAL(38, 10)",
    "DATE '-infinity'",
    "'infinity'::TIMESTAMP",
    "'NaN'::DOUBLE",
    "CASE WHEN random() < 2 THEN error('late') END",
    "chr(0)",
    "'\\xFF'::BLOB",
    "TIMESTAMP_NS '2024-01-31 12:00:00.123456789'",
    "union_value(a := 1)",
    "row_number() OVER () % 3",
]
ROLES = [
    {"role": "quasi-identifier", "hierarchy": "suppress"},
    {"role": "quasi-identifier", "hierarchy": {"intervals": [1, 10]}},
    {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    {"role": "quasi-identifier", "hierarchy": {"dates": ["month", "year"]}},
    {"role": "quasi-identifier", "hierarchy": {"groups": {"A": ["a", "1"], "B": ["true"]}}},
    "sensitive",
    "identifier",
    {"role": "insensitive", "near_unique": "allow"},
    {"role": "sensitive", "multivalued": True},
]


def people() -> dict[str, list[str]]:
    """The columns of a small table that can be published."""
    rows = patients(ROWS)
    return {name: [row[i] for row in rows] for i, name in enumerate(HEADER)}


def whole() -> pd.DataFrame:
    """The same with a column `x`, as a frame."""
    return pd.DataFrame(people() | {"x": ["a", "b"] * (ROWS // 2)})


def _pandas(rng: random.Random) -> Any:
    frame = pd.DataFrame(people())
    chosen = [rng.choice(ODD) for _ in range(rng.randint(1, 3))]
    frame["x"] = pd.Series([rng.choice(chosen) for _ in range(ROWS)], dtype=object)
    if rng.random() < 0.3:
        kind = rng.choice(["category", "string", "Int8", "timedelta64[ns]", "Float32", "complex128", "bool"])
        frame["x"] = frame["x"].astype(kind)
    if rng.random() < 0.1:
        frame.columns = pd.Index(
            [*HEADER[1:], rng.choice(["a\ud800", 1, None, "age", ("a", "b")]), "x"], dtype=object
        )
    return frame


EXTENSIONS: list[Callable[[], Any]] = [
    lambda: pd.period_range("2024-01", periods=ROWS, freq="M"),
    lambda: pd.interval_range(0, ROWS),
    lambda: pd.arrays.SparseArray([0, 1] * (ROWS // 2)),
    lambda: pd.Series([datetime.timedelta(1)] * ROWS, dtype=pd.ArrowDtype(pa.duration("s"))),
    lambda: pd.Series([b"x" * 16] * ROWS, dtype=pd.ArrowDtype(pa.uuid())),
    lambda: pd.Series([[1]] * ROWS, dtype=pd.ArrowDtype(pa.list_(pa.int8()))),
    lambda: pd.Series([{"a": 1}] * ROWS, dtype=pd.ArrowDtype(pa.struct([("a", pa.int8())]))),
    lambda: pd.date_range("2024-01-31", periods=ROWS, tz="Asia/Tokyo"),
    lambda: pd.Series(["a", None] * (ROWS // 2), dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
    lambda: pd.Categorical([1.5, None] * (ROWS // 2)),
    lambda: pd.Categorical(pd.interval_range(0, ROWS)),
    lambda: np.array([(1, 2)] * ROWS, dtype="i4,i4"),
    lambda: np.array([1.5] * ROWS, dtype=np.longdouble),
    lambda: np.array(["2024-01", "NaT"] * (ROWS // 2), dtype="M8[M]"),
]


def _extended(rng: random.Random) -> Any:
    """A pandas frame with a column of an unusual kind, or of an unusual shape."""
    frame = pd.DataFrame(people())
    frame["x"] = rng.choice(EXTENSIONS)()
    way = rng.randrange(8)
    if way == 0:
        frame.columns = pd.MultiIndex.from_tuples([("a", name) for name in frame.columns])
    elif way == 1:
        frame.index = pd.Index(["same"] * ROWS)
    elif way == 2:
        frame = frame.iloc[:0]
    elif way == 3:
        frame = frame[[]]
    elif way == 4:
        frame.attrs["secret"] = object()
    return frame


def _polars(rng: random.Random) -> Any:
    x = pl.Series("x", [rng.choice(SIMPLE) for _ in range(ROWS)], strict=False)
    if rng.random() < 0.8:
        x = pl.Series("x", [rng.choice(SIMPLE)] * ROWS, dtype=rng.choice(POLARS), strict=False)
    frame = pl.DataFrame(people()).with_columns(x)
    return frame.lazy() if rng.random() < 0.3 else frame


def _arrow(rng: random.Random) -> Any:
    kind, values = TYPES[rng.choice([name for name in TYPES if name != "half"])]
    x = pa.array(values * (ROWS // 3), kind)
    way = rng.randrange(12)
    if way == 0:
        x = x.dictionary_encode()
    elif way == 1:
        x = pa.RunEndEncodedArray.from_arrays([ROWS], x.slice(0, 1))
    elif way == 2:
        x = pa.Array.from_buffers(
            pa.string(),
            ROWS,
            [None, pa.py_buffer(np.arange(ROWS + 1, dtype=np.int32).tobytes()), pa.py_buffer(b"\xff" * ROWS)],
        )
    elif way == 3:
        x = pa.chunked_array([x.slice(0, 5), x.slice(5, 0), x.slice(5)])
    elif way == 4:
        x = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * (ROWS // 3), pa.int8()), ["a", None, "a"])
    elif way == 5:
        x = pa.array(["a", "b" * 30, None] * (ROWS // 3)).cast(pa.string_view())
    elif way == 6:
        x = pa.UnionArray.from_sparse(
            pa.array([0, 1] * (ROWS // 2), pa.int8()), [pa.array(range(ROWS)), pa.array(["a"] * ROWS)]
        )
    elif way == 7:
        x = pa.array([(1, 2, 3)] * ROWS, pa.month_day_nano_interval())
    table = pa.table(people() | {"x": x})
    if rng.random() < 0.1:
        table = rng.choice([table.slice(0, 0), table.select([]), table.rename_columns(["x"] * 7)])
    return rng.choice([table, table.to_batches()[0], table.to_reader(max_chunksize=5)])


class _Offers:
    """An object that offers an Arrow stream, and what goes wrong when it is asked for it."""

    def __init__(self, way: int) -> None:
        self.way = way

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        if self.way == 0:
            raise ValueError("nothing to give")
        if self.way == 1:
            return None
        table = pa.table(people() | {"x": ["a"] * ROWS})
        reader = pa.RecordBatchReader.from_batches(table.schema, self.parts(table))
        return reader.__arrow_c_stream__(requested_schema)

    def parts(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from table.slice(0, 5).to_batches()
        if self.way == 2:
            raise ValueError("the rest is gone")
        if self.way == 3:
            yield pa.record_batch({"other": [1]})
        yield from table.slice(5).to_batches()


def _stream(rng: random.Random) -> Any:
    """Streams that end early, are used up, or are none."""
    way = rng.randrange(8)
    if way <= 4:
        return _Offers(way)
    reader = pa.table(people() | {"x": ["a"] * ROWS}).to_reader()
    if way == 5:
        reader.read_all()
    elif way == 6:
        reader.close()
    else:
        return pa.RecordBatchReader.from_batches(reader.schema, _Offers(2).parts(reader.read_all()))
    return reader


def _duckdb(rng: random.Random) -> Any:
    table = pa.table(people())
    connection = duckdb.connect()
    connection.register("people", table)
    return connection.sql(f"SELECT *, {rng.choice(SQL)} AS x FROM people")  # noqa: S608


def _no_table(rng: random.Random) -> Any:
    return rng.choice(
        [
            None,
            3,
            [1, 2],
            b"x.csv",
            "a\x00b.csv",
            "a\ud800.csv",
            "",
            ".",
            "/dev/null",
            io.StringIO("a,b\n1,2\n"),
            iter([1]),
            {},
            pd.DataFrame,
            pd.Series([1]),
            pl.Series([1]),
            pa.array([1]),
            np.zeros((3, 3)),
            whole().groupby("age"),
            "x" * 5_000,
            "https://user:secret@example.org/t.csv",
            "~nobody/t.csv",
        ]
    )


MAKERS: list[Callable[[random.Random], Any]] = [
    _pandas,
    _pandas,
    _extended,
    _polars,
    _arrow,
    _duckdb,
    _stream,
    _no_table,
]


def made(rng: random.Random) -> tuple[str, Any]:
    """A frame with the name of its kind; one that its own library refuses to make is made anew."""
    while True:
        maker = rng.choice(MAKERS)
        try:
            return maker.__name__, maker(rng)
        except Exception:  # noqa: S112 - of that library, not ours
            continue


WAYS = 17  # of what is done with a frame, see `Frames.feed`


class Frames(Target):
    """Any frame through every function that takes a table, alone or beside a table that is in order."""

    name = "frames"
    cpu_s = 30.0

    def begin(self) -> None:
        self.recoder = mw.Recoder(mw.anonymize(whole(), self.policy("identifier")), check="report")

    @staticmethod
    def policy(role: Any) -> dict[str, Any]:
        columns = dict.fromkeys(HEADER, "identifier") | {
            "x": role,
            "disease": "sensitive",
            "ward": {"role": "insensitive", "near_unique": "allow"},
        }
        columns["age"] = {"role": "quasi-identifier", "hierarchy": "suppress"}
        return {
            "unit": "none",
            "columns": columns,
            "require": [{"model": "k-anonymity", "k": 2}],
            "method": {"name": "optimal-lattice"},
        }

    def make(self, rng: random.Random) -> tuple[int, int, Any]:
        return rng.randrange(2**32), rng.randrange(WAYS), rng.choice(ROLES)

    def feed(self, given: tuple[int, int, Any]) -> None:
        seed, way, role = given
        (_, frame), policy = made(random.Random(seed)), self.policy(role)  # noqa: S311 - a generator has no repr
        if way <= 1:
            mw.anonymize(frame, policy)
        elif way <= 4:
            self.published(frame, policy | {"output": {"format": ["csv", "parquet"][way % 2]}})
        elif way == 5:
            mw.audit(frame, ["age", "x"], ["disease"]).as_dict()
        elif way == 6:
            beside = ["original", "population", "sensitive_table"][seed % 3]
            mw.audit(whole(), ["age"], ["disease"], **{beside: frame}).as_dict()
        elif way == 7:
            mw.suggest_policy(frame)
        elif way == 8:
            mw.compare(frame, policy, grid={"k": [2]})
        elif way == 9:
            mw.minimal_nodes(frame, policy)
        elif way == 10:
            mw.plan_frontier(frame, policy)
        elif way == 11:
            mw.attack(mw.anonymize(frame, policy))
        elif way == 12:
            self.checked(frame, seed)
        elif way == 13:
            mw.check(frame, policy=policy, preset=sorted(GUIDANCE)[seed % 3], allow=["ward"])
        elif way == 14:
            mw.suggest_policy(frame, answers=Answers(needs=["detail", "same-labels", "guarantee"][seed % 3]))
        elif way == 15:
            mw.Recoder(mw.anonymize(frame, policy), check="report").fit(frame)
        else:
            self.recoder.transform(frame)

    def checked(self, frame: Any, seed: int) -> None:
        """Its answer tells no value of a column of names."""
        found = mw.check(frame, ["age", "x"], k=2, unit=[None, "none", "x", "name"][seed % 4])
        assert not re.search(r"P0\d\d", json.dumps(found.as_dict()) + str(found)), "a name was told"

    def published(self, frame: Any, policy: dict[str, Any]) -> None:
        """A folder that is verified and attacked; nothing is left of one that is refused."""
        out = self.folder / "release"
        shutil.rmtree(out, ignore_errors=True)
        try:
            mw.anonymize(frame, policy, out)
        except MaskwrightError:
            assert not list(self.folder.iterdir()), "something was left behind"
            raise
        assert verify_folder(out).ok
        mw.attack(out)


SUFFIXES = ["parquet"] * 4 + ["csv", "csv.gz", "xlsx", "dta", "sav", "zsav", "xpt", "por"]


@cache
def seed_file(suffix: str, options: str) -> bytes:
    """A table that is in order, as a file."""
    out, frame = io.BytesIO(), whole()
    if suffix == "parquet":
        parquet.write_table(pa.Table.from_pandas(frame), out, **json.loads(options))
    elif suffix.startswith("csv"):
        frame.to_csv(out, index=False, compression="gzip" if suffix == "csv.gz" else None)
    elif suffix == "xlsx":
        frame.to_excel(out, index=False)
    else:
        write = {"dta": "dta", "sav": "sav", "zsav": "sav", "xpt": "xport", "por": "por"}[suffix]
        more = {"compress": True} if suffix == "zsav" else {}
        with tempfile.NamedTemporaryFile(suffix=f".{suffix}") as file:
            getattr(pyreadstat, f"write_{write}")(frame, file.name, **more)
            return Path(file.name).read_bytes()
    return out.getvalue()


class Damaged(Target):
    """Files and release folders in which bytes were changed, read by whatever reads them."""

    name = "damaged"
    cpu_s = 30.0

    def begin(self) -> None:
        self.release = self.folder.parent / "release"
        mw.anonymize(
            whole(),
            Frames.policy("identifier") | {"output": {"format": "parquet"}},
            self.release,
        )

    def make(self, rng: random.Random) -> tuple[int, str, bytes, int]:
        options = rng.choice(
            [
                {},
                {"compression": "zstd"},
                {"use_dictionary": False, "compression": "none"},
                {"row_group_size": 5},
            ]
        )
        suffix = rng.choice(SUFFIXES)
        data = bytearray(seed_file(suffix, json.dumps(options)))
        for _ in range(rng.choice((1, 1, 2, 5))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.1:
            data = data[: rng.randrange(len(data))]
        return rng.randrange(11), suffix, bytes(data), rng.randrange(2**32)

    def feed(self, given: tuple[int, str, bytes, int]) -> None:
        way, suffix, data, seed = given
        path = self.folder / f"table.{suffix}"
        path.write_bytes(data)
        if way <= 2:
            mw.audit(path, ["age", "zip", "sex"], ["disease"]).as_dict()
        elif way == 3:
            mw.anonymize(path, Frames.policy("identifier"))
        elif way == 4:
            mw.suggest_policy(path)
        elif way == 5:
            mw.compare(path, Frames.policy("identifier"), grid={"k": [2]})
        elif way == 6:
            mw.Recoder.from_release(self.release, check="report").transform(path)
        elif way == 7:
            mw.check(path, ["age", "zip"], preset="hipaa-safe-harbor").as_dict()
        elif way == 8:
            mw.audit(whole(), ["age"], ["disease"], original=path).as_dict()
        else:
            self.after_publication(random.Random(seed), way)  # noqa: S311

    def after_publication(self, rng: random.Random, way: int) -> None:
        """One file of a release is damaged; whoever reads it later refuses it, or finds that it is whole."""
        folder = self.folder / "release"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.release, folder)
        file: Path = rng.choice(sorted(p for p in folder.rglob("*") if p.is_file()))
        file.write_bytes(spoil(rng, file.read_bytes(), 2))
        if way == 9:
            verify_folder(folder)
        elif rng.random() < 0.4:
            mw.attack(folder)
        elif rng.random() < 0.3:
            mw.attack([folder, self.release])
        else:
            mw.Recoder.from_release(folder).transform(whole())
