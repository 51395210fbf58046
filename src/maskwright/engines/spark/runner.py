"""Queries on a Spark session: sqlglot expressions in, arrays or views out (a `Runner`, see engines/coding.py)."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession
from sqlglot import exp

from maskwright.engines import sql
from maskwright.engines.coding import Arrays, texts_of
from maskwright.engines.spark.dialect import rendered
from maskwright.engines.spark.session import unnoticed
from maskwright.errors import Cancelled, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkRunner:
    """A session of our own; its views go with it."""

    def __init__(self, session: SparkSession, tag: str) -> None:
        self.session = session
        self._tag = tag  # of our jobs
        session.addTag(tag)
        self._views: set[str] = set()
        self._made = 0

    def frame(self, query: exp.Expression, parameters: Mapping[str, Any]) -> DataFrame:
        text, arguments = rendered(query, parameters)
        with told():
            return self.session.sql(text, args=arguments)

    def run(self, query: exp.Expression, parameters: Mapping[str, Any]) -> None:
        """Create a table or a view. Either is a view that is evaluated when it is read, and has no order."""
        if not isinstance(query, exp.Create):
            raise TypeError(f"not a statement for Spark: {type(query).__name__}")
        select = query.expression
        select.set("order", None)
        self.view(query.this.name, self.frame(select, parameters))

    def arrays(self, query: exp.Expression, parameters: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        found = self.arrow(query, parameters)
        return {name: found.column(name).to_numpy() for name in found.column_names}

    def arrow(self, query: exp.Expression, parameters: Mapping[str, Any]) -> pa.Table:
        frame = self.frame(query, parameters)
        with self.running():
            return frame.toArrow()

    def rows(self, query: exp.Expression, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        frame = self.frame(query, parameters)
        with self.running():
            return [tuple(row) for row in frame.collect()]

    @contextmanager
    def tables(self, content: Mapping[str, Arrays]) -> Iterator[None]:
        """Arrays as views; what was made of them meanwhile stays valid."""
        try:
            for name, arrays in content.items():
                self.view(name, self.from_arrays(arrays))
            yield
        finally:
            for name in content:
                self.drop(name)

    def lookup_text(
        self, name: str, texts: Sequence[str | None], code: exp.Expression, published: bool
    ) -> exp.Expression:
        content = {"k": np.arange(len(texts), dtype=np.int64), "t": texts_of(texts)}
        with self.tables({f"{name}_given": content}):
            query = sql.select(sql.columns(["k", "t"]), sql.relation(f"{name}_given"))
            self.run(sql.create_table(name, query), {})
        return self.lookup(name, code)

    def lookup(self, name: str, code: exp.Expression) -> exp.Expression:
        """By its place in a list, which is made once and sent with the query: no rows are joined."""
        pair = exp.Anonymous(this="struct", expressions=sql.columns(["k", "t"]))
        pairs = exp.Anonymous(
            this="array_sort", expressions=[exp.Anonymous(this="collect_list", expressions=[pair])]
        )
        texts = exp.Anonymous(this="transform", expressions=[pairs, _member("t")])
        first = exp.Min(this=sql.column("k"))
        known = [sql.select([item], sql.relation(name)).subquery(copy=False) for item in (texts, first)]
        place = exp.Sub(this=exp.Paren(this=code), expression=known[1])
        return exp.Anonymous(this="get", expressions=[known[0], sql.cast(place, "INT")])

    @contextmanager
    def stored(self, name: str, query: exp.Expression, parameters: Mapping[str, Any]) -> Iterator[None]:
        frame = self.frame(query, parameters).persist()
        self.view(name, frame)
        try:
            yield
        finally:
            self.drop(name)
            frame.unpersist()

    def view(self, name: str, frame: DataFrame) -> None:
        with told():
            frame.createOrReplaceTempView(name)
        self._views.add(name)

    def drop(self, name: str) -> None:
        self.session.catalog.dropTempView(name)
        self._views.discard(name)

    def leave(self, name: str) -> None:
        """Do not drop a view in the end: what is stored of it would go, too. It goes with the session."""
        self._views.discard(name)

    @contextmanager
    def running(self) -> Iterator[None]:
        """While a job runs: Ctrl-C cancels it, and is then an interrupt as always.

        Spark's own handler talks to Java from inside the call that it interrupts, which now and then confuses both.
        Here another thread cancels, and the call ends by itself.
        """
        if threading.current_thread() is not threading.main_thread():
            with told():
                yield
            return
        pressed, ended = threading.Event(), threading.Event()

        def cancel() -> None:
            while not ended.is_set():
                self.session.interruptTag(self._tag)
                ended.wait(0.5)

        def on_interrupt(*_: Any) -> None:
            pressed.set()
            threading.Thread(target=cancel, daemon=True).start()

        before = signal.signal(signal.SIGINT, on_interrupt)
        try:
            with told():
                yield
        except BaseException:
            if pressed.is_set():
                raise KeyboardInterrupt from None
            raise
        finally:
            ended.set()
            signal.signal(signal.SIGINT, before or signal.default_int_handler)
        if pressed.is_set():
            raise KeyboardInterrupt

    def new_name(self, kind: str) -> str:
        self._made += 1
        return f"{kind}_{self._made}"

    def close(self) -> None:
        for name in list(self._views):
            self.drop(name)

    def from_arrays(self, arrays: Arrays) -> DataFrame:
        table = pa.table({name: _column(array) for name, array in arrays.items()})
        with told(), unnoticed(self.session):
            return self.session.createDataFrame(table)


def _member(name: str) -> exp.Expression:
    """A function that takes a structure and gives one of its members."""
    x = exp.to_identifier("x")
    return exp.Lambda(this=exp.Dot(this=x.copy(), expression=exp.to_identifier(name)), expressions=[x])


def _column(array: Any) -> Any:
    if isinstance(array, pa.ChunkedArray):  # as Spark gave it to us
        return array
    if isinstance(array, np.ma.MaskedArray):
        return pa.array(array.filled(), mask=np.ma.getmaskarray(array), type=pa.string())
    return pa.array(array, type=pa.string() if array.dtype == object else None)


@contextmanager
def told() -> Iterator[None]:
    """Turn what the data or the cluster cause into errors of ours; they do not repeat what Spark says."""
    from py4j.protocol import Py4JError

    try:
        yield
    except (AnalysisException, ParseException):
        raise  # a mistake of ours
    except (PySparkException, Py4JError) as problem:
        stopped(problem)
        raise InputError(explained(problem)) from None


def stopped(problem: BaseException) -> None:
    """Raise what really happened where a job failed because somebody stopped it."""
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):  # Spark's own error may come after it
            raise KeyboardInterrupt from None
        cause = cause.__context__
    if re.search(r"\b(Job|Stage) \d+ (was )?cancelled|OPERATION_CANCELED", str(problem)):
        raise Cancelled("the jobs were cancelled on the cluster; nothing was published") from None


def explained(problem: Exception) -> str:
    """What went wrong on the cluster, in words that hold no values of the table."""
    text = str(problem)
    if "FileNotFound" in text or "FILE_NOT_EXIST" in text or "FILE_NOT_FOUND" in text:
        return (
            "a worker does not find a file; paths must be on a file system that the driver and all workers share "
            "(or hdfs://, s3a://, …)"
        )
    if "CSV header" in text:
        file = re.search(r"while reading file (.+?)\.\s+SQLSTATE", text)
        return (
            f"{unquote(file[1]) if file else 'a CSV file'}: its header is not that of the other files, or has no name "
            "for a column, or a name twice; the files of a folder are one table: convert this one, or move it out"
        )
    if "CSVOptions" in text and "CHARSET" in text.upper():
        return "Spark does not know the encoding of the CSV file; convert it to UTF-8"
    if "OutOfMemory" in text:
        return "a worker or the driver ran out of memory; give them more (--memory, spark.executor.memory)"
    if "MALFORMED" in text or "TextParsingException" in text:
        return "the CSV file has a line that cannot be read; the DuckDB engine (maskwright init FILE) names the line"
    if "NO_SPACE" in text or "No space left" in text:
        return "a disk of the cluster is full"
    kind = getattr(problem, "getCondition", lambda: None)() or type(problem).__name__
    return f"Spark could not finish the query ({kind}); the log of the driver says more, and may show data"
