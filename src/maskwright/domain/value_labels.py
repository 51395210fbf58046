"""Labels of intervals, ranges and sets: the text under which several values are published, and how it is read again.

An interval is cut from numbers; a range is a run of listed values, by its first and its last; a set names every value.
These texts are published, so none of them ever changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.exact import text_of


def interval_label(low: Fraction | None, high: Fraction | None, whole: bool) -> str:
    """The numbers from low on and below high: 20-29 of whole ones, [1.5, 2.5); <20 and ≥90 where there is one end."""
    if low is None or high is None:
        return f"<{text_of(high)}" if high is not None else f"≥{text_of(low or Fraction(0))}"
    if not whole:
        return f"[{text_of(low)}, {text_of(high)})"
    if high == low + 1:
        return text_of(low)
    return f"{text_of(low)}{'-' if low >= 0 else '..'}{text_of(high - 1)}"


def table_interval_label(low: str | None, high: str | None, whole: bool) -> str:
    """The same as statistical tables write it, from texts of numbers: 20-29, 18.5-<25; <1 and 85+."""
    if low is None or high is None:
        return f"<{high}" if low is None else f"{low}+"
    if not whole:
        return f"{low}-<{high}"
    return low if int(high) == int(low) + 1 else f"{low}-{int(high) - 1}"


def group_label(members: Sequence[str], *, run: bool = False) -> str:
    """A group of a policy that it gives no name: {a, b}; a run of the column's order, a..c."""
    if len(members) == 1:
        return members[0]
    return f"{members[0]}..{members[-1]}" if run else "{" + ", ".join(members) + "}"


class ValueLabels:
    """How ranges and sets of a column's values are written, so that they can be read again."""

    def __init__(self, values: Sequence[str]) -> None:
        self.values = values

    def range_label(self, first: int, last: int) -> str:
        """The text of a range, by the codes of its ends: 20-29; where values have dashes, 1.1-5..2.3-7."""
        return f"{self.values[first - 1]}{self._between}{self.values[last - 1]}"

    def set_label(self, codes: Iterable[int]) -> str:
        """The text of a set of values: {a, b}; where values have commas or braces, in quotes."""
        values = [self.values[code - 1] for code in codes]
        shown = [json.dumps(value, ensure_ascii=False) for value in values] if self._quoted else values
        return "{" + ", ".join(shown) + "}"

    def listed_codes(self, text: str, coverage: int) -> NDArray[np.int64] | None:
        """The codes in a `range_label` or `set_label` of so many values, ascending; None: it is neither."""
        for at in [i for i in range(1, len(text)) if text.startswith(self._between, i)]:
            first, last = self._code.get(text[:at]), self._code.get(text[at + len(self._between) :])
            if first and last and last - first + 1 == coverage:
                return np.arange(first, last + 1)
        if text.startswith("{") and text.endswith("}"):
            listed = text[1:-1].split(", ")
            if self._quoted:
                try:
                    listed = json.loads(f"[{text[1:-1]}]")
                except ValueError:
                    return None
            if len(listed) == coverage and all(value in self._code for value in listed):
                return np.array(sorted(self._code[value] for value in listed), dtype=np.int64)
        return None

    @cached_property
    def _code(self) -> dict[str, int]:
        return {value: i + 1 for i, value in enumerate(self.values)}

    @cached_property
    def _between(self) -> str:
        return ".." if any("-" in value for value in self.values) else "-"

    @cached_property
    def _quoted(self) -> bool:
        return any(set(value) & set("{},") for value in self.values)
