"""(α,k)-anonymity: classes of at least k people, no sensitive value in more than a share α [Wong et al. 2006]."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from maskwright.domain.classes import Classes
from maskwright.domain.exact import text_of
from maskwright.domain.model import Context
from maskwright.domain.rules import Rule, SizeAtLeast
from maskwright.domain.segments import Ratios, rounded_up
from maskwright.domain.sensitive import (
    Chosen,
    Count,
    SensitiveModel,
    Sets,
    Share,
    largest_count,
    refuse_both_choices,
    share_rules,
    values_in,
)
from maskwright.domain.verdict import Verdict


class AlphaKAnonymity(SensitiveModel):
    """Every class holds at least k people, and no sensitive value, or set, is held by more than a share alpha of them.

    Attributes:
        alpha: the largest share of one value, above 0 and at most 1.
        k: the least number of people in a class.
        attribute: the sensitive column; each of them when it is not named.
        values: only these values are sensitive (default: all).
        sets: holding *any* value of one of these sets is what is sensitive, e.g. [[HIV, hepatitis], [flu]].
    """

    name: ClassVar[str] = "alpha-k-anonymity"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = False
    share_setting: ClassVar[str] = "alpha"

    alpha: Share
    k: Count
    values: Chosen | None = None
    sets: Sets | None = None

    @model_validator(mode="after")
    def _one_choice(self) -> AlphaKAnonymity:
        return refuse_both_choices(self)

    def named_values(self) -> list[str]:
        """The values that `values` or `sets` name."""
        return values_in(self.values, self.sets)

    def _sets(self) -> tuple[tuple[str, ...], ...] | None:
        return self.sets if self.values is None else tuple((v,) for v in self.values)

    def _shares(self, classes: Classes) -> Ratios:
        return Ratios(largest_count(self.counts(classes), self._sets()), classes.sizes)

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes of at least k people in which no sensitive value has more than a share alpha."""
        return (classes.sizes >= self.k) & self._shares(classes).at_most(self.alpha)

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """A rule on the size and one on the shares of values."""
        shares = share_rules(self, self.alpha, self._sets(), context)
        return None if shares is None else (SizeAtLeast(self.k), *shares)

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the people of each class where one is too small, else the largest share of a value."""
        shares, passes = self._shares(classes), self.passing(classes, context)
        if classes.n and classes.sizes.min() < self.k:
            worst = int(classes.sizes.argmin())
            return self.verdict(passes, classes.sizes, worst, f"at least {self.k}", "people in the class")
        bound = f"at most {text_of(self.alpha)}"
        what = "share of one set of sensitive values" if self.sets else "share of one sensitive value"
        return self.verdict(passes, shares, shares.argmax(), bound, what)

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The alpha and the k that these classes satisfy."""
        shares = self._shares(classes)
        worst = shares.argmax()
        if worst is None:
            return None
        alpha = max(shares[worst], self.alpha)
        return f"alpha: {rounded_up(alpha)}, k: {min(self.k, int(classes.sizes.min()))}"
