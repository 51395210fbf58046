"""Orders of rows by their quasi-identifiers: lexicographic with a chosen priority, or along a Hilbert curve.

Rows with equal quasi-identifiers stay in the order they had, which is random (see `rows`). An order never looks
at a sensitive value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.core.classes import Ints
from maskwright.core.settings import nearest
from maskwright.core.summary import Summary
from maskwright.errors import PolicyError
from maskwright.kernels.partition import Int32s, sorted_by
from maskwright.methods.axes import Axis, axes_of, tuple_ranks
from maskwright.methods.rows import Rows

OrderName = Literal["lexicographic", "hilbert"]
WORD = 62  # bits of a sorting key that go into one word
DIGIT = 1 << 16  # counting sorts are fastest while their counters stay in the cache


def arranged(rows: Rows, order: OrderName, priority: Sequence[str] | None, method: str) -> Rows:
    """The same rows, numbered along the order; equal tuples keep the order they have."""
    place = tuple_order(rows.summary, order, priority, method)
    return Rows(rows.summary, rows.cells[sorted_by(place[rows.tuples], rows.summary.n_tuples)])


def tuple_order(summary: Summary, order: OrderName, priority: Sequence[str] | None, method: str) -> Int32s:
    """The place of each tuple in the order."""
    axes = axes_of(summary)
    index = attribute_order(axes, priority, method)
    ranks = tuple_ranks(summary, axes)[index]
    sizes = [len(axes[a].code) for a in index]
    place = np.empty(summary.n_tuples, dtype=np.int32)
    if order == "lexicographic":
        sorting = _by_digits(*_digits(ranks, sizes))
    else:
        sorting = np.lexsort(hilbert_words(ranks, sizes)[::-1]).astype(np.int32)
    place[sorting] = np.arange(summary.n_tuples, dtype=np.int32)
    return place


def attribute_order(axes: Sequence[Axis], priority: Sequence[str] | None, method: str) -> list[int]:
    """The named attributes first, then the others, those with the fewest values first.

    Few values first keeps groups that are neighbours in the order alike in most attributes.
    """
    names = [axis.hierarchy.attribute for axis in axes]
    for name in priority or ():
        if name not in names:
            raise PolicyError(
                f"method {method}: priority names {name!r}, which is no quasi-identifier; {nearest(name, names)}"
            )
    if len(set(priority or ())) < len(priority or ()):
        raise PolicyError(f"method {method}: priority names a column twice")
    first = [names.index(name) for name in priority or ()]
    rest = [a for a in range(len(axes)) if a not in first]
    return first + sorted(rest, key=lambda a: (len(axes[a].code), a))


def _digits(ranks: Int32s, sizes: Sequence[int]) -> tuple[list[Int32s], list[int]]:
    """The ranks as digits of a number, most significant first, small attributes sharing a digit."""
    digits: list[Int32s] = []
    radix: list[int] = []
    for rank, size in zip(ranks, sizes, strict=True):
        if digits and radix[-1] * size <= DIGIT:
            digits[-1] = digits[-1] * np.int32(size) + rank
            radix[-1] *= size
        else:
            digits.append(rank)
            radix.append(size)
    return digits or [np.zeros(ranks.shape[1], dtype=np.int32)], radix or [1]


def _by_digits(digits: list[Int32s], radix: list[int]) -> Int32s:
    """Sorted places: one counting sort per digit, the least significant first."""
    order = sorted_by(digits[-1], radix[-1])
    for digit, size in zip(digits[-2::-1], radix[-2::-1], strict=True):
        order = order[sorted_by(digit[order], size)]
    return order


def hilbert_words(ranks: Int32s, sizes: Sequence[int]) -> list[Ints]:
    """The index of each point on a Hilbert curve [Skilling 2004], most significant word first.

    Every axis is stretched to the same number of bits, so that an attribute with two values counts as much as
    one with a hundred.
    """
    d = len(sizes)
    if d == 0:
        return [np.zeros(ranks.shape[1], dtype=np.int64)]
    bits = max(1, min(16, max((size - 1).bit_length() for size in sizes)))
    stretched = [
        (rank.astype(np.int64) * (1 << bits) // size).astype(np.uint32)
        for rank, size in zip(ranks, sizes, strict=True)
    ]
    x = _transposed(stretched, bits)
    words: list[Ints] = []
    used = WORD
    for bit in range(bits - 1, -1, -1):
        for i in range(d):
            if used == WORD:
                words.append(np.zeros(ranks.shape[1], dtype=np.int64))
                used = 0
            words[-1] = words[-1] << 1 | (x[i] >> np.uint32(bit) & np.uint32(1)).astype(np.int64)
            used += 1
    return words


def _transposed(x: list[NDArray[np.uint32]], bits: int) -> list[NDArray[np.uint32]]:
    """Skilling's transform of coordinates to the transposed Hilbert index."""
    d = len(x)
    for b in range(bits - 1, 0, -1):
        q, p = np.uint32(1 << b), np.uint32((1 << b) - 1)
        for i in range(d):
            flip = (x[i] & q) != 0
            swap = np.where(flip, np.uint32(0), (x[0] ^ x[i]) & p)
            x[0] = np.where(flip, x[0] ^ p, x[0] ^ swap)
            if i:  # for i = 0 the exchange of x[0] with itself changes nothing
                x[i] = x[i] ^ swap
    for i in range(1, d):
        x[i] = x[i] ^ x[i - 1]
    t = np.zeros_like(x[0])
    for b in range(bits - 1, 0, -1):
        t = np.where((x[d - 1] & np.uint32(1 << b)) != 0, t ^ np.uint32((1 << b) - 1), t)
    return [value ^ t for value in x]
