"""What a utility metric is: a plain function of a grouping, with the meaning of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from maskwright.core.grouping import Grouping

Weights = Mapping[str, Fraction]


@dataclass(frozen=True)
class Metric:
    """`function(grouping, weights)`; `meaning` says what the ends of its scale stand for."""

    name: str
    function: Callable[[Grouping, Weights], Fraction | float | int]
    meaning: str
    better: Literal["low", "high"]

    def summary_line(self) -> str:
        return (self.function.__doc__ or "").strip().splitlines()[0]
