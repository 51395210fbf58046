"""Methods that cut ordered rows, against every world in which the plain algorithm publishes the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from maskwright.attacks.homogeneity import Homogeneity
from maskwright.attacks.minimality import Minimality
from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.promise import Design
from maskwright.domain.settings import build_registered
from maskwright.domain.summary import Joint, Summary
from maskwright.errors import PolicyNotMet
from maskwright.methods import METHODS
from maskwright.worlds import reference_methods
from maskwright.worlds.sampling.possible_worlds import (
    as_publication,
    deterministic_likelihood,
    posterior_beliefs,
    randomised_likelihood,
)
from tests.attacks.test_minimality import model
from tests.support import summarise, task_of

VALUES = st.lists(st.sampled_from("pqr"), min_size=4, max_size=9)
P = st.lists(st.sampled_from("pqq"), min_size=4, max_size=9)


def table(values: Sequence[str], equal: bool = False) -> Summary:
    """Rows in the order of one quasi-identifier; with `equal` pairs of rows share theirs."""
    qi = [f"{i // 2 if equal else i:02}" for i in range(len(values))]
    domain = ("p", "q", "r")
    summary = summarise(
        [Hierarchy.of("n", sorted(set(qi)), [], ordered=True)], [qi], {"s": values}, {"s": domain}
    )
    places = [(sorted(set(qi)).index(q), domain.index(v) + 1) for q, v in zip(qi, values, strict=True)]
    cells = sorted(Counter(places).items())
    joint = Joint(
        np.array([t for (t, _), _ in cells]), np.array([[v for (_, v), _ in cells]], dtype=np.int32),
        np.array([n for _, n in cells]),
    )  # fmt: skip
    return replace(summary, joint=joint)


def publish(
    values: Sequence[str], method: str, models: list[Any], equal: bool = False, **options: Any
) -> Target:
    task = task_of(table(values, equal), models)
    how = build_registered(METHODS, "method", method, options, "here")
    try:
        return Target(how.group(task), models, how, task.context, design=Design())
    except PolicyNotMet:
        assume(False)
        raise


def groups_of(target: Target) -> list[list[int]]:
    """Rows by group; a row is its tuple, because no two share one."""
    allocation = target.grouping.allocation
    n = len(target.grouping.classes.sizes)
    return [allocation.tuples[allocation.groups == g].tolist() for g in range(n)]


def diverse(ell: int, flagged: str) -> Any:
    return lambda counts: all(counts.get(v, 0) * ell <= sum(counts.values()) for v in flagged)


def worst_of(beliefs: list[dict[str, Fraction]] | None, flagged: str) -> Fraction:
    assert beliefs is not None
    return max(row.get(v, Fraction(0)) for row in beliefs for v in flagged)


@given(VALUES, st.sampled_from(["symmetric-grouping", "mondrian"]), st.sampled_from([2, 3]), st.booleans())
def test_a_refused_split(values: list[str], method: str, ell: int, every: bool) -> None:
    """One flagged value; `every`: beliefs about all values are asked for, though one alone decides."""
    models = [model("simple-l-diversity", l=ell, values=["p"])]
    options: dict[str, Any] = {} if method == "symmetric-grouping" else {"cut": "relaxed", "choose": "range"}
    target = publish(values, method, models, **options)
    if every:
        target = replace(target, models=[*models, model("simple-l-diversity", l=1, use="gate")])
    assert Minimality().applies(target)
    found = Minimality().run(target, Adversary())
    qi = [(i,) for i in range(len(values))]
    plain = deterministic_likelihood(
        lambda world: reference_methods.symmetric_grouping(qi, world, diverse(ell, "p"), ell)
    )
    truth = posterior_beliefs(values, groups_of(target), plain)
    assert found.worst.after == worst_of(truth.beliefs, "pqr" if every else "p")
    shown = Homogeneity().run(target, Adversary()).worst.after
    assert found.kind == "bounded" or found.worst.after == shown
    assert found.measures["knowing"] == "the method and its parameters"


@given(P, st.sampled_from([2, 3]), st.sampled_from(["0", "1/2"]))
def test_a_further_bucket(values: list[str], ell: int, extend: str) -> None:
    models = [model("simple-l-diversity", l=ell, values=["p"])]
    target = publish(values, "greedy-grouping", models, extend=extend)
    assert Minimality().applies(target)
    found = Minimality().run(target, Adversary())
    qi = [(i,) for i in range(len(values))]
    groups = groups_of(target)
    likelihood = (
        deterministic_likelihood(
            lambda world: reference_methods.greedy_grouping(qi, world, diverse(ell, "p"), ell)
        )
        if extend == "0"
        else randomised_likelihood(
            lambda world: reference_methods.randomised_greedy(
                qi, world, diverse(ell, "p"), ell, Fraction(extend), as_publication(groups)
            )
        )
    )
    truth = posterior_beliefs(values, groups, likelihood)
    assert found.worst.after == worst_of([b for b in truth.beliefs or [] if b], "p")


@given(VALUES)
def test_the_bound_is_never_below_what_groups_show(values: list[str]) -> None:
    """Pairs of rows share their quasi-identifiers: which of the two is in which half is not known."""
    models = [model("simple-l-diversity", l=2, values=["p"])]
    target = publish(values, "symmetric-grouping", models, equal=True)
    found = Minimality().run(target, Adversary())
    assert found.worst.after >= Homogeneity().run(target, Adversary()).worst.after


def test_the_example_of_the_page() -> None:
    """Figure 6(a) of the paper: greedy grouping, l = 2, four rows, two positives: the first two certainly are."""
    target = publish("ppqq", "greedy-grouping", [model("simple-l-diversity", l=2, values=["p"])])
    found = Minimality().run(target, Adversary())
    assert (found.worst.before, found.worst.after) == (Fraction(1, 2), 1)
    assert found.worst.whom.startswith("some of the 4 people with n ")
    assert found.measures["vulnerable_people"] == 4


def test_balanced_cuts_and_anatomy_give_nothing_away() -> None:
    """A bound where the labels of several buckets fit a person; exact where it is published who is in which."""
    models = [model("simple-l-diversity", l=2)]
    made = {method: publish("pqpqrqpr", method, models) for method in ("mondrian", "anatomy")}
    for target, kind in (
        (made["mondrian"], "exact"),
        (made["anatomy"], "bounded"),
        (replace(made["anatomy"], exact=True), "exact"),
    ):
        found = Minimality().run(target, Adversary())
        assert (found.kind, found.measures["status"]) == (kind, "guaranteed")
        assert found.worst.after == Homogeneity().run(target, Adversary()).worst.after


@pytest.mark.parametrize(
    ("method", "asked", "options"),
    [
        ("greedy-grouping", {"l": 2}, {}),  # several sets
        ("greedy-grouping", {"l": 2, "values": ["p"]}, {"l": 4}),  # buckets of another size
        ("mondrian", {"l": 2, "values": ["p"]}, {"cut": "strict"}),
        ("mondrian", {"l": 2, "values": ["p"]}, {"cut": "relaxed", "dimensions": "fallback"}),
        ("symmetric-grouping", {"l": 2, "values": ["p"]}, {"ways": 3}),
    ],
)
def test_where_it_does_not_apply(method: str, asked: dict[str, Any], options: dict[str, Any]) -> None:
    target = publish("pqrqpqrq", method, [model("simple-l-diversity", **asked)], **options)
    assert not Minimality().applies(target)


def test_a_group_too_small_to_be_divided_tells_nothing() -> None:
    """Halves of 4 {p,p,q,q} and 3 {p,q,q}: the first was refused, the second never tried (2 + 1 rows, guard 2)."""
    target = publish("ppqqpqq", "symmetric-grouping", [model("simple-l-diversity", l=2, values=["p"])])
    assert target.grouping.classes.sizes.tolist() == [4, 3]
    found = Minimality().run(target, Adversary())
    assert (found.worst.after, found.kind) == (Fraction(1, 2), "bounded")
    assert found.measures["vulnerable_people"] == 0
