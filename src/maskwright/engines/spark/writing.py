"""Writing a published table: its rows are distributed over files, and ordered there, by a keyed hash of what they show.

So neither the number of files, nor their sizes, nor the order of the rows depend on anything but the published rows and
the key. The workers write; the driver gives the files plain names and removes what Spark puts beside them.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from maskwright.domain.spreadsheets import FIRST, HARMLESS, MARKED, RUNS, Formulas, escape_cell
from maskwright.engines.duckdb import formulas as spreadsheet
from maskwright.engines.spark.runner import raise_if_stopped
from maskwright.engines.spark.spark_recoding import PIECE, derived_key
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
