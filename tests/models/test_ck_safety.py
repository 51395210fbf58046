"""(c,k)-safety: strict at c, decided for the whole release, and true to what it declares."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.classes import Classes
from maskwright.domain.model import Context
from maskwright.domain.settings import build_registered
from maskwright.errors import PolicyError
from maskwright.models import MODELS
from maskwright.models.ck_safety import CkSafety
from maskwright.worlds.statements.disclosure import max_disclosure
from tests.oracles.knowledge import FIGURE_3, Worlds, counted, packed

counts = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", None]), st.integers(1, 9), min_size=1, max_size=5
)
shares = st.fractions(min_value="1/20", max_value=1, max_denominator=20)


def classes_of(buckets) -> Classes:
    sizes = np.array([sum(bucket.values()) for bucket in buckets], dtype=np.int64)
    return Classes(sizes, sizes, {"disease": packed(buckets)})


def check(buckets, c, k):
    return CkSafety(c=c, k=k).check(classes_of(buckets), Context())


figure_3 = [counted(bucket) for bucket in FIGURE_3]


def test_figure_3_is_safe_strictly_above_its_disclosure():
    """Two thirds, not the 5/8 that the paper prints."""
    assert not check(figure_3, "5/8", 1).ok
    assert not check(figure_3, "2/3", 1).ok
    assert check(figure_3, "0.66667", 1).ok
    assert check(figure_3, "2/3", 1).worst == Fraction(2, 3) == Worlds(FIGURE_3).by_implications(1)


def test_the_verdict_measures_each_class_alone_and_all_together():
    verdict = check(figure_3, "2/3", 1)
    assert list(verdict.values) == [Fraction(2, 3), Fraction(4, 7)]
    assert verdict.passes.tolist() == [False, True]
    assert verdict.worst_group == 0
    assert verdict.sentence() == (
        "ck-safety FAILS in 1 of 2 groups: worst belief of an attacker with 1 known fact 66.67 % (2/3), "
        "asked below 2/3"
    )


def test_classes_that_are_safe_alone_may_not_be_together():
    buckets = [
        {"a": 8, "b": 7, "c": 1, "d": 1},
        {"a": 6, "b": 4, "c": 1, "d": 1},
        dict.fromkeys("abcdefghij", 1),
    ]
    verdict = check(buckets, "17/19", 2)
    assert max(verdict.values) == Fraction(8, 9) < Fraction(17, 19) == verdict.worst
    assert not verdict.ok
    assert verdict.passes.tolist() == [False, False, True]  # the two that a worst attacker combines
    assert check(buckets[:1] + buckets[2:], "17/19", 2).ok
    assert not CkSafety(c="17/19", k=2).is_local()


@given(st.lists(counts, max_size=5), shares, st.integers(0, 4))
def test_the_verdict_follows_the_definition(buckets, c, k):
    verdict = check(buckets, c, k)
    belief = max_disclosure(buckets, k).implications[k]
    assert verdict.ok == (belief < c) == bool(verdict.passes.all())
    assert verdict.worst == (belief if verdict.worst_group is not None else None)
    alone = [max_disclosure([bucket], k).implications[k] for bucket in buckets]
    assert list(verdict.values) == alone
    assert all(not passes for passes, value in zip(verdict.passes, alone, strict=True) if value >= c)
    if belief:
        assert not check(buckets, belief, k).ok


@given(st.lists(counts, min_size=2, max_size=5), st.integers(0, 4), st.data())
def test_merge_safe_merging_classes_of_a_safe_release_keeps_it_safe(buckets, k, data):
    assert CkSafety.merge_safe
    group = data.draw(st.lists(st.integers(0, 1), min_size=len(buckets), max_size=len(buckets)))
    merged = []
    for g in sorted(set(group)):
        union: dict[str | None, int] = {}
        for bucket, where in zip(buckets, group, strict=True):
            for value, n in bucket.items() if where == g else ():
                union[value] = union.get(value, 0) + n
        merged.append(union)
    before = max_disclosure(buckets, k).implications[k]
    c = min(Fraction(1), before + Fraction(1, 10**9))
    assert not check(buckets, c, k).ok or check(merged, c, k).ok


def test_not_hereditary_a_part_of_a_failing_class_may_pass():
    assert not CkSafety.hereditary
    assert not check([{"a": 2, "b": 1, "c": 1}], "1/2", 0).ok
    assert check([{"b": 1, "c": 1, "a": 1}], "1/2", 0).ok


def test_missing_values_can_be_known_but_not_disclosed():
    assert check([{None: 5}], "1/100", 3).ok
    assert check([{None: 5}], "1/100", 3).worst is None
    assert check([{None: 6, "a": 1, "b": 1}], "1/2", 0).worst == Fraction(1, 8)
    assert check([{None: 6, "a": 1, "b": 1}], "1/2", 1).worst == Fraction(1, 2)


def test_no_classes_pass():
    verdict = check([], "1/2", 2)
    assert verdict.ok and verdict.worst is None and len(verdict.passes) == 0


def test_the_nearest_setting_that_would_do():
    def nearest(c, k):
        return CkSafety(c=c, k=k).nearest(classes_of(figure_3), Context())

    assert nearest("2/3", 4) == "k: 0"
    assert nearest("0.7", 4) == "k: 1"
    assert nearest("1/3", 1) == "c: 0.666667"
    assert check(figure_3, nearest("1/3", 1).removeprefix("c: "), 1).ok
    assert CkSafety(c=1, k=0).nearest(classes_of([{"a": 2}]), Context()) is None


def test_several_values_per_person_are_refused():
    classes = classes_of(figure_3)
    fewer = Classes(classes.sizes - np.array([0, 1]), classes.rows, classes.sensitive)
    with pytest.raises(PolicyError, match="one value of 'disease' per person, but in 1 class somebody"):
        CkSafety(c="1/2", k=1).check(fewer, Context())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"c": 0, "k": 1}, "require.c: 0 is not a share"),
        ({"c": "3/2", "k": 1}, "require.c: 3/2 is not a share"),
        ({"c": "1/2", "k": -1}, "require.k: -1 is not allowed"),
        ({"c": "1/2", "k": 101}, "require.k: 101 is not allowed"),
        ({"c": "1/2", "k": True}, "require.k: True is not a whole number"),
        ({"c": "1/2"}, "require.k: this setting is required"),
    ],
)
def test_bad_parameters_are_refused(values, message):
    with pytest.raises(PolicyError, match=message):
        build_registered(MODELS, "model", "ck-safety", values, "require")
