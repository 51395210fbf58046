"""Learned beliefs: the published sequence, orders counted one by one, and the control beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maskwright as mw
from maskwright.attacks.learned import (
    OTHERS,
    OTHERS_ALONE,
    Expectation,
    Learned,
    SeenGroups,
    _from_others,
    learned_shares,
)
from maskwright.errors import PolicyNotMet
from maskwright.pipeline.attacking import ADVERSARIES, attack_target
from tests.attacks.build import release

SMOKERS = [
    {"smoker": ["cancer"], "non": ["flu"]},
    {"smoker": ["cancer", "flu"]},
    {"non": ["flu", "flu"]},
]


def deals(groups: Sequence[dict[str, Sequence[str]]]) -> SeenGroups:
    """Groups as kind of person → values, with one feature: the kind."""
    kinds = sorted({kind for group in groups for kind in group})
    values = sorted({v for group in groups for vs in group.values() for v in vs})
    entries = [(g, kinds.index(k), len(vs)) for g, group in enumerate(groups) for k, vs in group.items()]
    columns = sorted(
        (g, values.index(v), sum(list(vs).count(v) for vs in group.values()))
        for g, group in enumerate(groups)
        for v in {v for vs in group.values() for v in vs}
    )
    group, kind, rows = (np.array(x) for x in zip(*entries, strict=True))
    owner, value, held = (np.array(x) for x in zip(*columns, strict=True))
    return SeenGroups(kind[None, :], group, rows, owner, value, held, len(values), (len(kinds),))


@pytest.mark.parametrize(
    ("rounds", "belief"),
    [(1, Fraction(5, 6)), (2, Fraction(187, 194)), (3, Fraction(73025, 73494))],
)
def test_smokers_and_cancer(rounds: int, belief: Fraction) -> None:
    """The belief that the smoker of the first group has cancer goes 1/2, 5/6, 187/194, … to 1."""
    smokers = deals(SMOKERS)
    assert smokers.even_shares()[0] == 0.5
    shares, _, done = learned_shares(smokers, smoothing=0, rounds=rounds)
    assert (shares[0], done) == (pytest.approx(float(belief), abs=1e-12), rounds)


def test_the_sequence_ends_at_certainty() -> None:
    shares, _, _ = learned_shares(deals(SMOKERS), smoothing=0)
    assert shares[0] == pytest.approx(1, abs=1e-5)


def by_orders(weights: np.ndarray[Any, Any], held: Sequence[int]) -> np.ndarray[Any, Any]:
    """P(person holds value), by listing the orders of the values of one group."""
    values = [v for v, many in enumerate(held) for _ in range(many)]
    total = np.zeros_like(weights)
    for order in set(permutations(values)):
        weight = np.prod([weights[i, v] for i, v in enumerate(order)])
        for i, v in enumerate(order):
            total[i, v] += weight
    found: np.ndarray[Any, Any] = total / total.sum(axis=1, keepdims=True)
    return found


@st.composite
def one_group(draw: st.DrawFn) -> tuple[list[int], np.ndarray[Any, Any]]:
    """How often a group holds its values, and a weight of each value for each person."""
    held = draw(st.lists(st.integers(1, 3), min_size=2, max_size=3).filter(lambda x: sum(x) <= 6))
    numbers = draw(
        st.lists(st.floats(0.05, 1), min_size=sum(held) * len(held), max_size=sum(held) * len(held))
    )
    return held, np.array(numbers).reshape(sum(held), len(held))


def group_of(held: Sequence[int]) -> SeenGroups:
    people, many = sum(held), len(held)
    return SeenGroups(
        np.arange(people)[None, :], np.zeros(people, np.int64), np.ones(people, np.int64),
        np.zeros(many, np.int64), np.arange(many), np.array(held), many, (people,),
    )  # fmt: skip


@given(one_group())
def test_small_groups_by_every_order(group: tuple[list[int], np.ndarray[Any, Any]]) -> None:
    held, weights = group
    found = Expectation(group_of(held)).shares(np.log(weights).reshape(-1))
    assert found.reshape(weights.shape) == pytest.approx(by_orders(weights, held), abs=1e-9)


@given(one_group())
def test_large_groups_have_the_right_sums(group: tuple[list[int], np.ndarray[Any, Any]]) -> None:
    """Scaled instead of counted: everybody holds one value, and every value is held as often as published."""
    held, weights = group
    found = Expectation(group_of(held), small=0).shares(np.log(weights).reshape(-1)).reshape(weights.shape)
    assert found.sum(axis=1) == pytest.approx(np.ones(len(weights)), abs=1e-6)
    assert found.sum(axis=0) == pytest.approx(np.array(held, dtype=float), abs=1e-3)


def test_several_people_of_one_kind_share_what_is_expected() -> None:
    together, apart = deals([{"a": ["x", "y"], "b": ["x"]}]), group_of([2, 1])
    weights = np.log(np.array([[0.3, 0.7], [0.3, 0.7], [0.9, 0.1]]))
    one = Expectation(together).shares(weights[[0, 2]].reshape(-1)).reshape(2, 2)
    three = Expectation(apart).shares(weights.reshape(-1)).reshape(3, 2)
    assert one == pytest.approx(np.array([three[0] + three[1], three[2]]))


ALONE = [{"a": ["cancer"], "b": ["flu"]}, {"c": ["cancer", "flu"]}, {"d": ["flu", "flu"]}]


def test_nothing_is_learned_from_people_with_nothing_in_common() -> None:
    found = attack_target(release(ALONE), [Learned(smoothing=0.0)], ADVERSARIES["learns"])[0]
    measures = found.measures["attributes"]["s"]
    assert (found.kind, found.adversary, float(found.worst.after)) == (
        "estimated",
        "learns",
        1,
    )  # d is certain
    mean = measures["mean_belief_in_the_truth"]
    assert mean["random worlds"] == mean["learned"] == pytest.approx((4 * 0.5 + 2) / 6)
    assert measures["groups_counted_exactly"] == 3
    assert [x["true"] for x in measures["calibration"]] == [0.5, 1]


def test_as_many_sets_as_values() -> None:
    """Everybody has cancer or flu, whatever is learned: sets are not taken for values."""
    sets = {"s": (("cancer", "flu"), ("cancer",))}
    target = replace(release([{"a": ["cancer"], "b": ["flu"]}]), secrets=sets)
    assert attack_target(target, ["learned"], ADVERSARIES["learns"])[0].worst.after == 1


def test_others_do_not_learn() -> None:
    assert attack_target(release(ALONE), ["learned"], ADVERSARIES["knows-method"]) == []


def patients(n: int = 400) -> pd.DataFrame:
    """Smokers have cancer, mostly; the others the flu or a cold."""
    rng = np.random.default_rng(5)
    smoker, luck = rng.integers(0, 2, n), rng.random(n)
    often, seldom = np.where(smoker, "cancer", "flu"), np.where(smoker, "flu", "cancer")
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n), "smoker": np.where(smoker, "yes", "no"),
            "disease": np.where(luck < 0.75, often, np.where(luck < 0.95, "cold", seldom)),
        }
    )  # fmt: skip


def policy(**more: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}},
            "smoker": {"role": "quasi-identifier", "hierarchy": "suppress"},
            "disease": "sensitive",
        },
        "require": [{"model": "distinct-l-diversity", "l": 2}], "method": {"name": "anatomy", "l": 2},
        "recoding": "bucketize", **more,
    }  # fmt: skip


def test_pairs_of_unlike_people_are_told_apart() -> None:
    """Anatomy with l = 2: random worlds believe the truth with a half, whoever learns with much more."""
    found = mw.attack(mw.anonymize(patients(), policy(), seed=1), "learned", adversary="learns")
    mean = found.measures["attributes"]["disease"]["mean_belief_in_the_truth"]
    assert mean["random worlds"] == pytest.approx(0.5, abs=0.02)
    assert mean["learned"] > 0.7 > mean["people who are not in it"] + 0.01
    # of the other half three smokers in four have cancer, and nobody needs the release to know that
    assert mean[OTHERS_ALONE] == pytest.approx(0.75**2 + 0.2**2 + 0.05**2, abs=0.05)
    assert mean[OTHERS] > mean[OTHERS_ALONE] + 0.1
    guess = found.measures["attributes"]["disease"]["best_guess_is_true"]
    assert guess[OTHERS] > guess[OTHERS_ALONE] == pytest.approx(0.75, abs=0.03)


def test_who_has_learned_from_others_tells_every_group_apart() -> None:
    """Smokers have cancer and nobody else: whoever knows that of other people is certain, with one value of each."""
    pairs = np.repeat(np.arange(4), 2)
    deals = SeenGroups(
        np.tile([0, 1], 4)[None], pairs, np.ones(8, np.int64), pairs, np.tile([1, 2], 4), np.ones(8, np.int64), 4, (2,)
    )  # fmt: skip
    truth = np.tile([1.0, 0.0, 0.0, 1.0], 4)
    assert _from_others(deals, truth, 0.0) == {OTHERS: (1, 1), OTHERS_ALONE: (1, 1)}
    one = deals.of_groups(np.arange(4) == 0)
    assert _from_others(one, truth[:4], 1.0)[OTHERS] == (None, None), "there are no others to learn from"


def test_a_bound_on_what_is_learned_is_measured() -> None:
    table = patients()
    require = [*policy()["require"], {"model": "belief", "max": "1/2", "adversary": "learns"}]
    with pytest.raises(PolicyNotMet, match="learned"):
        mw.anonymize(table, policy(require=require), seed=1)
    loose = [*policy()["require"], {"model": "belief", "max": 1, "adversary": "learns"}]
    verdict = mw.anonymize(table, policy(require=loose)).verdicts[-1]
    assert (verdict.ok, verdict.status) == (True, "measured")
    assert "learns from the release which worlds are likely" in verdict.why


def test_several_rows_per_person_are_added_up() -> None:
    """The belief in some row of a person is at most the sum over the rows, and 1."""
    table = patients(40).assign(who=[i // 2 for i in range(40)])
    spec = policy(
        unit="who", require=[{"model": "k-anonymity", "k": 2}], method={"name": "optimal-lattice"},
        recoding="generalise",
    )  # fmt: skip
    spec["columns"]["who"] = "identifier"
    found = mw.attack(mw.anonymize(table, spec, seed=1), "learned", adversary="learns")
    assert found.kind == "estimated"
    assert "of the rows of this person" in found.worst.why
