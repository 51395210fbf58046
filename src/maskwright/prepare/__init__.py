"""What is done to a messy column before anything else reads it: one file per kind of mess.

`missing`     texts that mean missing in this column     `numbers`   $1,234.50 and 1.234,50 € as 1234.5
`spellings`   F, f and female as Female                  `dates`     31.01.2024 and 01/31/2024 as 2024-01-31
`digits`      2139 as 02139                              `lists`     "a; b | c" as a list with one separator
`between`     a new column: the time from one date to another
`redact`      free text without what a language model recognises as a name

What becomes of a cell follows from the cell (of a length: from the two cells of its row) and from the policy alone.
Nothing is taken from other rows, so that new rows are prepared exactly as the table was.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from maskwright.domain.settings import Settings
from maskwright.domain.values import canonical_text
from maskwright.prepare.date_formats import DateFormats, Span
from maskwright.prepare.digits import Digits
from maskwright.prepare.lists import ListCells
from maskwright.prepare.numbers import NumberFormat
from maskwright.prepare.redaction import Redaction
from maskwright.prepare.repairs import Repair
from maskwright.prepare.spellings import Spellings

__all__ = [
    "DateFormats",
    "Digits",
    "ListCells",
    "NumberFormat",
    "Preparation",
    "Redaction",
    "Repair",
    "Span",
    "Spellings",
]

KINDS = ("numbers", "dates", "digits", "lists", "between", "redact")


class Preparation(Settings):
    """What is done to one column before anything else reads it."""

    missing: tuple[str, ...] = Field(
        (), description="texts that mean missing in this column; `missing.tokens` hold for all columns"
    )
    spellings: Spellings = Field(
        default_factory=dict, description="other ways to write a value: {Female: [F, f, female]}"
    )
    numbers: NumberFormat | None = Field(None, description="how numbers are written in it")
    dates: DateFormats | None = Field(None, description="how dates are written in it")
    digits: Digits | None = Field(None, description="codes of a fixed length that lost their leading zeros")
    lists: ListCells | None = Field(None, description="several values in a cell")
    between: Span | None = Field(None, description="a new column: the time from one date to another")
    redact: Redaction | None = Field(
        None, description="free text that a program takes names out of, not verified"
    )
    otherwise: Literal["refuse", "missing", "keep"] = Field(
        "refuse",
        description="a value that none of this fits: refuse the table, count it as missing, or keep it",
    )

    @field_validator("missing", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        items = value if isinstance(value, (list, tuple)) else [value]
        return tuple(canonical_text(item) for item in items)

    @model_validator(mode="after")
    def _one_kind(self) -> Preparation:
        kinds = [name for name in KINDS if getattr(self, name) is not None]
        if len(kinds) > 1:
            raise ValueError(f"`{kinds[0]}` and `{kinds[1]}` cannot both be done to a column; keep one")
        if self.between is not None and (self.missing or self.spellings):
            raise ValueError("a length is a new column, which has no texts; remove `missing` and `spellings`")
        for text in self.missing:
            if text in {spelling for others in self.spellings.values() for spelling in others}:
                raise ValueError(f"{text!r} is both missing and another spelling; remove it from one of them")
        return self

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def idle(self) -> bool:
        """Whether nothing at all is done."""
        return not (self.missing or self.spellings or any(getattr(self, name) for name in KINDS))
