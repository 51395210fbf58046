"""k-map: every published class matches at least k people of the population [Sweeney 2001]."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes
from maskwright.domain.model import Context, Model, Need
from maskwright.domain.references import population_matches
from maskwright.domain.sensitive import Count
from maskwright.domain.verdict import Verdict


class KMap(Model):
    """Every class matches at least k people of the population table, however few of them are in the release.

    Attributes:
        k: the least number of matching people.
    """

    name: ClassVar[str] = "k-map"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True
    about: ClassVar[Literal["quasi-identifiers", "sensitive"]] = "quasi-identifiers"

    k: Count

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes that at least k people of the population match."""
        return population_matches(self, classes) >= self.k

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the people of the population that match each class."""
        people = population_matches(self, classes)
        worst = int(people.argmin()) if classes.n else None
        return self.verdict(people >= self.k, people, worst, f"at least {self.k}", "matching people")

    def needs(self) -> frozenset[Need]:
        """The population that matches each class."""
        return frozenset({"population"})

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The fewest matching people of any of these classes as k."""
        least = population_matches(self, classes).min(initial=self.k)
        return f"k: {least}" if classes.n and least else None
