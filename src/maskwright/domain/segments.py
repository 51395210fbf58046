"""Exact arithmetic on many classes at once: sums and maxima per class, and ratios compared crosswise.

Arrays are 64-bit integers as long as every product fits, and Python integers (dtype object) beyond that, so
the result never depends on the size of the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.exact import text_of

Whole = NDArray[Any]  # int64, or object holding Python integers
LIMIT = 2**62


def widen_integers(array: Whole, factor: int) -> Whole:
    """An array of integers, as Python integers if a product with `factor` could leave 64 bits."""
    if array.dtype == object or not len(array):
        return array
    largest = max(abs(int(array.max())), abs(int(array.min())), 1)
    return array.astype(object) if largest * abs(factor) >= LIMIT else array


def exact_product(array: Whole, factor: int) -> Whole:
    """`array · factor`, exactly."""
    if abs(factor) >= LIMIT:
        return array.astype(object) * factor
    product: Whole = widen_integers(array, factor) * factor
    return product


def at_most(numerators: Whole, denominators: Whole, bound: Fraction) -> NDArray[np.bool_]:
    """numerator / denominator ≤ bound, element by element (denominators positive)."""
    left, right = exact_product(numerators, bound.denominator), exact_product(denominators, bound.numerator)
    return np.asarray(left <= right, dtype=bool)


def class_sums(entries: Whole, start: Ints) -> Whole:
    """The sum of the entries of each class; 0 for a class without entries."""
    return _reduce(np.add, entries, start, 0)


def class_max(entries: Whole, start: Ints, empty: int = 0) -> Whole:
    """The largest entry of each class; `empty` for a class without entries."""
    return _reduce(np.maximum, entries, start, empty)


def _reduce(ufunc: np.ufunc, entries: Whole, start: Ints, empty: int) -> Whole:
    result: Whole = np.full(len(start) - 1, empty, dtype=entries.dtype)
    filled = np.flatnonzero(np.diff(start))  # reduceat takes an empty segment for a segment of one
    if len(filled):
        result[filled] = ufunc.reduceat(entries, start[filled])
    return result


def known_counts(counts: ValueCounts) -> ValueCounts:
    """Counts without missing values (code 0)."""
    there = counts.codes > 0
    if there.all():
        return counts
    before = np.concatenate([[0], np.cumsum(there)])
    return ValueCounts(
        counts.values, before[counts.start], counts.codes[there], counts.counts[there], counts.ordered
    )


SHORT = 100  # a denominator that people still read


def rounded_up(value: Fraction) -> str:
    """The text of a number, rounded up to six decimals where it would be long: for bounds from above."""
    short = value if value.denominator <= SHORT else Fraction(math.ceil(value * 10**6), 10**6)
    return text_of(short)


def rounded_down(value: Fraction) -> str:
    """The text of a number, rounded down to six decimals where it would be long: for bounds from below."""
    short = value if value.denominator <= SHORT else Fraction(math.floor(value * 10**6), 10**6)
    return text_of(short)


class Ratios(Sequence[Fraction]):
    """Fractions that are made only when somebody looks at them; a million of them cost two arrays."""

    def __init__(self, numerators: Whole, denominators: Whole) -> None:
        self.numerators = numerators
        self.denominators = denominators

    def __len__(self) -> int:
        return len(self.numerators)

    @overload
    def __getitem__(self, index: int) -> Fraction: ...
    @overload
    def __getitem__(self, index: slice) -> Ratios: ...
    def __getitem__(self, index: int | slice) -> Fraction | Ratios:
        if isinstance(index, slice):
            return Ratios(self.numerators[index], self.denominators[index])
        return Fraction(int(self.numerators[index]), int(self.denominators[index]))

    def __iter__(self) -> Iterator[Fraction]:
        pairs = zip(self.numerators.tolist(), self.denominators.tolist(), strict=True)
        return (Fraction(a, b) for a, b in pairs)

    def at_most(self, bound: Fraction) -> NDArray[np.bool_]:
        """Which are ≤ bound."""
        return at_most(self.numerators, self.denominators, bound)

    def at_least(self, bound: Fraction) -> NDArray[np.bool_]:
        """Which are ≥ bound."""
        return at_most(-self.numerators, self.denominators, -bound)

    def floats(self) -> NDArray[np.float64]:
        """Within a few units of the last place."""
        if self.numerators.dtype == self.denominators.dtype == np.int64:
            # converts piece by piece, without copies
            return np.true_divide(self.numerators, self.denominators)
        return self.numerators.astype(np.float64) / self.denominators.astype(np.float64)

    def argmax(self) -> int | None:
        """The first of the largest, exactly; None when there is none."""
        if not len(self):
            return None
        about = self.floats()
        top = about.max()
        near = np.flatnonzero(about >= top - 1e-12 * abs(top))
        best: dict[tuple[int, int], int] = {}
        for i in near[::-1].tolist():
            best[int(self.numerators[i]), int(self.denominators[i])] = i
        largest = max(Fraction(a, b) for a, b in best)
        return min(i for (a, b), i in best.items() if Fraction(a, b) == largest)

    def argmin(self) -> int | None:
        """The first of the smallest, exactly; None when there is none."""
        return Ratios(-self.numerators, self.denominators).argmax()


def dense_numbers(key: Ints, size: int) -> tuple[Ints, int]:
    """Keys below `size` renumbered 0, 1, … in ascending order, and how many different ones there are."""
    if size <= max(1 << 16, 8 * len(key)):
        used = np.zeros(size, dtype=bool)
        used[key] = True
        number = np.cumsum(used) - 1
        return number[key], int(used.sum())
    unique, inverse = np.unique(key, return_inverse=True)
    return inverse.astype(np.int64).reshape(-1), len(unique)
