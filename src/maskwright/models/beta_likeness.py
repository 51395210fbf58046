"""β-likeness: no value is relatively more than β more frequent in a class than in the table [Cao, Karras 2012]."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes
from maskwright.domain.exact import exp_compared, fraction_below, rational_below, text_of
from maskwright.domain.model import Context
from maskwright.domain.rules import DENOMINATORS, Rule, SharesWithin
from maskwright.domain.segments import Ratios, at_most, class_max, rounded_up
from maskwright.domain.sensitive import Lifts, Positive, SensitiveModel, reference_shares, value_lifts
from maskwright.domain.verdict import Verdict


class BetaLikeness(SensitiveModel):
    """Nobody's belief in a sensitive value rises by more than beta times what it was: (p − q)/q ≤ β.

    Attributes:
        beta: the largest relative gain; 1 allows a value to be twice as frequent as in the table.
        attribute: the sensitive column; each of them when it is not named.
        enhanced: the bound is min(β, −ln q), which is stricter for values that are frequent anyway.
    """

    name: ClassVar[str] = "beta-likeness"
    of_bits: ClassVar[bool] = True
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = False

    beta: Positive
    enhanced: bool = False

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes in which no value gains more than its bound over the whole table."""
        return self._passing(value_lifts(self, classes, context))

    def _passing(self, lift: Lifts) -> NDArray[np.bool_]:
        fine = at_most(lift.up, lift.down, 1 + self.beta)
        if self.enhanced:
            fine &= _below_log(lift)
        return np.asarray(class_max((~fine).astype(np.int64), lift.counts.start) == 0)

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the largest relative gain of a value in each class (enhanced: as a multiple of its own bound)."""
        lift = value_lifts(self, classes, context)
        passes = self._passing(lift)
        if self.enhanced:
            ratio = class_max(_times_bound(lift, float(self.beta)), lift.counts.start)
            worst = int(ratio.argmax()) if classes.n else None
            what = "gain in frequency over the table, as a multiple of min(beta, -ln q),"
            return self.verdict(passes, ratio, worst, "at most 1", what)
        gains = _largest_gain(lift)
        bound = f"at most {text_of(self.beta)}"
        return self.verdict(passes, gains, gains.argmax(), bound, "relative gain in frequency over the table")

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """The rule that no value has a larger share of a class than its bound; None where the table is not known."""
        found = reference_shares(self, context)
        if found is None:
            return None
        attribute, shares = found
        return (SharesWithin(attribute, tuple(map(self._most, shares)), (Fraction(0),) * len(shares)),)

    def _most(self, share: Fraction) -> Fraction:
        """The largest share of a class that a value with this share of the table may have."""
        bound = min(Fraction(1), rational_below(share * (1 + self.beta), DENOMINATORS - 1))
        if not self.enhanced or share in (0, 1):
            return bound

        def _by_logarithm() -> Decimal:
            q = Decimal(share.numerator) / share.denominator
            return q - q * q.ln()

        return min(bound, fraction_below(_by_logarithm, DENOMINATORS - 1))

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The largest gain in these classes as beta; None where the logarithmic bound fails."""
        lift = value_lifts(self, classes, context)
        gains = _largest_gain(lift)
        worst = gains.argmax()
        if worst is None or not gains[worst] or (self.enhanced and not _below_log(lift).all()):
            return None
        return f"beta: {rounded_up(gains[worst])}"


def _largest_gain(lift: Lifts) -> Ratios:
    """Per class the largest (p − q)/q; 0 for a class without values."""
    floats, start = lift.floats(), lift.counts.start
    top = class_max(floats, start)
    last = len(floats)
    entry = -class_max(np.where(floats == top[lift.counts.owner], -np.arange(last), -last), start, -last)
    up, down = np.append(lift.up, 1)[entry], np.append(lift.down, 1)[entry]
    return Ratios(up - down, down)


def _below_log(lift: Lifts) -> NDArray[np.bool_]:
    """(p − q)/q ≤ −ln q per entry: by floats where they are certain, with more digits where they are not."""
    gain, bound = lift.floats() - 1, math.log(max(lift.total, 1)) - np.log(lift.reference)
    result = gain <= bound
    for i in np.flatnonzero(np.abs(gain - bound) < 1e-12 * (1 + np.abs(gain) + bound)).tolist():
        inverse = Fraction(lift.total, int(lift.reference[i]))  # 1/q
        result[i] = lift.of(i) <= 1 or exp_compared(lift.of(i) - 1, inverse) <= 0
    return result


def _times_bound(lift: Lifts, beta: float) -> NDArray[np.float64]:
    """The gain of each entry over its own bound; 0 where there is no gain (a value that everybody has)."""
    gain = np.maximum(lift.floats() - 1, 0.0)
    bound = np.minimum(beta, math.log(max(lift.total, 1)) - np.log(lift.reference))
    return np.where(gain > 0, gain / np.where(bound > 0, bound, 1.0), 0.0)
