"""Microaggregation: groups of at least k similar rows, published as their means [Domingo-Ferrer, Mateo-Sanz 2002].

MDAV makes the groups of several columns: while at least 3k rows remain, the row farthest from the mean of those that
remain and the k − 1 nearest to it are a group, then the row farthest from that one and the k − 1 nearest to it. Of one
column the groups of least loss are found [Hansen, Mukherjee 2003]: runs of k to 2k − 1 rows in the order of the values.

The nearest rows among those that remain are found by boxes: one that cannot hold any of them is not looked into. The
farthest is found by one product of all rows with the place, which is rounded; those within its error are then compared
exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAF = 48  # rows of a box
FEW = 4  # boxes that are looked into first
SURE = 1e-9  # distances of boxes are rounded; what is nearer to the answer than that share is looked into


class Remaining:
    """Rows that are taken away bit by bit; boxes are made anew when half of their rows are gone."""

    def __init__(self, points: Floats) -> None:
        self.points = points
        self.alive = np.ones(len(points), dtype=bool)
        self.total = points.sum(axis=0)
        self.n = len(points)
        self._build()

    def rows(self) -> Ints:
        """The rows that remain, ascending."""
        return np.flatnonzero(self.alive)

    def mean(self) -> Floats:
        """The mean of the rows that remain."""
        return np.asarray(self.total / self.n, dtype=np.float64)

    def remove(self, rows: Ints) -> None:
        """Take rows away."""
        self.alive[rows] = False
        self.total = self.total - self.points[rows].sum(axis=0)
        self.n -= len(rows)
        if self.n and 2 * self.n < self.built:
            self._build()
            return
        self.squares[np.searchsorted(self.listed, rows)] = -np.inf
        np.subtract.at(self.held, self.box[rows], 1)
        self.empty = self.held == 0

    def farthest(self, place: Floats) -> int:
        """The row that is farthest from a place; of several the first one."""
        scores = self.squares - 2 * np.einsum(
            "ij,j->i", self.kept, place
        )  # the squared distance less a constant
        slack = SURE * (self.scale + float(place @ place))
        rows = self.listed[scores >= scores.max() - slack]
        distances = self._distances(rows, place)
        return int(rows[distances == distances.max()].min())

    def nearest(self, row: int, k: int) -> Ints:
        """A row and the k − 1 nearest to it; of equal distances the first ones."""
        place = self.points[row]
        away = place[:, None]
        gap = np.maximum(np.maximum(self.low - away, away - self.high), 0)
        bounds = np.einsum("ij,ij->j", gap, gap) * (1 - SURE)
        bounds[self.empty] = np.inf
        few, limit = FEW, np.inf
        while np.isinf(limit) and few < len(bounds):  # enough boxes for k rows
            chosen = np.argpartition(bounds, few)[:few]
            distances = self._distances(self._inside(chosen), place)
            limit = np.partition(distances, k - 1)[k - 1] if len(distances) >= k else np.inf
            few *= 2
        rows = self._inside(np.flatnonzero(bounds <= limit))
        distances = self._distances(rows, place)
        distances[rows == row] = -1.0  # the row itself, before any that is equal to it
        if len(rows) > k:
            near = np.flatnonzero(distances <= np.partition(distances, k - 1)[k - 1])
            rows, distances = rows[near], distances[near]
        return np.asarray(rows[np.lexsort((rows, distances))[:k]], dtype=np.int64)

    def _distances(self, rows: Ints, place: Floats) -> Floats:
        away = self.points[rows] - place
        return np.asarray((away * away).sum(axis=1), dtype=np.float64)

    def _inside(self, boxes: Ints) -> Ints:
        rows = self.members[boxes].reshape(-1)
        return np.asarray(rows[(rows >= 0) & self.alive[rows]], dtype=np.int64)

    def _build(self) -> None:
        """Boxes of few rows: halves of halves, each cut where it is widest."""
        self.built, self.listed = self.n, self.rows()
        self.kept = self.points[self.listed]
        self.squares = (self.kept * self.kept).sum(axis=1)
        self.scale = float(self.squares.max())
        waiting, leaves = [self.listed], list[Ints]()
        while waiting:
            rows = waiting.pop()
            if len(rows) <= LEAF:
                leaves.append(rows)
                continue
            inside = self.points[rows]
            column = inside[:, int(np.ptp(inside, axis=0).argmax())]
            half = len(rows) // 2
            order = np.argpartition(column, half)
            waiting += [rows[order[:half]], rows[order[half:]]]
        self.members = np.full((len(leaves), LEAF), -1, dtype=np.int64)
        for i, rows in enumerate(leaves):
            self.members[i, : len(rows)] = rows
        self.box = np.empty(len(self.points), dtype=np.int64)
        self.box[np.concatenate(leaves)] = np.repeat(np.arange(len(leaves)), [len(rows) for rows in leaves])
        self.held = np.array([len(rows) for rows in leaves])
        self.empty = self.held == 0
        self.low = np.array([self.points[rows].min(axis=0) for rows in leaves]).T.copy()
        self.high = np.array([self.points[rows].max(axis=0) for rows in leaves]).T.copy()


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def standardised_columns(values: NDArray[Any]) -> Floats:
    """Columns with mean 0 and variance 1; a column that does not vary is 0."""
    table = np.asarray(values, dtype=np.float64)
    spread = table.std(axis=0)
    return np.asarray((table - table.mean(axis=0)) / np.where(spread > 0, spread, 1), dtype=np.float64)


def mdav_groups(points: NDArray[Any], k: int) -> Ints:
    """The MDAV group of each row, from 0 on; every group has k to 2k − 1 rows. Of equal distances the first row counts.

    Args:
        points: one row per person, columns on one scale (`standardised_columns`).
        k: the least size of a group.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    if not 1 <= k <= len(points):
        raise ValueError(f"k: {k} is not allowed; groups of 1 to {len(points)} rows can be made")
    left, groups, made = Remaining(points), np.full(len(points), -1, dtype=np.int64), 0

    def _close_group(first: int) -> None:
        nonlocal made
        members = left.nearest(first, k)
        groups[members] = made
        left.remove(members)
        made += 1

    while left.n >= 3 * k:
        one = left.farthest(left.mean())
        _close_group(one)
        _close_group(left.farthest(points[one]))
    if left.n >= 2 * k:
        _close_group(left.farthest(left.mean()))
    groups[left.rows()] = made
    return groups


def optimal_groups(values: NDArray[Any], k: int) -> Ints:
    """The groups of at least k rows of one column whose squared distances from their means add up to least.

    The shortest path through the sorted values: an edge from i to j is a group of the rows i + 1 to j.
    """
    values = np.asarray(values, dtype=np.float64)
    n = len(values)
    if not 1 <= k <= n:
        raise ValueError(f"k: {k} is not allowed; groups of 1 to {n} rows can be made")
    order = np.argsort(values, kind="stable")
    ordered = values[order] - values.mean()  # less is lost when squares are subtracted
    sums, squares = (np.append(0.0, np.cumsum(x)) for x in (ordered, ordered**2))
    cost, before = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.int64)
    cost[0] = 0.0
    for j in range(k, n + 1):
        start = np.arange(max(0, j - 2 * k + 1), j - k + 1)
        part = sums[j] - sums[start]
        found = cost[start] + squares[j] - squares[start] - part * part / (j - start)
        best = int(found.argmin())
        cost[j], before[j] = found[best], start[best]
    ends = [n]
    while ends[-1]:
        ends.append(int(before[ends[-1]]))
    groups = np.empty(n, dtype=np.int64)
    groups[order] = np.repeat(np.arange(len(ends) - 1), -np.diff(ends)[::-1])
    return groups


def group_means(values: NDArray[Any], groups: Ints) -> Floats:
    """The published values: each row has the mean of its group, column by column."""
    table = np.asarray(values, dtype=np.float64)
    columns = table.reshape(len(table), -1)
    sizes = np.bincount(groups)
    means = np.stack([np.bincount(groups, weights=column) / sizes for column in columns.T], axis=1)
    return np.asarray(means[groups].reshape(table.shape), dtype=np.float64)


def information_loss(values: NDArray[Any], published: NDArray[Any]) -> float:
    """100·SSE/SST on standardised columns: 0 where nothing changed, 100 where all rows have the mean."""
    table = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    spread = np.where((deviation := table.std(axis=0)) > 0, deviation, 1)
    within = ((table - np.asarray(published).reshape(table.shape)) / spread) ** 2
    total = (standardised_columns(table) ** 2).sum()
    return float(100 * within.sum() / total) if total else 0.0
