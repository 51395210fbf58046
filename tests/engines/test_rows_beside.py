"""Rows that are matched by position, texts that are written as members, and tables compared by sums of hashes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from maskwright.engines.base import Engine, Reading, Recount
from maskwright.engines.sql import clauses
from maskwright.engines.sql.passing import MEMBERS, member, passed, passed_texts
from maskwright.errors import InputError, UsageError
from tests.engines.conftest import flat, map_to, plan

Write = Callable[..., Path]
TEXTS = ("a", "b", "'", "10", None)
rows_of = st.lists(st.tuples(st.integers(-2, 3), st.sampled_from(TEXTS)), min_size=1, max_size=8)


def table_of(engine: Engine, rows: list[tuple[int, str | None]]) -> Any:
    import polars as pl

    frame = pl.DataFrame(rows, schema={"g": pl.Int64, "v": pl.String}, orient="row")
    return engine.open(frame, Reading())


def recount_of(rows: list[tuple[int, str | None]], numbers: bool) -> list[Recount]:
    """The rows as a plan has them, one entry for each, in two pieces; the group as numbers or as texts."""
    least = min(g for g, _ in rows)
    known = np.arange(least, least + 6)
    codes = np.array([[g - least for g, _ in rows], [TEXTS.index(v) for _, v in rows]], dtype=np.int32)
    ones = np.ones(len(rows), dtype=np.int64)
    texts = (known if numbers else tuple(map(str, known.tolist())), TEXTS)
    half = len(rows) // 2
    return [
        Recount(texts, codes[:, part], ones[part], ones[part]) for part in (slice(half), slice(half, None))
    ]


@given(rows_of, st.randoms(), st.booleans())
def test_a_table_holds_its_rows_in_any_order(engine: Engine, rows: Any, random: Any, numbers: bool) -> None:
    other = list(rows)
    random.shuffle(other)
    assert engine.holds(table_of(engine, rows), ("g", "v"), recount_of(other, numbers))


@given(rows_of, rows_of, st.booleans())
def test_a_table_holds_no_other_rows(engine: Engine, rows: Any, others: Any, numbers: bool) -> None:
    same = sorted(map(repr, rows)) == sorted(map(repr, others))
    assert engine.holds(table_of(engine, rows), ("g", "v"), recount_of(others, numbers)) == same


def test_entries_count_as_often_as_they_have_rows(engine: Engine) -> None:
    table = table_of(engine, [(1, "a"), (1, "a"), (2, None)])
    codes, rows = np.array([[0, 1], [0, 4]], dtype=np.int32), np.array([2, 1])
    assert engine.holds(table, ("g", "v"), [Recount((np.arange(1, 3), TEXTS), codes, rows, rows)])
    assert not engine.holds(
        table, ("g", "v"), [Recount((np.arange(1, 3), TEXTS), codes, np.array([1, 2]), rows)]
    )


def test_rows_that_are_not_those_that_were_counted_are_refused(engine: Engine) -> None:
    """Positions are checked row by row: a row too many, one too few, and rows that begin elsewhere."""
    db: Any = engine._db  # type: ignore[attr-defined]
    for beside, first in ((3, 0), (5, 0), (4, 1)):
        source, stored = db.new_name("four"), db.new_name("places")
        db.fill(source, iter([{"r": np.arange(first, first + 4)}]))
        db.fill(stored, iter([{"place": np.arange(beside, dtype=np.int32)}]))
        row = clauses.column("r", "t")
        query = clauses.side_by_side([row], clauses.relation(source, "t"), row, clauses.relation(stored, "x"))
        with pytest.raises(InputError):
            db.rows(query, {})


@pytest.mark.parametrize("star", [False, True])
def test_only_published_texts_become_members(engine: Engine, tmp_path: Path, star: bool) -> None:
    """A text that only suppressed rows have must not be in the dictionary of the file."""
    import polars as pl

    town = flat("town", [f"town-{i}" for i in range(5)])
    chosen = plan(("town", "p"), {"town": (town, 0)}, suppressed=[[5]], star=star)
    chosen = replace(chosen, maps=(replace(map_to(town, 0), used=np.arange(1, 5, dtype=np.int32)),))
    frame = pl.DataFrame({"town": [f"town-{i % 5}" for i in range(200)], "p": range(200)})
    recoded = engine.recode(engine.open(frame, Reading()), chosen)
    engine.write(recoded, tmp_path / "out.parquet", "parquet")
    assert b"town-4" not in (tmp_path / "out.parquet").read_bytes()
    import duckdb

    [(encoding,)] = duckdb.sql(
        f"SELECT encodings FROM parquet_metadata('{tmp_path}/out.parquet') WHERE path_in_schema = 'town'"  # noqa: S608
    ).fetchall()
    assert "DICTIONARY" in encoding
    back = pl.read_parquet(tmp_path / "out.parquet")
    assert back["town"].dtype == pl.String
    assert set(back["town"]) == {f"town-{i}" for i in range(4)} | ({"*"} if star else set())
    assert back.height == (200 if star else 160)


def members(engine: Engine, table: Any, name: str) -> tuple[str, ...] | None:
    """The members of the enumeration that a column of a published table has, if it has one."""
    db: Any = engine._db  # type: ignore[attr-defined]
    [kind] = db.relation(clauses.select([table.stored(name)], table.source()), table.parameters).types
    return tuple(sorted(kind.children[0][1])) if kind.id == "enum" else None


WARDS = [" east", "west", "n.a.", "quote ' \\ \" ,", "nul \0", None, "", "east"]


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from(WARDS)), min_size=1, max_size=9), st.booleans()
)
def test_members_are_the_published_texts_of_what_passes(engine: Engine, rows: Any, star: bool) -> None:
    """Where rows are left out, what they alone have is no member; values are cleaned as everywhere."""
    import polars as pl

    frame = pl.DataFrame(rows, schema={"town": pl.String, "ward": pl.String}, orient="row")
    town = flat("town", ["x", "y", "z"])
    chosen = plan(("town", "ward"), {"town": (town, 0)}, suppressed=[[3]], star=star)
    published: Any = engine.recode(engine.open(frame, Reading(missing=("n.a.",))), chosen)
    clean = {"n.a.": None, "": None, " east": "east"}
    wanted = [clean.get(ward, ward) for place, ward in rows if star or place != "z"]
    assert sorted(map(repr, (r["ward"] for r in engine.sample(published, 99)))) == sorted(map(repr, wanted))
    assert members(engine, published, "ward") == (tuple(sorted({w for w in wanted if w is not None})) or None)


@pytest.mark.parametrize("left_out", [False, True])
def test_members_where_rows_are_in_groups(engine: Engine, left_out: bool) -> None:
    import polars as pl

    from maskwright.recode.plans import generalisation_plan, shuffled_plan
    from tests.recode.groups import ALL, KEY, Row, example, frame

    table: list[Row] = [("1", "b0", "flu", "10"), ("2", "b0", "HIV", "20"), ("3", "b1", "cold", "10")] * 4
    source = frame(table).with_columns(pl.Series("p", ["east", "west", "north"] * 4))
    made = example(engine, table, [0, -1 if left_out else 0, 1] * 4, source=source)
    buckets = shuffled_plan(made.grouping, ALL, (), KEY, np.random.default_rng(1))
    for published in (
        engine.recode(made.table, generalisation_plan(made.grouping, ALL, (), KEY)),
        engine.bucketize(made.table, buckets)["quasi-identifiers"],
    ):
        wards = ("east", "north") if left_out else ("east", "north", "west")
        assert members(engine, published, "p") == wards
        assert sorted(str(r["p"]) for r in engine.sample(published, 99)) == sorted(wards * 4)


def test_a_text_that_was_not_there_before_is_refused(engine: Engine, file: Write) -> None:
    """Never published as missing: the table is not the one that was looked at."""
    db: Any = engine._db  # type: ignore[attr-defined]
    table: Any = engine.open(file("a,b\nx,1\ny,2\n,3\n"), Reading())
    value, texts = passed_texts(db, table, ["a"])["a"]
    assert texts == ["x", "y"]
    shown = clauses.cast(member(db, "all", texts, value.copy()), "TEXT")
    assert set(db.rows(clauses.select([shown], table.source()), table.parameters)) == {
        ("x",),
        ("y",),
        (None,),
    }
    other = clauses.cast(member(db, "some", ["x"], value.copy()), "TEXT")
    with pytest.raises(InputError):
        db.rows(clauses.select([other], table.source()), table.parameters)


@pytest.mark.parametrize("n", [MEMBERS, MEMBERS + 1])
def test_columns_with_many_texts_pass_as_they_are(engine: Engine, n: int) -> None:
    import polars as pl

    frame = pl.DataFrame({"note": [f"note {i}" for i in range(n)] * 2})
    published: Any = engine.recode(engine.open(frame, Reading()), plan(["note"], {}))
    assert (members(engine, published, "note") is None) == (n > MEMBERS)
    assert {r["note"] for r in engine.sample(published, 2 * n)} == set(frame["note"])


def test_many_texts_are_no_enumeration(engine: Engine) -> None:
    db: Any = engine._db  # type: ignore[attr-defined]
    for n, kind in ((MEMBERS, "ENUM"), (MEMBERS + 1, "VARCHAR")):
        name = db.new_name("texts")
        looked = db.lookup_text(name, [f"t{i}" for i in range(n)], clauses.integer(n - 1), published=True)
        typed = exp.Anonymous(this="typeof", expressions=[looked.copy()])
        assert db.rows(exp.select(typed).select(clauses.cast(looked, "TEXT")), {})[0][0].startswith(kind)


def test_texts_are_cleaned_where_one_needs_it(engine: Engine, file: Write) -> None:
    db: Any = engine._db  # type: ignore[attr-defined]
    table: Any = engine.open(file("a,b,c\nx,x ,x\ny,y,\n"), Reading(missing=("y",)))
    values = [passed(db, table, name) for name in ("a", "b", "c")]
    assert [isinstance(value, exp.Column) for value in values] == [False, False, False]
    other: Any = engine.open(file("a,b\nx,1\ny,2\n", name="clean.csv"), Reading())
    assert all(isinstance(passed(db, other, name), exp.Column) for name in ("a", "b"))
    rows = db.rows(clauses.select(values, table.source()), table.parameters)
    assert sorted(rows, key=repr) == [("x", "x", "x"), (None, None, None)]


def test_too_many_rows_for_four_bytes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.engines.sql import expansion
    from maskwright.recode.plans import generalisation_plan
    from tests.recode.groups import ALL, KEY, example, people

    made = example(engine, people(6), [0] * 6)
    monkeypatch.setattr(expansion, "MOST", 1)
    with pytest.raises((InputError, UsageError), match="--engine spark"):
        engine.recode(made.table, generalisation_plan(made.grouping, ALL, (), KEY))


def test_what_was_stored_for_a_table_can_be_forgotten(engine: Engine, file: Write) -> None:
    db: Any = engine._db  # type: ignore[attr-defined]
    source = engine.open(file("a\n1\n2\n"), Reading())
    before = {name for (name,) in db.con.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    published = engine.recode(source, plan(["a"], {}))
    engine.forget(published)
    after = {name for (name,) in db.con.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    assert after == before
    assert engine.count(source) == 2


def test_enumerations_are_written_by_one_thread(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads of DuckDB 2.0.0 now and then write a rare member of an enumeration as an empty text."""
    db: Any = engine._db  # type: ignore[attr-defined]
    seen, relation = [], type(db).relation

    def threads() -> int:
        return int(db.con.execute("SELECT current_setting('threads')").fetchall()[0][0])

    class Spied:
        def __init__(self, *given: Any) -> None:
            self.real = relation(db, *given)
            self.types = self.real.types

        def write_parquet(self, *given: Any, **options: Any) -> None:
            seen.append(threads())
            self.real.write_parquet(*given, **options)

    monkeypatch.setattr(type(db), "relation", Spied)
    db.con.execute("SET threads = 2")
    import polars as pl

    source = engine.open(pl.DataFrame({"a": ["x", "y"], "b": [1, 2]}), Reading())
    values = flat("a", ["x", "y"])
    used = replace(map_to(values, 0), used=np.array([1, 2], dtype=np.int32))
    whole = replace(plan(["a", "b"], {"a": (values, 0)}), maps=[used])
    engine.write(engine.recode(source, whole), tmp_path / "o.parquet", "parquet")
    engine.write(engine.recode(source, plan(["b"], {})), tmp_path / "p.parquet", "parquet")
    assert seen == [1, 2]
    assert threads() == 2
