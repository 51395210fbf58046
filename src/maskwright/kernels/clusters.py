"""Clusters of quasi-identifier tuples under one label per attribute: the compiled kernel, and what it is given.

What a set of values agrees on is a *state*: the set of levels at which all of them lie in one block. The state of
two sets together is the *meet* of their states and of what one value of each agrees on, whatever the values, and
the price of a state is that of its cheapest level. For a chain a state is simply the first level that agrees.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints

Codes = NDArray[np.int32]
States = NDArray[np.uint8]
NEVER = 1 << 30  # the price where no label covers all values
STATES = 256
TABLE = 2048  # chains with more values compare blocks instead of looking up a table of all pairs
DAG_TABLE = 8192  # partial orders always need the table

compiled: ModuleType | None
try:
    from maskwright.kernels import _local as compiled
except ImportError:  # no compiler at installation: the numpy twin serves
    compiled = None
if os.environ.get("MASKWRIGHT_PURE"):
    compiled = None


@dataclass(frozen=True, eq=False)
class TrieColumn:
    """One quasi-identifier with the values that occur, renumbered.

    Attributes:
        codes: of each tuple.
        blocks: by level and code.
        meet: of two states; state 0 (all levels agree) changes nothing.
        price: by code and state, `NEVER` where no level agrees.
        table: the state of two codes, or None: the first level at which their blocks are equal.
    """

    codes: Codes
    blocks: Codes
    meet: States
    price: Codes
    table: States | None

    def agree(self, a: Any, b: Any) -> NDArray[Any]:
        """The state of codes a with codes b."""
        if self.table is not None:
            return np.asarray(self.table[a, b])
        level = np.full(np.broadcast_shapes(np.shape(a), np.shape(b)), len(self.blocks), dtype=np.int64)
        for p in range(len(self.blocks) - 1, -1, -1):
            level[self.blocks[p][a] == self.blocks[p][b]] = p
        return level


def chain_column(codes: Codes, blocks: Codes, costs: Codes) -> TrieColumn:
    """A column whose levels refine each other in turn; `blocks` and `costs` by level and code."""
    levels, values = blocks.shape
    numbers = np.arange(levels + 1, dtype=np.uint8)
    price = np.concatenate([costs, np.full((1, values), NEVER, dtype=np.int32)]).T
    table = None
    if values <= TABLE:
        table = np.full((values, values), levels, dtype=np.uint8)
        for p in range(levels - 1, -1, -1):
            table[blocks[p][:, None] == blocks[p][None, :]] = p
    meet = np.maximum.outer(numbers, numbers)
    return TrieColumn(codes, blocks, meet, np.ascontiguousarray(price), table)


def dag_column(codes: Codes, blocks: Codes, costs: Codes) -> TrieColumn | None:
    """A column whose levels are ordered in any way; None where it has too many values or states."""
    levels, values = blocks.shape
    if values > DAG_TABLE or levels > 62:
        return None
    masks = np.zeros((values, values), dtype=np.int64)
    for p in range(levels):
        masks |= (blocks[p][:, None] == blocks[p][None, :]).astype(np.int64) << p
    every = (1 << levels) - 1
    unique, pair = np.unique(masks, return_inverse=True)
    states = _closed([every, *(int(m) for m in unique if m != every)])
    if states is None:
        return None
    number = {mask: s for s, mask in enumerate(states)}
    meet = np.array([[number[a & b] for b in states] for a in states], dtype=np.uint8)
    price = np.full((values, len(states)), NEVER, dtype=np.int32)
    for s, mask in enumerate(states):
        for p in range(levels):
            if mask >> p & 1:
                price[:, s] = np.minimum(price[:, s], costs[p])
    to_state = np.array([number[int(m)] for m in unique], dtype=np.uint8)
    return TrieColumn(codes, blocks, meet, price, to_state[pair.reshape(masks.shape)])


def _closed(masks: list[int]) -> list[int] | None:
    """The masks and all their intersections, the first staying first; None where there are too many."""
    found = dict.fromkeys(masks)
    waiting = list(found)
    while waiting:
        mask = waiting.pop()
        for other in list(found):
            if mask & other not in found:
                found[mask & other] = None
                waiting.append(mask & other)
        if len(found) > STATES:
            return None
    return list(found)


@dataclass(frozen=True, eq=False)
class ClusterProblem:
    """What is to be clustered. Tuples are distinct and in lexicographic order of their codes.

    Attributes:
        rows: of each tuple, the weight of its loss.
        sizes: people of each tuple; they add up to at most the people of a group.
        k: the least size of a group.
        neighbours: how many of the nearest tuples are looked at for each.
        limit: rows that may be suppressed.
        full: the price of a suppressed row.
    """

    columns: tuple[TrieColumn, ...]
    rows: Ints
    sizes: Ints
    k: int
    neighbours: int
    limit: int
    full: int

    @property
    def n(self) -> int:
        """The number of tuples."""
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Trie:
    """The tuples as a tree, one depth per column. Node i of a depth holds the tuples from `first[i]` on.

    Its children are the nodes `start[i]` to `start[i + 1]` of the next depth; those of the last depth are tuples.
    """

    first: Codes
    start: Codes


def column_tries(columns: Sequence[TrieColumn]) -> list[Trie]:
    """One trie level per column."""
    n = len(columns[0].codes)
    new = np.zeros(n, dtype=bool)
    new[0] = True
    firsts = []
    for column in columns:
        new[1:] |= column.codes[1:] != column.codes[:-1]
        firsts.append(np.flatnonzero(new))
    if len(firsts[-1]) != n:
        raise ValueError("tuples must be distinct")
    firsts.append(np.arange(n))
    result = []
    for first, below in pairwise(firsts):
        start = np.append(np.searchsorted(below, first), len(below))
        result.append(Trie(first.astype(np.int32), start.astype(np.int32)))
    return result


class Clusters(Protocol):
    """The steps of clustering. Each takes a range or a number, so that the caller can report in between."""

    def neighbours(self, lo: int, hi: int) -> None:
        """Find the nearest tuples of tuples lo … hi − 1."""

    def agglomerate(self, most: int) -> bool:
        """Carry out up to `most` merges, the cheapest first. Is there more to do?"""

    def move(self, lo: int, hi: int) -> int:
        """Move tuples lo … hi − 1 to better groups where theirs can spare them. How many moved?"""

    def result(self) -> tuple[Codes, Codes]:
        """The group of each tuple (-1: suppressed; numbers have gaps), and the nearest tuples (-1: none)."""


class Compiled:
    """The compiled kernel."""

    def __init__(self, problem: ClusterProblem, kernel: ModuleType) -> None:
        self.problem, self.kernel = problem, kernel
        columns = tuple(
            (
                len(c.price), len(c.meet), len(c.blocks), len(trie.first), c.table, c.blocks, c.meet, c.price,
                c.codes, c.codes[trie.first], trie.first, trie.start,
            )
            for c, trie in zip(problem.columns, column_tries(problem.columns), strict=True)
        )  # fmt: skip
        self.handle = kernel.open(
            problem.n,
            columns,
            problem.rows,
            problem.sizes,
            problem.k,
            problem.neighbours,
            problem.limit,
            problem.full,
        )

    def neighbours(self, lo: int, hi: int) -> None:
        """Find the nearest tuples of a range of tuples."""
        self.kernel.neighbours(self.handle, lo, hi)

    def agglomerate(self, most: int) -> bool:
        """Merge groups, the cheapest merge first."""
        return bool(self.kernel.agglomerate(self.handle, most))

    def move(self, lo: int, hi: int) -> int:
        """Move tuples to better groups."""
        return int(self.kernel.move(self.handle, lo, hi))

    def result(self) -> tuple[Codes, Codes]:
        """The group and the nearest tuples of each tuple."""
        of = np.empty(self.problem.n, dtype=np.int32)
        lists = np.empty((self.problem.n, self.problem.neighbours), dtype=np.int32)
        self.kernel.result(self.handle, of, lists)
        return of, lists


def cluster_kernel(problem: ClusterProblem, kernel: ModuleType | None = compiled) -> Clusters:
    """The compiled kernel where it is installed, else its numpy twin."""
    from maskwright.kernels.clusters_twin import Twin

    return Twin(problem) if kernel is None else Compiled(problem, kernel)
