"""What preparing did to a column: how many cells of each kind were found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MISSING = "a text that means missing"
SPELLED = "another spelling"
NUMBER = "a number written otherwise"
DATE = "a date written"
AMBIGUOUS = "a date whose day and month could be exchanged"
DIGITS = "a code that lost its zeros"
LIST = "a list with other separators"
REDACTED = "a text that something was taken out of by a program, not verified"
LENGTH = "a length that was computed"
UNFIT = "fits nothing that the policy says"


@dataclass(frozen=True)
class Repair:
    """What was repaired in a column: how many rows held something of a kind, in how many different forms.

    Attributes:
        column: which one.
        what: the kind of mess.
        rows: how many rows.
        values: how many different texts.
        became: what was made of them: "" a repaired value, "missing", or "kept" as it was.
    """

    column: str
    what: str
    rows: int
    values: int
    became: str = ""

    @property
    def text(self) -> str:
        """The repair in words, without the column."""
        became = {"missing": ", counted as missing", "kept": ", kept as it is"}.get(self.became, "")
        return f"{self.what}: {self.rows:,} row{'s' if self.rows != 1 else ''}{became}"


def repair_lines(repairs: Iterable[Repair]) -> list[str]:
    """One line per column, for a terminal."""
    by_column: dict[str, list[str]] = {}
    for repair in repairs:
        by_column.setdefault(repair.column, []).append(repair.text)
    return [f"prepared {column}: {'; '.join(texts)}" for column, texts in by_column.items()]


def value_shape(text: str) -> str:
    """The form of a text without what it says: digits as 9, letters as a, runs of letters shortened."""
    shape = ""
    for char in text[:40]:
        one = "9" if char.isdigit() else "a" if char.isalpha() else char if char.isprintable() else "?"
        if one == "a" and shape.endswith("aaa"):
            continue
        shape += one
    return shape + ("…" if len(text) > 40 else "")


def shape_list(counted: Sequence[tuple[str, int]], most: int = 3) -> str:
    """The commonest forms of some texts, with their rows; nothing is quoted from them."""
    rows: dict[str, int] = {}
    for text, count in counted:
        shape = value_shape(text)
        rows[shape] = rows.get(shape, 0) + count
    shown = sorted(rows.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"'{shape}' ({count:,} row{'s' if count != 1 else ''})" for shape, count in shown[:most]]
    return ", ".join(parts) + (f" and {len(shown) - most} other forms" if len(shown) > most else "")
