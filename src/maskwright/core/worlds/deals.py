"""Deals: the possible worlds of a release as arrays. Each group's values are dealt to its places, all deals alike.

Places stand in the order of their groups. Groups form *blocks*: whether a method publishes the same groups again may
be a question for all of them together (one block: a lattice search), or for each by itself (a block each: methods that
cut a group in two until a cut is refused).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from maskwright.core.worlds.multisets import arrangements, assignments

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Deals:
    """What can be dealt.

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
        return int(self.block.max(initial=-1)) + 1

    @property
    def n_items(self) -> int:
        return int(self.items.max(initial=-1)) + 1

    @cached_property
    def segments(self) -> list[slice]:
        """Where each group lies."""
        ends = np.searchsorted(self.group, np.arange(len(self.block) + 1)).tolist()
        return [slice(a, b) for a, b in pairwise(ends)]

    def worlds(self, limit: int) -> list[int]:
        """How many different worlds each block has; counting stops beyond the limit."""
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
        return arrangements(counts)

    def listing(self, blocks: NDArray[np.bool_], limit: int) -> Listing:
        """All worlds of these blocks, to be gone through side by side."""
        stride = np.ones(len(self.block), dtype=np.int64)
        ways: list[Ints | None] = []
        so_far = [1] * self.n_blocks
        for g, (part, block) in enumerate(zip(self.segments, self.block.tolist(), strict=True)):
            if not blocks[block]:
                ways.append(None)
                continue
            mine = np.array(list(assignments(self.items[part].tolist())), dtype=np.int64)
            stride[g], so_far[block] = so_far[block], so_far[block] * len(mine)
            ways.append(mine)
        return Listing(
            self, stride, ways, max((n for n, b in zip(so_far, blocks, strict=True) if b), default=0)
        )

    def draw(self, rng: np.random.Generator, world: Ints, groups: NDArray[np.bool_] | None = None) -> Ints:
        """The same world with some groups (default: all) dealt anew."""
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
        """Unit × item: the share of its people who have it when every deal is equally likely."""
        n_groups = len(self.block)
        sizes = np.bincount(self.group, minlength=n_groups)
        counts = np.bincount(self.group * self.n_items + self.items, minlength=n_groups * self.n_items)
        of_group = counts.reshape(n_groups, self.n_items) / np.maximum(sizes, 1)[:, None]
        pair, amount = np.unique(unit * n_groups + self.group, return_counts=True)
        result = np.zeros((n_units, self.n_items))
        np.add.at(result, pair // n_groups, of_group[pair % n_groups] * amount[:, None])
        return result / np.maximum(np.bincount(unit, minlength=n_units), 1)[:, None]


@dataclass(frozen=True, eq=False)
class Listing:
    """Every world of some blocks: number i of each, all at once; `length` is that of the longest list."""

    deals: Deals
    stride: Ints
    ways: list[Ints | None]
    length: int

    def put(self, number: int, world: Ints) -> None:
        """Write world number i of each block into `world`; blocks with fewer worlds begin again."""
        for part, stride, ways in zip(self.deals.segments, self.stride.tolist(), self.ways, strict=True):
            if ways is not None:
                world[part] = ways[number // stride % len(ways)]
