"""Excel, Stata, SPSS and SAS files, part by part, through readers that are installed as the extra `files`.

Columns keep their types; a column of an Excel sheet with several kinds of values is text. Values that the file itself
declares missing (`.a` of Stata and SAS, user-missing values of SPSS) are missing.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.engines.base import Reading
from maskwright.engines.readers.csv_files import check_names
from maskwright.engines.readers.frames import text_of_mixed
from maskwright.engines.sql.coded_columns import Arrays, texts_of
from maskwright.errors import InputError

ROWS = 100_000  # per part
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
STATISTICS = {  # the reader of pyreadstat for each kind
    ".dta": "read_dta", ".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por",
    ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport",
}  # fmt: skip


@dataclass(frozen=True)
class RowBatch:
    """Some rows: columns c0, c1 … as numbers or texts, and the type of DuckDB that each is meant to have."""

    columns: Arrays
    types: tuple[str, ...]


@dataclass(frozen=True)
class TypedFile:
    path: Path
    names: tuple[str, ...]
    parts: Callable[[], Iterator[RowBatch]]


def recognise(path: Path, reading: Reading) -> TypedFile | None:
    """The file behind a path, by its ending; None when it is not one of these."""
    suffix = path.suffix.lower()
    if reading.format is not None:
        return None
    if suffix in EXCEL:
        return _excel(path, reading)
    return _statistics(path, suffix, reading) if suffix in STATISTICS else None


def _absent(path: Path, package: str) -> InputError:
    return InputError(
        f"{path}: files of this kind are read with {package}, which is not installed; "
        "install it with: pip install 'maskwright[files]'"
    )


def _damaged(path: Path) -> InputError:
    return InputError(f"{path}: the file is damaged, protected by a password, or not what its ending says")


# --- Stata, SPSS, SAS ---------------------------------------------------------------------------------


def _statistics(path: Path, suffix: str, reading: Reading) -> TypedFile:
    try:
        import pyreadstat
    except ImportError:
        raise _absent(path, "pyreadstat") from None
    reader = getattr(pyreadstat, STATISTICS[suffix])
    encoding = {} if reading.encoding == "utf-8" else {"encoding": reading.encoding}

    def read(**options: Any) -> Any:
        """What the reader makes of the file; refused where it is damaged."""
        try:
            return reader(str(path), **encoding, **options)
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception:  # readstat has many of its own, and what they say may hold values
            raise _damaged(path) from None

    _, meta = read(metadataonly=True)
    names = check_names(meta.column_names, str(path))
    labels = meta.variable_value_labels if reading.labels else {}
    # the first part decides the types; if that is wrong for a later one, it is refused
    known = [_declared(meta.readstat_variable_types.get(n, ""), n in labels) for n in names]

    def parts() -> Iterator[RowBatch]:
        """The rows, some thousand at a time."""
        types: tuple[str, ...] | None = None
        for offset in range(0, 1 << 62, ROWS):
            data, _ = read(row_offset=offset, row_limit=ROWS, output_format="dict")
            columns = [_labelled(data[name], labels.get(name)) for name in names]
            if not columns or not columns[0]:
                return
            found = tuple(k or _kind(c) for k, c in zip(known, columns, strict=True))
            types = types or found
            for name, now, c in zip(names, types, columns, strict=True):
                if not _fits(c, now):
                    raise InputError(
                        f"{path}: column {name!r} holds values that are not of the type {now} of its first "
                        f"{ROWS} rows; convert the column"
                    )
            yield RowBatch({f"c{i}": _array(c, types[i]) for i, c in enumerate(columns)}, types)
            if len(columns[0]) < ROWS:
                return

    return TypedFile(path, names, parts)


def _declared(stored: str, labelled: bool) -> str | None:
    """The type of a column by how it is stored; None where its format may make it a date."""
    return "VARCHAR" if labelled or stored == "string" else None


def _labelled(column: Sequence[Any], labels: dict[Any, str] | None) -> Sequence[Any]:
    if labels is None:
        return column
    return [None if v is None else labels.get(v, text_of_mixed(v, "")) for v in column]


# --- Excel --------------------------------------------------------------------------------------------


def _excel(path: Path, reading: Reading) -> TypedFile:
    try:
        import python_calamine
    except ImportError:
        raise _absent(path, "python-calamine") from None
    try:
        book = python_calamine.CalamineWorkbook.from_path(str(path))
        sheet = book.get_sheet_by_name(_sheet(path, book.sheet_names, reading.sheet))
        rows = sheet.iter_rows()
        first = next(rows, None)
    except InputError:
        raise
    except Exception:
        raise _damaged(path) from None
    if first is None:
        raise InputError(f"{path}: the sheet is empty")
    names: Sequence[str] = [f"column{i}" for i in range(1, len(first) + 1)]
    if reading.header:
        texts = [text_of_mixed(cell, "header") or "" for cell in first]
        names = check_names([t.strip() for t in texts], str(path))

    def records() -> Iterator[list[Any]]:
        """The rows below the header without those that are wholly empty; an empty cell is None."""
        everything = sheet.iter_rows()
        for row in islice(everything, 1 if reading.header else 0, None):
            cells = [None if isinstance(v, str) and not v.strip() else v for v in row]
            if any(cell is not None for cell in cells):
                yield cells

    def parts() -> Iterator[RowBatch]:
        """The rows, some thousand at a time, with the type that fits all of a column."""
        seen: list[set[str]] = [set() for _ in names]
        for row in records():
            for kinds, cell in zip(seen, row, strict=True):
                if cell is not None:
                    kinds.add(_type(cell))
        types = [_common(kinds) for kinds in seen]
        again = records()
        while block := list(islice(again, ROWS)):
            columns = zip(*block, strict=True)
            arrays = {f"c{i}": _array(c, t) for i, (c, t) in enumerate(zip(columns, types, strict=True))}
            yield RowBatch(arrays, tuple(types))

    return TypedFile(path, tuple(names), parts)


def _sheet(path: Path, names: Sequence[str], wanted: str | None) -> str:
    if wanted is not None and wanted not in names:
        raise InputError(f"{path}: there is no sheet {wanted!r}; there are {', '.join(map(repr, names))}")
    if wanted is None and len(names) > 1:
        raise InputError(
            f"{path}: there are several sheets ({', '.join(map(repr, names))}); "
            "say which: input: {sheet: …}, or --sheet"
        )
    return wanted if wanted is not None else names[0]


# --- types --------------------------------------------------------------------------------------------


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, datetime.datetime):
        return "TIMESTAMP"
    if isinstance(value, datetime.date):
        return "DATE"
    return "DOUBLE" if isinstance(value, (int, float)) else "VARCHAR"


def _common(kinds: set[str]) -> str:
    """The type of a column of a sheet; text where kinds are mixed, so that nobody's time changes another's date."""
    return kinds.pop() if len(kinds) == 1 else "VARCHAR"


def _kind(column: Sequence[Any]) -> str:
    """The type of a column of numbers or dates by its first value; a column without any is one of numbers."""
    return next((_type(value) for value in column if value is not None), "DOUBLE")


def _fits(column: Sequence[Any], type_: str) -> bool:
    return type_ == "VARCHAR" or all(value is None or _type(value) == type_ for value in column)


def _array(column: Sequence[Any], type_: str) -> np.ndarray[Any, Any]:
    """A column as the database takes it: numbers as they are, everything else as text that is cast there."""
    if type_ == "DOUBLE":
        return np.array([np.nan if value is None else value for value in column], dtype=np.float64)
    return texts_of([_text(value, type_) for value in column])


def _text(value: Any, type_: str) -> str | None:
    if value is None:
        return None
    return str(value).lower() if type_ == "BOOLEAN" else text_of_mixed(value, "")
