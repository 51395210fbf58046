"""Skewness and similarity, against definitions written out by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.attacks.similarity import Similarity
from maskwright.attacks.skewness import Skewness
from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.settings import build_registered
from maskwright.errors import PolicyError
from maskwright.models import MODELS
from tests.attacks.build import Values, release

GROUPS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=5), min_size=1, max_size=4
)
NUMBERS = st.lists(
    st.lists(st.sampled_from(["0", "1", "2.5", "3", "10", None]), min_size=1, max_size=5),
    min_size=1,
    max_size=4,
)


def named(groups: list[Values]) -> list[dict[str, Values]]:
    return [{f"t{g}": values} for g, values in enumerate(groups)]


def skewness(target: Target) -> Any:
    return Skewness().run(target, Adversary())


def similarity(target: Target, **settings: Any) -> Any:
    return Similarity(**settings).run(target, Adversary())


def test_the_example_of_the_page() -> None:
    target = release([{"a": ["HIV", "HIV", "HIV"]}, {"b": ["flu", "flu", "HIV", "none"]}])
    found = skewness(target)
    measures = found.measures["attributes"]["s"]
    assert measures["ratio"] == Fraction(7, 4)
    assert (found.worst.before, found.worst.after) == (Fraction(4, 7), 1)
    assert found.worst.why == "s HIV is 1.75 times as likely there as in the whole table"
    assert measures["gain"]["gain"] == Fraction(3, 7)


@given(GROUPS, GROUPS)
def test_ratio_and_gain(groups: list[Values], dropped: list[Values]) -> None:
    found = skewness(release(named(groups), {f"gone{i}": vs for i, vs in enumerate(dropped)}))
    table = [v for vs in [*groups, *dropped] for v in vs]
    measures = found.measures["attributes"]["s"]
    pairs = [
        (Fraction(vs.count(v), len(vs)), Fraction(table.count(v), len(table)), len(vs), g)
        for g, vs in enumerate(groups) for v in sorted({x for x in vs if x is not None})
    ]  # fmt: skip
    if not pairs:
        assert found.worst.after == 0
        return
    assert measures["ratio"] == max(a / b for a, b, _, _ in pairs) == found.worst.after / found.worst.before
    assert measures["gain"]["gain"] == max(a - b for a, b, _, _ in pairs)
    assert measures["vulnerable_people"] == sum(
        len(groups[g]) for g in {g for a, b, _, g in pairs if a > 2 * b}
    )


def test_similarity_by_the_hierarchy() -> None:
    tree = Hierarchy.of("s", ["a", "b", "c", "d"], [("kind", ["x", "x", "y", "z"])])
    target = release([{"t": ["a", "b", "d"]}, {"u": ["c", "c", "d"]}])
    assert not Similarity().applies(target)
    target = replace(target, context=replace(target.context, hierarchies={"s": tree}))
    assert Similarity().applies(target)
    found = similarity(target)
    assert (found.worst.before, found.worst.after) == (Fraction(1, 3), Fraction(2, 3))
    assert found.worst.why == "the s of 2 of the 3 lies under x"
    assert found.measures["attributes"]["s"]["vulnerable_people"] == 3


@given(NUMBERS, st.sampled_from(["0", "0.1", "0.25", "0.3"]))
def test_similarity_of_numbers(groups: list[Values], width: str) -> None:
    target = release(named(groups))
    values = sorted({Fraction(v) for vs in groups for v in vs if v is not None})
    if len(values) < 3:
        assert not Similarity().applies(target)
        return
    far = (values[-1] - values[0]) * Fraction(width)
    shares = [
        Fraction(sum(v is not None and low <= Fraction(v) <= low + far for v in vs), len(vs))
        for vs in groups for low in values
    ]  # fmt: skip
    found = similarity(target, width=width)
    assert found.worst.after == max(shares)
    # before: the whole table's share of the same range
    table = [Fraction(v) for vs in groups for v in vs if v is not None]
    every = [Fraction(sum(low <= v <= low + far for v in table), sum(map(len, groups))) for low in values]
    assert found.worst.before in every
    above = {
        g
        for g, vs in enumerate(groups)
        for i in range(len(values))
        if shares[g * len(values) + i] > Fraction(1, 2)
    }
    assert found.measures["attributes"]["s"]["vulnerable_people"] == sum(len(groups[g]) for g in above)


def test_a_narrow_range_in_words() -> None:
    groups: list[Values] = [["30000", "31000", "32000"], ["10000", "90000", "100000"]]
    found = similarity(release(named(groups)))
    assert (found.worst.before, found.worst.after) == (Fraction(1, 2), 1)
    assert found.worst.why == "the s of all of them lies between 30000 and 32000"
    assert found.worst.whom == "each of the 3 people with zip group 1"


def test_the_bound_is_that_of_the_policy() -> None:
    model = build_registered(MODELS, "model", "simple-l-diversity", {"l": 4}, "here")
    groups: list[Values] = [["1", "2", "50", "100"], ["1", "30", "60", "90"]]
    found = similarity(release(named(groups), models=[model]))
    assert found.measures["attributes"]["s"]["threshold"] == Fraction(1, 4)
    assert found.measures["attributes"]["s"]["vulnerable_people"] == 4


def test_width_is_a_share() -> None:
    with pytest.raises(PolicyError, match="less than 1"):
        Similarity(width=1)  # type: ignore[arg-type]
