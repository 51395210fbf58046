"""A hierarchy file: one row per ground value, ever coarser labels to its right (the layout of ARX)."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from pathlib import Path

from pydantic import Field

from maskwright.domain.exact import short_repr
from maskwright.domain.missing_values import missing_texts
from maskwright.domain.values import arrange_values, check_covered
from maskwright.errors import HierarchyError
from maskwright.hierarchies.builder import Builder, Ladder

MAX_BYTES = 64 << 20
MAX_COLUMNS = 100
MAX_CELLS = 5_000_000  # a cell takes far more memory than its bytes in the file
DELIMITERS = (";", "\t", ",")

Row = tuple[int, list[str]]  # line number, cells


class File(Builder):
    """A table of labels: ground value first, then one column per level."""

    file: str = Field(min_length=1, description="a CSV file, relative to the policy")
    header: bool = Field(False, description="is the first row a header? (a first cell `level0` says so too)")
    delimiter: str | None = Field(
        None,
        min_length=1,
        max_length=1,
        description="default: semicolon, tab or comma, detected in the file",
    )

    def ladder(
        self,
        attribute: str,
        values: Sequence[str],
        folder: Path,
        missing: Collection[str],
        order: Sequence[str] | None = None,
    ) -> Ladder:
        """Read the labels of every value from the file."""
        try:
            names, labels = self._read(folder, missing)
        except ValueError as problem:
            raise HierarchyError(
                f"column {attribute!r}: hierarchy file {short_repr(self.file)}: {problem}"
            ) from None
        remedy = f"add them to {short_repr(self.file)}, or declare them as missing"
        check_covered(attribute, values, labels, "the hierarchy", remedy)
        ground, ordered = arrange_values(attribute, labels, order)
        levels = [
            (name, [labels[value][column] for value in ground]) for column, name in enumerate(names, start=1)
        ]
        return Ladder(ground, levels, ordered)

    def _read(self, folder: Path, missing: Collection[str]) -> tuple[list[str], dict[str, list[str]]]:
        """Level names, and the row of every ground value. Raises ValueError saying what is wrong."""
        rows = self._rows(_text(Path(folder) / self.file))
        names = [f"level{i}" for i in range(1, len(rows[0][1]))]
        if self.header or rows[0][1][0] == "level0":
            names = [name or f"level{i}" for i, name in enumerate(rows.pop(0)[1][1:], start=1)]
        if len(set(names)) < len(names):
            raise ValueError("two columns have the same name in the header; rename one")
        labels: dict[str, list[str]] = {}
        absent = missing_texts(missing)
        for line, cells in rows:
            value = cells[0]
            if value in absent:
                continue
            if "" in cells:
                raise ValueError(
                    f"line {line}: {short_repr(value)} has an empty cell; give it a label at every level"
                )
            if labels.setdefault(value, cells) != cells:
                raise ValueError(
                    f"line {line}: {short_repr(value)} is listed twice, with different labels; keep one row"
                )
        if not labels:
            raise ValueError("it lists no values")
        return names, labels

    def _rows(self, text: str) -> list[Row]:
        try:
            rows = _parse(text, self.delimiter or _delimiter(text))
        except (csv.Error, TypeError, ValueError) as problem:
            raise ValueError(f"it cannot be read ({problem}); check quotes and delimiter") from None
        ragged = _ragged(rows)
        if ragged is not None:
            line, cells = ragged
            raise ValueError(
                f"line {line} has {len(cells)} cells where the first has {len(rows[0][1])}; "
                "give every value a label at every level"
            )
        if len(rows[0][1]) > MAX_COLUMNS:
            raise ValueError(f"it has {len(rows[0][1])} columns; at most {MAX_COLUMNS} levels are allowed")
        return rows


def _text(path: Path) -> str:
    """The decoded file; ValueError when it is not a readable text of sensible size."""
    try:
        if not path.is_file():
            raise ValueError(
                f"there is no such file in {str(path.parent)!r}; `file` is relative to the policy"
            )
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
        content = path.read_bytes()
    except OSError as problem:
        raise ValueError(f"it cannot be read: {problem.strerror}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ValueError(f"it is not UTF-8 text (byte {problem.start}); save it as UTF-8") from None
    if not text.strip():
        raise ValueError("it is empty; list one row per value")
    return text


def _delimiter(text: str) -> str:
    """The first that makes a table of two or more columns; else the commonest of the first line.

    A file that no delimiter makes a table of is read by its likeliest one, so that the error is about that.
    """
    for delimiter in DELIMITERS:
        try:
            rows = _parse(text, delimiter)
        except (csv.Error, ValueError):
            continue
        if len(rows[0][1]) > 1 and _ragged(rows) is None:
            return delimiter
    return max(DELIMITERS, key=text.lstrip().splitlines()[0].count)


def _parse(text: str, delimiter: str) -> list[Row]:
    """All rows that are not blank, cells stripped."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Row] = []
    room = MAX_CELLS
    for cells in reader:
        room -= len(cells)
        if room < 0:
            raise ValueError(f"it has more than {MAX_CELLS:,} cells")
        stripped = [cell.strip() for cell in cells]
        if any(stripped):
            rows.append((reader.line_num, stripped))
    if not rows:
        raise ValueError("no values")
    return rows


def _ragged(rows: Sequence[Row]) -> Row | None:
    """The first row that is not as long as the first."""
    return next((row for row in rows if len(row[1]) != len(rows[0][1])), None)
