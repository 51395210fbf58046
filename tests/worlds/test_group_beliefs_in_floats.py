"""The recursion in floating point against the exact one, and against the closed form far beyond it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.greedy_floats import randomised_group_in_floats
from maskwright.worlds.counting.group_beliefs import greedy_group, randomised_group
from tests.amounts import cases


@given(
    st.integers(2, 6),
    st.integers(1, 12),
    st.integers(0, 14),
    st.sampled_from(["0", "1/10", "1/2", "13/20", "1"]),
)
def test_it_equals_the_exact_recursion(ell: int, buckets: int, positives: int, chance: str) -> None:
    from fractions import Fraction

    exact = randomised_group(ell, buckets, positives, Fraction(chance))
    floats = randomised_group_in_floats(ell, buckets, positives, float(Fraction(chance)))
    if exact is None:
        assert floats is None
    else:
        assert floats is not None
        assert floats == pytest.approx([float(b) for b in exact], rel=1e-12, abs=1e-300)


GROUPS = [(2, 400), (6, 300), (2, 3000), (6, 1000)]


@pytest.mark.parametrize(("ell", "buckets"), cases(GROUPS, brief=GROUPS[:2]))
def test_the_first_bucket_of_a_very_long_group_follows_the_closed_form(ell: int, buckets: int) -> None:
    found = randomised_group_in_floats(ell, buckets, buckets, 0.0)
    assert found is not None
    exact = float(greedy_group(ell, buckets).beliefs[0])
    assert found[0] == pytest.approx(exact, rel=1e-11)
    assert (np.diff(found) <= 1e-12).all()  # Theorem 8: belief does not grow along the buckets
    assert found.sum() * ell == pytest.approx(buckets, rel=1e-11)
