"""The lattice of full-domain recodings: a node chooses one level per quasi-identifier.

Nodes are ordered by the product of the refinement orders of the hierarchies, which need not be chains. Only
the levels that the policy allows take part. A node is written as a tuple of level numbers; its *number* is
its place in the lexicographic order of these tuples, so that the smallest number wins among equals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.hierarchy import Hierarchy, Level
from maskwright.domain.segments import dense_numbers
from maskwright.domain.summary import Summary
from maskwright.errors import PolicyError

Node = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Lattice:
    """All combinations of the allowed levels; `allowed[a]` are level numbers in ascending order."""

    attributes: tuple[Hierarchy, ...]
    allowed: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(attributes: Sequence[Hierarchy], levels: Mapping[str, Sequence[int]] | None = None) -> Lattice:
        """The lattice of `attributes`; `levels` restricts the levels of some of them."""
        allowed = []
        for hierarchy in attributes:
            chosen = (levels or {}).get(hierarchy.attribute)
            numbers = range(len(hierarchy.levels)) if chosen is None else sorted(set(chosen))
            if not numbers or min(numbers) < 0 or max(numbers) >= len(hierarchy.levels):
                raise PolicyError(
                    f"column {hierarchy.attribute!r}: levels {list(chosen or ())} are not allowed; "
                    f"choose from 0 to {hierarchy.top}"
                )
            allowed.append(tuple(int(n) for n in numbers))
        return Lattice(tuple(attributes), tuple(allowed))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of allowed levels of each attribute."""
        return tuple(len(levels) for levels in self.allowed)

    @cached_property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return math.prod(self.shape)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """How far apart in number two nodes are that differ by one place in one attribute."""
        return tuple(math.prod(self.shape[a + 1 :]) for a in range(len(self.shape)))

    def node(self, number: int) -> Node:
        """The levels of a node by its number."""
        return tuple(
            levels[number // stride % len(levels)]
            for levels, stride in zip(self.allowed, self.strides, strict=True)
        )

    def number(self, node: Node) -> int:
        """The number of a node by its levels."""
        places = (levels.index(level) for levels, level in zip(self.allowed, node, strict=True))
        return sum(place * stride for place, stride in zip(places, self.strides, strict=True))

    def places_of(self, number: int) -> tuple[int, ...]:
        """The places of a node's levels among the allowed ones, by its number."""
        return tuple(number // s % n for s, n in zip(self.strides, self.shape, strict=True))

    def level_indices(self, numbers: Ints) -> NDArray[np.int64]:
        """The place of each node in `allowed`, one row per attribute."""
        return np.array(
            [numbers // stride % size for stride, size in zip(self.strides, self.shape, strict=True)],
            dtype=np.int64,
        ).reshape(len(self.shape), -1)

    @cached_property
    def coarser(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Per attribute and place, the places of its immediate coarsenings among the allowed levels."""
        return tuple(_order(h, levels)[0] for h, levels in zip(self.attributes, self.allowed, strict=True))

    @cached_property
    def finer(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Per attribute and place, the places of its immediate refinements among the allowed levels."""
        return tuple(_order(h, levels)[1] for h, levels in zip(self.attributes, self.allowed, strict=True))

    @cached_property
    def down_sets(self) -> tuple[tuple[int, ...], ...]:
        """Per attribute and place, how many allowed levels refine it, itself included."""
        return tuple(_order(h, levels)[2] for h, levels in zip(self.attributes, self.allowed, strict=True))

    @cached_property
    def maximal(self) -> list[int]:
        """Numbers of the nodes that nothing coarsens: the top, unless the policy excludes it."""
        tops = [[p for p, up in enumerate(places) if not up] for places in self.coarser]
        numbers = [0]
        for places, stride in zip(tops, self.strides, strict=True):
            numbers = [n + p * stride for n in numbers for p in places]
        return sorted(numbers)

    def steps(self, number: int, directions: Sequence[Sequence[Sequence[int]]]) -> Iterable[int]:
        """Numbers of the neighbours of a node (`directions` is `coarser` or `finer`)."""
        for a, (stride, size) in enumerate(zip(self.strides, self.shape, strict=True)):
            place = number // stride % size
            for other in directions[a][place]:
                yield number + (other - place) * stride

    def level(self, attribute: int, place: int) -> Level:
        """The level at a place among the allowed ones of an attribute."""
        return self.attributes[attribute].levels[self.allowed[attribute][place]]

    def names(self, node: Node) -> dict[str, str]:
        """The name of each attribute's level at a node."""
        return {h.attribute: h.levels[n].name for h, n in zip(self.attributes, node, strict=True)}


Steps = tuple[tuple[int, ...], ...]


@lru_cache(maxsize=256)
def _order(hierarchy: Hierarchy, levels: tuple[int, ...]) -> tuple[Steps, Steps, tuple[int, ...]]:
    """Steps up and down among the allowed levels of one attribute, and how many levels refine each."""
    below = hierarchy.refines[np.ix_(levels, levels)]
    return _covers(below), _covers(below.T), tuple(int(n) for n in below.sum(axis=0))


def _covers(below: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Immediate neighbours above in a partial order given as a reflexive matrix."""
    strict = below & ~np.eye(len(below), dtype=bool)
    between = (strict.astype(np.int64) @ strict.astype(np.int64)) > 0
    return tuple(tuple(int(j) for j in np.flatnonzero(row)) for row in strict & ~between)


def group_tuples(summary: Summary, node: Node) -> tuple[Ints, int]:
    """The class of each tuple when the attributes are recoded to `node`; classes in order of their blocks."""
    group = np.zeros(summary.n_tuples, dtype=np.int64)
    size = 1
    for hierarchy, codes, number in zip(summary.attributes, summary.codes, node, strict=True):
        level = hierarchy.levels[number]
        if len(level.labels) == 1:
            continue
        if size * len(level.labels) > 2**40:  # keep the key small: number the classes so far
            group, size = dense_numbers(group, size)
        group = group * len(level.labels) + level.blocks[codes]
        size *= len(level.labels)
    return dense_numbers(group, size)
