"""Recoding by groups against plain Python: every row once, published multisets as allocated, nothing to join."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.grouping import Allocation, Grouping, Labels, allocated_classes
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.recoding_plan import GroupPlan
from maskwright.engines.base import Engine, Reading, SummarySpec
from maskwright.errors import InputError
from maskwright.recode.plans import generalisation_plan, shuffled_plan
from tests.recode.groups import ALL, KEY, PLAIN, Example, Row, example, fetch, frame, numbers, people, rows


@st.composite
def grouped(draw: st.DrawFn) -> tuple[list[Row], list[int], bool, bool]:
    table = draw(rows)
    groups = draw(st.lists(st.integers(-1, 3), min_size=len(table), max_size=len(table)))
    whole = draw(st.booleans())
    if groups[0] < 0:
        groups[0] = 0  # something must be published, also where whole tuples follow their first row
    return table, groups, whole, draw(st.booleans())


def exact(example: Example, row: Row, group: int) -> tuple[str | None, ...]:
    return ("*", "*") if group == example.grouping.starred else row[:2]


def labels(example: Example, group: int) -> tuple[str | None, ...]:
    return tuple(lab.texts[lab.of_group[group]] for lab in example.grouping.labels)


# --- generalise ---------------------------------------------------------------------------------------


@given(grouped())
def test_generalised_rows_keep_their_values(engine: Engine, drawn: Any) -> None:
    table, groups, whole, star = drawn
    made = example(engine, table, groups, whole=whole, star=star)
    plan = generalisation_plan(made.grouping, ALL, (), KEY)
    found = fetch(engine, engine.recode(made.table, plan))
    assert [tuple(row) for row in found[:1]] == [ALL]
    seen = [int(row["p"] or 0) for row in found]
    assert len(set(seen)) == len(seen)
    for row in found:
        assert (row["s"], row["t"]) == made.rows[int(row["p"] or 0)][2:]
    published = Counter((r["a"], r["b"], made.cell(made.rows[int(r["p"] or 0)])) for r in found)
    planned = Counter((*labels(made, g), made.cell(row)) for row, g in made.kept())
    assert published == planned


@given(grouped())
def test_expanded_without_reading_rows(engine: Engine, drawn: Any) -> None:
    table, groups, whole, star = drawn
    made = example(engine, table, groups, whole=whole, star=star)
    plan = generalisation_plan(made.grouping, PLAIN, (), KEY)
    assert isinstance(plan, GroupPlan)
    assert plan.passed == ()
    found = Counter(tuple(row.values()) for row in fetch(engine, engine.recode(made.table, plan)))
    planned = Counter()
    for row, g in made.kept():
        a, b = labels(made, g)
        planned[row[2], a, row[3], b] += 1
    assert found == planned


def test_rows_with_missing_values_can_be_dropped(engine: Engine) -> None:
    import polars as pl

    table: list[Row] = [("1", "b0", "flu", "10"), ("1", "b0", None, "10"), ("2", None, "flu", "10")]
    whole = frame(table)
    opened = engine.open(whole, Reading())
    complete = engine.open(whole.filter(pl.col("s").is_not_null() & pl.col("b").is_not_null()), Reading())
    for columns in (ALL, PLAIN):
        made = example(engine, table[:1], [0], whole=True, table=complete)
        plan = generalisation_plan(made.grouping, columns, ("a", "b", "s", "t"), KEY)
        assert [row["s"] for row in fetch(engine, engine.recode(opened, plan))] == ["flu"]


# --- permute and bucketize ----------------------------------------------------------------------------


@given(grouped(), st.booleans(), st.booleans(), st.booleans())
def test_permuted_values_stay_in_their_group(
    engine: Engine, drawn: Any, passes: bool, values: bool, together: bool
) -> None:
    table, groups, whole, star = drawn
    made = example(engine, table, groups, whole=whole, star=star)
    plan = shuffled_plan(
        made.grouping, ALL if passes else PLAIN, (), KEY, np.random.default_rng(len(table)),
        exact=values, together=[["t", "s"]] if together else (),
    )  # fmt: skip
    found = fetch(engine, engine.recode(made.table, plan))
    group = numbers(made, plan)
    sides: tuple[Any, Any] = (Counter(), Counter())
    for row, g in made.kept():
        sides[0][g, *(exact(made, row, g) if values else labels(made, g))] += 1
        sides[1][g, *(row[2:] if together else ())] += 1
    assert Counter((group[int(r["group"] or 0)], r["a"], r["b"]) for r in found) == sides[0]
    written = [(group[int(r["group"] or 0)], r["s"], r["t"]) for r in found]
    if together:
        assert Counter(written) == sides[1]
    for i in (1, 2):
        kept = Counter((g, row[1 + i]) for row, g in made.kept())
        assert Counter((w[0], w[i]) for w in written) == kept
    if passes:
        check_passed(made, found, group)


def check_passed(made: Example, found: list[dict[str, str | None]], group: dict[int, int]) -> None:
    """What passes through stays with its quasi-identifiers, and each row goes where rows of its cell went."""
    sources = [int(row["p"] or 0) for row in found]
    assert len(set(sources)) == len(sources)
    went = Counter(
        (made.cell(made.rows[i]), group[int(r["group"] or 0)]) for i, r in zip(sources, found, strict=True)
    )
    assert went == Counter((made.cell(row), g) for row, g in made.kept())
    for i, row in zip(sources, found, strict=True):
        if (row["a"], row["b"]) not in {("*", "*"), *(labels(made, g) for g in group.values())}:
            assert (row["a"], row["b"]) == made.rows[i][:2]


@given(grouped(), st.booleans(), st.booleans(), st.booleans())
def test_the_two_tables_hold_the_allocated_multisets(
    engine: Engine, drawn: Any, passes: bool, values: bool, together: bool
) -> None:
    table, groups, whole, star = drawn
    made = example(engine, table, groups, whole=whole, star=star)
    plan = shuffled_plan(
        made.grouping, ALL if passes else PLAIN, (), KEY, np.random.default_rng(len(table)),
        exact=values, together=[["s", "t"]] if together else (),
    )  # fmt: skip
    tables = engine.bucketize(made.table, plan)
    assert list(tables) == ["quasi-identifiers", "sensitive"]
    quasi, sensitive = (fetch(engine, t) for t in tables.values())
    assert set(quasi[0]) == {"group", "a", "b", *(["p"] if passes else [])}
    assert set(sensitive[0]) == {"group", "s", "t"}
    group = numbers(made, plan)
    shown = Counter((g, *(exact(made, row, g) if values else labels(made, g))) for row, g in made.kept())
    assert Counter((group[int(r["group"] or 0)], r["a"], r["b"]) for r in quasi) == shown
    written = [(group[int(r["group"] or 0)], r["s"], r["t"]) for r in sensitive]
    if together:
        assert Counter(written) == Counter((g, *row[2:]) for row, g in made.kept())
    for i in (1, 2):
        assert Counter((w[0], w[i]) for w in written) == Counter((g, row[1 + i]) for row, g in made.kept())
    if passes:
        check_passed(made, quasi, group)


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("passes", [True, False])
def test_types_and_kinds_of_tables(engine: Engine, tmp_path: Path, kind: str, passes: bool) -> None:
    table: list[Row] = [("1", "b0", "flu", "10"), ("2", "b1", "HIV", "20"), ("1", "b1", None, "20")] * 4
    source: Any = frame(table)
    if kind in ("csv", "parquet"):
        path = tmp_path / f"in.{kind}"
        source.write_csv(path) if kind == "csv" else source.write_parquet(path)
        source = path
    elif kind == "pandas":
        source = source.to_pandas()
    elif kind == "pyarrow":
        source = source.to_arrow()
    made = example(engine, table, [i % 2 for i in range(12)], source=source)
    plan = shuffled_plan(made.grouping, ALL if passes else PLAIN, (), KEY, np.random.default_rng(1))
    one, two = engine.bucketize(made.table, plan).values()
    whole = "text" if kind == "csv" else "integer"
    kinds = {c.name: c.kind for c in (*one.columns, *two.columns)}
    assert kinds == {"group": "integer", "a": whole, "b": "text", "s": "text", "t": whole} | (
        {"p": whole} if passes else {}
    )
    mixed = engine.recode(made.table, shuffled_plan(made.grouping, PLAIN, (), KEY, np.random.default_rng(1)))
    for number, written in enumerate((one, two, mixed)):
        before = Counter(tuple(r.values()) for r in fetch(engine, written))
        for form in ("csv", "parquet"):
            out = tmp_path / f"out{number}.{form}"
            engine.write(written, out, form)
            back = engine.open(out, Reading())
            assert Counter(tuple(r.values()) for r in fetch(engine, back)) == before
        handed = engine.hand_over(written)
        if kind == "polars":
            import polars as pl

            assert handed.schema["group"] == pl.Int32
            assert all(handed.schema[c] == source.schema[c] for c in handed.columns if c != "group")
            assert handed.height == 12
        elif kind == "pyarrow":
            assert all(
                handed.schema.field(c).type == source.schema.field(c).type for c in handed.schema.names[1:]
            )
        elif kind == "pandas":
            assert all(handed[c].dtype == source[c].dtype for c in handed.columns if c != "group")


def test_the_buckets_can_be_recounted(engine: Engine) -> None:
    made = example(engine, people(30), [i % 4 - 1 for i in range(30)])
    plan = shuffled_plan(made.grouping, ALL, (), KEY, np.random.default_rng(5), group_column="bucket")
    quasi, sensitive = engine.bucketize(made.table, plan).values()
    one, two = engine.recount(quasi, ["bucket"]), engine.recount(sensitive, ["bucket"], ["s", "t"])
    assert one.labels == two.labels
    assert one.rows.tolist() == two.rows.tolist() == [int(plan.sizes[int(g or 0)]) for (g,) in one.labels]
    group, counts = numbers(made, plan), defaultdict[tuple[int, str], int](int)
    for number, value, rows_ in two.entries("s"):
        counts[group[int(two.labels[number][0] or 0)], value or ""] += rows_
    assert counts == Counter((g, row[2]) for row, g in made.kept())


def test_values_come_back_in_their_type(engine: Engine, tmp_path: Path) -> None:
    """Every type that a column can have, expanded without reading rows and with them."""
    import datetime as dt

    import polars as pl

    a = {
        "u8": pl.Series([1, 200, None], dtype=pl.UInt8), "u64": pl.Series([2**63, 1, 2], dtype=pl.UInt64),
        "f32": pl.Series([0.1, 2.0, float("nan")], dtype=pl.Float32), "f64": pl.Series([0.1, 1e300, -0.0]),
        "flag": pl.Series([True, None, False]), "day": pl.Series([dt.date(2024, 2, d) for d in (1, 2, 3)]),
        "at": pl.Series([dt.datetime(2024, 1, 1, 12, 30, d, 250) for d in (1, 2, 3)]),
        "money": pl.Series(["1.50", "2.00", "-0.01"]).cast(pl.Decimal(10, 2)),
    }  # fmt: skip
    given_ = pl.DataFrame({**a, "p": [0, 1, 2]})
    table = engine.open(given_, Reading())
    attributes = tuple(Hierarchy.of(n, engine.domain(table, n).values, []) for n in a)
    summary = engine.summarise(table, SummarySpec(attributes, ()))
    allocation = Allocation(np.arange(3), np.zeros(3, dtype=np.int64), summary.rows)
    labels = tuple(Labels(n, ("*",), np.ones(1, np.int64), np.zeros(1, np.int32)) for n in a)
    grouping = Grouping(summary, allocation, labels, allocated_classes(summary, allocation, 1))
    for columns in (tuple(a), (*a, "p")):
        plan = shuffled_plan(grouping, columns, (), KEY, np.random.default_rng(1))
        handed = engine.hand_over(engine.recode(table, plan)).drop("group").sort("day")
        expected = given_.select(columns).with_columns(pl.col("f32", "f64").fill_nan(None)).sort("day")
        assert handed.schema == expected.schema
        assert handed.rows() == expected.rows()


def test_many_columns_need_several_words(engine: Engine) -> None:
    import polars as pl

    names = [f"q{i}" for i in range(12)]
    values = [f"v{i}" for i in range(200)]
    given_ = pl.DataFrame(
        {**{n: [values[i], values[i], values[199 - i]] for i, n in enumerate(names)}, "p": [0, 1, 2]}
    )
    table = engine.open(given_, Reading())
    summary = engine.summarise(table, SummarySpec(tuple(Hierarchy.of(n, values, []) for n in names)))
    allocation = Allocation(np.arange(2), np.array([0, -1]), summary.rows)
    labels = tuple(Labels(n, ("x",), np.ones(1, np.int64), np.zeros(1, np.int32)) for n in names)
    grouping = Grouping(summary, allocation, labels, allocated_classes(summary, allocation, 1))
    for columns in (names, [*names, "p"]):
        plan = shuffled_plan(grouping, columns, (), KEY, np.random.default_rng(1))
        found = fetch(engine, engine.recode(table, plan))
        assert len(found) == int(summary.rows[0])
        published = {tuple(r[n] for n in names) for r in found}
        assert published <= {tuple(given_.select(names).row(i)) for i in range(3)}
        assert len(published) == 1


def test_a_table_that_changed_is_refused(engine: Engine) -> None:
    made = example(engine, people(12), [i % 2 for i in range(12)], whole=False)
    less = engine.open(frame(people(11)), Reading())
    plan = shuffled_plan(made.grouping, ALL, (), KEY, np.random.default_rng(1))
    with pytest.raises(InputError, match="changed while it was read"):
        engine.recode(less, plan)
