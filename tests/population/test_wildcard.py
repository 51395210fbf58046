"""Missing as a wildcard: the example on paper, and every pair of rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maskwright.population.individual import wildcard_totals


def test_the_example_on_paper() -> None:
    rows = [("Male", "Secondary complete"), ("Male", "Secondary incomplete"), ("Male", "")]
    texts = ["", "Male", "Secondary complete", "Secondary incomplete"]
    codes = np.array([[texts.index(a), texts.index(b), 1] for a, b in rows]).T
    [people] = wildcard_totals(codes, codes == 0, np.ones(3, dtype=np.int64))
    assert people.tolist() == [2, 2, 3]


@given(
    st.lists(st.tuples(*[st.integers(0, 2)] * 3, st.integers(1, 5)), min_size=1, max_size=12),
    st.sampled_from([1, 2**40]),  # codes so large that three of them do not fit into one number
)
def test_against_every_pair(rows: list[tuple[int, int, int, int]], times: int) -> None:
    codes = np.array([row[:3] for row in rows], dtype=np.int64).T * times
    people = np.array([row[3] for row in rows], dtype=np.int64)
    found, weights = wildcard_totals(codes, codes == 0, people, people * 1.5)
    expected = [
        sum(b[3] for b in rows if all(x == y or not x or not y for x, y in zip(a[:3], b[:3], strict=True)))
        for a in rows
    ]
    assert found.tolist() == expected
    assert weights.tolist() == [1.5 * n for n in expected]
