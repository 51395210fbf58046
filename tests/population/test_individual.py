"""Individual and household risk against the published numbers, exact sums, and scipy."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import hyp2f1

from maskwright.population.individual import STEPS, household_risks, individual_risks


def risk(f: int, weight: float) -> float:
    return float(individual_risks(np.array([f]), np.array([weight]))[0])


@pytest.mark.parametrize(
    ("f", "weight", "published"),
    [
        (1, 45.5, 0.0857912882),
        (2, 100, 0.0187788326),
        (3, 108, 0.0135529684),
        (1, 215, 0.02509643938),
        (2, 360, 0.005424519932),
    ],
)
def test_the_published_numbers(f: int, weight: float, published: float) -> None:
    digits = len(str(published)) - 2
    assert round(risk(f, weight), digits) == pytest.approx(published, abs=0.51 * 10**-digits)


@given(st.integers(1, 20), st.floats(1.0, 500.0))  # scipy 1.17.1 gives infinity for f = 100
def test_against_scipys_hypergeometric_function(f: int, times: float) -> None:
    p = 1 / times
    expected = p / f * float(hyp2f1(1, 1, f + 1, 1 - p))
    assert risk(f, f * times) == pytest.approx(expected, rel=1e-11)


@given(st.integers(1, 12), st.floats(1.0, 20.0))
def test_the_definition_with_f_and_f(f: int, times: float) -> None:
    p = 1 / times
    assert risk(f, f * times) == pytest.approx(p**f / f * float(hyp2f1(f, f, f + 1, 1 - p)), rel=1e-9)


@pytest.mark.parametrize("f", [1, 2, 5, STEPS, STEPS + 1, 300, 10**6, 10**9])
@pytest.mark.parametrize("share", [1e-12, 1e-6, 0.01, 0.3, 0.4999999, 0.5, 0.5000001, 0.9, 1 - 1e-12])
def test_large_classes_and_extreme_shares(f: int, share: float) -> None:
    """The integral p·∫ u^(f−1)/(p + (1−p)u) du with u = e^(−x/f), which is smooth however large f is."""
    value, _ = quad(
        lambda x: math.exp(-x) / (share + (1 - share) * math.exp(-x / f)), 0, 60, epsabs=0, epsrel=1e-12
    )
    assert risk(f, f / share) == pytest.approx(share / f * value, rel=1e-9)


@given(st.integers(1, 6), st.integers(2, 9))
def test_it_is_the_mean_of_one_over_the_people_of_the_class(f: int, times: int) -> None:
    """E[1/F], F negative binomial: the sum itself, in fractions, with a bound for what is left out."""
    p = Fraction(1, times)
    total, left, chance, j = Fraction(0), Fraction(1), p**f, f
    while left > Fraction(1, 10**9) and j < 4000:
        total += chance / j
        left -= chance
        j += 1
        chance = chance * (1 - p) * (j - 1) / (j - f)
        if chance.denominator > 2**4000:
            break
    assert float(total) - 1e-12 <= risk(f, f * times) <= float(total + left / j) + 1e-12


def test_everybody_sampled_is_the_prosecutors_risk() -> None:
    sizes = np.array([1, 2, 7, 1000])
    assert individual_risks(sizes, sizes).tolist() == (1 / sizes).tolist()
    assert individual_risks(sizes, sizes / 2).tolist() == (1 / sizes).tolist(), (
        "no class stands for fewer than itself"
    )


@given(st.integers(1, 50), st.floats(1, 1000), st.integers(1, 50), st.floats(1, 1000))
def test_merging_never_raises_the_larger_risk_and_a_part_never_lowers_it(
    f: int, times: float, g: int, more: float
) -> None:
    one, other = risk(f, f * times), risk(g, g * more)
    both = risk(f + g, f * times + g * more)
    assert both <= min(one, other) * (1 + 1e-12)


def test_household_risk() -> None:
    found = household_risks(np.array([0.02, 0.03, 0.03, 0.5, 1.0, 0.1]), np.array([0, 0, 0, 2, 3, 3]), 4)
    assert found == pytest.approx([0.077918, 0, 0.5, 1], abs=1e-15)


@pytest.mark.alone
def test_a_million_classes_take_less_than_two_seconds() -> None:
    rng = np.random.default_rng(1)
    f = rng.geometric(0.05, 1_000_000)
    weights = f / rng.uniform(1e-4, 1, len(f))
    begin = time.process_time()
    assert (individual_risks(f, weights) > 0).all()
    assert time.process_time() - begin < 2
