"""Plans without rows: distorted values, group numbers, what stays together, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.core.classes import ValueCounts
from maskwright.core.grouping import Grouping
from maskwright.core.plan import GroupPlan, Plan
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Reading, SummarySpec
from maskwright.errors import PolicyError
from maskwright.recode import bucketize, generalise, permute
from maskwright.recode.entries import group_column
from tests.recode.groups import ATTRIBUTES, KEY, SENSITIVE, Example, Row, S, T, example, fetch, frame, rows


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    opened = open_engine()
    yield opened
    opened.close()


def generator() -> np.random.Generator:
    return np.random.default_rng(1)


@dataclass(frozen=True, eq=False)
class Distorted(Grouping):
    """A grouping whose method distorted sensitive values."""

    published: Mapping[str, ValueCounts] = field(default_factory=dict)


def distort(made: Example, values: dict[str, list[str | None]]) -> Distorted:
    """Publish `values[name][i]` instead of the value of the i-th published row."""
    groups = np.array([g for _, g in made.kept()], dtype=np.int64)
    counts = {}
    for name, column in values.items():
        domain = made.summary.sensitive[name].values
        codes = np.array([domain.index(v) + 1 if v is not None else 0 for v in column], dtype=np.int64)
        n = made.grouping.classes.n
        counts[name] = ValueCounts.collect(domain, n, groups, codes, np.ones(len(codes), dtype=np.int64))
    g = made.grouping
    return Distorted(g.summary, g.allocation, g.labels, g.classes, g.levels, g.starred, published=counts)


@settings(max_examples=40, deadline=None)
@given(rows, st.data())
def test_distorted_values_are_the_published_multiset(engine: Engine, table: list[Row], data: Any) -> None:
    groups = [0, *(data.draw(st.integers(-1, 2)) for _ in table[1:])]
    made = example(engine, table, groups, whole=data.draw(st.booleans()))
    kept = made.kept()
    attributes = data.draw(st.sampled_from([["s"], ["t"], ["s", "t"]]))
    values: dict[str, list[str | None]] = {
        name: [data.draw(st.sampled_from((None, *(S if name == "s" else T)))) for _ in kept]
        for name in attributes
    }
    grouping = distort(made, values)
    wanted = {
        name: Counter((g, v) for (_, g), v in zip(kept, column, strict=True))
        for name, column in values.items()
    }
    true = {"s": Counter((g, row[2]) for row, g in kept), "t": Counter((g, row[3]) for row, g in kept)}
    plan = generalise.plan(grouping, ("p", "a", "b", "s", "t"), (), KEY, generator())
    found = fetch(engine, engine.recode(made.table, plan))
    number = {f"a:{g}": g for g in range(grouping.classes.n)}
    for name, i in (("s", 2), ("t", 3)):
        written = Counter((number[str(r["a"])], r[name]) for r in found)
        assert written == wanted.get(name, true[name])
        unchanged = sum(r[name] == made.rows[int(r["p"] or 0)][i] for r in found)
        assert unchanged == (written & true[name]).total()  # as many true values in place as there can be
    assert Counter((r["a"], made.cell(made.rows[int(r["p"] or 0)])) for r in found) == Counter(
        (f"a:{g}", made.cell(row)) for row, g in kept
    )
    for recoding in (bucketize, permute):
        shuffled = recoding.plan(grouping, ("a", "b", "s", "t"), (), KEY, generator(), exact=False)
        tables = [engine.recode(made.table, shuffled)]
        if recoding is bucketize:
            tables = [engine.bucketize(made.table, shuffled)["sensitive"]]
        for name in ("s", "t"):
            out = Counter((r["group"], r[name]) for r in fetch(engine, tables[0]))
            assert sorted(Counter(out).values()) == sorted(wanted.get(name, true[name]).values())
            assert shuffled.blocks[("s", "t").index(name)].names == (name,)


def test_changed_rows_are_drawn(engine: Engine) -> None:
    """One of four rows loses its value: each of them equally often."""
    table: list[Row] = [(a, "b0", "HIV", None) for a in ("1", "1", "2", "3")]
    made = example(engine, table, [0] * 4)
    grouping = distort(made, {"s": ["HIV", "HIV", "HIV", "flu"]})
    changed: Counter[str | None] = Counter()
    for seed in range(80):
        plan = generalise.plan(grouping, ("p", "s"), (), f"{seed:064x}", np.random.default_rng(seed))
        changed[next(r["p"] for r in fetch(engine, engine.recode(made.table, plan)) if r["s"] == "flu")] += 1
    assert sum((k - 20) ** 2 / 20 for k in changed.values()) < 21.1  # 1 in 10,000, 3 degrees of freedom
    assert len(changed) == 4


def test_distorted_counts_must_fit(engine: Engine) -> None:
    table: list[Row] = [("1", "b0", "HIV", "10")] * 3
    made = example(engine, table, [0, 0, 1])
    short = distort(made, {"s": ["flu", "HIV", "HIV"]})
    one = ValueCounts.collect(S, 2, np.array([0, 1]), np.array([1, 1]), np.array([1, 1]))
    short = Distorted(**{**vars(short), "published": {"s": one}})
    with pytest.raises(ValueError, match="as many values as rows"):
        generalise.plan(short, ("a", "s"), (), KEY, generator())
    with pytest.raises(ValueError, match="not as many as the rows"):
        bucketize.plan(short, ("a", "s"), (), KEY, generator())


def test_a_distorted_column_cannot_stay_together(engine: Engine) -> None:
    made = example(engine, [("1", "b0", "HIV", "10")], [0])
    grouping = distort(made, {"s": ["flu"]})
    with pytest.raises(PolicyError, match="distorts the values of 's'"):
        permute.plan(grouping, ("a", "s", "t"), (), KEY, generator(), together=[["s", "t"]])


def test_refusals(engine: Engine) -> None:
    made = example(engine, [("1", "b0", "HIV", "10")], [0])
    g = made.grouping
    with pytest.raises(PolicyError, match="'a', which is not a sensitive column; sensitive are s, t"):
        permute.plan(g, ("a", "s"), (), KEY, generator(), together=[["a", "s"]])
    with pytest.raises(PolicyError, match="names 's' twice"):
        permute.plan(g, ("a", "s"), (), KEY, generator(), together=[["s"], ["t", "s"]])
    with pytest.raises(PolicyError, match="cannot be called 'A'"):
        bucketize.plan(g, ("a", "s"), (), KEY, generator(), group_column="A")
    assert group_column(["a"]) == "group"
    assert group_column(["Group", "group_", "x"]) == "group__"


def test_several_rows_per_person(engine: Engine) -> None:
    table = engine.open(frame([("1", "b0", "HIV", "10")] * 2), Reading())
    summary = engine.summarise(table, SummarySpec(ATTRIBUTES, SENSITIVE, unit="p"))
    made = example(engine, [("1", "b0", "HIV", "10")] * 2, [0, 0], whole=True)
    grouping = Grouping(**{**vars(made.grouping), "summary": summary})
    with pytest.raises(PolicyError, match="several rows per person"):
        bucketize.plan(grouping, ("a", "s"), (), KEY, generator())
    plan = generalise.plan(grouping, ("a", "b", "s", "t"), (), KEY)
    assert isinstance(plan, GroupPlan)
    assert plan.passed == ("s", "t")  # sensitive values come from the rows
    assert [r["s"] for r in fetch(engine, engine.recode(table, plan))] == ["HIV", "HIV"]


def test_an_allocation_must_take_every_row(engine: Engine) -> None:
    from dataclasses import replace

    made = example(engine, [("1", "b0", "HIV", "10")] * 3, [0, 0, 1])
    short = replace(made.grouping.allocation, rows=np.array([1, 1]))
    with pytest.raises(ValueError, match="every row"):
        generalise.plan(replace(made.grouping, allocation=short), ("a", "s"), (), KEY)


def test_exact_labels_keep_the_type(engine: Engine) -> None:
    """A column that no group had to coarsen is published as it is."""
    from dataclasses import replace

    table: list[Row] = [("1", "b0", "flu", "10"), ("1", "b1", "HIV", "10"), (None, "b0", "flu", "20")]
    made = example(engine, table, [0, 0, 1])
    of_group = np.array([1, 0], dtype=np.int32)
    labels = (replace(made.grouping.labels[0], texts=(None, "1"), of_group=of_group), made.grouping.labels[1])
    plan = generalise.plan(replace(made.grouping, labels=labels), ("a", "b", "s"), (), KEY)
    published = engine.recode(made.table, plan)
    assert [c.kind for c in published.columns] == ["integer", "text", "text"]
    assert Counter(r["a"] for r in fetch(engine, published)) == {"1": 2, None: 1}


def test_full_domain_groupings_stay_maps(engine: Engine) -> None:
    from dataclasses import replace

    made = example(engine, [("1", "b0", "flu", "10")], [0], whole=True)
    assert isinstance(generalise.plan(replace(made.grouping, levels=(0, 0)), ("a", "s"), (), KEY), Plan)
