"""Plug-ins that are not what they say of themselves."""

from __future__ import annotations

import itertools
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
    Model,
    Target,
    Task,
    Verdict,
)

COUNTER = itertools.count()


class AtMost(Model):
    """At most so many people in every class: merging breaks it, and a part of a class that fails passes."""

    name: ClassVar[str] = "broken-size"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True
    about: ClassVar[Any] = "quasi-identifiers"
    people: int

    def check(self, classes: Classes, context: Context) -> Verdict:
        sizes = classes.sizes
        return self.verdict(sizes <= self.people, sizes, 0 if len(sizes) else None, "at most", "people")


class EveryOther(Method):
    """Another grouping every time, whatever the seed."""

    name: ClassVar[str] = "broken-method"

    def group(self, task: Task) -> Grouping:
        first = next(COUNTER) == 0
        levels = {h.attribute: [h.top if first else max(0, h.top - 1)] for h in task.summary.attributes}
        return OptimalLattice().group(Task(task.summary, task.search, task.context, task.rng, levels=levels))


class TooSure(Attack):
    """Believes more than everything."""

    name: ClassVar[str] = "broken-attack"

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        return Beliefs(
            self.name, adversary.name, "exact", Belief(Fraction(0), Fraction(3, 2), "all", "of it")
        )
