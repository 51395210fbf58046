"""Population uniqueness: the estimated share of the population that is alone in its class [Dankar et al. 2012]."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from maskwright.domain.classes import Classes
from maskwright.domain.exact import text_of
from maskwright.domain.model import Context, Model, Need
from maskwright.domain.segments import rounded_up
from maskwright.domain.sensitive import Share
from maskwright.domain.verdict import Verdict
from maskwright.errors import PolicyError
from maskwright.population.counts import SampleCounts
from maskwright.population.estimates import Estimator, estimated_share


class PopulationUniqueness(Model):
    """At most a share of max of the population is estimated to be unique by the published quasi-identifiers.

    It is a property of the release as a whole: all classes pass together or fail together. An estimator that gives no
    answer for these classes counts as 1.

    Attributes:
        max: the largest estimated share, above 0 and at most 1.
        estimator: dankar (by the sampling fraction: pitman up to 1/10, beyond it the smaller one of snb and zayatz),
            pitman, zayatz or snb.
    """

    name: ClassVar[str] = "population-uniqueness"
    merge_safe: ClassVar[bool] = False  # fewer classes of two make those of one look rarer than they are
    hereditary: ClassVar[bool] = False
    about: ClassVar[Literal["quasi-identifiers", "sensitive"]] = "quasi-identifiers"

    max: Share
    estimator: Estimator = "dankar"

    def is_local(self) -> bool:
        """False: the share is one figure of the whole release."""
        return False

    def share(self, classes: Classes, context: Context) -> Fraction:
        """The estimated share of population uniques of a release that is not empty."""
        if context.sample is None:
            raise PolicyError(f"{self.name} needs to know the population; write population: {{size: 100000}}")
        found = estimated_share(
            SampleCounts.of_people(classes.sizes, classes.n_people, context.sample.size), self.estimator
        )
        return Fraction(1) if found is None else min(Fraction(found), Fraction(1))

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Estimate the share of population uniques, one figure for all classes."""
        bound, quantity = f"at most {text_of(self.max)}", "estimated share of population uniques"
        if not classes.n:
            return self.verdict(np.ones(0, dtype=bool), [], None, bound, quantity)
        share = self.share(classes, context)
        passes = np.full(classes.n, share <= self.max)
        return self.verdict(passes, [float(share)] * classes.n, 0, bound, quantity)

    def needs(self) -> frozenset[Need]:
        """The population that the table is a sample of."""
        return frozenset({"sample"})

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The estimated share as max."""
        share = self.share(classes, context) if classes.n else Fraction(0)
        return f"max: {rounded_up(share)}" if share else None
