"""Average re-identification risk: the mean over people of 1 over the size of their class [El Emam, Dankar 2008]."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes
from maskwright.domain.exact import text_of
from maskwright.domain.model import Context, Model, Need
from maskwright.domain.references import population_matches
from maskwright.domain.segments import rounded_up
from maskwright.domain.sensitive import Share
from maskwright.domain.verdict import Verdict


class AverageRisk(Model):
    """Averaged over the people in the release, the risk of re-identification is at most max.

    It is a property of the release as a whole: all classes pass together or fail together, and the value
    measured for each of them is the average.

    Attributes:
        max: the largest average risk, above 0 and at most 1.
        adversary: prosecutor (classes divided by people) or marketer (the share of all people that somebody
            with the population table links correctly, the mean of 1 over the matching people).
    """

    name: ClassVar[str] = "average-risk"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = False  # without its small classes a failing table can pass
    about: ClassVar[Literal["quasi-identifiers", "sensitive"]] = "quasi-identifiers"

    max: Share
    adversary: Literal["prosecutor", "marketer"] = "prosecutor"

    def is_local(self) -> bool:
        """No: the average is that of the whole release."""
        return False

    def average(self, classes: Classes, context: Context) -> Fraction:
        """The average risk of a release that is not empty."""
        people = int(classes.sizes.sum())
        if self.adversary == "prosecutor":
            return Fraction(classes.n, people)
        matching = np.maximum(population_matches(self, classes), 1)  # the person at least
        distinct, where = np.unique(matching, return_inverse=True)
        sizes = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(sizes, where, classes.sizes)
        linked = sum(
            (Fraction(s, m) for s, m in zip(sizes.tolist(), distinct.tolist(), strict=True)), Fraction(0)
        )
        return linked / people

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """All classes or none, by the average over the release."""
        return np.full(classes.n, bool(classes.n) and self.average(classes, context) <= self.max)

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the average risk, which is the value of every class."""
        values = [self.average(classes, context)] * classes.n if classes.n else []
        worst = 0 if classes.n else None
        bound = f"at most {text_of(self.max)}"
        return self.verdict(self.passing(classes, context), values, worst, bound, "average risk")

    def needs(self) -> frozenset[Need]:
        """The population, where the adversary is a marketer."""
        return frozenset() if self.adversary == "prosecutor" else frozenset({"population"})

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The average risk of these classes as `max`."""
        return f"max: {rounded_up(self.average(classes, context))}" if classes.n else None
