"""Several values in a cell, with one separator here and another there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator

from maskwright.domain.settings import Settings

SEPARATORS = (";", "|", "/", ",", "+", "&")


class ListCells(Settings):
    """A list in a cell: its separators, and what stays of it."""

    separators: tuple[str, ...] = Field(
        min_length=1, max_length=10, description="what stands between two values; the first one is written"
    )
    keep: Literal["all", "first", "count"] = Field(
        "all", description="all of its values (for `multivalued`), the first one, or how many there are"
    )

    @field_validator("separators", mode="after")
    @classmethod
    def _not_blank(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for separator in value:
            if not separator.strip() or separator.strip() != separator:
                raise ValueError(f"{separator!r} cannot separate values: blanks around them do not count")
        return value


def list_cells(values: Mapping[str, int]) -> ListCells | None:
    """The separators of a column of lists; None where its cells are single values.

    A separator must stand in a tenth of the rows, and the parts must be few: lists repeat the same values, which texts
    that happen to hold a comma do not.
    """
    rows = sum(values.values())
    parts: set[str] = set()
    found = [s for s in SEPARATORS if sum(n for v, n in values.items() if s in v) * 50 >= rows]
    strong = [s for s in found if sum(n for v, n in values.items() if s in v) * 10 >= rows]
    if not strong:
        return None
    separators = sorted(found, key=lambda s: -sum(n for v, n in values.items() if s in v))
    pieces = 0
    for value in values:
        text = value
        for separator in separators[1:]:
            text = text.replace(separator, separators[0])
        items = [item.strip() for item in text.split(separators[0]) if item.strip()]
        pieces += len(items)
        parts.update(items)
        if any(item.replace(".", "").isdigit() for item in items) and len(items) > 1:
            return None  # 1/2, 12,5 and 2024/01 are no lists
    if len(parts) * 3 > len(values) * 2 or len(parts) < 3 or len(values) < 6:
        return None
    return ListCells(separators=tuple(separators))
