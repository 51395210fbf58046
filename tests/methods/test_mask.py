"""MASK: the plan it follows, what it changes, and what it leaves alone."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from maskwright.domain.grouping import Grouping
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.methods.mask import Mask
from maskwright.models import MODELS
from maskwright.worlds.counting.mask_worlds import mask_plan
from tests.amounts import repeated
from tests.methods.row_tables import Table, adult_rows, build

K = MODELS["k-anonymity"](k=3)


def binary(l: Any) -> Any:  # noqa: E741
    return MODELS["simple-l-diversity"](l=l, values=["P"], attribute="s")


def small() -> Table:
    """Three classes of four: one violates (three positives), two serve as models (one and two positives)."""
    sa = ["P", "P", "P", "a", "P", "b", "b", "b", "P", "P", "c", "c"]
    return build([[i // 4] for i in range(12)], {"s": sa, "t": list("xyxyxyxyxyxy")})


def true_and_published(grouping: Grouping) -> tuple[list[Counter[Any]], list[Counter[Any]]]:
    assert grouping.published is not None
    before, after = grouping.classes.sensitive["s"], grouping.published["s"]
    groups = range(before.n_classes)
    return [Counter(before.of_class(g)) for g in groups], [Counter(after.of_class(g)) for g in groups]


def test_the_changes_are_those_of_the_plan() -> None:
    seen = set()
    for seed in range(30):
        grouping = Mask(attribute="s").group(small().task([MODELS["k-anonymity"](k=4), binary(2)], seed))
        true, published = true_and_published(grouping)
        sizes, held = [sum(c.values()) for c in true], [c["P"] for c in true]
        plan = mask_plan(sizes, held, Fraction(2))
        assert len(plan.violating) == 1
        for g, (before, after) in enumerate(zip(true, published, strict=True)):
            if g not in plan.violating:
                assert before == after
                continue
            assert after["P"] in plan.targets[g]
            assert set(after) <= {"P", "a"}  # the class has a harmless value of its own
            assert sum(after.values()) == sum(before.values())
            seen.add(after["P"])
        assert grouping.changes is not None
        assert int(grouping.changes.rows.sum()) == sum(
            (b - a).total() for b, a in zip(true, published, strict=True)
        )
        assert grouping.search["changed_rows"] == int(grouping.changes.rows.sum())
        assert "does not know MASK" in grouping.search["note"]
    assert seen == {2}  # one class violates, so one class serves as its model: that with the share 1/2


def test_changes_add_up_to_what_is_published() -> None:
    grouping = Mask(base="mondrian", l=3, values=["P"], attribute="s").group(random_table(3).task([K], 1))
    changes, joint = grouping.changes, grouping.summary.joint
    assert changes is not None
    assert joint is not None
    assert len(changes.cells) > 0
    true, published = true_and_published(grouping)
    domain = grouping.summary.sensitive["s"].values
    for cell, g, code, rows in zip(changes.cells, changes.groups, changes.codes, changes.rows, strict=True):
        old = domain[joint.values[0][cell] - 1]
        assert old == "P" != domain[code - 1]
        true[g][old] -= int(rows)
        true[g][domain[code - 1]] += int(rows)
        inside = (grouping.allocation.cells == cell) & (grouping.allocation.groups == g)
        assert int(rows) <= int(grouping.allocation.rows[inside].sum())
    assert [+c for c in true] == published


def random_table(seed: int, n: int = 60) -> Table:
    rng = np.random.default_rng(seed)
    sa = [str(v) for v in rng.choice(list("Pabc"), n, p=[0.25, 0.25, 0.25, 0.25])]
    return build([[int(v)] for v in rng.integers(0, 12, n)], {"s": sa})


@pytest.mark.parametrize("base", ["mondrian", "optimal-lattice", "alpha-k-local"])
@pytest.mark.parametrize("seed", repeated(20))
def test_promises(seed: int, base: str) -> None:
    table = random_table(seed)
    task = table.task([K, binary(2)], seed)
    try:
        grouping = Mask(base=base).group(task)
    except PolicyNotMet:
        return
    for model in task.search:
        assert model.check(grouping.published_classes, task.context).ok
    again = Mask(base=base).group(table.task([K, binary(2)], seed))
    assert true_and_published(grouping) == true_and_published(again)


def test_a_class_without_harmless_values_borrows_those_of_the_table() -> None:
    sa = ["P", "P", "P", "P", "a", "b", "a", "P"]
    table = build([[i // 4] for i in range(8)], {"s": sa})
    grouping = Mask(base="mondrian").group(table.task([MODELS["k-anonymity"](k=4), binary(2)]))
    _, published = true_and_published(grouping)
    assert sorted(c["P"] for c in published) == [1, 1]
    assert all(set(c) <= {"P", "a", "b"} for c in published)


def test_nothing_to_do() -> None:
    table = build([[i // 4] for i in range(8)], {"s": ["P", "a", "b", "a"] * 2})
    grouping = Mask(base="mondrian").group(table.task([MODELS["k-anonymity"](k=4), binary(2)]))
    assert grouping.changes is not None
    assert len(grouping.changes.rows) == 0
    true, published = true_and_published(grouping)
    assert true == published


def test_what_is_refused() -> None:
    table = build([[i // 2] for i in range(4)], {"s": ["P", "P", "P", "a"]})
    with pytest.raises(PolicyNotMet, match="none has few enough"):
        Mask(base="mondrian").group(table.task([MODELS["k-anonymity"](k=4), binary(2)]))
    with pytest.raises(PolicyError, match="give `l` and `values`"):
        Mask().group(table.task([K]))
    with pytest.raises(PolicyError, match="require k-anonymity"):
        Mask().group(table.task([binary(2)]))
    with pytest.raises(PolicyError, match="'Q' does not occur"):
        Mask(l=2, values=["Q"]).group(table.task([K]))


def test_adult() -> None:
    table = adult_rows("occupation")
    models = [
        MODELS["k-anonymity"](k=10),
        MODELS["simple-l-diversity"](l=5, values=["Sales"], attribute="occupation"),
    ]
    task = table.task(models)
    grouping = Mask(base="mondrian").group(task)
    assert grouping.search["disguised_classes"] > 50
    assert all(m.check(grouping.published_classes, task.context).ok for m in models)
