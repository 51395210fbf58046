"""Individual risk: the estimated chance of re-identification in the population [Benedetti, Franconi 1998]."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes
from maskwright.domain.exact import text_of
from maskwright.domain.model import Context, Model, Need
from maskwright.domain.segments import rounded_up
from maskwright.domain.sensitive import Share
from maskwright.domain.verdict import Verdict
from maskwright.errors import PolicyError
from maskwright.population.individual import individual_risks


def _at_most(bound: Fraction) -> float:
    """The largest double that is not above a fraction."""
    near = float(bound)
    return near if Fraction(near) <= bound else math.nextafter(near, 0.0)


class IndividualRisk(Model):
    """Nobody is estimated to be re-identified in the population with a probability above max.

    Attributes:
        max: the largest estimated risk of any class, above 0 and at most 1.
    """

    name: ClassVar[str] = "individual-risk"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True
    about: ClassVar[Literal["quasi-identifiers", "sensitive"]] = "quasi-identifiers"

    max: Share

    def risks(self, classes: Classes, context: Context) -> NDArray[np.float64]:
        """The estimated risk of each class."""
        sample = context.sample
        if sample is None:
            raise PolicyError(f"{self.name} needs to know the population; write population: {{size: 100000}}")
        if classes.weights is not None:
            return individual_risks(classes.sizes, classes.weights)
        if sample.weighted:
            raise PolicyError(f"{self.name} cannot be asked where the weights of classes are not known")
        return individual_risks(classes.sizes, sample.stands_for(classes.sizes))

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Estimate the risk of each class."""
        risks = self.risks(classes, context)
        passes = risks <= _at_most(self.max)
        worst = int(risks.argmax()) if classes.n else None
        bound = f"at most {text_of(self.max)}"
        return self.verdict(passes, risks, worst, bound, "estimated risk in the population")

    def needs(self) -> frozenset[Need]:
        """The population that the table is a sample of."""
        return frozenset({"sample"})

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The largest risk of any of these classes as max."""
        if not classes.n:
            return None
        return f"max: {rounded_up(Fraction(float(self.risks(classes, context).max())))}"
