"""Tables handed in from Python: pandas, polars, pyarrow, DuckDB; and the published table in the same kind.

A library is recognised by the module of the object, so that none is imported that the caller does not use.
"""

from __future__ import annotations

import contextlib
import datetime
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from maskwright.engines.readers.csv_files import check_names
from maskwright.errors import InputError

Give = Callable[[Any, Collection[str]], Any]


@dataclass(frozen=True)
class Frame:
    """A table from Python.

    Attributes:
        caller: the library, "pandas", "polars", "pyarrow" or "duckdb"; "arrow" for anything else that
            offers the Arrow stream interface.
        names: its columns.
        batches: what DuckDB can read, part after part; each part is read once, in the order of the rows.
        give: from a DuckDB relation with the published rows, and the names of the columns that keep the type
            of the source, to a table of the caller's kind.
    """

    caller: str
    names: tuple[str, ...]
    batches: Callable[[], Iterable[Any]]
    give: Give


def recognise(source: Any, lists: Collection[str] = ()) -> Frame | None:
    """The frame behind an object, or None when it is none; some of its columns may hold lists."""
    library = type(source).__module__.split(".")[0]
    kind = type(source).__name__
    if library == "pandas" and kind == "DataFrame":
        return _pandas(source, lists)
    if library == "polars" and kind in ("DataFrame", "LazyFrame"):
        return _polars(source)
    if library == "pyarrow" and kind in ("Table", "RecordBatch", "RecordBatchReader"):
        return _pyarrow(source)
    if library in ("duckdb", "_duckdb") and kind == "DuckDBPyRelation":
        names = check_names(source.columns, "the relation")
        return Frame("duckdb", names, lambda: [Stream(source)], give_relation)
    if hasattr(source, "__arrow_c_stream__"):
        # the stream itself, asked for once: some objects have no second one to give
        return Frame("arrow", (), lambda: [source.__arrow_c_stream__()], _give_arrow(type(source)))
    return None


def text_frame(columns: Mapping[str, Sequence[str | None]], kind: str) -> Any:
    """A frame of texts, of a kind that `recognise` knows; of pyarrow where the kind is no frame."""
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame({name: pd.Series(texts, dtype=object) for name, texts in columns.items()})
    if kind == "polars":
        import polars as pl

        return pl.DataFrame({name: pl.Series(texts, dtype=pl.String) for name, texts in columns.items()})
    import pyarrow as pa

    return pa.table({name: pa.array(texts, pa.string()) for name, texts in columns.items()})


class Stream:
    """An object that offers only the Arrow stream interface, which DuckDB reads without any library."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._source.__arrow_c_stream__(requested_schema)


def give_relation(published: Any, typed: Collection[str]) -> Any:
    """A relation in a database of its own, which holds nothing but these rows and lives as long as it."""
    import duckdb

    database = duckdb.connect(":memory:")
    database.register("stream", Stream(published))
    database.execute("CREATE TABLE published AS SELECT * FROM stream")
    database.unregister("stream")
    return database.table("published")


def _give_arrow(kind: type) -> Give:
    """The kind that was handed in, where it has `from_arrow` or is an array of nanoarrow; else a relation."""
    maker = getattr(kind, "from_arrow", None)
    if maker is None and kind.__module__.split(".")[0] == "nanoarrow":
        maker = kind

    def give(published: Any, typed: Collection[str]) -> Any:
        """The table as the caller's kind, by way of Arrow."""
        relation = give_relation(published, typed)
        if maker is None:
            return relation
        made = maker(Stream(relation))
        return made if isinstance(made, kind) else relation

    return give


# --- pandas -------------------------------------------------------------------------------------------


def _pandas(frame: Any, lists: Collection[str]) -> Frame:
    if frame.columns.nlevels != 1:
        raise InputError("the data frame: its columns have several levels; flatten them to one name each")
    names = check_names(list(frame.columns), "the data frame")
    plain = {n: _listed(frame[n]) if n in lists else _plain_series(frame[n]) for n in names}
    kinds = {name: series.dtype for name, series in plain.items()}
    # found here, so that it may be only because of somebody who is not published
    nullable = {n: kinds[n] != frame[n].dtype and not isinstance(kinds[n], np.dtype) for n in names}

    def give(published: Any, typed: Collection[str]) -> Any:
        """The table as a pandas frame with the caller's types."""
        with warnings.catch_warnings():
            # DuckDB calls pandas in ways that newer versions of pandas warn about
            warnings.simplefilter("ignore", DeprecationWarning)
            out = published.df(date_as_object=True)
        for name in out.columns:
            if name in lists:
                out[name] = [list(value) for value in out[name]]
            elif name in typed and not (nullable[name] and out[name].notna().all()):
                out[name] = _as_dtype(out[name], kinds[name])
        return out

    import pandas as pd

    # a frame of its own: no index, no attrs, and nothing the caller could change meanwhile
    try:
        scannable = pd.DataFrame({name: series.array for name, series in plain.items()}, copy=False)
    except UnicodeEncodeError:
        for name, series in plain.items():
            for value in series if series.dtype == object else ():
                text_of_mixed(value, name)
        raise InputError(
            "the data frame: a text holds half a character (a lone surrogate); repair it"
        ) from None
    return Frame("pandas", names, lambda: [scannable], give)


def _listed(series: Any) -> Any:
    """A column of lists (or sets, or arrays) as lists of texts; what is no list passes, to be refused by its type."""
    import pandas as pd

    def as_list(value: Any) -> Any:
        """A cell that is a list as a list of texts."""
        if isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "ndarray":
            return [text_of_mixed(item, series.name) for item in value]
        if isinstance(value, str):
            return _whole_text(value, series.name)
        return None if pd.isna(value) is True else value

    return series.map(as_list).astype(object) if series.dtype == object else series


_ONE_KIND = (
    "string", "empty", "date", "decimal", "boolean", "integer", "floating", "datetime", "timedelta",
)  # fmt: skip


def _plain_series(series: Any) -> Any:
    """A column as DuckDB can read it: categories as their values, mixed objects as text."""
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        for category in series.dtype.categories:
            if isinstance(category, str):
                _whole_text(category, series.name)
        plain = series.astype(object)
        return plain.infer_objects() if not series.isna().any() else plain.convert_dtypes()
    if series.dtype != object:
        return series
    inferred = pd.api.types.infer_dtype(series, skipna=True)
    if inferred == "date" and any(isinstance(value, datetime.datetime) for value in series.dropna()):
        inferred = "mixed"  # one time of day would make a midnight of everybody's date
    if inferred in _ONE_KIND:
        if inferred in ("string", "empty"):
            return series
        if inferred in ("integer", "boolean"):  # never by way of floating numbers, which round
            whole, nullable = ("int64", "Int64") if inferred == "integer" else ("bool", "boolean")
            plain = series
            with contextlib.suppress(OverflowError):
                plain = series.astype(nullable if series.isna().any() else whole)
        else:
            plain = series.infer_objects()
        if plain.dtype != object or inferred in ("date", "decimal"):
            return plain
        # times with and without a zone; whole numbers longer than 64 bits, which floating ones would round: as text
    return series.map(lambda value: text_of_mixed(value, series.name)).astype(object)


def text_of_mixed(value: Any, name: object) -> str | None:
    """A value of a column of mixed types, as canonical text."""
    if value is None or type(value).__name__ in (
        "NAType",
        "NaTType",
    ):  # NA is not even equal to itself or not
        return None
    if isinstance(value, str):
        return _whole_text(value, name)
    if isinstance(value, (bytes, list, tuple, dict, set)) or type(value).__name__ == "ndarray":
        raise InputError(
            f"column {name!r} holds objects of type {type(value).__name__}; convert them to text or numbers"
        )
    if value != value:  # not a number
        return None
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return str(int(number)) if abs(number) < 9e18 and number.is_integer() else str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return _without_zeros(f"{value:f}") if value else "0"
    if isinstance(value, datetime.timedelta):
        return _interval_text(value)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return _without_zeros(str(value.astimezone(datetime.UTC).replace(tzinfo=None))) + "+00"
    if isinstance(value, (datetime.datetime, datetime.time)):
        return _without_zeros(str(value))
    return str(value)


def _without_zeros(text: str) -> str:
    """A number or a time without zeros at the end of its fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _interval_text(value: datetime.timedelta) -> str:
    """A span of time as the engine prints it: years of twelve months of thirty days, and the time that is left."""
    micros = value // datetime.timedelta(microseconds=1)
    sign, micros = "-" if micros < 0 else "", abs(micros)
    days, micros = divmod(micros, 86_400_000_000)
    numbers = {"year": days // 360, "month": days % 360 // 30, "day": days % 30}
    parts = [f"{sign}{n} {word}{'s' if n > 1 else ''}" for word, n in numbers.items() if n]
    if micros or not parts:
        seconds, fraction = divmod(micros, 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"
        parts.append(sign + _without_zeros(clock))
    return " ".join(parts)


def _whole_text(text: str, name: object) -> str:
    """A text as it is; one with half a character (a lone surrogate), which no file can hold, is refused."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"column {name!r} holds a text with half a character (a lone surrogate); repair it, for example by "
            "text.encode('utf-8', 'replace').decode()"
        ) from None
    return text


def _as_dtype(series: Any, dtype: Any) -> Any:
    """Back to the type of the source, unless missing values do not fit into it."""
    try:
        return series.astype(dtype)
    except (TypeError, ValueError):
        return series


# --- polars and pyarrow -------------------------------------------------------------------------------


def _polars(frame: Any) -> Frame:
    import polars as pl

    lazy = isinstance(frame, pl.LazyFrame)
    try:
        schema = dict(frame.collect_schema())
    except pl.exceptions.PolarsError as problem:
        raise _query_failed(problem) from None
    names = check_names(list(schema), "the data frame")
    if objects := [
        name for name, kind in schema.items() if kind == pl.Object
    ]:  # it would hand over addresses in memory
        raise InputError(f"column {objects[0]!r} holds Python objects; convert them to text or numbers")
    texts = (pl.Categorical, pl.Enum)

    def batches() -> Iterator[Any]:
        """A lazy frame runs in its streaming engine, and is never there as a whole."""
        if not lazy:
            yield Stream(frame)
            return
        words = [
            name for name, kind in schema.items() if isinstance(kind, texts)
        ]  # parts number them differently
        plain = frame.with_columns(pl.col(words).cast(pl.String)) if words else frame
        try:
            yield from map(Stream, plain.collect_batches())
        except pl.exceptions.PolarsError as problem:
            raise _query_failed(problem) from None

    def give(published: Any, typed: Collection[str]) -> Any:
        """The table as a polars frame with the caller's types."""
        spans = [n for n, t in zip(published.columns, published.types, strict=True) if str(t) == "INTERVAL"]
        if spans:  # polars knows no intervals: they come as microseconds, and become durations again
            quoted = ['"' + name.replace('"', '""') + '"' for name in spans]
            published = published.project(
                f"* REPLACE ({', '.join(f'epoch_us({name}) AS {name}' for name in quoted)})"
            )
        out = pl.DataFrame(Stream(published)).with_columns(pl.col(spans).cast(pl.Duration("us")))
        keep = {
            n: t for n, t in schema.items() if n in typed and not isinstance(t, texts) and out.schema[n] != t
        }
        out = out.cast(keep)
        return out.lazy() if lazy else out

    return Frame("polars", names, batches, give)


def _query_failed(problem: Exception) -> InputError:
    """What polars says may hold values of the table, so only its kind is repeated."""
    return InputError(f"the query of the lazy frame fails ({type(problem).__name__}); collect it to see why")


def _pyarrow(table: Any) -> Frame:
    import pyarrow as pa

    names = check_names(table.schema.names, "the table")
    schema = table.schema
    scannable = table if isinstance(table, pa.RecordBatchReader) else Stream(table)

    def give(published: Any, typed: Collection[str]) -> Any:
        """The table as a pyarrow table with the caller's types."""
        out = pa.table(Stream(published))
        for i, field in enumerate(out.schema):
            if field.name not in typed:
                continue
            kind = schema.field(field.name).type
            if kind != field.type and not pa.types.is_dictionary(kind):
                with contextlib.suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
                    # kinds that nothing can be cast to (UUID, runs of equal values) come back as the values in them
                    out = out.set_column(i, field.name, out.column(i).cast(kind))
        return out

    return Frame("pyarrow", names, lambda: [scannable], give)
