"""Classes that hold j₁ … j_u sensitive rows, Σj = r, weighted ∏C(n_i, j_i), where some class exceeds its cap.

This is the arithmetic behind the minimality attack and even-split methods: classes of n_i rows hold r sensitive
rows together, and what the adversary knows is that j_i > cap_i for at least one i. A cap below 0 says that the
class violates whatever it gets. The worlds in which *none* exceeds its cap are the coefficient of x^r in
∏ Σ_{j ≤ cap_i} C(n_i, j) x^j; identical classes are one factor with an exponent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from maskwright.core.worlds.polynomials import divide, multiply, power
from maskwright.errors import UsageError

Kind = tuple[int, int]  # size and cap of a class
QUICK, PATIENT = 0.1, 30.0  # seconds
ACCURATE = 1e-9


@dataclass(frozen=True)
class Counted:
    """What counting the worlds gave.

    Attributes:
        share: by size and cap of a class, the expected share of sensitive rows in it given a violation.
        violation: the probability, over all worlds, that some class exceeds its cap; a fraction also where it is
            too small for floating point.
        before: the share of sensitive rows over all classes, r/Σn.
        arithmetic: "exact" (fractions) or "float".
        relative_error: how far `violation` may be off, and a share, relative to the larger of it and `before`;
            0 when exact.
    """

    share: dict[Kind, Fraction] | dict[Kind, float]
    violation: Fraction | float
    before: Fraction
    arithmetic: Literal["exact", "float"]
    relative_error: float = 0.0


def kept_vectors(
    sizes: Sequence[int], caps: Sequence[int], sensitive: int
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Every vector with a violation and its weight, in ascending lexicographic order."""
    room = [0] * (len(sizes) + 1)
    for i in reversed(range(len(sizes))):
        room[i] = room[i + 1] + sizes[i]

    def extend(
        prefix: tuple[int, ...], left: int, weight: int, violated: bool
    ) -> Iterator[tuple[tuple[int, ...], int]]:
        i = len(prefix)
        if i == len(sizes):
            if violated:
                yield prefix, weight
            return
        for j in range(max(0, left - room[i + 1]), min(sizes[i], left) + 1):
            yield from extend(
                (*prefix, j), left - j, weight * math.comb(sizes[i], j), violated or j > caps[i]
            )

    if 0 <= sensitive <= room[0]:
        yield from extend((), sensitive, 1, False)


def count(kinds: Counter[Kind], sensitive: int, exact: bool | None = None) -> Counted | None:
    """Count the worlds with a violation; None when there is none.

    Args:
        kinds: how many classes there are of each size and cap.
        sensitive: the sensitive rows in all of them together.
        exact: True: in integers, whatever it takes; False: in floating point; None: in integers where that
            takes at most about a tenth of a second, or half a minute where floating point is not accurate.
    """
    everybody = sum(n * m for (n, _), m in kinds.items())
    if not 0 <= sensitive <= everybody or not everybody:
        return None
    before = Fraction(sensitive, everybody)
    if not able(kinds, sensitive):
        return None
    if any(cap < 0 for _, cap in kinds) or sensitive == everybody:
        return Counted(dict.fromkeys(kinds, before), Fraction(1), before, "exact")
    seconds = math.inf if exact is False else _seconds(kinds, sensitive, everybody)
    if exact or seconds < QUICK:
        return _count_exactly(kinds, sensitive, everybody)
    from maskwright.core.worlds.fourier import count_in_floats
    from maskwright.core.worlds.rare import count_rare

    found = count_in_floats(kinds, sensitive, everybody)
    if found.relative_error > ACCURATE:  # so rare that floats end before, or rounding drowns it
        found = min(found, count_rare(kinds, sensitive, everybody), key=lambda x: x.relative_error)
    if found.relative_error > ACCURATE and seconds < PATIENT:
        return _count_exactly(kinds, sensitive, everybody)
    return found


def able(kinds: Counter[Kind], sensitive: int) -> dict[Kind, int]:
    """The kinds of classes that can exceed their cap, and how many there are of each."""
    return {(n, cap): m for (n, cap), m in kinds.items() if cap < min(n, sensitive)}


def _seconds(kinds: Counter[Kind], sensitive: int, everybody: int) -> float:
    """About how long exact counting takes, from above."""
    share = sensitive / everybody
    bits = 64.0
    if 0 < share < 1:
        bits += everybody * -(share * math.log2(share) + (1 - share) * math.log2(1 - share))
    short = sum(3 * sensitive * min(cap, sensitive) for _, cap in kinds)
    long = sum(1 for (_, cap), m in kinds.items() if cap * m > 24)
    seconds: float = short * (2e-7 + bits * 1.5e-10) + long * (bits * sensitive / 1e6) ** 1.6 * 0.006
    return seconds


def _count_exactly(kinds: Counter[Kind], sensitive: int, everybody: int) -> Counted:
    capped = able(kinds, sensitive)
    free = everybody - sum(n * m for (n, _), m in capped.items())  # rows of classes that cannot violate
    safe = {(n, cap): [math.comb(n, j) for j in range(cap + 1)] for n, cap in capped}
    product = [1]
    for kind, m in sorted(capped.items(), key=lambda item: item[0][1] * item[1]):
        product = multiply(product, power(safe[kind], m, sensitive), sensitive)
    product = multiply(product, [math.comb(free, j) for j in range(min(free, sensitive) + 1)], sensitive)
    product += [0] * (sensitive + 1 - len(product))
    worlds = math.comb(everybody, sensitive)
    kept = worlds - product[sensitive]
    spread = math.comb(everybody - 1, sensitive - 1)  # worlds in which a given row is sensitive
    share: dict[Kind, Fraction] = {}
    for n, cap in capped:
        others = divide(product, safe[n, cap])
        held = sum(j * c * others[sensitive - j] for j, c in enumerate(safe[n, cap]))
        share[n, cap] = Fraction(n * spread - held, n * kept)
    if free:
        rest = sensitive - sum(m * n * share[n, cap] for (n, cap), m in capped.items())
        share |= dict.fromkeys(kinds.keys() - capped.keys(), Fraction(rest) / free)
    return Counted(share, Fraction(kept, worlds), Fraction(sensitive, everybody), "exact")


def caps_of(sizes: Sequence[int], ell: Fraction) -> list[int]:
    """The most sensitive rows a class of each size may hold: j·ℓ ≤ n."""
    if ell <= 0:
        raise UsageError(f"l is {ell}; it must be greater than 0")
    return [n * ell.denominator // ell.numerator for n in sizes]
