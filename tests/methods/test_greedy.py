"""Greedy grouping against the plain definition, in both its ways to walk, and the randomised version."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from maskwright.domain.hierarchy import Hierarchy
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.kernels import partition
from maskwright.methods._lattice.node_evaluation import rules_of
from maskwright.methods._rows import collecting
from maskwright.methods._rows.collecting import group_ends
from maskwright.methods._rows.group_requirement import GroupRequirement
from maskwright.methods._rows.rows import Partition
from maskwright.methods.greedy_grouping import GreedyGrouping
from maskwright.models import MODELS
from maskwright.worlds import reference_methods
from maskwright.worlds.sampling.possible_worlds import as_publication
from tests.amounts import repeated
from tests.methods import row_tables as rt


def in_row_order(table: rt.Table, qi: list[list[int]]) -> np.ndarray:
    return np.array(reference_methods.row_order(qi), dtype=np.int32)


@pytest.mark.parametrize("block", repeated(10))
def test_the_plain_definition(block: int) -> None:
    rng = np.random.default_rng(block)
    several = 0
    for _ in range(150):
        qi, sa, table = rt.random_table(rng, 24)
        models, bucket = rt.random_models(rng), int(rng.integers(1, 4))
        passes = table.test(models)
        requirement = table.requirement(models)
        found, tail = GreedyGrouping().partition(rng, requirement, in_row_order(table, qi), bucket)
        expected = reference_methods.greedy_grouping(qi, sa, passes, bucket)
        assert rt.groups_of(found) == rt.as_sets(expected)
        assert tail == len(qi) // bucket * bucket - sum(map(len, expected))
        several += found.n_groups > 1
    assert several > 40


@pytest.mark.parametrize("block", repeated(4))
def test_the_two_ways_to_walk_agree(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled walk, the windows, and the prefixes of long groups close at the same buckets."""
    if partition.compiled is None:
        pytest.skip("no compiled kernel")
    monkeypatch.setattr(collecting, "CHUNK", 7)
    monkeypatch.setattr(collecting, "WINDOW", 2)
    monkeypatch.setattr(collecting, "DENSE", 20)
    rng = np.random.default_rng(block)
    closed = 0
    for _ in range(100):
        qi, _, table = rt.random_table(rng, 80)
        requirement, bucket = table.requirement(rt.random_models(rng)), int(rng.integers(1, 4))
        order = in_row_order(table, qi)
        extend = (rng.random(len(qi) // bucket) < 0.3).astype(np.uint8)
        ours = group_ends(requirement, order, bucket, extend)
        assert np.array_equal(ours, group_ends(requirement, order, bucket, extend, None))
        closed += int(ours.sum())
    assert closed > 300


def test_randomised_publications_have_their_probabilities() -> None:
    """4,000 draws of the randomised version against its exact distribution."""
    qi = [[i] for i in range(6)]
    sa = ["P", "a", "a", "b", "P", "a"]
    table = rt.build(qi, {"s": sa}, domains={"s": ("P", "a", "b", "c")})
    models, p = [MODELS["simple-l-diversity"](l=2, values=["P"], attribute="s")], Fraction(1, 3)
    passes = rt.as_test(models, table.task([]).context, ("P", "a", "b", "c"))
    exact = reference_methods.randomised_greedy(qi, sa, passes, 2, p)
    assert len(exact) > 2
    rng, seen = np.random.default_rng(0), Counter()
    requirement = table.requirement(models)
    for _ in range(4000):
        parts, _ = GreedyGrouping(extend=p).partition(rng, requirement, in_row_order(table, qi), 2)
        seen[as_publication(rt.groups_of(parts))] += 1
    assert set(seen) == set(exact)
    for outcome, chance in exact.items():
        assert abs(seen[outcome] / 4000 - chance) < 0.04


def test_the_rows_that_are_left_out_are_named() -> None:
    table = rt.build([[i] for i in range(7)], {"s": ["a", "b", "a", "b", "P", "P", "P"]})
    task = table.task([MODELS["simple-l-diversity"](l=2, attribute="s")])
    grouping = GreedyGrouping().group(task)
    rt.holds(grouping, task)
    assert grouping.dropped_rows == 3  # two that never became diverse, and the seventh row: no full bucket
    assert grouping.trace.dropped_for_values == 2
    assert "absence is information" in grouping.search["note"]
    assert "note" not in GreedyGrouping().group(table.task([MODELS["k-anonymity"](k=2)])).search


@pytest.mark.parametrize(
    "options", [{}, {"l": 1}, {"extend": "1/2"}, {"order": "hilbert"}, {"priority": ["age"]}]
)
def test_promises_on_adult(options: dict[str, object]) -> None:
    table = rt.adult_rows("occupation")
    for models in (
        [MODELS["simple-l-diversity"](l=3, attribute="occupation")],
        [MODELS["entropy-l-diversity"](l=3, attribute="occupation"), MODELS["k-anonymity"](k=5)],
    ):
        grouping = table.promises(GreedyGrouping(**options), models)
        assert grouping.classes.n > 500
        other = GreedyGrouping(**options).group(table.task(models, 5))
        assert not np.array_equal(grouping.allocation.groups, other.allocation.groups)


def test_what_is_refused() -> None:
    table = rt.build([[i] for i in range(5)], {"s": ["a"] * 5})
    with pytest.raises(PolicyNotMet, match="simple-l-diversity"):
        GreedyGrouping().group(table.task([MODELS["simple-l-diversity"](l=2, attribute="s")]))
    with pytest.raises(PolicyNotMet, match="smaller l"):
        GreedyGrouping(l=9).group(table.task([MODELS["k-anonymity"](k=2)]))
    with pytest.raises(PolicyError, match="'zip', which is no quasi-identifier"):
        GreedyGrouping(priority=["zip"]).group(table.task([MODELS["k-anonymity"](k=2)]))
    with pytest.raises(PolicyError, match="probability"):
        GreedyGrouping(extend="3/2")


def test_partition_keeps_only_what_it_lists() -> None:
    parts = Partition.of_segments(np.arange(6, dtype=np.int32), np.array([4, 0]), np.array([6, 2]))
    assert rt.groups_of(parts) == {frozenset({0, 1}), frozenset({4, 5})}


@pytest.mark.parametrize("block", repeated(6))
def test_the_compiled_walk_decides_like_the_models(block: int) -> None:
    """Missing values, many values, long groups, ordered and hierarchical distances, entropy near its bound."""
    if partition.compiled is None:
        pytest.skip("no compiled kernel")
    rng = np.random.default_rng(block)
    closed = 0
    for _ in range(12):
        n, width = int(rng.integers(50, 400)), int(rng.integers(2, 9))
        domain = tuple("abcdefgh"[:width])
        drawn = rng.choice(width + 1, n, p=rng.dirichlet(np.ones(width + 1)))
        values = [None if v == 0 else domain[v - 1] for v in drawn]
        table = rt.build([[i] for i in range(n)], {"s": values}, domains={"s": domain}, ordered=True)
        tree = Hierarchy.of("s", list(domain), [("half", [str(i // 2) for i in range(width)])])
        for model in (
            MODELS["t-closeness"](t="1/8", attribute="s", distance="ordered"),
            MODELS["t-closeness"](t="1/6", attribute="s"),
            MODELS["t-closeness"](t="1/9", attribute="s", distance="hierarchical"),
            MODELS["entropy-l-diversity"](l=str(rng.choice(["3/2", "2", "3", "14/5"])), attribute="s"),
            MODELS["recursive-cl-diversity"](c="3/2", l=int(rng.integers(1, 4)), attribute="s"),
        ):
            task = table.task([model])
            context = replace(task.context, hierarchies={"s": tree}, domains={"s": domain})
            requirement = GroupRequirement(replace(task, context=context), table.rows, "test")
            assert rules_of([model], context) is not None
            extend = (rng.random(n) < 0.2).astype(np.uint8)
            order = rng.permutation(n).astype(np.int32)
            ours = group_ends(requirement, order, 1, extend)
            assert np.array_equal(ours, group_ends(requirement, order, 1, extend, None))
            closed += int(ours.sum())
    assert closed > 200


def test_an_entropy_that_meets_its_bound_exactly_is_decided_exactly() -> None:
    """8⁸ = 4⁸·4⁴: the counts 4, 1, 1, 1, 1 are unequal, and yet their entropy is log 4; with one row less it is not."""
    values = list("aaaabcde")
    table = rt.build([[i] for i in range(16)], {"s": values * 2})
    for ell, expected in (("4", [7, 15]), ("4.0000000001", [])):
        requirement = table.requirement([MODELS["entropy-l-diversity"](l=ell, attribute="s")])
        order, extend = np.arange(16, dtype=np.int32), np.zeros(16, dtype=np.uint8)
        for kernel in (partition.compiled, None):
            assert np.flatnonzero(group_ends(requirement, order, 1, extend, kernel)).tolist() == expected
