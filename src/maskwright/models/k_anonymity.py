"""k-anonymity: nobody can be told apart from fewer than k people [Samarati, Sweeney 1998]."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator

from maskwright.domain.classes import Classes, Ints
from maskwright.domain.model import Context, Model, Need
from maskwright.domain.rules import Rule, SizeAtLeast
from maskwright.domain.segments import class_sums
from maskwright.domain.sensitive import Count
from maskwright.domain.settings import did_you_mean
from maskwright.domain.verdict import Verdict
from maskwright.errors import PolicyError


def _combinations(value: tuple[tuple[str, ...], ...] | None) -> tuple[tuple[str, ...], ...] | None:
    if value is None:
        return None
    if not value or not all(value):
        raise ValueError("name at least one column in each combination, e.g. [[age, zip], [age, sex]]")
    for combination in value:
        if len(set(combination)) < len(combination):
            raise ValueError(f"a combination names a column twice: {', '.join(combination)}")
    return value


class KAnonymity(Model):
    """Every class holds at least k people.

    Attributes:
        k: the least number of people in a class.
        on: combinations of columns an attacker may know, instead of all quasi-identifiers together: every
            combination of values that is published must then match at least k people.
    """

    name: ClassVar[str] = "k-anonymity"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True
    about: ClassVar[Literal["quasi-identifiers", "sensitive"]] = "quasi-identifiers"

    k: Count
    on: Annotated[tuple[tuple[str, ...], ...] | None, AfterValidator(_combinations)] = None

    def is_local(self) -> bool:
        """Whether all quasi-identifiers count together; combinations of some of them span several classes."""
        return self.on is None

    def people(self, classes: Classes) -> Ints:
        """How many people match each class, on the worst of the combinations asked for."""
        if self.on is None:
            return classes.sizes
        least = np.full(classes.n, np.iinfo(np.int64).max, dtype=np.int64)
        for combination in self.on:
            least = np.minimum(least, _marginal(classes, combination))
        return least

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes that at least k people match."""
        return self.people(classes) >= self.k

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """The rule on the size of classes; None where `on` names combinations of columns."""
        return (SizeAtLeast(self.k),) if self.on is None else None

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the people that match each class."""
        people = self.people(classes)
        worst = int(people.argmin()) if len(people) else None
        return self.verdict(people >= self.k, people, worst, f"at least {self.k}", "people in the class")

    def unfit_for_people(self) -> str:
        """Why combinations of columns cannot be counted in people."""
        if self.on is None:
            return ""
        return "somebody in several classes would count twice in `on`; require k-anonymity of all quasi-identifiers"

    def needs(self) -> frozenset[Need]:
        """The published labels, where `on` names combinations of columns."""
        return frozenset() if self.on is None else frozenset({"labels"})

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The fewest people that match any of these classes as k."""
        return f"k: {self.people(classes).min()}" if classes.n else None


def _marginal(classes: Classes, combination: tuple[str, ...]) -> Ints:
    """For each class the people in all classes that publish the same values in these columns."""
    if classes.codes is None:
        raise PolicyError(
            "k-anonymity: `on` needs the published values of each class, which are not known here"
        )
    for column in combination:
        if column not in classes.attributes:
            hint = did_you_mean(column, classes.attributes)
            raise PolicyError(f"k-anonymity: `on` names {column!r}, which is no quasi-identifier; {hint}")
    if not classes.n:
        return classes.sizes
    rows = classes.codes[[classes.attributes.index(column) for column in combination]]
    order = np.lexsort(rows)
    changes = (np.diff(rows[:, order], axis=1) != 0).any(axis=0)
    start = np.concatenate([[0], np.flatnonzero(changes) + 1, [classes.n]])
    people = np.empty(classes.n, dtype=np.int64)
    people[order] = np.repeat(class_sums(classes.sizes[order], start), np.diff(start))
    return people
