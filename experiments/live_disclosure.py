"""Maximum disclosure kept up to date while buckets are added, removed and merged.

Buckets with the same counts share a *slot*, which holds its columns (`core.disclosure.columns`) as floats. The
exact minimum of a column is kept: added buckets are compared with it, and only when its own bucket goes is
the column searched again, through the minima of blocks of slots. A change of a few buckets so costs
time in proportion to them, plus a small constant for each column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.errors import UsageError
from maskwright.kernels.max_disclosure import (
    Floats,
    Minima,
    Ranked,
    bucket_columns,
    bucket_portions,
    compiled,
    rank_buckets,
)
from maskwright.worlds.statements import disclosure as exact
from maskwright.worlds.statements.disclosure import Counts, Disclosure

BLOCK = 512


class LiveDisclosure:
    """The disclosure of a changing set of buckets, for up to k pieces of knowledge.

    Buckets 0 … n − 1 are those of `counts`; added ones get the next numbers.
    """

    def __init__(self, counts: ValueCounts, k: int, kernel: ModuleType | None = compiled) -> None:
        self.k, self._base, self._kernel = k, counts, kernel
        self._added: dict[int, Counts] = {}
        self._n = counts.n_classes
        self._slot_of = np.full(counts.n_classes, -1, np.int64)
        self._ranked, self._table = self._build()
        n = len(self._ranked.sizes)
        self._uses = np.bincount(self._slot_of, minlength=n)
        self._known_user = np.zeros(n, np.int64)
        self._known_user[self._slot_of] = np.arange(counts.n_classes)
        self._free: list[int] = []
        self._blocks = np.full((3 * k + 1, 0), np.inf)
        self._grow(n)
        self._minima = Minima(k)
        self._minima.look(self._ranked, self._table, 0)

    def add(self, buckets: Iterable[Counts]) -> list[int]:
        """Add buckets (value → people, None for missing); their numbers."""
        new = [{value: n for value, n in counts.items() if n > 0} for counts in buckets]
        if not new:
            return []
        ranked = rank_buckets(_pack(new), 0, len(new), self.k + 1, self._kernel)
        slots = self._take_slots(len(new))
        for mine, theirs in zip(_rows(self._ranked), _rows(ranked), strict=True):
            mine[..., slots] = theirs
        self._table[:, slots] = bucket_columns(ranked, self._kernel)
        self._refresh(slots)
        first = self._n
        self._n += len(new)
        if self._n > len(self._slot_of):
            self._slot_of = _padded(self._slot_of, self._n + self._n // 4 - len(self._slot_of), -1)
        numbers = list(range(first, self._n))
        self._slot_of[first : self._n] = slots
        self._uses[slots], self._known_user[slots] = 1, numbers
        self._added.update(zip(numbers, new, strict=True))
        here = self._table[:, slots]
        bound = self._minima.lower(here.min(axis=1))
        for c in np.flatnonzero((here <= bound[:, None]).any(axis=1)).tolist():
            self._minima.consider(c, self._ranked, self._table[c], slots[here[c] <= bound[c]])
        return numbers

    def remove(self, buckets: Sequence[int]) -> None:
        """Take buckets away."""
        for b in buckets:
            self._refuse_unknown(b)
        if len(set(buckets)) < len(buckets):
            raise UsageError("a bucket is to be removed twice")
        gone = self._slot_of[list(buckets)]
        self._slot_of[list(buckets)] = -1
        np.subtract.at(self._uses, gone, 1)
        empty = np.unique(gone[self._uses[gone] == 0])
        self._table[:, empty] = np.inf
        self._free += empty.tolist()
        self._refresh(empty)
        for b in buckets:
            self._added.pop(b, None)
        lost = set(empty.tolist())
        again = [c for c, (_, slot) in enumerate(self._minima.best) if slot in lost]
        for c in again:
            self._search(c)

    def merge(self, buckets: Sequence[int]) -> int:
        """Replace buckets by their union; its number."""
        if len(set(buckets)) < 1:
            raise UsageError("name at least one bucket to merge")
        union: Counter[str | None] = Counter()
        for b in buckets:
            union.update(self.counts_of(b))
        self.remove(buckets)
        return self.add([union])[0]

    def counts_of(self, bucket: int) -> Counts:
        """The value counts of a bucket."""
        self._refuse_unknown(bucket)
        return self._added[bucket] if bucket in self._added else self._base.of_class(bucket)

    def disclosure(self) -> Disclosure:
        """Maximum disclosure now, as `max_disclosure` would find it. Look at witnesses before the next change."""
        best = [(value, self._user(slot)) for value, slot in self._minima.best]
        return exact.assemble_disclosure(best, self.k, self.counts_of)

    def _refuse_unknown(self, bucket: int) -> None:
        if not 0 <= bucket < self._n or self._slot_of[bucket] < 0:
            raise UsageError(f"there is no bucket {bucket}; it was removed, or never added")

    def _user(self, slot: int) -> int:
        """A bucket that is in this slot."""
        if slot < 0:
            return -1
        if self._slot_of[self._known_user[slot]] != slot:
            self._known_user[slot] = np.flatnonzero(self._slot_of == slot)[0]
        return int(self._known_user[slot])

    def _search(self, c: int) -> None:
        """Find the minimum of a column again."""
        floats, blocks = self._table[c], self._blocks[c]
        self._minima.best[c] = (None, -1)
        self._minima.least[c] = least = blocks.min(initial=np.inf)
        if least == np.inf:
            return
        bound = self._minima.lower(self._minima.least)[c]
        near = np.flatnonzero(blocks <= bound)
        rows = (near[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        self._minima.consider(c, self._ranked, floats, rows[floats[rows] <= bound])

    def _refresh(self, slots: Ints) -> None:
        """Compute the minima of the blocks of these slots again."""
        for block in np.unique(slots // BLOCK).tolist():
            self._blocks[:, block] = self._table[:, block * BLOCK : (block + 1) * BLOCK].min(axis=1)

    def _take_slots(self, n: int) -> Ints:
        if len(self._free) < n:
            self._grow(len(self._uses) + n)
        taken, self._free = self._free[-n:], self._free[:-n]
        return np.array(taken, np.int64)

    def _grow(self, least: int) -> None:
        """Make room for at least so many slots, in whole blocks."""
        old = len(self._ranked.sizes)
        new = -(-max(least, old + old // 4) // BLOCK) * BLOCK
        pad = new - old
        self._ranked = Ranked(*(_padded(row, pad) for row in _rows(self._ranked)))
        self._table = _padded(self._table, pad, np.inf)
        self._uses, self._known_user = _padded(self._uses, pad), _padded(self._known_user, pad)
        self._free += range(old, new)
        self._blocks = self._table.reshape(len(self._table), -1, BLOCK).min(axis=2)

    def _build(self) -> tuple[Ranked, Floats]:
        """One slot for each different bucket."""
        parts: list[tuple[Ranked, Floats]] = []
        n = 0
        for first, ranked, table in bucket_portions(self._base, self.k, self._kernel):
            keep, inverse = _different(ranked)
            self._slot_of[first : first + len(inverse)] = n + inverse
            parts.append((_chosen(ranked, keep), table[:, keep]))
            n += len(keep)
        if not parts:
            parts = [(rank_buckets(_pack([]), 0, 0, self.k + 1, self._kernel), np.empty((3 * self.k + 1, 0)))]
        rows = zip(*(_rows(ranked) for ranked, _ in parts), strict=True)
        ranked = Ranked(*(np.concatenate(row, axis=-1) for row in rows))
        keep, inverse = _different(ranked)
        self._slot_of = inverse[self._slot_of]
        return _chosen(ranked, keep), np.concatenate([table for _, table in parts], axis=1)[:, keep]


def _rows(ranked: Ranked) -> tuple[NDArray[Any], ...]:
    return ranked.sizes, ranked.sums, ranked.target, ranked.hidden


def _chosen(ranked: Ranked, keep: Ints) -> Ranked:
    return Ranked(*(row[..., keep] for row in _rows(ranked)))


def _padded(row: NDArray[Any], pad: int, value: float = 0) -> NDArray[Any]:
    return np.concatenate([row, np.full((*row.shape[:-1], pad), value, row.dtype)], axis=-1)


def _different(ranked: Ranked) -> tuple[Ints, Ints]:
    """The first of each kind of bucket, and for each bucket the number of its kind."""
    keys = np.stack([ranked.sizes, ranked.target, ranked.hidden.astype(np.int64), *ranked.sums[1:]])
    hashed = np.zeros(keys.shape[1], np.uint64)
    for row in keys.astype(np.uint64):
        hashed = (hashed ^ row) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(29)
    _, keep, inverse = np.unique(hashed, return_index=True, return_inverse=True)
    if (keys[:, keep][:, inverse] != keys).any():  # two kinds with one hash
        _, keep, inverse = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    return keep, inverse.reshape(-1)


def _pack(buckets: Sequence[Counts]) -> ValueCounts:
    """Buckets as sparse counts; only which value is missing matters, not which code another has."""
    codes = [0 if value is None else i + 1 for counts in buckets for i, value in enumerate(counts)]
    start = np.cumsum([0, *(len(counts) for counts in buckets)])
    counts = [n for bucket in buckets for n in bucket.values()]
    values = tuple(map(str, range(max(codes, default=0))))
    return ValueCounts(values, start, np.array(codes, np.int32), np.array(counts, np.int64))
