"""A small package of somebody else, as it would be published: a model, a method, an attack and a metric."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.plugins import (
    Adversary,
    Attack,
    Belief,
    Beliefs,
    Classes,
    Context,
    Grouping,
    Method,
    Metric,
    Model,
    Target,
    Task,
    Verdict,
)


class OutsideSize(Model):
    """At least this many people in every class."""

    name: ClassVar[str] = "outside-size"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True
    about: ClassVar[Any] = "quasi-identifiers"
    people: int

    def check(self, classes: Classes, context: Context) -> Verdict:
        sizes = classes.sizes
        worst = int(sizes.argmin()) if len(sizes) else None
        return self.verdict(sizes >= self.people, sizes, worst, f"at least {self.people}", "people")


class OutsideMethod(Method):
    """The lattice under another name."""

    name: ClassVar[str] = "outside-method"

    def group(self, task: Task) -> Grouping:
        return OptimalLattice().group(task)


class OutsideAttack(Attack):
    """A belief of a tenth, whatever is published."""

    name: ClassVar[str] = "outside-attack"

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        worst = Belief(Fraction(1, 20), Fraction(1, 10), "anybody", "of nothing")
        return Beliefs(self.name, adversary.name, "exact", worst)


def a_quarter(grouping: Grouping, weights: Any) -> float:
    """A quarter of everything."""
    return 0.25


OUTSIDE_METRIC = Metric("outside-metric", a_quarter, "always the same", "low")
