"""Greedy grouping against the plain definition, in both its ways to walk, and the randomised version."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from maskwright.core.worlds import algorithms
from maskwright.core.worlds.posterior import publication
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.kernels import partition
from maskwright.methods import collect
from maskwright.methods.collect import closings
from maskwright.methods.greedy_grouping import GreedyGrouping
from maskwright.methods.rows import Partition
from maskwright.models import MODELS
from tests.methods.row_tables import (
    Table,
    adult_rows,
    as_sets,
    as_test,
    build,
    groups_of,
    holds,
    random_models,
    random_table,
)  # fmt: skip


def in_row_order(table: Table, qi: list[list[int]]) -> np.ndarray:
    return np.array(algorithms.row_order(qi), dtype=np.int32)


@pytest.mark.parametrize("block", range(10))
def test_the_plain_definition(block: int) -> None:
    rng = np.random.default_rng(block)
    several = 0
    for _ in range(150):
        qi, sa, table = random_table(rng, 24)
        models, task, bucket = random_models(rng), table.task([]), int(rng.integers(1, 4))
        passes = as_test(models, task.context, table.summary.sensitive["s"].values)
        requirement = table.requirement(models)
        found, tail = GreedyGrouping().partition(rng, requirement, in_row_order(table, qi), bucket)
        expected = algorithms.greedy_grouping(qi, sa, passes, bucket)
        assert groups_of(found) == as_sets(expected)
        assert tail == len(qi) // bucket * bucket - sum(map(len, expected))
        several += found.n_groups > 1
    assert several > 40


@pytest.mark.parametrize("block", range(4))
def test_the_two_ways_to_walk_agree(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled walk, the windows, and the prefixes of long groups close at the same buckets."""
    if partition.compiled is None:
        pytest.skip("no compiled kernel")
    monkeypatch.setattr(collect, "CHUNK", 7)
    monkeypatch.setattr(collect, "WINDOW", 2)
    monkeypatch.setattr(collect, "DENSE", 20)
    rng = np.random.default_rng(block)
    closed = 0
    for _ in range(100):
        qi, _, table = random_table(rng, 80)
        requirement, bucket = table.requirement(random_models(rng)), int(rng.integers(1, 4))
        order = in_row_order(table, qi)
        extend = (rng.random(len(qi) // bucket) < 0.3).astype(np.uint8)
        ours = closings(requirement, order, bucket, extend)
        assert np.array_equal(ours, closings(requirement, order, bucket, extend, None))
        closed += int(ours.sum())
    assert closed > 300


def test_randomised_publications_have_their_probabilities() -> None:
    """4,000 draws of the randomised version against its exact distribution."""
    qi = [[i] for i in range(6)]
    sa = ["P", "a", "a", "b", "P", "a"]
    table = build(qi, {"s": sa}, domains={"s": ("P", "a", "b", "c")})
    models, p = [MODELS["simple-l-diversity"](l=2, values=["P"], attribute="s")], Fraction(1, 3)
    passes = as_test(models, table.task([]).context, ("P", "a", "b", "c"))
    exact = algorithms.randomised_greedy(qi, sa, passes, 2, p)
    assert len(exact) > 2
    rng, seen = np.random.default_rng(0), Counter()
    requirement = table.requirement(models)
    for _ in range(4000):
        parts, _ = GreedyGrouping(extend=p).partition(rng, requirement, in_row_order(table, qi), 2)
        seen[publication(groups_of(parts))] += 1
    assert set(seen) == set(exact)
    for outcome, chance in exact.items():
        assert abs(seen[outcome] / 4000 - chance) < 0.04


def test_the_rows_that_are_left_out_are_named() -> None:
    table = build([[i] for i in range(7)], {"s": ["a", "b", "a", "b", "P", "P", "P"]})
    task = table.task([MODELS["simple-l-diversity"](l=2, attribute="s")])
    grouping = GreedyGrouping().group(task)
    holds(grouping, task)
    assert grouping.dropped_rows == 3  # two that never became diverse, and the seventh row: no full bucket
    assert grouping.search["dropped_for_their_values"] == 2
    assert "absence is information" in grouping.search["note"]
    assert "note" not in GreedyGrouping().group(table.task([MODELS["k-anonymity"](k=2)])).search


@pytest.mark.parametrize(
    "options", [{}, {"l": 1}, {"extend": "1/2"}, {"order": "hilbert"}, {"priority": ["age"]}]
)
def test_promises_on_adult(options: dict[str, object]) -> None:
    table = adult_rows("occupation")
    for models in (
        [MODELS["simple-l-diversity"](l=3, attribute="occupation")],
        [MODELS["entropy-l-diversity"](l=3, attribute="occupation"), MODELS["k-anonymity"](k=5)],
    ):
        task = table.task(models)
        grouping = GreedyGrouping(**options).group(task)
        holds(grouping, task)
        assert grouping.classes.n > 500
        again = GreedyGrouping(**options).group(table.task(models))
        assert np.array_equal(grouping.allocation.groups, again.allocation.groups)
        other = GreedyGrouping(**options).group(table.task(models, 5))
        assert not np.array_equal(grouping.allocation.groups, other.allocation.groups)


def test_what_is_refused() -> None:
    table = build([[i] for i in range(5)], {"s": ["a"] * 5})
    with pytest.raises(PolicyNotMet, match="simple-l-diversity"):
        GreedyGrouping().group(table.task([MODELS["simple-l-diversity"](l=2, attribute="s")]))
    with pytest.raises(PolicyNotMet, match="smaller l"):
        GreedyGrouping(l=9).group(table.task([MODELS["k-anonymity"](k=2)]))
    with pytest.raises(PolicyError, match="'zip', which is no quasi-identifier"):
        GreedyGrouping(priority=["zip"]).group(table.task([MODELS["k-anonymity"](k=2)]))
    with pytest.raises(ValueError, match="probability"):
        GreedyGrouping(extend="3/2")


def test_partition_keeps_only_what_it_lists() -> None:
    parts = Partition.of_segments(np.arange(6, dtype=np.int32), np.array([4, 0]), np.array([6, 2]))
    assert groups_of(parts) == {frozenset({0, 1}), frozenset({4, 5})}
