"""How to cut n rows into equal parts all the way down, from n and the least group size alone.

The plan looks at no value of the table, so that it cannot say anything about one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Splits = Literal["mixed", "halves"]

# Where dropping every row costs 1: groups that are twice as large, and a cut into thirds (both measured on Adult
# under diversity models, whose refusals matter more than the size at which a plan ends).
DOUBLING, THIRDS = 0.015, 0.006
LARGEST = 8  # groups of a plan are smaller than so many times the least size
FURTHER = (2, 3)  # ways in which the cells of crossed cuts are divided beyond a plan
FIRST = 4  # halves come first: a cut into thirds of the whole table would be refused more often


@dataclass(frozen=True)
class EvenPlan:
    """`parts[i]` equal parts at depth i; groups of `leaf` rows at the end; `dropped` rows do not fit."""

    parts: tuple[int, ...]
    leaf: int
    dropped: int

    def crossed(self) -> EvenPlan:
        """The plan of crossed cuts: the same, and as many cuts more as divide its leaf, which drop no row.

        A refused cut uses up one cut of the plan, so that a group may still be large when its cells are as small as a
        leaf. That the plan begins as this one makes crossed cuts a refinement of what it makes without them.
        """
        parts, cell = list(self.parts), self.leaf
        for ways in FURTHER:
            while cell % ways == 0:
                parts.append(ways)
                cell //= ways
        return EvenPlan(tuple(parts), cell, self.dropped)


def even_plan(n: int, least: int, splits: Splits) -> EvenPlan:
    """Equal parts down to groups of at least `least` rows.

    halves: 2^h parts, h as large as possible; n mod 2^h rows are dropped, fewer than one in `least`.
    mixed: up to two cuts into thirds, and somewhat larger groups at the end, so that hardly a row is dropped.
    """
    if n < 2 * least:
        return EvenPlan((), n, 0)
    depth = (n // least).bit_length() - 1
    if splits == "halves":
        return EvenPlan((2,) * depth, n >> depth, n % (1 << depth))
    plans = []
    for halves in range(depth + 1):
        for thirds in range(3):
            product = 3**thirds << halves
            leaf = n // product
            if product > 1 and least <= leaf < max(LARGEST * least, 2 * least + 1):
                cost = (n - leaf * product) / n + DOUBLING * math.log2(leaf / least) + THIRDS * thirds
                plans.append((cost, thirds, halves))
    _, thirds, halves = min(plans)
    first = min(halves, FIRST)
    parts = (2,) * first + (3,) * thirds + (2,) * (halves - first)
    product = math.prod(parts)
    return EvenPlan(parts, n // product, n % product)
