"""Average re-identification risk: the mean over people of 1 over the size of their class [El Emam, Dankar 2008]."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints
from maskwright.domain.exact import text_of
from maskwright.domain.model import Context, Model, Need
from maskwright.domain.references import population_matches
from maskwright.domain.segments import rounded_up
from maskwright.domain.sensitive import Share
from maskwright.domain.verdict import Verdict


class AverageRisk(Model):
    """Averaged over the people in the release, the risk of re-identification is at most max.

    It is a property of the release as a whole: all classes pass together or fail together, and the value
    measured for each of them is the average. Where failing classes are suppressed, those of the highest risk go
    first, one by one, until the others pass. Whoever has rows in several classes has the highest of their risks.

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
        return self._mean(classes, self._matching(classes), np.ones(classes.n, dtype=bool))

    def _mean(self, classes: Classes, matching: Ints, kept: NDArray[np.bool_]) -> Fraction:
        """The mean risk of everybody in the classes that are kept."""
        if classes.several is None:
            return _mean_risk(classes.sizes[kept], matching[kept])
        owner, person = classes.several
        alone = classes.sizes - np.bincount(owner, minlength=classes.n)
        owner, person = owner[kept[owner]], person[kept[owner]]
        order = np.lexsort((matching[owner], person))
        fewest = matching[owner[order]][np.flatnonzero(np.diff(person[order], prepend=-1))]
        people = np.concatenate([alone[kept], np.ones_like(fewest)])
        return _mean_risk(people, np.concatenate([matching[kept], fewest]))

    def _matching(self, classes: Classes) -> Ints:
        """How many people each class's people can be taken for."""
        if self.adversary == "prosecutor":
            return classes.sizes
        return np.maximum(population_matches(self, classes), 1)  # the person at least

    def surviving(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """The classes that are left when those of the highest risk are dropped until the average is low enough.

        Of classes with equal risk the first go first: values have no say in it.
        """
        matching = self._matching(classes)
        order = np.argsort(matching, kind="stable")
        low, high = 0, classes.n  # the fewest that must go; the average falls with each that goes
        while low < high:
            middle = (low + high) // 2
            kept = np.zeros(classes.n, dtype=bool)
            kept[order[middle:]] = True
            if self._mean(classes, matching, kept) <= self.max:
                high = middle
            else:
                low = middle + 1
        kept = np.zeros(classes.n, dtype=bool)
        kept[order[low:]] = True
        return kept

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


def _mean_risk(sizes: Ints, matching: Ints) -> Fraction:
    """The mean over people of 1 over the people they can be taken for."""
    people = int(sizes.sum())
    if sizes is matching or np.array_equal(sizes, matching):
        return Fraction(len(sizes), people)
    distinct, where = np.unique(matching, return_inverse=True)
    totals = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(totals, where, sizes)
    linked = sum(
        (Fraction(s, m) for s, m in zip(totals.tolist(), distinct.tolist(), strict=True)), Fraction(0)
    )
    return linked / people
