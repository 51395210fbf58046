"""What a utility metric is: a plain function of a grouping, with the meaning of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from maskwright.domain.grouping import Grouping, exact_view
from maskwright.domain.settings import first_line

Weights = Mapping[str, Fraction]


@dataclass(frozen=True)
class Metric:
    """`function(grouping, weights)`; `meaning` says what the ends of its scale stand for.

    A metric of what the quasi-identifiers show reads nothing but their labels. One that reads sensitive values too
    (`reads="groups"`) takes a third argument: are the quasi-identifiers published as they are? Costly metrics are
    computed only where somebody asks for them (`on_request`). NaN: not defined for this release.
    """

    name: str
    function: Callable[..., Fraction | float | int]
    meaning: str
    better: Literal["low", "high"]
    reads: Literal["labels", "groups"] = "labels"
    on_request: bool = False

    def measure(self, grouping: Grouping, weights: Weights, exact: bool = False) -> Fraction | float | int:
        """Its value for a release; `exact`: quasi-identifiers are published as they are."""
        if self.reads == "groups":
            return self.function(grouping, weights, exact)
        return self.function(exact_view(grouping) if exact else grouping, weights)

    def summary_line(self) -> str:
        """The first line of the docstring of its function."""
        return first_line(self.function)
