"""A lattice search straight from the definitions: every node, every row, fractions. Shares nothing with ours."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.rules import (
    Closeness,
    DistinctAtLeast,
    EntropyAtLeast,
    Recursive,
    ShareAtMost,
    SizeAtLeast,
)
from tests.support import equal_sets, ordered_sets, passes

OBJECTIVES = ("information-loss", "arx-loss", "arx-loss-mean", "precision", "non-uniform-entropy", "discernibility",
              "average-class-size", "height")  # fmt: skip


@dataclass
class Case:
    attributes: list[Hierarchy]
    columns: list[list[str | None]]
    disease: list[str | None]
    rules: tuple[Any, ...]
    odd: bool  # also ask for odd class sizes, which is not monotone in any sense
    objective: str
    weights: dict[str, Fraction]
    levels: dict[str, list[int]]
    suppression: Fraction
    by_size: bool
    star: bool


def random_case(seed: int) -> Case:
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
        str(rng.choice(OBJECTIVES)), weights, levels,
        Fraction(int(rng.integers(0, 11)), 10) if rng.random() < 0.7 else Fraction(0),
        bool(rng.random() < 0.5), bool(rng.random() < 0.3),
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
    ]  # fmt: skip
    rules.extend(kinds[int(i)] for i in rng.choice(len(kinds), int(rng.integers(0, 3)), replace=False))
    return tuple(rules)


def best(case: Case) -> tuple[Any, tuple[int, ...], int] | None:
    """(score, levels, suppressed rows) of the best node, or None."""
    choices = [case.levels.get(h.attribute, list(range(len(h.levels)))) for h in case.attributes]
    found = []
    for node in itertools.product(*choices):
        result = evaluate(case, node)
        if result is not None:
            found.append((result[0], node, result[1]))
    return min(found, key=lambda f: (f[0], f[1]), default=None)


def evaluate(case: Case, node: tuple[int, ...]) -> tuple[Any, int] | None:
    """(comparable score, suppressed rows) of a node, or None when it is not feasible."""
    n = len(case.disease)
    classes = defaultdict(list)
    for i in range(n):
        label = tuple(
            int(h.levels[level].blocks[_code(h, column[i])])
            for h, column, level in zip(case.attributes, case.columns, node, strict=True)
        )
        classes[label].append(i)
    least = max((r.k for r in case.rules if isinstance(r, SizeAtLeast)), default=1)
    kept, gone = [], []
    for members in classes.values():
        drop = len(members) < least if case.by_size else not _ok(case, members)
        (gone if drop else kept).append(members)
    rows_gone = [i for members in gone for i in members]
    published = kept + ([rows_gone] if case.star and rows_gone else [])
    if not kept or len(rows_gone) > case.suppression * n or not all(_ok(case, m) for m in published):
        return None
    return _score(case, node, kept, rows_gone), len(rows_gone)


def _code(hierarchy: Hierarchy, value: str | None) -> int:
    return 0 if value is None else hierarchy.values.index(value) + 1


def _ok(case: Case, members: list[int]) -> bool:
    domain = sorted({v for v in case.disease if v is not None})
    counts = Counter(0 if case.disease[i] is None else domain.index(case.disease[i]) + 1 for i in members)
    if case.odd and len(members) % 2 == 0:
        return False
    return all(passes(rule, len(members), counts) for rule in case.rules)


def _score(case: Case, node: tuple[int, ...], kept: list[list[int]], gone: list[int]) -> Any:
    n = len(case.disease)
    weights = [case.weights.get(h.attribute, Fraction(1)) for h in case.attributes]
    if case.objective == "discernibility":
        return sum(len(m) ** 2 for m in kept) + len(gone) * n
    if case.objective == "average-class-size":
        return Fraction(n, len(kept) + (len(gone) > 0))
    if case.objective == "height":
        return sum(
            w * int(h.heights[level]) for w, h, level in zip(weights, case.attributes, node, strict=True)
        )
    losses = [_loss(case, a, node[a], gone) for a in range(len(node))]
    if case.objective == "non-uniform-entropy":
        return round(float(sum(float(w) * x for w, x in zip(weights, losses, strict=True))), 4)
    total = sum(weights)
    if case.objective == "arx-loss":
        scale = math.lcm(*(w.denominator for w in weights))
        return math.prod((1 + x) ** int(w * scale) for w, x in zip(weights, losses, strict=True))
    return sum(w / total * x for w, x in zip(weights, losses, strict=True))


def _loss(case: Case, a: int, number: int, gone: list[int]) -> Any:
    """The mean loss of one attribute (entropy: its sum in bits)."""
    h, column, n = case.attributes[a], case.columns[a], len(case.disease)
    level = h.levels[number]
    dropped = set(gone)
    if case.objective == "non-uniform-entropy":
        blocks = [int(level.blocks[_code(h, v)]) for v in column]
        here, exact = Counter(blocks), Counter(column)
        return sum(math.log2((n if i in dropped else here[blocks[i]]) / exact[column[i]]) for i in range(n))
    total = Fraction(0)
    for i, value in enumerate(column):
        if case.objective == "precision":
            total += 1 if i in dropped else Fraction(int(h.heights[number]), h.height)
        elif len(h.values) > 1:
            block = level.blocks[_code(h, value)]
            covers = sum(1 for v in h.values if level.blocks[_code(h, v)] == block)
            total += 1 if i in dropped else Fraction(max(covers, 1) - 1, len(h.values) - 1)
    return total / n
