"""What a node scores, and what it scores at best given what was found at coarser nodes.

Whatever a coarser node must lose, every finer node must lose too (see `kernels/rules.py`). So the vector of a
node is at least its own cost without suppression plus, column by column, the largest excess found above it.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maskwright.core.classes import Ints
from maskwright.core.summary import Summary
from maskwright.kernels.lattice import Check, rows_by_code
from maskwright.methods.lattice import Lattice
from maskwright.methods.objectives import Objective, Vector, node_totals

Places = tuple[int, ...]
Spread = list[list[float]]  # by attribute and place


class Bounds:
    """Exact vectors of nodes and of lower bounds, and floats for many nodes at once."""

    def __init__(self, objective: Objective, lattice: Lattice, least: int, summary: Summary) -> None:
        self.objective = objective
        self.lattice = lattice
        self.summary = summary
        self.least = max(1, least)
        self.rows = objective.rows
        self.width = len(lattice.shape) if objective.kind == "rows" else 0
        self.blocks = [
            [len(lattice.level(a, p).labels) for p in range(n)] for a, n in enumerate(lattice.shape)
        ]

    @cached_property
    def entropies(self) -> Spread:
        """By attribute and place, the entropy of the published values."""
        result = []
        widths = tuple(len(h.values) + 1 for h in self.lattice.attributes)
        for a, rows in enumerate(rows_by_code(self.summary.codes, self.summary.rows, widths)):
            spread = []
            for place in range(self.lattice.shape[a]):
                p = np.bincount(self.lattice.level(a, place).blocks, weights=rows) / self.rows
                spread.append(float(-(p[p > 0] * np.log(p[p > 0])).sum()))
            result.append(spread)
        return result

    def vector(self, places: Places, check: Check) -> Vector:
        """The vector of a checked node."""
        kind = self.objective.kind
        if kind == "rows":
            totals = node_totals(self.objective, places)
            return tuple(total + extra for total, extra in zip(totals, check.extra, strict=True))
        if kind == "height":
            return node_totals(self.objective, places)
        if kind == "squares":
            return (check.squares + check.suppressed * self.rows,)
        if kind == "classes":
            return (-(check.classes + (check.suppressed > 0)),)
        return (check.suppressed,)

    def bound(self, places: Places, lost: int, excess: tuple[int, ...]) -> Vector:
        """A vector that scores no more than the node does, if the node is feasible."""
        kind = self.objective.kind
        if kind == "rows":
            totals = node_totals(self.objective, places)
            return tuple(total + least for total, least in zip(totals, excess, strict=True))
        if kind == "height":
            return node_totals(self.objective, places)
        kept = self.rows - lost
        if kind == "suppressed":
            return (lost,)
        possible = math.prod(self.blocks[a][p] for a, p in enumerate(places))
        if kind == "classes":
            return (-(min(possible, kept // self.least) + 1),)
        if possible == 1:
            return (self.rows**2,)
        return (lost * self.rows + max(kept * self.least, -(-(kept**2) // possible)),)

    def approximate(self, places: NDArray[np.int64], lost: Ints, excess: Ints) -> NDArray[np.float64]:
        """The bounds of many nodes as floats that order like the scores (one column of `places` per node)."""
        kind = self.objective.kind
        if kind in ("rows", "height"):
            vectors = np.array(
                [np.array(t, dtype=np.int64)[p] for t, p in zip(self.objective.totals, places, strict=True)]
            ).T
            return self.objective.approximate(
                (vectors + excess if kind == "rows" else vectors).astype(np.float64)
            )
        kept = (self.rows - lost).astype(np.float64)
        if kind == "suppressed":
            return lost.astype(np.float64)
        possible = np.ones(places.shape[1])
        for blocks, place in zip(self.blocks, places, strict=True):
            possible *= np.array(blocks, dtype=np.float64)[place]
        if kind == "classes":
            return -(np.minimum(possible, np.floor(kept / self.least)) + 1)
        spread = np.maximum(kept * self.least, kept**2 / possible)
        return np.where(possible == 1, float(self.rows) ** 2, lost * float(self.rows) + spread)
