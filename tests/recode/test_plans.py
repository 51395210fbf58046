"""Plans without rows: distorted values, group numbers, what stays together, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.classes import ValueCounts
from maskwright.domain.grouping import Changes, Grouping
from maskwright.domain.recoding_plan import GroupPlan, Plan
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Reading, SummarySpec
from maskwright.errors import PolicyError
from maskwright.recode.plans import generalisation_plan, group_column, shuffled_plan
from tests.recode.groups import ATTRIBUTES, KEY, SENSITIVE, Example, Row, S, T, example, fetch, frame, rows


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    opened = open_engine()
    yield opened
    opened.close()


def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def distort(made: Example, values: list[str | None], name: str = "s") -> Grouping:
    """Publish `values[i]` of a column instead of the value of the i-th published row."""
    a = ("s", "t").index(name)
    domain, kept = made.summary.sensitive[name].values, made.kept()
    assert made.summary.joint is not None
    groups = np.array([g for _, g in kept], dtype=np.int64)
    codes = np.array([domain.index(v) + 1 if v is not None else 0 for v in values], dtype=np.int64)
    cells = np.array([made.cell(row) for row, _ in kept], dtype=np.int64)
    counts = ValueCounts.collect(
        domain, made.grouping.classes.n, groups, codes, np.ones(len(codes), dtype=np.int64)
    )
    new = codes != made.summary.joint.values[a][cells]
    table, rows_ = np.unique(np.stack([cells, groups, codes])[:, new], axis=1, return_counts=True)
    changes = Changes(name, table[0], table[1], table[2].astype(np.int32), rows_.astype(np.int64))
    return replace(made.grouping, published={name: counts}, changes=changes)


@given(rows, st.data())
def test_distorted_values_are_published(engine: Engine, table: list[Row], data: Any) -> None:
    groups = [0, *(data.draw(st.integers(-1, 2)) for _ in table[1:])]
    made = example(engine, table, groups, whole=data.draw(st.booleans()))
    kept, name = made.kept(), data.draw(st.sampled_from(["s", "t"]))
    column = 2 + ("s", "t").index(name)
    values = [data.draw(st.sampled_from((None, *(S if name == "s" else T)))) for _ in kept]
    grouping = distort(made, values, name)
    shown: list[tuple[Row, int]] = []
    for (row, g), value in zip(kept, values, strict=True):
        shown.append(((*row[:column], value, *row[column + 1 :]), g))  # type: ignore[arg-type]
    changed = sum(row[column] != new[column] for (row, _), (new, _) in zip(kept, shown, strict=True))

    passing = generalisation_plan(grouping, ("p", "a", "b", "s", "t"), (), KEY)
    found = fetch(engine, engine.recode(made.table, passing))
    sources = [made.rows[int(r["p"] or 0)] for r in found]
    after = Counter((r["a"], made.cell(row), r["s"], r["t"]) for r, row in zip(found, sources, strict=True))
    wanted = Counter(
        (f"a:{g}", made.cell(row), *new[2:]) for (row, g), (new, _) in zip(kept, shown, strict=True)
    )
    assert after == wanted
    assert sum(r[name] != row[column] for r, row in zip(found, sources, strict=True)) == changed
    expanded = generalisation_plan(grouping, ("s", "a", "t"), (), KEY)
    assert isinstance(expanded, GroupPlan)
    assert not expanded.passed
    found = fetch(engine, engine.recode(made.table, expanded))
    assert Counter((r["a"], r["s"], r["t"]) for r in found) == Counter(
        (f"a:{g}", *row[2:]) for row, g in shown
    )

    for together in ((), [["s", "t"]]):
        shuffled = shuffled_plan(
            grouping, ("a", "b", "s", "t"), (), KEY, generator(), exact=False, together=together
        )
        label = {int(r["group"] or 0): r["a"] for r in fetch(engine, engine.recode(made.table, shuffled))}
        for out in (engine.recode(made.table, shuffled), engine.bucketize(made.table, shuffled)["sensitive"]):
            found = fetch(engine, out)
            for columns in [("s", "t")] if together else [("s",), ("t",)]:
                picked = [("s", "t").index(c) + 2 for c in columns]
                written = Counter((label[int(r["group"] or 0)], *(r[c] for c in columns)) for r in found)
                assert written == Counter((f"a:{g}", *(row[i] for i in picked)) for row, g in shown)


def test_changed_rows_are_drawn(engine: Engine) -> None:
    """One of four equal rows loses its value: each of them equally often."""
    made = example(engine, [("1", "b0", "HIV", None)] * 4, [0] * 4)
    grouping = distort(made, ["HIV", "HIV", "HIV", "flu"])
    changed: Counter[str | None] = Counter()
    for trial in range(80):
        plan = generalisation_plan(grouping, ("p", "s"), (), f"{trial:064x}")
        changed[next(r["p"] for r in fetch(engine, engine.recode(made.table, plan)) if r["s"] == "flu")] += 1
    assert len(changed) == 4
    assert sum((k - 20) ** 2 / 20 for k in changed.values()) < 21.1  # 1 in 10,000, 3 degrees of freedom


def test_changes_must_fit(engine: Engine) -> None:
    made = example(engine, [("1", "b0", "HIV", "10")] * 3, [0, 0, 1])
    grouping = distort(made, ["flu", "HIV", "HIV"])
    assert grouping.changes is not None
    for wrong, message in (
        (replace(grouping.changes, rows=np.array([3])), "more rows"),
        (replace(grouping.changes, groups=np.array([-1])), "not published"),
        (replace(grouping.changes, groups=np.array([2])), "not published"),
        (replace(grouping.changes, cells=np.array([1])), "not published"),
    ):
        with pytest.raises(ValueError, match=message):
            generalisation_plan(replace(grouping, changes=wrong), ("a", "s"), (), KEY)
    one = ValueCounts.collect(S, 2, np.array([0, 1]), np.array([1, 1]), np.array([1, 1]))
    with pytest.raises(ValueError, match="not as many as the rows"):
        shuffled_plan(replace(grouping, published={"s": one}), ("a", "s"), (), KEY, generator())


def test_refusals(engine: Engine) -> None:
    made = example(engine, [("1", "b0", "HIV", "10")], [0])
    g = made.grouping
    with pytest.raises(PolicyError, match="'a', which is not a sensitive column; sensitive are s, t"):
        shuffled_plan(g, ("a", "s"), (), KEY, generator(), together=[["a", "s"]])
    with pytest.raises(PolicyError, match="names 's' twice"):
        shuffled_plan(g, ("a", "s"), (), KEY, generator(), together=[["s"], ["t", "s"]])
    with pytest.raises(PolicyError, match="cannot be called 'A'"):
        shuffled_plan(g, ("a", "s"), (), KEY, generator(), group_column="A")
    assert group_column(["a"]) == "group"
    assert group_column(["Group", "group_", "x"]) == "group__"


def test_several_rows_per_person(engine: Engine) -> None:
    table = engine.open(frame([("1", "b0", "HIV", "10")] * 2), Reading())
    summary = engine.summarise(table, SummarySpec(ATTRIBUTES, SENSITIVE, unit="p"))
    made = example(engine, [("1", "b0", "HIV", "10")] * 2, [0, 0], whole=True)
    grouping = Grouping(**{**vars(made.grouping), "summary": summary})
    apart = shuffled_plan(grouping, ("a", "s"), (), KEY, generator())
    assert [block.rows.tolist() for block in apart.blocks] == [[2]]  # rows, not people: one person has both
    plan = generalisation_plan(grouping, ("a", "b", "s", "t"), (), KEY)
    assert isinstance(plan, GroupPlan)
    assert plan.passed == ("s", "t")  # sensitive values come from the rows
    assert [r["s"] for r in fetch(engine, engine.recode(table, plan))] == ["HIV", "HIV"]


def test_an_allocation_must_take_every_row(engine: Engine) -> None:
    made = example(engine, [("1", "b0", "HIV", "10")] * 3, [0, 0, 1])
    short = replace(made.grouping.allocation, rows=np.array([1, 1]))
    with pytest.raises(ValueError, match="every row"):
        generalisation_plan(replace(made.grouping, allocation=short), ("a", "s"), (), KEY)


def test_exact_labels_keep_the_type(engine: Engine) -> None:
    """A column that no group had to coarsen is published as it is."""
    table: list[Row] = [("1", "b0", "flu", "10"), ("1", "b1", "HIV", "10"), (None, "b0", "flu", "20")]
    made = example(engine, table, [0, 0, 1])
    of_group = np.array([1, 0], dtype=np.int32)
    labels = (replace(made.grouping.labels[0], texts=(None, "1"), of_group=of_group), made.grouping.labels[1])
    plan = generalisation_plan(replace(made.grouping, labels=labels), ("a", "b", "s"), (), KEY)
    published = engine.recode(made.table, plan)
    assert [c.kind for c in published.columns] == ["integer", "text", "text"]
    assert Counter(r["a"] for r in fetch(engine, published)) == {"1": 2, None: 1}


def test_full_domain_groupings_stay_maps_where_rows_are_read(engine: Engine) -> None:
    made = example(engine, [("1", "b0", "flu", "10")], [0], whole=True)
    whole = replace(made.grouping, levels=(0, 0))
    assert isinstance(generalisation_plan(whole, ("a", "s", "p"), (), KEY), Plan)
    assert isinstance(generalisation_plan(whole, ("a", "s"), (), KEY), GroupPlan)
