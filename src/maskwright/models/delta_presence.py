"""δ-presence: being in the table is neither too likely nor too unlikely [Nergiz, Atzori, Clifton 2007]."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from maskwright.domain.classes import Classes
from maskwright.domain.exact import text_of
from maskwright.domain.model import Context, Model, Need
from maskwright.domain.references import population_matches
from maskwright.domain.segments import Ratios, rounded_down, rounded_up
from maskwright.domain.sensitive import NotNegative, Share
from maskwright.domain.verdict import Verdict
from maskwright.errors import InputError


class DeltaPresence(Model):
    """Of the people in the population who match a class, between delta_min and delta_max are in the table.

    Attributes:
        delta_max: the largest such share, at most 1.
        delta_min: the smallest, 0 by default.
    """

    name: ClassVar[str] = "delta-presence"
    merge_safe: ClassVar[bool] = (
        False  # a coarser class also matches people whose own class nobody in the table had
    )
    hereditary: ClassVar[bool] = False
    about: ClassVar[Literal["quasi-identifiers", "sensitive"]] = "quasi-identifiers"

    delta_max: Share
    delta_min: NotNegative = Fraction(0)

    @model_validator(mode="after")
    def _in_order(self) -> DeltaPresence:
        if self.delta_min > self.delta_max:
            raise ValueError("delta_min is larger than delta_max; exchange them")
        return self

    def _shares(self, classes: Classes, context: Context) -> Ratios:
        people = population_matches(self, classes)
        if (classes.sizes > people).any():
            raise InputError(
                f"{self.name}: the population table matches fewer people than the table itself has in "
                f"{int((classes.sizes > people).sum())} classes; it must contain everybody in the table"
            )
        return Ratios(classes.sizes, people)

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes whose share of the matching population lies between the two bounds."""
        shares = self._shares(classes, context)
        return shares.at_most(self.delta_max) & shares.at_least(self.delta_min)

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the share of the matching population that is in the table, class by class."""
        shares = self._shares(classes, context)
        high, low = shares.at_most(self.delta_max), shares.at_least(self.delta_min)
        worst = shares.argmin() if high.all() and not low.all() else shares.argmax()
        bound = f"between {text_of(self.delta_min)} and {text_of(self.delta_max)}"
        return self.verdict(high & low, shares, worst, bound, "share of the matching population in the table")

    def needs(self) -> frozenset[Need]:
        """The population that matches each class."""
        return frozenset({"population"})

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The two bounds that these classes satisfy."""
        shares = self._shares(classes, context)
        low, high = shares.argmin(), shares.argmax()
        if low is None or high is None:
            return None
        least, most = min(self.delta_min, shares[low]), max(self.delta_max, shares[high])
        return f"delta_max: {rounded_up(most)}, delta_min: {rounded_down(least)}"
