"""The compiled kernel and its numpy twin find the same at every node of random problems."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from maskwright.kernels import compiled
from maskwright.kernels.lattice import Checker, Problem
from maskwright.methods.lattice import Lattice
from maskwright.methods.objectives import build
from maskwright.methods.optimal_lattice import OptimalLattice
from tests.methods import brute
from tests.support import Rules, adult, summarise, task_of

pytestmark = pytest.mark.skipif(not compiled.available(), reason="the kernel was not compiled")


def problem_of(case: brute.Case, seed: int) -> tuple[Problem, Lattice]:
    summary = summarise(case.attributes, case.columns, {"disease": case.disease})
    task = task_of(summary, [Rules(rules=case.rules)], weights=case.weights, levels=case.levels)
    method = OptimalLattice(
        suppression=case.suppression,
        suppress="small-classes" if case.by_size else "failing-classes",
        suppressed_rows="star" if case.star else "drop",
    )
    lattice = Lattice.of(summary.attributes, case.levels)
    objective = build("information-loss", lattice, summary, {})
    return method.problem(task, lattice, objective), lattice


def same(problem: Problem, places: tuple[int, ...], fast: object, plain: object) -> None:
    a, b = fast.check(places), plain.check(places)  # type: ignore[attr-defined]
    if b.lost > problem.limit:  # hopeless: the kernel stops counting as soon as it knows
        assert not a.feasible
        assert problem.limit < a.lost <= b.lost
    else:
        assert a == b


@pytest.mark.parametrize("block", range(10))
def test_same_at_every_node(block: int) -> None:
    for seed in range(5000 + block * 100, 5000 + block * 100 + 100):
        case = brute.random_case(seed)
        problem, lattice = problem_of(case, seed)
        assert compiled.can_take(problem)
        fast, plain = compiled.CompiledChecker(problem), Checker(problem)
        for places in itertools.product(*(range(n) for n in lattice.shape)):
            same(problem, places, fast, plain)


def test_same_on_adult_with_and_without_stored_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.core.rules import DistinctAtLeast, SizeAtLeast

    summary = adult("occupation")
    rules = (SizeAtLeast(5), DistinctAtLeast("occupation", 5))
    task = task_of(summary, [Rules(rules=rules)])
    method = OptimalLattice(suppression="1", suppress="failing-classes")
    lattice = Lattice.of(summary.attributes)
    problem = method.problem(task, lattice, build("arx-loss", lattice, summary, {}))
    plain = Checker(problem)
    monkeypatch.setattr(compiled, "FUSED", 200)  # more segments, more snapshots
    stored = compiled.CompiledChecker(problem)
    monkeypatch.setattr(compiled, "MEMORY", 0)
    fresh = compiled.CompiledChecker(problem)
    rng = np.random.default_rng(1)
    for number in rng.integers(0, lattice.n_nodes, 40):
        places = tuple(int(p) for p in lattice.places(np.array([number]))[:, 0])
        same(problem, places, stored, plain)
        same(problem, places, fresh, plain)
