"""Masking: the last (or first) characters of a value are replaced, more of them at each level."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from maskwright.domain.values import arrange_values
from maskwright.hierarchies.builder import Builder, Domain, Ladder, as_list, declared_values

MAX_LEVELS = 10


class Masking(Builder):
    """Masked characters: 12345, 1234*, 123**."""

    mask: Literal["right", "left"] = Field(description="the end at which characters are masked")
    by: Annotated[tuple[Annotated[int, Field(ge=1, le=1000)], ...], BeforeValidator(as_list)] | None = Field(
        None, max_length=30, description="masked characters at each level, ascending; default 1, 2, 3 …"
    )
    char: str = Field("*", min_length=1, max_length=1, description="what a masked character becomes")
    domain: Domain | None = Field(None, description="all possible values; default: those in the data")

    @field_validator("by")
    @classmethod
    def _ascending(cls, by: tuple[int, ...] | None) -> tuple[int, ...] | None:
        for fewer, more in pairwise(by or ()):
            if fewer >= more:
                raise ValueError(
                    f"{more} after {fewer}: each level must mask more characters than the one before"
                )
        return by

    @field_validator("char")
    @classmethod
    def _visible(cls, char: str) -> str:
        if char.isspace() or not char.isprintable():
            raise ValueError(f"{char!r} cannot be seen; use * or another visible character")
        return char

    def ladder(
        self,
        attribute: str,
        values: Sequence[str],
        folder: Path,
        missing: Collection[str],
        order: Sequence[str] | None = None,
    ) -> Ladder:
        """Mask more characters of every value at each level."""
        ground, ordered = arrange_values(
            attribute, declared_values(attribute, values, self.domain, missing), order
        )
        longest = max(map(len, ground), default=0)
        levels = [
            (f"masked {count}", [self._masked(value, count) for value in ground])
            for count in self.by or _mask_lengths(longest - 1)
        ]
        return Ladder(ground, levels, ordered)

    def _masked(self, value: str, count: int) -> str:
        """The block depends on what is left visible alone, so that levels nest whatever the lengths."""
        if count >= len(value):
            return self.char * max(count, 2)  # a single * would read as the top
        hidden = self.char * count
        return value[:-count] + hidden if self.mask == "right" else hidden + value[count:]


def _mask_lengths(most: int) -> list[int]:
    """1, 2, … most; for long values at most `MAX_LEVELS` of them, evenly spread."""
    if most <= MAX_LEVELS:
        return list(range(1, most + 1))
    return [1 + (most - 1) * i // (MAX_LEVELS - 1) for i in range(MAX_LEVELS)]
