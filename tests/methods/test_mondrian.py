"""Mondrian against the plain definition, its twin, its promises, and Lemma A by enumeration."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from maskwright.domain.hierarchy import Hierarchy
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.kernels import partition
from maskwright.kernels.tuple_orders import sorted_by
from maskwright.methods._rows.axes import axes_of
from maskwright.methods._rows.group_labels import label_covers
from maskwright.methods.mondrian import EvenPlan, Mondrian, even_plan
from maskwright.models import MODELS
from maskwright.worlds import reference_methods
from maskwright.worlds.sampling.possible_worlds import deterministic_likelihood, posterior_beliefs
from tests.amounts import repeated
from tests.methods import row_tables as rt


@pytest.mark.parametrize("block", repeated(10))
def test_strict_and_relaxed_are_the_plain_definition(block: int) -> None:
    rng = np.random.default_rng(block)
    cuts = 0
    for _ in range(150):
        qi, sa, table = rt.random_table(rng)
        models, task = rt.random_models(rng), table.task([])
        strict, least = bool(rng.random() < 0.5), int(rng.integers(0, 3))
        policy = str(rng.choice(["widest", "fallback"]))
        side = str(rng.choice(["lt", "le"]))
        plain = reference_methods.ReferenceMondrian(strict, policy, side, least)  # type: ignore[arg-type]
        passes = table.test(models)
        method = Mondrian(
            cut="strict" if strict else "relaxed",
            dimensions=policy,
            choose="range",
            side=side,
            min_child=least,
        )
        found, _ = method.partition(task, table.rows, table.numbers, table.requirement(models), None)
        assert rt.groups_of(found) == rt.as_sets(plain.group(qi, sa, passes))
        cuts += found.n_groups - 1
    assert cuts > 100


@pytest.mark.parametrize("seed", repeated(60))
def test_the_compiled_kernel_and_its_twin_agree(seed: int) -> None:
    if partition.compiled is None:
        pytest.skip("no compiled kernel")
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 200)), int(rng.integers(1, 12))
    sizes = rng.choice([2, 3, 10, 100, 5000], d)
    codes = np.stack([rng.integers(0, s, n) for s in sizes], axis=1).astype(np.int32)
    order = np.sort(rng.permutation(n)[: int(rng.integers(1, n + 1))]).astype(np.int32)
    marks = np.unique(np.concatenate([[0, len(order)], rng.integers(0, len(order) + 1, 5)]))
    lo, hi = marks[:-1].copy(), marks[1:].copy()
    for a, b in zip(
        partition.segment_ranges(codes, order, lo, hi),
        partition.segment_ranges(codes, order, lo, hi, None),
        strict=True,
    ):
        assert np.array_equal(a, b)
    wanted = [(int(rng.integers(0, d)), int(rng.choice([0, 62, 124]))) for _ in range(3)]
    for a, b in zip(
        *(partition.segment_spans(codes, order, lo, hi, wanted, k) for k in (partition.compiled, None)),
        strict=True,
    ):
        assert np.array_equal(a, b)
    dims = rng.integers(0, d, len(lo)).astype(np.int32)
    for mode, parts in (("even", 2), ("even", 3), ("even", 7), ("lt", 2), ("le", 2)):
        ours = partition.cut_segments(codes, order, lo, hi, dims, mode, parts)  # type: ignore[arg-type]
        theirs = partition.cut_segments(codes, order, lo, hi, dims, mode, parts, kernel=None)  # type: ignore[arg-type]
        assert np.array_equal(ours[0], theirs[0])
        assert np.array_equal(ours[1], theirs[1])
    hierarchies = [_hierarchy(f"q{a}", int(s), rng) for a, s in enumerate(sizes)]
    table = rt.build([[None] * d], {}, hierarchies)
    tables = label_covers(axes_of(table.summary), {}, "hierarchy", {"q0": Fraction(3)})
    cell = int(rng.integers(1, 9))
    for parts, run in ((2, 0), (3, 0), (2, cell), (3, cell)):
        begin, end = (lo, hi) if not run else (lo, lo + (hi - lo) // run * run)
        ours_, theirs_ = (
            partition.choose_dimensions(codes, order, begin, end, parts, tables, run, kernel=k)
            for k in (partition.compiled, None)
        )
        assert np.array_equal(ours_, theirs_)
        ours, theirs = (
            partition.cut_segments(codes, order, begin, end, dims, "even", parts, run, kernel=k)
            for k in (partition.compiled, None)
        )
        assert np.array_equal(ours[0], theirs[0])
        assert np.array_equal(ours[1], theirs[1])
    values = rng.integers(0, 6, n).astype(np.int32)
    a, b = (
        partition.count_values(values, tuple("abcde"), order, lo, hi, kernel=k)
        for k in (partition.compiled, None)
    )
    assert np.array_equal(a.start, b.start)
    assert np.array_equal(a.codes, b.codes)
    assert np.array_equal(a.counts, b.counts)
    keys = rng.integers(0, 9, n).astype(np.int32)
    assert np.array_equal(sorted_by(keys, 9), sorted_by(keys, 9, None))


def _hierarchy(name: str, size: int, rng: np.random.Generator) -> Hierarchy:
    values = [str(v) for v in range(size - 1)] or ["0"]
    levels = [("pairs", [str(int(v) // 2 * 2) + "+" for v in values])] if rng.random() < 0.6 else []
    return Hierarchy.of(name, values, levels, ordered=bool(rng.random() < 0.5))


def test_large_groups_are_judged_by_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second attribute cuts the loss in half, the first by nothing; rows far apart are looked at, too."""
    monkeypatch.setattr(partition, "SAMPLE", 8)
    codes = np.array([[1 + i % 2, 1 + i // 50] for i in range(100)], dtype=np.int32)
    hierarchies = [Hierarchy.of("a", ["x", "y"], []), Hierarchy.of("b", ["x", "y"], [])]
    table = rt.build([["x", "x"]], {}, hierarchies)
    tables = label_covers(axes_of(table.summary), {}, "hierarchy", {"b": Fraction(2)})
    order, whole = np.arange(100, dtype=np.int32), (np.array([0]), np.array([100]))
    assert partition.choose_dimensions(codes, order, *whole, 2, tables).tolist() == [1]
    codes[:, 1] = 1
    codes[99, 1] = 2  # no sampled row differs in b, and none at all in a
    codes[:, 0] = 1
    assert partition.choose_dimensions(codes, order, *whole, 2, tables).tolist() == [1]


def test_large_groups_of_cells_are_judged_by_a_sample_of_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell is of one half of a; in the middle of the order lies what only b tells apart."""
    monkeypatch.setattr(partition, "SAMPLE", 8)
    monkeypatch.setattr(partition, "RUN", 4)
    codes = np.array([[1 + i // 50 % 2, 1 + i % 50 // 25] for i in range(300)], dtype=np.int32)
    hierarchies = [Hierarchy.of("a", ["x", "y"], []), Hierarchy.of("b", ["x", "y"], [])]
    tables = label_covers(axes_of(rt.build([["x", "x"]], {}, hierarchies).summary), {}, "hierarchy", {})
    order = np.arange(300, dtype=np.int32)
    lo, hi = np.array([0, 100, 200]), np.array([100, 200, 300])
    for cell, dims in ((0, [0, 0, 0]), (50, [1, 1, 1]), (25, [-1, -1, -1])):
        assert partition.choose_dimensions(codes, order, lo, hi, 2, tables, cell).tolist() == dims
    lo, hi = np.array([0, 100]), np.array([100, 150])  # two cells and one cell of fifty rows
    assert partition.choose_dimensions(codes, order, lo, hi, 2, tables, 50).tolist() == [1, 1]


def test_a_plan_of_crossed_cuts_goes_on_where_no_row_is_dropped() -> None:
    for n, least in itertools.product(range(1, 400), (2, 3, 5)):
        for splits in ("mixed", "halves"):
            plan = even_plan(n, least, splits)  # type: ignore[arg-type]
            further = plan.crossed()
            assert further.parts[: len(plan.parts)] == plan.parts
            assert further.dropped == plan.dropped
            assert int(np.prod(further.parts)) * further.leaf == n - plan.dropped
            assert further.leaf % 2
            assert further.leaf % 3
    assert EvenPlan((2, 2), 12, 1).crossed() == EvenPlan((2, 2, 2, 2, 3), 1, 1)


@pytest.mark.parametrize("least", [2, 5])
def test_crossed_cuts_refine_what_they_cross(least: int) -> None:
    """The same draws, the same first cuts: no group of crossed cuts lies in two groups without them."""
    table = rt.adult_rows("occupation")
    for models in (
        [MODELS["simple-l-diversity"](l=4, attribute="occupation")],
        [MODELS["t-closeness"](t="1/3", attribute="occupation")],
    ):
        plain, crossed = (
            Mondrian(dimensions=d, least=least).group(table.task(models, 3)) for d in ("widest", "crossed")
        )
        assert crossed.search["crossings"] > 10
        assert crossed.dropped_rows == plain.dropped_rows
        assert crossed.classes.n > 2 * plain.classes.n
        # rows of one tuple may lie in several groups: those that lie in one tell which group is inside which
        inside = dict[int, set[int]]()
        outer = dict[int, set[int]]()
        for t, g in zip(plain.allocation.tuples.tolist(), plain.allocation.groups.tolist(), strict=True):
            outer.setdefault(t, set()).add(g)
        for t, g in zip(crossed.allocation.tuples.tolist(), crossed.allocation.groups.tolist(), strict=True):
            if g >= 0:
                inside[g] = inside[g] & outer[t] if g in inside else outer[t]
        assert all(inside.values())


@pytest.mark.parametrize("dimensions", ["crossed", "widest"])
def test_ancestors_are_the_groups_that_were_cut(dimensions: str) -> None:
    """Whatever was cut was cut into parts of equal size, refused cuts or not; and nobody is lost on the way."""
    table = rt.adult_rows("occupation")
    models = [MODELS["simple-l-diversity"](l=3, attribute="occupation")]
    found = Mondrian(dimensions=dimensions).group(table.task(models))
    assert found.ancestors is not None
    tree, sizes = found.ancestors, found.classes.sizes
    held = tree.sums(sizes)
    held[: tree.n] = sizes
    parts = Counter(tree.parent[tree.parent >= 0].tolist())
    assert set(parts.values()) == {2, 3}
    for node, parent in enumerate(tree.parent.tolist()):
        if parent >= 0:
            assert held[node] * parts[parent] == held[parent]
    assert held[tree.parent == -1].tolist() == [sizes.sum()]


def test_plans_are_equal_parts() -> None:
    for n, least in itertools.product([*range(1, 130), 999, 30162, 10**6], [1, 2, 3, 5, 10, 50]):
        for splits in ("mixed", "halves"):
            plan = even_plan(n, least, splits)  # type: ignore[arg-type]
            size = n - plan.dropped
            for parts in plan.parts:
                assert size % parts == 0
                size //= parts
            assert size == plan.leaf
            assert size >= least or not plan.parts
            assert plan.dropped < max(1, n / max(1, least))
    assert even_plan(30162, 5, "halves") == EvenPlan((2,) * 12, 7, 30162 % 4096)
    assert even_plan(30162, 5, "mixed").dropped < 30162 // 100


def equal_parts(qi: Any, sa: Any, passes: Any, plan: EvenPlan, table: Any) -> list[list[int]]:
    """Balanced cuts by brute force; the dimension as the method chooses it, from quasi-identifiers."""
    codes = np.array(
        [[table.summary.codes[a][t] for a in range(len(qi[0]))] for t in table.rows.tuples], dtype=np.int32
    )
    tables = label_covers(axes_of(table.summary), {}, "hierarchy", {})

    def split(rows: list[int], depth: int) -> list[list[int]]:
        if depth == len(plan.parts):
            return [rows]
        order, n, parts = np.array(sorted(rows), dtype=np.int32), len(rows), plan.parts[depth]
        dim = int(
            partition.choose_dimensions(
                codes, order, np.array([0]), np.array([n]), parts, tables, kernel=None
            )[0]
        )
        if dim < 0:
            return [rows]
        ranked = sorted(rows, key=lambda i: (codes[i, dim], i))
        children = [ranked[j * n // parts : (j + 1) * n // parts] for j in range(parts)]
        if not all(passes(Counter(sa[i] for i in child)) for child in children):
            return [rows]
        return [group for child in children for group in split(child, depth + 1)]

    return split(list(range(len(qi))), 0)


@pytest.mark.parametrize("seed", repeated(40))
def test_lemma_a_belief_is_the_group_fraction(seed: int) -> None:
    """For any model, halves and thirds: who knows the method believes what the group shows, exactly."""
    rng = np.random.default_rng(seed)
    plan = [EvenPlan((2, 2), 2, 0), EvenPlan((3, 2), 1, 0), EvenPlan((2, 3), 1, 0), EvenPlan((2,), 4, 0)][
        seed % 4
    ]
    n = int(np.prod(plan.parts)) * plan.leaf
    qi = [[int(v) for v in rng.integers(0, 5, 2)] for _ in range(n)]
    sa = [str(v) for v in rng.choice(list("Pab"), n, p=[0.5, 0.3, 0.2])]
    table = rt.build(qi, {"s": sa}, domains={"s": ("P", "a", "b", "c")})
    models, task = rt.random_models(rng), table.task([])
    passes = table.test(models)
    groups = equal_parts(qi, sa, passes, plan, table)
    method = Mondrian(dimensions="widest")
    found, _ = method.partition(task, table.rows, table.numbers, table.requirement(models), plan)
    assert rt.groups_of(found) == rt.as_sets(groups)
    after = posterior_beliefs(
        sa, groups, deterministic_likelihood(lambda world: equal_parts(qi, world, passes, plan, table))
    )
    assert after.beliefs is not None
    for group in groups:
        shown = Counter(sa[i] for i in group)
        for i in group:
            assert after.beliefs[i] == {v: Fraction(c, len(group)) for v, c in shown.items()}


def test_unequal_parts_and_a_second_dimension_do_leak() -> None:
    """The same enumeration finds leaks where Lemma A does not hold, so that the test above can fail."""
    qi, sa = [[0], [1], [2]], ["a", "a", "P"]
    binary = MODELS["simple-l-diversity"](l=2, values=["P"], attribute="s")
    passes = rt.as_test([binary], rt.build(qi, {"s": sa}).task([]).context, ("P", "a"))
    plain = reference_methods.ReferenceMondrian(False, "widest")
    groups = plain.group(qi, sa, passes)
    after = posterior_beliefs(
        sa, groups, deterministic_likelihood(lambda world: plain.group(qi, world, passes))
    )
    assert after.beliefs is not None
    assert max(max(b.values()) for b in after.beliefs) > Fraction(2, 3)


@pytest.mark.parametrize("options", [
    {}, {"dimensions": "widest"}, {"splits": "halves"}, {"choose": "range"}, {"ties": "random"}, {"least": 20},
    {"cut": "relaxed"}, {"cut": "relaxed", "dimensions": "fallback"},
    {"cut": "strict", "dimensions": "fallback"}, {"labels": "ranges"},
])  # fmt: skip
def test_promises_on_adult(options: dict[str, Any]) -> None:
    table = rt.adult_rows("occupation")
    for models in (
        [MODELS["k-anonymity"](k=5)],
        [MODELS["simple-l-diversity"](l=3, attribute="occupation"), MODELS["k-anonymity"](k=4)],
        [MODELS["t-closeness"](t="1/3", attribute="occupation")],
    ):
        grouping = table.promises(Mondrian(**options), models)
        assert grouping.classes.n > 1
        dropped = "cut" not in options and models[0].name != "k-anonymity"
        assert (grouping.dropped_rows > 0) == dropped
        if dropped:
            whole = grouping.search["cell" if "dimensions" not in options else "least"]
            assert {int(s) % whole for s in grouping.classes.sizes} == {0}
            assert grouping.classes.sizes.min() >= grouping.search["least"]


def test_seeds() -> None:
    table = rt.adult_rows("occupation")
    models = [MODELS["simple-l-diversity"](l=3, attribute="occupation")]
    first, again, other = (Mondrian().group(table.task(models, seed)) for seed in (1, 1, 2))
    for a, b in (
        (first.allocation.cells, again.allocation.cells),
        (first.allocation.groups, again.allocation.groups),
    ):
        assert np.array_equal(a, b)
    assert first.labels[1].texts == again.labels[1].texts
    same = np.array_equal(first.allocation.groups, other.allocation.groups)
    assert not same


@pytest.mark.parametrize("ties", ["random", "quasi-identifiers"])
def test_equal_tuples_are_separated_at_random(ties: str) -> None:
    """Two rows in the middle are alike but for their value: over many seeds, either goes left."""
    table = rt.build([[0], [1], [1], [2]], {"s": ["x", "a", "b", "x"]})
    models = [MODELS["k-anonymity"](k=2)]
    left = Counter()
    for seed in range(60):
        counts = Mondrian(cut="relaxed", ties=ties).group(table.task(models, seed)).classes.sensitive["s"]
        assert counts.n_classes == 2
        left["a" in counts.of_class(0)] += 1
    assert min(left.values()) > 15


def test_what_is_refused() -> None:
    table = rt.build([[0], [1]], {"s": ["a", "b"]})
    with pytest.raises(PolicyNotMet, match="k-anonymity"):
        Mondrian().group(table.task([MODELS["k-anonymity"](k=3)]))
    with pytest.raises(PolicyError, match="use: gate"):
        Mondrian().group(table.task([MODELS["average-risk"](max="1/2")]))
    with pytest.raises(PolicyError, match="dimensions: crossed"):
        Mondrian(dimensions="fallback")
    with pytest.raises(PolicyError, match="cut: balanced"):
        Mondrian(dimensions="crossed", cut="relaxed")
