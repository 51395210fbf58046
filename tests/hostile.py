"""Names and values that break programs which glue text into queries or pages, and a table full of them.

`CANARY` is a file that exists only if something of the table was run.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

CANARY = "canary.csv"
RUNS = f"COPY (SELECT 1) TO '{CANARY}'"

NAMES = [
    '"', "'", "`", "a\"b", "a'b", "a`b", "[a]", "a;b", "a\nb", "a\r\nb", "a\tb", "\\", "a\\", "\\n", "$1",
    "$a", "?", ":a", "%s",
    "%(x)s", "{}", "{0}", "{name}", "--", "a--b", "/*", "*/", "*", "**", "a.b", "a,b", "t.c0", "rowid",
    "file_row_number_",
    f'"; {RUNS}; --', f"'; {RUNS}; --", f"`; {RUNS}; --", f'x" FROM t; {RUNS}; SELECT "x', "t", "g", "id",
    "c0", "c1", "k0", "p0",
    "n", "listed0", "u", "i", "r", "v", "w0", "x", "q", "raw", "source_1", "parquet_1", "published_3",
    "chunk", "key", "blanks", "m0",
    "select", "from", "NULL", "true", "group", "order", "table", "level0", "label", "data", "missing",
    "sum(1)", "count(*)",
    "аge", "age", "ａge", "ﬁ", "fi", "é", "e\u0301x", "\u202eevil", "\ufeffbom", "🏳️‍🌈", "日本", "a" * 10_000,
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>', "<!--", "]]>", "&amp;", "javascript:alert(1)", "../../x", "con", "0",
    "-1", "1e9",
    "__proto__", "constructor", "toString", "[object Object]", "\x1b[31m", "\x7f", "a\u2028b", "#{7*7}",
    "{{7*7}}", "${7*7}", "%00",
]  # fmt: skip
VALUES = [n for n in NAMES if len(n) < 1000] + [
    "x" * 5_000,
    "\x1e\x1e",
    "a\x1fb",
    "''",
    '""',
    "\\'",
    "=1+1",
    "NaN",
    "inf",
    "1/0",
]
REFUSED = {
    "a NUL character": ["a", "b\0c"],
    "no name": ["a", " "],
    "more than case": ["Age", "aGE"],
    "twice": ["a", "a"],
}


def groups(size: int = 11) -> list[list[str]]:
    """The names in lists that can be columns of one table."""
    return [(NAMES[i : i + size] + NAMES[:size])[:size] for i in range(0, len(NAMES), size)]


Rows = list[tuple[str, ...]]
Source = Callable[[list[str], Rows, Path], Any]


def table(names: list[str], n: int = 24) -> Rows:
    """n rows of hostile values: the first column tells rows apart, the others repeat each value four times or more."""
    values = [v for v in VALUES if v.strip() == v]
    start = hash_of(names[0])
    return [
        (f"row {i}", *(values[(start + j * 7 + i % 2 * 3) % len(values)] for j in range(1, len(names))))
        for i in range(n)
    ]


def hash_of(text: str) -> int:
    return sum(map(ord, text))


def policy(names: list[str], recoding: str) -> dict[str, Any]:
    """The first column is an identifier, then two quasi-identifiers, a sensitive one, and insensitive ones."""
    known = {"role": "quasi-identifier", "hierarchy": "suppress"}
    rest = {name: {"role": "insensitive", "near_unique": "allow"} for name in names[4:]}
    return {
        "unit": "none",
        "columns": {names[0]: "identifier", names[1]: known, names[2]: known, names[3]: "sensitive", **rest},
        "require": [{"model": "k-anonymity", "k": 3}],
        "method": {"name": "optimal-lattice" if recoding == "generalise" else "mondrian"},
        "recoding": recoding,
        "output": {"formulas": "allow"},
    }


def as_csv(names: list[str], rows: Rows, folder: Path) -> Any:
    path = folder / "hostile.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([names, *rows])
    return path


def as_arrow(names: list[str], rows: Rows, folder: Path) -> Any:
    import pyarrow as pa

    return pa.Table.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], names)


def as_parquet(names: list[str], rows: Rows, folder: Path) -> Any:
    from pyarrow import parquet

    parquet.write_table(as_arrow(names, rows, folder), folder / "hostile.parquet")
    return folder / "hostile.parquet"


def as_pandas(names: list[str], rows: Rows, folder: Path) -> Any:
    import pandas as pd

    return pd.DataFrame(rows, columns=names)


def as_polars(names: list[str], rows: Rows, folder: Path) -> Any:
    import polars as pl

    return pl.DataFrame(rows, schema=names, orient="row")


SOURCES: dict[str, Source] = {
    "csv": as_csv,
    "parquet": as_parquet,
    "pyarrow": as_arrow,
    "pandas": as_pandas,
    "polars": as_polars,
}
