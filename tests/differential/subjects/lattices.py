"""Searches over the lattice against the evaluation of every node: the optimum, the lowest, all minimal ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Task
from maskwright.domain.settings import build_registered
from maskwright.errors import PolicyNotMet
from maskwright.methods import METHODS
from tests.differential.subjects import Subject
from tests.differential.subjects.models import model_of, population
from tests.methods import row_tables
from tests.oracles.draws import draw, numeric
from tests.oracles.lattices import OBJECTIVES, Problem
from tests.oracles.models import LOCAL, Asked
from tests.oracles.tables import Small, small, task
from tests.support import context_of

# a class can be judged by these alone only together with all others, or not by enumeration in time
GLOBAL = ["average-risk", "nt-closeness", "k-map", "delta-presence", "highest-risk", "k-anonymity"]


def problem(rng: Random, objective: str) -> Problem:
    table = small(rng, numbers=rng.random() < 0.3)
    by_size, star = rng.random() < 0.6, rng.random() < 0.3
    names = [rng.choice(["k-anonymity", *LOCAL])]
    if rng.random() < 0.6:
        names.append(rng.choice(LOCAL if not by_size else [*LOCAL, *GLOBAL]))
    if numeric(table) and rng.random() < 0.4:
        names[0] = "ke-anonymity"
    asked = [_drawn(rng, table, name, by_size) for name in names]
    weights = {key.name: Fraction(rng.randint(0, 3), rng.randint(1, 3)) for key in table.keys}
    if rng.random() < 0.5 or not any(weights.values()):
        weights = {}
    levels = {
        key.name: sorted(rng.sample(range(len(key.levels)), rng.randint(1, len(key.levels))))
        for key in table.keys
        if rng.random() < 0.25
    }
    suppression = Fraction(rng.randint(0, 10), 10) if rng.random() < 0.7 else Fraction(0)
    people = tuple(population(rng, table))
    return Problem(
        table, asked, people, objective=objective, suppression=suppression, by_size=by_size, star=star,
        weights=weights, levels=levels,
    )  # fmt: skip


def _drawn(rng: Random, table: Small, name: str, by_size: bool) -> Asked:
    asked = draw(rng, table, name)
    if (
        not by_size and "on" in asked.parameters
    ):  # whether a combination is frequent enough depends on what is dropped
        asked = replace(asked, parameters={"k": asked["k"]})
    return asked


def task_of(made: Problem) -> Task:
    table = made.table
    census = None
    if made.people:
        census = row_tables.build(made.people, {}, [key.hierarchy for key in table.keys]).summary
    context = context_of(table.built.summary)
    trees = _trees(made.asked, made)
    found = task(
        table, [model_of(a) for a in made.asked], weights=made.weights, levels=made.levels, census=census
    )
    return replace(found, context=replace(context, trees=trees))


def _trees(asked: Sequence[Asked], made: Problem) -> dict[str, Any]:
    from maskwright.domain.distances import ValueTree

    return {
        a.attribute: ValueTree.of_parents(made.table.domains[a.attribute], a.tree)
        for a in asked
        if a.tree is not None and a["distance"] == "hierarchical"
    }


def searched(rng: Random, method: str, objective: str) -> tuple[Problem, Grouping | None]:
    made = problem(rng, objective)
    trees = [a for a in made.asked if a.tree is not None]
    if len(trees) > 1 and trees[0].attribute == trees[1].attribute:  # one column has one hierarchy
        made = replace(made, asked=[*(a for a in made.asked if a not in trees), trees[0]])
    how = build_registered(METHODS, "method", method, made.options(), "here")
    try:
        return made, how.group(task_of(made))
    except PolicyNotMet as refused:
        assert not made.satisfying, (str(refused), sorted(made.satisfying))
        assert "\n" not in str(refused)
        return made, None


def agrees(made: Problem, found: Grouping) -> None:
    """What is published at the node that was found: these rows, in these classes, with these labels."""
    assert found.levels is not None
    truth = made.satisfying[found.levels]
    assert found.suppressed_rows == len(truth.gone)
    tuples = made.table.tuples()
    group_of = dict(zip(found.allocation.tuples.tolist(), found.allocation.groups.tolist(), strict=True))
    where = [group_of[tuples.index(row)] for row in made.table.rows]
    mine = {frozenset(members) for members in truth.kept}
    if made.star and truth.gone:
        mine.add(frozenset(truth.gone))
        assert found.starred is not None
    groups: dict[int, set[int]] = {}
    for i, g in enumerate(where):
        groups.setdefault(g, set()).add(i)
    assert {frozenset(m) for g, m in groups.items() if g >= 0} == mine
    assert sorted(groups.get(-1, set())) == ([] if made.star else sorted(truth.gone))
    assert Counter(found.classes.sizes.tolist()) == Counter(map(len, mine))


def kind(made: Problem, found: Grouping | None) -> str:
    if found is None:
        return "refused"
    assert found.levels is not None
    return "suppressed" if made.satisfying[found.levels].gone else "published"


def optimal(rng: Random, objective: str) -> str:
    made, found = searched(rng, "optimal-lattice", objective)
    if found is not None:
        best = made.best(list(made.satisfying))
        assert found.levels in made.satisfying, "the node does not satisfy the policy"
        assert made.satisfying[found.levels].score == made.satisfying[best].score
        if objective != "non-uniform-entropy":  # its ties are decided in units of 2^-24 bit
            assert found.levels == best
        agrees(made, found)
    return kind(made, found)


def samarati(rng: Random, objective: str) -> str:
    made, found = searched(rng, "samarati", objective)
    if found is not None:
        assert found.levels in made.lowest
        assert found.search["height"] == made.height(found.levels)
        assert found.search["nodes_of_this_height"] == len(made.lowest)
        if objective != "non-uniform-entropy":
            assert found.levels == made.best(made.lowest)
        agrees(made, found)
    return kind(made, found)


def incognito(rng: Random, objective: str) -> str:
    made, found = searched(rng, "incognito", objective)
    if found is not None:
        names = [
            {key.name: key.hierarchy.levels[n].name for key, n in zip(made.table.keys, node, strict=True)}
            for node in made.minimal
        ]
        listed = found.search["minimal_nodes"]
        assert sorted(map(repr, names)) == sorted(repr(node["levels"]) for node in listed)
        assert Counter(node["suppressed_rows"] for node in listed) == Counter(
            len(made.satisfying[node].gone) for node in made.minimal
        )
        if objective != "non-uniform-entropy":
            assert found.levels == made.best(made.minimal)
        assert found.levels in made.minimal
        agrees(made, found)
    return kind(made, found)


EXPECT = ("published", "suppressed", "refused")
SUBJECTS = [
    Subject("method", name, lambda rng, case=case, o=o: case(rng, o), EXPECT, o)
    for name, case in (("optimal-lattice", optimal), ("samarati", samarati), ("incognito", incognito))
    for o in OBJECTIVES
]
