"""The optimum equals brute force over all nodes: monotone or not, chains or DAGs, every option."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from maskwright.domain.grouping import Grouping
from maskwright.domain.model import Model
from maskwright.errors import PolicyNotMet
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.models import MODELS
from tests.amounts import amount, repeated
from tests.oracles.lattice_cases import Case, random_case
from tests.support import MergeSafe, Odd, Rules, summarise, task_of


def solve(case: Case, known: bool = True) -> Grouping | None:
    summary = summarise(case.attributes, case.columns, {"disease": case.disease})
    kind = MergeSafe if known else Rules
    models: list[Model] = [kind(rules=case.rules, known=known)] + ([Odd()] if case.odd else [])
    try:
        return OptimalLattice(**case.options()).group(
            task_of(summary, models, weights=case.weights, levels=case.levels)
        )
    except PolicyNotMet:
        return None


def value(case: Case, score: Any) -> float:
    """The brute-force score as the objective reports it."""
    if case.objective == "arx-loss":
        weights = [case.weights.get(h.attribute, Fraction(1)) for h in case.attributes]
        scale = math.lcm(*(w.denominator for w in weights))
        return float(score) ** (1 / float(sum(weights) * scale)) - 1
    return float(score)


@pytest.mark.parametrize("block", repeated(20))
@pytest.mark.parametrize("known", [True, False])
def test_optimum_equals_brute_force(block: int, known: bool) -> None:
    feasible = 0
    for seed in range(block * 100, block * 100 + 100):
        case = random_case(seed)
        expected, got = case.optimum, solve(case, known)
        if expected is None:
            assert got is None, seed
            continue
        assert got is not None, seed
        score, node, suppressed = expected.score, expected.node, expected.suppressed
        feasible += 1
        assert float(Fraction(got.search["score"])) == pytest.approx(value(case, score), abs=1e-4), seed
        assert got.search["optimal"]
        if case.objective != "non-uniform-entropy":  # its brute-force ties are floats
            assert (got.levels, got.suppressed_rows) == (node, suppressed), seed
    assert feasible > 20


def test_average_risk_drops_the_smallest_classes_first() -> None:
    """Failing classes are suppressed: those below k, and then as few as possible, the smallest first."""
    dropped = [_average_risk(seed) for seed in range(amount(150, 3000))]
    assert dropped.count(True) > 5


def _average_risk(seed: int) -> bool:
    """Compare with all nodes; whether the best of them suppresses more than k-anonymity does."""
    case = random_case(seed)
    k, most = seed % 3 + 1, Fraction(1, seed % 4 + 2)
    summary = summarise(case.attributes, case.columns, {})
    models: list[Model] = [MODELS["k-anonymity"](k=k), MODELS["average-risk"](max=most)]
    method = OptimalLattice(
        objective="discernibility", suppression=case.suppression, suppress="failing-classes"
    )
    rows, limit, scores = summary.n_rows, int(case.suppression * summary.n_rows), []
    for node in itertools.product(*(range(len(h.levels)) for h in case.attributes)):
        labels = zip(
            *([h.levels[n].blocks[0 if v is None else h.values.index(v) + 1] for v in column]
              for h, column, n in zip(case.attributes, case.columns, node, strict=True)),
            strict=True,
        )  # fmt: skip
        large = sorted(size for size in Counter(labels).values() if size >= k)
        kept = next(large[i:] for i in range(len(large) + 1) if len(large) - i <= most * sum(large[i:]))
        if kept and rows - sum(kept) <= limit:
            score = sum(size**2 for size in kept) + (rows - sum(kept)) * rows
            scores.append((score, len(kept) < len(large)))
    try:
        found = method.group(task_of(summary, models))
    except PolicyNotMet:
        assert not scores
        return False
    assert Fraction(found.search["score"]) == min(scores)[0]
    return min(scores)[1]
