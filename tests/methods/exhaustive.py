"""Every node of a random problem, straight from the definitions: which satisfy, which are minimal, which are lowest."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Task
from maskwright.domain.model import Model
from maskwright.domain.rules import DistinctAtLeast, ShareAtMost, SizeAtLeast
from maskwright.methods._lattice.node_evaluation import Evaluator
from maskwright.methods._lattice.nodes import Nodes
from tests.methods import brute
from tests.support import MergeSafe, Monotone, Odd, Rules, summarise, task_of

Node = tuple[int, ...]


@dataclass
class Exhaustive:
    """All nodes of a case, evaluated one by one with code that shares nothing with the searches."""

    case: brute.Case

    @cached_property
    def satisfying(self) -> dict[Node, tuple[Any, int]]:
        """Node → (score, suppressed rows)."""
        choices = [self.case.levels.get(h.attribute, range(len(h.levels))) for h in self.case.attributes]
        found = ((node, brute.evaluate(self.case, node)) for node in itertools.product(*choices))
        return {node: result for node, result in found if result is not None}

    def below(self, a: Node, b: Node) -> bool:
        """Is a another node, and at least as fine as b in every attribute?"""
        pairs = zip(self.case.attributes, a, b, strict=True)
        return a != b and all(bool(h.refines[x, y]) for h, x, y in pairs)

    def height(self, node: Node) -> int:
        """Longest paths, counted step by step."""
        return sum(_longest(h, level) for h, level in zip(self.case.attributes, node, strict=True))

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
        choices = [self.case.levels.get(h.attribute, range(len(h.levels))) for h in self.case.attributes]
        others = [n for n in itertools.product(*choices) if n not in self.satisfying]
        return not any(self.below(m, n) for n in others for m in self.satisfying)

    def best(self, among: set[Node]) -> Node:
        return min(among, key=lambda n: (self.satisfying[n][0], n))

    def task(self, known: bool = True) -> Task:
        """The case as a task; `known`: the models tell what they are made of."""
        case = self.case
        summary = summarise(case.attributes, case.columns, {"disease": case.disease})
        simple = all(isinstance(rule, SizeAtLeast | DistinctAtLeast) for rule in case.rules)
        kind = Rules if not known else Monotone if simple else MergeSafe
        models: list[Model] = [kind(rules=case.rules, known=known)] + ([Odd()] if case.odd else [])
        return task_of(summary, models, weights=case.weights, levels=case.levels)

    def options(self) -> dict[str, Any]:
        return {
            "objective": self.case.objective,
            "suppression": self.case.suppression,
            "suppress": "small-classes" if self.case.by_size else "failing-classes",
            "suppressed_rows": "star" if self.case.star else "drop",
        }


def _longest(hierarchy: Any, level: int) -> int:
    finer = [i for i in range(len(hierarchy.levels)) if i != level and hierarchy.refines[i, level]]
    return 1 + max(_longest(hierarchy, i) for i in finer) if finer else 0


def rich_case(seed: int) -> brute.Case:
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
    objective = str(rng.choice([name for name in brute.OBJECTIVES if name != "non-uniform-entropy"]))
    return brute.Case(
        attributes, columns, disease, tuple(rules), False, objective, {}, {}, suppression,
        bool(rng.random() < 0.6), bool(rng.random() < 0.2),
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
