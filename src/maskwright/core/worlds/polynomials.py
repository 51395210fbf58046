"""Polynomials with large integer coefficients, cut off at a degree: products, powers and power-series quotients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Polynomial = list[int]


def multiply(a: Sequence[int], b: Sequence[int], degree: int) -> Polynomial:
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


def power(f: Sequence[int], exponent: int, degree: int) -> Polynomial:
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


def divide(a: Sequence[int], b: Sequence[int]) -> Polynomial:
    """a/b as a power series, exact up to the degree of a; b starts with 1."""
    result = np.array(a, dtype=object)
    falling = np.array(b[:0:-1], dtype=object)
    if len(falling):
        for i in range(1, len(result)):
            window = min(i, len(falling))
            result[i] -= np.dot(falling[len(falling) - window :], result[i - window : i])
    found: Polynomial = result.tolist()
    return found
