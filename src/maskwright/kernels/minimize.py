"""MINIMIZE1 for many buckets at once, in floats: a compiled kernel, and its numpy twin with the same results.

`max_disclosure.py` decides exactly with what is found here. Each quantity is a product of at most 2(k + 1)
rounded operations on integers below 2^53 and at most two more, so unless it underflows its relative error is
below `relative_error(k)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.segments import class_max, class_sums

Floats = NDArray[np.float64]
CHUNK = 1 << 14

compiled: ModuleType | None
try:
    from maskwright.kernels import _disclosure as compiled
except ImportError:  # no compiler at installation: the numpy twin serves
    compiled = None


def relative_error(k: int) -> float:
    """The relative error of a float for up to k + 1 atoms."""
    return float((2 * k + 6) * 2.0**-53)


@dataclass(frozen=True, eq=False)
class Ranked:
    """Many buckets at once, see `Bucket`; `sums` has one row per number of values."""

    sizes: Ints
    sums: Ints
    target: Ints
    hidden: NDArray[np.bool_]


def rank_buckets(
    counts: ValueCounts, lo: int, hi: int, atoms: int, kernel: ModuleType | None = compiled
) -> Ranked:
    """The most frequent values of buckets lo … hi − 1."""
    if kernel is None:
        return _rank(counts, lo, hi, atoms)
    m = hi - lo
    out = Ranked(
        np.empty(m, np.int64), np.empty((atoms + 1, m), np.int64), np.empty(m, np.int64), np.empty(m, bool)
    )
    arrays = (
        np.ascontiguousarray(counts.start, np.int64), np.ascontiguousarray(counts.codes, np.int32),
        np.ascontiguousarray(counts.counts, np.int64),
    )  # fmt: skip
    kernel.rank(*arrays, lo, hi, atoms, out.sizes, out.sums, out.target, out.hidden)
    return out


def _rank(counts: ValueCounts, lo: int, hi: int, atoms: int) -> Ranked:
    m = hi - lo
    start = counts.start[lo : hi + 1] - counts.start[lo]
    part = slice(int(counts.start[lo]), int(counts.start[hi]))
    codes, count = counts.codes[part], counts.counts[part]
    owner = np.repeat(np.arange(m), np.diff(start))
    ranks = np.arange(len(owner)) - start[owner]
    seen = ranks < atoms
    tops = np.zeros((atoms + 1, m), np.int64)
    tops[ranks[seen] + 1, owner[seen]] = _falling(count, owner, m)[seen]
    target = class_max(np.where(codes > 0, count, 0), start)
    missing = class_max(np.where(codes > 0, 0, count), start)
    return Ranked(class_sums(count, start), np.cumsum(tops, axis=0), target, missing > target)


def _falling(count: Ints, owner: Ints, m: int) -> Ints:
    """The counts of each bucket in falling order."""
    most = int(count.max(initial=0))
    if m * (most + 1) < 2**62:  # one key, and a sort that profits from its being nearly in order
        return most - np.sort(owner * (most + 1) + (most - count), kind="stable") % (most + 1)
    return count[np.lexsort((-count, owner))]


def bucket_minima(ranked: Ranked, kernel: ModuleType | None = compiled) -> tuple[Floats, Floats]:
    """MINIMIZE1 for 0, 1, … atoms (rows) and each bucket, with largest part 1 and ≥ 2 (see `Bucket._minima`)."""
    shape = ranked.sums.shape
    narrow, wide = np.empty(shape), np.empty(shape)
    if kernel is not None:
        kernel.minima(ranked.sizes, ranked.sums, shape[0] - 1, narrow, wide)
        return narrow, wide
    for lo in range(0, shape[1], 2048):  # small enough for the processor's cache
        part = slice(lo, lo + 2048)
        narrow[:, part], wide[:, part] = _minima(ranked.sizes[part], ranked.sums[:, part])
    return narrow, wide


def _minima(sizes: Ints, sums: Ints) -> tuple[Floats, Floats]:
    top = len(sums) - 1
    cells = np.ones((top + 1, *sums.shape))
    wide = np.full(sums.shape, 2.0)
    for cap in range(1, top + 1):
        for i in reversed(range(top // cap)):
            people = sizes.astype(np.float64) - i
            left = np.maximum(people - sums[cap], 0.0)
            left[people <= 0] = 1.0
            people[people <= 0] = 1.0
            to = wide if i == 0 and cap > 1 else cells[i]
            last = top - i * cap + 1
            np.minimum(to[cap:last], left / people * cells[i + 1, : last - cap], out=to[cap:last])
    return cells[0], wide


def bucket_columns(ranked: Ranked, kernel: ModuleType | None = compiled) -> Floats:
    """The quantities of every bucket, rounded, one row each: `worlds.statements.disclosure.bucket_column` in floats."""
    narrow, wide = bucket_minima(ranked, kernel)
    k = len(narrow) - 2
    out = np.empty((3 * k + 1, len(ranked.sizes)))
    ratio, negated = out[k : 2 * k + 1], out[2 * k + 1 :]
    whole, target = ranked.sizes.astype(np.float64), ranked.target.astype(np.float64)
    least = np.minimum(narrow, wide)
    out[:k] = least[1:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        np.divide(least[1:] * whole, target, out=ratio)
        np.divide((ranked.sizes - ranked.sums[2:]).astype(np.float64), target, out=negated)
        at = np.flatnonzero(ranked.hidden)
        ratio[0, at] = (whole[at] - target[at]) / target[at]
        ratio[1:, at] = wide[2:, at] * whole[at] / target[at]
    out[k:, ranked.target == 0] = np.inf
    return out


def bucket_portions(
    counts: ValueCounts, k: int, kernel: ModuleType | None = compiled
) -> Iterator[tuple[int, Ranked, Floats]]:
    """The buckets in portions: number of the first, ranked counts, columns."""
    if counts.counts.sum(dtype=np.float64) >= 2.0**53:
        raise OverflowError("more than 2^53 people")
    for lo in range(0, counts.n_classes, CHUNK):
        ranked = rank_buckets(counts, lo, min(lo + CHUNK, counts.n_classes), k + 1, kernel)
        yield lo, ranked, bucket_columns(ranked, kernel)
