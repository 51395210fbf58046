"""δ-disclosure privacy: |ln(p_class(v)/p_table(v))| < δ for every value of a class [Brickell, Shmatikov 2008]."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes
from maskwright.domain.exact import exp_compared, fraction_below, text_of
from maskwright.domain.model import Context
from maskwright.domain.rules import DENOMINATORS, Rule, SharesWithin
from maskwright.domain.segments import class_max, class_sums
from maskwright.domain.sensitive import Lifts, Positive, SensitiveModel, reference_shares, value_lifts
from maskwright.domain.verdict import Verdict

LARGEST = Fraction(
    100
)  # with it, and so with more, everybody's share is within the bounds: one person of 2^31 is


class DeltaDisclosure(SensitiveModel):
    """No sensitive value of a class is much more, or much less, frequent in it than in the whole table.

    Attributes:
        delta: the bound on the logarithm of the ratio, exclusive; 0.7 is about a factor of two.
        attribute: the sensitive column; each of them when it is not named.
        strict: a value of the table that does not occur in a class makes the class fail.
    """

    name: ClassVar[str] = "delta-disclosure"
    of_bits: ClassVar[bool] = True
    merge_safe: ClassVar[bool] = False  # only with `strict`: otherwise an absent value becomes a rare one
    hereditary: ClassVar[bool] = False

    delta: Positive
    strict: bool = False

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the largest absolute log-ratio of a value in each class."""
        lift = value_lifts(self, classes, context)
        logs = np.abs(np.log(lift.floats()))
        start = lift.counts.start
        values = class_max(logs, start)
        passes = class_max((~self._close(lift, logs, self.delta)).astype(np.int64), start) == 0
        if self.strict:
            complete = self._complete(classes, context)
            values, passes = np.where(complete, values, np.inf), passes & complete
        worst = int(values.argmax()) if classes.n else None
        bound = f"less than {text_of(self.delta)}"
        return self.verdict(passes, values, worst, bound, "log-ratio of class to table frequency")

    @staticmethod
    def _close(lift: Lifts, logs: NDArray[np.float64], delta: Fraction) -> NDArray[np.bool_]:
        """|ln lift| < δ per entry: by floats where they are certain, with more digits where they are not."""
        result = logs < float(delta)
        for i in np.flatnonzero(np.abs(logs - float(delta)) < 1e-12 * (1 + float(delta))).tolist():
            ratio = lift.of(i)
            result[i] = exp_compared(delta, max(ratio, 1 / ratio)) > 0
        return result

    def _complete(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Which classes show every value of the table."""
        counts, whole = self.counts(classes), self.reference(classes, context)
        seen = class_sums((counts.codes > 0).astype(np.int64), counts.start)
        return np.asarray(seen == np.count_nonzero(whole[1:]))

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """The rule that every share is within a factor of e^delta; None where the table is not known."""
        found = reference_shares(self, context)
        if found is None:
            return None
        attribute, shares = found
        delta = min(self.delta, LARGEST)
        most = tuple(min(Fraction(1), self._inside(share, delta)) for share in shares)
        least = tuple(-self._inside(-share, -delta) for share in shares)
        return (SharesWithin(attribute, most, least, self.strict),)

    @staticmethod
    def _inside(share: Fraction, exponent: Fraction) -> Fraction:
        """The largest fraction below share·e^exponent, which is irrational unless the share is 0."""

        def _times() -> Decimal:
            power = (Decimal(exponent.numerator) / exponent.denominator).exp()
            return power * share.numerator / share.denominator

        return fraction_below(_times, DENOMINATORS - 1) if share else share

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The next thousandth above the largest log-ratio as delta; None where a value is absent under `strict`."""
        worst = self.check(classes, context).worst
        if worst is None or not math.isfinite(worst):
            return None
        # the bound is exclusive, and the float may be off in its last digits: the next thousandth is above both
        return f"delta: {text_of(Fraction(math.floor(float(worst) * 1000 + 1e-6) + 1, 1000))}"
