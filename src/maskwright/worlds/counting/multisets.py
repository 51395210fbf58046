"""Multisets of sensitive values: their assignments to rows, their parts, and tests that are asked only once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

Value = Hashable
Counts = Mapping[Any, int]
Test = Callable[[Counts], bool]  # does a class with these counts of each value satisfy the requirement?


def memoised_test(passes: Test) -> Test:
    """A test that is asked once per multiset; an empty class satisfies everything."""
    known: dict[frozenset[tuple[Any, int]], bool] = {}

    def _test(counts: Counts) -> bool:
        key = frozenset((v, c) for v, c in counts.items() if c)
        if key not in known:
            known[key] = not key or passes(dict(key))
        return known[key]

    return _test


def count_orders(counts: Sequence[int]) -> int:
    """The number of different orders of a multiset with these multiplicities."""
    result, total = 1, 0
    for c in counts:
        total += c
        result *= math.comb(total, c)
    return result


def distinct_orders(values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Every different order of the values."""
    left = Counter(values)

    def _extend(prefix: tuple[Any, ...], missing: int) -> Iterator[tuple[Any, ...]]:
        if not missing:
            yield prefix
            return
        for value in list(left):
            if left[value]:
                left[value] -= 1
                yield from _extend((*prefix, value), missing - 1)
                left[value] += 1

    yield from _extend((), len(values))


def sub_multisets(counts: Sequence[int], size: int | None = None) -> Iterator[tuple[int, ...]]:
    """Every part of a multiset, as counts of the same values; only those of this size when one is given."""
    room = [0] * (len(counts) + 1)
    for v in reversed(range(len(counts))):
        room[v] = room[v + 1] + counts[v]

    def _extend(prefix: tuple[int, ...], left: int | None) -> Iterator[tuple[int, ...]]:
        v = len(prefix)
        if v == len(counts):
            yield prefix
            return
        low = 0 if left is None else max(0, left - room[v + 1])
        high = counts[v] if left is None else min(counts[v], left)
        for x in range(low, high + 1):
            yield from _extend((*prefix, x), None if left is None else left - x)

    yield from _extend((), size)


def add_counts(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The sum of two vectors of counts."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def subtract_counts(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The difference of two vectors of counts."""
    return tuple(x - y for x, y in zip(a, b, strict=True))


def count_tables(items: tuple[int, ...], sizes: Sequence[int], limit: int) -> int:
    """How many tables of counts have these sums of rows (`sizes`) and columns (`items`); at most one beyond a limit."""
    if sum(items) < sum(sizes):
        return 0
    ways = Counter({items: 1})
    for size in sizes:
        after: Counter[tuple[int, ...]] = Counter()
        begun = 0
        for left, n in ways.items():
            for taken in sub_multisets(left, size):
                # the order of the columns does not matter to the number of tables
                after[tuple(sorted(subtract_counts(left, taken)))] += n
                begun += n
                if begun > limit:  # every table that is begun can be completed
                    return limit + 1
        ways = after
    return sum(ways.values())
