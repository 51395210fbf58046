"""Minimality: beliefs after refusals, against worlds counted one by one and against the methods run on every world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.attacks._minimality import drawn_worlds
from maskwright.attacks._minimality.closed_form import beliefs_of
from maskwright.attacks._minimality.drawn_worlds import GroupedPeople
from maskwright.attacks._minimality.refusals import find_refusals, group_of_tuples, raw_classes
from maskwright.attacks._shared.secrets import secrets_of
from maskwright.attacks._shared.thresholds import Threshold, thresholds_of
from maskwright.attacks.minimality import Minimality
from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.promise import Design
from maskwright.domain.settings import build_registered
from maskwright.errors import PolicyNotMet
from maskwright.methods import METHODS
from maskwright.models import MODELS
from tests.attacks.build import release
from tests.support import adult, context_of, summarise, task_of

A = Hierarchy.of("a", ["1", "2", "3", "4"], [("pair", ["12", "12", "34", "34"])])
B = Hierarchy.of("b", ["x", "y"], [])
LEVELS = [
    [{v: v for v in "1234"}, {"1": "12", "2": "12", "3": "34", "4": "34"}, dict.fromkeys("1234", "*")],
    [{v: v for v in "xy"}, dict.fromkeys("xy", "*")],
]
Row = tuple[str, str, str]
ROWS = st.lists(
    st.tuples(st.sampled_from("1234"), st.sampled_from("xy"), st.sampled_from("pqr")), min_size=3, max_size=6
)
METHOD = st.sampled_from(["optimal-lattice", "samarati", "incognito"])
MODEL = st.sampled_from(
    [
        ("simple-l-diversity", {"l": 2, "values": ["p"]}),
        ("simple-l-diversity", {"l": "3/2"}),
        ("alpha-k-anonymity", {"alpha": "2/3", "k": 2}),
        ("distinct-l-diversity", {"l": 2}),
        ("t-closeness", {"t": "0.3", "attribute": "s"}),
    ]
)


def model(name: str, **parameters: Any) -> Any:
    return build_registered(MODELS, "model", name, parameters, "here")


def publish(
    rows: list[Row], method: str, models: list[Any], *, known: bool = False, **options: Any
) -> Target:
    columns = list(zip(*rows, strict=True))
    summary = summarise([A, B], columns[:2], {"s": columns[2]}, {"s": ("p", "q", "r")})
    task = task_of(summary, models)
    how = build_registered(METHODS, "method", method, options, "here")
    more: Any = {"weights": {}, "levels": {}} if known else {}
    return Target(how.group(task), models, how, task.context, design=Design(), **more)


@dataclass(frozen=True)
class Truth:
    """Every world in which each finer node that passes on sizes fails the model."""

    target: Target
    rows: list[Row]

    def labels(self, node: tuple[int, ...]) -> list[tuple[str, ...]]:
        return [tuple(LEVELS[i][level][row[i]] for i, level in enumerate(node)) for row in self.rows]

    def finer(self, k: int) -> list[tuple[int, ...]]:
        levels = self.target.grouping.levels
        assert levels is not None
        below = [tuple(n - (i == a) for i, n in enumerate(levels)) for a in range(2) if levels[a]]
        mine = Counter(self.labels(levels))
        return [
            node for node in below
            if min(Counter(self.labels(node)).values()) >= k and len(Counter(self.labels(node))) > len(mine)
        ]  # fmt: skip

    def worlds(self) -> Iterator[list[str]]:
        levels = self.target.grouping.levels
        assert levels is not None
        labels = self.labels(levels)
        groups = [[i for i, x in enumerate(labels) if x == label] for label in sorted(set(labels))]
        for dealt in product(*(set(permutations([self.rows[i][2] for i in g])) for g in groups)):
            world = [""] * len(self.rows)
            for group, values in zip(groups, dealt, strict=True):
                for i, value in zip(group, values, strict=True):
                    world[i] = value
            yield world

    def fails(self, node: tuple[int, ...], world: list[str], requirement: Any) -> bool:
        labels = self.labels(node)
        for label in set(labels):
            values = [v for v, x in zip(world, labels, strict=True) if x == label]
            if not passes(requirement, values, world):
                return True
        return False

    def beliefs(self, requirement: Any, k: int) -> dict[tuple[str, str, str], Fraction]:
        nodes = self.finer(k)
        kept = [w for w in self.worlds() if all(self.fails(n, w, requirement) for n in nodes)]
        found: dict[tuple[str, str, str], Fraction] = {}
        for a, b, value in product("1234", "xy", "pqr"):
            mine = [i for i, row in enumerate(self.rows) if row[:2] == (a, b)]
            if mine:
                held = sum(w[i] == value for w in kept for i in mine)
                found[a, b, value] = Fraction(held, len(kept) * len(mine))
        return found


def passes(requirement: Any, values: list[str], table: list[str]) -> bool:
    n, counts = len(values), Counter(values)
    if requirement.name == "simple-l-diversity":
        flagged = requirement.values or ("p", "q", "r")
        return all(counts[v] * requirement.l <= n for v in flagged)
    if requirement.name == "alpha-k-anonymity":
        return n >= requirement.k and all(c <= requirement.alpha * n for c in counts.values())
    if requirement.name == "distinct-l-diversity":
        return len(counts) >= requirement.l
    whole = Counter(table)
    distance = sum(abs(Fraction(counts[v], n) - Fraction(whole[v], len(table))) for v in whole) / 2
    return bool(distance <= requirement.t)


def attempt(rows: list[Row], method: str, models: list[Any]) -> Target:
    try:
        return publish(rows, method, models)
    except PolicyNotMet:
        assume(False)
        raise


def flagged(requirement: Any) -> tuple[str, ...]:
    return getattr(requirement, "values", None) or ("p", "q", "r")


@given(ROWS, METHOD, MODEL, st.integers(1, 2))
def test_beliefs_are_those_of_the_worlds_in_which_finer_nodes_fail(
    rows: list[Row], method: str, asked: tuple[str, dict[str, Any]], k: int
) -> None:
    requirement = model(asked[0], **asked[1])
    target = attempt(rows, method, [model("k-anonymity", k=k), requirement])
    found = Minimality().run(target, Adversary("knows-method", True))
    truth = Truth(target, rows)
    least = max(k, 2) if requirement.name == "alpha-k-anonymity" else k
    beliefs = truth.beliefs(requirement, least)
    assert (found.kind, found.measures["arithmetic"]) == ("estimated", "exact")
    worst = max(b for (_, _, v), b in beliefs.items() if v in flagged(requirement))
    assert found.worst.after == worst
    assert len(found.measures["refused"]) == len(truth.finer(least))
    limit = (
        1 / Fraction(requirement.l)
        if hasattr(requirement, "l")
        else getattr(requirement, "alpha", Fraction(1, 2))
    )
    above = {key[:2] for key, b in beliefs.items() if b > limit and key[2] in flagged(requirement)}
    assert found.measures["vulnerable_people"] == sum(row[:2] in above for row in rows)


@given(ROWS, METHOD, MODEL, st.integers(1, 2))
def test_the_method_publishes_this_only_in_worlds_that_are_kept(
    rows: list[Row], method: str, asked: tuple[str, dict[str, Any]], k: int
) -> None:
    requirement = model(asked[0], **asked[1])
    models = [model("k-anonymity", k=k), requirement]
    target = attempt(rows, method, models)
    truth = Truth(target, rows)
    least = max(k, 2) if requirement.name == "alpha-k-anonymity" else k
    nodes = truth.finer(least)
    for number, world in enumerate(truth.worlds()):
        if number > 60:
            break
        if any(not truth.fails(n, world, requirement) for n in nodes):
            again = attempt([(*row[:2], v) for row, v in zip(rows, world, strict=True)], method, models)
            assert again.grouping.levels != target.grouping.levels


@given(ROWS, METHOD, MODEL, st.integers(1, 2), st.sampled_from(["drop", "star"]))
def test_where_worlds_are_few_the_method_is_run_on_all_of_them(
    rows: list[Row], method: str, asked: tuple[str, dict[str, Any]], k: int, what: str
) -> None:
    requirement = model(asked[0], **asked[1])
    models = [model("k-anonymity", k=k), requirement]
    options = {"suppression": "0.3", "suppressed_rows": what}
    try:
        target = publish(rows, method, models, known=True, **options)
    except PolicyNotMet:
        assume(False)
    found = Minimality().run(target, Adversary())
    group_of = group_of_tuples(target.grouping)
    tuples = sorted({row[:2] for row in rows})
    where = [int(group_of[tuples.index(row[:2])]) for row in rows]
    groups = [[i for i, g in enumerate(where) if g == x] for x in sorted(set(where) - {-1})]
    kept = []
    for dealt in product(*(sorted(set(permutations([rows[i][2] for i in g]))) for g in groups)):
        world = [row[2] for row in rows]
        for group, values in zip(groups, dealt, strict=True):
            for i, value in zip(group, values, strict=True):
                world[i] = value
        try:
            again = publish(
                [(*r[:2], v) for r, v in zip(rows, world, strict=True)], method, models, **options
            )
        except PolicyNotMet:
            continue
        if again.grouping.levels == target.grouping.levels and np.array_equal(
            group_of_tuples(again.grouping), group_of
        ):
            kept.append(world)
    worst = Fraction(0)
    for t, value in product(tuples, flagged(requirement)):
        mine = [i for i, row in enumerate(rows) if row[:2] == t and where[i] >= 0]
        if mine:
            worst = max(
                worst, Fraction(sum(w[i] == value for w in kept for i in mine), len(kept) * len(mine))
            )
    if found.kind == "exact":
        assert found.worst.after == worst
    else:
        assert found.measures["knowing"] != "the method and its parameters"
        assert len(kept) > 30  # there was reason not to look at every world


@settings(max_examples=80, derandomize=True)  # a bound with 99 % confidence may fail elsewhere
@given(ROWS, MODEL, st.integers(1, 2))
def test_what_is_drawn_is_a_bound_and_what_is_counted_is_exact(
    rows: list[Row], asked: tuple[str, dict[str, Any]], k: int
) -> None:
    """The same beliefs without listing all worlds: closed forms for one refusal, a bound otherwise."""
    requirement = model(asked[0], **asked[1])
    target = attempt(rows, "optimal-lattice", [model("k-anonymity", k=k), requirement])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawn_worlds, "CELLS", 0)
        found = Minimality(draws=400).run(target, Adversary())
    least = max(k, 2) if requirement.name == "alpha-k-anonymity" else k
    beliefs = Truth(target, rows).beliefs(requirement, least)
    worst = max(b for (_, _, v), b in beliefs.items() if v in flagged(requirement))
    if found.measures["arithmetic"] == "exact":
        assert found.worst.after == worst
    else:
        assert found.measures["arithmetic"] == "sampled"
        assert found.worst.interval is not None
        assert found.worst.interval[0] <= worst <= found.worst.after


def test_worlds_of_several_groups_are_all_combinations() -> None:
    groups = [{"a": ["p", "q"], "b": ["q"]}, {"c": ["p", "p"], "d": ["q", "r"]}, {"e": ["q", "q"]}]
    target = release(groups, models=[model("simple-l-diversity", l=2)])
    crowd = GroupedPeople.of(target, np.array([True, True, False]))
    listed = crowd.every_world()
    assert len(listed) == crowd.n_worlds() == 3 * 12
    assert len({tuple(world) for world in listed.tolist()}) == 36
    values = {tuple(sorted(world[:3])) + tuple(sorted(world[3:])) for world in listed.tolist()}
    assert values == {(1, 2, 2, 1, 1, 2, 3)}
    drawn = crowd.draw(500, np.random.default_rng(1))
    assert {tuple(world) for world in drawn.tolist()} == {tuple(world) for world in listed.tolist()}


def per_class(groups: list[dict[str, list[str]]], ell: int, k: int = 1) -> Any:
    """The paper's credibility: raw classes merged into each published class, one class at a time."""
    requirement = model("simple-l-diversity", l=ell, values=["HIV"])
    return release(groups, models=[requirement, model("k-anonymity", k=k)])


@pytest.mark.parametrize(
    ("sizes", "held", "expected"),
    [
        ([2, 5], 2, [Fraction(1), Fraction(0)]),
        ([4, 2], 3, [Fraction(1, 2), Fraction(1, 2)]),
        ([5, 5], 4, [Fraction(2, 5), Fraction(2, 5)]),
    ],
)
def test_credibility_of_the_paper(sizes: list[int], held: int, expected: list[Fraction]) -> None:
    values = ["HIV"] * held + ["none"] * (sum(sizes) - held)
    target = per_class([{"a": values[: sizes[0]], "b": values[sizes[0] :]}], 2)
    threshold = thresholds_of([target.models[0]], target.context)
    assert threshold == [Threshold("s", frozenset({1}), Fraction(1, 2))]
    raw = raw_classes(target.grouping)
    rows = beliefs_of(target, secrets_of(target)[0], threshold[0], raw, "class")
    found = {part: row.exact() for row in rows for part in row.parts}
    assert [found[0], found[1]] == expected


def test_one_class_alone_overstates() -> None:
    """Sizes 2 + 5 with two positives: 1 alone, 0.63 with two merged classes, 0.31 with twenty."""
    for many, expected in ((1, 1.0), (2, 0.63), (20, 0.31)):
        groups = [{f"a{i:02}": ["HIV"] * 2, f"b{i:02}": ["none"] * 5} for i in range(many)]
        target = per_class(groups, 2)
        threshold = thresholds_of([target.models[0]], target.context)
        assert threshold is not None
        rows = beliefs_of(
            target, secrets_of(target)[0], threshold[0], raw_classes(target.grouping), "release"
        )
        assert round(max(row.value for row in rows), 2) == expected


def test_gates_and_requirements_on_sizes_give_nothing_away() -> None:
    rows = [("1", "x", "p"), ("2", "x", "p"), ("3", "y", "p"), ("4", "y", "q")]
    gate = model("simple-l-diversity", l=1, use="gate")
    target = publish(rows, "optimal-lattice", [model("k-anonymity", k=2), gate])
    found = Minimality().run(target, Adversary())
    assert found.measures["status"] == "guaranteed"
    assert found.worst.after == 1  # the class shows it already
    assert "gives nothing away" in found.worst.why
    searched = publish(rows, "optimal-lattice", [model("k-anonymity", k=2), model("simple-l-diversity", l=1)])
    assert Minimality().run(searched, Adversary()).measures["status"] == "measured"


def test_where_it_does_not_apply() -> None:
    rows = [("1", "x", "p"), ("2", "x", "q"), ("3", "y", "p"), ("4", "y", "q")]
    models = [model("k-anonymity", k=2), model("simple-l-diversity", l=2)]
    target = publish(rows, "optimal-lattice", models)
    assert Minimality().applies(target)
    unknown = Target(target.grouping, models, None, target.context)
    assert Minimality().run(unknown, Adversary()).kind == "estimated"  # it takes the method to be minimal
    failing = publish(rows, "optimal-lattice", models, suppression="0.5", suppress="failing-classes")
    assert not Minimality().applies(failing)
    assert Minimality().applies(publish(rows, "local-recoding", models))
    assert Minimality().applies(publish(rows, "local-recoding", models[:1]))
    summary = summarise([A, B], [["1"], ["x"]])
    grouping = build_registered(METHODS, "method", "optimal-lattice", {}, "here").group(
        task_of(summary, models[:0])
    )
    assert not Minimality().applies(Target(grouping, (), target.method, context_of(summary)))


def test_restricted_levels_are_said_to_be_an_assumption() -> None:
    rows = [("1", "x", "p"), ("2", "x", "q"), ("3", "y", "p"), ("4", "y", "q")]
    columns = list(zip(*rows, strict=True))
    summary = summarise([A, B], columns[:2], {"s": columns[2]})
    models = [model("simple-l-diversity", l=2)]
    task = task_of(summary, models, levels={"a": [2]})
    how = build_registered(METHODS, "method", "optimal-lattice", {}, "here")
    found = Minimality().run(Target(how.group(task), models, how, task.context), Adversary())
    assert found.kind == "estimated"
    assert "assumption" in found.measures


def test_starred_rows_are_a_group_that_nothing_more_is_known_of() -> None:
    """1x {q,q} and 2x {p,p,p} were merged; of the ten worlds 1x or 2x violates in four, three of them in 2x."""
    merged: list[Row] = [("1", "x", "q"), ("1", "x", "q"), *[("2", "x", "p")] * 3]
    for singles, expected, whom in (
        ([("3", "x", "p"), ("4", "y", "p")], Fraction(1, 2), "each of the 3 people with a 2, b x"),
        ([("3", "x", "q"), ("4", "y", "p")], Fraction(1, 2), "each of the 3 people with a 2, b x"),
    ):
        models = [model("k-anonymity", k=2), model("simple-l-diversity", l=2, values=["q"])]
        target = publish(
            [*merged, *singles], "optimal-lattice", models, suppression="0.3", suppressed_rows="star"
        )
        assert target.grouping.starred is not None
        found = Minimality().run(target, Adversary())
        assert found.measures["refused"] == ["a at level exact"]
        assert (found.worst.after, found.worst.whom) == (expected, whom)
        assert found.measures["dropped_people"] == 0
    everything = [model("k-anonymity", k=2), model("simple-l-diversity", l=2, values=["q"])]
    lonely = publish(
        [*merged, ("3", "x", "r"), ("4", "y", "r")], "optimal-lattice", everything, suppression="0.3",
        suppressed_rows="star",
    )  # fmt: skip
    flags_all = Target(lonely.grouping, [*everything, model("simple-l-diversity", l=1, use="gate")],
                       lonely.method, lonely.context)  # fmt: skip
    assert Minimality().run(flags_all, Adversary()).worst.after == 1  # all who are starred have r


@pytest.mark.parametrize(
    "asked",
    [
        {"name": "simple-l-diversity", "l": 3},
        {"name": "simple-l-diversity", "l": 5, "values": ["Tech-support"]},
        {"name": "entropy-l-diversity", "l": 3},
    ],
)
def test_adult(asked: dict[str, Any]) -> None:
    import time

    summary = adult("occupation")
    requirement = model(asked["name"], **{k: v for k, v in asked.items() if k != "name"})
    models = [model("k-anonymity", k=5), requirement]
    task = task_of(summary, models)
    how = build_registered(METHODS, "method", "optimal-lattice", {}, "here")
    target = Target(how.group(task), models, how, task.context)
    started = time.process_time()
    found = Minimality().run(target, Adversary())
    assert time.process_time() - started < 5
    assert found.worst.after >= secrets_share(target)
    assert find_refusals(target)[0] or "no finer" in found.worst.why


def secrets_share(target: Target) -> Fraction:
    return max(secrets_of(target)[0].shares())


def test_equal_rows_were_never_cut() -> None:
    """No half of these values violates the requirement: they are together because nothing tells them apart."""
    columns = {"q": "quasi-identifier", "s": "sensitive"}
    require = [{"model": "t-closeness", "t": "1/2", "attribute": "s"}]
    method = {"name": "mondrian", "cut": "relaxed"}
    table = pa.table({"q": ["1"] * 4, "s": list("abbb")})
    policy = {"columns": columns, "require": require, "method": method, "recoding": "bucketize"}
    found = mw.attack(mw.anonymize(table, policy, seed=1), "minimality")
    assert found.worst.after == Fraction(3, 4)
