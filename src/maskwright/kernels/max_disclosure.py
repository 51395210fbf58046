"""Maximum disclosure of millions of buckets: floats find the candidates, fractions decide among them.

The answer needs the exact minimum over all buckets of 3k + 1 quantities (the lemma in `worlds.statements.disclosure`).
With relative error γ, every bucket that attains an exact minimum has a float of at most (1+γ)/(1−γ) times the
smallest float; those that do are compared in integers. There can be very many of them, because exact ties
are common, so they are compared in sets: every quantity falls when any of `sums` or `target` rises, so
the *roof* of some buckets of equal size (the largest of each number) is a bound for all of them.
A roof that is no better than the best so far settles a whole set at once; otherwise the set is halved.

The floats are MINIMIZE1 for many buckets at once, by a compiled kernel or its numpy twin. Each quantity is a product
of at most 2(k + 1) rounded operations on integers below 2^53 and at most two more, so unless it underflows its
relative error is below `relative_error(k)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.segments import class_max, class_sums
from maskwright.worlds.statements import disclosure as exact
from maskwright.worlds.statements.disclosure import Bucket, Disclosure, Ratio

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


TINY = 1e-290  # below it a float may have lost digits to underflow


def zeros_are_exact(ranked: Ranked, k: int) -> bool:
    """A factor that is not 0 is at least 1/n: is a product of k + 1 of them safe from underflow?"""
    return (k + 1) * math.log2(int(ranked.sizes.max(initial=1)) + 1) < 960


def _is_less(a: Ratio, b: Ratio) -> bool:
    return a is not None and (b is None or a < b)


def bound_of(ranked: Ranked, rows: Ints, atoms: int, side: Literal["roof", "floor"]) -> Bucket:
    """A bucket whose every quantity is at most (roof) or at least (floor) that of each of the rows.

    The rows must agree in size and in `hidden`.
    """
    extreme = np.max if side == "roof" else np.min
    sums = tuple(int(extreme(row[rows])) for row in ranked.sums[: atoms + 1])
    first = rows[0]
    return Bucket(
        int(ranked.sizes[first]), sums, int(extreme(ranked.target[rows])), bool(ranked.hidden[first])
    )


def _similar_buckets(ranked: Ranked, rows: Ints) -> Iterator[Ints]:
    """The rows in sets that agree in size and in `hidden`."""
    if not len(rows):
        return
    key = ranked.sizes[rows] * 2 + ranked.hidden[rows]
    order = np.argsort(key, kind="stable")
    yield from np.split(rows[order], np.flatnonzero(np.diff(key[order])) + 1)


class Minima:
    """The exact minimum of each column, and a bucket that attains it, while the buckets stream by."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.least = np.full(3 * k + 1, np.inf)
        self.best: list[tuple[Ratio, int]] = [(None, -1)] * (3 * k + 1)
        self._latest: list[Bucket] = []

    def look(self, ranked: Ranked, table: Floats, first: int) -> None:
        """Take in buckets first, first + 1, …"""
        if not len(ranked.sizes):
            return
        here = table.min(axis=1)
        bound = self.lower(here)
        fresh = ~self._seen(ranked)
        for c in np.flatnonzero((here <= bound) & (here < np.inf)).tolist():
            if self.best[c][0] != 0:
                self.consider(c, ranked, table[c], np.flatnonzero((table[c] <= bound[c]) & fresh), first)

    def lower(self, floats: Floats) -> Floats:
        """Note that floats as low as these occur; the bound below which a bucket must be compared exactly."""
        self.least = np.minimum(self.least, floats)
        return np.maximum(self.least * (1 + 4 * relative_error(self.k)), TINY)

    def consider(self, c: int, ranked: Ranked, floats: Floats, rows: Ints, first: int = 0) -> None:
        """Compare these rows exactly with the best of column c."""
        zeros = rows[floats[rows] == 0]
        if len(zeros) and zeros_are_exact(ranked, self.k):
            self.best[c] = (Fraction(0), first + int(zeros[0]))
            return
        for similar in _similar_buckets(ranked, rows):
            self._settle(c, ranked, floats, similar, first)

    def _settle(self, c: int, ranked: Ranked, floats: Floats, rows: Ints, first: int) -> None:
        """Improve on the best of column c with these rows, where one of them does."""
        atoms = exact.atoms_of(c, self.k)
        roof = bound_of(ranked, rows, atoms, "roof")
        value = exact.bucket_column(roof, c, self.k)
        if not _is_less(value, self.best[c][0]):
            return
        reached = ranked.target[rows] == roof.target
        for row, most in zip(ranked.sums, roof.sums, strict=False):
            reached &= row[rows] == most
        if reached.any():
            b = rows[reached.argmax()]
            self.best[c] = (value, first + int(b))
            full = bound_of(ranked, b[None], len(ranked.sums) - 1, "roof")
            self._latest = [full, *(seen for seen in self._latest if seen != full)][:4]
            return
        half = len(rows) // 2
        halves = [rows[:half], rows[half:]]
        for part in sorted(halves, key=lambda part: float(floats[part].min())):
            self._settle(c, ranked, floats, part, first)

    def _seen(self, ranked: Ranked) -> NDArray[np.bool_]:
        """Buckets just like one of the latest winners: they cannot be better."""
        seen = np.zeros(len(ranked.sizes), bool)
        for bucket in self._latest:
            same = (ranked.sizes == bucket.n) & (ranked.target == bucket.target)
            same &= ranked.hidden == bucket.hidden
            if same.any():
                for row, value in zip(ranked.sums, bucket.sums, strict=True):
                    same &= row == value
            seen |= same
        return seen


def max_disclosure(counts: ValueCounts, k: int, kernel: ModuleType | None = compiled) -> Disclosure:
    """Maximum disclosure for 0 … k pieces of knowledge, exactly, with witnesses."""
    minima = Minima(k)
    for first, ranked, table in bucket_portions(counts, k, kernel):
        minima.look(ranked, table, first)
    return exact.assemble_disclosure(minima.best, k, counts.of_class)


class Alone(Sequence[Fraction]):
    """What each bucket would disclose if it were the only one; a fraction is made when somebody looks."""

    def __init__(self, counts: ValueCounts, k: int, ratios: Floats) -> None:
        self.counts, self.k, self.ratios = counts, k, ratios

    def __len__(self) -> int:
        return self.counts.n_classes

    @overload
    def __getitem__(self, index: int) -> Fraction: ...
    @overload
    def __getitem__(self, index: slice) -> list[Fraction]: ...
    def __getitem__(self, index: int | slice) -> Fraction | list[Fraction]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        counts = self.counts.of_class(range(len(self))[index])
        return exact.belief_of_ratio(Bucket.of(counts, self.k + 1).ratio(self.k + 1))

    def floats(self) -> Floats:
        """The disclosure of each bucket by itself, rounded."""
        return np.asarray(1 / (1 + self.ratios), np.float64)


def measure_disclosure(
    counts: ValueCounts, k: int, c: Fraction, kernel: ModuleType | None = compiled
) -> tuple[Disclosure, Alone, NDArray[np.bool_]]:
    """Maximum disclosure, what each bucket discloses alone, and which of them reach c alone (exactly).

    A bucket alone discloses 1/(1 + ratio) with its ratio for k + 1 atoms: at least c when ratio ≤ (1 − c)/c.
    """
    minima = Minima(k)
    ratios, fails = np.empty(counts.n_classes), np.zeros(counts.n_classes, bool)
    limit = (1 - c) / c
    for first, ranked, table in bucket_portions(counts, k, kernel):
        minima.look(ranked, table, first)
        alone = table[2 * k]
        here = slice(first, first + len(alone))
        ratios[here], fails[here] = alone, _at_most(ranked, alone, limit, k)
    return exact.assemble_disclosure(minima.best, k, counts.of_class), Alone(counts, k, ratios), fails


def _at_most(ranked: Ranked, ratios: Floats, limit: Fraction, k: int) -> NDArray[np.bool_]:
    """Which ratios for k + 1 atoms are ≤ limit, exactly; `ratios` are their floats."""
    result = np.asarray(ratios <= float(limit), bool)
    unsure = abs(ratios - float(limit)) <= 4 * relative_error(k) * float(limit) + TINY
    if zeros_are_exact(ranked, k):
        unsure &= ratios > 0
    sets = list(_similar_buckets(ranked, np.flatnonzero(unsure)))
    while sets:
        rows = sets.pop()
        least = bound_of(ranked, rows, k + 1, "roof").ratio(k + 1)
        if _is_less(limit, least) or least is None:
            result[rows] = False
        elif not _is_less(limit, bound_of(ranked, rows, k + 1, "floor").ratio(k + 1)):
            result[rows] = True
        else:
            sets += [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
    return result
