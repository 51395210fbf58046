"""Cells that a spreadsheet would run as formulas: one rule for whatever of ours a spreadsheet can open.

A cell would run when it begins with = + - or @ (also in their full-width forms), after blanks or double quotes, or
with a tab or carriage return. The same is asked of what follows a semicolon, a tab or a line end inside a cell: a
spreadsheet of another country splits lines there. Numbers (-3, +2.5e3), ranges of ours (-10..-5) and bare signs do
nothing and are left alone.

Escaped, such a cell begins with an apostrophe, and so does the part after the separator. To be undone without doubt,
a cell that begins with an apostrophe already gets a second one.

The patterns are written so that Python's `re` and RE2 (DuckDB) read them alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Formulas = Literal["refuse", "escape", "allow"]

_PLACE = "(^|[;\t\r\n])"
_LEAD = '[ "\x0b\x0c\u00a0\u1680\u2000-\u200d\u202f\u205f\u2060\u3000\ufeff]*'
_SIGN = "[=\uff1d\ufe66+\uff0b\ufe62\uff0d\ufe63@\uff20\ufe6b-]"
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?%?"
HARMLESS = rf"[+-]*|{_NUMBER}|{_NUMBER}\.\.{_NUMBER}"
RUNS = f"{_PLACE}{_LEAD}{_SIGN}|^[\t\r]"
MARKED = f"{_PLACE}({_LEAD}{_SIGN}|')"
FIRST = "^([\t\r])"
MARK = f"{_PLACE}'"

_harmless, _runs, _marked, _first, _mark = map(re.compile, (HARMLESS, RUNS, MARKED, FIRST, MARK))


def would_run(text: str) -> bool:
    """Would a spreadsheet take this cell, or a part of it, for a formula?"""
    return bool(_runs.search(text)) and not _harmless.fullmatch(text)


def escape_cell(text: str) -> str:
    """The cell with an apostrophe before whatever would run."""
    if _harmless.fullmatch(text):
        return text
    return _first.sub(r"'\1", _marked.sub(r"\1'\2", text))


def unescape_cell(text: str) -> str:
    """What `escape` was given."""
    return _mark.sub(r"\1", text)


def escape_row(row: Iterable[object]) -> list[object]:
    """A row of a CSV file that people read: its texts escaped. Numbers stay what they are."""
    return [escape_cell(cell) if isinstance(cell, str) else cell for cell in row]
