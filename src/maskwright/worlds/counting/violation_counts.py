"""Classes that hold j₁ … j_u sensitive rows, Σj = r, weighted ∏C(n_i, j_i), where some class exceeds its cap.

This is the arithmetic behind the minimality attack and even-split methods: classes of n_i rows hold r sensitive
rows together, and what the adversary knows is that j_i > cap_i for at least one i. A cap below 0 says that the
class violates whatever it gets. The worlds in which *none* exceeds its cap are the coefficient of x^r in
∏ Σ_{j ≤ cap_i} C(n_i, j) x^j; identical classes are one factor with an exponent. The polynomials, with large
integer coefficients and cut off at a degree, are at the end of the file.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from maskwright.errors import UsageError

Kind = tuple[int, int]  # size and cap of a class
QUICK, PATIENT = 0.1, 30.0  # seconds
ACCURATE = 1e-9
Polynomial = list[int]


@dataclass(frozen=True)
class ViolationCount:
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

    def _extend(
        prefix: tuple[int, ...], left: int, weight: int, violated: bool
    ) -> Iterator[tuple[tuple[int, ...], int]]:
        i = len(prefix)
        if i == len(sizes):
            if violated:
                yield prefix, weight
            return
        for j in range(max(0, left - room[i + 1]), min(sizes[i], left) + 1):
            yield from _extend(
                (*prefix, j), left - j, weight * math.comb(sizes[i], j), violated or j > caps[i]
            )

    if 0 <= sensitive <= room[0]:
        yield from _extend((), sensitive, 1, False)


def count_violations(
    kinds: Counter[Kind], sensitive: int, exact: bool | None = None
) -> ViolationCount | None:
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
    if not violable_kinds(kinds, sensitive):
        return None
    if any(cap < 0 for _, cap in kinds) or sensitive == everybody:
        return ViolationCount(dict.fromkeys(kinds, before), Fraction(1), before, "exact")
    seconds = math.inf if exact is False else _seconds(kinds, sensitive, everybody)
    if exact or seconds < QUICK:
        return _count_exactly(kinds, sensitive, everybody)
    from maskwright.worlds.counting.floating_counts import count_in_floats, count_rare_violations

    found = count_in_floats(kinds, sensitive, everybody)
    if found.relative_error > ACCURATE:  # so rare that floats end before, or rounding drowns it
        found = min(found, count_rare_violations(kinds, sensitive, everybody), key=lambda x: x.relative_error)
    if found.relative_error > ACCURATE and seconds < PATIENT:
        return _count_exactly(kinds, sensitive, everybody)
    return found


def violable_kinds(kinds: Counter[Kind], sensitive: int) -> dict[Kind, int]:
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


def _count_exactly(kinds: Counter[Kind], sensitive: int, everybody: int) -> ViolationCount:
    capped = violable_kinds(kinds, sensitive)
    free = everybody - sum(n * m for (n, _), m in capped.items())  # rows of classes that cannot violate
    safe = {(n, cap): [math.comb(n, j) for j in range(cap + 1)] for n, cap in capped}
    product = [1]
    for kind, m in sorted(capped.items(), key=lambda item: item[0][1] * item[1]):
        product = multiply_polynomials(product, polynomial_power(safe[kind], m, sensitive), sensitive)
    product = multiply_polynomials(
        product, [math.comb(free, j) for j in range(min(free, sensitive) + 1)], sensitive
    )
    product += [0] * (sensitive + 1 - len(product))
    worlds = math.comb(everybody, sensitive)
    kept = worlds - product[sensitive]
    spread = math.comb(everybody - 1, sensitive - 1)  # worlds in which a given row is sensitive
    share: dict[Kind, Fraction] = {}
    for n, cap in capped:
        others = divide_series(product, safe[n, cap])
        held = sum(j * c * others[sensitive - j] for j, c in enumerate(safe[n, cap]))
        share[n, cap] = Fraction(n * spread - held, n * kept)
    if free:
        rest = sensitive - sum(m * n * share[n, cap] for (n, cap), m in capped.items())
        share |= dict.fromkeys(kinds.keys() - capped.keys(), Fraction(rest) / free)
    return ViolationCount(share, Fraction(kept, worlds), Fraction(sensitive, everybody), "exact")


def caps_of(sizes: Sequence[int], ell: Fraction) -> list[int]:
    """The most sensitive rows a class of each size may hold: j·ℓ ≤ n."""
    if ell <= 0:
        raise UsageError(f"l is {ell}; it must be greater than 0")
    return [n * ell.denominator // ell.numerator for n in sizes]


def multiply_polynomials(a: Sequence[int], b: Sequence[int], degree: int) -> Polynomial:
    """a·b up to x^degree; coefficients are not negative."""
    a, b = a[: degree + 1], b[: degree + 1]
    if len(a) < len(b):
        a, b = b, a
    return _shifted(a, b, degree) if _packing_is_slower(a, b) else _packed(a, b, degree)


def _packing_is_slower(a: Sequence[int], b: Sequence[int]) -> bool:
    """Compare estimates, in nanoseconds, of multiplying term by term and of Karatsuba's algorithm on the whole."""
    if len(b) < 8:
        return True
    bits_a, bits_b = max(a).bit_length(), max(b).bit_length()
    slot = (bits_a + bits_b) / 30
    terms = len(a) * len(b) * (130 + bits_a * bits_b / 1600)
    packed: float = 7 * (len(b) * slot) ** 1.585 * (len(a) / len(b))
    return terms < packed


def _shifted(a: Sequence[int], b: Sequence[int], degree: int) -> Polynomial:
    length = min(degree + 1, len(a) + len(b) - 1)
    row = np.array(a, dtype=object)
    result = np.zeros(length, dtype=object)
    for j, factor in enumerate(b):
        if factor and j < length:
            stop = min(length, j + len(row))
            result[j:stop] += row[: stop - j] * factor
    found: Polynomial = result.tolist()
    return found


def _packed(a: Sequence[int], b: Sequence[int], degree: int) -> Polynomial:
    """Kronecker's substitution: every coefficient in a slot of its own of one large integer."""
    bits = max(a).bit_length() + max(b).bit_length() + len(b).bit_length()
    width = bits // 8 + 1
    product = _pack(a, width) * _pack(b, width)
    length = len(a) + len(b) - 1
    data = product.to_bytes(length * width, "little")
    stop = min(length, degree + 1)
    return [int.from_bytes(data[i * width : (i + 1) * width], "little") for i in range(stop)]


def _pack(a: Sequence[int], width: int) -> int:
    return int.from_bytes(b"".join(x.to_bytes(width, "little") for x in a), "little")


def polynomial_power(f: Sequence[int], exponent: int, degree: int) -> Polynomial:
    """f^exponent up to x^degree, for f starting with 1 (Miller's recurrence: k·g_k from the g before it)."""
    if exponent == 1:
        return list(f[: degree + 1])
    length = min(degree, (len(f) - 1) * exponent) + 1
    g = np.zeros(length, dtype=object)
    g[0] = 1
    falling = np.array(f[:0:-1], dtype=object)  # f_d … f_1, to meet g_{k−d} … g_{k−1}
    leading = falling * np.arange(len(f) - 1, 0, -1) * (exponent + 1)
    for k in range(1, length):
        window = min(k, len(falling))
        factors = leading[len(leading) - window :] - k * falling[len(falling) - window :]
        g[k] = np.dot(factors, g[k - window : k]) // k
    found: Polynomial = g.tolist()
    return found


def divide_series(a: Sequence[int], b: Sequence[int]) -> Polynomial:
    """a/b as a power series, exact up to the degree of a; b starts with 1."""
    result = np.array(a, dtype=object)
    falling = np.array(b[:0:-1], dtype=object)
    if len(falling):
        for i in range(1, len(result)):
            window = min(i, len(falling))
            result[i] -= np.dot(falling[len(falling) - window :], result[i - window : i])
    found: Polynomial = result.tolist()
    return found
