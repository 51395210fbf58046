"""Possible worlds of a release made by a method that can be run: enumerated, and as arrays.

Worlds are all different ways of assigning each published group's multiset of values to its rows. A world counts by
the probability with which the method, run on it, publishes exactly the groups that were published
[Cormode et al. 2010]. Rows in no group keep their value and get no belief: their absence is another question.
`posterior_beliefs` enumerates them.

As arrays (`WorldSpace`), places stand in the order of their groups. Groups form *blocks*: whether a method publishes
the same groups again may be a question for all of them together (one block: a lattice search), or for each by itself
(a block each: methods that cut a group in two until a cut is refused).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import WORLDS, refuse_beyond
from maskwright.worlds.counting.multisets import count_orders, count_tables, distinct_orders, sub_multisets

Groups = Iterable[Iterable[int]]
Publication = frozenset[frozenset[int]]
Likelihood = Callable[[Sequence[Any], Publication], Fraction | int]  # values of the rows, what was published
Ints = NDArray[np.int64]


def as_publication(groups: Groups) -> Publication:
    """The publication that these groups of rows are, without order."""
    return frozenset(frozenset(group) for group in groups)


def deterministic_likelihood(method: Callable[[Sequence[Any]], Groups]) -> Likelihood:
    """The likelihood of a method that always makes the same groups of the same values."""
    return lambda values, published: int(as_publication(method(values)) == published)


def randomised_likelihood(method: Callable[[Sequence[Any]], Mapping[Publication, Fraction]]) -> Likelihood:
    """The likelihood of a method given as the probability of each publication."""
    return lambda values, published: method(values).get(published, 0)


@dataclass(frozen=True)
class Posterior:
    """What remains believable.

    Attributes:
        worlds: all worlds, and
        consistent: those in which the method may have published this.
        beliefs: per row value → probability, zeros left out, nothing for rows that were not published; None when
            no world is consistent.
    """

    worlds: int
    consistent: int
    beliefs: list[dict[Any, Fraction]] | None


def posterior_beliefs(
    values: Sequence[Any], published: Groups, likelihood: Likelihood, limit: int = WORLDS
) -> Posterior:
    """Beliefs about every published row, by enumeration.

    Args:
        values: the true values of the rows.
        published: the groups of row numbers that were published.
        likelihood: the method; see `deterministic_likelihood` and `randomised_likelihood`.
        limit: refuse (`TooManyWorlds`) beyond this many worlds.
    """
    groups = [sorted(group) for group in published]
    target = as_publication(groups)
    check_groups(len(values), groups)
    worlds = math.prod(count_orders(list(Counter(values[i] for i in g).values())) for g in groups)
    refuse_beyond(worlds, limit)
    consistent, total = 0, Fraction(0)
    held: list[dict[Any, Fraction]] = [{} for _ in values]
    world = list(values)
    for dealt in itertools.product(*(list(distinct_orders([values[i] for i in group])) for group in groups)):
        for group, mine in zip(groups, dealt, strict=True):
            for i, value in zip(group, mine, strict=True):
                world[i] = value
        weight = likelihood(world, target)
        if not weight:
            continue
        consistent += 1
        total += weight
        for group in groups:
            for i in group:
                held[i][world[i]] = held[i].get(world[i], Fraction(0)) + weight
    if not total:
        return Posterior(worlds, 0, None)
    beliefs = [{value: weight / total for value, weight in row.items()} for row in held]
    return Posterior(worlds, consistent, beliefs)


def check_groups(n: int, groups: Sequence[Sequence[int]]) -> None:
    """Refuse groups that are empty, overlap, or name rows that a table of n rows does not have."""
    rows = [i for group in groups for i in group]
    if len(set(rows)) < len(rows) or not all(groups):
        raise UsageError("published groups must not be empty, and no row may be in two of them")
    for i in rows:
        if not 0 <= i < n:
            raise UsageError(f"row {i} is published, but the table has {n} rows")


@dataclass(frozen=True, eq=False)
class WorldSpace:
    """All assignments of values to places.

    Attributes:
        group: the group of each place, ascending, numbered from 0 on.
        items: what each place really holds: a number from 0 on.
        block: the block of each group.
    """

    group: Ints
    items: Ints
    block: Ints

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return int(self.block.max(initial=-1)) + 1

    @property
    def n_items(self) -> int:
        """The number of different items."""
        return int(self.items.max(initial=-1)) + 1

    @cached_property
    def segments(self) -> list[slice]:
        """The places of each group."""
        ends = np.searchsorted(self.group, np.arange(len(self.block) + 1)).tolist()
        return [slice(a, b) for a, b in pairwise(ends)]

    def worlds(self, limit: int) -> list[int]:
        """The number of different worlds of each block; counting stops beyond the limit."""
        found = [1] * self.n_blocks
        for part, block in zip(self.segments, self.block.tolist(), strict=True):
            if found[block] <= limit:
                found[block] *= self._ways(part, limit)
        return found

    def _ways(self, part: slice, limit: int) -> int:
        counts = np.unique(self.items[part], return_counts=True)[1].tolist()
        total = sum(counts)
        # a group with very many orders is not worth counting exactly
        if total > 400 and len(counts) > 1:
            return limit + 1
        return count_orders(counts)

    def listing(self, blocks: NDArray[np.bool_], limit: int) -> WorldListing:
        """All worlds of these blocks, to be gone through side by side."""
        stride = np.ones(len(self.block), dtype=np.int64)
        ways: list[Ints | None] = []
        so_far = [1] * self.n_blocks
        for g, (part, block) in enumerate(zip(self.segments, self.block.tolist(), strict=True)):
            if not blocks[block]:
                ways.append(None)
                continue
            mine = np.array(list(distinct_orders(self.items[part].tolist())), dtype=np.int64)
            stride[g], so_far[block] = so_far[block], so_far[block] * len(mine)
            ways.append(mine)
        return WorldListing(
            self, stride, ways, max((n for n, b in zip(so_far, blocks, strict=True) if b), default=0)
        )

    def tables(self, unit: Ints, n_units: int, most: int) -> WorldTables | None:
        """All worlds as tables of counts, where every unit lies in one group; None: more than `most` numbers."""
        n_items, number = self.n_items, 1
        for part in self.segments:
            sizes = np.unique(unit[part], return_counts=True)[1].tolist()
            items = tuple(np.bincount(self.items[part], minlength=n_items).tolist())
            number *= count_tables(items, sizes, most)
            if number * n_units * n_items > most:
                return None
        counts, weights = (
            np.zeros((number, n_units, n_items), dtype=np.uint8),
            np.ones(number, dtype=np.int64),
        )
        stride = 1
        for part in self.segments:
            units, sizes = np.unique(unit[part], return_counts=True)
            mine, ways = _group_tables(np.bincount(self.items[part], minlength=n_items), sizes.tolist())
            which = np.arange(number) // stride % len(mine)
            counts[:, units] = mine[which]
            weights *= ways[which]
            stride *= len(mine)
        return WorldTables(counts, weights)

    def draw(self, rng: np.random.Generator, world: Ints, groups: NDArray[np.bool_] | None = None) -> Ints:
        """A world in which the values of some groups (default: all) are assigned anew at random."""
        if len(self.group) > 200 * len(self.block):  # few large groups: one shuffle each
            result = world.copy()
            for g, part in enumerate(self.segments):
                if groups is None or groups[g]:
                    rng.shuffle(result[part])
            return result
        places = slice(None) if groups is None else groups[self.group]
        group, held = self.group[places], world[places]
        order = np.argsort(group + rng.random(len(group)), kind="stable")
        result = world.copy()
        result[places] = held[order]  # groups lie together, so that each keeps its own values
        return result

    def shares(self, unit: Ints, n_units: int) -> NDArray[np.float64]:
        """Unit × item: the share of its people who have it when every world is equally likely."""
        n_groups = len(self.block)
        sizes = np.bincount(self.group, minlength=n_groups)
        counts = np.bincount(self.group * self.n_items + self.items, minlength=n_groups * self.n_items)
        of_group = counts.reshape(n_groups, self.n_items) / np.maximum(sizes, 1)[:, None]
        pair, amount = np.unique(unit * n_groups + self.group, return_counts=True)
        result = np.zeros((n_units, self.n_items))
        np.add.at(result, pair // n_groups, of_group[pair % n_groups] * amount[:, None])
        return result / np.maximum(np.bincount(unit, minlength=n_units), 1)[:, None]

    def extremes(
        self, unit: Ints, n_units: int, inside: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Unit × secret: the least and the largest share of its people who can have it in any world.

        No more of them have it than people of their groups do, and so no more can be believed of people who are alike.
        """
        n_groups = len(self.block)
        sizes = np.bincount(self.group, minlength=n_groups)
        counts = np.bincount(self.group * self.n_items + self.items, minlength=n_groups * self.n_items)
        held = counts.reshape(n_groups, self.n_items) @ inside.astype(np.int64)
        pair, amount = np.unique(unit * n_groups + self.group, return_counts=True)
        group, mine = pair % n_groups, amount[:, None]
        without = sizes[group][:, None] - held[group]
        ends = np.zeros((2, n_units, inside.shape[1]), dtype=np.int64)
        np.add.at(ends[0], pair // n_groups, np.maximum(mine - without, 0))
        np.add.at(ends[1], pair // n_groups, np.minimum(held[group], mine))
        people = np.maximum(np.bincount(unit, minlength=n_units), 1)[:, None]
        return ends[0] / people, ends[1] / people


@dataclass(frozen=True, eq=False)
class WorldTables:
    """Worlds that differ to an adversary: `counts[w, unit, item]` people, dealt in `weights[w]` ways each."""

    counts: NDArray[np.uint8]
    weights: Ints

    def codes(self, worlds: Ints, class_of: Ints, n: int) -> Ints:
        """World × class: a number for the multiset of items that the class (of units; −1: none) holds there."""
        base = int(self.counts[:1].sum()) + 1
        radix = base ** np.arange(self.counts.shape[2], dtype=np.int64)
        counts = self.counts[worlds]
        held = [counts[:, class_of == c].sum(axis=1, dtype=np.int64) @ radix for c in range(n)]
        return np.stack(held, axis=1) if held else np.zeros((len(worlds), 0), dtype=np.int64)

    def decoded(self, codes: Ints) -> Ints:
        """Code × item: the multisets that the codes stand for."""
        base = int(self.counts[:1].sum()) + 1
        return codes[:, None] // base ** np.arange(self.counts.shape[2], dtype=np.int64) % base

    @property
    def can_be_coded(self) -> bool:
        """Whether every multiset has a number that fits."""
        people, items = int(self.counts[:1].sum()), self.counts.shape[2]
        return people < 256 and items * math.log2(people + 1) < 62

    def held(self, kept: NDArray[np.bool_]) -> Ints:
        """Unit × item: people with the item, over all ways of the worlds that are kept."""
        return np.asarray(np.tensordot(self.weights[kept], self.counts[kept].astype(np.int64), 1))


def _group_tables(items: Ints, sizes: Sequence[int]) -> tuple[NDArray[np.uint8], Ints]:
    """Table × unit × item: every way to deal the items of one group; and how often, with people told apart."""
    left, counts = items[None, :].astype(np.int64), np.zeros((1, 0, len(items)), dtype=np.uint8)
    weights = np.ones(1, dtype=np.int64)
    for size in sizes:
        taken = np.array(list(sub_multisets(items.tolist(), size)), dtype=np.int64)
        ways = np.array([count_orders(t) for t in taken.tolist()], dtype=np.int64)
        old, new = np.nonzero((left[:, None, :] >= taken[None]).all(axis=2))
        counts = np.concatenate([counts[old], taken[new][:, None, :].astype(np.uint8)], axis=1)
        left, weights = left[old] - taken[new], weights[old] * ways[new]
    return counts, weights


@dataclass(frozen=True, eq=False)
class WorldListing:
    """Every world of some blocks: number i of each, all at once; `length` is that of the longest list."""

    space: WorldSpace
    stride: Ints
    ways: list[Ints | None]
    length: int

    def put(self, number: int, world: Ints) -> None:
        """Write world number i of each block into `world`; blocks with fewer worlds begin again."""
        for part, stride, ways in zip(self.space.segments, self.stride.tolist(), self.ways, strict=True):
            if ways is not None:
                world[part] = ways[number // stride % len(ways)]
