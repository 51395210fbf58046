"""The beliefs of Figure 3 (c), (d) are those of all worlds, looked at one by one."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from experiments.cormode_closeness import beliefs, close, drawn_beliefs


def by_enumeration(bucket: int, buckets: int, positives: int, share: Fraction, t: Fraction) -> list[Fraction]:
    n, worlds, held = bucket * buckets, 0, [0] * buckets
    for where in combinations(range(n), positives):
        prefixes = [sum(w < bucket * i for w in where) for i in range(1, buckets)]
        if any(close(bucket * i, s, share, t) for i, s in enumerate(prefixes, start=1)):
            continue
        worlds += 1
        for w in where:
            held[w // bucket] += 1
    return [Fraction(h, worlds * bucket) for h in held] if worlds else []


@pytest.mark.parametrize("bucket", [1, 2, 3])
@pytest.mark.parametrize(("share", "t"), [("1/4", "1/4"), ("1/3", "1/10"), ("2/5", "1/20"), ("1/7", "1/5")])
def test_beliefs_are_those_of_all_worlds(bucket: int, share: str, t: str) -> None:
    seen = 0
    for buckets in range(1, 12 // bucket + 1):
        for positives in range(bucket * buckets + 1):
            expected = by_enumeration(bucket, buckets, positives, Fraction(share), Fraction(t))
            if expected:
                found = beliefs(bucket, buckets, positives, Fraction(share), Fraction(t))
                assert found == pytest.approx([float(b) for b in expected], abs=1e-12)
                seen += buckets > 1
    assert seen > 3


def test_the_example_of_the_errata_is_certain() -> None:
    """t = 1/4 and one positive in four: a group of two rows has its positive first, at distance 3t."""
    assert beliefs(1, 2, 1, Fraction(1, 4), Fraction(1, 4)) == (1.0, 0.0)


def test_drawn_beliefs_agree_with_computed_ones() -> None:
    share, t = Fraction(1, 4), Fraction(1, 10)
    counts = np.array(
        [4, 2]
    )  # of six rows two are positive: both among the first three, or a prefix is close
    found, accepted = drawn_beliefs(counts, np.array([0.75, 0.25]), float(t), np.random.default_rng(3))
    assert accepted >= 1000
    assert found[:, 1] == pytest.approx(beliefs(1, 6, 2, share, t), abs=5 * 0.5 / accepted**0.5)
