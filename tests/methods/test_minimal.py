"""`minimal_nodes` gives exactly the minimal nodes of every policy: monotone or not, chains or DAGs, units."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from maskwright.domain.classes import ValueCounts
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Task
from maskwright.domain.rules import DistinctAtLeast, SizeAtLeast
from maskwright.domain.summary import Shared, Summary
from maskwright.errors import Cancelled, PolicyError, UsageError
from maskwright.methods._lattice import nodes as nodes_module
from maskwright.methods._lattice.minimal_nodes import minimal_nodes
from maskwright.methods._lattice.nodes import Nodes, upward_closed
from maskwright.methods.incognito import Incognito
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.methods.samarati import Samarati, lowest_nodes
from maskwright.models import MODELS
from maskwright.runtime.events import Progress
from tests.amounts import repeated
from tests.oracles.lattice_cases import Case, minimal_among, random_case, rich_case
from tests.support import Monotone, Odd, context_of, summarise, task_of


def check(every: Case, known: bool) -> int:
    """Compare with brute force; how many minimal nodes are there?"""
    found = minimal_nodes(every.task(known), **every.options())
    assert {m.levels for m in found} == every.minimal
    assert len(found) == len(every.minimal)
    assert [m.suppressed for m in found] == [every.satisfying[m.levels].suppressed for m in found]
    assert [m.height for m in found] == [every.height(m.levels) for m in found]
    if every.objective != "non-uniform-entropy":  # its brute-force ties are floats
        assert [m.levels for m in found] == sorted(
            every.minimal, key=lambda n: (every.satisfying[n].score, n)
        )
    return len(found)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("block", repeated(10))
def test_all_minimal_nodes_and_no_others(block: int, known: bool) -> None:
    found = [check(random_case(seed), known) for seed in range(20_000 + block * 100, 20_100 + block * 100)]
    assert sum(1 for n in found if n) > 20


@pytest.mark.parametrize("block", repeated(8))
def test_several_minimal_nodes(block: int) -> None:
    found = [check(rich_case(seed), known=bool(seed % 4)) for seed in range(block * 50, block * 50 + 50)]
    assert sum(1 for n in found if n > 1) > 20


@pytest.mark.parametrize("block", repeated(4))
def test_whatever_is_called_upward_closed_is(block: int) -> None:
    closed = 0
    for seed in range(30_000 + block * 200, 30_200 + block * 200):
        every = random_case(seed)
        nodes = Nodes(every.task(), OptimalLattice(**every.options()))
        if nodes.upward:
            assert every.upward_closed, seed
            closed += bool(every.satisfying)
    assert closed > 10


@pytest.mark.parametrize(
    ("model", "options", "closed", "reason"),
    [
        ({"k-anonymity": {"k": 2}}, {}, True, "nothing may be suppressed"),
        ({"k-anonymity": {"k": 2}}, {"suppression": "0.5"}, True, "smaller than k"),
        (
            {"k-anonymity": {"k": 2}},
            {"suppression": "0.01", "suppressed_rows": "star"},
            True,
            "nothing may be",
        ),
        ({"k-anonymity": {"k": 2}}, {"suppression": "0.5", "suppressed_rows": "star"}, False, "starred"),
        ({"k-anonymity": {"k": 2, "on": [["q"]]}}, {"suppression": "0.5"}, False, "k-anonymity"),
        ({"p-sensitive-k-anonymity": {"p": 2, "k": 2}}, {}, True, "nothing may be suppressed"),
        ({"p-sensitive-k-anonymity": {"p": 2, "k": 2}}, {"suppression": "0.5"}, False, "p-sensitive"),
        ({"p-sensitive-k-anonymity": {"p": 1, "k": 2}}, {"suppression": "0.5"}, True, "smaller than k"),
        (
            {"p-sensitive-k-anonymity": {"p": 2, "k": 2}},
            {"suppression": "0.5", "suppress": "failing-classes"},
            True,
            "parts of a failing class",
        ),
        ({"simple-l-diversity": {"l": 2}}, {}, True, "nothing may be suppressed"),
        (
            {"simple-l-diversity": {"l": 2}},
            {"suppression": "0.5", "suppress": "failing-classes"},
            False,
            "although a part of it",
        ),
        ({"m-confidentiality": {"m": 2}}, {}, False, "merging classes"),
    ],
)
def test_what_is_provably_upward_closed(
    model: dict[str, Any], options: dict[str, Any], closed: bool, reason: str
) -> None:
    task = small_task([MODELS[name](**values) for name, values in model.items()])
    nodes = Nodes(task, OptimalLattice(**options))
    assert upward_closed(task, nodes.problem)[0] is closed
    assert reason in nodes.why


def test_a_missing_value_spoils_one_sensitivity() -> None:
    """One value per class is not always there: rows without any can be suppressed below, and a class above."""
    hierarchy = Hierarchy.of("q", ["a", "b", "c"], [("merged", ["A", "B", "B"])])
    summary = summarise([hierarchy], [["a", "a", "b", "c"]], {"disease": ["v", "w", None, None]})
    task = task_of(summary, [Monotone(rules=(SizeAtLeast(2), DistinctAtLeast("disease", 1)))])
    nodes = Nodes(task, OptimalLattice(suppression="0.5"))
    assert [nodes.satisfies(n) for n in range(3)] == [True, False, True]
    assert not nodes.upward


def small_task(models: list[Any]) -> Task:
    hierarchy = Hierarchy.of("q", ["a", "b", "c"], [("merged", ["A", "B", "B"])])
    summary = summarise([hierarchy], [["a", "a", "b", "c"]], {"disease": ["v", "w", "v", "v"]})
    task = task_of(summary, models)
    domains = {name: counts.values for name, counts in summary.sensitive.items()}
    context = type(task.context)(reference=task.context.reference, n_people=summary.n_people, domains=domains)
    return Task(summary, models, context, task.rng)


# People with several rows


def people_summary(rng: np.random.Generator) -> tuple[Summary, list[tuple[Any, ...]]]:
    """A random table whose rows belong to fewer people, and its rows (value, value, disease, person)."""
    hierarchies = [
        Hierarchy.of("q0", ["a", "b", "c"], [("ab", ["x", "x", "c"])]),
        Hierarchy.of("q1", ["d", "e", "f"], [("de", ["y", "y", "f"]), ("ef", ["d", "z", "z"])], chain=False),
    ]
    n = int(rng.integers(3, 14))
    rows = [
        (str(rng.choice(["a", "b", "c"])), str(rng.choice(["d", "e", "f"])), str(rng.choice(["u", "v", "w"])),
         int(rng.integers(0, n - 1)))
        for _ in range(n)
    ]  # fmt: skip
    tuples = sorted({row[:2] for row in rows})
    where: dict[int, set[int]] = defaultdict(set)
    for row in rows:
        where[row[3]].add(tuples.index(row[:2]))
    shared_people = sorted(person for person, ts in where.items() if len(ts) > 1)
    domain = ("u", "v", "w")
    alone, shared = set(), set()
    for row in rows:
        entry = (tuples.index(row[:2]), row[3], domain.index(row[2]) + 1)
        (shared if row[3] in shared_people else alone).add(entry)
    owners = np.array([t for t, _, _ in sorted(alone)], dtype=np.int64)
    codes = np.array([c for _, _, c in sorted(alone)], dtype=np.int64)
    counts = ValueCounts.collect(domain, len(tuples), owners, codes, np.ones(len(owners), dtype=np.int64))
    sizes = Counter(t for t, _ in {(t, p) for t, p, _ in alone})
    triples = np.array(
        [(t, shared_people.index(p), c) for t, p, c in sorted(shared)], dtype=np.int64
    ).reshape(-1, 3).T  # fmt: skip
    pairs = np.unique(triples[:2], axis=1)
    extra = Shared(pairs[0], pairs[1], len(shared_people), {"disease": (triples[0], triples[1], triples[2])})
    table = np.array(
        [[h.values.index(t[a]) + 1 for t in tuples] for a, h in enumerate(hierarchies)], dtype=np.int32
    )
    per_tuple = Counter(row[:2] for row in rows)
    summary = Summary(
        tuple(hierarchies), table, np.array([per_tuple[t] for t in tuples], dtype=np.int64),
        np.array([sizes[i] for i in range(len(tuples))], dtype=np.int64), {"disease": counts},
        extra if shared_people else None,
    )  # fmt: skip
    return summary, rows


def people_satisfies(
    summary: Summary,
    rows: list[tuple[Any, ...]],
    node: tuple[int, ...],
    k: int,
    rest: Any,
    limit: int,
    small: bool,
) -> bool:
    """The definition, on rows: classes count people, suppression counts rows."""
    classes = defaultdict(list)
    for row in rows:
        key = tuple(
            int(h.levels[n].blocks[h.values.index(v) + 1])
            for h, n, v in zip(summary.attributes, node, row, strict=False)
        )
        classes[key].append(row)

    def passes(members: list[tuple[Any, ...]]) -> bool:
        people = {row[3] for row in members}
        values = Counter(value for value, _ in {(row[2], row[3]) for row in members})
        return len(people) >= k and rest(len(people), values)

    kept = []
    gone = 0
    for members in classes.values():
        drop = len({row[3] for row in members}) < k if small else not passes(members)
        gone += len(members) if drop else 0
        kept += [] if drop else [members]
    return bool(kept) and gone <= limit and all(passes(members) for members in kept)


REQUIREMENTS: list[tuple[str, dict[str, Any], Any]] = [
    ("k-anonymity", {"k": 1}, lambda n, values: True),
    ("distinct-l-diversity", {"l": 2}, lambda n, values: len(values) >= 2),
    ("simple-l-diversity", {"l": 2}, lambda n, values: all(2 * c <= n for c in values.values())),
]


@pytest.mark.parametrize("requirement", range(3))
def test_people_with_rows_in_several_classes(requirement: int) -> None:
    name, values, rest = REQUIREMENTS[requirement]
    rng = np.random.default_rng(requirement)
    feasible = not_closed = 0
    for _ in range(120):
        summary, rows = people_summary(rng)
        k, limit = int(rng.integers(1, 4)), int(rng.integers(0, 4))
        small = bool(rng.random() < 0.5)
        models = [MODELS["k-anonymity"](k=k), MODELS[name](**values)]
        task = Task(summary, models, context_of(summary), np.random.default_rng(0))
        options = {
            "suppression": f"{min(limit, len(rows))}/{len(rows)}",
            "suppress": "small-classes" if small else "failing-classes",
        }
        every = itertools.product(*(range(len(h.levels)) for h in summary.attributes))
        satisfying = {
            node
            for node in every
            if people_satisfies(summary, rows, node, k, rest, min(limit, len(rows)), small)
        }
        nodes = Nodes(task, OptimalLattice(**options))
        expected = {
            nodes.lattice.node(n) for n in minimal_among(nodes, map(nodes.lattice.number, satisfying))
        }
        assert {m.levels for m in minimal_nodes(task, **options)} == expected
        if satisfying:
            feasible += 1
            assert Incognito(**options).group(task).levels in expected
            height = min(int(nodes.heights[nodes.lattice.number(n)]) for n in satisfying)
            assert Samarati(**options).group(task).search["height"] == height
        not_closed += not nodes.upward
    assert feasible > 30
    assert (not_closed > 20) == (requirement > 0)


# Limits and refusals


def test_minimal_among_keeps_what_has_nothing_below() -> None:
    nodes = Nodes(small_task([Odd()]), OptimalLattice())
    assert minimal_among(nodes, [2, 1]) == [1]
    assert minimal_among(nodes, []) == []


def test_no_satisfying_node_gives_no_minimal_node() -> None:
    assert minimal_nodes(small_task([MODELS["k-anonymity"](k=9)])) == []
    assert minimal_nodes(small_task([MODELS["p-sensitive-k-anonymity"](p=3, k=1)])) == []


def test_an_empty_table_has_no_minimal_node() -> None:
    hierarchy = Hierarchy.of("q", ["a"], [])
    assert minimal_nodes(task_of(summarise([hierarchy], [[]]), [])) == []


@pytest.mark.parametrize("option", [{"suppression": 2}, {"suppress": "all"}, {"objective": "beauty"}])
def test_bad_options_are_refused_in_one_line(option: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        minimal_nodes(small_task([]), **option)
    assert str(refused.value).startswith(f"minimal_nodes.{next(iter(option))}: ")
    assert "\n" not in str(refused.value)


def test_a_lattice_too_large_to_list_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_module, "LISTED", 2)
    with pytest.raises(PolicyError, match=r"3 nodes, too many to list .* allow fewer levels"):
        minimal_nodes(small_task([]))


def test_it_can_be_cancelled() -> None:
    task = small_task([MODELS["k-anonymity"](k=2)])
    task = Task(task.summary, task.search, task.context, task.rng, progress=Progress(cancelled=lambda: True))
    with pytest.raises(Cancelled):
        minimal_nodes(task)
    with pytest.raises(Cancelled):
        lowest_nodes(Nodes(task, OptimalLattice()))
