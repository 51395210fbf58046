"""Queries on a Spark session: sqlglot expressions in, arrays or views out (a `Runner`, see coded_columns.py).

`MaskwrightSpark` is the dialect: all that must differ from what DuckDB is asked, where sqlglot does not see to it.
"""

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
from sqlglot.dialects.spark import Spark

from maskwright.engines.spark.spark_session import keeping_active_session
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Arrays, texts_of
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
        """A query as a data frame, which is evaluated when it is read."""
        text, arguments = _rendered(query, parameters)
        with translated_errors():
            return self.session.sql(text, args=arguments)

    def run(self, query: exp.Expression, parameters: Mapping[str, Any]) -> None:
        """Create a table or a view. Either is a view that is evaluated when it is read, and has no order."""
        if not isinstance(query, exp.Create):
            raise TypeError(f"not a statement for Spark: {type(query).__name__}")
        select = query.expression
        select.set("order", None)
        self.view(query.this.name, self.frame(select, parameters))

    def arrays(self, query: exp.Expression, parameters: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """The result of a query of integers without nulls, as one array per column."""
        found = self.arrow(query, parameters)
        return {name: found.column(name).to_numpy() for name in found.column_names}

    def holds_keys(self, rows: int) -> bool:
        """Rows never come to the driver."""
        return False

    def arrow(self, query: exp.Expression, parameters: Mapping[str, Any]) -> pa.Table:
        """The result of a query as an Arrow table."""
        frame = self.frame(query, parameters)
        with self.running():
            return frame.toArrow()

    def rows(self, query: exp.Expression, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a query's result."""
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
        """The text of a code, which is its place in the list."""
        content = {"k": np.arange(len(texts), dtype=np.int64), "t": texts_of(texts)}
        with self.tables({f"{name}_given": content}):
            query = clauses.select(clauses.columns(["k", "t"]), clauses.relation(f"{name}_given"))
            self.run(clauses.create_table(name, query), {})
        return self.lookup(name, code)

    def lookup(self, name: str, code: exp.Expression) -> exp.Expression:
        """By its place in a list, which is made once and sent with the query: no rows are joined."""
        pair = exp.Anonymous(this="struct", expressions=clauses.columns(["k", "t"]))
        pairs = exp.Anonymous(
            this="array_sort", expressions=[exp.Anonymous(this="collect_list", expressions=[pair])]
        )
        texts = exp.Anonymous(this="transform", expressions=[pairs, _member("t")])
        first = exp.Min(this=clauses.column("k"))
        known = [
            clauses.select([item], clauses.relation(name)).subquery(copy=False) for item in (texts, first)
        ]
        place = exp.Sub(this=exp.Paren(this=code), expression=known[1])
        return exp.Anonymous(this="get", expressions=[known[0], clauses.cast(place, "INT")])

    @contextmanager
    def stored(self, name: str, query: exp.Expression, parameters: Mapping[str, Any]) -> Iterator[None]:
        """The result of a query as a stored table, there as long as the context."""
        frame = self.frame(query, parameters).persist()
        self.view(name, frame)
        try:
            yield
        finally:
            self.drop(name)
            frame.unpersist()

    def view(self, name: str, frame: DataFrame) -> None:
        """Give a data frame a name that queries may use."""
        with translated_errors():
            frame.createOrReplaceTempView(name)
        self._views.add(name)

    def drop(self, name: str) -> None:
        """Take a name away again."""
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
            with translated_errors():
                yield
            return
        pressed, ended = threading.Event(), threading.Event()

        def _cancel() -> None:
            while not ended.is_set():
                self.session.interruptTag(self._tag)
                ended.wait(0.5)

        def _on_interrupt(*_: Any) -> None:
            pressed.set()
            threading.Thread(target=_cancel, daemon=True).start()

        before = signal.signal(signal.SIGINT, _on_interrupt)
        try:
            with translated_errors():
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
        """A name that nothing has yet."""
        self._made += 1
        return f"{kind}_{self._made}"

    def close(self) -> None:
        """Take all names away."""
        for name in list(self._views):
            self.drop(name)

    def from_arrays(self, arrays: Arrays) -> DataFrame:
        """Arrays as a data frame."""
        table = pa.table({name: _column(array) for name, array in arrays.items()})
        with translated_errors(), keeping_active_session(self.session):
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
def translated_errors() -> Iterator[None]:
    """Turn what the data or the cluster cause into errors of ours; they do not repeat what Spark says."""
    from py4j.protocol import Py4JError

    try:
        yield
    except (AnalysisException, ParseException):
        raise  # a mistake of ours
    except (PySparkException, Py4JError) as problem:
        raise_if_stopped(problem)
        raise InputError(_explanation(problem)) from None


def raise_if_stopped(problem: BaseException) -> None:
    """Raise what really happened where a job failed because somebody stopped it."""
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):  # Spark's own error may come after it
            raise KeyboardInterrupt from None
        cause = cause.__context__
    if re.search(r"\b(Job|Stage) \d+ (was )?cancelled|OPERATION_CANCELED", str(problem)):
        raise Cancelled("the jobs were cancelled on the cluster; nothing was published") from None


def _explanation(problem: Exception) -> str:
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


# A floating number `v.n`, whose Java text is `v.s`, as DuckDB prints it: 0.0001, 12345678.5, 1e-05, 1.5e+20, inf.
# Whole numbers below 9e18 never get here (see `sql.text_of`). A decimal with 16 digits before the point and 22 after
# it holds every other number between 0.0001 and 1e16 exactly as Java spells it.
_NUMBER = """CASE
WHEN v.s IN ('Infinity', '-Infinity') THEN REPLACE(v.s, 'Infinity', 'inf')
WHEN v.s = 'NaN' THEN 'nan'
WHEN ABS(v.n) >= 1e-4D AND ABS(v.n) < 1e16D THEN
  TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST(CAST(v.s AS DECIMAL(38, 22)) AS STRING)))
ELSE CONCAT(
  REGEXP_REPLACE(SUBSTRING_INDEX(v.s, 'E', 1), '[.]0$', ''),
  CASE WHEN INSTR(v.s, 'E-') > 0 THEN 'e-' ELSE 'e+' END,
  CASE WHEN LENGTH(REPLACE(SUBSTRING_INDEX(v.s, 'E', -1), '-', '')) = 1 THEN '0' ELSE '' END,
  REPLACE(SUBSTRING_INDEX(v.s, 'E', -1), '-', ''))
END""".replace("\n", " ")


def _split(generator: Any, expression: exp.Split) -> str:
    r"""A text cut at a separator, which is a pattern to Spark: it is quoted as Java's `Pattern.quote` does it."""
    by = generator.sql(expression, "expression")
    quoted = rf"CONCAT('\\Q', REPLACE({by}, '\\E', '\\E\\\\E\\Q'), '\\E')"
    return f"SPLIT({generator.sql(expression, 'this')}, {quoted})"


def _called(generator: Any, expression: exp.Anonymous) -> str:
    """A call; `hash` has 64 bits here, too, and because nulls do not change it, each value goes with its number."""
    if expression.name != "hash":
        return str(generator.anonymous_sql(expression))
    values = [f"{generator.sql(value)}, {i}" for i, value in enumerate(expression.expressions)]
    return f"XXHASH64({', '.join(values)})"


class MaskwrightSpark(Spark):
    """Spark with ANSI rules, in which texts of values are those that DuckDB gives."""

    class Generator(Spark.Generator):  # type: ignore[misc, valid-type]
        TRANSFORMS = {**Spark.Generator.TRANSFORMS, exp.Split: _split, exp.Anonymous: _called}  # noqa: RUF012 - as sqlglot has it

        TYPE_MAPPING = {**Spark.Generator.TYPE_MAPPING, exp.DataType.Type.INT128: "DECIMAL(38, 0)"}  # noqa: RUF012

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            """Texts of floating numbers and of instants are spelled alike on all engines."""
            kind = str(expression.meta.get("of", ""))
            inner = self.sql(expression, "this")
            if kind.startswith(("FLOAT", "DOUBLE")):  # the number is computed once, whatever it takes
                pair = f"NAMED_STRUCT('n', {inner}, 's', CAST({inner} AS STRING))"
                return f"ELEMENT_AT(TRANSFORM(ARRAY({pair}), v -> {_NUMBER}), 1)"
            if kind == "HEX":  # 0x and the digits
                return f"CAST(CONV(SUBSTRING({inner}, 3), 16, 10) AS BIGINT)"
            if kind == "TIMESTAMP":
                return f"CONCAT(CAST({inner} AS STRING), '+00')"
            return str(super().cast_sql(expression, safe_prefix))

        def trycast_sql(self, expression: exp.TryCast) -> str:
            """A cast that gives null where it fails, which Spark calls by that name only."""
            return f"TRY_CAST({self.sql(expression, 'this')} AS {self.sql(expression, 'to')})"

        def cte_sql(self, expression: exp.CTE) -> str:
            """A named query; Spark does not take a hint that it is to be evaluated once."""
            expression.set("materialized", None)
            return str(super().cte_sql(expression))


def _rendered(query: exp.Expression, parameters: Any) -> tuple[str, dict[str, Any]]:
    """A query as text, with the parameters that it has."""
    return query.sql(MaskwrightSpark), clauses.used(query, parameters)
