"""Highest re-identification risk: 1 over the size of the smallest class [El Emam, Dankar 2008]."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints
from maskwright.domain.exact import text_of
from maskwright.domain.model import Context, Model, Need
from maskwright.domain.references import population_matches
from maskwright.domain.rules import Rule, SizeAtLeast
from maskwright.domain.segments import Ratios
from maskwright.domain.sensitive import Share
from maskwright.domain.verdict import Verdict


class HighestRisk(Model):
    """Nobody is re-identified with a probability above max, taken literally: 0.09 means classes of 12.

    Attributes:
        max: the largest risk of any person, above 0 and at most 1.
        adversary: prosecutor (knows that the person is in the table: 1 over the people in the class) or
            journalist (does not: 1 over the people of the population table who match the class).
    """

    name: ClassVar[str] = "highest-risk"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True
    about: ClassVar[Literal["quasi-identifiers", "sensitive"]] = "quasi-identifiers"

    max: Share
    adversary: Literal["prosecutor", "journalist"] = "prosecutor"

    def _people(self, classes: Classes, context: Context) -> Ints:
        if self.adversary == "prosecutor":
            return classes.sizes
        return np.maximum(population_matches(self, classes), 1)  # the person at least

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes with enough people, or enough matching people, for the risk."""
        return self._people(classes, context) >= math.ceil(1 / self.max)

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """The rule on the size of classes; None for the journalist, who compares with a population."""
        least = min(math.ceil(1 / self.max), 2**62)  # no table has so many people, and a kernel holds 64 bits
        return (SizeAtLeast(least),) if self.adversary == "prosecutor" else None

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the risk of re-identification in each class."""
        people = self._people(classes, context)
        risks = Ratios(np.ones(classes.n, dtype=np.int64), people)
        worst = int(people.argmin()) if classes.n else None
        bound = f"at most {text_of(self.max)}"
        return self.verdict(risks.at_most(self.max), risks, worst, bound, "risk of re-identification")

    def needs(self) -> frozenset[Need]:
        """The population, where the adversary is a journalist."""
        return frozenset() if self.adversary == "prosecutor" else frozenset({"population"})

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The highest risk in these classes as `max`."""
        return f"max: 1/{self._people(classes, context).min()}" if classes.n else None
