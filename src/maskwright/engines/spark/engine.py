"""The Spark engine: the same queries as DuckDB's where they are queries, rows on the cluster and nowhere else."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from maskwright.core.classes import Ints
from maskwright.core.events import Progress
from maskwright.core.formulas import Formulas
from maskwright.core.hierarchy import Hierarchy
from maskwright.core.multivalued import SetColumn
from maskwright.core.plan import GroupPlan, Plan
from maskwright.core.summary import Summary
from maskwright.engines import estimating, frequency, questions, sql
from maskwright.engines.base import Domain, Reading, Recount, SummarySpec, Table
from maskwright.engines.spark import session as sessions
from maskwright.errors import InputError, UsageError

sessions.need_pyspark()

from maskwright.engines.spark import coarser, grouped, recoding, recounting, sets, writing  # noqa: E402 - they import pyspark
from maskwright.engines.spark.opening import SparkTable, hashed, open_frame, open_path  # noqa: E402
from maskwright.engines.spark.runner import SparkRunner  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CANCEL_SECONDS = 10.0


class SparkEngine:
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
                self._caller, self._mine = sessions.start(self._master, self._memory)
            self.__runner = SparkRunner(sessions.derived(self._caller), self._tag)
        return self.__runner

    def open(self, source: Any, reading: Reading) -> SparkTable:
        if sessions.is_frame(source):
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
        return table

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

    def count(self, table: Table) -> int:
        return int(self._runner.rows(sql.select([sql.count()], _spark(table).source()), {})[0][0])

    def fingerprint(self, table: Table) -> str:
        t = _spark(table)
        row = hashed([t.hashable(n) for n in t.names])
        total = exp.Sum(this=sql.cast(row, "DECIMAL(38, 0)"))  # of 64-bit numbers: it cannot overflow
        [result] = self._runner.rows(sql.select([sql.count(), total], t.source()), {})
        return hashlib.sha256("\0".join([*map(str, result), *t.names]).encode()).hexdigest()

    def domain(self, table: Table, column: str, limit: int | None = None) -> Domain:
        if limit is not None:  # not all of them may fit
            return questions.domain(self._runner, _spark(table), column, limit)
        _, texts, rows = _spark(table).values(column)
        return questions.domain_of(zip(texts, rows, strict=True))

    def elements(self, table: Table, column: str, separator: str | None) -> Domain:
        return sets.elements(self._runner, _spark(table), column, separator)

    def unfold(self, table: Table, columns: Sequence[SetColumn]) -> SparkTable:
        return sets.unfold(self._runner, _spark(table), columns)

    def fold(self, table: Table, columns: Sequence[SetColumn]) -> SparkTable:
        return sets.fold(self._runner, _spark(table), columns)

    def sample(self, table: Table, rows: int) -> list[dict[str, str | None]]:
        return questions.sample(self._runner, _spark(table), rows)

    def uniqueness(self, table: Table, columns: Sequence[str]) -> tuple[int, int]:
        return questions.uniqueness(self._runner, _spark(table), columns)

    def in_order(
        self, table: Table, columns: Sequence[str], domains: Sequence[tuple[str, ...]], limit: int
    ) -> list[Ints]:
        raise UsageError("rows have no order on Spark; audit a table with the DuckDB engine")

    def combinations(
        self, table: Table, spec: SummarySpec, choices: Sequence[Mapping[str, int]]
    ) -> list[int]:
        return estimating.combinations(self._runner, _spark(table), spec, choices, hashed)

    def coarsen(self, table: Table, hierarchies: Sequence[Hierarchy]) -> SparkTable:
        return coarser.coarsen(self._runner, _spark(table), hierarchies)

    # --- the three passes -------------------------------------------------------------------------

    def summarise(self, table: Table, spec: SummarySpec) -> Summary:
        return frequency.summarise(self._runner, _spark(table), spec)

    def recode(self, table: Table, plan: Plan | GroupPlan) -> SparkTable:
        t, name = _spark(table), self._runner.new_name("published")
        if isinstance(plan, GroupPlan):
            recoded = grouped.recode(self._runner, t, plan, name)
        else:
            recoded = recoding.recode(self._runner, t, plan, name)
        return _published(t, name, recoded, plan.key, plan.n_rows)

    def bucketize(self, table: Table, plan: GroupPlan) -> dict[str, Table]:
        t = _spark(table)
        names = self._runner.new_name("quasi"), self._runner.new_name("sensitive")
        recoded = grouped.bucketize(self._runner, t, plan, names)
        made = [
            _published(t, n, r, f"{plan.key} {i}", plan.n_rows)
            for i, (n, r) in enumerate(zip(names, recoded, strict=True))
        ]
        return {"quasi-identifiers": made[0], "sensitive": made[1]}

    def keep(self, table: Table) -> SparkTable:
        """Store a published table where it is, so that what is counted is what is handed over."""
        t = _spark(table)
        if t.relation in self._persisted:
            return t
        # under a name of its own: a view that is replaced takes with it what is stored of it
        name = self._runner.new_name("kept")
        frame = self._persisted[name] = self._ordered(t).persist()
        self._runner.view(name, frame)
        return replace(t, relation=name, times=None)

    def write(self, table: Table, path: Path, format: str, formulas: Formulas = "refuse") -> None:
        t = _spark(table)
        if format not in ("csv", "parquet"):
            raise UsageError(f"there is no format {format!r}; known: csv, parquet")
        frame = self._ordered(t)
        self._writing = True
        with self._runner.running():
            if format == "parquet":
                writing.write_parquet(frame, t.names, path)
            else:
                self._write_csv(t, frame, path, formulas)
        self._writing = False

    def _write_csv(self, t: SparkTable, frame: DataFrame, path: Path, formulas: Formulas) -> None:
        texts = [sql.alias(t.text(n), f"c{i}") for i, n in enumerate(t.names)]
        self._runner.view(view := self._runner.new_name("ordered"), frame)
        lines = self._runner.frame(sql.select(texts, sql.relation(view, "t")), t.parameters)
        writing.write_csv(lines, t.names, path, formulas)

    def recount(
        self, table: Table, columns: Sequence[str], sensitive: Sequence[str] = (), unit: str | None = None
    ) -> Recount:
        return recounting.recount(self._runner, _spark(table), columns, sensitive, unit)

    def forget(self, table: Table) -> None:
        """Nothing but what `keep` stored lies anywhere, and that goes with the engine."""

    def holds(self, table: Table, columns: Sequence[str], rows: Iterable[Recount]) -> bool:
        return recounting.holds(self._runner, _spark(table), columns, rows)

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
        return writing.named(frame, t.names)

    def allow(self, memory: int) -> None:
        """The memory of executors is a setting of the cluster, that of the driver one of its start."""

    def watch(self, progress: Progress) -> AbstractContextManager[None]:
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
            sessions.leave(caller)

    def _cancel(self, runner: SparkRunner) -> None:
        """Stop our jobs; tasks that write must have ended before their folder is removed, or they make it anew."""
        runner.session.interruptTag(self._tag)
        tracker = runner.session.sparkContext._jsc.sc().statusTracker()  # Python does not have all of it
        end = time.monotonic() + CANCEL_SECONDS
        while self._writing and time.monotonic() < end:
            time.sleep(0.5)
            if not any(executor.numRunningTasks() for executor in tracker.getExecutorInfos()):
                return

    def _ordered(self, t: SparkTable) -> DataFrame:
        names = [f"c{i}" for i in range(len(t.columns))]
        frame = self._frame(t).select(*names, *([t.times] if t.times else []))
        return writing.ordered(frame, names, t.times, t.key, self.count(t) if t.rows is None else t.rows)

    def _frame(self, t: SparkTable) -> DataFrame:
        return self._runner.session.table(str(t.relation))


def _published(t: SparkTable, name: str, recoded: recoding.Recoded, key: str, rows: int | None) -> SparkTable:
    return replace(
        t, columns=recoded.columns, label="the published table", relation=name, parameters={}, clean=True, row="r",
        typed=recoded.typed, key=key, rows=rows, times=recoded.times,
    )  # fmt: skip


def _spark(table: Table) -> SparkTable:
    if not isinstance(table, SparkTable):
        raise TypeError(f"not a table of this engine: {type(table).__name__}")
    return table
