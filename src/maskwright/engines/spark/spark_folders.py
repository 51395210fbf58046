"""Are the files of a folder parts of one table, and are their texts what they are meant to be?

Spark asks one file for the columns and takes them for those of all. It reads what is no text in the encoding of a file
as U+FFFD, so that different values become one. What could be mistaken for something else is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from maskwright.engines.base import Reading
from maskwright.engines.readers import csv_files as files
from maskwright.engines.spark.runner import SparkRunner
from maskwright.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THREADS = 16  # that read the ends of Parquet files
REPLACED = "\ufffd"


def csv_layout(parts: Sequence[Path], reading: Reading) -> files.CsvLayout:
    """How all these files are to be read. They are looked through from the first byte to the last."""
    layouts = list[files.CsvLayout]()
    for part in parts:
        if files.is_gzip(part) and part.suffix != ".gz":
            raise InputError(
                f"{part}: this is a gzip file, which Spark knows by its name; rename it to end in .gz"
            )
        layouts.append(files.examine_csv(part, reading))
        problem = _difference(layouts[0], layouts[-1])
        if problem is not None:
            raise InputError(
                f"{part}: {problem}; the files of a folder are one table: convert one of them, or move it out"
            )
    for layout in layouts:
        for _ in files.decoded(layout):
            pass
    return layouts[0]


def _difference(one: files.CsvLayout, other: files.CsvLayout) -> str | None:
    """What tells two files apart. Names are not repeated: where there is no header, they are values of a person."""
    where = repr(one.path.name)
    kinds = [layout.encoding.removesuffix("-sig") for layout in (one, other)]
    if kinds[0] != kinds[1]:
        return f"it is {kinds[1]} and {where} is {kinds[0]}"
    if one.delimiter != other.delimiter:
        return f"values end with {other.delimiter!r} and in {where} with {one.delimiter!r} (input: {{delimiter: …}})"
    if len(one.names) != len(other.names):
        return f"there are {len(other.names)} columns and {len(one.names)} in {where}"
    for number, names in enumerate(zip(one.names, other.names, strict=True), 1):
        if names[0] != names[1]:
            return f"column {number} is not called what it is in {where}"
    return None


def check_decoded(runner: SparkRunner, frame: DataFrame, names: Sequence[str], label: str) -> None:
    """Refuse texts in which Java replaced something, and NUL characters; one pass, which stores what it reads."""
    kinds = [
        F.max(F.when(F.col(c).contains(REPLACED), 2).when(F.col(c).contains("\0"), 1)) for c in frame.columns
    ]
    with runner.running():
        found = frame.agg(*kinds).collect()[0]
    for name, kind in zip(names, found, strict=True):
        if kind == 2 or REPLACED in name:
            raise InputError(
                f"{label}: column {name!r} holds bytes that are not of the encoding (or the character U+FFFD, which "
                "stands for them); name the encoding, e.g. input: {encoding: cp1252}"
            )
        if kind == 1:
            raise InputError(
                f"{label}: column {name!r} holds a NUL character; this is not a text file, or its encoding is another "
                "one: say input: {encoding: utf-16}"
            )


def check_lines(runner: SparkRunner, addresses: list[str], encoding: str, label: str) -> None:
    """Refuse empty lines in files of one column, which are missing values there: Spark skips them."""
    if re.match("utf-?(16|32)", encoding):
        raise InputError(
            f"{label}: the Spark engine does not read CSV files of one column in {encoding}; write it as utf-8"
        )
    with runner.running():
        empty = runner.session.read.text(addresses).where(F.col("value").rlike(r"^[ \t]*$")).limit(1).count()
    if empty:
        raise InputError(
            f"{label}: an empty line of a CSV file of one column is a missing value, which Spark does not read; write "
            '"" there, or leave out --engine spark'
        )


def check_parquet(session: SparkSession, frame: DataFrame, label: str) -> None:
    """Refuse files that have other columns than the first, or other types; their order does not matter."""
    paths = sorted(frame.inputFiles())
    if len(paths) < 2:
        return
    settings = session._jsparkSession.sessionState().newHadoopConf()  # Python does not have it
    pool = ThreadPoolExecutor(THREADS)
    try:
        schemas = pool.map(lambda path: _schema(session, settings, path), paths)
        first = next(schemas)
        for path, schema in zip(paths[1:], schemas, strict=True):
            if not schema.equals(first):
                _check_columns(label, {_last(paths[0]): _columns(first), _last(path): _columns(schema)})
    finally:
        pool.shutdown(cancel_futures=True)


def _check_columns(label: str, found: dict[str, dict[str, str]]) -> None:
    (one, known), (other, columns) = found.items()
    for name in dict.fromkeys([*known, *columns]):
        if known.get(name) == columns.get(name):
            continue
        problem = f"is of different types in {one!r} and {other!r}"
        if name not in known or name not in columns:
            has, misses = (one, other) if name in known else (other, one)
            problem = f"is in {has!r} and not in {misses!r}"
        raise InputError(
            f"{label}: column {name!r} {problem}; the files of a folder are one table: convert one of them, or move it "
            "out"
        )


def _schema(session: SparkSession, settings: Any, path: str) -> Any:
    """What the end of a file says about its columns."""
    jvm: Any = session._jvm
    try:
        place = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(path))
        file = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(place, settings)
        reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(file)
        try:
            return reader.getFileMetaData().getSchema()
        finally:
            reader.close()
    except Py4JError:
        raise InputError(f"{path}: the Parquet file is damaged, or of a kind that cannot be read") from None


def _columns(schema: Any) -> dict[str, str]:
    """The types of the columns; whether a value may be missing, and numbers of columns, are no part of them."""
    found = {field.getName(): field.toString() for field in schema.getFields()}
    return {name: re.sub(r"\b(required|optional) | = \d+(?=;|$)", "", text) for name, text in found.items()}


def _last(path: str) -> str:
    return unquote(path.rpartition("/")[2])
