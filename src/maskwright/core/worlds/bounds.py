"""Bounds on belief that hold before any data are seen, for an adversary who knows the method and its parameters.

Each holds only under the conditions it names. Retrying with other parameters after looking at the outcome, dropping
people because of their values, a second dimension after a refusal, and Anatomy inside groups that were made by
looking at sensitive values void all of them: then beliefs can only be measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from maskwright.core.worlds.limits import positive, whole_numbers
from maskwright.errors import UsageError


@dataclass(frozen=True)
class Bound:
    """A bound on the belief in any sensitive value.

    Attributes:
        value: the largest belief.
        strict: belief stays below it and never reaches it.
        conditions: when it holds, in words.
    """

    value: Fraction
    strict: bool
    conditions: str


def greedy_first_bucket(ell: int, buckets: int) -> Fraction:
    """p(b₁) in a greedy group of m ≥ 2 buckets: ∏_{j=1}^{ℓ−1} (mℓ−1−j)/(mℓ−m−j) ÷ ℓ."""
    whole_numbers("l and the number of buckets", [ell, buckets], 2)
    rows = ell * buckets
    product = Fraction(1)
    for j in range(1, ell):
        product *= Fraction(rows - 1 - j, rows - buckets - j)
    return product / ell


def greedy_ceiling(ell: int) -> Fraction:
    """(ℓ/(ℓ−1))^{ℓ−1}/ℓ: what greedy groups of more and more buckets approach from below (1 for ℓ = 2)."""
    whole_numbers("l", [ell], 2)
    return Fraction(ell, ell - 1) ** (ell - 1) / ell


def even_split_supremum(ell: Fraction | int) -> Fraction:
    """1/(ℓ−½), at children of 2ℓ and 2ℓ−1 rows with two positives.

    Proved for the smaller child; for the larger one, and for simple diversity over several values, enumeration
    finds nothing above it. The proven bound for all rows is 1/(ℓ−1), see `even_split_bound`.
    """
    return 1 / (positive("l", ell) - Fraction(1, 2))


def balanced_bound(ell: Fraction | int) -> Bound:
    """Lemma A: with equal halves, belief is the share of the value in the group."""
    return Bound(
        1 / positive("l", ell),
        False,
        "every split tested divides a group into children of equal size, is chosen from quasi-identifiers only, one "
        "per group, by a test that treats the children alike and looks at nothing but their sensitive values; rows "
        "that do not fit are dropped at random",
    )


def anatomy_bound(ell: Fraction | int) -> Bound:
    """Anatomy with random picks: belief is the share of the value in the group."""
    return Bound(
        1 / positive("l", ell),
        False,
        "rows are picked at random; inside blocks only if these were made from quasi-identifiers, and nothing is "
        "published when a block is not eligible",
    )


def even_split_bound(ell: Fraction | int) -> Bound:
    """Run with ℓ = l + 1, an even-split method keeps belief below 1/l."""
    ell = positive("l", ell)
    if ell <= 1:
        return Bound(Fraction(1), False, "none: belief in anything is at most 1")
    return Bound(
        min(1 / (ell - 1), Fraction(1)),
        ell >= 2,
        "binary or value-set diversity is the only requirement; two children whose sizes differ by at most one row, "
        "each of at least l rows; one split per group; nobody is dropped because of a value",
    )


def greedy_bound(ell: int) -> Bound:
    """Greedy grouping, plain or randomised with any p."""
    return Bound(
        greedy_ceiling(ell),
        True,
        "buckets of l rows, binary or value-set diversity is the only requirement; people in the dropped tail are "
        "not covered",
    )


BOUNDS: dict[str, Callable[[int], Bound]] = {
    "balanced": balanced_bound,
    "anatomy": anatomy_bound,
    "even-split": even_split_bound,
    "greedy": greedy_bound,
    "randomised-greedy": greedy_bound,
}


def least_l_for_belief(max_belief: Fraction | int, method: str) -> int:
    """The least whole ℓ with which a method keeps every belief at or below a bound, for every data set.

    Args:
        max_belief: the largest belief that is tolerable, above 0 and at most 1.
        method: a name in `BOUNDS`; others (mask, strict or fallback mondrian, a lattice search on diversity) have
            no bound.
    """
    if method not in BOUNDS:
        raise UsageError(
            f"no bound on belief is known for {method!r}, it can only be measured; known are {', '.join(BOUNDS)}"
        )
    limit = positive("the largest belief", max_belief)
    if limit > 1:
        raise UsageError(f"the largest belief is {limit}; it must be at most 1")
    ell = max(math.ceil(1 / limit), 2 if "greedy" in method else 1)
    while BOUNDS[method](ell).value > limit:
        ell += 1
    return ell
