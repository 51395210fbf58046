"""Top-down (α,k) local recoding: what it promises, a worked example, and that nothing more can be specialised."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from maskwright.core.grouping import Grouping
from maskwright.core.hierarchy import Hierarchy
from maskwright.core.method import Task
from maskwright.errors import PolicyNotMet
from maskwright.methods.alpha_k_local import AlphaKLocal, path_down
from maskwright.models import MODELS
from tests.methods.row_tables import Table, adult_rows, build, holds


def alpha_k(alpha: str, k: int, **more: Any) -> Any:
    return MODELS["alpha-k-anonymity"](alpha=alpha, k=k, attribute="s", **more)


def texts(grouping: Grouping, g: int) -> tuple[str | None, ...]:
    return tuple(x.texts[x.of_group[g]] for x in grouping.labels)


def random_tree_table(rng: np.random.Generator) -> Table:
    n = int(rng.integers(2, 25))
    attributes = [
        Hierarchy.of("a", list("abcd"), [("pairs", ["ab", "ab", "cd", "cd"])]),
        Hierarchy.of("b", list("xyz"), [("xy", ["xy", "xy", "z"])]),
    ]
    qi = [[str(rng.choice(list("abcd"))), str(rng.choice(list("xyz")))] for _ in range(n)]
    sa = [str(v) for v in rng.choice(list("Pqr"), n, p=[0.4, 0.4, 0.2])]
    return build(qi, {"s": sa}, attributes, domains={"s": ("P", "q", "r")})


def labels_contain(grouping: Grouping) -> None:
    """Every row lies under the label of its group."""
    allocation = grouping.allocation
    for a, (h, labels) in enumerate(zip(grouping.summary.attributes, grouping.labels, strict=True)):
        for t, g in zip(allocation.tuples.tolist(), allocation.groups.tolist(), strict=True):
            text, code = labels.texts[labels.of_group[g]], grouping.summary.codes[a][t]
            assert any(level.labels[level.blocks[code]] == text for level in h.levels)


@pytest.mark.parametrize("seed", range(150))
def test_promises(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_tree_table(rng)
    models = [alpha_k(["1/2", "2/3"][seed % 2], int(rng.integers(1, 4)), values=["P"])]
    task = table.task(models, seed)
    try:
        grouping = AlphaKLocal().group(task)
    except PolicyNotMet:
        assert not models[0].check(table.summary.totals(), task.context).ok
        return
    holds(grouping, task)
    labels_contain(grouping)
    assert grouping.dropped_rows == 0
    assert not specialisable(grouping, task)


def specialisable(grouping: Grouping, task: Task) -> bool:
    """Could a whole group go one step down in an attribute, all its children passing? Then it is not minimal."""
    summary, allocation = grouping.summary, grouping.allocation
    assert summary.joint is not None
    assert allocation.cells is not None
    for g in range(grouping.classes.n):
        inside = allocation.groups == g
        cells, rows = allocation.cells[inside], allocation.rows[inside]
        for a, h in enumerate(summary.attributes):
            labels = grouping.labels[a]
            path = path_down(h, None)
            codes = summary.codes[a][summary.joint.tuples[cells]]
            text = labels.texts[labels.of_group[g]]
            at = [j for j in path if h.levels[j].labels[h.levels[j].blocks[codes[0]]] == text][-1]
            finer = path[path.index(at) + 1 :]
            if not finer:
                continue
            blocks = h.levels[finer[0]].blocks[codes]
            owner = np.unique(blocks, return_inverse=True)[1].reshape(-1)
            classes = summary.cell_classes(cells, owner, rows, int(owner.max()) + 1)
            if all(m.passing(classes, task.context).all() for m in task.search):
                return True
    return False


def test_rows_of_one_class_end_in_groups_of_different_generality() -> None:
    """Six rows of a, one of b. With α = 1/2 and k = 3 the one of b is too few, and a must give two rows back."""
    hierarchy = Hierarchy.of("a", ["a", "b"], [])
    rows = [["a"]] * 6 + [["b"]] * 1
    table = build(rows, {"s": ["P", "P", "q", "q", "q", "q", "P"]}, [hierarchy])
    grouping = AlphaKLocal().group(table.task([alpha_k("1/2", 3, values=["P"])]))
    found = {
        texts(grouping, g): grouping.classes.sensitive["s"].of_class(g) for g in range(grouping.classes.n)
    }
    assert found == {("a",): {"P": 2, "q": 2}, ("*",): {"P": 1, "q": 2}}


def test_the_attribute_with_the_larger_gain_goes_first() -> None:
    """b has more values below the top, and its weight can be overruled."""
    attributes = [Hierarchy.of("a", ["x", "y"], []), Hierarchy.of("b", list("1234"), [])]
    rows = [["x", "1"], ["x", "1"], ["y", "2"], ["y", "2"]]
    table = build(rows, {"s": ["P", "q", "P", "q"]}, attributes)
    task = table.task([alpha_k("1/2", 2)])
    assert AlphaKLocal().group(task).classes.n == 2
    mixed = build([["x", "1"], ["x", "2"], ["y", "1"], ["y", "2"]], {"s": ["P", "q", "q", "P"]}, attributes)
    plain = AlphaKLocal().group(mixed.task([alpha_k("1/2", 2)]))
    assert {texts(plain, g) for g in range(2)} == {("x", "*"), ("y", "*")}  # equal gain: the first attribute
    heavy = AlphaKLocal().group(mixed.task([alpha_k("1/2", 2)], weights={"b": Fraction(5)}))
    assert {texts(heavy, g) for g in range(2)} == {("*", "1"), ("*", "2")}


def test_restricted_levels() -> None:
    attributes = [Hierarchy.of("a", list("abcd"), [("pairs", ["ab", "ab", "cd", "cd"])])]
    table = build([["a"], ["b"], ["c"], ["d"]], {"s": ["P", "q", "P", "q"]}, attributes)
    grouping = AlphaKLocal().group(table.task([alpha_k("1/2", 2)], levels={"a": [1]}))
    assert {texts(grouping, g) for g in range(grouping.classes.n)} == {("ab",), ("cd",)}
    with pytest.raises(PolicyNotMet, match="as far as allowed"):
        AlphaKLocal().group(table.task([alpha_k("1/2", 2)], levels={"a": [0]}))


def test_seeded_runs_reproduce() -> None:
    table = build(
        [["a"]] * 6 + [["b"]], {"s": ["P", "P", "q", "q", "r", "r", "P"]}, [Hierarchy.of("a", ["a", "b"], [])]
    )
    runs = [AlphaKLocal().group(table.task([alpha_k("1/2", 3)], seed)).allocation for seed in (1, 1)]
    assert np.array_equal(runs[0].rows, runs[1].rows)
    assert np.array_equal(runs[0].groups, runs[1].groups)


@pytest.mark.slow
def test_adult() -> None:
    table = adult_rows("occupation")
    task = table.task([MODELS["alpha-k-anonymity"](alpha="1/2", k=20, attribute="occupation")])
    grouping = AlphaKLocal().group(task)
    holds(grouping, task)
    assert grouping.classes.n > 500
