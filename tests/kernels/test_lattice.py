"""The compiled kernel and its numpy twin find the same at every node of random problems."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from maskwright.core.hierarchy import Hierarchy
from maskwright.core.rules import Closeness, DistinctAtLeast, SizeAtLeast
from maskwright.kernels import compiled
from maskwright.kernels.lattice import Checker, Problem
from maskwright.methods.lattice import Lattice
from maskwright.methods.objectives import build
from maskwright.methods.optimal_lattice import OptimalLattice
from tests.methods import brute
from tests.methods.test_lattice_search import solve
from tests.support import Rules, adult, equal_sets, summarise, task_of

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


@pytest.mark.parametrize("fused", [1, 6, 2048])  # how many columns become one: down to a segment per column
@pytest.mark.parametrize("block", range(4))
def test_same_at_every_node(block: int, fused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "FUSED", fused)
    for seed in range(5000 + block * 100, 5000 + block * 100 + 100):
        case = brute.random_case(seed)
        problem, lattice = problem_of(case, seed)
        assert compiled.can_take(problem)
        fast, plain = compiled.CompiledChecker(problem), Checker(problem)
        for places in itertools.product(*(range(n) for n in lattice.shape)):
            same(problem, places, fast, plain)


def test_same_with_several_rows_per_person() -> None:
    """Sizes count people, limits and costs count rows."""
    rng = np.random.default_rng(5)
    for seed in range(6000, 6100):
        problem, lattice = problem_of(brute.random_case(seed), seed)
        problem = replace(problem, rows=problem.sizes + rng.integers(0, 3, len(problem.sizes)))
        fast, plain = compiled.CompiledChecker(problem), Checker(problem)
        for places in itertools.product(*(range(n) for n in lattice.shape)):
            same(problem, places, fast, plain)


def test_products_beyond_64_bits_are_exact() -> None:
    """A closeness threshold with a huge denominator, on either side of the true distance."""
    summary = summarise([Hierarchy.of("q", ["x", "y"], [])], [list("xxxyyy")], {"s": list("aabbbb")})
    distance = Fraction(1, 3)  # of x: (2/3, 1/3) from (1/3, 2/3)
    for off, feasible in [(0, True), (Fraction(1, 10**15), True), (-Fraction(1, 10**15), False)]:
        rule = Closeness("s", distance + off, (0, 2, 4), equal_sets(2))
        task = task_of(summary, [Rules(rules=(rule,))])
        lattice = Lattice.of(summary.attributes)
        problem = OptimalLattice().problem(task, lattice, build("precision", lattice, summary, {}))
        for checker in (compiled.CompiledChecker(problem), Checker(problem)):
            assert checker.check((0,)).feasible is feasible


def test_a_level_with_hundreds_of_coarsenings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of 23 values: 200 partitions that do not refine each other, all directly above the exact values."""
    values = [f"v{i}" for i in range(23)]
    pairs = list(itertools.combinations(range(23), 2))[:200]
    levels = [(f"p{i}{j}", [values[i] if v == j else values[v] for v in range(23)]) for i, j in pairs]
    hierarchy = Hierarchy.of("q", values, levels, chain=False)
    assert len(hierarchy.covers[0]) == 200
    column = values + [v for v in values if v not in ("v0", "v9")]
    task = task_of(summarise([hierarchy], [column]), [Rules(rules=(SizeAtLeast(2),))])
    found = OptimalLattice().group(task)
    assert found.search["levels"] == {"q": "p09"}


def test_the_search_is_the_same_without_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(7000, 7060):
        case = brute.random_case(seed)
        fast = solve(case)
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "available", lambda: False)
            plain = solve(case)
        if fast is None or plain is None:
            assert fast is plain
            continue
        assert (fast.levels, fast.search["score"]) == (plain.levels, plain.search["score"])


def test_same_on_adult_with_and_without_stored_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
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
