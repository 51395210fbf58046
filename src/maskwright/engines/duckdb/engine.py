"""The DuckDB engine: embedded, the default. Reads files and tables from Python, and gives back the same kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from maskwright.domain.classes import Ints
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.recoding_plan import GroupPlan, Plan
from maskwright.domain.spreadsheets import Formulas, escape_cell
from maskwright.domain.value_sets import SetColumn
from maskwright.engines.base import Domain, Reading, Recount, Table
from maskwright.engines.duckdb import formulas as spreadsheet
from maskwright.engines.duckdb import grouped, recounting
from maskwright.engines.duckdb.database import Database, told, watched
from maskwright.engines.duckdb.opening import DuckTable, open_frame, open_path, open_postgres
from maskwright.engines.readers import frames, postgres
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
from maskwright.engines.sql.sql_engine import SqlEngine
from maskwright.errors import DestinationError, InputError, UsageError
from maskwright.runtime.events import Progress

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
        t = _duck(table)
        if not steps:
            return t
        repairs = (*t.repairs, *preparing.counted_repairs(self._db, t, steps))
        identity, name = self.fingerprint(t), self._db.new_name("prepared")
        infos, items, parameters = preparing.prepared_columns(t, steps)
        self._db.run(clauses.create_table(name, clauses.select(items, t.source())), parameters)
        self._unchanged(t)
        return replace(
            t, columns=infos, relation=name, row="rowid", stamp=Stamp(), repairs=repairs, identity=identity
        )

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
            recoded = grouped.recode(self._db, t, plan, name)
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
        recoded = grouped.bucketize(self._db, t, plan, names)
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
            with told():
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
        with told():
            return give(self._named(t, t.value), t.typed)

    def sample_table(self, table: Table, rows: int) -> Any:
        """So many rows drawn at random, the same ones each time, as an Arrow table that `open` reads like the source.

        Texts that mean missing are missing there.
        """
        t = _duck(table)
        query = clauses.select([clauses.alias(t.value(name), name) for name in t.names], t.source())
        size, seed = clauses.integer(rows), clauses.integer(1)
        query.set("sample", exp.TableSample(method=exp.var("RESERVOIR"), size=size, seed=seed))
        with told():
            return self._db.relation(query, t.parameters).to_arrow_table()

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
