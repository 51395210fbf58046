"""Nodes of which only some columns are decided, the least cost first: a lower bound that rises to the optimum."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

from maskwright.methods._lattice.lattice import Lattice, Node
from maskwright.methods._lattice.objectives import Objective
from maskwright.methods._lattice.sweep import LatticeSearch


class Opening(NamedTuple):
    """A node at which the first columns are decided and the others are at their top; the least cost comes first.

    `lost` and `excess` (by column): what every node below it loses at least.
    """

    cost: float
    open: int
    places: tuple[int, ...]
    lost: int
    excess: tuple[int, ...]


class NodeFrontier:
    """Columns are decided one after another; the node that costs least is taken further.

    Every node of the lattice lies below one of them, so that the least cost is a lower bound on every score.

    Attributes:
        order: the columns, as they are decided.
        rest: by how many are decided, what the others cost at least.
        most: nodes that cost more are of no use.
    """

    most = math.inf

    def __init__(
        self, search: LatticeSearch, order: Sequence[int], rest: Sequence[float], full: Lattice
    ) -> None:
        self.search, self.order, self.rest = search, order, rest
        self.lattice, self.objective = search.lattice, search.bounds.objective
        self.choices = [  # by column: the places that may be decided on; the top is always a place
            [levels.index(level) for level in allowed]
            for levels, allowed in zip(self.lattice.allowed, full.allowed, strict=True)
        ]
        caps = self.objective.caps
        self.room = [  # by column and place: what a suppressed row adds at least
            [caps[a] - int(costs.max()) if caps else 0 for costs in tables]
            for a, tables in enumerate(self.objective.costs)
        ]
        pairs = zip(self.lattice.allowed, self.lattice.attributes, strict=True)
        tops = tuple(levels.index(h.top) for levels, h in pairs)
        self._heap: list[Opening] = []
        self._push(tops, 0, 0, (0,) * len(tops), 0.0)

    @property
    def least(self) -> float:
        """What every node costs at least (infinity: all have been looked at)."""
        return self._heap[0].cost if self._heap else math.inf

    def take(self) -> Node | None:
        """Decide one more column of the node that costs least. Returns its levels if all are decided."""
        node = heapq.heappop(self._heap)
        if not node.open:
            return tuple(levels[p] for levels, p in zip(self.lattice.allowed, node.places, strict=True))
        decided = len(self.order) - node.open
        column = self.order[decided]
        for place in self.choices[column]:
            places = (*node.places[:column], place, *node.places[column + 1 :])
            found = self.search.checks.check(places)
            if found.lost <= self.search.limit:
                excess = tuple(map(max, node.excess, found.excess or node.excess))
                self._push(places, decided + 1, max(node.lost, found.lost), excess, node.cost)
        return None

    def _push(
        self, places: tuple[int, ...], decided: int, lost: int, excess: tuple[int, ...], least: float
    ) -> None:
        """Add a node; it costs no less than the one that it refines."""

        def _cost(column: int, place: int, more: int) -> float:
            more = max(more, lost * self.room[column][place])
            return term_of(self.objective, column, self.objective.totals[column][place] + more)

        own = math.fsum(_cost(c, places[c], excess[c]) for c in self.order[:decided])
        others = math.fsum(min(_cost(c, p, 0) for p in self.choices[c]) for c in self.order[decided:])
        cost = max(least, own + max(others, self.rest[decided]))
        if cost <= self.most:
            heapq.heappush(self._heap, Opening(cost, len(self.order) - decided, places, lost, excess))


def term_of(objective: Objective, column: int, entry: float) -> float:
    """What one column's entry of a vector adds to the cost of a node (of which the score is a growing function)."""
    factor = objective.factors[column]
    if objective.shape == "linear":
        return factor * entry / objective.divisors[0]
    divisor = objective.divisors[column]
    return factor * math.log1p(entry / divisor) if factor and divisor else 0.0
