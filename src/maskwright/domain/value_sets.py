"""Multi-valued attributes: a set of values per row, as one yes-or-no attribute for each value, and back [CODIP].

The derived attribute `symptoms=cough` is true where the set holds the value. Only presence is sensitive.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maskwright.domain.summary import Summary

PRESENT, ABSENT = "true", "false"
BIT_VALUES = (ABSENT, PRESENT)


@dataclass(frozen=True)
class SetColumn:
    """A column of sets.

    Attributes:
        name: the column.
        values: everything that occurs in its sets, ascending.
        separator: what separates the values in a text; None: the column holds lists.
        sizes: how many values the smallest and the largest set of the input hold, where that was counted.
    """

    name: str
    values: tuple[str, ...]
    separator: str | None = None
    sizes: tuple[int, int] | None = None

    @property
    def bits(self) -> tuple[str, ...]:
        """The derived attributes, in the order of the values."""
        return tuple(f"{self.name}={value}" for value in self.values)

    def only(self, bits: Collection[str]) -> SetColumn:
        """The column as far as some of its derived attributes tell."""
        kept = tuple(v for v, bit in zip(self.values, self.bits, strict=True) if bit in bits)
        return SetColumn(self.name, kept, self.separator)

    def counted(self, summary: Summary) -> SetColumn:
        """The column with the sizes of its sets, from a summary that has all its bits."""
        if summary.joint is None:
            return self
        names = list(summary.sensitive)
        present = [
            summary.joint.values[names.index(bit)] == BIT_VALUES.index(PRESENT) + 1 for bit in self.bits
        ]
        held = sum(p.astype(int) for p in present)
        return replace(self, sizes=(int(held.min()), int(held.max())))

    def as_dict(self) -> dict[str, Any]:
        """The column as `private/` keeps it."""
        return {
            "name": self.name,
            "values": list(self.values),
            "separator": self.separator,
            "sizes": self.sizes,
        }

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> SetColumn:
        """The column that `as_dict` stored."""
        sizes = stored.get("sizes")
        return SetColumn(
            stored["name"], tuple(stored["values"]), stored["separator"], tuple(sizes) if sizes else None
        )
