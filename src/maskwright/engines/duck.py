"""The DuckDB engine: embedded, the default. Reads files and tables from Python, and gives back the same kind."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from maskwright.core.classes import Ints
from maskwright.core.events import Progress
from maskwright.core.formulas import Formulas, escape
from maskwright.core.hierarchy import Hierarchy
from maskwright.core.multivalued import SetColumn
from maskwright.core.plan import GroupPlan, Plan
from maskwright.core.summary import Summary
from maskwright.engines import (
    coarser,
    estimating,
    expansion,
    frames,
    frequency,
    grouped,
    ordered,
    postgres,
    questions,
    recoding,
    recounting,
    sets,
    sql,
)
from maskwright.engines import formulas as spreadsheet
from maskwright.engines.base import Domain, Reading, Recount, SummarySpec, Table
from maskwright.engines.database import Database, told
from maskwright.engines.opening import DuckTable, open_frame, open_path, open_postgres
from maskwright.engines.watching import watched
from maskwright.errors import DestinationError, InputError, UsageError


class DuckDBEngine:
    """See `Engine`. One private in-memory database, which spills to `temp`."""

    name = "duckdb"

    def __init__(
        self, memory: str | None = None, temp: Path | None = None, threads: int | None = None
    ) -> None:
        self._db = Database(memory, temp, threads)

    def open(self, source: Any, reading: Reading) -> DuckTable:
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
        return table

    # --- small questions --------------------------------------------------------------------------

    def count(self, table: Table) -> int:
        return int(self._db.rows(sql.select([sql.count()], _duck(table).source()), {})[0][0])

    def fingerprint(self, table: Table) -> str:
        t = _duck(table)
        huge = {c.name for c in t.columns if "HUGEINT" in c.type.upper()}  # their own hash is weak
        values = [sql.cast(t.raw(name), "TEXT") if name in huge else t.raw(name) for name in t.names]
        row = exp.Anonymous(this="hash", expressions=values)
        total = exp.Sum(this=sql.cast(row, "HUGEINT"))  # of 64-bit numbers: it cannot overflow
        [result] = self._db.rows(sql.select([sql.count(), total], t.source()), {})
        return hashlib.sha256("\0".join([*map(str, result), *t.names]).encode()).hexdigest()

    def domain(self, table: Table, column: str, limit: int | None = None) -> Domain:
        return questions.domain(self._db, _duck(table), column, limit)

    def elements(self, table: Table, column: str, separator: str | None) -> Domain:
        return sets.elements(self._db, _duck(table), column, separator)

    def unfold(self, table: Table, columns: Sequence[SetColumn]) -> DuckTable:
        t = _duck(table)
        unfolded = sets.unfold(self._db, t, columns)
        self._unchanged(t)
        return unfolded

    def fold(self, table: Table, columns: Sequence[SetColumn]) -> DuckTable:
        return sets.fold(self._db, _duck(table), columns)

    def coarsen(self, table: Table, hierarchies: Sequence[Hierarchy]) -> DuckTable:
        return coarser.coarsen(self._db, _duck(table), hierarchies)

    def sample(self, table: Table, rows: int) -> list[dict[str, str | None]]:
        return questions.sample(self._db, _duck(table), rows)

    def uniqueness(self, table: Table, columns: Sequence[str]) -> tuple[int, int]:
        return questions.uniqueness(self._db, _duck(table), columns)

    def in_order(
        self, table: Table, columns: Sequence[str], domains: Sequence[tuple[str, ...]], limit: int
    ) -> list[Ints]:
        return ordered.in_order(self._db, _duck(table), columns, domains, limit)

    def combinations(
        self, table: Table, spec: SummarySpec, choices: Sequence[Mapping[str, int]]
    ) -> list[int]:
        return estimating.combinations(self._db, _duck(table), spec, choices)

    # --- the three passes -------------------------------------------------------------------------

    def summarise(self, table: Table, spec: SummarySpec) -> Summary:
        return frequency.summarise(self._db, _duck(table), spec)

    def recode(self, table: Table, plan: Plan | GroupPlan) -> DuckTable:
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
        t = _duck(table)
        self._unchanged(t)
        names = self._db.new_name("quasi"), self._db.new_name("sensitive")
        recoded = grouped.bucketize(self._db, t, plan, names)
        self._unchanged(t)
        made = [_published(t, part) for part in recoded]
        return {"quasi-identifiers": made[0], "sensitive": made[1]}

    def keep(self, table: Table) -> DuckTable:
        t = _duck(table)
        if not t.sorts:
            return t
        name = self._db.new_name("kept")
        stored = [sql.alias(t.stored(n), f"c{i}") for i, n in enumerate(t.names)]
        try:
            self._db.run(sql.create_table(name, sql.select(stored, t.source())), t.parameters)
        except InputError:
            self._unchanged(t)
            raise
        return replace(t, relation=name, parameters={}, sorts=False)

    def forget(self, table: Table) -> None:
        for name in _duck(table).made_of:
            self._db.run(sql.drop_table(name), {})

    def write(self, table: Table, path: Path, format: str, formulas: Formulas = "refuse") -> None:
        t = _duck(table)
        if format not in ("csv", "parquet"):
            raise UsageError(f"there is no format {format!r}; known: csv, parquet")
        if format == "parquet" or formulas != "refuse":
            self._write(t, path, format, formulas)
            return
        kept = self.keep(t)
        try:
            for info in kept.columns:
                spreadsheet.refuse_name(info.name)
                if spreadsheet.can_hold(info):
                    self._refuse_formulas(kept, info.name)
            self._write(kept, path, format, formulas)
        finally:
            if kept is not t:
                self._db.run(sql.drop_table(str(kept.relation)), {})

    def _refuse_formulas(self, t: DuckTable, name: str) -> None:
        members = self._db.members(sql.select([t.stored(name)], t.source()), t.parameters)
        if members is None:
            spreadsheet.refuse(self._db, t.source(), name, t.text(name), t.parameters)
        else:  # rows have nothing else, and all of them are published
            spreadsheet.refuse_among(name, members)

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
        return recounting.recount(self._db, _duck(table), columns, sensitive, unit)

    def holds(self, table: Table, columns: Sequence[str], rows: Iterable[Recount]) -> bool:
        return recounting.holds(self._db, _duck(table), columns, rows)

    def hand_over(self, table: Table) -> Any:
        t = _duck(table)
        give = t.frame.give if t.frame else frames.give_relation
        with told():
            return give(self._named(t, t.value), t.typed)

    def allow(self, memory: int) -> None:
        self._db.allow(memory)

    def watch(self, progress: Progress) -> AbstractContextManager[None]:
        return watched(progress, self._db.share, self._db.con.interrupt)

    def close(self) -> None:
        self._db.close()

    def _named(self, t: DuckTable, value: Callable[[str], exp.Expression], escaped: bool = False) -> Any:
        """The table under its own column names, in the order of its rows."""
        values = [(name, value(name)) for name in t.names]
        if escaped:
            values = [
                (escape(name), spreadsheet.marked(text) if spreadsheet.can_hold(t.info(name)) else text)
                for name, text in values
            ]
        if value == t.text and len(values) == 1:
            # a lone missing value would be an empty line, which readers skip: write it as ""
            values = [(n, exp.Coalesce(this=v, expressions=[exp.Literal.string("")])) for n, v in values]
        query = sql.select([sql.alias(value, name) for name, value in values], t.source())
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
