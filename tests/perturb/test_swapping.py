"""Rank swapping, PRAM and coding, with the attacks of somebody who knows them, against plain counting."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.perturb.perturbations import (
    coded_extremes,
    distance_linkage,
    image_linkage,
    invariant_matrix,
    randomised_codes,
    rank_candidates,
    rank_linkage,
    rounded_values,
    swapped_values,
    true_given_published,
)

columns = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=14)


@given(columns, st.integers(0, 6), st.integers(0, 99))
def test_swapping_keeps_columns_and_windows(rows: list[tuple[int, int]], window: int, seed: int) -> None:
    values = np.array(rows)
    shown = swapped_values(values, window, np.random.default_rng(seed))
    for c in range(2):
        assert Counter(shown[:, c].tolist()) == Counter(values[:, c].tolist())
    candidates = rank_candidates(values, shown, window)
    assert candidates.diagonal().all(), "the own row is always a candidate"
    if window == 0:
        assert (shown == values).all()


@given(columns, st.integers(0, 6), st.integers(0, 99))
def test_candidates_by_counting_ranks(rows: list[tuple[int, int]], window: int, seed: int) -> None:
    values = np.array(rows)
    shown = swapped_values(values, window, np.random.default_rng(seed))
    found = rank_candidates(values, shown, window)
    for i, person in enumerate(rows):
        for j, row in enumerate(shown.tolist()):
            fits = []
            for c in range(2):
                ranks = {
                    v: [r for r, x in enumerate(sorted(values[:, c].tolist())) if x == v]
                    for v in values[:, c]
                }
                fits.append(min(abs(a - b) for a in ranks[person[c]] for b in ranks[row[c]]) <= window)
            assert found[i, j] == all(fits)
    expected = np.mean([1 / found[i].sum() for i in range(len(rows))])
    assert rank_linkage(values, shown, window) == pytest.approx(expected)


def test_who_knows_the_window_finds_more() -> None:
    """1,080 rows of 13 made-up columns: what others found on such a table lies between those of two correlations."""
    elsewhere = {10: (0.615, 0.986), 20: (0.141, 0.694), 30: (0.032, 0.220)}  # nearest row, ranks
    rng = np.random.default_rng(7)
    found = []
    for common in (0.5, 0.9):
        values = np.exp(rng.multivariate_normal(np.zeros(13), (1 - common) * np.eye(13) + common, 1080))
        shown = {share: swapped_values(values, 1080 * share // 100, rng) for share in elsewhere}
        found.append(
            {
                share: (distance_linkage(values, rows), rank_linkage(values, rows, 1080 * share // 100))
                for share, rows in shown.items()
            }
        )
    for share, published in elsewhere.items():
        less, more = found[0][share], found[1][share]
        for high, there, low in zip(less, published, more, strict=True):
            assert low < there < high, share
        for nearest, ranks in (less, more):
            assert ranks > 1.3 * nearest


def test_pram_on_paper() -> None:
    matrix, shares = np.array([[0.95, 0.05], [0.45, 0.55]]), np.array([0.9, 0.1])
    assert shares @ matrix == pytest.approx(shares), "it is invariant"
    belief = true_given_published(matrix, shares)
    assert Fraction(float(belief[1, 1])).limit_denominator(100) == Fraction(11, 20)


transitions = st.integers(2, 4).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=n, max_size=n),
        st.lists(st.integers(1, 9), min_size=n, max_size=n),
    )
)


@given(transitions)
def test_bayes_and_invariance(drawn: tuple[list[list[int]], list[int]]) -> None:
    rows, counts = drawn
    matrix = [[Fraction(x + (i == j), sum(row) + 1) for j, x in enumerate(row)] for i, row in enumerate(rows)]
    shares = [Fraction(n, sum(counts)) for n in counts]
    plain = np.array(matrix, dtype=np.float64)
    belief = true_given_published(plain, np.array(shares, dtype=np.float64))
    for i in range(len(matrix)):
        seen = sum(shares[j] * matrix[j][i] for j in range(len(matrix)))
        assert belief[i] == pytest.approx(
            [float(shares[j] * matrix[j][i] / seen) for j in range(len(matrix))]
        )
    invariant = invariant_matrix(plain, np.array(shares, dtype=np.float64))
    assert invariant.sum(axis=1) == pytest.approx(1)
    assert np.array(shares, dtype=np.float64) @ invariant == pytest.approx(np.array(shares, dtype=np.float64))


def test_pram_draws_by_its_matrix() -> None:
    matrix = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]])
    codes = np.repeat([0, 1, 2], 40_000)
    shown = randomised_codes(codes, matrix, np.random.default_rng(8))
    for i in range(3):
        assert np.bincount(shown[codes == i], minlength=3) / 40_000 == pytest.approx(matrix[i], abs=0.01)


@pytest.mark.parametrize("matrix", [[[0.5, 0.4], [0, 1]], [[1.2, -0.2], [0, 1]], [[1.0]] * 2, [1.0]])
def test_what_is_no_matrix_of_probabilities(matrix: list[object]) -> None:
    with pytest.raises(ValueError, match="add up to 1"):
        randomised_codes(np.array([0]), np.array(matrix), np.random.default_rng(1))


def test_rounding_and_extremes() -> None:
    assert rounded_values(np.array([1, 2.4, 7.5, 12.6]), 5).tolist() == [0, 0, 10, 15]
    assert coded_extremes(np.array([1, 2, 5, 8, 12.0]), 3, 7).tolist() == [1.5, 1.5, 5, 10, 10]
    assert coded_extremes(np.array([1, 2, 5.0]), high=9).tolist() == [1, 2, 5]
    with pytest.raises(ValueError, match="above 0"):
        rounded_values(np.array([1]), 0)
    with pytest.raises(ValueError, match="ranks"):
        swapped_values(np.array([1]), -1, np.random.default_rng(1))


def test_who_repeats_the_rounding() -> None:
    values = np.array([11, 12, 13, 26, 27, 40.0])
    assert image_linkage(rounded_values(values, 10)) == pytest.approx(3 / 6), "three values are left"
    assert distance_linkage(values, values) == 1
