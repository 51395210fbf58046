"""Intervals: their ends solve the equations that define them, and cover at the stated rate."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from maskwright.worlds.sampling.belief_intervals import (
    belief_intervals,
    binomial_lower,
    chernoff_interval,
    exact_interval,
)
from maskwright.worlds.sampling.possible_worlds import WorldSpace
from maskwright.worlds.sampling.world_sampler import Tally


def at_least(k: int, n: int, p: float) -> float:
    return math.fsum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 40, 200, 500])
@pytest.mark.parametrize("risk", [0.2, 0.005, 1e-7])
def test_the_ends_are_those_of_the_definition(n: int, risk: float) -> None:
    low, high = exact_interval(np.arange(n + 1), float(n), risk)
    assert (low[0], high[n]) == (0, 1)
    for k in range(1, n + 1, max(1, n // 13)):
        assert at_least(k, n, low[k]) == pytest.approx(risk, rel=1e-6)
        assert at_least(k, n, low[k]) <= risk  # rounded outwards
        assert low[k] == pytest.approx(1 - high[n - k], abs=1e-15)


@pytest.mark.parametrize("p", [0.001, 0.02, 0.3, 0.5, 0.97])
def test_they_cover_for_every_p(p: float) -> None:
    n, risk = 60, 0.05
    x = np.arange(n + 1)
    chance = np.array([math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(n + 1)])
    for low, high in (exact_interval(x, float(n), risk), chernoff_interval(x / n, float(n), risk)):
        assert chance[low > p].sum() <= risk
        assert chance[high < p].sum() <= risk


def test_chernoff_covers_means_that_are_no_counts() -> None:
    rng, n, risk = np.random.default_rng(3), 25, 0.05
    means = rng.beta(0.3, 1.2, size=(4000, n)).mean(axis=1)
    low, high = chernoff_interval(means, float(n), risk)
    assert np.mean(low > 0.2) <= risk
    assert np.mean(high < 0.2) <= risk


def test_large_counts_and_no_counts() -> None:
    low, high = exact_interval(np.array([0, 50_000, 100_000]), 100_000.0, 1e-8)
    assert low[1] == pytest.approx(0.5, abs=0.01) and low[1] < 0.5 < high[1]
    assert high[0] == pytest.approx(-math.log(1e-8) / 100_000, rel=1e-3)
    assert exact_interval(np.array([0]), 0.0, 0.1) == (np.array([0.0]), np.array([1.0]))
    assert chernoff_interval(np.array([0.3]), 0.0, 0.1) == (np.array([0.0]), np.array([1.0]))
    assert binomial_lower(np.array(40), 40.0, 0.05) == pytest.approx(0.05 ** (1 / 40))


def test_shares_stay_within_what_the_groups_hold() -> None:
    """Over every world of a small space: no share outside the ends, and each end is reached."""
    items, group, unit = [0, 0, 1, 2, 0, 1], [0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 0, 2]
    space = WorldSpace(np.array(group), np.array(items), np.array([0, 0]))
    inside = np.array([[True, False], [False, True], [False, True]])
    low, high = space.extremes(np.array(unit), 3, inside)
    shares = [
        [[np.mean([inside[w[i], s] for i in range(6) if unit[i] == u]) for s in range(2)] for u in range(3)]
        for first in set(permutations(items[:4])) for second in set(permutations(items[4:]))
        for w in [first + second]
    ]  # fmt: skip
    assert np.array_equal(low, np.min(shares, axis=0))
    assert np.array_equal(high, np.max(shares, axis=0))
    assert high[0, 0] == 3 / 4


def test_worlds_that_were_never_kept_bound_belief_by_what_the_group_holds() -> None:
    space = WorldSpace(np.zeros(5, dtype=np.int64), np.array([0, 1, 1, 1, 1]), np.array([0]))
    unit = np.array([0, 0, 0, 1, 1])
    one, none = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    no = np.zeros(1, dtype=bool)
    tally = Tally(space, unit, 2, one, none, np.zeros((2, 2), dtype=np.int64), none, no, no, ~no, False)
    found = belief_intervals(tally, np.eye(2, dtype=bool))
    assert found.kind.tolist() == [3, 3]
    assert np.allclose(found.high, [[1 / 3, 1], [1 / 2, 1]])
    assert np.allclose(found.low, [[0, 2 / 3], [0, 1 / 2]])
