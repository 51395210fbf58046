"""Random lattice problems for unit tests: hierarchies of any partitions, and rules on one sensitive column.

Also what the literature does with the nodes of such a problem: binary search, minimal nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Task
from maskwright.domain.model import Model
from maskwright.domain.rules import (
    Closeness,
    DistinctAtLeast,
    EntropyAtLeast,
    Recursive,
    ShareAtMost,
    SharesWithin,
    SizeAtLeast,
)
from maskwright.methods._lattice.node_evaluation import Evaluator
from maskwright.methods._lattice.nodes import Nodes
from tests.oracles.lattices import OBJECTIVES, EveryNode, Ladder
from tests.oracles.tables import Node, Value
from tests.support import (
    MergeSafe,
    Monotone,
    Odd,
    Rules,
    equal_sets,
    ordered_sets,
    passes,
    summarise,
    task_of,
)


@dataclass(frozen=True)
class Partitions:
    """The levels of a hierarchy that may be any partitions, not each a coarsening of the one before."""

    hierarchy: Hierarchy

    @property
    def name(self) -> str:
        return self.hierarchy.attribute

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(self.hierarchy.values)

    @property
    def height(self) -> int:
        return self.height_of(self.hierarchy.top)

    def numbers(self) -> range:
        return range(len(self.hierarchy.levels))

    def height_of(self, level: int) -> int:
        """Longest paths, counted step by step."""
        finer = [i for i in self.numbers() if i != level and self.refines(i, level)]
        return 1 + max(map(self.height_of, finer)) if finer else 0

    def refines(self, level: int, other: int) -> bool:
        return bool(self.hierarchy.refines[level, other])

    def label(self, level: int, value: Value) -> int:
        code = 0 if value is None else self.hierarchy.values.index(value) + 1
        return int(self.hierarchy.levels[level].blocks[code])

    def covered(self, level: int, value: Value) -> int:
        mine = self.label(level, value)
        return max(1, sum(self.label(level, v) == mine for v in self.hierarchy.values))


@dataclass(frozen=True)
class Case(EveryNode):
    """Rules that every class must keep; `odd` also asks for odd sizes, which is not monotone in any sense."""

    attributes: list[Hierarchy]
    columns: list[list[str | None]]
    disease: list[str | None]
    rules: tuple[Any, ...]
    odd: bool = False

    @cached_property
    def ladders(self) -> Sequence[Ladder]:
        return [Partitions(hierarchy) for hierarchy in self.attributes]

    @property
    def columns_of_values(self) -> Sequence[Sequence[Value]]:
        return self.columns

    @cached_property
    def least(self) -> int:
        return max((r.k for r in self.rules if isinstance(r, SizeAtLeast)), default=1)

    def publishable(self, node: Node, kept: list[list[int]], starred: list[int]) -> bool:
        return all(map(self.passes, [*kept, starred] if starred else kept))

    def passes(self, members: list[int]) -> bool:
        """Whether these rows may be a class."""
        domain = sorted({v for v in self.disease if v is not None})
        held = [self.disease[i] for i in members]
        counts = Counter(0 if v is None else domain.index(v) + 1 for v in held)
        if self.odd and len(members) % 2 == 0:
            return False
        return all(passes(rule, len(members), counts) for rule in self.rules)

    def task(self, known: bool = True) -> Task:
        """The case as a task; `known`: the models tell what they are made of."""
        summary = summarise(self.attributes, self.columns, {"disease": self.disease})
        simple = all(isinstance(rule, SizeAtLeast | DistinctAtLeast) for rule in self.rules)
        # a value that is absent from one class and rare in another may be too rare in both together
        rare = any(isinstance(rule, SharesWithin) and not rule.absent for rule in self.rules)
        kind = Rules if not known or rare else Monotone if simple else MergeSafe
        models: list[Model] = [kind(rules=self.rules, known=known)] + ([Odd()] if self.odd else [])
        return task_of(summary, models, weights=self.weights, levels=self.levels)


def random_case(seed: int) -> Case:
    """A random problem; many of them no node satisfies, or nearly every one."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(1, 16))
    attributes = [_hierarchy(rng, f"q{a}") for a in range(int(rng.integers(1, 4)))]
    columns = [_column(rng, h.values, n_rows) for h in attributes]
    domain = ["a", "b", "c", "d"][: int(rng.integers(1, 5))]
    disease = _column(rng, domain, n_rows)
    if not any(disease):
        disease[0] = "a"
    weights = {h.attribute: Fraction(int(rng.integers(0, 4)), int(rng.integers(1, 4))) for h in attributes}
    if rng.random() < 0.5 or not any(weights.values()):
        weights = {}
    levels = {}
    for h in attributes:
        if rng.random() < 0.3:
            chosen = rng.random(len(h.levels)) < 0.6
            levels[h.attribute] = [int(i) for i in np.flatnonzero(chosen)] or [h.top]
    return Case(
        attributes, columns, disease, _rules(rng, disease), bool(rng.random() < 0.1),
        objective=str(rng.choice(OBJECTIVES)), weights=weights, levels=levels,
        suppression=Fraction(int(rng.integers(0, 11)), 10) if rng.random() < 0.7 else Fraction(0),
        by_size=bool(rng.random() < 0.5), star=bool(rng.random() < 0.3),
    )  # fmt: skip


def _hierarchy(rng: np.random.Generator, name: str) -> Hierarchy:
    n = int(rng.integers(1, 6))
    values = [f"v{i}" for i in range(n)]
    if rng.random() < 0.3:  # any partitions: a DAG
        partitions = [rng.integers(0, 3, n) for _ in range(int(rng.integers(0, 4)))]
        return Hierarchy.of(
            name, values, [(f"p{i}", _labels(p)) for i, p in enumerate(partitions)], chain=False
        )
    blocks, levels = np.arange(n), []
    for i in range(int(rng.integers(0, 4))):
        joined = rng.integers(0, n, n)
        blocks = joined[blocks]
        levels.append((f"c{i}", _labels(blocks)))
    return Hierarchy.of(name, values, levels)


def _labels(blocks: Any) -> list[str]:
    """Each block named after its first value, so that equal partitions have equal labels."""
    return [f"v{blocks.tolist().index(b)}" for b in blocks.tolist()]


def _column(rng: np.random.Generator, values: Any, n: int) -> list[str | None]:
    skewed = rng.integers(0, len(values), n) * rng.integers(0, 2, n)
    missing = rng.random(n) < (0.1 if rng.random() < 0.3 else 0)
    return [None if gone else str(values[i]) for i, gone in zip(skewed, missing, strict=True)]


def _rules(rng: np.random.Generator, disease: list[str | None]) -> tuple[Any, ...]:
    domain = sorted({v for v in disease if v is not None})
    rules: list[Any] = [SizeAtLeast(int(rng.integers(1, 5)))] if rng.random() < 0.8 else []
    missing = "value" if rng.random() < 0.3 else "out"
    counts = Counter(0 if v is None else domain.index(v) + 1 for v in disease)
    reference = tuple(counts[v] if v or missing == "value" else 0 for v in range(len(domain) + 1))
    some = (tuple(int(v) for v in rng.choice(len(domain) + 1, 2)),)
    kinds = [
        DistinctAtLeast("disease", int(rng.integers(1, 4))),
        ShareAtMost("disease", Fraction(int(rng.integers(1, 6)), int(rng.integers(5, 7)))),
        ShareAtMost("disease", Fraction(int(rng.integers(1, 4)), 5), (tuple(sorted(set(some[0]))),)),
        EntropyAtLeast("disease", Fraction(int(rng.integers(2, 7)), 2), missing),
        Recursive("disease", Fraction(int(rng.integers(1, 6)), 2), int(rng.integers(1, 4)), missing),
        Closeness("disease", Fraction(int(rng.integers(0, 5)), 10), reference,
                  equal_sets(len(domain)) if rng.random() < 0.5 else ordered_sets(len(domain)), missing),
        SharesWithin("disease", *_bounds(rng, len(domain)), bool(rng.random() < 0.5)),
    ]  # fmt: skip
    rules.extend(kinds[int(i)] for i in rng.choice(len(kinds), int(rng.integers(0, 3)), replace=False))
    return tuple(rules)


def _bounds(rng: np.random.Generator, n: int) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """The largest and the least share of each code."""
    most = [Fraction(int(x), 6) for x in rng.integers(1, 7, n + 1)]
    least = [Fraction(int(x), 12) for x in rng.integers(0, 4, n + 1)]
    return tuple(most), tuple(least)


def rich_case(seed: int) -> Case:
    """A random problem that many nodes satisfy and many do not, so that there are several minimal ones."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 20))
    attributes = [_rich_hierarchy(rng, f"q{a}") for a in range(int(rng.integers(2, 4)))]
    columns: list[list[str | None]] = [
        [h.values[int(i)] for i in rng.integers(0, len(h.values), n) * (rng.random(n) < 0.8)]
        for h in attributes
    ]
    disease: list[str | None] = [str(v) for v in rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])]
    rules: list[Any] = [SizeAtLeast(int(rng.integers(2, 4)))]
    if rng.random() < 0.7:
        share = ShareAtMost("disease", Fraction(3, 4))
        rules.append(DistinctAtLeast("disease", 2) if rng.random() < 0.7 else share)
    suppression = Fraction(int(rng.integers(0, 5)), 10)
    objective = str(rng.choice([name for name in OBJECTIVES if name != "non-uniform-entropy"]))
    return Case(
        attributes, columns, disease, tuple(rules), objective=objective, suppression=suppression,
        by_size=bool(rng.random() < 0.6), star=bool(rng.random() < 0.2),
    )  # fmt: skip


def _rich_hierarchy(rng: np.random.Generator, name: str) -> Hierarchy:
    values = [f"v{i}" for i in range(4)]
    pairs = ("pairs", ["x", "x", "y", "y"])
    if rng.random() < 0.4:
        others = [
            ("outer", ["x", "y", "y", "x"]),
            ("one", ["x", "x", "x", "y"]),
            ("last", ["a", "b", "x", "x"]),
        ]
        return Hierarchy.of(name, values, [pairs, *others[: int(rng.integers(1, 4))]], chain=False)
    return Hierarchy.of(name, values, [("first", ["x", "x", "c", "d"]), pairs][int(rng.integers(0, 2)) :])


def minimal_among(nodes: Nodes, numbers: Iterable[int]) -> list[int]:
    """The given nodes that have no other of them below, by height and then lexicographically."""
    above = np.zeros(nodes.lattice.n_nodes, dtype=np.uint8)
    result = []
    for number in sorted(numbers, key=lambda n: (nodes.heights[n], n)):
        if not above[number]:
            result.append(number)
            nodes.mark(above, number, 1, up=True)
    return result


def plain_binary_search(nodes: Nodes, satisfies: Callable[[int], bool]) -> int | None:
    """Binary search on height as it was published, which is wrong where satisfaction is not upward closed.

    The answer is the number of a node, the first of its height that satisfies, or None. It starts from the top.
    """
    top = nodes.lattice.maximal[-1]
    best = top if satisfies(top) else None
    low, high = 0, int(nodes.heights[top])
    while low < high:
        middle = (low + high) // 2
        of_height = np.flatnonzero(nodes.heights == middle).tolist()
        found = next((number for number in of_height if satisfies(number)), None)
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle
    return best


def on_paper(nodes: Nodes, number: int) -> tuple[int, bool]:
    """The rows suppressed at a node, and whether it satisfies as the literature has it.

    There, a node that suppresses every row satisfies; a publisher refuses that. Counted without shortcuts.
    """
    found = Evaluator(nodes.task, nodes.problem, nodes.lattice.allowed).check(nodes.lattice.places_of(number))
    everything = found.suppressed == nodes.task.summary.n_rows
    return found.suppressed, found.feasible or (everything and found.suppressed <= nodes.problem.limit)
