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

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Missing = Literal["value", "out"]


@dataclass(frozen=True)
class SizeAtLeast:
    """n ≥ k (k-anonymity)."""

    k: int


@dataclass(frozen=True)
class DistinctAtLeast:
    """At least `l` different values besides missing (distinct l-diversity, p-sensitivity)."""

    attribute: str
    l: int  # noqa: E741 - the symbol of the literature


@dataclass(frozen=True)
class ShareAtMost:
    """For each set: the sum of c_v over its codes is at most share·n (simple l-diversity, (α,k)-anonymity).

    n is the size of the class, missing included. `sets` names codes; None: every value except missing is a
    set of its own.
    """

    attribute: str
    share: Fraction
    sets: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True)
class EntropyAtLeast:
    """H(c) ≥ log l, that is nⁿ ≥ lⁿ·∏ c_v^c_v (entropy l-diversity). A class without values (n = 0) fails."""

    attribute: str
    l: Fraction  # noqa: E741
    missing: Missing = "out"


@dataclass(frozen=True)
class Recursive:
    """r₁ < c·(r_l + r_{l+1} + …) for the counts in falling order (recursive (c,l)-diversity), strict."""

    attribute: str
    c: Fraction
    l: int  # noqa: E741
    missing: Missing = "out"


@dataclass(frozen=True)
class Closeness:
    """Σ_S weight_S·|p(S) − q(S)| ≤ t, p the class and q the reference (t-closeness). n = 0 passes.

    The three usual distances are sums over sets of codes S:
    *equal*: every value alone, weight 1/2;
    *ordered*, m values: the prefixes {v₁ … v_i}, i < m, weight 1/(m−1);
    *hierarchical*, H the height of the root: every node but the root with the leaves below it, weight
    (height of its parent − its own height)/(2H). It telescopes to height(lowest common ancestor)/H.

    `reference[v]` is the count of code v in the whole table (index 0 is missing; 0 there when left out).
    """

    attribute: str
    t: Fraction
    reference: tuple[int, ...]
    sets: tuple[tuple[Fraction, tuple[int, ...]], ...]
    missing: Missing = "out"


Rule = SizeAtLeast | DistinctAtLeast | ShareAtMost | EntropyAtLeast | Recursive | Closeness
