"""Nearest and farthest rows among those that remain.

The nearest are found by boxes: one that cannot hold any of them is not looked into. The farthest is found by one
product of all rows with the place, which is rounded; those within its error are then compared exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

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
