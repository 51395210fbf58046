"""The time from one date to another: an age, a length of stay."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, Literal

from pydantic import Field, field_validator

from maskwright.domain.settings import Settings

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
