"""Codes of a fixed length that lost their leading zeros: ZIP codes that went through a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from maskwright.domain.settings import Settings


class Digits(Settings):
    """Codes of so many digits; shorter ones get their leading zeros back (2139 and 2139.0 become 02139)."""

    width: int = Field(ge=2, le=30, description="digits of a code")
    suffix: Literal["refuse", "drop"] = Field(
        "refuse", description="what follows a hyphen, as in 02139-4307: refuse it, or leave it out"
    )

    @model_validator(mode="before")
    @classmethod
    def _bare_width(cls, value: Any) -> Any:
        return value if isinstance(value, (dict, Digits)) else {"width": value}

    @property
    def pattern(self) -> str:
        """A regular expression whose first group is the code; whatever else it matches is left out."""
        after = "(?:-[0-9]*)?" if self.suffix == "drop" else ""
        return f"^([0-9]{{1,{self.width}}})(?:[.]0)?{after}$"


def lost_zeros(values: Mapping[str, int], width: int = 5) -> Digits | None:
    """The setting for codes of which some are too short, or end in .0; None where nothing is wrong with them.

    Most rows must hold whole codes or codes that are one or two digits short.
    """
    loose = re.compile(Digits(width=width, suffix="drop").pattern)
    fits = {v: m[1] for v in values if (m := loose.match(v)) and len(m[1]) >= width - 2}
    rows = sum(values[v] for v in fits)
    whole = sum(values[v] for v, code in fits.items() if len(code) == width)
    if rows * 10 < 9 * sum(values.values()) or whole * 2 < rows:
        return None
    suffix: Literal["refuse", "drop"] = "drop" if any("-" in v for v in fits) else "refuse"
    if all("-" in v for v in fits) or all(v == code.zfill(width) for v, code in fits.items()):
        return None  # whole codes, all written alike
    return Digits(width=width, suffix=suffix)
