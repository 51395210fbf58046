"""Frames of every kind with columns that nobody expects, and damaged files, through every public way in."""

from __future__ import annotations

import datetime
import decimal
import io
import random
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import parquet

import maskwright as mw
from maskwright.verification.verify import verify_folder
from tests.fuzz.harness import Target
from tests.fuzz.mangle import spoil, value
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
]
ROLES = [
    {"role": "quasi-identifier", "hierarchy": "suppress"},
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


def _polars(rng: random.Random) -> Any:
    x = pl.Series("x", [rng.choice(SIMPLE) for _ in range(ROWS)], strict=False)
    if rng.random() < 0.8:
        x = pl.Series("x", [rng.choice(SIMPLE)] * ROWS, dtype=rng.choice(POLARS), strict=False)
    frame = pl.DataFrame(people()).with_columns(x)
    return frame.lazy() if rng.random() < 0.3 else frame


def _arrow(rng: random.Random) -> Any:
    kind, values = TYPES[rng.choice([name for name in TYPES if name != "half"])]
    x = pa.array(values * (ROWS // 3), kind)
    way = rng.randrange(6)
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
    table = pa.table(people() | {"x": x})
    return rng.choice([table, table.to_batches()[0], table.to_reader()])


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
        ]
    )


MAKERS: list[Callable[[random.Random], Any]] = [_pandas, _polars, _arrow, _duckdb, _no_table]


def made(rng: random.Random) -> Any:
    """A frame; one that its own library refuses to make is made anew."""
    while True:
        try:
            return rng.choice(MAKERS)(rng)
        except Exception:  # noqa: S112 - of that library, not ours
            continue


class Frames(Target):
    """Any frame through `anonymize`, `audit`, `compare`, `suggest_policy`, and a `Recoder` of a release."""

    name = "frames"
    cpu_s = 30.0

    def begin(self) -> None:
        self.recoder = mw.Recoder(mw.anonymize(whole(), self.policy("identifier")), check="report")

    @staticmethod
    def policy(role: Any) -> dict[str, Any]:
        columns = dict.fromkeys(HEADER, "identifier") | {
            "x": role,
            "disease": "sensitive",
            "ward": "insensitive",
        }
        columns["age"] = {"role": "quasi-identifier", "hierarchy": "suppress"}
        return {
            "unit": "none",
            "columns": columns,
            "require": [{"model": "k-anonymity", "k": 2}],
            "method": {"name": "optimal-lattice"},
        }

    def make(self, rng: random.Random) -> tuple[int, int, Any]:
        return rng.randrange(2**32), rng.randrange(6), rng.choice(ROLES)

    def feed(self, given: tuple[int, int, Any]) -> None:
        seed, way, role = given
        frame, policy = made(random.Random(seed)), self.policy(role)  # noqa: S311 - a generator has no repr
        if way <= 1:
            mw.anonymize(frame, policy)
        elif way == 2:
            mw.audit(frame, ["age", "x"], ["disease"]).as_dict()
        elif way == 3:
            mw.suggest_policy(frame)
        elif way == 4:
            mw.compare(frame, policy, grid={"k": [2]})
        else:
            self.recoder.transform(frame)


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

    def make(self, rng: random.Random) -> tuple[int, bytes, int, float, str]:
        out = io.BytesIO()
        options = rng.choice(
            [
                {},
                {"compression": "zstd"},
                {"use_dictionary": False, "compression": "none"},
                {"row_group_size": 5},
            ]
        )
        parquet.write_table(pa.Table.from_pandas(whole()), out, **options)
        data = bytearray(out.getvalue())
        for _ in range(rng.choice((1, 1, 2, 5))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.1:
            data = data[: rng.randrange(len(data))]
        return rng.randrange(8), bytes(data), rng.randrange(2**32), rng.random(), value(rng)

    def feed(self, given: tuple[int, bytes, int, float, str]) -> None:
        way, data, seed, _, _ = given
        path = self.folder / "table.parquet"
        path.write_bytes(data)
        if way <= 3:
            mw.audit(path, ["age", "zip", "sex"], ["disease"]).as_dict()
        elif way == 4:
            mw.anonymize(path, Frames.policy("identifier"))
        elif way == 5:
            mw.suggest_policy(path)
        else:
            self.after_publication(random.Random(seed), way)  # noqa: S311

    def after_publication(self, rng: random.Random, way: int) -> None:
        """One file of a release is damaged; whoever reads it later refuses it, or finds that it is whole."""
        folder = self.folder / "release"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.release, folder)
        file: Path = rng.choice(sorted(p for p in folder.rglob("*") if p.is_file()))
        file.write_bytes(spoil(rng, file.read_bytes(), 2))
        if way == 6:
            verify_folder(folder)
        elif rng.random() < 0.5:
            mw.attack(folder)
        else:
            mw.Recoder.from_release(folder).transform(whole())
