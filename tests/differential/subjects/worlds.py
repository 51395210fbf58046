"""Attacks of who knows the method: run on every possible world in plain Python, keep those that publish the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import numpy as np

from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.settings import build_registered
from maskwright.errors import PolicyNotMet
from maskwright.methods import METHODS
from tests.differential.subjects import Subject
from tests.differential.subjects.attacks import run
from tests.differential.subjects.lattices import task_of
from tests.differential.subjects.models import model_of
from tests.differential.subjects.partitions import Setup, groups_of, in_a_row
from tests.oracles import partitions as plain
from tests.oracles.facts import World, deals, largest
from tests.oracles.lattices import Problem
from tests.oracles.models import Asked
from tests.oracles.tables import Small, small

KNOWS = Adversary("knows-method", True)
LATTICES = ["optimal-lattice", "samarati", "incognito"]


def asked_of(rng: Random, table: Small) -> list[Asked]:
    """A size and a requirement about values that a search may refuse for."""
    values: list[Asked] = [
        Asked("simple-l-diversity", {"l": rng.choice(["3/2", "2"]), "attribute": "s"}),
        Asked("alpha-k-anonymity", {"alpha": "2/3", "k": rng.randint(1, 2), "attribute": "s"}),
        Asked("distinct-l-diversity", {"l": 2, "attribute": "s"}),
        Asked("t-closeness", {"t": "3/10", "distance": "equal", "attribute": "s"}),
        Asked("entropy-l-diversity", {"l": "3/2", "attribute": "s"}),
        Asked("recursive-cl-diversity", {"c": "2", "l": 2, "attribute": "s"}),
    ]
    if table.domains["s"]:
        named = {"l": "2", "values": [rng.choice(table.domains["s"])], "attribute": "s"}
        values += [Asked("simple-l-diversity", named)] * 2
    return [Asked("k-anonymity", {"k": rng.randint(1, 2)}), rng.choice(values)]


def secret(table: Small, asked: Sequence[Asked]) -> list[str]:
    named = [v for a in asked for v in a.parameters.get("values", ())]
    return named or list(table.domains["s"])


def worst_belief(
    worlds: Sequence[World], people: Sequence[int], table: Small, values: Sequence[str]
) -> Fraction:
    """The largest share of a value over the worlds, for people who are alike in their quasi-identifiers."""
    alike: dict[Any, list[int]] = {}
    for i in people:
        alike.setdefault(table.rows[i], []).append(i)
    return max(
        (
            Fraction(sum(w[i] == v for w in worlds for i in rows), len(worlds) * len(rows))
            for rows in alike.values()
            for v in values
        ),
        default=Fraction(0),
    )


def with_values(table: Small, world: World) -> Small:
    return replace(table, secrets={**table.secrets, "s": world})


# -- searches over the lattice -------------------------------------------------------------------------------------


def chosen(made: Problem, method: str) -> tuple[Any, ...] | None:
    """What the method publishes: the node, its classes, and the rows that are suppressed."""
    if not made.satisfying:
        return None
    among = {"samarati": made.lowest, "incognito": made.minimal}.get(method) or set(made.satisfying)
    node = made.best(among)
    found = made.satisfying[node]
    return node, frozenset(map(frozenset, found.kept)), frozenset(found.gone)


def searched(rng: Random, most: int) -> tuple[Target, Small, list[Asked], list[World], list[int]] | str:
    """A release by a lattice search, and the worlds in which that search publishes the same."""
    table = small(rng, secrets=1, most=most, keys=rng.choice([1, 2]), missing=rng.random() < 0.3)
    method = rng.choice(LATTICES)
    share, star = Fraction(rng.choice([0, 0, 3]), 10), rng.random() < 0.3
    made = Problem(table, asked_of(rng, table), suppression=share, star=star)
    truth = chosen(made, method)
    if truth is None:
        return "refused"
    how, task = build_registered(METHODS, "method", method, made.options(), "here"), task_of(made)
    models = [model_of(a) for a in made.asked]
    target = Target(how.group(task), models, how, task.context, weights={}, levels={})
    assert target.grouping.levels == truth[0]
    groups = [sorted(rows) for rows in truth[1]] + ([sorted(truth[2])] if star and truth[2] else [])
    every = deals(groups, table.secrets["s"])
    if len(every) > 400:
        return "too many worlds"
    kept = [w for w in every if chosen(replace(made, table=with_values(table, w)), method) == truth]
    return target, table, list(made.asked), kept, [i for rows in groups for i in rows]


def minimality_lattice(rng: Random) -> str:
    made = searched(rng, 6)
    if isinstance(made, str):
        return made
    target, table, asked, worlds, people = made
    found = run("minimality", target, KNOWS, seconds=20, draws=2000)
    assert found.kind == "exact", found.measures["knowing"]
    worst = worst_belief(worlds, people, table, secret(table, asked))
    assert found.worst.after == worst, (found.worst, worst)
    shown = run("homogeneity", target).worst.after
    return "leaks" if worst > shown else "does not leak"


def combined(rng: Random) -> str:
    made = searched(rng, 5)
    if isinstance(made, str):
        return made
    target, _, _, worlds, people = made
    k = rng.choice([1, 1, 2])
    found = run("combined", target, Adversary("insider", True, k), seconds=20)
    assert found.kind == "exact", found.measures["knowing"]
    truth = max(largest(worlds, people, h) for h in range(k + 1))
    assert found.worst.after == truth, (found.worst, truth)
    return "certain" if truth == 1 else "uncertain"


# -- methods that partition rows -----------------------------------------------------------------------------------

Groups = Callable[[Setup], list[list[int]]]


def partitioned(rng: Random) -> tuple[str, dict[str, Any], Setup, Groups]:
    """A table whose rows all differ, a method that groups them, and the same in plain Python."""
    made, columns, sizes = in_a_row(rng)
    while made.table.n > 6 or list(made.table.secrets) != ["s"]:
        made, columns, sizes = in_a_row(rng)
    made = replace(made, asked=asked_of(rng, made.table)[1:])
    order = plain.lexicographic(columns, sizes)
    kind = rng.choice(["greedy-grouping", "symmetric-grouping", "mondrian", "mondrian"])
    if kind == "greedy-grouping":
        bucket = rng.randint(1, 2)
        return kind, {"l": bucket}, made, lambda m: plain.greedy(order, bucket, m.passes)
    least = rng.randint(1, 2)
    if kind == "symmetric-grouping":
        return kind, {"min_child": least}, made, lambda m: plain.symmetric(order, 2, least, m.passes)
    cut, fallback = rng.choice(["strict", "relaxed"]), rng.random() < 0.4
    options = {
        "cut": cut,
        "dimensions": "fallback" if fallback else "widest",
        "choose": "range",
        "min_child": least,
    }
    return kind, options, made, partial(_mondrian, columns, order, cut == "strict", fallback, least)


def _mondrian(
    columns: list[list[int]], order: list[int], strict: bool, fallback: bool, least: int, made: Setup
) -> list[list[int]]:
    groups = plain.mondrian(columns, order, strict, fallback, "lt", least, made.passes)
    return groups if all(map(made.passes, groups)) else []


def minimality_rows(rng: Random) -> str:
    method, options, made, groups_in = partitioned(rng)
    how = build_registered(METHODS, "method", method, options, "here")
    task = replace(task_of(Problem(made.table, made.asked)), rng=np.random.default_rng(made.seed))
    try:
        grouping = how.group(task)
    except PolicyNotMet:
        expected = groups_in(made)
        assert not expected or not all(map(made.passes, expected))
        return "refused"
    groups, _ = groups_of(made, grouping)
    truth = set(map(frozenset, groups))
    target = Target(grouping, task.search, how, task.context, weights={}, levels={})
    every = deals(groups, made.table.secrets["s"])
    if len(every) > 400:
        return "too many worlds"
    kept = []
    for world in every:
        again = groups_in(replace(made, table=with_values(made.table, world)))
        if set(map(frozenset, again)) == truth:
            kept.append(world)
    worst = worst_belief(kept, [i for g in groups for i in g], made.table, secret(made.table, made.asked))
    found = run("minimality", target, KNOWS, seconds=20, draws=60)
    if found.kind == "sampled":  # an interval of stated coverage is not refuted by one case
        return "sampled"
    if found.kind != "exact":
        assert found.worst.upper >= worst, (method, options, found.worst, worst)
        return "bounded"
    assert found.worst.after == worst, (method, options, found.worst, worst)
    shown = run("homogeneity", target).worst.after
    return "leaks" if worst > shown else "does not leak"


SUBJECTS = [
    Subject("attack", "minimality", minimality_lattice, ("leaks", "does not leak"), "lattices"),
    Subject("attack", "minimality", minimality_rows, ("leaks", "does not leak"), "rows", weight=0.25),
    Subject("attack", "combined", combined, ("certain", "uncertain")),
]
