"""Rules: privacy requirements in a form that a compiled kernel can decide, class by class, in integers.

A model that is a conjunction of such rules returns them from `Model.kernel`; every other model returns None
and is decided through `Model.passing`. A rule and its model must agree on every class: kernels are only a
faster way to the same decision.

In every rule n is the size of the class in people and c_v the number of its people with code v of the
sensitive attribute. Code 0 is missing: rules that look at a distribution take `missing` to say whether
missing is a value like any other ("value") or is left out, of the total too ("out"). Where it is left out, n
stands for the sum of the c_v that remain. Thresholds are exact: integers and fractions, no rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

Missing = Literal["value", "out"]


class Conclusions:
    """What methods, attacks and proofs conclude from a rule, whatever its kind. Only kernels decode the kinds."""

    adds_up: ClassVar[bool] = False  # does it stay monotone where the people of two classes do not add up?

    @property
    def looks_at(self) -> str | None:
        """The sensitive attribute whose values it looks at; None: it looks at sizes alone."""
        return None

    @property
    def size(self) -> int:
        """The fewest people of a class that it names."""
        return 1

    @property
    def cap(self) -> ShareAtMost | None:
        """The bound on the shares of some values that the rule is; None: it is something else."""
        return None

    @property
    def different(self) -> int | None:
        """How many different values of the attribute a class needs at least; None: that is not said."""
        return None

    def fewest_rows(self, named: bool) -> int:
        """The fewest rows of a class that passes; `named`: also where only classes with named values need so many."""
        return 1


@dataclass(frozen=True)
class SizeAtLeast(Conclusions):
    """n ≥ k (k-anonymity)."""

    k: int
    adds_up: ClassVar[bool] = True

    @property
    def size(self) -> int:
        """k."""
        return self.k

    def fewest_rows(self, named: bool) -> int:
        """k."""
        return self.k


@dataclass(frozen=True)
class OfValues(Conclusions):
    """A rule about the values of a sensitive attribute."""

    attribute: str

    @property
    def looks_at(self) -> str | None:
        """The attribute."""
        return self.attribute


@dataclass(frozen=True)
class DistinctAtLeast(OfValues):
    """At least `l` different values besides missing (distinct l-diversity, p-sensitivity)."""

    l: int  # noqa: E741 - the symbol of the literature
    adds_up: ClassVar[bool] = True

    @property
    def different(self) -> int | None:
        """L."""
        return self.l

    def fewest_rows(self, named: bool) -> int:
        """L: each has one value."""
        return self.l


@dataclass(frozen=True)
class ShareAtMost(OfValues):
    """For each set: the sum of c_v over its codes is at most share·n (simple l-diversity, (α,k)-anonymity).

    n is the size of the class, missing included. `sets` names codes; None: every value except missing is a
    set of its own.
    """

    share: Fraction
    sets: tuple[tuple[int, ...], ...] | None = None

    @property
    def cap(self) -> ShareAtMost | None:
        """The rule itself."""
        return self

    @property
    def different(self) -> int | None:
        """One for each of so many equal shares."""
        return math.ceil(1 / self.share)

    def fewest_rows(self, named: bool) -> int:
        """One row that holds a value is a larger share of fewer."""
        return math.ceil(1 / self.share) if self.share and (named or self.sets is None) else 1


@dataclass(frozen=True)
class EntropyAtLeast(OfValues):
    """H(c) ≥ log l, that is nⁿ ≥ lⁿ·∏ c_v^c_v (entropy l-diversity). A class without values (n = 0) fails."""

    l: Fraction  # noqa: E741
    missing: Missing = "out"

    def fewest_rows(self, named: bool) -> int:
        """The rows of the least class: l different values have an entropy of log l."""
        return math.ceil(self.l)


@dataclass(frozen=True)
class Recursive(OfValues):
    """r₁ < c·(r_l + r_{l+1} + …) for the counts in falling order (recursive (c,l)-diversity), strict."""

    c: Fraction
    l: int  # noqa: E741
    missing: Missing = "out"

    def fewest_rows(self, named: bool) -> int:
        """There is an l-th value."""
        return self.l


@dataclass(frozen=True)
class Closeness(OfValues):
    """Σ_S weight_S·|p(S) − q(S)| ≤ t, p the class and q the reference (t-closeness). n = 0 passes.

    The three usual distances are sums over sets of codes S:
    *equal*: every value alone, weight 1/2;
    *ordered*, m values: the prefixes {v₁ … v_i}, i < m, weight 1/(m−1);
    *hierarchical*, H the height of the root: every node but the root with the leaves below it, weight
    (height of its parent − its own height)/(2H). It telescopes to height(lowest common ancestor)/H.

    `reference[v]` is the count of code v in the whole table (index 0 is missing; 0 there when left out).
    """

    t: Fraction
    reference: tuple[int, ...]
    sets: tuple[tuple[Fraction, tuple[int, ...]], ...]
    missing: Missing = "out"


@dataclass(frozen=True)
class SharesWithin(OfValues):
    """least_v·n ≤ c_v ≤ most_v·n for every value v of a class (β-likeness, δ-disclosure). Missing is left out.

    `least` and `most` are indexed by code (code 0 is not looked at), with denominators below `DENOMINATORS`: a bound
    that is no such fraction, or that is exclusive, is replaced by the nearest fraction on the right side of it, which
    decides every class of fewer people alike (`domain.exact.fraction_below`). `absent`: a value that does not occur in
    the class is held against `least` as well, and a class without values (n = 0), which passes otherwise, fails.
    """

    most: tuple[Fraction, ...]
    least: tuple[Fraction, ...]
    absent: bool = False


DENOMINATORS = 2**31

Rule = SizeAtLeast | DistinctAtLeast | ShareAtMost | EntropyAtLeast | Recursive | Closeness | SharesWithin
