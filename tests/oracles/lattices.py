"""Full-domain recoding as on paper: every node, every row, fractions; which nodes satisfy, and what each costs."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from tests.oracles.models import Asked, Published, satisfied
from tests.oracles.tables import TOP, Node, Small, Value

OBJECTIVES = ("information-loss", "arx-loss", "arx-loss-mean", "precision", "non-uniform-entropy", "discernibility",
              "average-class-size", "height")  # fmt: skip


@dataclass(frozen=True)
class Evaluated:
    """A node that satisfies: what is published, what is not, and the score (comparable)."""

    kept: list[list[int]]
    gone: list[int]
    score: Any


@dataclass(frozen=True)
class Problem:
    """A policy for a lattice search on a small table."""

    table: Small
    asked: Sequence[Asked]
    objective: str = "information-loss"
    suppression: Fraction = Fraction(0)
    by_size: bool = True
    star: bool = False
    weights: dict[str, Fraction] = field(default_factory=dict)
    levels: dict[str, list[int]] = field(default_factory=dict)
    people: tuple[tuple[Value, ...], ...] = ()  # the population

    def options(self) -> dict[str, Any]:
        return {
            "objective": self.objective,
            "suppression": self.suppression,
            "suppress": "small-classes" if self.by_size else "failing-classes",
            "suppressed_rows": "star" if self.star else "drop",
        }

    @cached_property
    def nodes(self) -> list[Node]:
        choices = [self.levels.get(key.name, range(len(key.levels))) for key in self.table.keys]
        return list(itertools.product(*choices))

    @cached_property
    def satisfying(self) -> dict[Node, Evaluated]:
        found = ((node, self.evaluate(node)) for node in self.nodes)
        return {node: result for node, result in found if result is not None}

    def published(self, node: Node, kept: list[list[int]], starred: list[int]) -> Published:
        """The classes, the suppressed rows being one of them where they are starred."""
        labels = [self.table.label(node, self.table.rows[members[0]]) for members in kept]
        matching = [sum(self.table.label(node, row) == label for row in self.people) for label in labels]
        if starred:
            kept, labels, matching = (
                [*kept, starred],
                [*labels, (TOP,) * len(node)],
                [*matching, len(self.people)],
            )
        return Published(self.table, kept, labels, matching)

    def evaluate(self, node: Node) -> Evaluated | None:
        classes = list(self.table.classes(node).values())
        least = max((a.least for a in self.asked), default=1)
        kept, gone = [], []
        for members in classes:
            fine = (
                len(members) >= least
                if self.by_size
                else satisfied(self.published(node, [members], []), self.asked)
            )
            (kept if fine else gone).append(members)
        rows = [i for members in gone for i in members]
        if not kept or len(rows) > self.suppression * self.table.n:
            return None
        if not satisfied(self.published(node, kept, rows if self.star else []), self.asked):
            return None
        return Evaluated(kept, rows, self.score(node, kept, rows))

    # -- which nodes -----------------------------------------------------------------------------------------------

    def height(self, node: Node) -> int:
        return sum(node)

    @cached_property
    def minimal(self) -> set[Node]:
        return {n for n in self.satisfying if not any(m != n and _below(m, n) for m in self.satisfying)}

    @cached_property
    def lowest(self) -> set[Node]:
        least = min(map(self.height, self.satisfying), default=0)
        return {n for n in self.satisfying if self.height(n) == least}

    def best(self, among: Sequence[Node] | set[Node]) -> Node:
        """Ties go to the lexicographically smallest levels."""
        return min(among, key=lambda n: (self.satisfying[n].score, n))

    # -- scores ----------------------------------------------------------------------------------------------------

    def weight(self, name: str) -> Fraction:
        return self.weights.get(name, Fraction(1))

    def score(self, node: Node, kept: list[list[int]], gone: list[int]) -> Any:
        """What the objective makes small; for arx-loss its power, which compares exactly."""
        n, keys = self.table.n, self.table.keys
        weights = [self.weight(key.name) for key in keys]
        if self.objective == "discernibility":
            return sum(len(m) ** 2 for m in kept) + len(gone) * n
        if self.objective == "average-class-size":
            return Fraction(n, len(kept) + (len(gone) > 0))
        if self.objective == "height":
            return sum((w * level for w, level in zip(weights, node, strict=True)), Fraction(0))
        losses = [self.loss(a, node[a], gone) for a in range(len(node))]
        if self.objective == "non-uniform-entropy":
            return round(sum(float(w) * x for w, x in zip(weights, losses, strict=True)), 4)
        if self.objective == "arx-loss":
            scale = math.lcm(*(w.denominator for w in weights))
            return math.prod((1 + x) ** int(w * scale) for w, x in zip(weights, losses, strict=True))
        return sum((w * x for w, x in zip(weights, losses, strict=True)), Fraction(0)) / sum(weights)

    def loss(self, a: int, level: int, gone: list[int]) -> Any:
        """The mean loss of one attribute over all rows, a suppressed row losing everything (entropy: sum of bits)."""
        key, dropped, n = self.table.keys[a], set(gone), self.table.n
        column = [row[a] for row in self.table.rows]
        if self.objective == "non-uniform-entropy":
            shown = [key.label(level, v) for v in column]
            here, exact = Counter(shown), Counter(column)
            return sum(
                math.log2((n if i in dropped else here[shown[i]]) / exact[column[i]]) for i in range(n)
            )
        if self.objective == "precision":
            return (
                sum(
                    (Fraction(1) if i in dropped else Fraction(level, key.height) for i in range(n)),
                    Fraction(0),
                )
                / n
            )
        if len(key.values) == 1:
            return Fraction(0)
        each = [
            Fraction(1) if i in dropped else Fraction(key.covered(level, v) - 1, len(key.values) - 1)
            for i, v in enumerate(column)
        ]
        return sum(each, Fraction(0)) / n


def _below(a: Node, b: Node) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))
