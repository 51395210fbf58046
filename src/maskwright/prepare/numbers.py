"""Numbers as people write them: with currency signs, thousands separators, decimal commas and units."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from pydantic import Field, model_validator

from maskwright.domain.exact import Exact
from maskwright.domain.settings import Settings

BLANKS = " \u00a0\u202f\u2009"
MINUS = "-\u2212\u2013"
MARKS = (".", ",", "'", "\u2019", " ", "\u00a0", "\u202f", "\u2009")
SIGNS = ("$", "€", "£", "¥", "USD", "EUR", "GBP", "CHF", "Fr.", "%", "US$", "kr", "zł")
DECIMALS = 6  # of a factor, and of a number that is multiplied by one
UNITS: dict[str, dict[str, str]] = {
    "kg": {"kg": "1", "g": "0.001", "lb": "0.453592", "lbs": "0.453592"},
    "cm": {"cm": "1", "m": "100", "mm": "0.1", "in": "2.54"},
    "years": {
        "years": "1",
        "year": "1",
        "yrs": "1",
        "yr": "1",
        "y": "1",
        "yo": "1",
        "Jahre": "1",
        "ans": "1",
    },
    "days": {"days": "1", "day": "1", "d": "1", "Tage": "1", "jours": "1"},
}
_SAFE = re.compile(r"[^\\^\[\]]{1,20}")


class NumberFormat(Settings):
    """How numbers are written: their marks, the signs around them, and their units."""

    decimal: tuple[str, ...] = Field((".",), description="marks before the decimals, a point or a comma")
    thousands: tuple[str, ...] = Field((), description="marks between groups of three digits")
    signs: tuple[str, ...] = Field((), description="texts around a number that mean nothing here: $, EUR, %")
    units: dict[str, Exact] = Field(
        default_factory=dict,
        description="texts after a number with what it is multiplied by; without one it counts as it is",
    )

    @model_validator(mode="after")
    def _sensible(self) -> NumberFormat:
        if set(self.decimal) & set(self.thousands):
            raise ValueError(
                "a mark cannot stand both before decimals and between thousands; keep one of them"
            )
        for mark in (*self.decimal, *self.thousands):
            if mark not in MARKS:
                raise ValueError(f"{mark!r} is no mark in a number; known: {' '.join(map(repr, MARKS))}")
        for text in (*self.signs, *self.units):
            if not _SAFE.fullmatch(text) or not text.strip() or any(c.isdigit() for c in text):
                raise ValueError(
                    f"{text!r} cannot stand beside a number; write up to 20 characters, no digits"
                )
        if set(self.signs) & set(self.units):
            raise ValueError(
                f"{min(set(self.signs) & set(self.units))!r} is both a sign and a unit; keep one"
            )
        for unit, factor in self.units.items():
            if factor <= 0 or factor >= 10**DECIMALS or (factor * 10**DECIMALS).denominator != 1:
                raise ValueError(f"{unit!r}: a factor is positive, below a million, with at most 6 decimals")
        return self

    @property
    def pattern(self) -> str:
        """A regular expression with the groups sign, whole part, decimals and unit; it has no backslash."""
        blanks = f"[{BLANKS}]*"
        signs = f"(?:{_either(self.signs)})?{blanks}" if self.signs else ""
        whole = "[0-9]+"
        if self.thousands:
            mark = f"(?:{_either(self.thousands)})"
            whole = f"[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|[0-9]+"
        decimals = f"(?:(?:{_either(self.decimal)})([0-9]*))?" if self.decimal else "()"
        unit = f"({_either(self.units)})?" if self.units else "()"
        minus = f"([+{MINUS[1:]}-]?)"
        return f"^{signs}{minus}{blanks}{signs}((?:{whole})?){decimals}{blanks}{signs}{unit}{blanks}$"


def _either(texts: object) -> str:
    """Any of some texts, the longest first, without a backslash."""
    ordered = sorted(map(str, texts), key=lambda t: (-len(t), t))  # type: ignore[call-overload]
    return "|".join("".join(c if c.isalnum() or c == " " else f"[{c}]" for c in text) for text in ordered)


def number_format(values: Mapping[str, int]) -> tuple[NumberFormat, int] | None:
    """How the numbers of a column are written, and the rows whose mark could be of either kind.

    None where they are plain numbers already, where fewer than four in five rows are numbers at all, or where more than
    one in a hundred holds digits and is none.
    """
    everything = sum(values.values())
    signs, units = _beside(values)
    bare = NumberFormat(signs=tuple(signs), units=units, decimal=(), thousands=())
    plain = re.compile(r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)")
    if all(plain.fullmatch(v) for v in values):
        return None
    votes = {".": 0, ",": 0}  # rows in which only this mark can be the decimal one
    either = 0
    groups: set[str] = set()
    core = re.compile(r"[0-9][0-9.,'\u2019 \u00a0\u202f\u2009]*[0-9]|[0-9]|[.,][0-9]+")
    for value, rows in values.items():
        found = core.search(value)
        if found is None:
            continue
        text = found[0]
        groups.update(c for c in text if c in "'\u2019 \u00a0\u202f\u2009")
        marks = [c for c in text if c in ".,"]
        if not marks:
            continue
        last = marks[-1]
        if len(set(marks)) == 2 or (len(marks) == 1 and not _grouped(text, last)):
            votes[last] += rows
        elif len(marks) > 1:
            votes["," if last == "." else "."] += rows
            groups.add(last)
        else:
            either += rows
    decimal, thousands = _marks(votes, either, values)
    groups |= set(thousands)
    form = bare.model_copy(update={"decimal": decimal, "thousands": tuple(sorted(groups - set(decimal)))})
    form = NumberFormat.model_validate(form.model_dump())
    fits = re.compile(form.pattern)
    numbers = {v for v in values if (m := fits.match(v)) and (m[2] or m[3])}
    odd = sum(n for v, n in values.items() if v not in numbers and re.search("[0-9]", v))
    rows = sum(values[v] for v in numbers)
    if len(numbers) < 3 or rows * 5 < everything * 4 or odd * 100 > everything:
        return None  # 50000+ says something that a number would not
    return form, either if decimal != (".",) or thousands else 0


def _marks(
    votes: Mapping[str, int], either: int, values: Mapping[str, int]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The decimal marks and the thousands marks that the votes speak for."""
    if votes["."] and votes[","]:
        return (".", ","), ()
    if votes[","]:
        return (",",), (".",) if any("." in v for v in values) else ()
    return (".",), (",",) if any("," in v for v in values) else ()


def _grouped(text: str, mark: str) -> bool:
    """Could the only mark stand between thousands, as in 1,234?"""
    before, _, after = text.partition(mark)
    return len(after) == 3 and 1 <= len(before) <= 3 and before != "0"


def _beside(values: Mapping[str, int]) -> tuple[list[str], dict[str, Fraction]]:
    """The signs and units that stand beside the digits of a column's values."""
    words: dict[str, int] = {}
    for value, rows in values.items():
        found = re.fullmatch(r"([^0-9+-]*?)\s*[+\-\u2212]?\s*([^0-9+.,-]*?)[.,]?[0-9].*?([^0-9.,]*)", value)
        if found is None:
            continue
        for word in (found[1].strip(), found[2].strip(), found[3].strip()):
            if word:
                words[word] = words.get(word, 0) + rows
    signs = [w for w in words if w in SIGNS]
    rest = [w for w in words if w not in SIGNS]
    for family in UNITS.values():
        known = {w: Fraction(family[w]) for w in rest if w in family}
        if known:
            return signs, known
    return signs, {}
