"""Background knowledge: the worst facts, against enumeration of worlds and of all implications."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.attacks.background_knowledge import BackgroundKnowledge
from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.hierarchy import Hierarchy
from maskwright.errors import PolicyError
from tests.attacks.build import Values, release, target_of
from tests.oracles.knowledge import FIGURE_3, Worlds
from tests.support import summarise


def attack(target: Target, facts: int = 0, **options: Any) -> Any:
    return BackgroundKnowledge(**options).run(target, Adversary("insider", facts=facts))


def named(groups: Any) -> list[dict[str, Values]]:
    return [{f"t{g}": values} for g, values in enumerate(groups)]


def test_figure_3() -> None:
    target = release(named(FIGURE_3))
    found = attack(target, 1)
    assert (found.worst.before, found.worst.after) == (Fraction(2, 5), Fraction(2, 3))
    assert found.worst.whom == "each of the 5 people with zip group 1 (class 1) and somebody who knows 1 fact"
    assert found.worst.why == (
        "s: knowing that a person of class 1 does not have lung cancer: "
        "the belief that a person of class 1 has flu is 66.67 % (2/3)"
    )
    measures = found.measures["attributes"]["s"]
    assert measures["implications"][:3] == [Fraction(2, 5), Fraction(2, 3), 1]
    assert measures["certain_from"] == 2
    assert measures["classes"] == {1: "zip group 1"}


GROUPS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=3), min_size=1, max_size=2
)


@given(GROUPS, st.integers(0, 2))
def test_the_curve_is_that_of_possible_worlds(groups: list[Values], facts: int) -> None:
    found = attack(release(named(groups)), facts, most=2)
    worlds = Worlds(groups)
    measures = found.measures["attributes"]["s"]
    assert measures["implications"] == [worlds.by_implications(k) for k in range(3)]
    assert measures["negations"] == [worlds.by_negations(k) for k in range(3)]
    assert found.measures["facts"] == max(facts, 1)
    assert found.worst.after == worlds.by_implications(facts or 1)
    assert found.worst.before == worlds.by_implications(0)
    certain = [k for k in range(3) if measures["implications"][k] == 1]
    assert measures["certain_from"] == (certain[0] if certain else None)
    alone = [g for g in groups if Worlds([g]).by_implications(facts or 1) >= Fraction(1, 2)]
    assert measures["vulnerable_people"] == sum(map(len, alone))


def test_the_curve_goes_as_far_as_the_adversary() -> None:
    found = attack(release([{"t": ["a", "b", "c", "d", "e", "f", "g", "h", "i"]}]), 7)
    assert len(found.measures["attributes"]["s"]["implications"]) == 8
    assert found.worst.after == Fraction(1, 2)
    assert len(attack(release([{"t": ["a", "b"]}])).measures["attributes"]["s"]["negations"]) == 6


def test_facts_about_several_people_are_told_apart() -> None:
    groups = [["x"] * 3 + ["a", "b", "c"], ["y"] * 2 + ["a", "b", "c", "d"]]
    found = attack(release(named(groups)), 2)
    assert "person no. 2 of class 1" in found.worst.why
    assert found.worst.after == Worlds([groups[0]]).by_implications(2)


def test_nothing_to_learn_and_nothing_to_attack() -> None:
    found = attack(release([{"t": [None, None]}]), 3)
    assert (found.worst.after, found.measures["attributes"]["s"]["classes"]) == (0, {})
    summary = summarise([Hierarchy.of("zip", ["1"], [])], [["1"]])
    assert not BackgroundKnowledge().applies(target_of(summary, np.array([0])))


def test_columns_with_several_values_per_person_are_left_out() -> None:
    summary = summarise(
        [Hierarchy.of("zip", ["1"], [])], [["1"] * 3], {"s": ["a", "b", "b"], "d": ["x", "x", "y"]}
    )
    target = target_of(summary, np.array([0]))
    target.grouping.classes.sizes[:] = 2  # two people with three values
    assert not BackgroundKnowledge().applies(target)
    target.grouping.classes.sensitive["d"].counts[:] = 1
    assert BackgroundKnowledge().applies(target)
    found = attack(target, 1)
    assert found.measures["not_attacked"] == ["s"]
    assert found.worst.after == 1


def test_options_are_checked() -> None:
    with pytest.raises(PolicyError, match="most"):
        BackgroundKnowledge(most=-1)
