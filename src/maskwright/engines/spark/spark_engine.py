"""The Spark engine: the same queries as DuckDB's where they are queries, rows on the cluster and nowhere else."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.recoding_plan import GroupPlan, Plan
from maskwright.domain.spreadsheets import Formulas
from maskwright.domain.value_sets import SetColumn
from maskwright.engines import is_spark_frame
from maskwright.engines.base import Domain, Reading, Recount, Table
from maskwright.engines.spark import spark_session as sessions
from maskwright.engines.sql import clauses, coarsening, preparing, set_columns, table_queries
from maskwright.engines.sql.sql_engine import SqlEngine
from maskwright.errors import InputError, UsageError
from maskwright.identifiers.date_shifts import DateOffsets
from maskwright.identifiers.pseudonyms import Pseudonyms
from maskwright.runtime.events import Progress
from maskwright.runtime.time_budget import TimeBudget

sessions.need_pyspark()

from maskwright.engines.spark import (  # noqa: E402 - they import pyspark
    published_rows,
    spark_recoding,
)
from maskwright.engines.spark.runner import SparkRunner  # noqa: E402
from maskwright.engines.spark.spark_opening import SparkCoded, SparkTable, open_frame, open_path  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CANCEL_SECONDS = 10.0
NOT_PERTURBED = (
    "only the DuckDB engine publishes columns with changes (`publish`): groups, ranks and errors "
    "are computed on one machine; use it, or publish these columns unchanged"
)


class SparkEngine(SqlEngine):
    """See `Engine`. The session is that of the first data frame, the one that runs already, or a new one."""

    name = "spark"

    def __init__(self, memory: str | None = None, master: str | None = None) -> None:
        self._memory, self._master = memory, master
        self._caller: SparkSession | None = None
        self._mine = False  # the session was started by an engine, and ends with the last one that uses it
        self._tag = f"maskwright-{secrets.token_hex(8)}"
        self._kept: list[DataFrame] = []
        self._persisted: dict[str, DataFrame] = {}
        self._writing = False
        self.__runner: SparkRunner | None = None

    @property
    def _runner(self) -> SparkRunner:
        if self.__runner is None:
            if self._caller is None:
                self._caller, self._mine = sessions.start_session(self._master, self._memory)
            self.__runner = SparkRunner(sessions.own_session(self._caller), self._tag)
        return self.__runner

    def _own(self, table: Table) -> SparkTable:
        if not isinstance(table, SparkTable):
            raise TypeError(f"not a table of this engine: {type(table).__name__}")
        return table

    def open(self, source: Any, reading: Reading) -> SparkTable:
        """Open a path that all workers see, or a data frame of PySpark."""
        if is_spark_frame(source):
            table = self._open_frame(source, reading)
        elif isinstance(source, (str, Path)):
            table = open_path(self._runner, source, reading, self._kept)
        else:
            raise InputError(
                f"the Spark engine reads paths and data frames of PySpark, not a {type(source).__module__}."
                f"{type(source).__name__}; convert it with spark.createDataFrame, or leave out engine='spark'"
            )
        with self._runner.running():
            empty = self._frame(table).isEmpty()
        if empty:
            raise InputError(f"{table.label}: there are column names but no rows")
        return self.prepare(table, reading.prepare)

    def prepare(self, table: Table, steps: preparing.Preparing) -> SparkTable:
        """The table with its messy columns made plain, a view that is evaluated when it is read."""
        t = self._own(table)
        if not steps:
            return t
        if preparing.redactions(t, steps):
            raise UsageError(
                "redact is not supported on Spark; use engine: duckdb, or redact the texts before"
            )
        repairs = (*t.repairs, *preparing.counted_repairs(self._runner, t, steps))
        identity, name = self.fingerprint(t), self._runner.new_name("prepared")
        infos, items, parameters = preparing.prepared_columns(t, steps)
        items.append(clauses.alias(t.row_number(), t.row))
        self._runner.run(clauses.create_table(name, clauses.select(items, t.source())), parameters)
        return replace(t, columns=infos, relation=name, repairs=repairs, identity=identity)

    def pseudonymise(self, table: Table, pseudonyms: Mapping[str, Pseudonyms]) -> SparkTable:
        """The table with pseudonyms in some columns, a view that is evaluated when it is read."""
        t, name = self._own(table), self._runner.new_name("pseudonyms")
        more = [] if t.clean else [clauses.alias(t.row_number(), t.row)]
        if t.times is not None:
            more.append(clauses.alias(clauses.column(t.times, "t"), t.times))
        infos, query, parameters = preparing.pseudonymised_columns(t, pseudonyms, more)
        self._runner.run(clauses.create_table(name, query), parameters)
        return replace(t, columns=infos, relation=name, typed=t.typed - pseudonyms.keys())

    def shift_dates(
        self, table: Table, columns: Sequence[str], person: str, offsets: DateOffsets
    ) -> SparkTable:
        """Refused: dates are moved in this process only."""
        raise UsageError("shift_dates is not supported on Spark; use engine: duckdb")

    def draw_rows(self, table: Table, most: int, person: str, draw: Pseudonyms) -> SparkTable:
        """See `Engine.draw_rows`: a view that is evaluated when it is read."""
        t, name = self._own(table), self._runner.new_name("drawn")
        identity, (query, parameters) = self.fingerprint(t), preparing.drawn_rows(t, most, person, draw)
        *columns, row = query.expressions
        query.set("expressions", [*columns, clauses.alias(row, t.row)])
        self._runner.run(clauses.create_table(name, query), parameters)
        return replace(t, relation=name, identity=identity)

    def _open_frame(self, frame: DataFrame, reading: Reading) -> SparkTable:
        if "connect" in type(frame).__module__:
            raise InputError(
                "data frames of Spark Connect are not supported; use a session with a Spark context of its own"
            )
        if self._caller is None:
            self._caller = frame.sparkSession
        elif self._caller.sparkContext is not frame.sparkSession.sparkContext:
            raise InputError("the data frames are of different Spark clusters")
        return open_frame(self._runner, frame, reading)

    # --- small questions --------------------------------------------------------------------------

    def domain(self, table: Table, column: str, limit: int | None = None) -> Domain:
        """Distinct canonical values, from what is known of the column already."""
        if limit is not None:  # not all of them may fit
            return table_queries.domain(self._runner, self._own(table), column, limit)
        _, texts, rows = self._own(table).values(column)
        return table_queries.domain_of(zip(texts, rows, strict=True))

    def unfold(self, table: Table, columns: Sequence[SetColumn]) -> SparkTable:
        """The table with its columns of sets replaced by their bits."""
        t, name = self._own(table), self._runner.new_name("unfolded")
        infos, items, parameters = set_columns.unfolded_columns(t, columns)
        if not t.clean:
            items.append(clauses.alias(t.row_number(), t.row))
        self._runner.run(clauses.create_table(name, clauses.select(items, t.source())), parameters)
        return replace(t, columns=infos, relation=name, sets={s.name: t.info(s.name) for s in columns})

    def fold(self, table: Table, columns: Sequence[SetColumn]) -> SparkTable:
        """A recoded table with its bits put together again."""
        t, name = self._own(table), self._runner.new_name("folded")
        infos, items, parameters = set_columns.folded_columns(t, columns, t.sets)
        if t.times is not None:
            items.append(clauses.alias(clauses.column(t.times, "t"), t.times))
        self._runner.run(clauses.create_table(name, clauses.select(items, t.source())), parameters)
        return replace(t, columns=infos, relation=name, typed=set_columns.typed_with_sets(t.typed, columns))

    def in_order(
        self, table: Table, columns: Sequence[str], domains: Sequence[tuple[str, ...]], limit: int
    ) -> list[Ints]:
        """Refuse: rows have no order here."""
        raise UsageError("rows have no order on Spark; audit a table with the DuckDB engine")

    def row_texts(
        self, table: Table, columns: Sequence[str], hashed: bool = False
    ) -> tuple[dict[str, NDArray[np.object_]], NDArray[np.uint64]]:
        """Refuse: whole columns are not fetched here."""
        raise UsageError(NOT_PERTURBED)

    def add_columns(self, table: Table, columns: Mapping[str, tuple[str, NDArray[np.object_]]]) -> SparkTable:
        """Refuse: columns are not made on the driver."""
        raise UsageError(NOT_PERTURBED)

    def shown_columns(self, table: Table, columns: Mapping[str, str]) -> SparkTable:
        """Refuse: there are no such columns here."""
        raise UsageError(NOT_PERTURBED)

    def sample_table(self, table: Table, rows: int) -> Any:
        """Refuse: what is tried on a sample is tried with the DuckDB engine."""
        raise UsageError(
            "settings are not tried on Spark; try them on a sample of the table with the DuckDB engine"
        )

    def coarsen(self, table: Table, hierarchies: Sequence[Hierarchy]) -> SparkTable:
        """The table with labels in place of values, which are joined to its rows."""
        return coarsening.coarsen_unordered(self._runner, self._own(table), hierarchies, SparkCoded)

    # --- the three passes -------------------------------------------------------------------------

    def recode(self, table: Table, plan: Plan | GroupPlan) -> SparkTable:
        """The published table, a view that is evaluated when it is read."""
        t, name = self._own(table), self._runner.new_name("published")
        if isinstance(plan, GroupPlan):
            recoded = spark_recoding.recode_groups(self._runner, t, plan, name)
        else:
            recoded = spark_recoding.recode_columns(self._runner, t, plan, name)
        return _published(t, name, recoded, plan.key, plan.n_rows)

    def bucketize(self, table: Table, plan: GroupPlan) -> dict[str, Table]:
        """Two tables with the same group numbers, views that are evaluated when they are read."""
        t = self._own(table)
        names = self._runner.new_name("quasi"), self._runner.new_name("sensitive")
        recoded = spark_recoding.bucketize_groups(self._runner, t, plan, names)
        made = [
            _published(t, n, r, f"{plan.key} {i}", plan.n_rows)
            for i, (n, r) in enumerate(zip(names, recoded, strict=True))
        ]
        return {"quasi-identifiers": made[0], "sensitive": made[1]}

    def keep(self, table: Table) -> SparkTable:
        """Store a published table where it is, so that what is counted is what is handed over."""
        t = self._own(table)
        if t.relation in self._persisted:
            return t
        # under a name of its own: a view that is replaced takes with it what is stored of it
        name = self._runner.new_name("kept")
        frame = self._persisted[name] = self._ordered(t).persist()
        self._runner.view(name, frame)
        return replace(t, relation=name, times=None)

    def write(self, table: Table, path: Path, format: str, formulas: Formulas = "refuse") -> None:
        """Write a recoded table; the workers do, in an order that depends on the published rows and the key alone."""
        t = self._own(table)
        if format not in ("csv", "parquet"):
            raise UsageError(f"there is no format {format!r}; known: csv, parquet")
        frame = self._ordered(t)
        self._writing = True
        with self._runner.running():
            if format == "parquet":
                published_rows.write_parquet(frame, t.names, path)
            else:
                self._write_csv(t, frame, path, formulas)
        self._writing = False

    def _write_csv(self, t: SparkTable, frame: DataFrame, path: Path, formulas: Formulas) -> None:
        texts = [clauses.alias(t.text(n), f"c{i}") for i, n in enumerate(t.names)]
        self._runner.view(view := self._runner.new_name("ordered"), frame)
        lines = self._runner.frame(clauses.select(texts, clauses.relation(view, "t")), t.parameters)
        published_rows.write_csv(lines, t.names, path, formulas)

    def recount(
        self, table: Table, columns: Sequence[str], sensitive: Sequence[str] = (), unit: str | None = None
    ) -> Recount:
        """Group a table by its columns as they are."""
        return published_rows.recount_classes(self._runner, self._own(table), columns, sensitive, unit)

    def forget(self, table: Table) -> None:
        """Nothing but what `keep` stored lies anywhere, and that goes with the engine."""

    def holds(self, table: Table, columns: Sequence[str], rows: Iterable[Recount]) -> bool:
        """Does a table have exactly these rows, in any order? They are counted and compared."""
        return published_rows.holds_rows(self._runner, self._own(table), columns, rows)

    def hand_over(self, table: Table) -> Any:
        """A data frame of the caller's session. It stays stored on the cluster, as it was recounted."""
        t = self.keep(table)
        assert self._caller is not None  # noqa: S101 - for the type checker
        name = self._runner.new_name(f"maskwright_{id(self):x}")
        frame = sessions.passed_on(self._persisted[str(t.relation)], self._caller, name)
        del self._persisted[str(t.relation)]
        self._runner.leave(str(t.relation))
        if self._mine:  # the table lives as long as its session
            self._mine = False
            sessions.give_away(self._caller)
        return published_rows.named_columns(frame, t.names)

    def allow(self, memory: int) -> None:
        """The memory of executors is a setting of the cluster, that of the driver one of its start."""

    def watch(self, progress: Progress) -> AbstractContextManager[None]:
        """Tell nothing: Spark does not say how far a job is. What stops one is Ctrl-C."""
        return nullcontext()

    def close(self) -> None:
        """Stop what is still running, and forget what was stored."""
        runner, self.__runner = self.__runner, None
        if runner is not None:
            with suppress(Exception):  # the cluster may be gone
                self._cancel(runner)
            for frame in [*self._kept, *self._persisted.values()]:
                with suppress(Exception):
                    frame.unpersist()
            with suppress(Exception):
                runner.close()
            self._kept.clear()
            self._persisted.clear()
        if self._mine and self._caller is not None:
            caller, self._caller, self._mine = self._caller, None, False
            sessions.leave_session(caller)

    def _cancel(self, runner: SparkRunner) -> None:
        """Stop our jobs; tasks that write must have ended before their folder is removed, or they make it anew."""
        runner.session.interruptTag(self._tag)
        tracker = runner.session.sparkContext._jsc.sc().statusTracker()  # Python does not have all of it
        patience = TimeBudget(CANCEL_SECONDS, time.monotonic)
        while self._writing and not patience.is_over:
            time.sleep(0.5)
            if not any(executor.numRunningTasks() for executor in tracker.getExecutorInfos()):
                return

    def _ordered(self, t: SparkTable) -> DataFrame:
        names = [f"c{i}" for i in range(len(t.columns))]
        frame = self._frame(t).select(*names, *([t.times] if t.times else []))
        return published_rows.ordered_rows(
            frame, names, t.times, t.key, self.count(t) if t.rows is None else t.rows
        )

    def _frame(self, t: SparkTable) -> DataFrame:
        return self._runner.session.table(str(t.relation))


def _published(
    t: SparkTable, name: str, recoded: spark_recoding.RecodedView, key: str, rows: int | None
) -> SparkTable:
    return replace(
        t, columns=recoded.columns, label="the published table", relation=name, parameters={}, clean=True, row="r",
        typed=recoded.typed, key=key, rows=rows, times=recoded.times,
    )  # fmt: skip
