"""The optimum equals brute force over all nodes: monotone or not, chains or DAGs, every option."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from maskwright.domain.grouping import Grouping
from maskwright.domain.model import Model
from maskwright.errors import PolicyNotMet
from maskwright.methods.optimal_lattice import OptimalLattice
from tests.amounts import repeated
from tests.methods import brute
from tests.support import MergeSafe, Odd, Rules, summarise, task_of


def solve(case: brute.Case, known: bool = True) -> Grouping | None:
    summary = summarise(case.attributes, case.columns, {"disease": case.disease})
    kind = MergeSafe if known else Rules
    models: list[Model] = [kind(rules=case.rules, known=known)] + ([Odd()] if case.odd else [])
    method = OptimalLattice(
        objective=case.objective,
        suppression=case.suppression,
        suppress="small-classes" if case.by_size else "failing-classes",
        suppressed_rows="star" if case.star else "drop",
    )
    try:
        return method.group(task_of(summary, models, weights=case.weights, levels=case.levels))
    except PolicyNotMet:
        return None


def value(case: brute.Case, score: Any) -> float:
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
        case = brute.random_case(seed)
        expected, got = brute.best(case), solve(case, known)
        if expected is None:
            assert got is None, seed
            continue
        assert got is not None, seed
        score, node, suppressed = expected
        feasible += 1
        assert float(Fraction(got.search["score"])) == pytest.approx(value(case, score), abs=1e-4), seed
        assert got.search["optimal"]
        if case.objective != "non-uniform-entropy":  # its brute-force ties are floats
            assert (got.levels, got.suppressed_rows) == (node, suppressed), seed
    assert feasible > 20
