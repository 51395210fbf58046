"""Small releases are attacked by every world and every random choice: exactly what the product itself comes to."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.attacks._minimality.enumeration import every_world
from maskwright.attacks._minimality.replay import Again
from maskwright.pipeline.attacking import target_of
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from maskwright.policy.policy import Policy
from maskwright.worlds.sampling.choices import TooManyChoices, every_choice
from maskwright.worlds.sampling.world_sampler import WorldBudget
from tests.promise.posterior import belief_after, enumerated
from tests.promise.product import minimality_of
from tests.promise.tables import Case

QUASI = {"role": "quasi-identifier"}


def a_case(quasi: list[tuple[str, ...]], values: tuple[str, ...]) -> Case:
    people = tuple(f"p{i}" for i in range(len(quasi)))
    names = tuple(f"q{i + 1}" for i in range(len(quasi[0])))
    return Case(names, tuple(quasi), people, {"s": values}, {"s": (1,) * len(values)})


TWO = [("1", "a"), ("2", "b"), ("3", "a"), ("4", "b"), ("4", "b"), ("5", "a")]
ONE = [("1",), ("1",), ("1",), ("2",), ("2",), ("3",)]  # groups with the same labels

POLICIES: dict[str, tuple[Any, Any]] = {
    "lattice": ("optimal-lattice", {"model": "simple-l-diversity", "l": "3/2"}),
    "safe lattice": ("optimal-lattice", {"model": "ck-safety", "c": "9/10", "k": 1}),
    "strict cuts": ({"name": "mondrian", "cut": "strict"}, {"model": "entropy-l-diversity", "l": "3/2"}),
    "relaxed cuts": ({"name": "mondrian", "cut": "relaxed"}, {"model": "distinct-l-diversity", "l": 2}),
    "greedy": ("greedy-grouping", {"model": "simple-l-diversity", "l": 2}),
    "greedy by distance": ("greedy-grouping", {"model": "t-closeness", "t": "1/2"}),
    "greedy by entropy": ("greedy-grouping", {"model": "entropy-l-diversity", "l": "3/2"}),
    "symmetric": ("symmetric-grouping", {"model": "simple-l-diversity", "l": "3/2"}),
    "balanced": ("mondrian", {"model": "distinct-l-diversity", "l": 2}),
}


@pytest.mark.parametrize("quasi", [TWO, ONE], ids=["two columns", "one column"])
@pytest.mark.parametrize("name", POLICIES)
def test_beliefs_are_those_of_all_worlds(name: str, quasi: list[tuple[str, ...]]) -> None:
    """Nobody is dropped, so that every release shows the values of the whole table."""
    method, model = POLICIES[name]
    safe = name == "safe lattice"  # of two values one fact tells which of them it is
    case = a_case(quasi[:5], ("x", "y", "z")) if safe else a_case(quasi, ("x", "y"))
    policy = Policy.load({
        "columns": dict.fromkeys(case.names, QUASI) | {"s": "sensitive"},
        "method": method,
        "require": [{"model": "k-anonymity", "k": 2}, model | {"attribute": "s"}],
    })  # fmt: skip
    outputs = enumerated(case, policy, 20_000)
    compared = 0
    for public, told in outputs.items():
        if not all(told.there):
            continue
        world = next(iter(told.likelihood))
        kind, largest = minimality_of(case.table(world), policy, public, whole=True)
        true = max(
            belief_after(case, outputs, public, "s", p, (v,)) for p in case.people for v in case.domains["s"]
        )
        assert kind == "exact"
        assert float(largest) == pytest.approx(true)
        compared += 1
    assert compared


def test_every_sequence_of_choices() -> None:
    seen = {}
    for choices in every_choice(1000):
        order = tuple(choices.permutation(3).tolist())
        coin = choices.integers(0, 2)
        seen[order, coin] = choices.probability
    assert len(seen) == 12
    assert set(seen.values()) == {Fraction(1, 12)}


def test_too_many_choices() -> None:
    with pytest.raises(TooManyChoices):
        for choices in every_choice(5):
            choices.permutation(4)


def test_a_dozen_rows_of_greedy_grouping() -> None:
    rows = {"q": list("123456789abc"), "s": list("xyxxyyxyxyyx")}
    policy = {
        "columns": {"q": "quasi-identifier", "s": "sensitive"},
        "method": "greedy-grouping",
        "require": [{"model": "simple-l-diversity", "l": 2, "attribute": "s"}],
    }
    found = mw.attack(mw.anonymize(pd.DataFrame(rows), policy), "minimality")
    assert found.kind == "exact"
    assert found.worst.interval is None


def test_a_world_with_many_choices_takes_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anatomy draws so much that one world alone would take forty thousand runs."""
    policy = {
        "columns": {"q": "quasi-identifier", "s": "sensitive"},
        "method": "anatomy",
        "require": [{"model": "simple-l-diversity", "l": 2}],
    }
    table = pa.table({"q": list("123456789abc"), "s": list("xyxyxyxyxyxy")})
    made = publish_release(Job(table, Policy.load(policy), attacks=()))
    usual, runs = Again.run, []

    def counted(self: Again, *arguments: Any) -> Any:
        runs.append(arguments)
        assert len(runs) < 5_000, "it does not look at the time"
        return usual(self, *arguments)

    monkeypatch.setattr(Again, "run", counted)
    assert every_world(target_of(made), WorldBudget(seconds=0)) is None
    assert every_world(target_of(made), WorldBudget(seconds=0.01)) is None
    assert runs


def test_a_dozen_rows_under_ck_safety() -> None:
    """What is not told apart is counted together: of three rows each with four ages there are few sorts of worlds."""
    rows = {"q": list("111222333444"), "s": list("xyzxyzxzyxxy")}
    policy = {
        "columns": {"q": "quasi-identifier", "s": "sensitive"},
        "method": "optimal-lattice",
        "require": [
            {"model": "k-anonymity", "k": 2},
            {"model": "ck-safety", "c": "9/10", "k": 1, "attribute": "s"},
        ],
    }
    found = mw.attack(mw.anonymize(pd.DataFrame(rows), policy), "minimality")
    assert found.kind == "exact"
    assert found.worst.interval is None


@pytest.mark.parametrize(
    ("known", "values", "k"),
    [(["1"] * 6, "xxxxxy", 4), (["4", "1", "1", "3"], "xxxx", 3)],
    ids=["a tuple of which some are dropped", "a tuple that is dropped"],
)
def test_people_who_are_dropped(known: list[str], values: str, k: int) -> None:
    """Buckets leave a rest that is dropped: of it nothing is believed here, and of the others what worlds say."""
    table = pa.table({"q": known, "s": list(values)})
    policy = {
        "columns": {"q": "quasi-identifier", "s": {"role": "sensitive", "sensitive_sets": [["y"]]}},
        "method": "greedy-grouping",
        "require": [
            {"model": "k-anonymity", "k": k},
            {"model": "simple-l-diversity", "l": "4/3", "values": ["y"]},
        ],
    }
    release = mw.anonymize(table, policy, seed=1)
    assert release.grouping.dropped_rows == len(known) % k
    [found] = [b for b in mw.attack(release) if b.attack == "minimality"]
    assert 0 <= found.worst.after <= 1
