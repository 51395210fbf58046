"""How to cut n rows into equal parts all the way down, from n and the least group size alone.

The plan looks at no value of the table, so that it cannot say anything about one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Splits = Literal["mixed", "halves"]
PRIMES = (2, 3, 5, 7)
DOUBLING = 0.06  # what groups twice as large cost, in units of the loss of dropping every row (measured on Adult)


@dataclass(frozen=True)
class EvenPlan:
    """`parts[i]` equal parts at depth i; groups of `leaf` rows at the end; `dropped` rows do not fit."""

    parts: tuple[int, ...]
    leaf: int
    dropped: int


def even_plan(n: int, least: int, splits: Splits) -> EvenPlan:
    """Equal parts down to groups of at least `least` rows.

    halves: 2^h parts, h as large as possible; n mod 2^h rows are dropped, fewer than one in `least`.
    mixed: also thirds, fifths and sevenths near the root, chosen so that hardly a row is dropped.
    """
    if n < 2 * least:
        return EvenPlan((), n, 0)
    if splits == "halves":
        depth = (n // least).bit_length() - 1
        return EvenPlan((2,) * depth, n >> depth, n % (1 << depth))
    best = min(
        ((_cost(n, leaf, least, product), leaf, product) for leaf in range(least, min(2 * least, n) + 1)
         for product in _smooth(n // leaf, 2 * n // (5 * leaf))),
    )  # fmt: skip
    _, leaf, product = best
    return EvenPlan(tuple(_factors(product)), leaf, n - leaf * product)


def _cost(n: int, leaf: int, least: int, product: int) -> float:
    return (n - leaf * product) / n + DOUBLING * math.log2(leaf / least)


def _smooth(most: int, least: int) -> list[int]:
    """Numbers from `least` to `most` without prime factors above 7, odd ones making up at most 315 of them."""
    odd = [x for x in range(1, 316, 2) if math.prod(_factors(x)) == x]
    result = []
    for x in odd:
        product = x
        while product <= most:
            if product >= least:
                result.append(product)
            product *= 2
    return result


def _factors(number: int) -> list[int]:
    """Its prime factors up to 7, largest first."""
    result = []
    for prime in reversed(PRIMES):
        while number % prime == 0:
            number //= prime
            result.append(prime)
    return result
