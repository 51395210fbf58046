"""Collecting buckets until a group passes: where greedy grouping closes its groups.

Models that are rules are decided by the compiled kernel while it walks (see `records`). For all others, and without
the kernel, the windows that begin at many buckets are decided together.
"""

from __future__ import annotations

from types import ModuleType
from typing import cast

import numpy as np
from numpy.typing import NDArray

from maskwright.core.classes import Classes, Ints, ValueCounts
from maskwright.kernels import partition
from maskwright.kernels.partition import Int32s
from maskwright.methods.evaluate import rules_of
from maskwright.methods.records import Records, decidable
from maskwright.methods.requirement import Bools, Requirement

CHUNK, WINDOW = 4096, 8  # buckets whose windows are decided together, and how many buckets long those get
DENSE = 1 << 22  # numbers in the tables of long groups


def closings(
    requirement: Requirement,
    order: Int32s,
    bucket: int,
    extend: NDArray[np.uint8],
    kernel: ModuleType | None = partition.compiled,
) -> Bools:
    """After which buckets of `order` a group ends; `extend[i]`: one that could end after bucket i goes on."""
    rules = rules_of(requirement.models, requirement.context)
    if kernel is not None and rules is not None and all(decidable(rule, len(order)) for rule in rules):
        closes = np.zeros(len(extend), dtype=np.uint8)
        records = Records(requirement.rows, order, rules)
        kernel.greedy(*records.arrays(), len(order), bucket, extend, closes, records.decide)
        return closes.astype(bool)
    return _Walk(requirement, order, bucket, extend).run()


class _Walk:
    """Follows the groups from bucket to bucket; decides windows of many starts at once, long groups by prefix."""

    def __init__(
        self, requirement: Requirement, order: Int32s, bucket: int, extend: NDArray[np.uint8]
    ) -> None:
        self.requirement, self.order, self.bucket = requirement, order, bucket
        self.extend, self.n = extend.astype(bool), len(extend)
        summary = requirement.rows.summary
        self.codes = {name: requirement.rows.values(name)[order] for name in requirement.sensitive}
        self.radix = {name: len(summary.sensitive[name].values) + 1 for name in requirement.sensitive}

    def run(self) -> Bools:
        closes = np.zeros(self.n, dtype=bool)
        begin, known, ends = 0, 0, np.empty(0, dtype=np.int64)
        while begin < self.n:
            if begin >= known + len(ends):
                self.requirement.progress.check()
                known, ends = begin, self._windows(begin, min(begin + CHUNK, self.n))
            last = int(ends[begin - known])
            if last < 0:
                last = self._long(begin, begin + WINDOW)
            while 0 <= last < self.n - 1 and self.extend[last]:
                last = self._long(begin, last + 1)
            if last < 0:
                break
            closes[last] = True
            begin = last + 1
        return closes

    def _windows(self, first: int, stop: int) -> Ints:
        """For each start the last bucket of the shortest window that passes; −1: none up to WINDOW buckets."""
        ends = np.full(stop - first, -1, dtype=np.int64)
        for length in range(1, WINDOW + 1):
            open_ = np.flatnonzero(ends < 0)
            open_ = open_[first + open_ + length <= self.n]
            if not len(open_):
                break
            lo = (first + open_) * self.bucket
            good = self.requirement.passing(self.order, lo, lo + length * self.bucket)
            ends[open_[good]] = first + open_[good] + length - 1
        return ends

    def _long(self, begin: int, bucket: int) -> int:
        """The first bucket from `bucket` on after which the group that begins at `begin` passes; −1: none."""
        before = {n: self._histogram(n, begin, bucket, 1)[0] for n in self.codes}
        widest = max(self.radix.values(), default=1)
        step = 64
        while bucket < self.n:
            stop = min(self.n, bucket + min(step, max(1, DENSE // widest)))
            counts = {}
            for name in self.codes:
                table = before[name] + self._histogram(name, bucket, stop, stop - bucket).cumsum(axis=0)
                before[name] = table[-1]
                counts[name] = self._sparse(name, table)
            sizes = (np.arange(bucket, stop, dtype=np.int64) + 1 - begin) * self.bucket
            good = np.flatnonzero(self.requirement.decide(Classes(sizes, sizes, counts)))
            if len(good):
                return bucket + int(good[0])
            bucket, step = stop, step * 2
        return -1

    def _histogram(self, name: str, first: int, stop: int, lines: int) -> Ints:
        """Counts of the codes in buckets first..stop: one line per bucket, or one for all."""
        codes = self.codes[name][first * self.bucket : stop * self.bucket].astype(np.int64)
        line = np.arange(len(codes)) // self.bucket if lines > 1 else np.zeros(len(codes), dtype=np.int64)
        radix = self.radix[name]
        flat = np.bincount(line * radix + codes, minlength=max(1, lines) * radix)
        return cast(Ints, flat.reshape(-1, radix))

    def _sparse(self, name: str, table: Ints) -> ValueCounts:
        vc = self.requirement.rows.summary.sensitive[name]
        there = table > 0
        start = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        return ValueCounts(vc.values, start, np.nonzero(there)[1].astype(np.int32), table[there], vc.ordered)
