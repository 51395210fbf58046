"""Counting worlds where violations are so rare that no two of them happen together.

The numbers j_i of sensitive rows in the classes are negatively associated [Joag-Dev, Proschan 1983]: that two given
classes exceed their caps is at most as likely as if they were independent. So with V₁ = Σ_i P(j_i > cap_i), the
probability V of a violation lies between V₁ − V₁²/2 and V₁, and the expected number of sensitive rows in a class is as
close to the sum over the one class that violates. What is left are tails of hypergeometric distributions; in logarithms
they never underflow, and beyond its mode such a tail falls faster than a geometric series.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from maskwright.core.worlds.binomial import Floats
from maskwright.core.worlds.fourier import EPSILON, classes_able, log_terms, log_worlds
from maskwright.core.worlds.vectors import Counted, Kind

LEFT_OUT = 60.0  # classes that contribute less than e^-60 of the result are left out


def count_rare(kinds: Counter[Kind], sensitive: int, everybody: int) -> Counted:
    """As `vectors.count`, for 0 < sensitive < everybody, caps from 0 on and at least one class that can violate.

    The probability is a fraction, because a float may not go so low; its error is that of floating point, and infinite
    where violations are not rare.
    """
    before = Fraction(sensitive, everybody)
    tails = _Tails.of(kinds, sensitive, everybody)
    if tails is None or tails.log_total >= 0:
        return Counted(dict.fromkeys(kinds, float(before)), 0.0, before, "float", math.inf)
    alone = tails.weight / tails.many  # of one class of a kind
    others = (sensitive - tails.mean) / (everybody - tails.n)  # the share outside of a violating class
    total, log_violation = math.fsum(tails.weight), tails.log_total
    elsewhere = math.fsum(tails.weight * others)
    here = np.clip((elsewhere + alone * (tails.mean / tails.n - others)) / total, 0.0, 1.0)
    share = dict.fromkeys(kinds, min(elsewhere / total, 1.0))
    share |= dict(zip(tails.kinds, here.tolist(), strict=True))
    rounding = EPSILON * (100 + 16 * abs(log_violation) + 4 * tails.steps)
    together = math.exp(log_violation) * (1 + everybody / sensitive)
    return Counted(share, _power(log_violation), before, "float", rounding + together)


def _power(logarithm: float) -> Fraction:
    """e to a power below 0, however low."""
    halvings = math.ceil(-logarithm / math.log(2))
    return Fraction(math.exp(logarithm + halvings * math.log(2))) / (1 << halvings)


@dataclass(frozen=True, eq=False)
class _Tails:
    """The classes that matter, one of each kind.

    Attributes:
        n, many: rows of a class of this kind, and how many such classes there are.
        weight: P(j > cap) for all classes of a kind together, in units of e^log_unit.
        mean: the expected number of sensitive rows in one of them, given that it exceeds its cap.
        steps: how many terms the longest sum has.
    """

    kinds: list[Kind]
    n: Floats
    many: Floats
    weight: Floats
    mean: Floats
    log_unit: float
    steps: int

    @property
    def log_total(self) -> float:
        return self.log_unit + math.log(math.fsum(self.weight))

    @staticmethod
    def of(kinds: Counter[Kind], sensitive: int, everybody: int) -> _Tails | None:
        """None where a class violates even with an ordinary number of sensitive rows."""
        active, n, first, many = classes_able(kinds, sensitive)
        falls = _ratio(first, n, sensitive, everybody)
        if (sensitive - (everybody - n) >= first).any() or (falls >= 1).any():
            return None
        start = log_terms(n, first, sensitive, everybody) - log_worlds(
            sensitive, everybody, sensitive / everybody
        )
        unit = float(start.max())
        most = start - np.log1p(-falls) + np.log(many)
        kept = most > unit - LEFT_OUT - math.log(len(active))
        total, steps, longest = _sums(first[kept], n[kept], sensitive, everybody)
        weight = np.exp(start[kept] - unit) * total * many[kept]
        chosen = [kind for kind, here in zip(active, kept, strict=True) if here]
        return _Tails(chosen, n[kept], many[kept], weight, first[kept] + steps / total, unit, longest)


def _ratio(j: Floats, n: Floats, sensitive: int, everybody: int) -> Floats:
    """P(j + 1) / P(j); it falls with j."""
    return (n - j) * (sensitive - j) / ((j + 1) * np.maximum(everybody - n - sensitive + j + 1, 1.0))


def _sums(first: Floats, n: Floats, sensitive: int, everybody: int) -> tuple[Floats, Floats, int]:
    """Σ P(first + i) and Σ i·P(first + i) over i ≥ 0, in units of P(first); and the number of terms."""
    term, total, steps, i = np.ones_like(n), np.ones_like(n), np.zeros_like(n), 0
    while True:
        ratio = _ratio(first + i, n, sensitive, everybody)
        term = term * ratio
        i += 1
        total += term
        steps += i * term
        # the rest is below a geometric series with this ratio, each term with its number
        rest = term * (i + 1 / (1 - ratio)) / (1 - ratio)
        if (rest <= EPSILON / 16 * total).all():
            return total, steps, i
