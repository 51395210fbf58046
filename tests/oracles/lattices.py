"""Full-domain recoding as on paper: every node, every row, fractions; which nodes satisfy, and what each costs.

`EveryNode` is the one enumeration of all nodes. What may be published is said by who asks: privacy models as a policy
names them (`Problem`), or rules on one sensitive column (`lattice_cases.Case`).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

from tests.oracles.models import Asked, Published, satisfied
from tests.oracles.tables import TOP, Node, Small, Value

OBJECTIVES = ("information-loss", "arx-loss", "arx-loss-mean", "precision", "non-uniform-entropy", "discernibility",
              "average-class-size", "height")  # fmt: skip


class Ladder(Protocol):
    """The levels of a quasi-identifier, by their numbers."""

    name: str
    values: tuple[str, ...]

    @property
    def height(self) -> int:
        """The height of its top."""

    def numbers(self) -> range:
        """Its levels."""

    def height_of(self, level: int) -> int:
        """The longest path from the ground to a level."""

    def refines(self, level: int, other: int) -> bool:
        """Whether a level is at least as fine as another."""

    def label(self, level: int, value: Value) -> object:
        """What is published of a value."""

    def covered(self, level: int, value: Value) -> int:
        """Ground values that the published label stands for; missing stands for none but counts as one."""


@dataclass(frozen=True)
class Evaluated:
    """A node that satisfies: what is published, what is not, and the score (comparable)."""

    node: Node
    kept: list[list[int]]
    gone: list[int]
    score: Any

    @property
    def suppressed(self) -> int:
        return len(self.gone)


@dataclass(frozen=True, kw_only=True)
class EveryNode(ABC):
    """All nodes of a small table, evaluated one by one with code that shares nothing with the searches."""

    objective: str = "information-loss"
    suppression: Fraction = Fraction(0)
    by_size: bool = True
    star: bool = False
    weights: dict[str, Fraction] = field(default_factory=dict)
    levels: dict[str, list[int]] = field(default_factory=dict)

    @property
    @abstractmethod
    def ladders(self) -> Sequence[Ladder]:
        """The quasi-identifiers."""

    @property
    @abstractmethod
    def columns_of_values(self) -> Sequence[Sequence[Value]]:
        """The values of each quasi-identifier, row by row."""

    @property
    @abstractmethod
    def least(self) -> int:
        """The size below which a class is small."""

    @abstractmethod
    def publishable(self, node: Node, kept: list[list[int]], starred: list[int]) -> bool:
        """Whether these classes may be published, with the starred rows as one more (if there are any)."""

    def options(self) -> dict[str, Any]:
        """The options of a method that searches for the same."""
        return {
            "objective": self.objective,
            "suppression": self.suppression,
            "suppress": "small-classes" if self.by_size else "failing-classes",
            "suppressed_rows": "star" if self.star else "drop",
        }

    # -- every node ------------------------------------------------------------------------------------------------

    @cached_property
    def nodes(self) -> list[Node]:
        choices = [self.levels.get(ladder.name, ladder.numbers()) for ladder in self.ladders]
        return list(itertools.product(*choices))

    @cached_property
    def satisfying(self) -> dict[Node, Evaluated]:
        found = ((node, self.evaluate(node)) for node in self.nodes)
        return {node: result for node, result in found if result is not None}

    @property
    def n(self) -> int:
        return len(self.columns_of_values[0])

    def classes(self, node: Node) -> list[list[int]]:
        """Rows by what is published of them."""
        shown = [
            [ladder.label(level, value) for value in column]
            for ladder, level, column in zip(self.ladders, node, self.columns_of_values, strict=True)
        ]
        found: dict[tuple[object, ...], list[int]] = {}
        for i, label in enumerate(zip(*shown, strict=True)):
            found.setdefault(label, []).append(i)
        return list(found.values())

    def evaluate(self, node: Node) -> Evaluated | None:
        """What a node publishes and costs; None where it does not satisfy."""
        kept, gone = [], []
        for members in self.classes(node):
            fine = len(members) >= self.least if self.by_size else self.publishable(node, [members], [])
            (kept if fine else gone).append(members)
        rows = [i for members in gone for i in members]
        if not kept or len(rows) > self.suppression * self.n:
            return None
        if not self.publishable(node, kept, rows if self.star else []):
            return None
        return Evaluated(node, kept, rows, self.score(node, kept, rows))

    # -- which nodes -----------------------------------------------------------------------------------------------

    def below(self, a: Node, b: Node) -> bool:
        """Is a another node, and at least as fine as b in every attribute?"""
        return a != b and all(ladder.refines(x, y) for ladder, x, y in zip(self.ladders, a, b, strict=True))

    def height(self, node: Node) -> int:
        return sum(ladder.height_of(level) for ladder, level in zip(self.ladders, node, strict=True))

    @cached_property
    def minimal(self) -> set[Node]:
        return {n for n in self.satisfying if not any(self.below(m, n) for m in self.satisfying)}

    @cached_property
    def lowest(self) -> set[Node]:
        least = min(map(self.height, self.satisfying), default=0)
        return {n for n in self.satisfying if self.height(n) == least}

    @cached_property
    def upward_closed(self) -> bool:
        """Does every coarsening of a satisfying node satisfy?"""
        others = [n for n in self.nodes if n not in self.satisfying]
        return not any(self.below(m, n) for n in others for m in self.satisfying)

    def best(self, among: Iterable[Node]) -> Node:
        """Ties go to the lexicographically smallest levels."""
        return min(among, key=lambda n: (self.satisfying[n].score, n))

    @cached_property
    def optimum(self) -> Evaluated | None:
        """The best of all nodes that satisfy."""
        return self.satisfying[self.best(self.satisfying)] if self.satisfying else None

    # -- scores ----------------------------------------------------------------------------------------------------

    def weight(self, name: str) -> Fraction:
        return self.weights.get(name, Fraction(1))

    def score(self, node: Node, kept: list[list[int]], gone: list[int]) -> Any:
        """What the objective makes small; for arx-loss its power, which compares exactly."""
        weights = [self.weight(ladder.name) for ladder in self.ladders]
        if self.objective == "discernibility":
            return sum(len(m) ** 2 for m in kept) + len(gone) * self.n
        if self.objective == "average-class-size":
            return Fraction(self.n, len(kept) + (len(gone) > 0))
        if self.objective == "height":
            heights = [ladder.height_of(level) for ladder, level in zip(self.ladders, node, strict=True)]
            return sum((w * h for w, h in zip(weights, heights, strict=True)), Fraction(0))
        losses = [self.loss(a, node[a], gone) for a in range(len(node))]
        if self.objective == "non-uniform-entropy":
            return round(sum(float(w) * x for w, x in zip(weights, losses, strict=True)), 4)
        if self.objective == "arx-loss":
            scale = math.lcm(*(w.denominator for w in weights))
            return math.prod((1 + x) ** int(w * scale) for w, x in zip(weights, losses, strict=True))
        return sum((w * x for w, x in zip(weights, losses, strict=True)), Fraction(0)) / sum(weights)

    def loss(self, a: int, level: int, gone: list[int]) -> Any:
        """The mean loss of one attribute over all rows, a suppressed row losing everything (entropy: sum of bits)."""
        ladder, column, dropped, n = self.ladders[a], self.columns_of_values[a], set(gone), self.n
        if self.objective == "non-uniform-entropy":
            shown = [ladder.label(level, v) for v in column]
            here, exact = Counter(shown), Counter(column)
            return sum(
                math.log2((n if i in dropped else here[shown[i]]) / exact[column[i]]) for i in range(n)
            )
        if self.objective == "precision":
            each = [Fraction(ladder.height_of(level), ladder.height)] * n
        elif len(ladder.values) == 1:
            return Fraction(0)
        else:
            each = [Fraction(ladder.covered(level, v) - 1, len(ladder.values) - 1) for v in column]
        return sum((Fraction(1) if i in dropped else x for i, x in enumerate(each)), Fraction(0)) / n


@dataclass(frozen=True)
class Problem(EveryNode):
    """A policy for a lattice search on a small table."""

    table: Small
    asked: Sequence[Asked]
    people: tuple[tuple[Value, ...], ...] = ()  # the population

    @property
    def ladders(self) -> Sequence[Ladder]:
        return self.table.keys

    @cached_property
    def columns_of_values(self) -> Sequence[Sequence[Value]]:
        return list(zip(*self.table.rows, strict=True))

    @cached_property
    def least(self) -> int:
        return max((a.least for a in self.asked), default=1)

    def publishable(self, node: Node, kept: list[list[int]], starred: list[int]) -> bool:
        return satisfied(self.published(node, kept, starred), self.asked)

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
