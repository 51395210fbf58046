"""Ancestors: the larger groups that classes were split from, as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ancestors:
    """A tree over `n` classes: node i < n is class i, the others are larger groups, in which their children lie.

    `parent[i]` is the node that node i was split from, and has a higher number; −1: it was not split from any.
    """

    n: int
    parent: Ints

    def __post_init__(self) -> None:
        number = np.arange(len(self.parent))
        higher = (self.parent > number) & (self.parent < len(number)) & (self.parent >= self.n)
        if len(number) < self.n or not (higher | (self.parent == -1)).all():
            raise ValueError("a group is split from a group with a higher number, or from none")

    def steps_up(self) -> Iterator[Ints]:
        """For each class its parent, then its grandparent and so on; −1 above the last."""
        node = self.parent[: self.n]
        while (node >= 0).any():
            yield node
            node = np.where(node >= 0, self.parent[node], -1)

    def sums(self, amounts: Ints) -> Ints:
        """The sum over the classes inside each node."""
        total = np.zeros(len(self.parent), dtype=np.int64)
        for node in self.steps_up():
            inside = node >= 0
            np.add.at(total, node[inside], amounts[inside])
        return total

    def merged(self, class_of: Ints, n: int) -> Ancestors:
        """The tree of classes that consist of several of these: `class_of[i]` is the new class of class i (−1: none).

        Groups that hold only a part of a new class are no supersets of it, and of nobody in a release that does
        not show which part: they are left out.
        """
        parts = np.bincount(class_of[class_of >= 0], minlength=n)
        whole = np.ones(len(self.parent), dtype=bool)
        inner = np.zeros(len(self.parent), dtype=bool)
        several = (class_of >= 0) & (parts[class_of] > 1)
        for node in self.steps_up():
            inner[node[(node >= 0) & (class_of >= 0)]] = True
        pairs, members = np.unique(
            np.concatenate([np.empty((2, 0), np.int64), *self._pairs(class_of, several)], axis=1),
            axis=1,
            return_counts=True,
        )
        whole[pairs[1, members < parts[pairs[0]]]] = False
        kept = np.flatnonzero(whole & inner)
        number = np.full(len(self.parent) + 1, -1, dtype=np.int64)  # the last entry: above the last node
        number[kept] = n + np.arange(len(kept))
        nearest = self._nearest(number)
        parent = np.full(n + len(kept), -1, dtype=np.int64)
        there = np.flatnonzero(class_of >= 0)
        parent[class_of[there]] = nearest[there]
        parent[n:] = nearest[kept]
        return Ancestors(n, parent)

    def _pairs(self, class_of: Ints, chosen: NDArray[np.bool_]) -> Iterator[Ints]:
        """(new class, ancestor of a part of it), once for each part."""
        for node in self.steps_up():
            inside = chosen & (node >= 0)
            yield np.stack([class_of[inside], node[inside]])

    def _nearest(self, number: Ints) -> Ints:
        """The new number of the nearest ancestor of each node that has one; −1: none has."""
        found = np.full(len(self.parent) + 1, -1, dtype=np.int64)
        node = self.parent
        while (node >= 0).any():
            here = number[node]
            found[:-1] = np.where(found[:-1] < 0, here, found[:-1])
            node = np.where(node >= 0, self.parent[node], -1)
        return found[:-1]


def tree_of(leaves: Ints, parent: Ints) -> Ancestors:
    """From numbers given from the root down: `leaves[i]` is the number of class i, `parent` that of each number."""
    n = len(leaves)
    inner = np.ones(len(parent), dtype=bool)
    inner[leaves] = False
    number = np.empty(len(parent) + 1, dtype=np.int64)
    number[-1] = -1  # what has no parent
    number[leaves] = np.arange(n)
    number[:-1][inner] = n + np.arange(int(inner.sum()))[::-1]  # children first
    result = np.empty(len(parent), dtype=np.int64)
    result[number[:-1]] = number[parent]
    return Ancestors(n, result)
