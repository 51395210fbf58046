"""A method that is run once for many worlds comes to what it comes to in each of them by itself."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwright.attacks._minimality import common_runs
from maskwright.attacks._minimality.common_runs import decides_by_models
from maskwright.attacks._minimality.enumeration import Enumeration, World, _worlds_of_places
from maskwright.attacks._minimality.world_tables import PublishedPeople
from maskwright.attacks.minimality import KNOWS_METHOD, Minimality
from maskwright.domain.adversary import Target
from maskwright.pipeline.attacking import target_of
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from maskwright.policy.policy import Policy
from maskwright.worlds.sampling.world_sampler import WorldBudget

QUASI = {"role": "quasi-identifier"}
SUPPRESSING = {"name": "optimal-lattice", "suppression": "25%"}
METHODS: dict[str, Any] = {
    "relaxed": {"name": "mondrian", "cut": "relaxed"},
    "strict": {"name": "mondrian", "cut": "strict"},
    "fallback": {"name": "mondrian", "cut": "relaxed", "dimensions": "fallback"},
    "greedy": "greedy-grouping",
    "greedy, extending": {"name": "greedy-grouping", "extend": "1/2"},
    "symmetric": "symmetric-grouping",
    "local": "local-recoding",
    "local, suppressing": {"name": "local-recoding", "suppression": "25%"},
    "small classes": SUPPRESSING,
    "failing classes": {**SUPPRESSING, "suppress": "failing-classes"},
}
MODELS: list[dict[str, Any]] = [
    {"model": "simple-l-diversity", "l": "3/2"},
    {"model": "t-closeness", "t": "1/3"},
    {"model": "ck-safety", "c": "9/10", "k": 1},  # of the whole release
]


def a_target(rows: dict[str, list[str]], method: Any, model: dict[str, Any], k: int = 1) -> Target:
    policy = {
        "columns": {"age": QUASI | {"hierarchy": {"intervals": [2, 4]}}, "zip": QUASI} | {
            name: "sensitive" for name in rows if name not in ("age", "zip")
        },
        "method": method,
        "require": [{"model": "k-anonymity", "k": k}, {"attribute": "s", **model}],
    }  # fmt: skip
    return target_of(publish_release(Job(pa.table(rows), Policy.load(policy), attacks=())))


def an_enumeration(target: Target) -> tuple[Enumeration, list[tuple[World, int]]]:
    places = PublishedPeople.of(target).with_dropped()
    listed = Enumeration(target, places, places.group * 0, WorldBudget(1000, 60))
    return listed, list(_worlds_of_places(places, listed.blocks))


SIX = {"age": list("112345"), "zip": list("abbaab"), "s": list("xyxzyx")}
TWO_SECRETS = {"age": list("11234"), "zip": list("ababa"), "s": list("xyxyx"), "t": list("uuvvu")}
FIVE = {
    "age": list("11222"),
    "zip": list("aaaaa"),
    "s": list("aabba"),
}  # buckets of two leave one of them out
MILD = {"model": "simple-l-diversity", "l": "5/4"}


@pytest.mark.parametrize(
    ("method", "model", "rows"),
    [
        *((method, MODELS[i % 2], SIX) for i, method in enumerate(METHODS) if "extending" not in method),
        *((method, MILD, TWO_SECRETS) for method in ("relaxed", "greedy, extending", "small classes")),
        ("greedy", MILD, FIVE),
        *((method, MODELS[2], SIX) for method in ("small classes", "failing classes")),
    ],
)
def test_as_world_by_world(method: str, model: dict[str, Any], rows: dict[str, list[str]]) -> None:
    target = a_target(rows, METHODS[method], model)
    listed, worlds = an_enumeration(target)
    assert decides_by_models(target)
    together = listed._in_common(worlds)
    runs, listed.runs = listed.runs, 0
    assert together == listed._one_by_one(worlds, len(worlds))
    assert together
    if rows is SIX:  # where few rows are alike
        assert runs <= listed.runs


def test_answers_that_differ_are_what_tells_worlds_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """If every world were taken to give the answers of the first one, the beliefs would be wrong."""
    target = a_target(SIX, METHODS["fallback"], MODELS[0])
    listed, worlds = an_enumeration(target)
    right = listed._in_common(worlds)

    def only_the_first(self: Any, ask: Any, local: bool, classes: Any, context: Any) -> Any:
        return np.asarray(ask(self._counted(self._codes(classes)[0]), context))

    monkeypatch.setattr(common_runs.CommonRuns, "answers", only_the_first)
    assert listed._in_common(worlds) != right


DOZEN = {"age": [str(i) for i in range(1, 13)], "zip": list("aabbccddabcd"), "s": list("xyzxyzzyxzyx")}


@pytest.mark.parametrize(
    ("method", "model"),
    [
        *((m, MODELS[0]) for m in ("relaxed", "fallback", "symmetric", "small classes", "local")),
        ("local", MODELS[1]),
    ],
)
def test_a_dozen_different_rows_with_three_values(method: str, model: dict[str, Any]) -> None:
    """34,650 worlds, and a few runs."""
    target = a_target(DOZEN, METHODS[method], model, k=2)
    found = Minimality().run(target, KNOWS_METHOD)
    assert found.kind == "exact"
    assert found.worst.interval is None
    assert isinstance(found.worst.after, Fraction)


def test_a_method_that_sees_values_otherwise_is_run_on_every_world() -> None:
    """Anatomy puts different values into a bucket, and a plug-in may do whatever it likes."""
    anatomised = a_target(SIX, {"name": "mondrian", "cut": "relaxed", "anatomize": 2}, MODELS[0])
    assert not decides_by_models(anatomised)
