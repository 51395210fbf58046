"""A sample: how many people a table was drawn from, and whether survey weights say whom each person stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints

Floats = NDArray[np.float64]


def weight_totals(index: Ints, weights: Floats, length: int) -> Floats:
    """The sum of the weights of each index; a negative index counts nowhere."""
    inside = index >= 0
    return np.bincount(index[inside], weights=weights[inside], minlength=length).astype(np.float64)


@dataclass(frozen=True)
class Sample:
    """What the policy says of the population behind a table.

    Attributes:
        size: people of the population.
        people: people of the table, before anybody is suppressed.
        weighted: does a column of weights say how many people each person of the table stands for?
        wildcard: when risks are estimated, does a missing value match every value?
    """

    size: int
    people: int
    weighted: bool = False
    wildcard: bool = False

    def stands_for(self, sizes: Ints) -> Floats:
        """The people of the population that classes of these sizes stand for, where all weigh the same."""
        return np.asarray(sizes * (self.size / self.people), dtype=np.float64)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "size": self.size, "people": self.people, "weighted": self.weighted, "wildcard": self.wildcard,
        }  # fmt: skip

    @staticmethod
    def of(stored: Mapping[str, Any]) -> Sample:
        """What `as_dict` wrote."""
        return Sample(
            int(stored["size"]), int(stored["people"]), bool(stored["weighted"]), bool(stored["wildcard"])
        )
