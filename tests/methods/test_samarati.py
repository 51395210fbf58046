"""`samarati` finds the lowest height whatever the policy; plain binary search does not, as the errata say."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Task
from maskwright.domain.model import Context
from maskwright.errors import PolicyNotMet
from maskwright.methods._lattice.nodes import Nodes, max_groups, most_groups
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.methods.samarati import Samarati, lowest_nodes
from maskwright.models import MODELS
from tests.amounts import repeated
from tests.oracles.lattice_cases import Case, plain_binary_search, random_case, rich_case
from tests.support import adult, summarise, task_of


def check(every: Case, known: bool) -> str | None:
    """Compare with brute force; the strategy, or None when no node satisfies."""
    task = every.task(known)
    try:
        found = Samarati(**every.options()).group(task)
    except PolicyNotMet as refused:
        assert not every.satisfying
        assert "\n" not in str(refused)
        return None
    assert found.levels in every.lowest
    assert found.suppressed_rows == every.satisfying[found.levels].suppressed
    assert found.search["height"] == every.height(found.levels)
    assert found.search["nodes_of_this_height"] == len(every.lowest)
    if every.objective != "non-uniform-entropy":  # its brute-force ties are floats
        assert found.levels == every.best(every.lowest)
    if found.search["strategy"] == "binary":
        assert every.upward_closed
    return str(found.search["strategy"])


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("block", repeated(10))
def test_the_lowest_height_equals_brute_force(block: int, known: bool) -> None:
    found = [check(random_case(seed), known) for seed in range(40_000 + block * 100, 40_100 + block * 100)]
    assert found.count("exhaustive") > 10
    assert found.count("binary") > 5 or not known


@pytest.mark.parametrize("block", repeated(6))
def test_many_nodes_of_the_lowest_height(block: int) -> None:
    found = [check(rich_case(seed), True) for seed in range(1000 + block * 50, 1050 + block * 50)]
    assert min(found.count("exhaustive"), found.count("binary")) > 5


# p-sensitive k-anonymity over two sensitive columns, with and without the two necessary conditions

Row = tuple[str, ...]


def p_sensitive_task(rows: list[Row], hierarchies: list[Hierarchy], p: int, k: int) -> Task:
    """Key attributes first, then the sensitive ones."""
    keys = len(hierarchies)
    columns = [[row[a] for row in rows] for a in range(keys)]
    sensitive = {f"s{a}": [row[a] for row in rows] for a in range(keys, len(rows[0]))}
    summary = summarise(hierarchies, columns, sensitive)
    domains = {name: counts.values for name, counts in summary.sensitive.items()}
    context = Context(n_people=len(rows), domains=domains)
    model = MODELS["p-sensitive-k-anonymity"](p=p, k=k)
    return Task(summary, [model], context, np.random.default_rng(0))


def satisfies(
    rows: list[Row], hierarchies: list[Hierarchy], node: tuple[int, ...], p: int, k: int, ts: int, small: bool
) -> bool:
    """The definition: at most ts rows go, in groups below k (`small`) or in groups that fail; the others pass."""
    groups = defaultdict(list)
    for row in rows:
        key = tuple(
            int(h.levels[n].blocks[h.values.index(v) + 1])
            for h, n, v in zip(hierarchies, node, row, strict=False)
        )
        groups[key].append(row[len(hierarchies) :])

    def passes(group: list[Row]) -> bool:
        return len(group) >= k and all(len(set(column)) >= p for column in zip(*group, strict=True))

    kept = [group for group in groups.values() if (len(group) >= k if small else passes(group))]
    gone = len(rows) - sum(map(len, kept))
    return bool(kept) and gone <= ts and all(map(passes, kept))


@pytest.mark.parametrize("block", repeated(6))
def test_the_conditions_change_nothing_but_the_work(block: int) -> None:
    rng = np.random.default_rng(block)
    pruned = {("binary", True): 0, ("exhaustive", True): 0, ("binary", False): 0}
    for _ in range(60):
        hierarchies = [
            Hierarchy.of("a", list("abcd"), [("pairs", ["x", "x", "y", "y"])]),
            Hierarchy.of("b", list("efg"), [("ef", ["z", "z", "g"]), ("fg", ["e", "w", "w"])], chain=False),
        ]
        n = int(rng.integers(4, 25))
        tables = [list("abcd"), list("efg")]
        drawn = [rng.choice(values, n) for values in tables]
        drawn += [
            rng.choice(list("uvw"), n, p=[0.8, 0.1, 0.1]),
            rng.choice(list("xyz"), n, p=[0.6, 0.2, 0.2]),
        ]
        rows = [tuple(str(v) for v in row) for row in zip(*drawn, strict=True)]
        p, k = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        ts = int(rng.integers(0, n)) if rng.random() < 0.7 else 0
        small = bool(rng.random() < 0.6)
        options: Any = {
            "suppression": Fraction(ts, n),
            "suppress": "small-classes" if small else "failing-classes",
        }
        task = p_sensitive_task(rows, hierarchies, p, k)
        every = itertools.product(*(range(len(h.levels)) for h in hierarchies))
        good = {node for node in every if satisfies(rows, hierarchies, node, p, k, ts, small)}
        for conditions in (True, False):
            method = Samarati(**options, conditions=conditions)
            if not good:
                with pytest.raises(PolicyNotMet):
                    method.group(task)
                continue
            search = method.group(task).search
            heights = [
                sum(int(h.heights[i]) for h, i in zip(hierarchies, node, strict=True)) for node in good
            ]
            assert search["height"] == min(heights)
            assert search["nodes_of_this_height"] == heights.count(min(heights))
            pruned[search["strategy"], small] += search["ruled_out_by_condition"]
            assert conditions or search["ruled_out_by_condition"] == 0
    assert min(pruned.values()) > 0


def test_condition_two_is_that_of_the_paper_for_several_columns() -> None:
    rows: list[Row] = [("a", u, x) for u, x in zip("uuuuuvvw", "xxxyyyzz", strict=True)]
    task = p_sensitive_task(rows, [Hierarchy.of("q", ["a"], [])], 2, 2)
    assert most_groups(task) == max_groups([[5, 2, 1], [3, 3, 2]], 2) == 3


def chain(values: str, *levels: str) -> Hierarchy:
    return Hierarchy.of("q", list(values), [(f"level {i}", list(labels)) for i, labels in enumerate(levels)])


def test_binary_search_overshoots_where_suppression_is_allowed() -> None:
    """Erratum T-1: levels 0 and 2 satisfy, 1 does not."""
    rows: list[Row] = [("a", "v"), ("a", "w"), ("b", "v"), ("c", "v")]
    task = p_sensitive_task(rows, [chain("abc", "ABB")], 2, 2)
    nodes = Nodes(task, OptimalLattice(suppression="1/2"))
    assert [nodes.satisfies(n) for n in range(3)] == [True, False, True]
    assert plain_binary_search(nodes, nodes.satisfies) == 2
    found = Samarati(suppression="1/2").group(task)
    assert (found.levels, found.suppressed_rows) == ((0,), 2)
    assert found.search["strategy"] == "exhaustive"
    assert "p-sensitive-k-anonymity" in found.search["why"]


def test_only_groups_that_survive_suppression_count() -> None:
    """Erratum T-2: five groups where at most one is possible, but four of them are suppressed."""
    rows: list[Row] = [("a", "v"), ("a", "w"), ("b", "v"), ("c", "v"), ("d", "v"), ("e", "v")]
    task = p_sensitive_task(rows, [chain("abcde", "AABBB")], 2, 2)
    assert most_groups(task) == 1
    assert Samarati(suppression="4/6").group(task).levels == (0,)


@pytest.mark.parametrize(("suppression", "strategy"), [("0", "binary"), ("1/16", "exhaustive")])
def test_a_pruned_node_does_not_end_its_height(suppression: str, strategy: str) -> None:
    """Erratum T-3: of the two nodes of height 1 the first has more groups than possible, the second satisfies."""
    hierarchies = [Hierarchy.of("q0", list("abcd"), []), Hierarchy.of("q1", list("ef"), [])]
    rows: list[Row] = [(a, b, "v") for a in "abcd" for b in "ef"]
    rows += [(a, b, "w" if a + b in ("ae", "bf") else "v") for a, b, _ in rows]
    task = p_sensitive_task(rows, hierarchies, 2, 2)
    assert most_groups(task) == 2
    found = Samarati(suppression=suppression).group(task)
    assert (found.levels, found.search["height"], found.search["strategy"]) == ((1, 0), 1, strategy)
    assert found.search["ruled_out_by_condition"] == 2
    assert found.search["checked"] == 1


def test_too_few_values_are_refused_before_any_node_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Condition 1."""
    task = p_sensitive_task([("a", "v"), ("b", "w"), ("b", "w")], [chain("ab")], 3, 1)
    monkeypatch.setattr("maskwright.methods.samarati.lowest_nodes", None)
    with pytest.raises(PolicyNotMet, match=r"different values of a sensitive column 2, asked at least 3"):
        Samarati().group(task)


def test_steps_that_skip_a_height_are_not_missed() -> None:
    """In a DAG a level can be lower than all others of its kind: height 1 satisfies, 2 and 3 do not, 4 does."""
    values = list("abcdefgh")
    levels = [
        ("good", list("xyxyxyxy")),
        ("one", list("1123456" + "7")),
        ("two", list("1113456" + "7")),
        ("three", list("1111456" + "7")),
    ]
    hierarchy = Hierarchy.of("q", values, levels, chain=False)
    task = task_of(summarise([hierarchy], [values]), [MODELS["k-anonymity"](k=4)])
    assert hierarchy.height == 4
    nodes = Nodes(task, OptimalLattice())
    assert nodes.upward
    assert plain_binary_search(nodes, nodes.satisfies) == hierarchy.top
    found = Samarati().group(task)
    assert found.levels == (hierarchy.level_of("good"),)
    assert (found.search["height"], found.search["strategy"]) == (1, "binary")


def reference_binary_search(every: Case) -> Any:
    """The published procedure, word for word, on the brute-force answers."""
    nodes = sorted(itertools.product(*(range(len(h.levels)) for h in every.attributes)))
    top = nodes[-1]
    low, high, best = 0, every.height(top), top if top in every.satisfying else None
    while low < high:
        height = (low + high) // 2
        found = [node for node in nodes if every.height(node) == height and node in every.satisfying]
        if found:
            best, high = found[0], height
        else:
            low = height + 1
    return best


def test_plain_binary_search_is_plain_and_wrong_where_it_must_be() -> None:
    wrong = 0
    for seed in range(3000, 3150):
        every = rich_case(seed)
        nodes = Nodes(every.task(), OptimalLattice(**every.options()))
        found = plain_binary_search(nodes, nodes.satisfies)
        expected = reference_binary_search(every)
        assert (None if found is None else nodes.lattice.node(found)) == expected
        height = None if expected is None else every.height(expected)
        wrong += height != (every.height(next(iter(every.lowest))) if every.lowest else None)
    assert wrong > 0


# The bundled table


def test_adult_has_the_lowest_height_known_for_it() -> None:
    """ARX finds height 9 with 563 rows suppressed at exactly these levels; they are the only ones."""
    task = task_of(adult(), [MODELS["k-anonymity"](k=5)])
    found = Samarati(suppression="0.02").group(task)
    assert found.levels == (0, 1, 1, 1, 1, 2, 1, 2, 0)
    assert (found.search["height"], found.suppressed_rows) == (9, 563)
    assert found.search["strategy"] == "binary"


def test_conditions_on_adult() -> None:
    task = task_of(
        adult("race"), [MODELS["k-anonymity"](k=2), MODELS["distinct-l-diversity"](l=4, attribute="race")]
    )
    with_conditions = Samarati(suppression="0.02").group(task)
    without = Samarati(suppression="0.02", conditions=False).group(task)
    assert with_conditions.levels == without.levels
    assert with_conditions.search["ruled_out_by_condition"] > 0
    assert with_conditions.search["checked"] < without.search["checked"]


def test_infeasible_policies_are_refused_as_the_optimal_search_does() -> None:
    task = p_sensitive_task([("a", "v"), ("a", "w"), ("b", "v")], [chain("ab")], 1, 4)
    with pytest.raises(PolicyNotMet) as refused:
        Samarati().group(task)
    with pytest.raises(PolicyNotMet) as expected:
        OptimalLattice().group(task)
    assert str(refused.value) == str(expected.value)


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(PolicyNotMet, match="no rows"):
        Samarati().group(task_of(summarise([chain("ab")], [[]]), []))


def test_nothing_is_lowest_where_nothing_satisfies() -> None:
    task = p_sensitive_task([("a", "v"), ("b", "w")], [chain("ab")], 1, 3)
    assert lowest_nodes(Nodes(task, OptimalLattice())) == []
