"""Small releases are attacked by every world and every random choice: exactly what the product itself comes to."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.attacks._minimality.enumeration import Enumeration, ExplainedWorlds, every_world, labels_fit
from maskwright.attacks._minimality.replay import Again, Replayed
from maskwright.attacks._minimality.world_tables import PublishedPeople
from maskwright.attacks.minimality import KNOWS_METHOD, Minimality
from maskwright.domain.adversary import Target
from maskwright.pipeline.attacking import target_of
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from maskwright.policy.policy import Policy
from maskwright.worlds.counting.multisets import distinct_orders
from maskwright.worlds.sampling.choices import TooManyChoices, every_choice
from maskwright.worlds.sampling.world_sampler import WorldBudget
from tests.amounts import cases, crossed, first_of_each
from tests.promise.posterior import Told, belief_after, enumerated
from tests.promise.product import minimality_of
from tests.promise.tables import Case

QUASI = {"role": "quasi-identifier"}


def a_case(quasi: list[tuple[str, ...]], values: tuple[str, ...]) -> Case:
    people = tuple(f"p{i}" for i in range(len(quasi)))
    names = tuple(f"q{i + 1}" for i in range(len(quasi[0])))
    return Case(names, tuple(quasi), people, {"s": values}, {"s": (1,) * len(values)})


TWO = [("1", "a"), ("2", "b"), ("3", "a"), ("4", "b"), ("4", "b"), ("5", "a")]
ONE = [("1",), ("1",), ("1",), ("2",), ("2",), ("3",)]  # groups with the same labels
QUASIS: dict[str, list[tuple[str, ...]]] = {"two columns": [*TWO], "one column": [*ONE]}

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


@pytest.mark.parametrize(("name", "quasi"), crossed(POLICIES, QUASIS))
def test_beliefs_are_those_of_all_worlds(name: str, quasi: str) -> None:
    """Nobody is dropped, so that every release shows the values of the whole table."""
    method, model = POLICIES[name]
    safe = name == "safe lattice"  # of two values one fact tells which of them it is
    rows = QUASIS[quasi]
    case = a_case(rows[:5], ("x", "y", "z")) if safe else a_case(rows, ("x", "y"))
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


DOZEN = {"age": [str(i) for i in range(1, 13)], "zip": list("aabbccddabcd")}
MODELS: dict[str, dict[str, Any]] = {
    "simple-l-diversity": {"l": 2},
    "distinct-l-diversity": {"l": 2},
    "entropy-l-diversity": {"l": "3/2"},
    "recursive-cl-diversity": {"c": 2, "l": 2},
    "alpha-k-anonymity": {"alpha": "1/2", "k": 2},
    "t-closeness": {"t": "1/4"},
    "beta-likeness": {"beta": 1},
    "delta-disclosure": {"delta": 1},
    "ck-safety": {"c": "9/10", "k": 1},
}


def lattice_target(table: dict[str, list[str]], method: Any, model: str) -> Target:
    policy = {
        "columns": {"age": QUASI | {"hierarchy": {"intervals": [2, 4, 8]}}, "zip": QUASI, "s": "sensitive"},
        "method": method,
        "require": [{"model": "k-anonymity", "k": 2}, {"model": model, "attribute": "s", **MODELS[model]}],
    }
    return target_of(publish_release(Job(pa.table(table), Policy.load(policy), attacks=())))


@pytest.mark.parametrize(("method", "model"), crossed(["optimal-lattice", "samarati", "incognito"], MODELS))
def test_a_dozen_different_rows_with_four_values(method: str, model: str) -> None:
    """Up to 12!/(3!)⁴ worlds, and none of them is drawn."""
    found = Minimality().run(lattice_target(DOZEN | {"s": list("wxyzzyxwxwzy")}, method, model), KNOWS_METHOD)
    assert found.kind == "exact"
    assert found.worst.interval is None


@pytest.mark.parametrize(
    ("method", "model"),
    first_of_each(
        (method, model)
        for method in ("relaxed", "strict")
        for model in ("entropy-l-diversity", "simple-l-diversity", "t-closeness")
    ),
)
def test_a_dozen_different_rows_that_are_cut_into_groups(method: str, model: str) -> None:
    """Only worlds are looked at in which each class can show its values, a few hundred of 369,600."""
    table = DOZEN | {"s": list("wxyzzyxwxwzy")}
    found = Minimality().run(lattice_target(table, {"name": "mondrian", "cut": method}, model), KNOWS_METHOD)
    assert found.kind == "exact"


@pytest.mark.parametrize("rows", [6, 7])
def test_worlds_that_can_be_seen_are_those_that_labels_allow(rows: int) -> None:
    """Against every world, and every way to put people into the classes that their labels fit."""
    table = {"age": list("1234567")[:rows], "zip": list("aababab")[:rows], "s": list("xyyxyxx")[:rows]}
    target = lattice_target(table, {"name": "mondrian", "cut": "relaxed"}, "distinct-l-diversity")
    places = PublishedPeople.of(target).with_dropped()
    listed = ExplainedWorlds(target, places).listed(10_000)
    fits, group = labels_fit(target.grouping), places.group.tolist()
    shown = Counter(zip(group, places.items.tolist(), strict=True))
    allowed = {
        tuple(items)
        for items in distinct_orders(places.items.tolist())
        for dealt in set(permutations(group))
        if Counter(zip(dealt, items, strict=True)) == shown
        and all(fits[g, t] for g, t in zip(dealt, places.tuples.tolist(), strict=True))
    }
    assert listed is not None
    assert all(weight == 1 for _, weight in listed)
    units = places.unit.tolist()
    assert {tuple(world[unit].index(1) for unit in units) for world, _ in listed} == allowed
    assert 1 < len(allowed) < len(list(distinct_orders(places.items.tolist())))
    assert ExplainedWorlds(target, places).listed(0) is None


@pytest.mark.parametrize("model", cases(MODELS, brief=list(MODELS)[::3]))
def test_worlds_side_by_side_are_those_one_by_one(model: str) -> None:
    """Rivals tested on all worlds at once come to what the search itself makes of each of them."""
    table = {name: values[:8] for name, values in DOZEN.items()} | {"s": list("xyxyzzxy")}
    target = lattice_target(table, "optimal-lattice", model)
    at_once = every_world(target, WorldBudget())
    places = PublishedPeople.of(target).with_dropped()
    blocks = places.group
    one_by_one = Enumeration(target, places, blocks, WorldBudget(seconds=60)).run(1)
    assert at_once is not None
    assert one_by_one is not None
    assert beliefs_of(at_once) == beliefs_of(one_by_one)


def beliefs_of(replayed: Replayed) -> dict[tuple[int, int], Fraction]:
    """Tuple and item → belief."""
    tally = replayed.tally
    return {
        (tuple_, item): Fraction(int(held), int(tally.kept[0] * tally.sizes[unit]))
        for tuple_, unit in zip(replayed.places.tuples.tolist(), replayed.places.unit.tolist(), strict=True)
        for item, held in enumerate(tally.held[unit])
    }


TIES = [("1",), ("1",), ("1",), ("2",)]  # of the three with 1 one is in a group with 2
SPLIT: dict[str, tuple[Any, Any]] = {
    "relaxed": ({"name": "mondrian", "cut": "relaxed"}, None),
    "relaxed, looking": ({"name": "mondrian", "cut": "relaxed"}, {"model": "simple-l-diversity", "l": "4/3"}),
    "fallback": ({"name": "mondrian", "cut": "relaxed", "dimensions": "fallback"}, None),
    "strict": ({"name": "mondrian", "cut": "strict"}, {"model": "distinct-l-diversity", "l": 2}),
    "balanced": ("mondrian", {"model": "distinct-l-diversity", "l": 2}),
    "balanced, ranges": (
        {"name": "mondrian", "labels": "ranges"},
        {"model": "entropy-l-diversity", "l": "3/2"},
    ),
    "symmetric": ("symmetric-grouping", {"model": "simple-l-diversity", "l": "4/3"}),
    "greedy": ("greedy-grouping", {"model": "simple-l-diversity", "l": 2}),
    "local": ("local-recoding", {"model": "distinct-l-diversity", "l": 2}),
    "anatomy": ({"name": "anatomy", "l": 2}, None),
}


@pytest.mark.parametrize(
    "recoding", ["generalise", "permute", pytest.param("bucketize", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("name", SPLIT)
def test_people_who_may_be_in_several_groups(name: str, recoding: str) -> None:
    """What is called exact is what all worlds say, also where nobody can say who is in which group.

    Equal quasi-identifiers in groups of which one shows x alone and the other x and y: 5/6, and not 1.
    """
    method, model = SPLIT[name]
    case = a_case(TIES, ("x", "y"))
    policy = Policy.load({
        "columns": dict.fromkeys(case.names, QUASI) | {"s": "sensitive"},
        "method": method,
        "require": [{"model": "k-anonymity", "k": 2}, *([model | {"attribute": "s"}] if model else [])],
        "recoding": recoding,
    })  # fmt: skip
    outputs = enumerated(case, policy, 5_000)
    compared = 0
    for public, told in outputs.items():
        if not all(told.there):
            continue
        kind, largest = minimality_of(case.table(next(iter(told.likelihood))), policy, public, whole=True)
        true = max(belief_after(case, outputs, public, "s", p, (v,)) for p in case.people for v in "xy")
        assert (kind, largest) == ("exact", pytest.approx(true)), public
        compared += 1
    assert compared


def test_equal_quasi_identifiers_in_groups_with_other_labels() -> None:
    """The class 2 shows x twice, a share of 1; but two of the four with 2 are in `*`: 2/3, of those with 2 and of 1."""
    case = a_case([("1",), ("2",), ("2",), ("2",), ("2",)], ("x", "y"))
    policy = Policy.load({
        "columns": {"q1": QUASI, "s": "sensitive"},
        "method": {"name": "mondrian", "cut": "relaxed"},
        "require": [{"model": "k-anonymity", "k": 2}],
    })  # fmt: skip
    outputs = enumerated(case, policy, 5_000)
    told_apart = sorted([("*", "x"), ("*", "y"), ("*", "y"), ("2", "x"), ("2", "x")])
    [public] = [p for p in outputs if sorted(p[0][0][2]) == told_apart]  # type: ignore[index]
    true = max(belief_after(case, outputs, public, "s", p, (v,)) for p in case.people for v in "xy")
    assert true == pytest.approx(2 / 3)
    table = case.table(next(iter(outputs[public].likelihood)))
    assert minimality_of(table, policy, public, whole=True) == ("exact", pytest.approx(true))


def test_who_reads_a_release_with_dropped_rows_knows_the_whole_histogram() -> None:
    """Two of five are dropped by size, and the release shows x, x, y: 5/6 where the table is known to hold four x.

    That is public, since nobody is dropped because of a value. Whoever does not know it believes 2/3.
    """
    case = a_case([("1",), ("1",), ("2",), ("2",), ("3",)], ("x", "y"))
    policy = Policy.load({
        "columns": {"q1": QUASI, "s": "sensitive"},
        "method": "greedy-grouping",
        "require": [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "l": 2}],
    })  # fmt: skip
    outputs = enumerated(case, policy, 5_000)
    [public] = [p for p in outputs if [v for _, v in p[0][0][2]] == list("xxy")]  # type: ignore[index]
    told = outputs[public]
    world = next(w for w in told.likelihood if Counter(w) == {0: 4, 1: 1})
    same = Told({w: c for w, c in told.likelihood.items() if Counter(w) == Counter(world)})
    people = case.people[:4]  # with 1 or 2; the one with 3 is never published
    knowing, not_knowing = (
        max(belief_after(case, {public: t}, public, "s", p, (v,)) for p in people for v in "xy")
        for t in (same, told)
    )
    assert (knowing, not_knowing) == (pytest.approx(5 / 6), pytest.approx(2 / 3))
    assert minimality_of(case.table(world), policy, public, whole=True) == ("exact", pytest.approx(knowing))


@pytest.mark.parametrize(("plan", "kind"), [([["s"], ["t"]], "exact"), ("greedy", "estimated")])
def test_what_the_choice_of_a_plan_tells_is_left_out_and_said(plan: Any, kind: str) -> None:
    """Every world of each table is looked at, and the plan taken as given."""
    table = pa.table({"q": list("aabbcc"), "s": list("xyzxyz"), "t": list("uvuvuv")})
    policy = {
        "columns": {"q": "quasi-identifier", "s": "sensitive", "t": "sensitive"},
        "method": {"name": "codip", "plan": plan},
        "require": [
            {"model": "k-anonymity", "k": 2},
            {"model": "distinct-l-diversity", "l": 2, "attribute": "s"},
        ],
    }
    found = [b for b in mw.attack(mw.anonymize(table, policy)) if b.attack == "minimality"]
    assert {b.kind for b in found} == {kind}
    assert all(("assumption" in b.measures) == (kind == "estimated") for b in found)
