"""Opening a source in DuckDB: a Parquet file is read where it is, all others are copied in as they are."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from maskwright.domain.spreadsheets import unescape_cell
from maskwright.engines.base import ColumnInfo, Reading
from maskwright.engines.duckdb import formulas
from maskwright.engines.duckdb.database import Database, told
from maskwright.engines.readers import csv_files as files
from maskwright.engines.readers import frames, postgres, statistics_files
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coding import Relation
from maskwright.errors import InputError, MaskwrightError, is_interruption


@dataclass(frozen=True, eq=False)
class DuckTable(Relation):
    """A relation in the database.

    Attributes:
        frame: what the caller handed in, when that was not a path.
        typed: published tables: the columns that keep the type of the source.
        stamp: of the file, where it is read again for each query.
        origin: the types of the columns in the database server that they come from.
        sets: the columns of sets that were replaced by their bits, as they were.
        sorts: every reading sorts the rows again.
        made_of: of a recoded table: the tables that hold its rows.
    """

    frame: frames.Frame | None = None
    typed: frozenset[str] = frozenset()
    stamp: files.Stamp = field(default_factory=files.Stamp)
    origin: Mapping[str, str] = field(default_factory=dict)
    sets: Mapping[str, ColumnInfo] = field(default_factory=dict)
    sorts: bool = False
    made_of: tuple[str, ...] = ()


def open_path(db: Database, path: Path, reading: Reading) -> DuckTable:
    """Open a file or a folder of Parquet files."""
    parameters = clauses.token_parameters(reading.missing, reading.trim)
    if parts := files.parquet_parts(path, reading):
        return _open_parquet(db, path.absolute(), parts, parameters)
    path = files.check_file(path)
    if (typed := statistics_files.recognise(path, reading)) is not None:
        return _open_typed(db, typed, parameters)
    if files.format_of(path, reading) == "parquet":
        return _open_parquet(db, path, [path], parameters)
    layout = files.examine_csv(path, reading)
    utf8 = files.as_utf8(layout, db.temp)
    try:
        name = _load_csv(db, layout, utf8)
    finally:
        if utf8 != path:
            utf8.unlink()
    names: Sequence[str] = layout.names
    if reading.escaped:
        names = [unescape_cell(n) for n in names]
        changed = {f"c{i}": formulas.unmarked(clauses.column(f"c{i}")) for i in range(len(names))}
        db.run(clauses.update(name, changed), {})
    columns = tuple(ColumnInfo(n, "text", "VARCHAR") for n in names)
    return DuckTable(columns, "path", "csv", str(path), name, parameters)


def _load_csv(db: Database, layout: files.CsvLayout, utf8: Path) -> str:
    name = db.new_name("source")
    try:
        db.con.read_csv(
            glob.escape(str(utf8)),
            sep=layout.delimiter,
            quotechar=layout.quote,
            escapechar=layout.quote,
            header=layout.header,
            columns={f"c{i}": "VARCHAR" for i in range(len(layout.names))},
            # every record must have every field: nothing is skipped, padded or guessed; and an empty field is
            # not null yet, because superfluous nulls at the end of a record would be ignored (in a table of
            # one column it is null: there an empty line is a record)
            na_values="\x1e\x1e" if len(layout.names) > 1 else "",
            auto_detect=False,
            strict_mode=True,
            null_padding=False,
            ignore_errors=False,
            compression="none",
            # by itself the database takes the first line end that it sees for that of the lines, also a quoted one
            lineterminator=duckdb.CSVLineTerminator.LINE_FEED if layout.line_end == "\n" else None,
        ).create(name)
    except duckdb.OutOfMemoryException:
        with told():
            raise
    except (duckdb.Error, UnicodeDecodeError) as problem:
        message = str(problem)  # holds the row itself: only numbers are taken from it
    else:
        return name
    record = re.search(r"CSV Error on Line: (\d+)", message)
    fields = re.search(r"Expected Number of Columns: \d+ Found: (\d+)", message)
    raise files.explain_csv(
        layout, int(record[1]) if record else None, int(fields[1]) if fields else None, utf8,
        "Maximum line size" in message,
    )  # fmt: skip


def _open_parquet(
    db: Database, path: Path, parts: Sequence[Path], parameters: Mapping[str, Any]
) -> DuckTable:
    """A file, or a folder whose files are the parts of one table."""
    for part in parts:
        files.check_parquet(part)
    stamp, patterns, file = files.Stamp.of(path), [glob.escape(str(p)) for p in parts], db.new_name("parquet")
    try:
        names = files.check_names(_parquet_names(db, patterns[0]), str(path))
        if reserved := {"file_row_number", "file_index"} & {n.lower() for n in names}:
            raise InputError(f"{path}: the column name {min(reserved)!r} is reserved; rename the column")
        relation = db.con.read_parquet(patterns, file_row_number=True, hive_partitioning=False)
        columns = _infos(names, [str(t) for t in relation.types[:-1]])
        items = [clauses.alias(clauses.column(c), f"c{i}") for i, c in enumerate(relation.columns[:-1])]
        row: exp.Expression = clauses.column("file_row_number")
        if len(parts) > 1:  # rows are numbered through all files
            relation = relation.project("*, file_index")
            row = exp.Add(this=_rows_before(db, patterns), expression=row)
        relation.create_view(file)
        view = db.new_name("source")
        items.append(clauses.alias(row, "r"))
        db.run(clauses.create_table(view, clauses.select(items, clauses.relation(file)), kind="VIEW"), {})
    except (duckdb.Error, UnicodeDecodeError):
        what = "a file of the folder" if len(parts) > 1 else "the Parquet file"
        raise InputError(f"{path}: {what} is damaged, or of a kind that cannot be read") from None
    return DuckTable(columns, "path", "parquet", str(path), view, parameters, row="r", stamp=stamp)


def _rows_before(db: Database, patterns: Sequence[str]) -> exp.Expression:
    """How many rows the files before the one of a row have."""
    function = exp.Anonymous(this="parquet_file_metadata", expressions=[clauses.parameter("path")])
    query = clauses.select([clauses.column("num_rows")], exp.Table(this=function))
    rows = [int(db.rows(query, {"path": pattern})[0][0]) for pattern in patterns]
    before = exp.Array(expressions=[clauses.integer(sum(rows[:i])) for i in range(len(rows))])
    number = exp.Add(this=clauses.cast(clauses.column("file_index"), "BIGINT"), expression=clauses.integer(1))
    return exp.Anonymous(this="list_extract", expressions=[before, number])


def _parquet_names(db: Database, pattern: str) -> list[str]:
    """The names of the columns as the file has them (the database would rename duplicates)."""
    function = exp.Anonymous(this="parquet_schema", expressions=[clauses.parameter("path")])
    query = clauses.select(clauses.columns(["name", "num_children"]), exp.Table(this=function))
    schema = iter(db.rows(query, {"path": pattern}))
    names = []
    for _ in range(next(schema)[1]):
        name, children = next(schema)
        names.append(name)
        pending = children or 0
        while pending:
            pending += (next(schema)[1] or 0) - 1
    return names


def open_frame(db: Database, frame: frames.Frame, reading: Reading) -> DuckTable:
    """Open a data frame; its rows are copied."""
    label = f"the {frame.caller} table"
    name, columns = db.new_name("source"), None
    with _foreign(label):
        for part in frame.batches():
            view = db.new_name("frame")
            db.con.register(view, part)
            relation = db.con.view(view)
            items = [clauses.alias(clauses.column(c), f"c{i}") for i, c in enumerate(relation.columns)]
            rows = clauses.select(items, clauses.relation(view))
            if columns is None:
                names = frame.names or files.check_names(relation.columns, label)
                columns = _infos(names, [str(t) for t in relation.types])
                db.run(clauses.create_table(name, rows), {})
            else:
                db.run(clauses.insert_into(name, rows), {})
            db.con.unregister(view)
    if columns is None:
        raise InputError(f"{label}: there are column names but no rows")
    parameters = clauses.token_parameters(reading.missing)
    return DuckTable(columns, frame.caller, "parquet", label, name, parameters, frame=frame)


def open_postgres(db: Database, source: postgres.Postgres | postgres.Snapshot, reading: Reading) -> DuckTable:
    """Open a table of a PostgreSQL database; its rows are copied, as one snapshot."""
    name = db.new_name("source")

    def load(path: Path, columns: list[postgres.PostgresColumn]) -> None:
        """Load the fetched rows."""
        types = {f"c{i}": c.type for i, c in enumerate(columns)} | {"end": "INTEGER"}
        try:
            rows = db.con.read_csv(
                glob.escape(str(path)), header=False, columns=types, sep=",", quotechar='"', escapechar='"',
                na_values="", allow_quoted_nulls=False, auto_detect=False, strict_mode=True, null_padding=False,
                ignore_errors=False, compression="none", max_line_size=1 << 28,
                lineterminator=duckdb.CSVLineTerminator.LINE_FEED,
            )  # fmt: skip
            rows.project(", ".join(f"c{i}" for i in range(len(columns)))).create(name)
        except duckdb.OutOfMemoryException:
            with told():
                raise
        except duckdb.Error as problem:
            bad = re.search(r'converting column "c(\d+)"', str(problem))
            which = f"column {columns[int(bad[1])].name!r} holds" if bad else "there is"
            raise InputError(
                f"{source}: {which} a value that the engine cannot hold (a date before Christ?); use a query "
                "that casts it to text"
            ) from None

    found = postgres.fetch(source, db.temp, load)
    infos = _infos([c.name for c in found], [c.type for c in found])
    parameters = clauses.token_parameters(reading.missing)
    origin = {c.name: c.stored for c in found}
    return DuckTable(infos, "postgres", "parquet", str(source), name, parameters, origin=origin)


def _open_typed(db: Database, file: statistics_files.TypedFile, parameters: Mapping[str, Any]) -> DuckTable:
    """Copy in a file that a reader gives part by part, each column in the type that the file gives it."""
    name, view = db.new_name("source"), db.new_name("part")
    columns: tuple[ColumnInfo, ...] | None = None
    for part in file.parts():
        items = [
            clauses.alias(clauses.cast(clauses.column(f"c{i}"), t), f"c{i}") for i, t in enumerate(part.types)
        ]
        rows = clauses.select(items, clauses.relation(view))
        with db.tables({view: part.columns}):
            db.run(
                clauses.create_table(name, rows) if columns is None else clauses.insert_into(name, rows), {}
            )
        columns = columns or _infos(file.names, part.types)
    if columns is None:
        raise InputError(f"{file.path}: there are column names but no rows")
    return DuckTable(columns, "path", "csv", str(file.path), name, parameters)


@contextmanager
def _foreign(label: str) -> Iterator[None]:
    try:
        yield
    except MaskwrightError:
        raise
    except Exception as problem:
        if is_interruption(problem):
            raise KeyboardInterrupt from None
        kind = type(problem).__name__
        raise InputError(f"{label}: a column has a type that cannot be read ({kind}); convert it") from None


def _infos(names: Sequence[str], types: Sequence[str]) -> tuple[ColumnInfo, ...]:
    for name, kind in zip(names, types, strict=True):
        if kind.upper().startswith("UNION("):  # no file keeps it: it would be read back as something else
            raise InputError(f"column {name!r} has values of several types (a union); convert it to text")
    return tuple(ColumnInfo(n, clauses.kind_of(t), t) for n, t in zip(names, types, strict=True))
