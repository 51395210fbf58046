"""Canonical text: one rule for every source, whatever its types."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.engines.base import Engine, Reading
from maskwright.engines.sql import clauses
from tests.engines.conftest import flat, plan
from tests.support import needs

Write = Callable[..., Path]


def test_blanks_are_those_of_python() -> None:
    assert set(clauses.BLANKS) == {chr(i) for i in range(0x110000) if chr(i).isspace()}


def domain_of(
    engine: Engine, tmp_path: Path, select: str, missing: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], int]:
    path = tmp_path / "t.parquet"
    duckdb.sql(select).write_parquet(str(path))
    found = engine.domain(engine.open(path, Reading(missing=missing)), "v")
    return found.values, found.missing


@pytest.mark.parametrize(
    ("kind", "values", "expected", "missing"),
    [
        ("DOUBLE", "39 -0.0 0.0 nan NULL 2.5 1e18", "0 2.5 39 1000000000000000000", 2),
        ("DOUBLE", "1e300 39 inf -inf", "-inf 1e+300 39 inf", 0),
        ("FLOAT", "0.1 3 nan", "0.1 3", 1),
        ("DECIMAL(10,2)", "1.50 10 -0.5 0 100", "-0.5 0 1.5 10 100", 0),
        ("DECIMAL(10,0)", "10 200", "10 200", 0),
        ("BOOLEAN", "true false NULL", "false true", 1),
        ("DATE", "2024-01-31", "2024-01-31", 0),
        ("TIMESTAMP", "2024-01-31 2024-01-31T12:30:00.5", "2024-01-31_00:00:00 2024-01-31_12:30:00.5", 0),
        ("TIMESTAMP_NS", "2024-01-31T12:00:00", "2024-01-31_12:00:00", 0),
        ("TIMESTAMPTZ", "2024-01-31T12:00:00+02", "2024-01-31_10:00:00+00", 0),
        (
            "BIGINT",
            "9223372036854775807 9223372036854775806 9 10",
            "9 10 9223372036854775806 9223372036854775807",
            0,
        ),
        ("VARCHAR", "10 9 1e1 010", "9 010 10 1e1", 0),
        ("VARCHAR", "10 9 x NULL", "10 9 x", 1),
        ("UUID", "6f8b1f6e-3c1b-4a9e-9d43-0a8f7c7e1b11", "6f8b1f6e-3c1b-4a9e-9d43-0a8f7c7e1b11", 0),
    ],
)
def test_domains(engine: Engine, tmp_path: Path, kind: str, values: str, expected: str, missing: int) -> None:
    texts = [None if v == "NULL" else v for v in values.split()]
    path = tmp_path / "t.parquet"
    duckdb.execute(f"COPY (SELECT unnest($1)::{kind} AS v) TO '{path}'", [texts])
    found = engine.domain(engine.open(path, Reading()), "v")
    assert found.values == tuple(e.replace("_", " ") for e in expected.split())
    assert found.missing == missing


def test_text_is_trimmed_and_empty_text_is_missing(engine: Engine, tmp_path: Path) -> None:
    select = "SELECT unnest([' a ', E'\\ta\\n', 'a', '', '  ', NULL, '\u00a0\u3000a']) v"
    assert domain_of(engine, tmp_path, select) == (("a",), 3)


def test_tokens(engine: Engine, tmp_path: Path, file: Write) -> None:
    numbers = "SELECT unnest([1, -9, 999, 5]) v"
    assert domain_of(engine, tmp_path, numbers, ("-9", "999", "?", "NA")) == (("1", "5"), 2)
    assert domain_of(engine, tmp_path, "SELECT unnest([1.0, -9.0, 2.5]) v", ("-9",)) == (("1", "2.5"), 1)
    assert domain_of(engine, tmp_path, "SELECT DATE '1900-01-01' v", ("1900-01-01", "x")) == ((), 1)
    path = file("v\n?\n ? \nNA\nna\nx\n")
    found = engine.domain(engine.open(path, Reading(missing=("?", " NA "))), "v")
    assert (found.values, found.missing, found.counts) == (("na", "x"), 3, (1, 1))


def test_limit_keeps_the_commonest(engine: Engine, file: Write) -> None:
    table = engine.open(file("v,w\n" + "a,\nb,\nb,\nc,\nc,\nc,\n,x\n,x\n,x\n,x\n"), Reading())
    found = engine.domain(table, "v", limit=2)
    assert (found.values, found.counts, found.missing) == (("b", "c"), (2, 3), 4)
    assert engine.domain(table, "v", limit=9).values == ("a", "b", "c")
    assert engine.domain(table, "w", limit=0).missing == 6


@given(
    st.lists(st.one_of(st.none(), st.text(alphabet=" \t\n\u00a0aB?é", max_size=4)), min_size=1, max_size=12)
)
def test_text_is_trimmed_as_python_does(engine: Engine, values: list[str | None]) -> None:
    pl = needs("polars")
    table = engine.open(pl.DataFrame({"v": pl.Series(values, dtype=pl.String)}), Reading(missing=("?",)))
    texts = [(v or "").strip() for v in values]
    expected = sorted({t for t in texts if t not in ("", "?")})
    assert list(engine.domain(table, "v").values) == expected
    published = engine.recode(table, plan(["v"], {}))
    assert sorted(r["v"] or "" for r in engine.sample(published, 99)) == sorted(
        "" if t == "?" else t for t in texts
    )


@given(st.lists(st.one_of(st.floats(), st.integers(-5, 5).map(float)), min_size=1, max_size=9))
def test_numbers_keep_their_value(engine: Engine, values: list[float]) -> None:
    pl = needs("polars")
    table = engine.open(pl.DataFrame({"v": pl.Series(values, dtype=pl.Float64)}), Reading())
    found = engine.domain(table, "v")
    assert found.missing == sum(v != v for v in values)
    assert {float(t) for t in found.values} == {v for v in values if v == v}
    for text in found.values:
        number = float(text)
        if number.is_integer() and abs(number) < 9e18:
            assert Decimal(text) == int(number)
            assert "." not in text
            assert text == str(int(number))


def test_the_same_text_from_every_source(engine: Engine, tmp_path: Path, file: Write) -> None:
    pd, pl, pa = (needs(m) for m in ("pandas", "polars", "pyarrow"))
    data = {"n": [39, 40], "f": [39.0, 2.5], "b": [True, False], "d": [datetime.date(2024, 1, 31)] * 2}
    arrow = pa.table(data)
    parquet = tmp_path / "t.parquet"
    relation = duckdb.from_arrow(arrow)
    relation.write_parquet(str(parquet))
    sources = [
        arrow, pl.DataFrame(data), pd.DataFrame(data), relation, parquet,
        file("n,f,b,d\n39,39,true,2024-01-31\n40,2.5,false,2024-01-31\n"),
    ]  # fmt: skip
    tables = [engine.open(s, Reading()) for s in sources]
    samples = [engine.sample(t, 9) for t in tables]
    assert all(s == samples[-1] for s in samples)
    assert {t.caller for t in tables} == {"pyarrow", "polars", "pandas", "duckdb", "path"}


KINDS = {
    "float": st.floats(allow_nan=False),
    "decimal": st.decimals(-1000, 1000, places=3),
    "datetime": st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)),
    "zone": st.datetimes(
        datetime.datetime(1900, 1, 1),
        datetime.datetime(2200, 1, 1),
        timezones=st.just(datetime.timezone(datetime.timedelta(hours=9))),
    ),
    "date": st.dates(datetime.date(1900, 1, 1)),
    "time": st.times(),
    "timedelta": st.timedeltas(datetime.timedelta(-1000), datetime.timedelta(1000)),
    "boolean": st.booleans(),
    "integer": st.integers(-(2**63), 2**63 - 1),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_stranger_in_a_column_of_objects_changes_no_text(
    engine: Engine, kind: str, data: st.DataObject
) -> None:
    """Mixed with a text, a column is one of texts; whatever else is in it is written as before."""
    pd = needs("pandas")
    values = data.draw(st.lists(KINDS[kind], min_size=1, max_size=4))
    plain = engine.open(pd.DataFrame({"v": pd.Series(values)}), Reading())
    expected = set(engine.domain(plain, "v").values)
    for stranger in ("a stranger", None):
        mixed = pd.DataFrame({"v": pd.Series([*values, stranger], dtype=object)})
        found = engine.domain(engine.open(mixed, Reading()), "v")
        assert set(found.values) - {"a stranger"} == expected


def test_fingerprint(engine: Engine, file: Write) -> None:
    def of(text: str) -> str:
        return engine.fingerprint(engine.open(file(text), Reading()))

    first = of("a,b\n1,2\n3,4\n3,4\n")
    assert first == of("a,b\n3,4\n1,2\n3,4\n")
    others = [
        "a,b\n1,2\n3,4\n",
        "a,c\n1,2\n3,4\n3,4\n",
        "a,b\n1,4\n3,2\n3,4\n",
        "a,b\n12,\n3,4\n3,4\n",
        "a,b\n,12\n3,4\n3,4\n",
    ]
    assert len({first, *map(of, others)}) == 6


def test_uniqueness_and_counts(engine: Engine, file: Write) -> None:
    table = engine.open(file("a,b,c\n1,x,\n1 ,x,\n2,y,\n2,,\n,,\n"), Reading())
    assert engine.count(table) == 5
    assert engine.uniqueness(table, ["a", "b"]) == (4, 3, 1)
    assert engine.uniqueness(table, ["c"]) == (1, 0, 5)
    assert len(engine.sample(table, 2)) == 2


def test_a_column_that_is_not_there(engine: Engine, file: Write) -> None:
    from maskwright.errors import InputError

    table = engine.open(file("a,b\n1,2\n"), Reading())
    with pytest.raises(InputError, match="there is no column 'A'"):
        engine.domain(table, "A")


def test_labels_are_published_as_canonical_text(engine: Engine, file: Write) -> None:
    from maskwright.domain.recoding_plan import ColumnMap

    table = engine.open(file("a,b\nx,1\ny,2\n,3\n"), Reading())
    hierarchy = flat("a", ["x", "y"])
    made = plan(["a", "b"], {"a": (hierarchy, 0)})
    blurred = ColumnMap(hierarchy, (None, " big ", ""), False)
    published = engine.recode(
        table, type(made)(made.columns, [blurred], made.suppressed, False, (), made.key)
    )
    assert sorted((r["b"], r["a"]) for r in engine.sample(published, 9)) == [
        ("1", "big"),
        ("2", None),
        ("3", None),
    ]


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_nan_that_statistics_do_not_mention_is_missing(engine: Engine, tmp_path: Path, kind: str) -> None:
    """Arrow and Spark leave NaN out of a file's statistics, as the format asks; DuckDB then thinks there is none."""
    pa = needs("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"v": pa.array([1.5, float("nan"), 1.75], kind)}), path)
    table = engine.open(path, Reading())
    found = engine.domain(table, "v")
    assert (found.values, found.missing) == (("1.5", "1.75"), 1)
    recoded = engine.recode(table, plan(["v"], {"v": (flat("v", ["1.5", "1.75"]), 0)}))
    assert sorted(str(row["v"]) for row in engine.sample(recoded, 9)) == ["1.5", "1.75", "None"]
