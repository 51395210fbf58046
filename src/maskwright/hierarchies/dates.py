"""Calendar units: days, ISO weeks, months, quarters, years, decades. A week does not lie within a month."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from maskwright.domain.exact import short_repr
from maskwright.errors import HierarchyError
from maskwright.hierarchies.builder import Builder, Domain, Ladder, as_list, declared_values, refuse_order

Unit = Literal["day", "week", "month", "quarter", "year", "decade"]

_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)(?:Z|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)


def _week(when: datetime) -> str:
    year, week, _ = when.isocalendar()
    return f"{year:04d}-W{week:02d}"


# finest first; the order of the levels, whatever order the policy lists them in
UNITS: dict[Unit, Callable[[datetime], str]] = {
    "day": lambda when: when.date().isoformat(),
    "week": _week,
    "month": lambda when: f"{when.year:04d}-{when.month:02d}",
    "quarter": lambda when: f"{when.year:04d}-Q{(when.month + 2) // 3}",
    "year": lambda when: f"{when.year:04d}",
    "decade": lambda when: f"{when.year // 10 * 10:04d}s",
}


class Dates(Builder):
    """Calendar units of a date or timestamp."""

    dates: Annotated[tuple[Unit, ...], BeforeValidator(as_list)] = Field(
        min_length=1, description="the units to offer"
    )
    format: str | None = Field(
        None, description="how dates are written, as in strptime (%d.%m.%Y); default 2024-01-31 [12:00:00]"
    )
    domain: Domain | None = Field(None, description="all possible values; default: those in the data")

    @field_validator("dates")
    @classmethod
    def _once(cls, units: tuple[Unit, ...]) -> tuple[Unit, ...]:
        twice = sorted({unit for unit in units if units.count(unit) > 1})
        if twice:
            raise ValueError(f"{twice[0]!r} is listed twice; list it once")
        return units

    @field_validator("format")
    @classmethod
    def _has_year(cls, form: str | None) -> str | None:
        if form is not None and not re.search(r"%[YyG]", form.replace("%%", "")):
            raise ValueError(f"{short_repr(form)} has no year (%Y or %y), so dates cannot be told apart")
        return form

    def ladder(
        self,
        attribute: str,
        values: Sequence[str],
        folder: Path,
        missing: Collection[str],
        order: Sequence[str] | None = None,
    ) -> Ladder:
        """Label every date by its calendar units."""
        refuse_order(attribute, order, "dates")
        moments = {
            v: self._moment(attribute, v) for v in declared_values(attribute, values, self.domain, missing)
        }
        ground = sorted(moments, key=lambda value: (moments[value], value))
        levels = [
            (unit, [label(moments[value]) for value in ground])
            for unit, label in UNITS.items()
            if unit in self.dates
        ]
        return Ladder(ground, levels, True, chain=False)

    def _moment(self, attribute: str, value: str) -> datetime:
        try:
            if self.format is not None:
                return datetime.strptime(value, self.format).replace(tzinfo=None)
            parts = _ISO.fullmatch(value)
            if parts:
                return datetime.fromisoformat(" ".join(filter(None, parts.groups())))
        except (ValueError, OverflowError, re.error, KeyError):
            pass
        expected = self.format if self.format is not None else "2024-01-31 or 2024-01-31 12:00:00"
        raise HierarchyError(
            f"column {attribute!r}: {short_repr(value)} is not a date written as {short_repr(expected)}; "
            "set `format`, correct it, or declare it as missing"
        )
