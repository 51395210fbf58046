"""Distinct ℓ-diversity: every class shows at least ℓ different sensitive values [Machanavajjhala et al. 2006]."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes
from maskwright.domain.model import Context
from maskwright.domain.rules import DistinctAtLeast, Rule
from maskwright.domain.sensitive import Count, SensitiveModel, distinct_values, kernel_attribute
from maskwright.domain.verdict import Verdict


class DistinctLDiversity(SensitiveModel):
    """Every class holds at least l different sensitive values; missing is not one of them.

    Attributes:
        l: the least number of different values.
        attribute: the sensitive column; each of them when it is not named.
    """

    name: ClassVar[str] = "distinct-l-diversity"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True

    l: Count  # noqa: E741 - the literature's name

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes with at least l different values."""
        return distinct_values(self.counts(classes)) >= self.l

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """The rule on the number of different values."""
        attribute = kernel_attribute(self, context)
        return None if attribute is None else (DistinctAtLeast(attribute, self.l),)

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the number of different values in each class."""
        values = distinct_values(self.counts(classes))
        worst = int(values.argmin()) if classes.n else None
        return self.verdict(
            values >= self.l, values, worst, f"at least {self.l}", "different sensitive values"
        )

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The fewest different values in any of these classes as l."""
        least = distinct_values(self.counts(classes)).min(initial=self.l)
        return f"l: {least}" if classes.n and least else None
