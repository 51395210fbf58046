"""MDAV against a plain version of its definition, optimal groups against all ways to make them."""

from __future__ import annotations

import itertools
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.perturb.microaggregation import (
    group_means,
    information_loss,
    mdav_groups,
    optimal_groups,
    standardised_columns,
)
from maskwright.perturb.perturbations import distance_linkage, image_linkage

Rows = list[tuple[int, ...]]


def plain_mdav(rows: Rows, k: int) -> list[int]:
    """MDAV one step after the other, looking at all rows each time."""
    points = np.array(rows, dtype=np.float64)
    left, groups, made = list(range(len(rows))), [-1] * len(rows), 0

    def away(place: np.ndarray) -> list[float]:
        return ((points - place) ** 2).sum(axis=1).tolist()  # type: ignore[no-any-return]

    def farthest(place: np.ndarray) -> int:
        distances = away(place)
        return max(left, key=lambda i: (distances[i], -i))

    def mean() -> np.ndarray:
        return np.array([sum(rows[i][c] for i in left) / len(left) for c in range(len(rows[0]))])

    def take(row: int) -> None:
        nonlocal made
        distances = away(points[row])
        for i in sorted(left, key=lambda i: (i != row, distances[i], i))[:k]:
            groups[i] = made
            left.remove(i)
        made += 1

    while len(left) >= 3 * k:
        one = farthest(mean())
        take(one)
        take(farthest(points[one]))
    if len(left) >= 2 * k:
        take(farthest(mean()))
    return [made if g < 0 else g for g in groups]


def tables(values: int, most: int) -> st.SearchStrategy[Rows]:
    return st.integers(1, 3).flatmap(
        lambda width: st.lists(st.tuples(*[st.integers(0, values)] * width), min_size=5, max_size=most)
    )


@given(st.sampled_from([3, 10**6]).flatmap(lambda values: tables(values, 40)), st.integers(1, 5))
def test_mdav_against_its_definition(rows: Rows, k: int) -> None:
    assert mdav_groups(np.array(rows), k).tolist() == plain_mdav(rows, k)


@pytest.mark.parametrize(("seed", "k"), [(1, 2), (2, 3), (3, 7)])
def test_mdav_of_many_boxes(seed: int, k: int) -> None:
    """More rows than a box holds, and many of them equal."""
    rng = np.random.default_rng(seed)
    rows = [tuple(int(x) for x in row) for row in rng.integers(0, 8, (400, 4)).tolist()]
    assert mdav_groups(np.array(rows), k).tolist() == plain_mdav(rows, k)


@given(st.integers(1, 200), st.integers(1, 12), st.integers(0, 99))
def test_sizes_of_groups(n: int, k: int, seed: int) -> None:
    if k > n:
        with pytest.raises(ValueError, match=f"1 to {n} rows"):
            mdav_groups(np.zeros((n, 2)), k)
        return
    groups = mdav_groups(standardised_columns(np.random.default_rng(seed).normal(size=(n, 3))), k)
    sizes = np.bincount(groups)
    assert sizes.sum() == n
    assert k <= sizes.min()
    assert sizes.max() <= max(2 * k - 1, 1)


def loss(values: list[int], groups: list[list[int]]) -> Fraction:
    total = Fraction(0)
    for members in groups:
        mean = Fraction(sum(values[i] for i in members), len(members))
        total += sum((values[i] - mean) ** 2 for i in members)
    return total


def partitions(items: list[int]) -> list[list[list[int]]]:
    if not items:
        return [[]]
    first, rest = items[0], items[1:]
    found = []
    for n in range(len(rest) + 1):
        for chosen in itertools.combinations(rest, n):
            others = [i for i in rest if i not in chosen]
            found += [[[first, *chosen], *more] for more in partitions(others)]
    return found


@given(st.lists(st.integers(0, 30), min_size=1, max_size=7), st.integers(1, 3))
def test_no_other_groups_lose_less(values: list[int], k: int) -> None:
    """All partitions into groups of at least k, not only runs of sorted values."""
    if k > len(values):
        return
    groups = optimal_groups(np.array(values), k)
    mine = [np.flatnonzero(groups == g).tolist() for g in range(int(groups.max()) + 1)]
    assert min(map(len, mine)) >= k
    best = min(loss(values, p) for p in partitions(list(range(len(values)))) if min(map(len, p)) >= k)
    assert float(loss(values, mine)) == pytest.approx(float(best), abs=1e-9)


def test_optimal_groups_lose_no_more_than_mdav() -> None:
    values = np.random.default_rng(4).lognormal(size=(500, 1))
    for k in (2, 3, 5, 10):
        mdav = group_means(values, mdav_groups(standardised_columns(values), k))
        best = group_means(values, optimal_groups(values[:, 0], k))
        assert information_loss(values, best) <= information_loss(values, mdav)


def test_information_loss() -> None:
    values = np.array([[0.0, 10.0], [2.0, 10.0], [4.0, 30.0], [6.0, 30.0]])
    assert information_loss(values, values) == 0
    assert information_loss(values, np.broadcast_to(values.mean(axis=0), values.shape)) == pytest.approx(100)
    means = group_means(values, np.array([0, 0, 1, 1]))
    assert means.tolist() == [[1, 10], [1, 10], [5, 30], [5, 30]]
    assert information_loss(values, means) == pytest.approx(100 * (4 / 5) / 8)  # 4 of 20 in one column of two


def test_blocks_of_columns_are_not_anonymous() -> None:
    """k rows in each block of columns are not k rows: together the blocks single almost everybody out."""
    values = np.random.default_rng(5).multivariate_normal(np.zeros(9), 0.5 + 0.5 * np.eye(9), 400)
    whole = group_means(values, mdav_groups(standardised_columns(values), 3))
    blocks = np.concatenate(
        [
            group_means(b, mdav_groups(standardised_columns(b), 3))
            for b in (values[:, i : i + 3] for i in (0, 3, 6))
        ],
        axis=1,
    )
    assert image_linkage(whole) <= 1 / 3
    assert image_linkage(blocks) > 0.95
    assert distance_linkage(values, whole) <= 1 / 3
    assert distance_linkage(values, blocks) > 0.95


@pytest.mark.alone
@pytest.mark.long
def test_a_hundred_thousand_rows_take_less_than_a_minute() -> None:
    points = np.random.default_rng(6).normal(size=(100_000, 10))
    begin = time.process_time()
    mdav_groups(points, 3)
    assert time.process_time() - begin < 60
