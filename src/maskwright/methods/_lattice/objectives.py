"""Objectives: what a lattice search makes as small as possible, in integers that compare exactly, and bounds on it.

Most objectives add up over rows: a row costs `costs[a][place][code]` in attribute a, a suppressed row costs
`caps[a]`, the most there is. A node is scored by the *vector* of these sums, one entry per attribute, and the
score is a function of it that never falls when an entry grows. The others (discernibility, average class
size, height) have a vector of their own.

| objective | score |
| --- | --- |
| information-loss | mean over rows of Σ weight·(coverage − 1)/(base − 1); suppressed: 1 |
| arx-loss | geometric mean over attributes of (1 + loss), minus 1 (ARX) |
| arx-loss-mean | arithmetic mean over attributes of the loss (ARX); the same as information-loss |
| precision | mean over rows and attributes of level height / height; suppressed: 1 (Sweeney 2002) |
| non-uniform-entropy | bits: Σ log2(frequency of the published value / frequency of the original value) |
| discernibility | Σ (class size)² + suppressed rows · rows (Bayardo, Agrawal 2005) |
| average-class-size | rows / classes, the suppressed rows counting as one class |
| height | Σ weight·height of the level |

`Bounds` says what a node scores at best given what was found at coarser nodes: whatever a coarser node must lose,
every finer node must lose too (see `kernels/rule_checks.py`). So the vector of a node is at least its own cost without
suppression plus, column by column, the largest excess found above it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.summary import Summary
from maskwright.errors import PolicyError
from maskwright.kernels.node_check import Check, rows_by_code
from maskwright.methods._lattice.lattice import Lattice

ObjectiveName = Literal[
    "information-loss", "arx-loss", "arx-loss-mean", "precision", "non-uniform-entropy", "discernibility",
    "average-class-size", "height",
]  # fmt: skip
OBJECTIVES: tuple[str, ...] = get_args(ObjectiveName)
Vector = tuple[int, ...]
NEAR = 1e-11  # floats this near to each other (relatively) are compared again in integers
BITS = 1 << 24  # entropies are sums of logarithms in units of 2^-24 bit, so that they compare exactly
Places = tuple[int, ...]
Spread = list[list[float]]  # by attribute and place


@dataclass(frozen=True, eq=False)
class Objective:
    """How to score a node.

    Attributes:
        kind: what the entries of a vector are: "rows" (costs that add up over rows), "squares"
            (discernibility), "classes" (average class size), "height", or "suppressed" (rows).
        shape: "linear": Σ factor·entry / divisor; "product": ∏ (1 + entry/divisor_a)^factor, root, minus 1.
        costs: by attribute, place and code (kind "rows" and "height").
        caps: by attribute, the cost of a suppressed row (kind "rows").
        totals: by attribute and place, the cost of all rows when nothing is suppressed.
    """

    name: str
    kind: Literal["rows", "squares", "classes", "height", "suppressed"]
    shape: Literal["linear", "product"]
    factors: tuple[int, ...]
    divisors: tuple[int, ...]
    rows: int
    costs: tuple[tuple[Ints, ...], ...] = ()
    caps: tuple[int, ...] = ()
    totals: tuple[tuple[int, ...], ...] = ()
    offset: int = 0  # what the score of the untouched table would be, where that is not 0

    def score(self, vector: Vector) -> Fraction | float:
        """The score, exact unless it is irrational."""
        if self.kind == "classes":
            return Fraction(self.rows, -vector[0]) if vector[0] else math.inf
        if self.shape == "linear":
            total = sum(f * v for f, v in zip(self.factors, vector, strict=True))
            exact = Fraction(total - self.offset, self.divisors[0])
            return float(exact) if self.name == "non-uniform-entropy" else exact
        return math.expm1(self._log(vector) / max(1, sum(self.factors)))

    def _log(self, vector: Vector) -> float:
        terms = zip(self.factors, vector, self.divisors, strict=True)
        return math.fsum(f * math.log1p(v / d) for f, v, d in terms if f and d)

    def approximate(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """A float that orders like the score wherever two scores differ by more than `NEAR`."""
        factors = np.array(self.factors, dtype=np.float64)
        if self.shape == "linear":
            return np.asarray(vectors @ factors)
        divisors = np.array([d or 1 for d in self.divisors], dtype=np.float64)
        return np.asarray(np.exp(np.log1p(vectors / divisors) @ (factors / max(1.0, factors.sum()))))

    def unscaled(self, approximate: float) -> float:
        """The score that belongs to a value of `approximate`."""
        if self.kind == "classes":
            return self.rows / -approximate if approximate else math.inf
        if self.shape == "product":
            return approximate - 1
        return (approximate - self.offset) / self.divisors[0]

    def compare(self, a: Vector, b: Vector) -> int:
        """-1, 0 or 1 as the score of `a` is below, equal to or above that of `b`, decided in integers."""
        if a == b:
            return 0
        if self.shape == "linear":
            x, y = (sum(f * v for f, v in zip(self.factors, s, strict=True)) for s in (a, b))
            return (x > y) - (x < y)
        log_a, log_b = self._log(a), self._log(b)
        if abs(log_a - log_b) > NEAR * (1 + abs(log_a)) * sum(self.factors):
            return 1 if log_a > log_b else -1
        x, y = (self._product(s) for s in (a, b))
        return (x > y) - (x < y)

    def _product(self, vector: Vector) -> int:
        terms = zip(self.factors, vector, self.divisors, strict=True)
        return math.prod((d + v) ** f for f, v, d in terms if f and d)


def build_objective(
    name: str, lattice: Lattice, summary: Summary, weights: Mapping[str, Fraction]
) -> Objective:
    """The objective `name` for this table. Suppression alone is the internal objective "suppressed"."""
    rows = summary.n_rows
    if name in ("discernibility", "suppressed"):
        kind: Literal["squares", "suppressed"] = "squares" if name == "discernibility" else "suppressed"
        return Objective(name, kind, "linear", (1,), (1,), rows)
    if name == "average-class-size":
        return Objective(name, "classes", "linear", (1,), (1,), rows)
    weight = _weights(lattice, weights)
    widths = tuple(len(h.values) + 1 for h in summary.attributes)
    rows_of = rows_by_code(summary.codes, summary.rows, widths)
    costs = tuple(_costs(name, lattice, by_code, a) for a, by_code in enumerate(rows_of))
    totals = tuple(
        tuple(int(table @ by_code) for table in tables)
        for tables, by_code in zip(costs, rows_of, strict=True)
    )
    if name == "height":
        scale = math.lcm(*(w.denominator for w in weight))
        heights = tuple(tuple(int(t[0]) for t in tables) for tables in costs)
        factors = tuple(int(w * scale) for w in weight)
        return Objective(name, "height", "linear", factors, (scale,), rows, costs, (), heights)
    caps = tuple(_cap(name, lattice, summary, a) for a in range(len(lattice.shape)))
    if max((rows * cap for cap in caps), default=0) >= 2**62:
        raise PolicyError(f"objective {name!r}: too many rows times values for exact sums")
    if name == "arx-loss":
        scale = math.lcm(*(w.denominator for w in weight))
        whole = [int(w * scale) for w in weight]
        common = math.gcd(*whole)
        return Objective(
            name, "rows", "product", tuple(w // common for w in whole), tuple(rows * cap for cap in caps), rows,
            costs, caps, totals,
        )  # fmt: skip
    factors, divisor = _shares(name, weight, caps, rows)
    offset = 0
    if name == "non-uniform-entropy":
        pairs = zip(lattice.attributes, rows_of, strict=True)
        sums = [int(_bits(h.levels[0].blocks, by_code) @ by_code) for h, by_code in pairs]
        offset = sum(f * total for f, total in zip(factors, sums, strict=True))
    return Objective(name, "rows", "linear", factors, (divisor,), rows, costs, caps, totals, offset)


def _shares(
    name: str, weight: list[Fraction], caps: tuple[int, ...], rows: int
) -> tuple[tuple[int, ...], int]:
    """Integer factors and their divisor for Σ weight·cost/cap (entropy: Σ weight·cost, in bits)."""
    if name == "non-uniform-entropy":
        shares = [w / BITS for w in weight]
    else:
        shares = [
            w / (sum(weight) * rows * cap) if cap else Fraction(0)
            for w, cap in zip(weight, caps, strict=True)
        ]
    divisor = math.lcm(*(s.denominator for s in shares))
    return tuple(int(s * divisor) for s in shares), divisor


def _weights(lattice: Lattice, weights: Mapping[str, Fraction]) -> list[Fraction]:
    result = [Fraction(weights.get(h.attribute, 1)) for h in lattice.attributes]
    if min(result) < 0:
        raise PolicyError("the weight of a column cannot be negative")
    if sum(result) == 0:
        raise PolicyError("every column has weight 0; give at least one of them a weight")
    return result


def _costs(name: str, lattice: Lattice, by_code: Ints, a: int) -> tuple[Ints, ...]:
    """The cost of a row by place and code in attribute `a`."""
    hierarchy = lattice.attributes[a]
    tables = []
    for number in lattice.allowed[a]:
        level = hierarchy.levels[number]
        if name in ("precision", "height"):
            table = np.full(len(level.blocks), hierarchy.heights[number], dtype=np.int64)
        elif name == "non-uniform-entropy":
            table = _bits(level.blocks, by_code)
        else:
            table = level.hidden
        tables.append(table)
    return tuple(tables)


def _cap(name: str, lattice: Lattice, summary: Summary, a: int) -> int:
    hierarchy = lattice.attributes[a]
    if name == "precision":
        return int(hierarchy.height)
    if name == "non-uniform-entropy":
        return round(math.log2(max(1, summary.n_rows)) * BITS)
    return hierarchy.base - 1


def _bits(blocks: NDArray[np.int32], by_code: Ints) -> Ints:
    """log2 of the rows that share each code's block, in units of 1/BITS."""
    per_block = np.zeros(int(blocks.max()) + 1, dtype=np.int64)
    np.add.at(per_block, blocks, by_code)
    logs = np.log2(np.maximum(per_block, 1).astype(np.float64))
    bits: Ints = np.rint(logs * BITS).astype(np.int64)
    return bits[blocks]


def node_totals(objective: Objective, places: tuple[int, ...]) -> Vector:
    """The cost of a node by attribute when nothing is suppressed."""
    return tuple(totals[place] for totals, place in zip(objective.totals, places, strict=True))


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
