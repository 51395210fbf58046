"""Methods that partition rows, as on paper [Cormode et al. 2010; LeFevre 2006; Xiao, Tao 2006; Wong et al. 2007].

Rows are numbers; `passes` says of a list of rows whether it may be published as a group. Greedy grouping and Mondrian
are those of the worked examples (`maskwright.worlds.reference_methods`), whose rows are ordered and judged by counts.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from maskwright.worlds.counting.multisets import Test
from maskwright.worlds.reference_methods import ReferenceMondrian, greedy_grouping

Rows = list[int]
Passes = Callable[[Rows], bool]


def lexicographic(columns: Sequence[Sequence[int]], sizes: Sequence[int]) -> Rows:
    """Rows sorted by the attribute with the fewest values, then by the next."""
    by = sorted(range(len(columns)), key=lambda a: (sizes[a], a))
    return sorted(range(len(columns[0])), key=lambda i: [columns[a][i] for a in by])


def _within(order: Rows, passes: Passes) -> Test:
    """A test on the counts of rows, which are numbered by their places in an order."""
    return lambda places: passes([order[i] for i in places])


def greedy(order: Rows, bucket: int, passes: Passes) -> list[Rows]:
    """Buckets are collected until the group passes; what never does is left out, and so is a partial bucket."""
    places = range(len(order))
    found = greedy_grouping([[i] for i in places], places, _within(order, passes), bucket)
    return [[order[i] for i in group] for group in found]


def symmetric(order: Rows, ways: int, least: int, passes: Passes) -> list[Rows]:
    """Parts whose sizes differ by one at most, larger ones first, as long as all of them pass."""
    ends = [-(-j * len(order) // ways) for j in range(ways + 1)]
    parts = [order[a:b] for a, b in pairwise(ends)]
    if min(map(len, parts)) < max(1, least) or not all(map(passes, parts)):
        return [order]
    return [group for part in parts for group in symmetric(part, ways, least, passes)]


def mondrian(
    columns: Sequence[Sequence[int]],
    order: Rows,
    strict: bool,
    fallback: bool,
    side: Literal["lt", "le"],
    least: int,
    passes: Passes,
) -> list[Rows]:
    """Cut at the median of the attribute that is widest relative to the table, while both sides pass; equal values
    stay in their order."""
    method = ReferenceMondrian(strict, "fallback" if fallback else "widest", side, least)
    rows = [[column[i] for column in columns] for i in order]
    found = method.group(rows, range(len(order)), _within(order, passes))
    return [[order[i] for i in group] for group in found]


def crossed(
    columns: Sequence[Sequence[int]], order: Rows, ways: Sequence[int], least: int, passes: Passes
) -> list[Rows]:
    """Cut every cell of a group evenly, along the attribute in which cells are widest on average relative to the table;
    a refused cut leaves its parts as the cells."""

    def width(cells: list[Rows], d: int) -> int:
        spans = [max(columns[d][i] for i in c) - min(columns[d][i] for i in c) for c in cells]
        return math.ceil(Fraction(sum(spans), len(spans)))

    whole = [width([order], d) for d in range(len(columns))]

    def split(cells: list[Rows], left: Sequence[int]) -> list[Rows]:
        rows = [i for cell in cells for i in cell]
        wide = [d for d in range(len(columns)) if width(cells, d)]
        if not left or not wide or len(rows) // left[0] < least:
            return [rows]
        d = min(wide, key=lambda d: (-Fraction(width(cells, d), whole[d]), d))
        parts: list[list[Rows]] = [[] for _ in range(left[0])]
        for cell in cells:
            ranked = sorted(cell, key=lambda i: columns[d][i])  # stable: equal values stay in their order
            size = len(cell) // left[0]
            for j, part in enumerate(parts):
                chosen = set(ranked[j * size : (j + 1) * size])
                part.append([i for i in cell if i in chosen])
        if all(passes([i for cell in part for i in cell]) for part in parts):
            return [group for part in parts for group in split(part, left[1:])]
        return split([cell for part in parts for cell in part], left[1:])

    return split([order], ways)


def anatomy_buckets(counts: Sequence[int], ell: int) -> int | None:
    """How many buckets Anatomy makes of values that occur so often; None: a value occurs too often."""
    if max(counts, default=0) * ell > sum(counts):
        return None
    heap, made = [-c for c in counts if c], 0
    heapq.heapify(heap)
    while len(heap) >= ell:
        taken = [heapq.heappop(heap) for _ in range(ell)]
        made += 1
        for c in taken:
            if c + 1:
                heapq.heappush(heap, c + 1)
    return made


def mask_targets(sizes: Sequence[int], held: Sequence[int], ell: Fraction) -> dict[int, set[int]] | None:
    """For each class that violates, how many sensitive rows it may be left with; None: there is nothing to take."""
    violating = [i for i, (n, h) in enumerate(zip(sizes, held, strict=True)) if h * ell > n]
    wanted = math.ceil((ell - 1) * len(violating))
    shares = {
        i: Fraction(h, n) for i, (n, h) in enumerate(zip(sizes, held, strict=True)) if i not in violating
    }
    # classes with equal shares are alike here: what is taken from them is the share
    models = sorted(shares.values(), reverse=True)[:wanted]
    if violating and not models:
        return None
    return {i: {math.floor(p * sizes[i]) for p in models} for i in violating}


def entropy(column: Sequence[object]) -> float:
    return -sum(c / len(column) * math.log2(c / len(column)) for c in Counter(column).values())


class Associations:
    """Γα and Γβ of plans over sensitive columns [CODIP], in floats."""

    def __init__(self, columns: Sequence[Sequence[str | None]]) -> None:
        self.n = len(columns)
        h = [entropy(c) for c in columns]
        self.information: dict[tuple[int, int], float] = {}
        self.exposure: dict[tuple[int, int], float] = {}
        for i in range(self.n):
            for j in range(i + 1, self.n):
                both = list(zip(columns[i], columns[j], strict=True))
                found = h[i] + h[j] - entropy(both)
                self.information[i, j] = 0.0 if abs(found) < 1e-12 else found
                exposed = sum(
                    (pair[0] is not None) * (h[i] - found) + (pair[1] is not None) * (h[j] - found)
                    for pair in both
                )
                self.exposure[i, j] = exposed / len(both)

    def alpha(self, plan: Sequence[Sequence[int]]) -> float:
        total = sum(self.information.values())
        apart = [x for (i, j), x in self.information.items() if not any(i in s and j in s for s in plan)]
        return sum(apart) / total if total else 0.0

    def beta(self, plan: Sequence[Sequence[int]]) -> float:
        total = sum(self.exposure.values())
        if not total:
            return 0.0
        return sum(
            sum(x for (i, j), x in self.exposure.items() if i in s and j in s) / total * len(s) / self.n
            for s in plan
        )


def plans(n: int) -> list[list[list[int]]]:
    """All partitions of 0 … n−1."""
    if n == 0:
        return [[]]
    found = []
    for plan in plans(n - 1):
        found.append([*plan, [n - 1]])
        found += [[[*s, n - 1] if i == k else s for i, s in enumerate(plan)] for k in range(len(plan))]
    return found
