"""A published table on Spark: counted by the texts that it shows, and written.

Its rows are distributed over files, and ordered there, by a keyed hash of what they show. So neither the number of
files, nor their sizes, nor the order of the rows depend on anything but the published rows and the key. The workers
write; the driver gives the files plain names and removes what Spark puts beside them.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from sqlglot import exp

from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount
from maskwright.domain.spreadsheets import FIRST, HARMLESS, MARKED, RUNS, Formulas, escape_cell
from maskwright.engines.base import Found, Recount, Texts, shared
from maskwright.engines.duckdb import formulas as spreadsheet
from maskwright.engines.spark.runner import SparkRunner, raise_if_stopped
from maskwright.engines.spark.spark_recoding import PIECE, derived_key
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Relation
from maskwright.engines.sql.packed_keys import Packing, number
from maskwright.errors import DestinationError, InputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


BUFFER = 1 << 22
ROWS_PER_FILE = 1 << 20


def ordered_rows(frame: DataFrame, names: Sequence[str], times: str | None, key: str, rows: int) -> DataFrame:
    """The rows, distributed and ordered by a hash of their values. `times`: how many rows each one stands for.

    Equal rows are counted, sorted once and repeated, so it does not matter where they came from, nor how many they are.
    """
    _check(frame)
    content = [
        part for i, name in enumerate(names) for part in (F.col(name), F.lit(i))
    ]  # nulls are not hashed
    place = F.xxhash64(F.lit(derived_key(key, "order on Spark")), *content)
    n = F.count("*") if times is None else F.sum(times)
    counted = frame.groupBy(*names).agg(n.alias("n")).withColumn("order", place)
    # a number that is given is not changed by Spark, whatever sizes it finds
    spread = counted.repartition(max(1, -(-rows // ROWS_PER_FILE)), "order").sortWithinPartitions(
        "order", *names
    )
    pieces = F.expr(f"SEQUENCE(0, (n - 1) DIV {PIECE})")  # no list is long
    copies = F.expr(f"ARRAY_REPEAT(0, CAST(LEAST({PIECE}, n - piece * {PIECE}) AS INT))")
    repeated = spread.withColumn("piece", F.explode(pieces)).withColumn("copy", F.explode(copies))
    return repeated.select(*names)


def _check(frame: DataFrame) -> None:
    for field in frame.schema.fields:
        if re.search(r"map<|variant", field.dataType.simpleString()):
            raise InputError(
                "a column of maps or variants cannot be published by Spark; leave it out, or convert it to text first"
            )


def named_columns(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The columns under their own names, without the comments that columns of the source may have."""
    return frame.select([F.col(c).alias(n, metadata={}) for c, n in zip(frame.columns, names, strict=True)])


def write_parquet(frame: DataFrame, names: Sequence[str], path: Path) -> None:
    """One file, or a folder of files part-00000.parquet, … when there is much to write."""
    parts = _parts(named_columns(frame, names), path, "parquet", {"compression": "zstd"})
    if len(parts) == 1:
        parts[0].rename(path)
    else:
        path.mkdir()
        for i, part in enumerate(parts):
            part.rename(path / f"part-{i:05}.parquet")
    shutil.rmtree(_beside(path))


def refuse_formulas(frame: DataFrame, names: Sequence[str]) -> None:
    """Refuse texts that a spreadsheet would run (domain/spreadsheets.py); one pass for all columns."""
    for name in names:
        spreadsheet.refuse_name(name)
    bad = [F.min(F.when(F.col(c).rlike(RUNS) & ~_harmless(F.col(c)), F.col(c))) for c in frame.columns]
    for name, found in zip(names, frame.agg(*bad).collect()[0], strict=True):
        spreadsheet.refuse_found(name, found)


def _harmless(text: Column) -> Column:
    return text.rlike(f"\\A(?:{HARMLESS})\\z")


def _escaped(text: Column) -> Column:
    marked = F.regexp_replace(F.regexp_replace(text, MARKED, "$1'$2"), FIRST, "'$1")
    return F.when(_harmless(text), text).otherwise(marked)


def write_csv(frame: DataFrame, names: Sequence[str], path: Path, formulas: Formulas) -> None:
    """One file: the lines that the workers wrote, below one header."""
    if formulas == "refuse":
        refuse_formulas(frame, names)
    texts = [F.col(c) for c in frame.columns]
    if formulas == "escape":
        texts, names = [_escaped(text) for text in texts], [escape_cell(name) for name in names]
    values = [_field(text) for text in texts]
    if len(values) == 1:  # a lone missing value would be an empty line, which readers skip
        values = [F.when(values[0] == "", F.lit('""')).otherwise(values[0])]
    parts = _parts(frame.select(F.concat_ws(",", *values).alias("line")), path, "text", {"lineSep": "\n"})
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(names)
    with path.open("wb") as out:
        out.write(header.getvalue().encode())
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, out, BUFFER)
            part.unlink()
    shutil.rmtree(_beside(path))


def _field(text: Column) -> Column:
    quoted = F.concat(F.lit('"'), F.replace(text, F.lit('"'), F.lit('""')), F.lit('"'))
    return F.coalesce(F.when(text.rlike('[",\r\n]'), quoted).otherwise(text), F.lit(""))


def _parts(frame: DataFrame, path: Path, format_: str, options: dict[str, Any]) -> list[Path]:
    """Let the workers write files beside a path."""
    beside = _beside(path)
    try:
        frame.write.format(format_).options(**options).save(f"file://{beside}")
    except (PySparkException, Py4JError) as problem:
        raise_if_stopped(problem)
        raise DestinationError(f"{path}: the workers cannot write here; {_SHARED}") from None
    parts = sorted(beside.glob("part-*"))
    if not parts:
        raise DestinationError(f"{path}: what the workers wrote is not here; {_SHARED}")
    return parts


_SHARED = (
    "the folder must be on a file system that the driver and all workers share and may write to. Or leave the "
    "destination out, and write release.table with Spark"
)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.parts")


def recount_classes(
    runner: SparkRunner, table: Relation, columns: Sequence[str], sensitive: Sequence[str], unit: str | None
) -> Recount:
    """See `Engine.recount`. Nothing that made the table is used: texts are numbered here, as they were found."""
    counted = {name: _grouped(runner, table, [*columns, name], unit) for name in sensitive}
    summed = unit is None and bool(sensitive)  # rows of a class are the sum over the values of a column
    whole = counted[sensitive[0]] if summed else _grouped(runner, table, columns, unit)
    width = len(columns)
    texts, codes = [], np.empty((width, whole.num_rows), dtype=np.int64)
    for i in range(width):
        known, codes[i] = _numbered(whole.column(f"g{i}"))
        texts.append(known)
    keys = Packing.of([len(t) for t in texts]).pack(codes)
    distinct, owner = number(keys, whole.num_rows)
    n = len(distinct[0]) if distinct else int(whole.num_rows > 0)
    labels = np.empty((width, n), dtype=np.int32)
    labels[:, owner] = codes
    rows, people = exact_bincount(owner, _ints(whole, "n"), n), exact_bincount(owner, _ints(whole, "p"), n)
    values = {}
    for name, found in counted.items():
        at = _located(texts, distinct, [found.column(f"g{i}") for i in range(width)], found.num_rows)
        known, code = _numbered(found.column(f"g{width}"))
        values[name] = Found(known, at, code, _ints(found, "p"))
    return Recount(tuple(texts), labels, rows, people, values)


def holds_rows(runner: SparkRunner, table: Relation, columns: Sequence[str], rows: Iterable[Recount]) -> bool:
    """Does a table have exactly these rows, in any order?"""
    found, pieces = recount_classes(runner, table, columns, (), None), list(rows)
    digits, radices = list[Ints](), list[int]()
    for i, (mine, theirs) in enumerate(zip(pieces[0].texts, found.texts, strict=True)):
        one, two, radix = shared(mine, theirs)
        digits.append(np.concatenate([*(one[p.codes[i]] for p in pieces), two[found.codes[i]]]))
        radices.append(radix)
    planned = np.concatenate([piece.rows for piece in pieces])
    n = len(planned)
    numbers = number(Packing.of(radices).pack(digits), n + len(found.rows))[1]
    size = int(numbers.max(initial=-1)) + 1
    return np.array_equal(
        exact_bincount(numbers[:n], planned, size), exact_bincount(numbers[n:], found.rows, size)
    )


def _grouped(runner: SparkRunner, table: Relation, columns: Sequence[str], unit: str | None) -> pa.Table:
    """Rows `n` and people `p` for each combination of texts g0, g1 … (whole numbers stay numbers).

    The table is grouped as it is first, so that values are spelled once per group, not per row.
    """
    names = [f"g{i}" for i in range(len(columns))]
    within = list(zip(names, columns, strict=True)) + ([("u", unit)] if unit is not None else [])
    stored = clauses.select(
        [clauses.alias(table.raw(c), g) for g, c in within] or [clauses.integer(1)], table.source()
    )
    inner = clauses.count_by(stored, [g for g, _ in within]).subquery("i", copy=False)
    items = [clauses.alias(_shown(table, c, clauses.column(g, "i")), g) for g, c in within]
    rows = clauses.alias(clauses.cast(exp.Sum(this=clauses.column("n")), "BIGINT"), "n")
    people = clauses.count_distinct("u") if unit is not None else rows.this.copy()
    query = clauses.select([*items, clauses.column("n", "i")], inner)
    return runner.arrow(clauses.count_by(query, names, rows, clauses.alias(people, "p")), table.parameters)


def _shown(table: Relation, name: str, stored: exp.Expression) -> exp.Expression:
    """A stored value as it is counted."""
    info = table.info(name)
    if info.kind != "integer":
        return table.canonical(name, stored)
    return stored if table.clean else clauses.cleaned(stored, info, table.parameters)


def _numbered(column: pa.ChunkedArray) -> tuple[Texts, Ints]:
    """The texts of a column, each once and ascending, missing last; and for each entry the number of its text."""
    if pa.types.is_integer(column.type) and not column.null_count:  # group numbers: there may be many
        return np.unique(column.to_numpy().astype(np.int64), return_inverse=True)
    encoded = column.combine_chunks().dictionary_encode()
    known: list[Any] = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False).astype(np.int64)
    whole = _whole_numbers(known)
    if whole is not None and not column.null_count:
        order = np.argsort(whole)
        texts: Texts = whole[order]
    else:
        order = np.array(sorted(range(len(known)), key=lambda i: str(known[i])), dtype=np.int64)
        texts = (*(str(known[i]) for i in order), None)
    place = np.empty(len(known) + 1, dtype=np.int64)
    place[order] = np.arange(len(known))
    place[-1] = len(known)
    return texts, place[codes]


def _whole_numbers(known: Sequence[Any]) -> Ints | None:
    """Values that are all whole numbers, written as such."""
    try:
        numbers = np.array([int(v) for v in known], dtype=np.int64)
    except (ValueError, OverflowError):
        return None
    return numbers if all(str(n) == str(v) for n, v in zip(numbers.tolist(), known, strict=True)) else None


def _located(
    texts: Sequence[Texts], distinct: Sequence[Ints], columns: Sequence[pa.ChunkedArray], length: int
) -> Ints:
    """The class of each entry of another grouping of the same table."""
    if not columns:
        return np.zeros(length, dtype=np.int64)
    codes = np.stack([_numbered(column)[1] for column in columns])
    keys = Packing.of([len(t) for t in texts]).pack(codes)
    n = len(distinct[0])
    return number([np.concatenate(pair) for pair in zip(distinct, keys, strict=True)], n + length)[1][n:]


def _ints(table: pa.Table, name: str) -> Ints:
    return np.asarray(table.column(name).to_numpy(), dtype=np.int64)
