"""The DuckDB engine: embedded, the default. Reads files and tables from Python, and gives back the same kind.

A Parquet file is read where it is, all other sources are copied in as they are.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from maskwright.domain.classes import Ints
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.recoding_plan import GroupPlan, Plan
from maskwright.domain.spreadsheets import Formulas, escape_cell, unescape_cell
from maskwright.domain.value_sets import SetColumn
from maskwright.engines.base import ColumnInfo, Domain, Reading, Recount, Table
from maskwright.engines.duckdb import formulas as spreadsheet
from maskwright.engines.duckdb import recounting
from maskwright.engines.duckdb.database import Database, translated_failures, watched
from maskwright.engines.readers import csv_files as files
from maskwright.engines.readers import frames, postgres, statistics_files
from maskwright.engines.readers.csv_files import Stamp
from maskwright.engines.sql import (
    clauses,
    coarsening,
    expansion,
    preparing,
    recoding,
    set_columns,
    table_queries,
)
from maskwright.engines.sql.coded_columns import Relation
from maskwright.engines.sql.sql_engine import SqlEngine
from maskwright.errors import DestinationError, InputError, MaskwrightError, UsageError, is_interruption
from maskwright.identifiers.date_shifts import DateOffsets
from maskwright.identifiers.pseudonyms import Pseudonyms
from maskwright.prepare.redaction import text_redactor
from maskwright.runtime.events import Progress


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
        changed = {f"c{i}": spreadsheet.unmarked(clauses.column(f"c{i}")) for i in range(len(names))}
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
        with translated_failures():
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
            with translated_failures():
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


WIDE = 50  # columns: from here on, comparing all expressions of a query costs more than it saves


class DuckDBEngine(SqlEngine):
    """See `Engine`. One private in-memory database, which spills to `temp`."""

    name = "duckdb"

    def __init__(
        self, memory: str | None = None, temp: Path | None = None, threads: int | None = None
    ) -> None:
        self._db = Database(memory, temp, threads)

    @property
    def _runner(self) -> Database:
        return self._db

    def _own(self, table: Table) -> DuckTable:
        return _duck(table)

    def open(self, source: Any, reading: Reading) -> DuckTable:
        """Open a path, an address of PostgreSQL or a table of Python."""
        postgres.refuse_address(source)
        if isinstance(source, (postgres.Postgres, postgres.Snapshot)):
            table = open_postgres(self._db, source, reading)
        elif isinstance(source, (str, Path)):
            table = open_path(self._db, Path(source), reading)
        else:
            frame = frames.recognise(source, reading.lists)
            if frame is None:
                raise InputError(
                    f"cannot read a {type(source).__module__}.{type(source).__name__}; hand in a path or a pandas, "
                    "polars, pyarrow or DuckDB table"
                )
            table = open_frame(self._db, frame, reading)
        if self.count(table) == 0:
            raise InputError(f"{table.label}: there are column names but no rows")
        if len(table.columns) > WIDE:
            self._db.share_no_expressions()
        ready = self.prepare(table, reading.prepare)
        if ready is not table and table.row == "rowid":  # a copy, which nobody else knows of
            self._db.run(clauses.drop_table(str(table.relation)), {})
        return ready

    def prepare(self, table: Table, steps: preparing.Preparing) -> DuckTable:
        """The table with messy columns put in order, and what was repaired."""
        t = _duck(table)
        if not steps:
            return t
        for function, form in preparing.redactions(t, steps).items():
            self._db.add_function(function, text_redactor(form.model, form.keep))
        repairs = (*t.repairs, *preparing.counted_repairs(self._db, t, steps))
        identity, name = self.fingerprint(t), self._db.new_name("prepared")
        infos, items, parameters = preparing.prepared_columns(t, steps)
        self._db.run(clauses.create_table(name, clauses.select(items, t.source())), parameters)
        self._unchanged(t)
        return replace(
            t, columns=infos, relation=name, row="rowid", stamp=Stamp(), repairs=repairs, identity=identity
        )

    def pseudonymise(self, table: Table, pseudonyms: Mapping[str, Pseudonyms]) -> DuckTable:
        """The table with pseudonyms in some columns, stored."""
        t, name = _duck(table), self._db.new_name("pseudonyms")
        infos, query, parameters = preparing.pseudonymised_columns(t, pseudonyms)
        self._db.run(clauses.create_table(name, query), parameters)
        self._unchanged(t)
        made_of = (*t.made_of, name) if t.clean else t.made_of
        return replace(
            t, columns=infos, relation=name, row="rowid", stamp=Stamp(), sorts=False, made_of=made_of,
            typed=t.typed - pseudonyms.keys(),
        )  # fmt: skip

    def shift_dates(
        self, table: Table, columns: Sequence[str], person: str, offsets: DateOffsets
    ) -> DuckTable:
        """See `Engine.shift_dates`; the moved table is stored."""
        t, name = _duck(table), self._db.new_name("moved")
        identity = self.fingerprint(t)
        infos, query, check, parameters = preparing.shifted_columns(t, columns, person, offsets)
        [wrong] = self._db.rows(check, parameters)
        there = [c.name for c in t.columns if c.name in columns]
        for column, odd, nobody in zip(there, wrong[::2], wrong[1::2], strict=True):
            if odd:
                raise InputError(
                    f"shift_dates: {odd} values of column {column!r} are not days like 2026-05-31; prepare them first, "
                    f"prepare: {{{column}: {{dates: …}}}}"
                )
            if nobody:
                raise InputError(
                    f"shift_dates: {nobody} dates of column {column!r} belong to nobody, because {person!r} is missing "
                    "there; complete it or remove the rows"
                )
        self._db.run(clauses.create_table(name, query), parameters)
        self._unchanged(t)
        return replace(t, columns=infos, relation=name, row="rowid", stamp=Stamp(), identity=identity)

    def draw_rows(self, table: Table, most: int, person: str, draw: Pseudonyms) -> DuckTable:
        """See `Engine.draw_rows`; what is left is stored."""
        t, name = _duck(table), self._db.new_name("drawn")
        identity, (query, parameters) = self.fingerprint(t), preparing.drawn_rows(t, most, person, draw)
        query.set("expressions", query.expressions[:-1])
        self._db.run(clauses.create_table(name, query), parameters)
        self._unchanged(t)
        return replace(t, relation=name, row="rowid", stamp=Stamp(), identity=identity)

    def row_texts(
        self, table: Table, columns: Sequence[str], hashed: bool = False
    ) -> tuple[dict[str, NDArray[np.object_]], NDArray[np.uint64]]:
        """See `Engine.row_texts`."""
        t = _duck(table)
        items = [clauses.alias(t.text(name), f"v{i}") for i, name in enumerate(columns)]
        if hashed:
            items.append(clauses.alias(clauses.row_hash(*map(t.hashable, t.names)), "h"))
        ordered = [] if t.clean else [t.row_number()]
        query = clauses.select(items, t.source(), order=ordered)
        result = self._db.execute(query, t.parameters)
        with translated_failures():
            found = result.fetchnumpy()
        texts = {}
        for i, name in enumerate(columns):
            values = np.ma.asarray(found[f"v{i}"])
            text = np.asarray(values.data, dtype=object).copy()
            text[np.ma.getmaskarray(values)] = None
            texts[name] = text
        return texts, np.asarray(found["h"] if hashed else (), dtype=np.uint64)

    def add_columns(self, table: Table, columns: Mapping[str, tuple[str, NDArray[np.object_]]]) -> DuckTable:
        """See `Engine.add_columns`; stored."""
        t, name, more = _duck(table), self._db.new_name("perturbed"), self._db.new_name("values")
        numbers = np.arange(self.count(t), dtype=np.int64)
        content = {"k": numbers} | {f"v{i}": texts for i, (_, texts) in enumerate(columns.values())}
        infos, items = list(t.columns), [clauses.alias(t.raw(n), f"c{i}") for i, n in enumerate(t.names)]
        for i, (new, (like, texts)) in enumerate(columns.items()):
            info = t.info(like) if like else ColumnInfo(new, "integer", "BIGINT")
            if like and info.kind == "integer" and any(x is not None and "." in x for x in texts):
                info = ColumnInfo(new, "number", "DOUBLE")
            infos.append(
                ColumnInfo(new, "text", "VARCHAR") if info.kind == "text" else replace(info, name=new)
            )
            value: exp.Expression = clauses.column(f"v{i}", "m")
            if info.kind != "text":
                value = clauses.cast(value, info.type)
            items.append(clauses.alias(value, f"c{len(items)}"))
        source, row = clauses.relation(more, "m"), clauses.column("k", "m")
        same = exp.Join(this=source, on=clauses.equal(row, t.row_number()))
        query = clauses.select(items, t.source(), joins=[same], order=[t.row_number()])
        with self._db.tables({more: content}):
            self._db.run(clauses.create_table(name, query), t.parameters)
        self._unchanged(t)
        made = replace(
            t, columns=tuple(infos), relation=name, row="rowid", stamp=Stamp(), identity=self.fingerprint(t)
        )
        if self.count(made) != len(numbers):
            raise InputError("the rows are not those that were counted: the table changed while it was read")
        return made

    def shown_columns(self, table: Table, columns: Mapping[str, str]) -> DuckTable:
        """See `Engine.shown_columns`; a query over what is stored."""
        t = _duck(table)
        infos = tuple(replace(t.info(old), name=new) for new, old in columns.items())
        items = [clauses.alias(t.stored(old), f"c{i}") for i, old in enumerate(columns.values())]
        typed = frozenset(new for new, old in columns.items() if old in t.typed)
        return replace(
            t, columns=infos, relation=clauses.select(items, t.source()), typed=typed, made_of=()
        )  # what is behind is read again

    # --- small questions --------------------------------------------------------------------------

    def domains(self, table: Table, columns: Sequence[str], limit: int | None = None) -> Iterator[Domain]:
        """See `Engine.domains`."""
        return table_queries.domains(self._db, _duck(table), columns, limit)

    def unfold(self, table: Table, columns: Sequence[SetColumn]) -> DuckTable:
        """The table with its columns of sets replaced by yes-or-no columns, stored."""
        t, name = _duck(table), self._db.new_name("unfolded")
        infos, items, parameters = set_columns.unfolded_columns(t, columns)
        self._db.run(clauses.create_table(name, clauses.select(items, t.source())), parameters)
        self._unchanged(t)
        originals = {s.name: t.info(s.name) for s in columns}
        return replace(t, columns=infos, relation=name, row="rowid", stamp=Stamp(), sets=originals)

    def fold(self, table: Table, columns: Sequence[SetColumn]) -> DuckTable:
        """A recoded table with its sets put together again, stored."""
        t, name = _duck(table), self._db.new_name("folded")
        infos, items, parameters = set_columns.folded_columns(t, columns, t.sets)
        self._db.run(clauses.create_table(name, clauses.select(items, t.source())), parameters)
        typed = set_columns.typed_with_sets(t.typed, columns)
        return replace(t, columns=infos, relation=name, typed=typed, made_of=(*t.made_of, name))

    def coarsen(self, table: Table, hierarchies: Sequence[Hierarchy]) -> DuckTable:
        """The table with columns that show coarser values; nothing is copied."""
        return coarsening.coarsen_in_order(self._db, _duck(table), hierarchies)

    def lone_values(self, table: Table, columns: Sequence[str], beside: Sequence[str] = ()) -> list[int]:
        """See `Engine.lone_values`."""
        return table_queries.lone_values(self._db, _duck(table), columns, beside)

    def in_order(
        self, table: Table, columns: Sequence[str], domains: Sequence[tuple[str, ...]], limit: int
    ) -> list[Ints]:
        """The codes of the first rows, in the order of the table."""
        return recounting.in_order(self._db, _duck(table), columns, domains, limit)

    # --- the three passes -------------------------------------------------------------------------

    def recode(self, table: Table, plan: Plan | GroupPlan) -> DuckTable:
        """The published table, stored or as a query."""
        t = _duck(table)
        self._unchanged(t)
        name = self._db.new_name("published")
        if isinstance(plan, GroupPlan):
            recoded = expansion.recode_groups(self._db, t, plan, name)
        else:
            recoded = recoding.recode(self._db, t, plan, name)
            if plan.key:
                recoded = expansion.reordered(self._db, name, recoded, plan.key)
        self._unchanged(t)
        return _published(t, recoded)

    def bucketize(self, table: Table, plan: GroupPlan) -> dict[str, Table]:
        """The two published tables of a bucketization."""
        t = _duck(table)
        self._unchanged(t)
        names = self._db.new_name("quasi"), self._db.new_name("sensitive")
        recoded = expansion.bucketize_groups(self._db, t, plan, names)
        self._unchanged(t)
        made = [_published(t, part) for part in recoded]
        return {"quasi-identifiers": made[0], "sensitive": made[1]}

    def keep(self, table: Table) -> DuckTable:
        """Store a published table that every reading would sort again."""
        t = _duck(table)
        if not t.sorts:
            return t
        name = self._db.new_name("kept")
        stored = [clauses.alias(t.stored(n), f"c{i}") for i, n in enumerate(t.names)]
        try:
            self._db.run(clauses.create_table(name, clauses.select(stored, t.source())), t.parameters)
        except InputError:
            self._unchanged(t)
            raise
        return replace(t, relation=name, parameters={}, sorts=False)

    def forget(self, table: Table) -> None:
        """Drop what was stored for a published table."""
        for name in _duck(table).made_of:
            self._db.run(clauses.drop_table(name), {})

    def write(self, table: Table, path: Path, format: str, formulas: Formulas = "refuse") -> None:
        """Write a published table; cells that would run as formulas are refused or escaped first."""
        t = _duck(table)
        if format not in ("csv", "parquet"):
            raise UsageError(f"there is no format {format!r}; known: csv, parquet")
        if format == "parquet" or formulas != "refuse":
            self._write(t, path, format, formulas)
            return
        kept = self.keep(t)
        try:
            for name in kept.names:
                spreadsheet.refuse_name(name)
            self._refuse_formulas(kept, [c.name for c in kept.columns if spreadsheet.can_hold(c)])
            self._write(kept, path, format, formulas)
        finally:
            if kept is not t:
                self._db.run(clauses.drop_table(str(kept.relation)), {})

    def _refuse_formulas(self, t: DuckTable, names: Sequence[str]) -> None:
        if not names:
            return
        kinds = self._db.relation(
            clauses.select([t.stored(n) for n in names], t.source()), t.parameters
        ).types
        texts = []
        for name, kind in zip(names, kinds, strict=True):
            if kind.id == "enum":  # rows have nothing else, and all of them are published
                spreadsheet.refuse_among(name, kind.children[0][1])
            else:
                texts.append(name)
        spreadsheet.refuse_columns(self._db, t, texts)

    def _write(self, t: DuckTable, path: Path, format: str, formulas: Formulas) -> None:
        value, escaped = (t.text, formulas == "escape") if format == "csv" else (t.stored, False)
        relation = self._named(t, value, escaped)
        try:
            if format == "parquet":
                # DuckDB 2.0.0 shares among threads what it knows of the members of an enumeration that occur: where two
                # of them write, a rare member may be written as an empty text
                rare = any(str(kind).startswith("ENUM") for kind in relation.types)
                with self._db.one_thread() if rare else nullcontext():
                    relation.write_parquet(str(path), compression="zstd")
            else:
                relation.write_csv(
                    str(path), sep=",", header=True, quotechar='"', escapechar='"', na_rep="",
                    quoting=1 if len(t.columns) == 1 else None,
                )  # fmt: skip
        except (duckdb.Error, OSError) as problem:
            self._unchanged(t)  # a file that is read while the release is written
            if isinstance(problem, (duckdb.IOException, OSError)):
                raise DestinationError(
                    f"{path}: cannot be written; is the disk full, or the folder protected?"
                ) from None
            with translated_failures():
                raise

    def recount(
        self, table: Table, columns: Sequence[str], sensitive: Sequence[str] = (), unit: str | None = None
    ) -> Recount:
        """Group a table by its columns as they are."""
        return recounting.recount(self._db, _duck(table), columns, sensitive, unit)

    def holds(self, table: Table, columns: Sequence[str], rows: Iterable[Recount]) -> bool:
        """Does a table have exactly these rows, in any order?"""
        return recounting.holds(self._db, _duck(table), columns, rows)

    def hand_over(self, table: Table) -> Any:
        """A published table as the caller's own kind of frame."""
        t = _duck(table)
        give = t.frame.give if t.frame else frames.give_relation
        with translated_failures():
            return give(self._named(t, t.value), t.typed)

    def sample_table(self, table: Table, rows: int) -> Any:
        """Rows drawn at random, the same ones each time, as a relation that `open` reads like the source.

        Texts that mean missing are missing there.
        """
        t = _duck(table)
        query = clauses.select([clauses.alias(t.value(name), name) for name in t.names], t.source())
        size, seed = clauses.integer(rows), clauses.integer(1)
        query.set("sample", exp.TableSample(method=exp.var("RESERVOIR"), size=size, seed=seed))
        with translated_failures():
            return frames.give_relation(self._db.relation(query, t.parameters), ())

    def allow(self, memory: int) -> None:
        """Set the memory that the database may use, in bytes."""
        self._db.allow(memory)

    def watch(self, progress: Progress) -> AbstractContextManager[None]:
        """While the context lasts, tell how far a query is, and interrupt it when asked to."""
        return watched(progress, self._db.share, self._db.con.interrupt)

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def _named(self, t: DuckTable, value: Callable[[str], exp.Expression], escaped: bool = False) -> Any:
        """The table under its own column names, in the order of its rows."""
        values = [(name, value(name)) for name in t.names]
        if escaped:
            values = [
                (escape_cell(name), spreadsheet.marked(text) if spreadsheet.can_hold(t.info(name)) else text)
                for name, text in values
            ]
        if value == t.text and len(values) == 1:
            # a lone missing value would be an empty line, which readers skip: write it as ""
            values = [(n, exp.Coalesce(this=v, expressions=[exp.Literal.string("")])) for n, v in values]
        query = clauses.select([clauses.alias(value, name) for name, value in values], t.source())
        return self._db.relation(query, t.parameters)

    def _unchanged(self, t: DuckTable) -> None:
        if not t.stamp.still():
            raise InputError(f"{t.stamp.path}: the file was changed while it was being read; start again")


def _published(t: DuckTable, recoded: recoding.Recoded) -> DuckTable:
    return DuckTable(
        recoded.columns,
        t.caller,
        t.format,
        "the published table",
        recoded.query,
        recoded.parameters,
        clean=True,
        frame=t.frame,
        typed=recoded.typed,
        origin=t.origin,
        sets=t.sets,
        sorts=recoded.sorts,
        made_of=recoded.stored,
        stamp=t.stamp,
    )


def _duck(table: Table) -> DuckTable:
    if not isinstance(table, DuckTable):
        raise TypeError(f"not a table of this engine: {type(table).__name__}")
    return table
