"""Recoding and writing: the published rows, their order, and what the container holds besides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.engines.base import Engine, Reading
from maskwright.errors import DestinationError
from tests.engines.conftest import flat, pairs, plan
from tests.support import needs

Write = Callable[..., Path]
A, B = ("a0", "a1", "a2", "a3"), ("b0", "b1", "b2")
HA, HB = pairs("a", A), pairs("b", B)


def published(engine: Engine, table: Any, made: Any) -> list[tuple[str | None, ...]]:
    return [tuple(row.values()) for row in engine.sample(engine.recode(table, made), 10**6)]


def label(hierarchy: Any, level: int, value: str | None) -> str | None:
    chosen = hierarchy.levels[level]
    code = hierarchy.values.index(value) + 1 if value is not None else 0
    return chosen.labels[chosen.blocks[code]]


def maybe(values: Sequence[str]) -> st.SearchStrategy[str | None]:
    return st.one_of(st.none(), st.sampled_from(values))


@given(
    st.lists(st.tuples(maybe(A), maybe(B), maybe(["x", "y"])), min_size=1, max_size=30),
    st.integers(0, 2), st.integers(0, 2),
    st.sets(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=6),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_against_plain_python(
    engine: Engine, rows: list[tuple[str | None, ...]], la: int, lb: int,
    suppressed: set[tuple[int, int]], star: bool, drop: bool,
) -> None:  # fmt: skip
    pl = needs("polars")
    schema = {"a": pl.String, "b": pl.String, "s": pl.String}
    table = engine.open(pl.DataFrame(rows, schema=schema, orient="row"), Reading())
    made = plan(
        ["s", "b", "a"], {"a": (HA, la), "b": (HB, lb)}, sorted(suppressed),
        star=star, drop_missing=("a", "b", "s") if drop else (),
    )  # fmt: skip
    expected = []
    for a, b, s in rows:
        code = (A.index(a) + 1 if a else 0, B.index(b) + 1 if b else 0)
        if drop and None in (a, b, s):
            continue
        if code in suppressed and not star:
            continue
        stars = code in suppressed
        expected.append((s, "*" if stars else label(HB, lb, b), "*" if stars else label(HA, la, a)))
    assert Counter(published(engine, table, made)) == Counter(expected)


def test_identity_columns_keep_their_type(engine: Engine, tmp_path: Path) -> None:
    pl = needs("polars")
    frame = pl.DataFrame({"age": [30, 31], "size": [1.5, float("nan")], "n": [7, 8]})
    table = engine.open(frame, Reading())
    levels = {"age": (flat("age", ["30", "31"]), 0), "size": (flat("size", ["1.5"]), 1)}
    free = engine.recode(table, plan(["age", "size", "n"], levels))
    assert [c.kind for c in free.columns] == ["integer", "text", "integer"]
    starred = engine.recode(table, plan(["age", "size", "n"], levels, [(1, 1)], star=True))
    assert [c.kind for c in starred.columns] == ["text", "text", "integer"]
    assert sorted(tuple(r.values()) for r in engine.sample(starred, 9)) == [("*", "*", "7"), ("31", "*", "8")]


def test_missing_joins_the_top_but_not_below(engine: Engine, file: Write) -> None:
    table = engine.open(file("a,b\na0,b0\n?,b0\n,b0\n"), Reading(missing=("?",)))
    below = published(engine, table, plan(["a"], {"a": (HA, 1)}))
    assert Counter(below) == Counter([("a-0",), (None,), (None,)])
    assert Counter(published(engine, table, plan(["a"], {"a": (HA, 2)}))) == Counter({("*",): 3})


def test_many_words_and_suppression(engine: Engine) -> None:
    pl = needs("polars")
    names = [f"q{i}" for i in range(12)]
    values = [f"v{i}" for i in range(200)]
    frame = pl.DataFrame({n: [values[i], values[i], values[199 - i]] for i, n in enumerate(names)})
    levels = {n: (flat(n, values), 0) for n in names}
    code = [i + 1 for i in range(12)]
    made = plan(names, levels, [code, code])
    assert published(engine, engine.open(frame, Reading()), made) == [
        tuple(values[199 - i] for i in range(12))
    ]


# --- order --------------------------------------------------------------------------------------------


def correlation(order: Sequence[int]) -> float:
    return float(np.corrcoef(np.arange(len(order)), order)[0, 1])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_order_of_rows_says_nothing(engine: Engine, tmp_path: Path, kind: str) -> None:
    pl = needs("polars")
    n = 20_000
    rng = np.random.default_rng(1)
    income = rng.permutation(n)
    frame = pl.DataFrame({"i": np.arange(n), "group": np.arange(n) // (n // 4), "income": income})
    path = tmp_path / f"in.{kind}"
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    table = engine.open(path, Reading())
    hierarchy = flat("group", ["0", "1", "2", "3"])

    def order(key: str, write: bool = True) -> list[tuple[int, ...]]:
        made = engine.recode(table, plan(["i", "group", "income"], {"group": (hierarchy, 0)}, key=key))
        if write:
            engine.write(made, tmp_path / f"out.{kind}", kind)
            made = engine.open(tmp_path / f"out.{kind}", Reading())
        return [tuple(int(v or 0) for v in row.values()) for row in engine.sample(made, n)]

    first = order("11" * 32)
    assert sorted(r[0] for r in first) == list(range(n))
    limit = 5 / np.sqrt(n)
    for column in range(3):
        assert abs(correlation([r[column] for r in first])) < limit
        values = np.array([r[column] for r in first])
        assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < limit  # neighbours are not neighbours
    assert order("11" * 32) == first == order("11" * 32, write=False)
    other = order("22" * 32)
    assert other != first
    position = {r[0]: p for p, r in enumerate(other)}
    assert abs(correlation([position[r[0]] for r in first])) < limit


# --- what is written ----------------------------------------------------------------------------------


def secret_source(file: Write) -> Path:
    lines = ["id,town,age,disease"]
    for i in range(400):
        town = "Unpublishedville" if i % 40 == 0 else f"Groundtown{i % 8}"
        lines.append(f"person{i:05},{town},{20 + i % 10},{'flu' if i % 3 else 'cold'}")
    return file("\n".join(lines) + "\n")


def secret_plan() -> Any:
    towns = [f"Groundtown{i}" for i in range(8)] + ["Unpublishedville"]
    ages = [str(a) for a in range(20, 30)]
    suppressed = [(9, a) for a in range(1, 11)]
    return plan(
        ["town", "age", "disease"],
        {"town": (pairs("town", towns), 1), "age": (flat("age", ages), 0)},
        suppressed,
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_container_holds_published_values_only(
    engine: Engine, file: Write, tmp_path: Path, kind: str
) -> None:
    published_table = engine.recode(engine.open(secret_source(file), Reading()), secret_plan())
    out = tmp_path / f"out.{kind}"
    engine.write(published_table, out, kind)
    content = out.read_bytes()
    for hidden in (
        b"Unpublished",
        b"Groundtown",
        b"person0",
        b"town-4",
        b"rowid",
        str(tmp_path).encode(),
    ):
        assert hidden not in content
    # two bytes may well be in compressed data: the names of columns are in the footer
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little") if kind == "parquet" else 0
    assert b"c0" not in content[begin:]
    back = engine.open(out, Reading())
    assert {r["town"] for r in engine.sample(back, 999)} == {f"town-{i}" for i in range(4)}
    if kind == "parquet":
        import pyarrow.parquet as pq

        footer = pq.ParquetFile(out)
        assert footer.metadata.metadata is None
        for group in range(footer.metadata.num_row_groups):
            for i in range(footer.metadata.num_columns):
                chunk = footer.metadata.row_group(group).column(i)
                assert chunk.compression == "ZSTD"
                values = set(pq.read_table(out).column(i).to_pylist())
                if chunk.is_stats_set:
                    s = chunk.statistics
                    assert {s.min, s.max} <= values
                    assert s.distinct_count in (None, 0) or s.distinct_count <= len(values)


@pytest.mark.parametrize("source", ["pandas", "polars", "pyarrow", "parquet"])
def test_unused_categories_do_not_leak(engine: Engine, tmp_path: Path, source: str) -> None:
    pd, pl, pa = (needs(m) for m in ("pandas", "polars", "pyarrow"))
    words, all_words = ["red", "blue", "red"], ["red", "blue", "Unpublished"]
    given_: Any
    if source == "pandas":
        given_ = pd.DataFrame(
            {"v": pd.Categorical(words, categories=all_words), "s": pd.Categorical(words, all_words)}
        )
    elif source == "polars":
        given_ = pl.DataFrame(
            {"v": words, "s": words}, schema={"v": pl.Enum(all_words), "s": pl.Enum(all_words)}
        )
    else:
        column = pa.DictionaryArray.from_arrays([0, 1, 0], all_words)
        given_ = pa.table({"v": column, "s": column})
    if source == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(given_, tmp_path / "in.parquet")
        given_ = tmp_path / "in.parquet"
    table = engine.open(given_, Reading())
    made = engine.recode(table, plan(["v", "s"], {"v": (flat("v", all_words), 0)}))
    assert [c.type for c in made.columns] == ["VARCHAR", "VARCHAR"]
    out = tmp_path / "out.parquet"
    engine.write(made, out, "parquet")
    assert b"Unpublished" not in out.read_bytes()
    handed = engine.hand_over(made)
    if source == "pandas":
        assert not isinstance(handed["v"].dtype, pd.CategoricalDtype)
        assert handed["v"].tolist().count("red") == 2
    elif source == "polars":
        assert handed.schema == {"v": pl.String, "s": pl.String}
    elif source == "pyarrow":
        assert handed.schema.types == [pa.string(), pa.string()]


def test_csv_is_quoted_and_reads_back(engine: Engine, file: Write, tmp_path: Path) -> None:
    values = ['say "hi"', "a,b", "two\nlines", "plain", "x;y", "ü€", "'", "\\", "#c", "cr\rx"]
    source = "v,w\n" + "".join('"' + v.replace('"', '""') + '",\n' for v in values)
    table = engine.open(file(source), Reading())
    made = engine.recode(table, plan(["v", "w"], {}))
    out = tmp_path / "out.csv"
    engine.write(made, out, "csv")
    assert out.read_bytes().startswith(b"v,w\n")
    back = engine.sample(engine.open(out, Reading()), 99)
    assert sorted(r["v"] or "" for r in back) == sorted(values)
    assert {r["w"] for r in back} == {None}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_single_column_keeps_its_missing_rows(
    engine: Engine, file: Write, tmp_path: Path, kind: str
) -> None:
    made = engine.recode(engine.open(file("v,w\nx,1\n,2\n,3\n"), Reading()), plan(["v"], {}))
    out = tmp_path / f"out.{kind}"
    engine.write(made, out, kind)
    assert engine.recount(engine.open(out, Reading()), ["v"]).rows.tolist() == [1, 2]
    if kind == "csv":
        pd = needs("pandas")
        assert len(pd.read_csv(out)) == 3


def test_numbers_are_written_as_canonical_text(engine: Engine, tmp_path: Path) -> None:
    pl = needs("polars")
    frame = pl.DataFrame({"f": [39.0, -0.0, 2.5, float("nan")]})
    made = engine.recode(engine.open(frame, Reading()), plan(["f", "f"][:1], {}))
    engine.write(made, tmp_path / "out.csv", "csv")
    assert sorted((tmp_path / "out.csv").read_text().split("\n")) == ["", '""', '"0"', '"2.5"', '"39"', '"f"']


def test_an_unwritable_place(engine: Engine, file: Write, tmp_path: Path) -> None:
    made = engine.recode(engine.open(file("v,w\nx,1\n"), Reading()), plan(["v"], {}))
    for kind in ("csv", "parquet"):
        with pytest.raises(DestinationError, match="cannot be written"):
            engine.write(made, tmp_path / "none" / "out", kind)


# --- recount ------------------------------------------------------------------------------------------


def test_recount(engine: Engine, file: Write) -> None:
    table = engine.open(file("a,b,s,who\nx,1,s1,p\nx,1,s2,p\nx,1,s1,q\n,1,,r\n*,1,s1,p\n"), Reading())
    found = engine.recount(table, ["a", "b"], ["s"], unit="who")
    assert found.labels == [("*", "1"), ("x", "1"), (None, "1")]
    assert (found.rows.tolist(), found.people.tolist()) == ([1, 3, 1], [1, 2, 1])
    assert found.entries("s") == [(0, "s1", 1), (1, "s1", 2), (1, "s2", 1), (2, None, 1)]
    plain = engine.recount(table, ["a"], ["s"])
    assert plain.people.tolist() == plain.rows.tolist() == [1, 3, 1]
    assert plain.entries("s") == [(0, "s1", 1), (1, "s1", 2), (1, "s2", 1), (2, None, 1)]
    assert engine.recount(table, [], ["s"]).rows.tolist() == [5]
