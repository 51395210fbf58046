"""The values of one set in different tables: who knows how many values a set holds can put the tables together.

Beliefs about attributes of different tables are independent, but the bits of a multi-valued column are not when it is
known that nobody's set is empty, or that none holds more than so many values (docs/attacks/intersection.md, D-2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from maskwright.attacks._joins.people import JoinedPeople
from maskwright.domain.adversary import Target
from maskwright.domain.value_sets import BIT_VALUES, PRESENT, SetColumn
from maskwright.worlds.counting.counting_limits import TooManyWorlds


@dataclass(frozen=True)
class SetBelief:
    """The largest belief that somebody's set holds a value, and for whom."""

    share: Fraction
    alone: Fraction  # what the one table that has the value shows by itself
    bit: str
    classes: tuple[int, ...]
    exact: bool  # otherwise nobody's classes are certain, and it is an upper bound


def worst_of_sets(
    targets: Sequence[Target], crowd: JoinedPeople, column: SetColumn, least: int, most: int
) -> SetBelief | None:
    """The worst belief about a value of a column whose bits are in several of the tables.

    Beliefs are about a person whose set is known to hold at least `least` and at most `most` values; what is known of
    the sets of others is not used. None: too many kinds of people, or nothing to gain.
    """
    tables = [i for i, t in enumerate(targets) if any(b in t.grouping.summary.sensitive for b in column.bits)]
    if len(tables) < 2:
        return None
    try:
        cells = crowd.cells(tables)
    except TooManyWorlds:
        return None
    counted = [_sizes_by_class(targets[t], column) for t in tables]
    best: SetBelief | None = None
    for c in range(len(cells.sizes)):
        classes = tuple(cells.classes[:, c].tolist())
        if -1 in classes:
            continue
        parts = [counts[g] for counts, g in zip(counted, classes, strict=True)]
        for bit, share, alone in _beliefs(parts, least, most):
            if best is None or share > best.share:
                best = SetBelief(share, alone, bit, classes, cells.whole)
    return best


def _sizes_by_class(target: Target, column: SetColumn) -> list[dict[str | None, Counter[int]]]:
    """Per class: how many rows hold how many values of the column (None), and of those with a certain value."""
    grouping = target.grouping
    names = list(grouping.summary.sensitive)
    bits = [b for b in column.bits if b in names]
    cells, groups, rows = grouping.cells
    joint = grouping.summary.joint
    assert joint is not None  # noqa: S101 - there are cells
    present = BIT_VALUES.index(PRESENT) + 1
    held = np.array([joint.values[names.index(b)][cells] == present for b in bits])
    sizes = held.sum(axis=0)
    width, n = len(bits) + 1, grouping.classes.n
    key = groups * width + sizes
    found: list[dict[str | None, Counter[int]]] = [{} for _ in range(n)]
    for name, inside in ((None, np.ones(len(key), dtype=bool)), *zip(bits, held, strict=True)):
        counts = np.bincount(key[inside], weights=rows[inside], minlength=n * width).astype(np.int64)
        for g, line in enumerate(counts.reshape(n, width).tolist()):
            found[g][name] = Counter({size: count for size, count in enumerate(line) if count})
    return found


def _beliefs(
    parts: Sequence[dict[str | None, Counter[int]]], least: int, most: int
) -> list[tuple[str, Fraction, Fraction]]:
    """For each value: the belief given the size of the whole set, and what its table shows alone."""
    result = []
    everything = _ways([p[None] for p in parts], least, most)
    for i, part in enumerate(parts):
        for bit, counts in part.items():
            if bit is None or not counts:
                continue
            with_it = _ways([counts if j == i else p[None] for j, p in enumerate(parts)], least, most)
            alone = Fraction(counts.total(), part[None].total())
            result.append((bit, Fraction(with_it, everything) if everything else alone, alone))
    return result


def _ways(parts: Sequence[Counter[int]], least: int, most: int) -> int:
    """In how many ways one row of each table can be chosen so that the sizes add up to something allowed."""
    total: Counter[int] = Counter({0: 1})
    for part in parts:
        total = Counter({s: n for s, n in _added(total, part).items() if s <= most})
    return sum(n for s, n in total.items() if s >= least)


def _added(left: Counter[int], right: Counter[int]) -> Counter[int]:
    result: Counter[int] = Counter()
    for a, n in left.items():
        for b, m in right.items():
            result[a + b] += n * m
    return result
