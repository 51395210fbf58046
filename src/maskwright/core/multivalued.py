"""Multi-valued attributes: a set of values per row, as one yes-or-no attribute for each value, and back [CODIP].

The derived attribute `symptoms=cough` is true where the set holds the value. Only presence is sensitive.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

PRESENT, ABSENT = "true", "false"
BIT_VALUES = (ABSENT, PRESENT)


@dataclass(frozen=True)
class SetColumn:
    """A column of sets.

    Attributes:
        name: the column.
        values: everything that occurs in its sets, ascending.
        separator: what separates the values in a text; None: the column holds lists.
    """

    name: str
    values: tuple[str, ...]
    separator: str | None = None

    @property
    def bits(self) -> tuple[str, ...]:
        """The derived attributes, in the order of the values."""
        return tuple(f"{self.name}={value}" for value in self.values)

    def only(self, bits: Collection[str]) -> SetColumn:
        """The column as far as some of its derived attributes tell."""
        kept = tuple(v for v, bit in zip(self.values, self.bits, strict=True) if bit in bits)
        return SetColumn(self.name, kept, self.separator)


def bitmap(sets: Sequence[Collection[str]], values: Sequence[str]) -> list[list[int]]:
    """For each value the list of 0 or 1, one per set: does it hold the value?"""
    return [[int(value in members) for members in sets] for value in values]


def from_bitmap(bits: Sequence[Sequence[int]], values: Sequence[str]) -> list[list[str]]:
    """The sets that a bitmap stands for, each in the order of the values."""
    return [[v for v, bit in zip(values, row, strict=True) if bit] for row in zip(*bits, strict=True)]
