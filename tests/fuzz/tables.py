"""Bad tables: CSV in every dialect and none, Parquet with every type and spoilt bytes."""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
import random
import struct
import uuid
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from maskwright.domain.hierarchy import Hierarchy
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Reading, SensitiveSpec, SummarySpec
from tests.fuzz.harness import Target
from tests.fuzz.mangle import TEXTS, spoil, value
from tests.patients import HEADER, patients
from tests.support import ADULT

ENCODINGS = ["utf-8"] * 8 + [
    "utf-8-sig",
    "latin-1",
    "cp1252",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "utf-7",
    "cp037",
]


@cache
def adult() -> list[list[str]]:
    with (ADULT / "adult.csv").open(encoding="utf-8") as file:
        return [next(csv.reader(file)) for _ in range(30)]


def csv_bytes(rng: random.Random) -> bytes:
    chance = rng.random()
    if chance < 0.5:
        rows = [HEADER, *patients(rng.choice((1, 2, 8, 40)))]
    elif chance < 0.7:
        rows = adult()[: rng.choice((2, 10, 30))]
    else:
        width = rng.choice((1, 1, 2, 3, 8))
        rows = [[value(rng) for _ in range(width)] for _ in range(rng.randint(1, 8))]
    rows = [list(row) for row in rows]
    for _ in range(rng.choice((0, 0, 1, 3))):
        row = rng.choice(rows)
        way = rng.randrange(6)
        if way == 0 and row:
            row[rng.randrange(len(row))] = value(rng)
        elif way == 1 and row:
            row.pop()
        elif way == 2:
            row.append(value(rng))
        elif way == 3:
            rows[0] = [rng.choice([*TEXTS, *HEADER]) for _ in rows[0]]
        elif way == 4:
            rows.insert(rng.randrange(len(rows)), [])
        else:
            row[:] = [" " + cell + "\t" for cell in row]
    text = io.StringIO()
    style: dict[str, Any] = {
        "delimiter": rng.choice([",", ",", ",", ";", "\t", "|", "é", " "]), "quotechar": rng.choice(['"', '"',
        "'"]),
        "lineterminator": rng.choice(["\n", "\n", "\r\n", "\r"]), "quoting": rng.choice([csv.QUOTE_MINIMAL,
        csv.QUOTE_ALL]),
    }  # fmt: skip
    csv.writer(text, **style).writerows(rows)
    data = text.getvalue().encode(rng.choice(ENCODINGS), "replace")
    if rng.random() < 0.5:
        data = spoil(rng, data)
    if rng.random() < 0.03:
        data = gzip.compress(data)
        data = spoil(rng, data, 1) if rng.random() < 0.5 else data
    if rng.random() < 0.01:
        data += rng.choice(
            [b"," * 10_000, b'"' * 9_999, b"x" * 300_000, b"\n" * 5_000, b'"\n' * 3_000, b"a,b\r\n" * 3_000]
        )
    return data


def readings(rng: random.Random, format: Any = None) -> Reading:
    options: dict[str, Any] = {}
    if rng.random() < 0.3:
        options["encoding"] = rng.choice(
            [*ENCODINGS, "idna", "punycode", "rot13", "hex", "unicode_escape", "utf-8\x00", "?", ""]
        )
    if rng.random() < 0.15:
        options["delimiter"] = rng.choice(
            [",", ";", "é", '"', "\\", "\n", " ", "0", "\x00", "\ud800", "\U0001f3f3"]
        )
    if rng.random() < 0.15:
        options["quote"] = rng.choice(["'", ",", "", "é", "\\", "\x00", "\n", "`", "\u2028"])
    if rng.random() < 0.15:
        options["header"] = False
    if rng.random() < 0.2:
        options["missing"] = tuple(value(rng) for _ in range(3))
    return Reading(format=format, **options)


class _Tables(Target):
    """Opened, counted, sampled, profiled and summarised, as the pipeline does it."""

    cpu_s = 20.0

    def begin(self) -> None:
        self.engine: Engine = open_engine(threads=1, memory="500MB")
        self.fed = 0

    def end(self) -> None:
        self.engine.close()

    def read(self, path: Path, reading: Reading, whole: bool) -> None:
        self.fed += 1
        if self.fed % 100 == 0:  # tables stay in the engine that opened them
            self.engine.close()
            self.engine = open_engine(threads=1, memory="500MB")
        table = self.engine.open(path, reading)
        names = [c.name for c in table.columns][: 3 if whole else 1]
        if not whole:
            self.engine.domain(table, names[0])
            return
        assert self.engine.count(table) > 0
        self.engine.fingerprint(table)
        self.engine.sample(table, 3)
        domains = [self.engine.domain(table, name) for name in names]
        attributes = tuple(Hierarchy.of(n, d.values, []) for n, d in zip(names[:2], domains, strict=False))
        sensitive = tuple(SensitiveSpec(n, d.values) for n, d in zip(names[2:], domains[2:], strict=True))
        summary = self.engine.summarise(table, SummarySpec(attributes, sensitive))
        assert summary.n_rows == self.engine.count(table), "rows were lost or added"


class CsvFiles(_Tables):
    name = "csv"

    def make(self, rng: random.Random) -> tuple[bytes, Reading, bool]:
        return csv_bytes(rng), readings(rng, rng.choice([None, None, None, "csv"])), rng.random() < 0.2

    def feed(self, given: tuple[bytes, Reading, bool]) -> None:
        path = self.folder / "table.csv"
        path.write_bytes(given[0])
        self.read(path, *given[1:])


TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [1, -128, None]),
    "int64": (pa.int64(), [2**63 - 1, -(2**63), None]),
    "uint64": (pa.uint64(), [2**64 - 1, 0, None]),
    "float": (pa.float32(), [float("nan"), float("inf"), -0.0]),
    "double": (pa.float64(), [float("-inf"), 1e308, 5e-324]),
    "half": (pa.float16(), [1.5, float("nan"), None]),
    "text": (pa.string(), ["a", "", None]),
    "large": (pa.large_string(), ["é\n", '"', "\x00"]),
    "blob": (pa.binary(), [b"\x00\xff", b"", None]),
    "fixed": (pa.binary(3), [b"abc", b"\x00\x00\x00", None]),
    "bool": (pa.bool_(), [True, False, None]),
    "date": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
    "time": (pa.time64("us"), [datetime.time(23, 59, 59), None, datetime.time(0)]),
    "stamp": (pa.timestamp("ns"), [datetime.datetime(2024, 1, 31), None, datetime.datetime(1970, 1, 1)]),
    "zone": (pa.timestamp("us", "Asia/Tokyo"), [datetime.datetime(2024, 1, 31, tzinfo=datetime.UTC), None,
    None]),
    "decimal": (pa.decimal128(38, 10), [decimal.Decimal("1.5"), decimal.Decimal("-0.0000000001"), None]),
    "wide": (pa.decimal256(60, 2), [decimal.Decimal("1.25"), None, None]),
    "list": (pa.list_(pa.int32()), [[1, None], [], None]),
    "struct": (pa.struct([("x", pa.int32()), ("y", pa.string())]), [{"x": 1, "y": "a"}, None, {"x": None,
    "y": None}]),
    "map": (pa.map_(pa.string(), pa.int32()), [[("a", 1)], [], None]),
    "deep": (pa.list_(pa.list_(pa.struct([("z", pa.list_(pa.string()))]))), [[[{"z": ["a"]}]], None, []]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None]),
    "null": (pa.null(), [None, None, None]),
    "uuid": (pa.uuid(), [uuid.UUID(int=1).bytes, uuid.UUID(int=2**128 - 1).bytes, None]),
    "json": (pa.json_(), ['{"a": 1}', "[", None]),
}  # fmt: skip


@cache
def parquet_seed(number: int) -> bytes:
    """Some of the types, in some of the ways to write them down."""
    rng = random.Random(number)  # noqa: S311
    names = rng.sample(list(TYPES), rng.randint(1, 4))
    times = rng.choice((1, 1, 5, 50))
    arrays = []
    for name in names:
        kind, values = TYPES[name]
        if name == "half":
            import numpy as np

            values = [None if v is None else np.float16(v) for v in values]
        arrays.append(pa.array(values * times, kind))
    labels = [rng.choice([n, value(rng)]) if rng.random() < 0.3 else n for n in names]
    table = pa.Table.from_arrays(arrays, labels)
    if rng.random() < 0.1:
        table = table.slice(0, 0)
    out = io.BytesIO()
    options: dict[str, Any] = {
        "compression": rng.choice(["snappy", "none", "zstd", "gzip", "lz4"]), "row_group_size": rng.choice((1,
        2, 1000)),
        "data_page_version": rng.choice(("1.0", "2.0")), "use_dictionary": rng.random() < 0.5,
        "write_statistics": rng.random() < 0.7, "write_page_index": rng.random() < 0.2,
        "write_page_checksum": rng.random() < 0.2,
    }  # fmt: skip
    try:
        parquet.write_table(table, out, **options)
    except (pa.ArrowException, ValueError, TypeError):
        return parquet_seed(number + 1_000)
    return out.getvalue()


class ParquetFiles(_Tables):
    name = "parquet"

    def make(self, rng: random.Random) -> tuple[bytes, Reading, bool]:
        data = parquet_seed(rng.randrange(400))
        way = rng.randrange(10)
        if way == 0:
            pass
        elif way == 1:
            data = data[: rng.randrange(len(data))]
        elif way == 2:
            size = rng.choice((0, 1, len(data), 2**31 - 1, 2**32 - 1, rng.randrange(2**16)))
            data = data[:-8] + struct.pack("<I", size) + b"PAR1"
        elif way <= 5:  # the footer says what there is, and how large
            begin = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
            footer = spoil(
                rng,
                data[begin:-8],
                4,
                [b"\xff\xff\xff\xff\x0f", b"\x80" * 9 + b"\x01", b"\xfe\xff\xff\xff\x0f", b"\x00"],
            )
            if rng.random() < 0.8:
                footer = footer[: len(data) - 8 - begin].ljust(len(data) - 8 - begin, b"\x00")
            data = data[:begin] + footer + struct.pack("<I", len(footer)) + b"PAR1"
        elif way <= 8:  # the pages
            end = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
            pages = spoil(rng, data[4:end], 4)[: end - 4].ljust(end - 4, b"\x00")
            data = data[:4] + pages + data[end:]
        else:
            data = spoil(rng, data)
        return data, readings(rng, rng.choice([None, None, "parquet", "csv"])), rng.random() < 0.2

    def feed(self, given: tuple[bytes, Reading, bool]) -> None:
        path = self.folder / "table.parquet"
        path.write_bytes(given[0])
        self.read(path, *given[1:])
