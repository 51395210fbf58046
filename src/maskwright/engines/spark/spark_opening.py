"""Opening a source on Spark: a Parquet or CSV path that all workers see, or a data frame of a running session.

What is opened is a `SparkTable`, whose values become codes by lists that the driver makes (`SparkCoded`).

Of a folder, Spark asks one file for the columns and takes them for those of all, and it reads what is no text in the
encoding of a file as U+FFFD, so that different values become one. What could be mistaken is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from sqlglot import exp

from maskwright.domain.spreadsheets import MARK, unescape_cell
from maskwright.engines.base import ColumnInfo, Format, Reading
from maskwright.engines.readers import csv_files as files
from maskwright.engines.spark.runner import SparkRunner, translated_errors
from maskwright.engines.spark.spark_session import passed_on
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Arrays, Coded, Labelled, Relation, Runner, texts_of
from maskwright.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Values = tuple[pa.ChunkedArray, list[str | None], list[int]]
_REMOTE = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
_SAID = {"csv": "text", "parquet": "Parquet"}


@dataclass(frozen=True, eq=False)
class SparkTable(Relation):
    """A view of our session.

    What tells rows apart are 128 bits of a hash of their content, the same however often and wherever a task runs.
    Rows that are alike have the same; they are interchangeable. Queries that do not use it do not compute it.

    Attributes:
        typed: published tables: the columns that keep the type of the source.
        sets: the columns of sets that were replaced by their bits, as they were.
        key: published tables: what their order is drawn with, and
        rows: how many there are, where that is known.
        times: published tables: the column with the number of rows that each one stands for.
    """

    dialect: ClassVar[str] = "spark"

    typed: frozenset[str] = frozenset()
    sets: Mapping[str, ColumnInfo] = field(default_factory=dict)
    key: str = ""
    rows: int | None = None
    times: str | None = None
    runner: SparkRunner | None = None
    known: dict[tuple[str, int], Values] = field(default_factory=dict)

    @property
    def coding(self) -> type[Coded]:
        """How values become codes: by lists that the driver makes."""
        return SparkCoded

    def comparable(self, name: str) -> exp.Expression:
        """A column as it is stored, if the driver knows its type; else as text."""
        raw = self.raw(name)
        return clauses.cast(raw, "TEXT") if self.info(name).kind == "other" else raw

    def hashable(self, name: str) -> exp.Expression:
        """A column as it is hashed: Spark has no hash for maps."""
        raw = self.raw(name)
        if not re.search("MAP<|VARIANT", self.info(name).type.upper()):
            return raw
        whole = exp.Anonymous(this="struct", expressions=[raw])
        return exp.Anonymous(this="to_json", expressions=[whole])

    def values(self, name: str) -> Values:
        """What occurs in a column: as it is stored, its canonical text, and the number of rows."""
        key = str(self.relation), self.position(name)
        if key not in self.known:
            assert self.runner is not None  # noqa: S101 - for the type checker
            stored = clauses.count_by(
                clauses.select([clauses.alias(self.comparable(name), "raw")], self.source()), ["raw"]
            )
            text = clauses.alias(self.canonical(name, clauses.column("raw", "a")), "v")
            items = [clauses.column("raw", "a"), text, clauses.column("n", "a")]
            found = self.runner.arrow(
                clauses.select(items, stored.subquery("a", copy=False)), self.parameters
            )
            try:
                texts = found.column("v").to_pylist()
            except UnicodeDecodeError:  # texts of a Parquet file may be any bytes
                raise InputError(
                    f"{self.label}: column {name!r} holds text that is not UTF-8; write the file again"
                ) from None
            self.known[key] = found.column("raw"), texts, found.column("n").to_pylist()
        return self.known[key]


@dataclass(frozen=True)
class SparkCoded(Labelled):
    """`Labelled`, by the values as they are stored: rows are neither trimmed nor spelled one by one.

    What occurs in a column is listed once, on the driver, and sent to every worker.
    """

    table: SparkTable

    def content(self) -> dict[str, Arrays]:
        """For each stored value (`raw`) its code `k`, and its label `t`. Those that count as missing have code 0."""
        found = dict[str, Arrays]()
        for i, (name, domain) in enumerate(zip(self.names, self.domains, strict=True)):
            codes = {value: code for code, value in enumerate(domain, 1)}
            if len(codes) != len(domain):
                raise ValueError("a domain lists a value twice")
            stored, texts, _ = self.table.values(name)
            k = [0 if text is None else codes.get(text, self.unknown(i)) for text in texts]
            known = {"raw": stored, "k": np.array(k, dtype=np.int64)}
            if self.labels:
                shown = (None, *self.labels[i], None)
                known["t"] = texts_of([shown[code] for code in k])
            found[f"d{i}"] = known
        return found

    def joins(self) -> list[exp.Join]:
        """Left joins of the lists of values, by the values as they are stored."""
        return [
            clauses.left_join(
                clauses.relation(f"d{i}"),
                clauses.equal(clauses.column("raw", f"d{i}"), self.table.comparable(name)),
            )
            for i, name in enumerate(self.names)
        ]

    def tables(self) -> dict[str, exp.Select]:
        """No named queries: the lists were made on the driver."""
        return {}

    def unknown_values(self, runner: Runner, i: int) -> list[str]:
        """The values of column i that are not in its domain, ascending."""
        _, texts, _ = self.table.values(self.names[i])
        return sorted({text for text in texts if text is not None} - set(self.domains[i]))


def open_frame(runner: SparkRunner, frame: DataFrame, reading: Reading) -> SparkTable:
    """A frame of another session of the same cluster; its settings there stay what they are."""
    if frame.isStreaming:
        raise InputError("the data frame is a stream, which never ends; write it to a table first")
    label = "the Spark table"
    names = files.check_names(frame.columns, label)
    plain = frame.toDF(*(f"c{i}" for i in range(len(names))))
    mine = passed_on(plain, runner.session, runner.new_name(f"maskwright_{id(runner):x}"))
    return _opened(runner, mine, names, "spark", "parquet", label, reading)


def open_path(runner: SparkRunner, source: str | Path, reading: Reading, kept: list[DataFrame]) -> SparkTable:
    """A file, a folder of files, or an address such as hdfs:// and s3a://."""
    if isinstance(source, str) and _REMOTE.match(source):
        label, addresses, parts = source, [source], list[Path]()
        format_: Format = reading.format or (
            "csv" if re.search(r"\.(csv|tsv|txt)(\.gz)?/?$", source) else "parquet"
        )
    else:
        path, parts = _local(Path(source))
        format_ = _format(path, parts, reading)
        label, addresses = str(path), [local_address(part) for part in parts]
    if format_ == "parquet":
        for part in parts:
            files.check_parquet(part)
        frame = _read(runner.session.read, addresses, label, "parquet")
        names = files.check_names(frame.columns, label)
        check_parquet(runner.session, frame, label)
    else:
        frame, names, certain = _csv(runner, addresses, label, parts, reading)
        if reading.escaped:
            frame = frame.select([F.regexp_replace(F.col(c), MARK, "$1").alias(c) for c in frame.columns])
            names = tuple(unescape_cell(name) for name in names)
        # lines may end inside of values, so a file is read by one task: once
        frame = frame.repartition(runner.session.sparkContext.defaultParallelism).persist(
            StorageLevel.DISK_ONLY
        )
        kept.append(frame)
        if not certain:
            check_decoded(runner, frame, names, label)
    return _opened(runner, frame, names, "path", format_, label, reading)


def local_address(path: Path) -> str:
    """A path as Spark wants it: patterns in it are meant literally."""
    return "file://" + re.sub(r"([\\\[\]{}*?])", r"\\\1", str(path))


def _local(path: Path) -> tuple[Path, list[Path]]:
    """The absolute path, and the files to read: itself, or what is in a folder (but for what Spark hides, too)."""
    if not path.is_dir():
        path = files.check_file(path)
        return path, [path]
    parts = sorted(p for p in path.iterdir() if not re.match(r"[_.]|.*\._COPYING_$", p.name, re.DOTALL))
    if not parts:
        raise InputError(f"{path}: there is no data file in this folder")
    if below := next((part for part in parts if part.is_dir()), None):
        raise InputError(
            f"{path}: {below.name!r} in it is a folder; for a partitioned table give the address, "
            f"{local_address(path.absolute())}"
        )
    return path.absolute(), [files.check_file(part) for part in parts]


def _format(path: Path, parts: Sequence[Path], reading: Reading) -> Format:
    for part in parts:
        if part.suffix.lower() in (".xlsx", ".xls", ".ods", ".dta", ".sav", ".zsav", ".sas7bdat", ".xpt"):
            raise InputError(
                f"{path}: the Spark engine reads Parquet and CSV; leave out --engine spark for this file"
            )
    formats = [files.format_of(part, reading) for part in parts]
    for part, found in zip(parts, formats, strict=True):
        if found != formats[0]:
            raise InputError(
                f"{path}: {parts[0].name!r} is {_SAID[formats[0]]} and {part.name!r} is {_SAID[found]}; the files of a "
                "folder are one table: move the others out"
            )
    return "parquet" if formats[0] == "parquet" else "csv"


def _read(reader: Any, addresses: list[str], label: str, format_: str) -> DataFrame:
    try:
        with translated_errors():
            frame: DataFrame = reader.format(format_).load(addresses)
    except AnalysisException as problem:
        kind = problem.getCondition() or type(problem).__name__
        if kind == "COLUMN_ALREADY_EXISTS":
            name = (problem.getMessageParameters() or {}).get("columnName", "")
            raise InputError(
                f"{label}: the column {name} occurs twice, or in forms that differ in no more than case; rename one"
            ) from None
        raise InputError(f"{label}: Spark cannot read this as {format_} ({kind})") from None
    return frame


def _csv(
    runner: SparkRunner, addresses: list[str], label: str, parts: Sequence[Path], reading: Reading
) -> tuple[DataFrame, tuple[str, ...], bool]:
    """Every value as text; a line with too few or too many of them is an error.

    Returns the frame, the names of its columns, and whether it is certain that Java reads the texts as they are meant.
    """
    layout = csv_layout(parts, reading) if parts else None
    quote = reading.quote if reading.quote is not None else '"'
    encoding = layout.encoding if layout else reading.encoding
    reader = runner.session.read.options(
        sep=layout.delimiter if layout else reading.delimiter or ",",
        quote=quote or "\u0000", escape=quote or "\u0000", header=reading.header, multiLine=True, mode="FAILFAST",
        encoding=re.sub("^(utf-8)-sig$|^(utf-(?:16|32))-([lb]e)$", r"\1\2\3", encoding),  # as Java spells them
        unescapedQuoteHandling="RAISE_ERROR", enforceSchema=layout is not None,
        inferSchema=False, ignoreLeadingWhiteSpace=False, ignoreTrailingWhiteSpace=False,
    )  # fmt: skip
    if layout is None:  # the names are those of one file: Spark compares the header of each with them
        frame = _read(reader, addresses, label, "csv")
        found = frame.columns if reading.header else [f"column{i}" for i in range(1, len(frame.columns) + 1)]
        names = files.check_names([n.strip() for n in found], label)
        frame = frame.toDF(*(f"c{i}" for i in range(len(names))))
    else:  # all have them, which was seen to
        names = layout.names
        schema = ", ".join(f"c{i} STRING" for i in range(len(names)))
        frame = _read(reader.schema(schema), addresses, label, "csv")
    if len(names) == 1:
        check_lines(runner, addresses, encoding, label)
    return frame, names, layout is not None and encoding.startswith("utf-")


def _opened(
    runner: SparkRunner, frame: DataFrame, names: tuple[str, ...], caller: str, format_: Format, label: str,
    reading: Reading,
) -> SparkTable:  # fmt: skip
    types = [field.dataType.simpleString().upper() for field in frame.schema.fields]
    infos = tuple(ColumnInfo(n, clauses.kind_of(t), _type(t)) for n, t in zip(names, types, strict=True))
    plain, name = runner.new_name("frame"), runner.new_name("source")
    runner.view(plain, frame.toDF(*(f"c{i}" for i in range(len(names)))))
    parameters = clauses.token_parameters(reading.missing, reading.trim)
    table = SparkTable(infos, caller, format_, label, name, parameters, row="r", runner=runner)
    first, second = (clauses.row_hash(clauses.integer(seed), *map(table.hashable, names)) for seed in (1, 2))
    row = exp.Anonymous(this="concat_ws", expressions=[exp.Literal.string("-"), first, second])
    columns = clauses.columns(f"c{i}" for i in range(len(names)))
    runner.view(
        name,
        runner.frame(clauses.select([*columns, clauses.alias(row, "r")], clauses.relation(plain, "t")), {}),
    )
    return table


def _type(name: str) -> str:
    return "VARCHAR" if clauses.kind_of(name) == "text" else name


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
                "one: write input: {encoding: utf-16}"
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
