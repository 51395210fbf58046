"""A private DuckDB database in memory: no network, no guessing, spilling to a folder that goes with it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import texts_of
from maskwright.engines.sql.passing import MEMBERS
from maskwright.errors import Cancelled, InputError, UsageError, is_interruption
from maskwright.runtime import disk
from maskwright.runtime.events import Progress
from maskwright.runtime.memory_budget import memory_size

KEY = 100  # bytes: of so much room for each row, what its key takes while keys are sorted is a small part


class Database:
    """A connection that runs sqlglot expressions (a `RowRunner`, see coded_columns.py), and its temporary folder."""

    def __init__(
        self, memory: str | None = None, temp: Path | None = None, threads: int | None = None
    ) -> None:
        limit = None if memory is None else memory_size(memory)
        if temp is None:
            self.temp = disk.scratch_folder()
        else:
            self.temp = Path(tempfile.mkdtemp(prefix="engine-", dir=temp))
        config: dict[str, Any] = {
            "temp_directory": str(self.temp / "spill"),
            # nothing is fetched, loaded or looked up that a query did not ask for
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
            "python_enable_replacements": False,
        }
        if limit is not None:
            config["memory_limit"] = f"{limit}B"
        if threads is not None:
            config["threads"] = threads
        free = shutil.disk_usage(self.temp).free
        config["max_temp_directory_size"] = f"{free * 8 // 10}B"
        try:
            self.con = self._started(config, memory, threads)
        except BaseException:
            disk.remove_scratch(self.temp)
            raise
        self._tables, self._memory = 0, limit or memory_size("50%")
        self._functions: set[str] = set()

    def _started(self, config: dict[str, Any], memory: str | None, threads: int | None) -> Any:
        """A connection with its settings locked; too little memory is told apart from a wrong setting."""
        try:
            with translated_failures():
                con = duckdb.connect(":memory:", config=config)
        except InputError:
            raise _no_start(memory, threads) from None
        # progress is counted, but printed by us; nothing that may be changed later changes a result
        for setting in (
            "enable_progress_bar = true",
            "enable_progress_bar_print = false",
            "progress_bar_time = 0",
            "TimeZone = 'UTC'",
            "allowed_configs = ['memory_limit', 'threads', 'disabled_optimizers']",
            "lock_configuration = true",
        ):
            with translated_failures():
                con.execute(f"SET {setting}")
        return con

    def allow(self, memory: int) -> None:
        """The most memory to use from now on; what is held beyond that goes to disk."""
        with translated_failures():
            self.con.execute(f"SET memory_limit = '{memory}B'")
        self._memory = memory

    def holds_keys(self, rows: int) -> bool:
        """Is there room for a number of each of so many rows, here and in the engine?"""
        return KEY * rows <= self._memory

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """While the context lasts, queries run in one thread."""
        with translated_failures():
            [(threads,)] = self.con.execute("SELECT current_setting('threads')").fetchall()
            self.con.execute("SET threads = 1")
        try:
            yield
        finally:
            self.con.execute(f"SET threads = {int(threads)}")

    def share_no_expressions(self) -> None:
        """From now on, queries are planned in a time that is linear in their columns.

        Each expression is compared with every other one otherwise, to compute equal ones once: a minute for a thousand
        columns.
        """
        with translated_failures():
            self.con.execute("SET disabled_optimizers = 'common_subexpressions'")

    def add_function(self, name: str, function: Callable[[str], str | None]) -> None:
        """From now on queries can call a function of texts by this name; missing stays missing."""
        if name in self._functions:
            return

        def _called(text: str | None) -> str | None:
            return None if text is None else function(text)

        with translated_failures():
            self.con.create_function(name, _called, ["VARCHAR"], "VARCHAR", null_handling="special")
        self._functions.add(name)

    def share(self) -> float:
        """How much of the running query is done, from 0 to 1; negative when that is not known."""
        return float(self.con.query_progress()) / 100

    def run(self, query: exp.Expression, parameters: Mapping[str, Any]) -> None:
        """Run a statement."""
        self.execute(query, parameters)

    def arrays(self, query: exp.Expression, parameters: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """The result of a query of integers without nulls, as one array per column."""
        result = self.execute(query, parameters)
        with translated_failures():
            return {k: np.asarray(v) for k, v in result.fetchnumpy().items()}

    def rows(self, query: exp.Expression, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        result = self.execute(query, parameters)
        with translated_failures():
            return list(result.fetchall())

    @contextmanager
    def tables(self, content: Mapping[str, Mapping[str, np.ndarray[Any, Any]]]) -> Iterator[None]:
        """Small tables of values, there as long as the context."""
        try:
            for name, arrays in content.items():
                with translated_failures():
                    self.con.register(name, dict(arrays))
            yield
        finally:
            for name in content:
                self.con.unregister(name)

    def fill(self, name: str, chunks: Iterator[Mapping[str, np.ndarray[Any, Any]]]) -> None:
        """Make a table from chunks with the same columns, its rows in their order."""
        there = False
        for chunk in chunks:
            query = clauses.select([exp.Star()], clauses.relation("chunk"))
            with self.tables({"chunk": chunk}):
                if there:
                    self.run(exp.Insert(this=clauses.relation(name), expression=query), {})
                else:
                    self.run(clauses.create_table(name, query), {})
            there = True

    def slices(
        self, name: str, columns: Sequence[str], rows: int
    ) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
        """Columns of integers of a stored table, its rows in their order, so many at a time; of an empty table one
        slice without rows."""
        wanted = [clauses.column(column) for column in columns]
        [(n,)] = self.rows(clauses.select([clauses.count()], clauses.relation(name)), {})
        for begin in range(0, max(n, 1), rows):
            here = exp.Between(
                this=clauses.column("rowid"),
                low=clauses.integer(begin),
                high=clauses.integer(begin + rows - 1),
            )
            yield self.arrays(clauses.select(wanted, clauses.relation(name), where=[here]), {})

    def lookup(self, name: str, code: exp.Expression) -> exp.Expression:
        """What a small table (k, t) has for a code, null where it has none. Not a join: rows keep their order."""
        [(first,)] = self.rows(
            clauses.select([exp.Min(this=clauses.column("k"))], clauses.relation(name)), {}
        )
        place = exp.Sub(this=exp.Paren(this=code), expression=clauses.integer(first or 0))
        return self._looked_up(name, clauses.relation(name), clauses.column("t"), place)

    def lookup_text(
        self, name: str, texts: Sequence[str | None], code: exp.Expression, published: bool
    ) -> exp.Expression:
        """The text of a code. Published texts, if they are a few, become members of an enumeration.

        That takes a byte or two in a row, and the Parquet writer need not look it up: it writes all members as the
        dictionary of a column.
        """
        members = sorted({text for text in texts if text is not None}) if published else []
        value: exp.Expression = clauses.column("t")
        if 0 < len(members) <= MEMBERS:
            value = exp.cast(value, self.enumeration(name, members))
        with self.tables({"given": {"k": np.arange(len(texts), dtype=np.int64), "t": texts_of(texts)}}):
            return self._looked_up(name, clauses.relation("given"), value, code)

    def _looked_up(
        self, name: str, table: exp.Table, value: exp.Expression, place: exp.Expression
    ) -> exp.Expression:
        """Make the values of a table (k, t) a variable of the connection, a list in the order of the codes."""
        ordered = exp.Order(this=value, expressions=[clauses.column("k")])
        query = clauses.select([exp.Anonymous(this="list", expressions=[ordered])], table)
        with translated_failures():
            self.con.execute(f"SET VARIABLE {name} = ({query.sql('duckdb')})")
        found = exp.Anonymous(this="getvariable", expressions=[exp.Literal.string(name)])
        place = exp.Add(this=exp.Paren(this=place), expression=clauses.integer(1))
        return exp.Anonymous(this="list_extract", expressions=[found, place])

    def enumeration(self, name: str, texts: Sequence[str]) -> exp.DataType:
        """A type whose members are these texts."""
        with self.tables({"members": {"t": np.array(texts, dtype=object)}}), translated_failures():
            self.con.execute(f"CREATE TYPE {name}_members AS ENUM (FROM members)")
        return exp.DataType.build(f"{name}_members", udt=True)

    @contextmanager
    def stored(self, name: str, query: exp.Expression, parameters: Mapping[str, Any]) -> Iterator[None]:
        """The result of a query as a table, there as long as the context."""
        self.execute(clauses.create_table(name, query), parameters)
        try:
            yield
        finally:
            self.execute(clauses.drop_table(name), {})

    def relation(self, query: exp.Expression, parameters: Mapping[str, Any]) -> Any:
        """A query as a relation of DuckDB, which runs when it is read."""
        with translated_failures():
            return self.con.sql(query.sql("duckdb"), params=clauses.used(query, parameters))

    def new_name(self, kind: str) -> str:
        """A name that no table has yet."""
        self._tables += 1
        return f"{kind}_{self._tables}"

    def execute(self, query: exp.Expression, parameters: Mapping[str, Any]) -> Any:
        """Run a statement, with the parameters that it has."""
        with translated_failures():
            return self.con.execute(query.sql("duckdb"), clauses.used(query, parameters))

    def close(self) -> None:
        """Close the database, and remove what it wrote to disk."""
        self.con.close()
        disk.remove_scratch(self.temp)


@contextmanager
def translated_failures() -> Iterator[None]:
    """Turn what the data or the machine cause into errors of ours; they do not repeat what DuckDB says."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise UsageError(
            "not enough memory or temporary disk space for this table; allow more memory, "
            "or name a temporary folder on a larger disk"
        ) from None
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException):
        raise  # a mistake of ours
    except (
        duckdb.Error,
        UnicodeDecodeError,
    ) as problem:  # what DuckDB says of damaged text is no text itself
        if is_interruption(problem):
            raise KeyboardInterrupt from None
        raise InputError(
            f"the table cannot be read to its end ({type(problem).__name__}); the file may be damaged, "
            "or the temporary disk full"
        ) from None


def _no_start(memory: str | None, threads: int | None) -> UsageError:
    return UsageError(
        f"the engine does not start with memory {memory!r} and threads {threads!r}; "
        "write memory as 4GB or 500MB, threads as a positive number"
    )


EVERY = 0.25  # seconds
STOPPING = {signal.SIGINT, signal.SIGTERM, *({signal.SIGHUP} if hasattr(signal, "SIGHUP") else ())}


class _Watcher(threading.Thread):
    def __init__(self, progress: Progress, share: Callable[[], float], interrupt: Callable[[], None]) -> None:
        super().__init__(name="maskwright-watcher", daemon=True)
        self.progress, self.share, self.interrupt = progress, share, interrupt
        self.end = threading.Event()
        self.stopped = self.signalled = False
        self.signals: int | None = None  # where the numbers of signals can be read
        self.problem: BaseException | None = None

    def run(self) -> None:
        """Tell and ask again and again, until the end."""
        last, since = 0.0, time.monotonic()
        while not self.end.wait(EVERY):
            try:
                if self._is_signalled():
                    self.interrupt()  # the handler runs as soon as the query has ended
                    continue
                if self.stopped or self.progress.stopping:
                    self.stopped = True
                    self.interrupt()  # again and again: a step may have many queries
                    continue
                share = self.share()
                if share < last or last <= 0:
                    since = time.monotonic() - EVERY  # another query
                last = share
                self.progress.pulse(share if share > 0 else None, since)
            except BaseException as problem:  # of the caller's own functions: raised where they wait
                self.problem, self.stopped = problem, True

    def _is_signalled(self) -> bool:
        """Whether a signal came that stops a program."""
        if self.signals is not None and not self.signalled:
            with suppress(BlockingIOError):
                self.signalled = not STOPPING.isdisjoint(os.read(self.signals, 1024))
        return self.signalled


@contextmanager
def _signals() -> Iterator[int | None]:
    """A file that the numbers of signals are written to at once, while the main thread computes outside Python.

    Python calls their handlers only when the query has ended. None: only the main thread hears of signals.
    """
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield None
        return
    try:
        reading, writing = os.pipe()
    except OSError:  # no room for files: signals are heard when the query has ended
        yield None
        return
    for end in (reading, writing):
        os.set_blocking(end, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)


@contextmanager
def watched(progress: Progress, share: Callable[[], float], interrupt: Callable[[], None]) -> Iterator[None]:
    """While the context lasts, `share` (0 to 1, negative: unknown) is told, and `interrupt` called when asked to stop.

    A query that was interrupted raises an error of the engine; here it becomes `Cancelled`, or `KeyboardInterrupt`
    where a signal asked.
    """
    watcher = _Watcher(progress, share, interrupt)
    with _signals() as watcher.signals, _started_watcher(watcher):
        yield


@contextmanager
def _started_watcher(watcher: _Watcher) -> Iterator[None]:
    try:
        watcher.start()
    except RuntimeError:  # no room for a thread: the step runs without anybody watching
        yield
        return
    try:
        yield
    except (Exception, KeyboardInterrupt) as problem:
        watcher.end.set()
        watcher.join()
        if watcher.problem is not None:
            raise watcher.problem from None
        if watcher.stopped:
            raise Cancelled("cancelled; nothing was published") from None
        if is_interruption(problem):
            raise KeyboardInterrupt from None
        raise
    finally:
        watcher.end.set()
        watcher.join()
    if watcher.problem is not None:
        raise watcher.problem
