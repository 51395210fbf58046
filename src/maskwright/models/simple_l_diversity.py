"""Simple ℓ-diversity: at most one person in ℓ holds any one sensitive value, or set [Wong et al. 2007]."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from maskwright.domain.classes import Classes
from maskwright.domain.exact import text_of
from maskwright.domain.model import Context
from maskwright.domain.rules import Rule
from maskwright.domain.segments import Ratios, rounded_down
from maskwright.domain.sensitive import (
    Chosen,
    Positive,
    SensitiveModel,
    Sets,
    largest_count,
    refuse_both_choices,
    share_rules,
    values_in,
)
from maskwright.domain.verdict import Verdict


class SimpleLDiversity(SensitiveModel):
    """In every class at most one person in l holds any one sensitive value.

    Attributes:
        l: one in l; any number above 0, 5/2 is allowed.
        attribute: the sensitive column; each of them when it is not named.
        values: only these values are sensitive (default: all).
        sets: holding *any* value of one of these sets is what is sensitive, e.g. [[HIV, hepatitis], [flu]].
    """

    name: ClassVar[str] = "simple-l-diversity"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = False
    share_setting: ClassVar[str] = "l"

    l: Positive  # noqa: E741 - the literature's name
    values: Chosen | None = None
    sets: Sets | None = None

    @model_validator(mode="after")
    def _one_choice(self) -> SimpleLDiversity:
        return refuse_both_choices(self)

    def named_values(self) -> list[str]:
        """The values that `values` or `sets` name."""
        return values_in(self.values, self.sets)

    def _sets(self) -> tuple[tuple[str, ...], ...] | None:
        return self.sets if self.values is None else tuple((v,) for v in self.values)

    def _shares(self, classes: Classes) -> Ratios:
        return Ratios(largest_count(self.counts(classes), self._sets()), classes.sizes)

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes in which no value, or set of values, has more than one person in l."""
        return self._shares(classes).at_most(1 / self.l)

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """The rule on the shares of values."""
        return share_rules(self, 1 / self.l, self._sets(), context)

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the largest share of a value, or of a set of values, in each class."""
        shares = self._shares(classes)
        what = "share of one set of sensitive values" if self.sets else "share of one sensitive value"
        bound = f"at most {text_of(1 / self.l)}"
        return self.verdict(shares.at_most(1 / self.l), shares, shares.argmax(), bound, what)

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """One over the largest share in these classes as l."""
        shares = self._shares(classes)
        worst = shares.argmax()
        if worst is None or shares[worst] == 0:
            return None
        return f"l: {rounded_down(1 / shares[worst])}"
