"""Orders of tuples and rows: counting sorts, digits of a Hilbert curve, and rows listed tuple by tuple.

Each function calls the compiled kernel where it is installed and its numpy twin where it is not; the results are
the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.kernels.partition import Int32s, compiled

DIGIT = 14  # bits of a sorting digit: counting sorts are fastest while their counters stay in the cache


def sorted_by(keys: Int32s, n_keys: int, kernel: ModuleType | None = compiled) -> Int32s:
    """The places of `keys` (each from 0 to n_keys − 1) by key, equal ones in their order."""
    if kernel is None:
        return np.argsort(keys, kind="stable").astype(np.int32)
    order = np.empty(len(keys), dtype=np.int32)
    kernel.counting(np.ascontiguousarray(keys), n_keys, order)
    return order


def items_of_owners(
    owner: Int32s, start: Ints, items: Int32s, kernel: ModuleType | None = compiled
) -> Int32s:
    """Each row takes the next item of its owner, in the order of the rows; rows with a negative owner take none.

    Owner k has `items[start[k]:start[k + 1]]`, as many as there are rows with it. The rows may be overwritten: with
    the result they would be the largest arrays of a run.
    """
    if kernel is not None:
        owner = np.ascontiguousarray(owner)
        kernel.deal(owner, np.ascontiguousarray(start, dtype=np.int64), np.ascontiguousarray(items))
        return owner
    there = np.flatnonzero(owner >= 0)
    rows = np.bincount(owner[there], minlength=len(start) - 1)
    if not np.array_equal(rows, np.diff(start)) or start[0] != 0 or start[-1] != len(items):
        raise ValueError("arrays do not fit together")
    result = owner.copy()
    result[there[np.argsort(owner[there], kind="stable")]] = items
    return result


def by_digits(digits: Sequence[Int32s], radix: Sequence[int]) -> Int32s:
    """The places by several keys, most significant first: one counting sort each, the least significant first."""
    order = sorted_by(digits[-1], radix[-1])
    for digit, size in zip(digits[-2::-1], radix[-2::-1], strict=True):
        order = order[sorted_by(digit[order], size)]
    return order


def rank_matrix(codes: Int32s, ranks: Sequence[Int32s], kernel: ModuleType | None = compiled) -> Int32s:
    """`ranks[a][codes[a, t]]`, one line per tuple t."""
    matrix = np.empty(codes.shape[::-1], dtype=np.int32)
    if kernel is not None and len(ranks):
        kernel.ranked(np.ascontiguousarray(codes), *_flat(ranks, np.int32), matrix)
        return matrix
    for a, rank in enumerate(ranks):
        matrix[:, a] = rank[codes[a]]
    return matrix


def hilbert_digits(
    ranks: Int32s, sizes: Sequence[int], kernel: ModuleType | None = compiled
) -> tuple[list[Int32s], list[int]]:
    """The index of each point on a Hilbert curve [Skilling 2004] as digits, most significant first, and their radix.

    Every axis is stretched to the same number of bits, so that an attribute with two values counts as much as
    one with a hundred.
    """
    d, n = len(sizes), ranks.shape[1]
    if d == 0:
        return [np.zeros(n, dtype=np.int32)], [1]
    bits = max(1, min(16, max((size - 1).bit_length() for size in sizes)))
    stretched = [(np.arange(s, dtype=np.int64) * (1 << bits) // s).astype(np.uint16) for s in sizes]
    digits = np.zeros((-(-d * bits // DIGIT), n), dtype=np.int32)
    if kernel is not None:
        kernel.hilbert(
            np.ascontiguousarray(ranks), *_flat(stretched, np.uint16), bits, DIGIT, digits
        )  # fmt: skip
    else:
        x = _transposed([table[rank] for table, rank in zip(stretched, ranks, strict=True)], bits)
        for place in range(d * bits):
            bit = x[place % d] >> np.uint16(bits - 1 - place // d) & np.uint16(1)
            digits[place // DIGIT] = digits[place // DIGIT] << 1 | bit.astype(np.int32)
    return list(digits), [1 << min(DIGIT, d * bits - i * DIGIT) for i in range(len(digits))]


def _flat(tables: Sequence[NDArray[np.generic]], dtype: type) -> tuple[NDArray[np.generic], Ints, Ints]:
    """Tables one after another, where each begins, and how long each is."""
    size = np.array([len(table) for table in tables], dtype=np.int64)
    return np.concatenate(tables).astype(dtype), np.cumsum(size) - size, size


def _transposed(x: list[NDArray[np.uint16]], bits: int) -> list[NDArray[np.uint16]]:
    """Skilling's transform of coordinates to the transposed Hilbert index."""
    d = len(x)
    for b in range(bits - 1, 0, -1):
        q, p = np.uint16(1 << b), np.uint16((1 << b) - 1)
        for i in range(d):
            flip = (x[i] & q) != 0
            swap = np.where(flip, np.uint16(0), (x[0] ^ x[i]) & p)
            x[0] = np.where(flip, x[0] ^ p, x[0] ^ swap)
            if i:  # for i = 0 the exchange of x[0] with itself changes nothing
                x[i] = x[i] ^ swap
    for i in range(1, d):
        x[i] = x[i] ^ x[i - 1]
    t = np.zeros_like(x[0])
    for b in range(bits - 1, 0, -1):
        t = np.where((x[d - 1] & np.uint16(1 << b)) != 0, t ^ np.uint16((1 << b) - 1), t)
    return [value ^ t for value in x]


def arrange_cells(
    sorting: Int32s,
    rows: Ints,
    keys: NDArray[np.uint64],
    cell_of: Int32s,
    kernel: ModuleType | None = compiled,
) -> Int32s:
    """The cells of the rows, listed tuple after tuple in the order of `sorting`.

    Rows come in the order of their tuples: `rows[t]` of tuple t, `cell_of[i]` the cell of the i-th. Those of one
    tuple are listed by their keys, which are drawn at random.
    """
    start = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    if kernel is not None:
        cells = np.empty(len(cell_of), dtype=np.int32)
        kernel.arrange(sorting, start, keys, cell_of, cells)
        return cells
    place = np.empty(len(sorting), dtype=np.int32)
    place[sorting] = np.arange(len(sorting), dtype=np.int32)
    return cell_of[np.lexsort((keys, np.repeat(place, rows)))]


def allocation_entries(
    listed: Int32s, start: Ints, cell_rows: Ints, kernel: ModuleType | None = compiled
) -> tuple[Ints, Ints, Ints]:
    """Entries (cell, group, rows), by cell and then by group, of rows in groups; group −1: rows not listed.

    Group g holds the rows `listed[start[g]:start[g + 1]]`, each named by its cell; cell c has `cell_rows[c]` rows.
    """
    if kernel is not None:
        listed = np.ascontiguousarray(listed)
        first, left = np.empty(len(cell_rows) + 1, dtype=np.int64), np.empty(len(cell_rows), dtype=np.int64)
        used = kernel.count_entries(listed, start, cell_rows, first, left)
        cells, groups, rows = (np.empty(used, dtype=np.int64) for _ in range(3))
        kernel.allocate(listed, start, first, left, cells, groups, rows)
        return cells, groups, rows
    taken = np.bincount(listed, minlength=len(cell_rows))
    if len(taken) > len(cell_rows) or (taken > cell_rows).any():
        raise ValueError("arrays do not fit together")
    left = cell_rows - taken
    radix = len(start)
    group_of = np.repeat(np.arange(1, radix), np.diff(start))
    keys, counts = np.unique(listed.astype(np.int64) * radix + group_of, return_counts=True)
    over = np.flatnonzero(left)
    keys, counts = np.concatenate([over * radix, keys]), np.concatenate([left[over], counts])
    index = np.argsort(keys)
    return keys[index] // radix, keys[index] % radix - 1, counts[index]
