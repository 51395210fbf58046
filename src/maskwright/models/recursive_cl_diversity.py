"""Recursive (c,ℓ)-diversity: the commonest value is not too common [Machanavajjhala et al. 2006].

With the counts of a class in falling order r₁ ≥ r₂ ≥ …: r₁ < c·(r_ℓ + r_{ℓ+1} + …), strictly.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes
from maskwright.domain.exact import text_of
from maskwright.domain.model import Context
from maskwright.domain.rules import Recursive, Rule
from maskwright.domain.segments import Ratios, class_max, class_sums, known_counts
from maskwright.domain.sensitive import Count, Positive, SensitiveModel, kernel_attribute
from maskwright.domain.verdict import Verdict


class RecursiveClDiversity(SensitiveModel):
    """The most frequent sensitive value of a class is rarer than c times all values from the l-th on.

    Attributes:
        c: how much more frequent it may be; any number above 0.
        l: after l − 2 values have been ruled out, the rest must still be diverse.
        attribute: the sensitive column; each of them when it is not named.
    """

    name: ClassVar[str] = "recursive-cl-diversity"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = False

    c: Positive
    l: Count  # noqa: E741 - the literature's name

    def _rest(self, classes: Classes) -> Ratios:
        """What the values from the l-th on add up to, over the most frequent one (0 without values)."""
        counts = known_counts(self.counts(classes))
        order = np.lexsort((-counts.counts, counts.owner))
        rank = np.arange(len(order)) - counts.start[counts.owner]
        tail = class_sums(np.where(rank >= self.l - 1, counts.counts[order], 0), counts.start)
        return Ratios(tail, np.maximum(class_max(counts.counts, counts.start), 1))

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes whose most frequent value is rarer than c times the values from the l-th on."""
        return ~self._rest(classes).at_most(1 / self.c)

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """The rule on the counts in falling order."""
        attribute = kernel_attribute(self, context)
        return None if attribute is None else (Recursive(attribute, self.c, self.l),)

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure what the values from the l-th on add up to, relative to the most frequent one."""
        rest = self._rest(classes)
        return self.verdict(
            ~rest.at_most(1 / self.c), rest, rest.argmin(), f"more than {text_of(1 / self.c)}",
            f"share of the values from number {self.l} on, relative to the most frequent one,",
        )  # fmt: skip

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The next thousandth above the least c that these classes satisfy."""
        rest = self._rest(classes)
        worst = rest.argmin()
        if worst is None or rest[worst] == 0:
            return None
        above = Fraction(int(1000 / rest[worst]) + 1, 1000)  # strict: c must exceed r₁/rest
        return f"c: {text_of(above)}"
