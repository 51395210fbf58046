"""Clusters of quasi-identifier tuples under one label per attribute: the compiled kernel, and its numpy twin.

What a set of values agrees on is a *state*: the set of levels at which all of them lie in one block. The state of
two sets together is the *meet* of their states and of what one value of each agrees on, whatever the values, and
the price of a state is that of its cheapest level. For a chain a state is simply the first level that agrees.

Both take these steps, with the same results (`_local.c`, `Twin`):

1. *Neighbours*: for each tuple, the tuples that would share a label with it at the least price (all of them are
   considered; ties go to the first).
2. *Agglomeration*: every tuple is a group. A group that is too small merges with the best group among those of its
   neighbours; the merge that adds least to the loss per row helped is carried out first.
3. *Moves*: a tuple that its group can spare goes to the group, of those of its neighbours, where it adds least.
"""

from __future__ import annotations

import heapq
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
    from maskwright.kernels.clusters import Twin

    return Twin(problem) if kernel is None else Compiled(problem, kernel)


FALLBACK = 8  # tuples looked at where no neighbour will do
CHUNK = 32  # tuples whose neighbours are searched side by side
Offer = tuple[float, int, int, int, int]


class Twin:
    """See `Clusters`. Groups have the number of one of their first tuples."""

    def __init__(self, problem: ClusterProblem) -> None:
        self.p = problem
        n = problem.n
        self.trie = column_tries(problem.columns)
        self.codes = np.stack([c.codes for c in problem.columns])
        self.lists = np.full((n, problem.neighbours), -1, dtype=np.int32)
        self.of = np.arange(n, dtype=np.int64)
        self.members: list[list[int]] = [[t] for t in range(n)]
        self.rows, self.sizes = problem.rows.copy(), problem.sizes.copy()
        self.states = np.zeros((len(problem.columns), n), dtype=np.int64)
        self.head = np.arange(n, dtype=np.int64)
        self.cost: Ints = (
            np.stack([c.price[c.codes, 0] for c in problem.columns]).astype(np.int64).sum(axis=0)
        )
        self.version = [0] * n
        self.heap: list[Offer] | None = None
        self.suppressed = 0

    # -- prices -------------------------------------------------------------------------------------------

    def _join(self, tuple_: int, states: Ints, others: Ints) -> Ints:
        """The price of one label for a tuple and what has these states, together with each of the groups."""
        total = np.zeros(len(others), dtype=np.int64)
        for a, column in enumerate(self.p.columns):
            own = column.codes[tuple_]
            shared = column.meet[states[a], column.agree(own, column.codes[self.head[others]])]
            total += column.price[own, column.meet[shared, self.states[a, others]]]
        return total

    def _label(self, group: int) -> None:
        """States and price of a group from its members."""
        members = self.members[group]
        self.head[group] = members[0]
        self.cost[group] = 0
        for a, column in enumerate(self.p.columns):
            codes = column.codes[members]
            state = 0
            for other in column.agree(codes[0], codes).tolist():
                state = int(column.meet[state, other])
            self.states[a, group] = state
            self.cost[group] += int(column.price[codes[0], state])

    # -- neighbours ---------------------------------------------------------------------------------------

    def neighbours(self, lo: int, hi: int) -> None:
        """Find the nearest tuples of a range of tuples, a chunk at a time."""
        last = min(hi, self.p.n)
        for begin in range(lo, last, CHUNK):
            self._neighbours(np.arange(begin, min(begin + CHUNK, last)))

    def _neighbours(self, tuples: Ints) -> None:
        """All tuples within a bound on the distance of the last neighbour, depth by depth through the trie."""
        bound = self._bound(tuples)
        query, node = (x.reshape(-1) for x in np.indices((len(tuples), len(self.trie[0].first))))
        cost = np.zeros(len(query), dtype=np.int64)
        for depth, (column, trie) in enumerate(zip(self.p.columns, self.trie, strict=True)):
            own = column.codes[tuples[query]]
            cost = cost + column.price[own, column.agree(own, column.codes[trie.first[node]])]
            keep = cost <= bound[query]
            query, node, cost = query[keep], node[keep], cost[keep]
            if depth + 1 < len(self.trie):
                count = trie.start[node + 1] - trie.start[node]
                offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
                node = np.repeat(trie.start[node], count) + offset
                query, cost = np.repeat(query, count), np.repeat(cost, count)
        keep = node != tuples[query]
        query, node, cost = query[keep], node[keep], cost[keep]
        order = np.lexsort((node, cost, query))
        query, node = query[order], node[order]
        rank = np.arange(len(query)) - np.searchsorted(query, query)
        keep = rank < self.p.neighbours
        self.lists[tuples[query[keep]], rank[keep]] = node[keep]

    def _bound(self, tuples: Ints) -> Ints:
        """No more than `neighbours` tuples are needed within this price: as many lie nearby in the order."""
        width = min(2 * self.p.neighbours + 1, self.p.n)
        first = np.clip(tuples - width // 2, 0, self.p.n - width)
        window = first[:, None] + np.arange(width)
        cost = np.zeros(window.shape, dtype=np.int64)
        for column in self.p.columns:
            own = column.codes[tuples][:, None]
            cost += column.price[own, column.agree(own, column.codes[window])]
        if width <= self.p.neighbours:
            return np.full(len(tuples), NEVER - 1)
        # one more than asked for, because the tuple itself is among them
        return np.minimum(np.sort(cost, axis=1)[:, self.p.neighbours], NEVER - 1)

    def _nearest(self, group: int) -> Ints:
        """The tuples outside a group whose values would fit best under one label with it."""
        total = np.zeros(self.p.n, dtype=np.int64)
        for a, column in enumerate(self.p.columns):
            own = column.codes[self.head[group]]
            total += column.price[own, column.meet[self.states[a, group], column.agree(own, column.codes)]]
        total[self.of == group] = NEVER
        order = np.argsort(total, kind="stable")[:FALLBACK]
        return order[total[order] < NEVER]

    # -- agglomeration ------------------------------------------------------------------------------------

    def agglomerate(self, most: int) -> bool:
        """Merge groups, the cheapest merge first."""
        if self.heap is None:
            self.heap = []
            for group in np.flatnonzero(self.sizes < self.p.k).tolist():
                self._offer(group)
        while most > 0 and self.heap:
            most -= 1
            _, x, y, vx, vy = heapq.heappop(self.heap)
            if not self.members[x] or self.version[x] != vx or self.sizes[x] >= self.p.k:
                continue
            if self.members[y] and self.version[y] == vy:
                self._merge(x, y)
            if self.sizes[x] < self.p.k:
                self._offer(x)
        return bool(self.heap)

    def _offer(self, x: int) -> None:
        """Offer the best merge of a group that is too small, if there is any."""
        near = self.lists[self.members[x]].reshape(-1)
        groups = self.of[near[near >= 0]]
        found = self._best(x, groups[groups != x])
        if found is None:
            found = self._best(x, self.of[self._nearest(x)])
        if found is not None and self.heap is not None:
            key, y = found
            heapq.heappush(self.heap, (key, x, y, self.version[x], self.version[y]))

    def _best(self, x: int, groups: Ints) -> tuple[float, int] | None:
        cost = self._join(int(self.head[x]), self.states[:, x], groups)
        groups, cost = groups[cost < NEVER], cost[cost < NEVER]
        if len(groups) == 0:
            return None
        keys = self._keys(x, groups, cost)
        best = int(keys.argmin())
        return float(keys[best]), int(groups[best])

    def _keys(self, x: int, groups: Ints, cost: Ints) -> NDArray[np.float64]:
        """What a merge adds to the loss, per row that leaves a group that is too small; dearer the larger it gets."""
        rows, k = self.rows, self.p.k
        added = (rows[x] + rows[groups]) * cost - rows[x] * self.cost[x] - rows[groups] * self.cost[groups]
        helped = rows[x] + np.where(self.sizes[groups] < k, rows[groups], 0)
        size = np.maximum(self.sizes[x] + self.sizes[groups], k)
        return np.asarray(added.astype(np.float64) * size.astype(np.float64) / helped.astype(np.float64))

    def _merge(self, x: int, y: int) -> None:
        for t in self.members[y]:
            self.of[t] = x
        self.members[x] = self.members[y] + self.members[x]
        self.members[y] = []
        self.rows[x] += self.rows[y]
        self.sizes[x] += self.sizes[y]
        self._label(x)
        self.version[x] += 1
        self.version[y] += 1

    # -- moves --------------------------------------------------------------------------------------------

    def move(self, lo: int, hi: int) -> int:
        """Move tuples to better groups."""
        return sum(self._move(t) for t in range(lo, min(hi, self.p.n)))

    def _move(self, t: int) -> bool:
        source, rows, size = int(self.of[t]), int(self.p.rows[t]), int(self.p.sizes[t])
        if source < 0 or len(self.members[source]) < 2 or self.sizes[source] - size < self.p.k:
            return False
        before = int(self.rows[source] * self.cost[source])
        self.members[source].remove(t)
        self.rows[source] -= rows
        self.sizes[source] -= size
        self._label(source)
        least, target = before - int(self.rows[source] * self.cost[source]), source
        near = self.lists[t]
        groups = self.of[near[near >= 0]]
        groups = groups[(groups >= 0) & (groups != source)]
        cost = self._join(t, np.zeros(len(self.p.columns), dtype=np.int64), groups)
        added = (self.rows[groups] + rows) * cost - self.rows[groups] * self.cost[groups]
        added[cost >= NEVER] = np.iinfo(np.int64).max
        if len(groups) and added.min() < least:
            least, target = int(added.min()), int(groups[added.argmin()])
        if rows * self.p.full < least and self.suppressed + rows <= self.p.limit:
            self.suppressed += rows
            self.of[t] = -1
            return True
        self.members[target].insert(0, t)
        self.rows[target] += rows
        self.sizes[target] += size
        self.of[t] = target
        self._label(target)
        return target != source

    def result(self) -> tuple[Codes, Codes]:
        """The group and the nearest tuples of each tuple."""
        return self.of.astype(np.int32), self.lists
