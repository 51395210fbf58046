"""`incognito` lists all minimal nodes, over subsets of the attributes where that is right, and picks the best."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from maskwright.domain.hierarchy import Hierarchy
from maskwright.errors import PolicyNotMet
from maskwright.methods import incognito as incognito_module
from maskwright.methods._lattice.minimal_nodes import tag_minimal_nodes
from maskwright.methods._lattice.nodes import Nodes
from maskwright.methods.incognito import BySubsets, Incognito, roll_up
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.models import MODELS
from tests.amounts import repeated
from tests.oracles.lattice_cases import Case, random_case, rich_case
from tests.support import adult, summarise, task_of


def check(every: Case, known: bool) -> str | None:
    """Compare with brute force; the strategy, or None when no node satisfies."""
    try:
        found = Incognito(**every.options()).group(every.task(known))
    except PolicyNotMet as refused:
        assert not every.satisfying
        assert "\n" not in str(refused)
        return None
    names = [
        {h.attribute: h.levels[n].name for h, n in zip(every.attributes, node, strict=True)}
        for node in every.minimal
    ]
    listed = found.search["minimal_nodes"]
    assert sorted(map(repr, names)) == sorted(repr(node["levels"]) for node in listed)
    assert Counter(node["suppressed_rows"] for node in listed) == Counter(
        every.satisfying[node].suppressed for node in every.minimal
    )
    assert [float(Fraction(n["score"])) for n in listed] == sorted(
        float(Fraction(n["score"])) for n in listed
    )
    assert found.levels in every.minimal
    assert found.suppressed_rows == every.satisfying[found.levels].suppressed
    if every.objective != "non-uniform-entropy":  # its brute-force ties are floats
        assert found.levels == every.best(every.minimal)
    return str(found.search["strategy"])


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("block", repeated(10))
def test_minimal_nodes_equal_brute_force(block: int, known: bool) -> None:
    found = [check(random_case(seed), known) for seed in range(50_000 + block * 100, 50_100 + block * 100)]
    assert found.count("tagging") > 10
    assert found.count("subsets") > 5 or not known


@pytest.mark.parametrize("block", repeated(6))
def test_several_minimal_nodes(block: int) -> None:
    found = [check(rich_case(seed), True) for seed in range(2000 + block * 50, 2050 + block * 50)]
    assert min(found.count("subsets"), found.count("tagging")) > 5


def test_a_frequency_set_rolls_up_to_that_of_fewer_attributes() -> None:
    rng = np.random.default_rng(7)
    for _ in range(30):
        hierarchies = [Hierarchy.of(f"q{a}", ["a", "b", "c"], []) for a in range(3)]
        n = int(rng.integers(1, 20))
        columns: list[Any] = [[rng.choice(["a", "b", "c", None]) for _ in range(n)] for _ in hierarchies]
        disease = [rng.choice(["u", "v", None]) for _ in range(n)]
        disease[0] = "u"
        whole = summarise(hierarchies, columns, {"disease": disease})
        for keep in ([0], [2], [0, 2], [1, 2], [0, 1, 2]):
            rolled = roll_up(whole, keep)
            direct = summarise(
                [hierarchies[a] for a in keep], [columns[a] for a in keep], {"disease": disease}
            )
            assert _as_counts(rolled) == _as_counts(direct)


def _as_counts(summary: Any) -> dict[tuple[int, ...], Any]:
    vc = summary.sensitive["disease"]
    return {
        tuple(summary.codes[:, t].tolist()): (int(summary.rows[t]), int(summary.sizes[t]), vc.of_class(t))
        for t in range(summary.n_tuples)
    }


@pytest.mark.parametrize("suppression", ["0", "0.02"])
def test_both_strategies_agree_on_adult(suppression: str) -> None:
    task = task_of(adult("occupation"), [MODELS["k-anonymity"](k=5)])
    method = OptimalLattice(suppression=suppression)
    nodes = Nodes(task, method)
    assert nodes.upward
    by_subsets = BySubsets(nodes, method)
    found = sorted(by_subsets.run())
    assert found == tag_minimal_nodes(Nodes(task, method))
    assert len(found) > 5
    assert 0 < nodes.checked < 1000


def test_a_node_is_a_candidate_when_all_its_projections_satisfy() -> None:
    hierarchies = [Hierarchy.of(name, ["a", "b"], []) for name in ("x", "y", "z")]
    rows = ["aaa", "abb", "baa", "bbb", "aaa", "bbb"]
    task = task_of(summarise(hierarchies, list(zip(*rows, strict=True))), [MODELS["k-anonymity"](k=2)])
    search = BySubsets(Nodes(task, OptimalLattice()), OptimalLattice())
    seen: dict[int, Any] = {}
    original = search._search
    search._search = lambda nodes, candidates: (  # type: ignore[method-assign]
        seen.update({candidates.ndim: candidates}) or original(nodes, candidates)  # type: ignore[func-returns-value]
    )
    search.run()

    def satisfies(node: tuple[int, ...], subset: tuple[int, ...]) -> bool:
        classes = Counter(tuple(row[a] if node[a] == 0 else "*" for a in subset) for row in rows)
        return min(classes.values()) >= 2

    expected = [
        all(satisfies(node, pair) for pair in itertools.combinations(range(3), 2))
        for node in np.ndindex(2, 2, 2)
    ]
    assert seen[3].reshape(-1).tolist() == expected
    assert 0 < sum(expected) < 8


def test_too_many_subsets_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incognito_module, "LISTED", 3)
    task = task_of(
        summarise([Hierarchy.of("q", ["a", "b", "c"], [("ab", ["x", "x", "c"])])], [list("aabbc")]),
        [MODELS["k-anonymity"](k=2)],
    )
    found = Incognito(suppression="1/5").group(task)
    assert found.levels == (0,)
    assert found.search["strategy"] == "tagging"
    assert "too many nodes on subsets" in found.search["why"]


def test_a_requirement_on_several_classes_at_once() -> None:
    """k-anonymity of chosen columns is merge-safe, but its columns cannot be left out."""
    hierarchies = [Hierarchy.of(name, ["a", "b"], []) for name in ("x", "y")]
    rows = ["aa", "ab", "ba", "bb"]
    model = MODELS["k-anonymity"](k=2, on=[["x"], ["y"]])
    found = Incognito().group(task_of(summarise(hierarchies, list(zip(*rows, strict=True))), [model]))
    assert found.levels == (0, 0)
    assert (found.search["strategy"], found.search["why"]) == (
        "tagging",
        "a requirement looks at several classes at once",
    )


def test_infeasible_policies_are_refused_as_the_optimal_search_does() -> None:
    task = task_of(
        summarise([Hierarchy.of("q", ["a", "b"], [])], [list("aab")]), [MODELS["k-anonymity"](k=4)]
    )
    with pytest.raises(PolicyNotMet) as refused:
        Incognito().group(task)
    with pytest.raises(PolicyNotMet) as expected:
        OptimalLattice().group(task)
    assert str(refused.value) == str(expected.value)


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(PolicyNotMet, match="no rows"):
        Incognito().group(task_of(summarise([Hierarchy.of("q", ["a"], [])], [[]]), []))
