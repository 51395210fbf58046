"""Entropy ℓ-diversity: the entropy of every class is at least log ℓ [Machanavajjhala et al. 2006]."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, ValueCounts
from maskwright.domain.exact import entropy_at_least, text_of
from maskwright.domain.model import Context
from maskwright.domain.rules import EntropyAtLeast, Rule
from maskwright.domain.segments import class_max, class_sums, known_counts
from maskwright.domain.sensitive import Positive, SensitiveModel, kernel_attribute
from maskwright.domain.verdict import Verdict


class EntropyLDiversity(SensitiveModel):
    """The sensitive values of every class are as mixed as l equally frequent ones, measured by entropy.

    Attributes:
        l: the effective number of values asked for; any number above 0.
        attribute: the sensitive column; each of them when it is not named.
    """

    name: ClassVar[str] = "entropy-l-diversity"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = False

    l: Positive  # noqa: E741 - the literature's name

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes whose entropy is at least log l, ties decided in integers."""
        counts = known_counts(self.counts(classes))
        return _at_least(counts, _entropies(counts), self.l)

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """The rule on the entropy."""
        attribute = kernel_attribute(self, context)
        return None if attribute is None else (EntropyAtLeast(attribute, self.l),)

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the effective number of values in each class, e to the power of its entropy."""
        counts = known_counts(self.counts(classes))
        entropies = _entropies(counts)
        values = _effective(counts, entropies)
        worst = int(values.argmin()) if classes.n else None
        return self.verdict(
            _at_least(counts, entropies, self.l), values, worst, f"at least {text_of(self.l)}",
            "effective number of sensitive values",
        )  # fmt: skip

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """A decimal l, at most a few thousandths below the best, that these classes satisfy."""
        counts = known_counts(self.counts(classes))
        entropies = _entropies(counts)
        least = float(_effective(counts, entropies).min(initial=math.inf))
        if not 0 < least < math.inf:
            return None
        # a decimal that is not above the true value: a float close to an integer may be on either side of it
        for numerator in (math.floor(least * 1000 + 1e-6), math.floor(least * 1000) - 1):
            l = Fraction(numerator, 1000)  # noqa: E741
            if l > 0 and _at_least(counts, entropies, l).all():
                return f"l: {text_of(l)}"
        return None


def _entropies(counts: ValueCounts) -> NDArray[np.float64]:
    """Entropy per class in floats, of the values that are not missing; -inf for a class without any."""
    n = class_sums(counts.counts, counts.start).astype(np.float64)
    amounts = counts.counts.astype(np.float64)
    weighted = class_sums(amounts * np.log(amounts), counts.start)
    full = np.where(n > 0, n, 1.0)
    return np.where(n > 0, np.log(full) - weighted / full, -np.inf)


def _uniform(counts: ValueCounts) -> NDArray[np.bool_]:
    """Classes whose values are all equally frequent: their entropy is the log of how many there are."""
    return np.asarray(class_max(counts.counts, counts.start) == -class_max(-counts.counts, counts.start))


def _effective(counts: ValueCounts, entropies: NDArray[np.float64]) -> NDArray[np.float64]:
    """e^H, the number of equally frequent values that are as mixed; 0 for a class without values."""
    return np.where(_uniform(counts), np.diff(counts.start), np.exp(entropies))


def _at_least(
    counts: ValueCounts, entropies: NDArray[np.float64], l: Fraction  # noqa: E741
) -> NDArray[np.bool_]:  # fmt: skip
    """Entropy ≥ log l: by floats where they are certain, in integers where they are not."""
    values = np.diff(counts.start)
    uniform = _uniform(counts)
    log_l = math.log(l.numerator) - math.log(l.denominator)
    passes = np.where(uniform, (values > 0) & (values >= math.ceil(l)), entropies > log_l)
    n = class_sums(counts.counts, counts.start)
    rounding = 1e-15 * (values + 16) * (np.log(np.maximum(n, 1)) + 1 + abs(log_l))
    decided: dict[tuple[int, ...], bool] = {}
    for c in np.flatnonzero(~uniform & (np.abs(entropies - log_l) <= rounding)).tolist():
        key = tuple(sorted(counts.counts[counts.start[c] : counts.start[c + 1]].tolist()))
        if key not in decided:
            decided[key] = entropy_at_least(list(key), l)
        passes[c] = decided[key]
    return passes
