"""What a container holds besides the rows: metadata, statistics, dictionaries, an index; a BOM or comments in CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from maskwright.engines.readers.csv_files import check_file
from maskwright.errors import InputError

TAIL = 1 << 16  # so much of the end of a CSV file is looked at


@dataclass(frozen=True)
class Container:
    """What was found beside the rows.

    Attributes:
        kind: "csv", "parquet", or the library of a frame.
        bom: does a CSV file begin with a byte order mark?
        comments: comment lines at the beginning or end of a CSV file.
        metadata: key → text of a Parquet footer, the two keys of the pandas and Arrow schemas left out.
        pandas_columns: column names in the pandas schema that the table itself does not have.
        index: what the index of a data frame tells, in words; None for a plain one from 0 on.
        statistics: (column, least, greatest) per column chunk of a Parquet file, as text.
        unused: column → dictionary entries or categories that no row has.
        unread: what could not be looked at, in words.
    """

    kind: str
    bom: bool = False
    comments: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    pandas_columns: tuple[str, ...] = ()
    index: str | None = None
    statistics: tuple[tuple[str, str, str], ...] = ()
    unused: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


def examine(source: Any, format: str) -> Container:
    """Look into a file or a frame that has been opened before, so that it can be read."""
    if isinstance(source, (str, Path)):
        path = check_file(Path(source))
        return _parquet(path) if format == "parquet" else _csv(path)
    library = type(source).__module__.split(".")[0]
    return _pandas(source) if library == "pandas" else Container(library)


def _csv(path: Path) -> Container:
    with path.open("rb") as file:
        first = file.readline()
        file.seek(max(0, path.stat().st_size - TAIL))
        last = file.read().rstrip().rsplit(b"\n", 1)[-1]
    bom = first.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"))
    comments = sum(line.lstrip(b"\xef\xbb\xbf").startswith(b"#") for line in (first, last))
    return Container("csv", bom, comments)


def _pandas(frame: Any) -> Container:
    unused = {}
    for name in frame.columns:
        categories = getattr(frame[name].dtype, "categories", None)
        if categories is not None and len(categories) > frame[name].nunique():
            unused[str(name)] = len(categories) - int(frame[name].nunique())
    index, told = frame.index, None
    if type(index).__name__ != "RangeIndex" or index.start != 0 or index.step != 1:
        told = "its index tells rows apart (positions in another table, or keys)"
    return Container("pandas", index=told, unused=unused, metadata={str(k): "" for k in frame.attrs})


def _parquet(path: Path) -> Container:
    database = duckdb.connect(":memory:", config={"autoinstall_known_extensions": False})
    try:
        name = str(path)
        pairs = database.execute("SELECT key, value FROM parquet_kv_metadata(?)", [name]).fetchall()
        chunks = database.execute(
            "SELECT path_in_schema, coalesce(stats_min_value, stats_min), coalesce(stats_max_value, stats_max), "
            "row_group_num_rows, row_group_id FROM parquet_metadata(?)", [name],
        ).fetchall()  # fmt: skip
    except (duckdb.Error, UnicodeDecodeError):
        raise InputError(
            f"{path}: the Parquet file is damaged: what it says of itself cannot be read"
        ) from None
    finally:
        database.close()
    keys = {_text(k): _text(v) for k, v in pairs}
    columns = list(dict.fromkeys(c[0] for c in chunks))
    rows = sum({c[4]: int(c[3]) for c in chunks}.values())
    named, index = _pandas_schema(keys.pop("pandas", ""), columns, rows)
    keys.pop("ARROW:schema", None)
    statistics = tuple((c[0], str(c[1]), str(c[2])) for c in chunks if c[1] is not None and c[2] is not None)
    unused, unread = _dictionaries(path, columns)
    return Container("parquet", False, 0, keys, named, index, statistics, unused, unread)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _pandas_schema(text: str, columns: list[str], rows: int) -> tuple[tuple[str, ...], str | None]:
    """Names that only the schema has, and what it tells of the index."""
    try:
        return _of_schema(json.loads(text), columns, rows)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # not what pandas writes
        return (), None


def _of_schema(schema: Any, columns: list[str], rows: int) -> tuple[tuple[str, ...], str | None]:
    listed = [c.get("name") for c in schema["columns"]]
    named = tuple(str(n) for n in listed if n is not None and n not in columns)
    for item in schema.get("index_columns", []):
        if isinstance(item, str):
            return named, f"the index of the data frame is published as the column {item!r}"
        span = range(item.get("start", 0), item.get("stop", rows), item.get("step", 1) or 1)
        if span != range(rows):
            return named, f"the schema says that these are rows {span.start} to {span.stop} of a larger table"
    return named, None


def _dictionaries(path: Path, columns: list[str]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Entries of the dictionaries of text columns that no row of their row group has."""
    try:
        import pyarrow as pa
    except ImportError:
        return {}, ("the dictionaries of the file (install pyarrow to look into them)",)
    try:
        return _unused_entries(path, columns), ()
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return {}, ("the dictionaries of the file (pyarrow cannot read it: it may be damaged)",)


def _unused_entries(path: Path, columns: list[str]) -> dict[str, int]:
    """Column → entries of its dictionaries that no row of their row group has."""
    import pyarrow as pa
    from pyarrow import parquet

    flat = set(parquet.read_schema(path).names) & set(columns)  # the parts of nested columns have other names
    file = parquet.ParquetFile(path, read_dictionary=sorted(flat))
    unused: dict[str, int] = {}
    for name in sorted(flat):
        for group in range(file.num_row_groups):
            column = file.read_row_group(group, columns=[name]).column(0)
            for chunk in column.chunks:
                if pa.types.is_dictionary(chunk.type):
                    used = chunk.indices.drop_null().unique()
                    idle = len(chunk.dictionary) - len(used)
                    if idle and column.num_chunks == 1:
                        unused[name] = unused.get(name, 0) + idle
    file.close()
    return unused
