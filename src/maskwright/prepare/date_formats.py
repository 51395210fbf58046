"""Dates in several formats in one column, and the time from one date to another: an age, a length of stay."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import combinations
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from maskwright.domain.settings import Settings

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMES = "|".join(
    "".join(f"[{c.upper()}{c}]" for c in name)
    for name in (
        "january", "february", "march", "april", "june", "july", "august", "september", "sept", "october",
        "november", "december", *MONTHS,
    )
)  # fmt: skip
_PIECES = {
    "%Y": "([1-9][0-9]{3})",
    "%y": "([0-9]{2})",
    "%m": "([0-9]{1,2})",
    "%d": "([0-9]{1,2})",
    "%b": f"({_NAMES})[.]?",
    "%H": "[0-9]{1,2}",
    "%M": "[0-9]{2}",
    "%S": "[0-9]{2}(?:[.][0-9]+)?",
}
_DIRECTIVE = re.compile(r"%.|.", re.DOTALL)
# What is tried on a column of messy dates, the commonest first.
KNOWN = (
    "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%Y.%m.%d", "%Y%m%d",
    "%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%b %d %Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%y",
)  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M")


class DateFormats(Settings):
    """The formats in which a column writes dates, and what is kept of them."""

    formats: tuple[str, ...] = Field(
        min_length=1, max_length=20,
        description="as %d.%m.%Y, with %Y %y %m %d %b (Jan, January), %H %M %S; the first that fits a value counts",
    )  # fmt: skip
    show: Literal["day", "month", "year"] = Field("day", description="what is kept of a date")
    first_year: int | None = Field(
        None, ge=1000, le=9900,
        description="years of two digits (%y) lie in the hundred years from this one",
    )  # fmt: skip
    ambiguous: Literal["refuse", "missing", "first"] = Field(
        "refuse",
        description="a value that two of the formats read as different days; first: by the one that is listed first",
    )

    @field_validator("formats", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        formats = value if isinstance(value, (list, tuple)) else [value]
        for form in formats:
            pieces = _DIRECTIVE.findall(str(form))
            parts = sorted({"%y": "%Y"}.get(p, p) for p in pieces if p in ("%Y", "%y", "%m", "%b", "%d"))
            if parts not in (["%Y", "%d", "%m"], ["%Y", "%b", "%d"]):
                raise ValueError(f"{form!r} must have a day, a month and a year, each once: %d.%m.%Y")
            for piece in pieces:
                if piece.startswith("%") and piece not in _PIECES:
                    raise ValueError(f"{form!r}: {piece} is not known; known: {' '.join(_PIECES)}")
                if piece in "\\^[]":
                    raise ValueError(f"{form!r}: {piece!r} cannot stand in a format")
        return tuple(map(str, formats))

    @model_validator(mode="after")
    def _centuries(self) -> DateFormats:
        if self.first_year is None and any("%y" in form for form in self.formats):
            raise ValueError("years of two digits need `first_year`, e.g. first_year: 1930 for 1930 to 2029")
        return self

    @property
    def written(self) -> tuple[WrittenDate, ...]:
        """Each format as something that can be looked for."""
        return tuple(map(written_date, self.formats))

    @property
    def exchangeable(self) -> list[tuple[int, int]]:
        """Pairs of formats that can read one text as two days."""
        return [
            (i, j)
            for (i, one), (j, two) in combinations(enumerate(self.written), 2)
            if one.skeleton == two.skeleton
        ]


@dataclass(frozen=True)
class WrittenDate:
    """A format as a regular expression (without a backslash), and the numbers of its groups.

    Attributes:
        pattern: matches the whole text.
        year, month, day: the number of the group that holds it.
        short: the year has two digits.
        named: the month is a name.
        skeleton: alike for formats that can read the same text.
    """

    pattern: str
    year: int
    month: int
    day: int
    short: bool
    named: bool
    skeleton: str


@cache
def written_date(form: str) -> WrittenDate:
    """A format as something that can be looked for."""
    pieces = _DIRECTIVE.findall(form)
    groups = [p for p in pieces if p in ("%Y", "%y", "%m", "%b", "%d")]
    place = {{"%y": "%Y", "%b": "%m"}.get(p, p): i for i, p in enumerate(groups, 1)}
    pattern = "".join(_PIECES.get(p) or (p if p.isalnum() else f"[{p}]") for p in pieces)
    if "%Y%m%d" in form:
        pattern = pattern.replace("{1,2}", "{2}")
    skeleton = "".join({"%m": "%d"}.get(p, p) for p in pieces)
    return WrittenDate(
        f"^{pattern}$", place["%Y"], place["%m"], place["%d"], "%y" in groups, "%b" in groups, skeleton
    )


def read_date(text: str, form: str, first_year: int | None) -> date | None:
    """The day that a text means in a format, or None."""
    written = written_date(form)
    found = re.match(written.pattern, text)
    if found is None:
        return None
    year = int(found[written.year])
    if written.short:
        start = first_year or 1950
        year += start - start % 100 + (100 if year < start % 100 else 0)
    name = found[written.month]
    month = MONTHS.index(name[:3].lower()) + 1 if written.named else int(name)
    try:
        return date(year, month, int(found[written.day]))
    except ValueError:
        return None


@dataclass(frozen=True)
class FoundDates:
    """How a column writes dates.

    Attributes:
        setting: the formats.
        rows: of each format.
        unclear: rows whose day and month could be exchanged, where both orders occur.
        other_order: per format the rows that would be a day with day and month exchanged, too; no row shows that order.
    """

    setting: DateFormats
    rows: Mapping[str, int]
    unclear: int
    other_order: Mapping[str, int]


def date_formats(values: Mapping[str, int], birth: bool = False) -> FoundDates | None:
    """The formats of a column of dates; None where fewer than four in five rows are dates.

    A format counts when some value can be read in no other way, or is read by nothing else. Where days and months are
    exchanged in every single value, the day is taken to come first.
    """
    forms = [day + time for day in KNOWN for time in TIMES]
    first_year = (date.today().year - 99) if birth else 1950
    shapes: dict[str, list[str]] = {}  # whether a format matches depends on where the digits are

    def fitting_forms(value: str) -> list[str]:
        """The formats in which a value can be read."""
        shape = re.sub("[0-9]", "9", value)
        if shape not in shapes:
            shapes[shape] = [f for f in forms if re.match(written_date(f).pattern, shape)]
        return [f for f in shapes[shape] if read_date(value, f, first_year) is not None]

    read = {v: fitting_forms(v) for v in values}
    rows = sum(n for v, n in values.items() if read[v])
    if not rows or rows * 5 < 4 * sum(values.values()):
        return None
    sure: dict[str, int] = {}
    for value, fitting in read.items():
        if len(fitting) == 1:
            sure[fitting[0]] = sure.get(fitting[0], 0) + values[value]
    unsure = [fitting for fitting in read.values() if len(fitting) > 1 and not set(fitting) & set(sure)]
    chosen = set(sure)
    while unsure:
        chosen.add(unsure[0][0])
        unsure = [fitting for fitting in unsure if not set(fitting) & chosen]
    ordered = [f for f in forms if f in chosen]
    unclear = sum(values[v] for v, fitting in read.items() if len(_days(v, fitting, ordered, first_year)) > 1)
    counted = {
        f: sum(values[v] for v, fitting in read.items() if [g for g in ordered if g in fitting][:1] == [f])
        for f in ordered
    }
    setting = DateFormats(
        formats=tuple(sorted(ordered, key=lambda f: -counted[f])),
        first_year=first_year if any("%y" in f for f in ordered) else None,
        ambiguous="missing" if unclear else "refuse",
    )
    return FoundDates(setting, counted, unclear, _other_order(values, read, ordered, first_year))


def _other_order(
    values: Mapping[str, int], read: Mapping[str, Sequence[str]], chosen: Sequence[str], first_year: int
) -> dict[str, int]:
    """Per chosen format the rows that one of the same form, which is not chosen, reads as another day."""
    found: dict[str, int] = {}
    for value, fitting in read.items():
        mine = next((f for f in chosen if f in fitting), None)
        if mine is None:
            continue
        alike = [f for f in fitting if written_date(f).skeleton == written_date(mine).skeleton]
        if not set(alike) & (set(chosen) - {mine}) and len(_days(value, alike, alike, first_year)) > 1:
            found[mine] = found.get(mine, 0) + values[value]
    return found


def _days(text: str, fitting: Sequence[str], chosen: Sequence[str], first_year: int) -> set[date | None]:
    return {read_date(text, form, first_year) for form in fitting if form in chosen}


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class Span(Settings):
    """The time from one date to another, in whole units that have passed."""

    start: str = Field(alias="from", description="a column of dates, or a date: 2024-01-31")
    end: str = Field(alias="to", description="a column of dates, or a date: 2024-01-31")
    unit: Literal["days", "weeks", "months", "years"] = Field("days", description="of the length")

    @field_validator("start", "end", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        text = value.isoformat() if isinstance(value, date) else value
        if isinstance(text, str) and _DAY.fullmatch(text):
            date.fromisoformat(text)  # refuses a day that does not exist
        return text

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is computed from."""
        return tuple(end for end in (self.start, self.end) if not _DAY.fullmatch(end))
