"""The compiled kernel and its numpy twin find the same at every node of random problems."""

from __future__ import annotations

import itertools
import sys
import weakref
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.rules import Closeness, DistinctAtLeast, EntropyAtLeast, Rule, SizeAtLeast
from maskwright.kernels import compiled
from maskwright.kernels.node_check import Checker, NodeProblem, rows_by_code
from maskwright.methods._lattice.lattice import Lattice
from maskwright.methods._lattice.objectives import build_objective
from maskwright.methods.optimal_lattice import OptimalLattice
from tests.amounts import repeated
from tests.methods.test_lattice_search import solve
from tests.oracles.lattice_cases import Case, random_case
from tests.support import Rules, adult, equal_sets, summarise, task_of

pytestmark = pytest.mark.skipif(not compiled.kernel_available(), reason="the kernel was not compiled")


def problem_of(case: Case, seed: int) -> tuple[NodeProblem, Lattice]:
    summary = summarise(case.attributes, case.columns, {"disease": case.disease})
    task = task_of(summary, [Rules(rules=case.rules)], weights=case.weights, levels=case.levels)
    method = OptimalLattice(
        suppression=case.suppression,
        suppress="small-classes" if case.by_size else "failing-classes",
        suppressed_rows="star" if case.star else "drop",
    )
    lattice = Lattice.of(summary.attributes, case.levels)
    objective = build_objective("information-loss", lattice, summary, {})
    return method.problem(task, lattice, objective), lattice


def same(problem: NodeProblem, places: tuple[int, ...], fast: object, plain: object) -> None:
    a, b = fast.check(places), plain.check(places)  # type: ignore[attr-defined]
    if b.lost > problem.limit:  # hopeless: the kernel stops counting as soon as it knows
        assert not a.feasible
        assert problem.limit < a.lost <= b.lost
    else:
        assert a == b


@pytest.mark.parametrize("fused", [1, 6, 2048])  # how many columns become one: down to a segment per column
@pytest.mark.parametrize("block", repeated(4))
def test_same_at_every_node(block: int, fused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "FUSED", fused)
    for seed in range(5000 + block * 100, 5000 + block * 100 + 100):
        case = random_case(seed)
        problem, lattice = problem_of(case, seed)
        assert compiled.can_take(problem)
        fast, plain = compiled.CompiledChecker(problem), Checker(problem)
        for places in itertools.product(*(range(n) for n in lattice.shape)):
            same(problem, places, fast, plain)


def test_same_with_several_rows_per_person() -> None:
    """Sizes count people, limits and costs count rows."""
    rng = np.random.default_rng(5)
    for seed in range(6000, 6100):
        problem, lattice = problem_of(random_case(seed), seed)
        problem = replace(problem, rows=problem.sizes + rng.integers(0, 3, len(problem.sizes)))
        fast, plain = compiled.CompiledChecker(problem), Checker(problem)
        for places in itertools.product(*(range(n) for n in lattice.shape)):
            same(problem, places, fast, plain)


def test_values_of_several_attributes_stay_apart() -> None:
    """Different values are kept as bits, which two attributes must not share."""
    rng = np.random.default_rng(11)
    hierarchies = [halved(f"q{a}", 4) for a in range(3)]
    rules = (SizeAtLeast(2), DistinctAtLeast("s", 2), DistinctAtLeast("t", 3))
    for _ in range(20):
        columns = [[str(v) for v in rng.integers(0, 4, 60)] for _ in hierarchies]
        held = {name: [f"v{v}" for v in rng.integers(0, n, 60)] for name, n in (("s", 6), ("t", 3))}
        task = task_of(summarise(hierarchies, columns, held), [Rules(rules=rules)])
        lattice = Lattice.of(task.summary.attributes)
        objective = build_objective("information-loss", lattice, task.summary, {})
        for suppress in ("small-classes", "failing-classes"):
            method = OptimalLattice(suppression="1", suppress=suppress)
            problem = method.problem(task, lattice, objective)
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
        problem = OptimalLattice().problem(task, lattice, build_objective("precision", lattice, summary, {}))
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
        case = random_case(seed)
        fast = solve(case)
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "kernel_available", lambda: False)
            plain = solve(case)
        if fast is None or plain is None:
            assert fast is plain
            continue
        assert (fast.levels, fast.search["score"]) == (plain.levels, plain.search["score"])


@pytest.mark.parametrize("objective", ["arx-loss", "discernibility"])
@pytest.mark.parametrize(
    "rule", [DistinctAtLeast("occupation", 5), EntropyAtLeast("occupation", Fraction(3))]
)
@pytest.mark.parametrize("people", [1, 2])
def test_same_on_adult_with_and_without_stored_snapshots(
    objective: str, rule: Rule, people: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here classes are too many for a table with a place for every key."""
    summary = adult("occupation")
    task = task_of(summary, [Rules(rules=(SizeAtLeast(5), rule))])
    method = OptimalLattice(suppression="1", suppress="failing-classes")
    lattice = Lattice.of(summary.attributes)
    problem = method.problem(task, lattice, build_objective(objective, lattice, summary, {}))
    problem = replace(problem, rows=problem.sizes * people, limit=problem.limit * people)
    plain = Checker(problem)
    monkeypatch.setattr(compiled, "FUSED", 200)  # more segments, more snapshots
    stored = compiled.CompiledChecker(problem)
    monkeypatch.setattr(compiled, "MEMORY", 0)
    fresh = compiled.CompiledChecker(problem)
    rng = np.random.default_rng(1)
    for number in [0, *rng.integers(0, lattice.n_nodes, 20)]:
        places = tuple(int(p) for p in lattice.level_indices(np.array([number]))[:, 0])
        for _ in range(5):  # from the tuples themselves, then from snapshots
            same(problem, places, stored, plain)
            same(problem, places, fresh, plain)


def halved(name: str, n: int) -> Hierarchy:
    """Values 0..n-1, in blocks of 2, 4, …, and all alike."""
    values = [str(v) for v in range(n)]
    widths = [2**i for i in range(1, n.bit_length()) if 2**i < n]
    return Hierarchy.of(name, values, [(f"by{w}", [f"{v // w}" for v in range(n)]) for w in widths])


@pytest.mark.parametrize("k", [2, 3, 8])
def test_pairs_of_columns_discard_only_nodes_that_fail(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing may be suppressed: the same optimum as without looking at pairs first."""
    counted = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        hierarchies = [halved(f"q{a}", n) for a, n in enumerate((9, 6, 5, 4))]
        columns = [
            [str(min(int(v), len(h.values) - 1)) for v in rng.exponential(1.5, 400)] for h in hierarchies
        ]
        task = task_of(summarise(hierarchies, columns), [Rules(rules=(SizeAtLeast(k),))])
        seen: list[compiled.CompiledChecker] = []
        init = compiled.CompiledChecker.__init__
        with monkeypatch.context() as patch:
            patch.setattr(
                compiled.CompiledChecker,
                "__init__",
                lambda self, p, i=init, s=seen: s.append(self) or i(self, p),
            )
            fast = OptimalLattice().group(task)
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "kernel_available", lambda: False)
            plain = OptimalLattice().group(task)
        assert (fast.levels, fast.search["score"]) == (plain.levels, plain.search["score"])
        counted += compiled.compiled_kernel().stats(seen[0].handle)[3]
    assert counted > 10


def test_a_checker_is_freed_with_its_last_reference() -> None:
    problem, lattice = problem_of(random_case(5000), 5000)
    before = sys.getrefcount(problem.rules)
    checker = compiled.CompiledChecker(problem)
    checker.check((0,) * len(lattice.shape))
    alive = weakref.ref(checker)
    del checker
    assert alive() is None
    after = sys.getrefcount(problem.rules)  # which the kernel's side holds, too
    assert after == before


def test_rows_by_code(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    codes = np.array([rng.integers(0, 7, 1001), rng.integers(0, 2, 1001)], dtype=np.int32)
    rows = rng.integers(1, 2**40, 1001)
    fast = rows_by_code(codes, rows, (9, 2))
    monkeypatch.setattr(compiled, "kernel_available", lambda: False)
    for a, b in zip(fast, rows_by_code(codes, rows, (9, 2)), strict=True):
        assert a.dtype == b.dtype == np.int64
        assert a.tolist() == b.tolist()
    with pytest.raises(ValueError, match="beyond the width"):
        compiled.code_marginals(codes, rows, (6, 2))
    with pytest.raises(ValueError, match="beyond the width"):
        compiled.code_marginals(-codes, None, (9, 2))
