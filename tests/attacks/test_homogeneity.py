"""Homogeneity: the share in the class, and the figures beside it, against definitions written out by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maskwright.attacks.homogeneity import Homogeneity
from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.classes import ValueCounts
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.settings import build_registered
from maskwright.domain.summary import Shared, Summary
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.models import MODELS
from tests.attacks.build import Values, beliefs_by_counting, release, target_of
from tests.support import adult, context_of, summarise, task_of

VALUES = st.sampled_from(["a", "b", "c", None])
GROUPS = st.lists(st.lists(VALUES, min_size=1, max_size=5), min_size=1, max_size=4)
FEW = st.lists(st.lists(VALUES, min_size=1, max_size=4), min_size=1, max_size=2)


def attack(target: Target) -> Any:
    return Homogeneity().run(target, Adversary())


def named(groups: list[Values]) -> list[dict[str, Values]]:
    return [{f"t{g}": values} for g, values in enumerate(groups)]


def model(name: str, **settings: Any) -> Any:
    return build_registered(MODELS, "model", name, settings, "here")


def test_the_example_of_the_page() -> None:
    target = release([{"a": ["HIV", "HIV", "HIV"]}, {"b": ["flu", "flu", "HIV", "none"]}])
    found = attack(target)
    assert (found.worst.before, found.worst.after) == (Fraction(4, 7), 1)
    assert found.worst.whom == "each of the 3 people with zip group 1"
    assert found.worst.why == "all of them have s HIV, and the class shows it"
    measures = found.measures["attributes"]["s"]
    assert measures["people_in_homogeneous_classes"] == 3
    assert measures["share_in_homogeneous_classes"] == Fraction(3, 7)


@given(FEW, GROUPS)
def test_the_worst_share_is_that_of_possible_worlds(groups: list[Values], dropped: list[Values]) -> None:
    gone = {f"gone{i}": values for i, values in enumerate(dropped)}
    found = attack(release(named(groups), gone))
    table = [v for values in [*groups, *dropped] for v in values]
    domain = sorted({v for v in table if v is not None})
    by_counting = beliefs_by_counting(named(groups), lambda world: True, [[v] for v in domain])
    assert by_counting is not None
    worst = max((x for row in by_counting.values() for x in row), default=0)
    assert found.worst.after == worst
    if worst:
        shares = {Fraction(table.count(v), len(table)) for i, v in enumerate(domain)
                  if worst in [row[i] for row in by_counting.values()]}  # fmt: skip
        assert found.worst.before in shares
        measures = found.measures["attributes"]["s"]
        alike = [vs for vs in groups if len(set(vs)) == 1 and vs[0] is not None]
        assert measures["people_in_homogeneous_classes"] == sum(map(len, alike))
        above = [vs for vs in groups if any(2 * vs.count(v) > len(vs) for v in domain)]
        assert measures["vulnerable_people"] == sum(map(len, above))
        assert measures["threshold"] == Fraction(1, 2)
    assert found.measures["dropped_people"] == sum(map(len, dropped))
    assert found.kind == "exact"


@given(GROUPS)
def test_only_flagged_values_count_and_the_others_are_counted_beside(groups: list[Values]) -> None:
    sets = [["a", "b"]]
    requirement = model("simple-l-diversity", l=3, sets=sets, attribute="s")
    found = attack(release(named(groups), {"z": ["a"]}, models=[requirement]))
    assert found.worst.after == max(Fraction(sum(v in sets[0] for v in vs), len(vs)) for vs in groups)
    measures = found.measures["attributes"]["s"]
    assert measures["threshold"] == Fraction(1, 3)
    assert found.measures["values_not_flagged"] == int(any("c" in vs for vs in groups))
    assert found.measures["worst_share_of_a_value_not_flagged"] == max(
        Fraction(vs.count("c"), len(vs)) for vs in groups
    )


def test_a_model_that_names_no_value_flags_all() -> None:
    requirements = [
        model("simple-l-diversity", l=3, values=["b"]),
        model("alpha-k-anonymity", alpha="1/2", k=2),
    ]
    assert attack(release([{"t": ["a", "a", "b"]}], models=requirements)).worst.after == Fraction(2, 3)
    assert attack(release([{"t": ["a", "a", "b"]}], models=requirements[:1])).worst.after == Fraction(1, 3)


def test_overlapping_sets() -> None:
    requirement = model("simple-l-diversity", l=2, sets=[["a", "b"], ["b", "c"]])
    found = attack(release([{"t": ["a", "b", "c", "c"]}], models=[requirement]))
    assert found.worst.after == Fraction(3, 4)
    assert "b or c" in found.worst.why


@given(GROUPS)
def test_the_largest_distance_is_variational(groups: list[Values]) -> None:
    found = attack(release(named(groups)))
    table = [v for vs in groups for v in vs if v is not None]
    expected = Fraction(0)
    for vs in groups:
        here = [v for v in vs if v is not None]
        p, q = Counter(here), Counter(table)
        if here:
            total = sum((abs(Fraction(p[v], len(here)) - Fraction(q[v], len(table))) for v in q), Fraction(0))
            expected = max(expected, total / 2)
    assert found.measures["attributes"]["s"]["largest_distance"] == expected


def test_nothing_to_learn_and_nothing_to_attack() -> None:
    found = attack(release([{"t": [None, None]}]))
    assert found.worst.after == 0
    assert found.as_dict()["worst"]["whom"] == "nobody"
    summary = summarise([Hierarchy.of("zip", ["1"], [])], [["1"]])
    assert not Homogeneity().applies(target_of(summary, np.array([0])))


def test_people_count_not_rows() -> None:
    """Two people share tuple t; one of them also has a row with another value in tuple u, published with t."""
    qi = Hierarchy.of("zip", ["t", "u"], [])
    ones = np.array([1, 0], dtype=np.int64)
    base = ValueCounts.collect(("a", "b"), 2, np.array([0]), np.array([1]), np.array([1]))
    shared = Shared(
        np.array([0, 1]), np.array([0, 0]), 1, {"s": (np.array([0, 1]), np.array([0, 0]), np.array([1, 2]))}
    )
    summary = Summary((qi,), np.array([[1, 2]], np.int32), np.array([2, 1]), ones, {"s": base}, shared)
    target = target_of(summary, np.array([0, 0]))
    found = attack(target)
    assert found.worst.after == 1  # both people of the class have a
    assert "2 people" in found.worst.whom
    assert found.measures["dropped_people"] == 0
    sets = replace(target, models=[model("simple-l-diversity", l=2, sets=[["a", "b"]])])
    assert attack(sets).worst.after == 1  # never more than everybody
    assert attack(sets).kind == "bounded"
    apart = attack(replace(target_of(summary, np.array([0, -1]))))
    assert apart.measures["dropped_people"] == 0  # one of the two tuples is gone, but nobody with it


def test_the_starred_group_is_a_group_like_any_other() -> None:
    found = attack(release([{"t": ["a", "b"]}, {"u": ["a"], "v": ["a"]}], starred=1))
    assert found.worst.after == 1
    assert found.worst.whom == "each of the 2 people with all quasi-identifiers published as *"


def test_adult() -> None:
    summary = adult("occupation")
    task = task_of(summary, [model("k-anonymity", k=5)])
    grouping = OptimalLattice(suppression="0.02").group(task)
    found = attack(Target(grouping, task.search, OptimalLattice(), context_of(summary)))
    counts = grouping.classes.sensitive["occupation"]
    shares = counts.counts / grouping.classes.sizes[counts.owner]
    assert float(found.worst.after) == shares.max()
    assert found.measures["dropped_people"] == grouping.dropped_rows > 0
