"""(k,e)-anonymity: k people whose sensitive numbers span at least e [Zhang et al. 2007; as in Wong et al. 2007]."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints
from maskwright.domain.exact import text_of, to_fraction
from maskwright.domain.model import Context
from maskwright.domain.segments import LIMIT, Ratios, class_max, known_counts, rounded_down
from maskwright.domain.sensitive import Count, NotNegative, SensitiveModel, distinct_values
from maskwright.domain.verdict import Verdict
from maskwright.errors import PolicyError


class KeAnonymity(SensitiveModel):
    """Every class holds at least k people, and their sensitive numbers range over at least e.

    Attributes:
        k: the least number of people in a class.
        e: the least difference between the largest and the smallest value.
        attribute: the sensitive column, which must hold numbers; each of them when it is not named.
        distinct: k counts different values instead of people, as the model was first defined.
    """

    name: ClassVar[str] = "ke-anonymity"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = True

    k: Count
    e: NotNegative
    distinct: bool = False

    def _sizes(self, classes: Classes) -> Ints:
        return distinct_values(self.counts(classes)) if self.distinct else classes.sizes

    def least_size(self, context: Context) -> int:
        """The k: a class of fewer people has neither k people nor k different values."""
        return self.k

    def _ranges(self, classes: Classes) -> Ratios:
        """Largest minus smallest value of each class; 0 for a class without values."""
        counts = known_counts(self.counts(classes))
        numbers = [self._number(value) for value in counts.values]
        scale = math.lcm(*(number.denominator for number in numbers))
        whole = [int(number * scale) for number in numbers]
        narrow = all(abs(x) < LIMIT for x in whole)
        value = np.array([0, *whole], dtype=np.int64 if narrow else object)[counts.codes]
        span = class_max(value, counts.start) + class_max(-value, counts.start)
        return Ratios(span, np.full(classes.n, scale, dtype=np.int64 if scale < LIMIT else object))

    def _number(self, value: str) -> Fraction:
        try:
            return to_fraction(value)
        except ValueError:
            column = repr(self.attribute) if self.attribute else "the sensitive column"
            raise PolicyError(f"{self.name}: {column} must hold numbers, and {value!r} is none") from None

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes of at least k people (or values) whose values range over at least e."""
        return (self._sizes(classes) >= self.k) & self._ranges(classes).at_least(self.e)

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the size of each class where one is too small, else the range of its values."""
        sizes, ranges = self._sizes(classes), self._ranges(classes)
        passes = (sizes >= self.k) & ranges.at_least(self.e)
        if classes.n and sizes.min() < self.k:
            what = "different values in the class" if self.distinct else "people in the class"
            return self.verdict(passes, sizes, int(sizes.argmin()), f"at least {self.k}", what)
        bound = f"at least {text_of(self.e)}"
        return self.verdict(passes, ranges, ranges.argmin(), bound, "range of the sensitive values")

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The k and the e that these classes satisfy."""
        sizes, ranges = self._sizes(classes), self._ranges(classes)
        worst = ranges.argmin()
        if worst is None or not sizes.min():
            return None
        return f"k: {min(self.k, int(sizes.min()))}, e: {rounded_down(min(self.e, ranges[worst]))}"
