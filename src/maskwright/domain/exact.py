"""Exact numbers: thresholds are fractions read from their text, never binary floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

DIGITS = 500  # of a number that a setting may have: a double has 309 at most, and more would only cost time


def to_fraction(value: Any) -> Fraction:
    """Read a threshold: 5, "0.02", "1/4", 0.02 (taken as the decimal that is written), Decimal, Fraction."""
    if isinstance(value, bool):
        raise ValueError(f"{value!r} is not a number")  # noqa: TRY004 - pydantic wants ValueError
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        return Fraction(repr(value))
    try:
        if isinstance(value, str) and len(value) <= 100 and _exponent(value) <= 100:
            text = value.strip()
            return Fraction(text[:-1].strip()) / 100 if text.endswith("%") else Fraction(text)
        long = isinstance(value, Decimal) and abs(value.adjusted()) > DIGITS
        if isinstance(value, (int, Decimal, Fraction)) and not long:
            exact = Fraction(value)
            if max(exact.numerator.bit_length(), exact.denominator.bit_length()) <= DIGITS * 4:
                return exact
    except (ValueError, ZeroDivisionError, OverflowError):
        pass
    raise ValueError(f"{short_repr(value)} is not a number that can be used (write 5, 0.25, 1/4 or 2%)")


def short_repr(value: Any) -> str:
    """A value in a message, cut where it is too long."""
    try:
        text = str(value) if isinstance(value, Fraction) else repr(value)
    except (RecursionError, ValueError):  # nested beyond reason, or a number of thousands of digits
        return f"a {type(value).__name__} that is too large to show"
    return text if len(text) <= 60 else text[:57] + "…"


def _exponent(text: str) -> int:
    """The size of a decimal exponent: 1e999999999 would otherwise be expanded digit by digit."""
    _, mark, exponent = text.lower().partition("e")
    digits = exponent.strip().strip("%").strip().lstrip("+-").replace("_", "")
    return int(digits) if mark and digits.isdecimal() else 0


def percent_text(share: Fraction | float) -> str:
    """A share for people; never rounded to nothing or to everything."""
    if share in (0, 1):
        return f"{100 * int(share)} %"
    if share < Fraction(1, 1000):
        return "less than 0.1 %"
    return f"{min(99.9, round(100 * float(share), 1)):g} %" if share < 1 else f"{100 * float(share):.4g} %"


MANY = 100_000  # from here on digits after the point say nothing
LONGEST_RATIO = 1000  # a denominator that people still read


def share_text(share: Fraction) -> str:
    """A chance or belief for people: 1 in 11, 61.7 %, 100 %."""
    if share.numerator == 1 and 1 < share.denominator <= LONGEST_RATIO:
        return f"1 in {share.denominator}"
    return percent_text(share)


def number_text(value: Fraction | int | float) -> str:
    """A number for people: 5, 1 in 4 (25 %), 75 % (3/4), 61.65 %, 0.573; exact numbers are in the JSON."""
    if isinstance(value, Fraction) and 0 < value < 1:
        percent = f"{100 * float(value):.4g} %" if value >= Fraction(1, 100_000) else "less than 0.001 %"
        if value.denominator > LONGEST_RATIO:
            return percent
        return f"1 in {value.denominator} ({percent})" if value.numerator == 1 else f"{percent} ({value})"
    if isinstance(value, Fraction) and value.denominator == 1:
        return str(value.numerator)
    if isinstance(value, (Fraction, float)) and abs(float(value)) >= MANY:
        return f"{float(value):,.0f}" if math.isfinite(value) else str(value)
    if isinstance(value, Fraction):
        return f"{float(value):.6g}"
    if isinstance(value, float):
        return "less than 0.0001" if 0 < value < 1e-4 else f"{value:.6g}"
    return str(value)


def belief_text(value: Fraction) -> str:
    """A belief for people: like `number_text`, with certainty as 100 % and its opposite as 0 %."""
    return f"{100 * int(value)} %" if value in (0, 1) else number_text(value)


def text_of(value: Fraction) -> str:
    """The shortest exact text: a decimal where there is one ("0.02"), a ratio otherwise ("1/3")."""
    denominator = value.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    if denominator != 1 or value.denominator > 10**12:
        return str(value)
    places = 0
    while 10**places % value.denominator:
        places += 1
    digits = f"{abs(value.numerator) * 10**places // value.denominator:0{places + 1}d}"
    decimals = f".{digits[-places:]}" if places else ""
    return ("-" if value < 0 else "") + digits[: len(digits) - places] + decimals


Exact = Annotated[
    Fraction,
    BeforeValidator(to_fraction),
    PlainSerializer(text_of, return_type=str),
    WithJsonSchema(
        {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^\s*[-+]?[\d.]+(/\d+)?\s*%?\s*$"}]}
    ),
]


DENSE = 16  # marks for each number


def sorted_distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Distinct whole numbers, ascending: marked where they are dense, or sorted; `np.unique` hashes, at many times the
    cost."""
    if len(values) and values.min() >= 0 and (top := int(values.max())) < DENSE * len(values):
        there = np.zeros(top + 1, dtype=bool)
        there[values] = True
        return np.flatnonzero(there)
    ordered = np.sort(values)
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def numbered_values(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct whole numbers, ascending, and for each value its number among them."""
    order = np.argsort(values)
    distinct, among = numbered_sorted(values[order])
    numbers = np.empty(len(values), dtype=np.int64)
    numbers[order] = among
    return distinct, numbers


def numbered_sorted(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same for values that are in ascending order."""
    new = np.ones(len(values), dtype=bool)
    new[1:] = values[1:] != values[:-1]
    return values[new], np.cumsum(new) - 1


def numbered_columns(values: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct columns of codes (0, 1, …) in the order of their numbers, first row first, and each column's place."""
    radices = [int(row.max(initial=0)) + 1 for row in values]
    if not radices or math.prod(radices) >= 2**62:
        distinct, number = np.unique(values, axis=1, return_inverse=True)
        return distinct.astype(np.int64), number.reshape(-1).astype(np.int64)
    keys = np.zeros(values.shape[1], dtype=np.int64)
    for row, radix in zip(values, radices, strict=True):
        keys = keys * radix + row
    found, rows = sorted_distinct(keys), list[NDArray[np.int64]]()
    if len(found) and found[-1] < DENSE * len(keys):
        place = np.zeros(int(found[-1]) + 1, dtype=np.int64)
        place[found] = np.arange(len(found))
        number = place[keys]
    else:
        number = np.searchsorted(found, keys).astype(np.int64)
    for radix in reversed(radices):
        found, digit = np.divmod(found, radix)
        rows.append(digit)
    return np.stack(rows[::-1]), number


def exact_bincount(numbers: NDArray[np.integer], counts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The sum of the counts of each number below n (np.bincount would go through floats)."""
    result = np.zeros(n, dtype=np.int64)
    np.add.at(result, numbers, counts)
    return result


def exact_dot(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    """Σ aᵢ·bᵢ of whole numbers, exactly: in 64 bits where they are enough, else in Python's integers."""
    most = float(np.abs(a).max(initial=0)) * float(np.abs(b).sum(dtype=np.float64))
    return int(np.dot(a, b) if most < 2.0**62 else np.dot(a.astype(object), b.astype(object)))


def entropy_at_least(counts: list[int], ell: Fraction) -> bool:
    """Is the entropy of `counts` at least log `ell`? Decided exactly: nⁿ ≥ ℓⁿ·∏ c^c."""
    n = sum(counts)
    entropy = math.log(n) - sum(c * math.log(c) for c in counts) / n if n else 0.0
    gap = entropy - math.log(ell)
    if abs(gap) > 1e-9:  # far outside the error of the floats above
        return gap > 0
    powers = [(n, n), (ell.denominator, n), (ell.numerator, -n), *((c, -c) for c in counts)]
    return sign_of_log(powers) >= 0


def sign_of_log(powers: Iterable[tuple[int, int]]) -> int:
    """The sign of log ∏ b^e for positive integers b and any integers e, without multiplying it out."""
    merged: dict[int, int] = {}
    for base, exponent in powers:
        merged[base] = merged.get(base, 0) + exponent
    if _is_one(merged):
        return 0
    return certified_sign(lambda: sum((e * Decimal(b).ln() for b, e in merged.items()), Decimal(0)))


def certified_sign(value: Callable[[], Decimal]) -> int:
    """The sign of a number that is not 0, computed with more and more digits until it stands out.

    `value` is called with growing precision; its error must stay below half of the digits.
    """
    digits = 60
    while True:
        with localcontext() as context:
            context.prec = digits
            result = value()
        if abs(result) > Decimal(10) ** -(digits // 2):
            return 1 if result > 0 else -1
        digits *= 2


def exp_compared(x: Fraction, y: Fraction) -> int:
    """The sign of e^x − y, exactly. For rational x ≠ 0 the power is irrational, so digits settle it."""
    if x == 0:
        return (y < 1) - (y > 1)
    if y <= 0:
        return 1
    return certified_sign(
        lambda: Decimal(x.numerator) / x.denominator - Decimal(y.numerator).ln() + Decimal(y.denominator).ln()
    )


def fraction_below(value: Callable[[], Decimal], limit: int) -> Fraction:
    """The largest fraction with a denominator of at most `limit` that is not above an irrational number.

    `value` is called with growing precision; its error must stay below half of the digits. Then c/n < value
    exactly where c/n is at most the fraction, for every n up to the limit.
    """
    digits = 60
    while True:
        with localcontext() as context:
            context.prec = digits
            middle = Fraction(value())
        error = Fraction(1, 10 ** (digits // 2))
        low, high = (rational_below(middle + side, limit) for side in (-error, error))
        if low == high:
            return low
        digits *= 2


def rational_below(value: Fraction, limit: int) -> Fraction:
    """The largest fraction with a denominator of at most `limit` that is not above a rational number."""
    if value.denominator <= limit:
        return value
    near = value.limit_denominator(limit)
    if near <= value:
        return near
    # its neighbour below, a/b: p·b − a·q = 1 with the largest b
    p, q = near.numerator, near.denominator
    b = pow(p, -1, q)
    b += (limit - b) // q * q
    return Fraction((p * b - 1) // q, b)


def _is_one(powers: dict[int, int]) -> bool:
    """Is ∏ b^e = 1? Refine the bases until they are coprime; then only zero exponents make 1."""
    pending, coprime = list(powers.items()), list[tuple[int, int]]()
    while pending:
        x, e = pending.pop()
        if x == 1 or e == 0:
            continue
        for i, (y, f) in enumerate(coprime):
            g = math.gcd(x, y)
            if g > 1:
                del coprime[i]
                pending += [(g, e + f), (x // g, e), (y // g, f)]
                break
        else:
            coprime.append((x, e))
    return not coprime
