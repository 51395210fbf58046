"""Reading files strictly: what is in a CSV file is settled here, before a database may guess.

A file that cannot be read as a table is refused with its name, the line and the remedy. The content of a row
is never repeated in a message, because it may hold an identifier. What a file or a frame holds besides the rows, for
an audit, is a `Container`.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

import duckdb

from maskwright.engines.base import Reading
from maskwright.errors import InputError
from maskwright.runtime import disk

DELIMITERS = (",", ";", "\t", "|")
HEAD = 1 << 20
CHUNK = 1 << 22
SAMPLE = 200  # records looked at for the delimiter
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LINE_END = re.compile("\r\n|\r|\n")
_SHOWN = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}


@dataclass(frozen=True)
class CsvLayout:
    """How a CSV file is to be read; nothing is left for a database to guess."""

    path: Path
    names: tuple[str, ...]
    delimiter: str
    quote: str
    encoding: str
    header: bool
    line_end: str = ""  # of the first record, where one follows it


def check_file(path: Path) -> Path:
    """The absolute path of a readable, non-empty regular file."""
    try:
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
        if path.is_dir():
            raise InputError(
                f"{path}: this is a folder; name the file in it (a folder of Parquet files is one table)"
            )
        if not path.is_file():
            raise InputError(f"{path}: this is not a regular file")
        if not os.access(path, os.R_OK):
            raise InputError(f"{path}: no permission to read this file")
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty")
    except (OSError, ValueError) as problem:
        raise InputError(f"{path}: cannot be read ({_reason(problem)})") from None
    return path.absolute()


def parquet_parts(path: Path, reading: Reading) -> list[Path]:
    """The files of a folder that together are one Parquet table, as Spark writes them; none: this is no such folder."""
    if reading.format == "csv" or not os.path.isdir(path):  # noqa: PTH112 - Path raises where a name is too long
        return []
    parts = sorted(p for p in path.iterdir() if not p.name.startswith((".", "_")))
    if not parts or not all(p.suffix.lower() in (".parquet", ".pq") for p in parts):
        return []
    return [check_file(p) for p in parts]


@dataclass(frozen=True)
class Stamp:
    """Identity, size and times of an input: if they change while it is read, two versions could mix.

    Those of a folder are those of all its files; a file that is gone has none, and of what is no file nothing is known.
    """

    path: Path | None = None
    values: tuple[int, ...] = ()

    @staticmethod
    def of(source: Any) -> Stamp:
        """The stamp of a file, or of a folder with its files; empty for what is no path."""
        if not isinstance(source, (str, Path)):
            return Stamp()
        path = Path(source)
        try:
            listed = sorted(path.iterdir()) if path.is_dir() else [path]
            return Stamp(path, tuple(n for p in listed for n in disk.file_identity(p)))
        except (OSError, ValueError):  # gone, or a name that no file can have
            return Stamp(path)

    def still(self) -> bool:
        """Is the input as it was?"""
        return self.path is None or Stamp.of(self.path) == self


def format_of(path: Path, reading: Reading) -> str:
    """ "csv" or "parquet": as the policy says, else by the first bytes of the file."""
    if reading.format:
        return reading.format
    with path.open("rb") as file:
        magic = file.read(4)
    return "parquet" if magic == b"PAR1" or path.suffix.lower() in (".parquet", ".pq") else "csv"


def check_parquet(path: Path) -> None:
    """Refuse a file that is no Parquet file, or not a whole one."""
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0, os.SEEK_END)
        if start == b"PARE":
            raise InputError(f"{path}: the Parquet file is encrypted; decrypt it first")
        whole = start == b"PAR1" and file.tell() >= 12
        if whole:
            file.seek(-4, os.SEEK_END)
            whole = file.read(4) == b"PAR1"
    if not whole:
        raise InputError(
            f"{path}: this is not a complete Parquet file; for text write input: {{format: csv}}"
        )


def check_names(names: Sequence[object], where: str) -> tuple[str, ...]:
    """Column names must be text, not empty, and different (also when case is ignored, as databases do)."""
    seen: dict[str, str] = {}
    for number, name in enumerate(names, 1):
        if not isinstance(name, str):
            raise InputError(f"{where}: the name of column {number} is {name!r}, not text; rename the column")
        if not name.strip():
            raise InputError(
                f"{where}: column {number} has no name; name it, or write input: {{header: false}}, or for a CSV file "
                "input: {names: repair}"
            )
        if "\0" in name or any("\ud800" <= c <= "\udfff" for c in name):
            what = "a NUL character" if "\0" in name else "half a character (a lone surrogate)"
            raise InputError(f"{where}: the name of column {number} holds {what}; rename the column")
        other = seen.get(name.lower())
        seen[name.lower()] = name
        if other is not None:
            how = "twice" if other == name else f"beside {other!r}: names must differ in more than case"
            raise InputError(f"{where}: column {name!r} occurs {how}; rename one of them")
    return tuple(str(name) for name in names)


def repaired_names(names: Sequence[str]) -> list[str]:
    """Column names that are there and differ: column3 for an empty one, zip_2 for the second zip."""
    found: list[str] = []
    taken = {name.lower() for name in names}
    for number, name in enumerate(names, 1):
        made, copy = name or f"column{number}", 1
        while made.lower() in {n.lower() for n in found} or (made != name and made.lower() in taken):
            copy += 1
            made = f"{name or f'column{number}'}_{copy}"
        found.append(made)
    return found


def found_reading(source: Any, reading: Reading) -> Reading:
    """How a CSV file can be read where it is no UTF-8, or its names are empty or occur twice; else as it is said."""
    path = Path(source) if isinstance(source, (str, Path)) else None
    if path is None or not os.path.isfile(path):  # noqa: PTH113 - the same
        return reading
    if is_gzip(path) or format_of(path, reading) != "csv":
        return reading
    if reading.encoding == "utf-8" and _encoding(path, reading) == "utf-8" and _broken_utf8(path) is not None:
        reading = replace(reading, encoding="cp1252" if _decodes(path, "cp1252") else "latin-1")
    repaired = replace(reading, names="repair")
    try:
        examine_csv(path, reading)
    except InputError:
        try:
            examine_csv(path, repaired)
        except InputError:
            return reading  # something else is wrong with it, which is told when it is opened
        return repaired
    return reading


def _decodes(path: Path, encoding: str) -> bool:
    """Whether every byte of a file means something in an encoding."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    try:
        for chunk, last in _with_end(path):
            decoder.decode(chunk, last)
    except UnicodeError:
        return False
    return True


def examine_csv(path: Path, reading: Reading) -> CsvLayout:
    """Find out encoding, delimiter and column names from the beginning of the file."""
    encoding = _encoding(path, reading)
    text, cut = _head(path, encoding)
    if not text.strip():
        raise InputError(f"{path}: the file holds nothing but blanks")
    if reading.header and not text.splitlines()[0].strip():
        raise InputError(
            f"{path}: line 1 is empty; it must hold the column names, or write input: {{header: false}}"
        )
    quote = reading.quote if reading.quote is not None else '"'
    delimiter = reading.delimiter or _delimiter(text, quote, cut)
    for what, value in (("delimiter", delimiter), ("quote", quote)):
        if len(value) > 1 or value in ("\n", "\r", "\0") or (what == "delimiter" and not value):
            raise InputError(f"input: {what} must be one character, not {value!r}")
    first, end = _first(text, delimiter, quote)
    if first is None:
        raise InputError(f"{path}: line 1 cannot be read as CSV; write input: {{delimiter: …, quote: …}}")
    if end != "\n" and set(_LINE_END.findall("".join(first))) - {end}:
        raise InputError(
            f"{path}: line 1 holds a quoted line end that differs from those of the lines, and would be taken for one "
            "of them; remove it, or convert the line ends to \\n"
        )
    names: Sequence[str] = [f"column{i}" for i in range(1, len(first) + 1)]
    if reading.header:
        names = [cell.strip() for cell in first]
        names = check_names(repaired_names(names) if reading.names == "repair" else names, str(path))
    return CsvLayout(path, tuple(names), delimiter, quote, encoding, reading.header, end)


def as_utf8(layout: CsvLayout, temp: Path) -> Path:
    """A plain UTF-8 file with the content: the file itself, or a copy in the private folder `temp`.

    Refuses NUL bytes and, for a copy, bytes that are not of the encoding.
    """
    plain = layout.encoding in ("utf-8", "utf-8-sig") and not is_gzip(layout.path)
    if plain:
        line = 1
        for chunk in _chunks(layout.path):
            _check_nul(layout.path, chunk, line)
            line += chunk.count(b"\n")
        return layout.path
    target = temp / "input.csv"
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        for data in decoded(layout):
            out.write(data)
    return target


def decoded(layout: CsvLayout) -> Iterator[bytes]:
    """The content in UTF-8, piece by piece. Refuses NUL bytes and bytes that are not of the encoding."""
    decoder = codecs.getincrementaldecoder(layout.encoding)("strict")
    line = 1
    for chunk, last in _with_end(layout.path):
        try:
            data = decoder.decode(chunk, last).encode()
        except UnicodeError as problem:
            before = chunk[: getattr(problem, "start", 0)]
            raise _not_encoded(layout, line + before.count(b"\n")) from None
        _check_nul(layout.path, data, line)
        line += data.count(b"\n")
        yield data


def explain_csv(
    layout: CsvLayout, record: int | None, fields: int | None, utf8: Path, too_long: bool = False
) -> InputError:
    """What is wrong with a CSV file that the database refused: found out here, line by line.

    Args:
        layout: how the file was read.
        record: the record the database complained of, counted from 1 with the header, where it said so.
        fields: how many fields it found there.
        utf8: the file that was read (see `as_utf8`).
        too_long: the database complained of a line that is longer than it reads.
    """
    broken = _broken_utf8(utf8)
    if broken is not None:
        return _not_encoded(layout, broken)
    expected = len(layout.names)
    line = _line_of(layout, utf8, record) if record else _mixed_line_ends(utf8)
    if too_long:
        return InputError(
            f"{layout.path}: line {line or 1} is longer than 2 MB: a quoted value does not end there (write a quote "
            'inside a value twice (""), or write input: {quote: …}), or a value is that long; shorten it, or hand in '
            "a Parquet file, which may hold it"
        )
    whole = f"the {expected} of {'the header' if layout.header else 'line 1'}"
    if record and fields is not None and fields != expected:
        has = f"only {fields} fields of {whole}" if fields < expected else f"more fields than {whole}"
        return InputError(
            f"{layout.path}: line {line} has {has} (delimiter {_SHOWN.get(layout.delimiter, repr(layout.delimiter))}); "
            "correct the line, or write input: {delimiter: …, quote: …}"
        )
    if record:
        return InputError(
            f"{layout.path}: line {line} cannot be read as CSV: a quoted value does not end, or ends too late; "
            'write a quote inside a value twice (""), or write input: {quote: …}'
        )
    if line:
        return InputError(
            f"{layout.path}: line {line} ends differently from the lines before it (\\n and \\r\\n are mixed); "
            "convert the line ends"
        )
    return InputError(
        f"{layout.path}: the file cannot be read as CSV; write input: {{delimiter: …, quote: …}}"
    )


# --- details ------------------------------------------------------------------------------------------


def _reason(problem: BaseException) -> str:
    return (problem.strerror or "") if isinstance(problem, OSError) else str(problem)


def is_gzip(path: Path) -> bool:
    """Does the file begin as gzip files do?"""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if is_gzip(path) else path.open("rb")  # type: ignore[return-value]


def _chunks(path: Path) -> Iterator[bytes]:
    try:
        with _open(path) as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except (OSError, EOFError, zlib.error) as problem:
        raise InputError(f"{path}: cannot be read ({_reason(problem) or 'damaged'})") from None


def _with_end(path: Path) -> Iterator[tuple[bytes, bool]]:
    """The chunks of a file, and an empty one that is the last: what an incremental decoder wants."""
    for chunk in _chunks(path):
        yield chunk, False
    yield b"", True


def _check_nul(path: Path, data: bytes, line: int) -> None:
    at = data.find(b"\0")
    if at >= 0:
        where = line + data[:at].count(b"\n")
        raise InputError(
            f"{path}: line {where} holds a NUL byte; this is not a text file, or its encoding is another one: "
            "write input: {encoding: utf-16}"
        )


def _encoding(path: Path, reading: Reading) -> str:
    try:
        asked = codecs.lookup(reading.encoding).name
        "".encode(asked)
    except (LookupError, ValueError):
        raise InputError(
            f"input: there is no encoding {reading.encoding!r}; try utf-8, cp1252 or utf-16"
        ) from None
    start = next(_chunks(path), b"")[:4]
    for bom, name in _BOMS:
        if start.startswith(bom):
            return name
    # what Python takes it for, said in full: others take it for the other order of bytes
    return f"{asked}-{sys.byteorder[0]}e" if asked in ("utf-16", "utf-32") else asked


def _head(path: Path, encoding: str) -> tuple[str, bool]:
    """The beginning of the text, and whether that is not all."""
    whole = next(_chunks(path), b"")
    chunk = whole[:HEAD]
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    try:
        return decoder.decode(chunk), len(whole) > HEAD
    except UnicodeError as problem:
        line = 1 + chunk[: getattr(problem, "start", 0)].count(b"\n")
        raise _not_encoded(CsvLayout(path, (), ",", '"', encoding, True), line) from None


def _not_encoded(layout: CsvLayout, line: int) -> InputError:
    name = "utf-8" if layout.encoding == "utf-8-sig" else layout.encoding
    other = "cp1252" if name == "utf-8" else "utf-8"
    return InputError(
        f"{layout.path}: line {line} is not valid {name}; name the encoding, e.g. input: {{encoding: {other}}} in the "
        f"policy, or --encoding {other} for init and audit"
    )


def _reader(file: Iterable[str], delimiter: str, quote: str) -> Iterator[list[str]]:
    if not quote:
        return csv.reader(file, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)
    return csv.reader(file, delimiter=delimiter, quotechar=quote, strict=True)


def _records(text: str, delimiter: str, quote: str) -> Iterator[list[str]]:
    """The records of a text; stops at the first that is not CSV."""
    try:
        yield from (record for record in _reader(io.StringIO(text, newline=""), delimiter, quote) if record)
    except csv.Error:
        return


def _first(text: str, delimiter: str, quote: str) -> tuple[list[str] | None, str]:
    """The first record that is not empty, and the line end that follows it."""
    last = ""

    def lines() -> Iterator[str]:
        """The lines, the last one remembered."""
        nonlocal last
        for line in io.StringIO(text, newline=""):
            last = line
            yield line

    try:
        first = next((record for record in _reader(lines(), delimiter, quote) if record), None)
    except csv.Error:
        return None, ""
    found = _LINE_END.findall(last)
    return first, found[-1] if found else ""


def _delimiter(text: str, quote: str, cut: bool) -> str:
    """The candidate under which most records have as many fields as the first one, and the first has most."""
    best, found = (0.0, 1), ","
    for delimiter in DELIMITERS:
        records = list(islice(_records(text, delimiter, quote), SAMPLE))
        if cut and 1 < len(records) < SAMPLE:
            records.pop()  # the last one may be incomplete
        if not records or len(records[0]) < 2:
            continue
        same = sum(len(r) == len(records[0]) for r in records) / len(records)
        if (same, len(records[0])) > best:
            best, found = (same, len(records[0])), delimiter
    return found


def _broken_utf8(path: Path) -> int | None:
    """The first line that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    line = 1
    for chunk, last in _with_end(path):
        try:
            line += decoder.decode(chunk, last).count("\n")
        except UnicodeDecodeError as problem:
            return line + problem.object[: problem.start].count(b"\n")
    return None


def _line_of(layout: CsvLayout, utf8: Path, record: int) -> int:
    """The line at which a record begins: later than its number where quoted values hold line ends."""
    lines = 0

    def counted(file: IO[str]) -> Iterator[str]:
        """The lines, counted."""
        nonlocal lines
        for line in file:
            lines += 1
            yield line

    with utf8.open(encoding="utf-8-sig", newline="") as file:
        reader = _reader(counted(file), layout.delimiter, layout.quote)
        try:
            for _ in range(record - 1):
                next(reader)
        except (csv.Error, StopIteration):
            pass
    return lines + 1


def _mixed_line_ends(path: Path) -> int | None:
    """The first line whose end differs from that of the first line."""
    with path.open("rb") as file:
        ends: Counter[bool] = Counter()
        for number, line in enumerate(file, 1):
            ends[line.endswith(b"\r\n")] += 1
            if len(ends) > 1:
                return number
    return None


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
        raise InputError(f"{path}: the Parquet file is damaged: its metadata cannot be read") from None
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
