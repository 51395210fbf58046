"""Tables from Python: their own kind comes back, with the types of the columns that were not recoded."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Reading
from maskwright.errors import InputError
from tests.engines.conftest import flat, plan

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

GROUP = flat("group", ["x", "y"])


def through(engine: Engine, source: Any, columns: list[str], level: int = 1) -> Any:
    table = engine.open(source, Reading())
    return engine.hand_over(engine.recode(table, plan(["group", *columns], {"group": (GROUP, level)})))


def test_pandas(engine: Engine) -> None:
    frame = pd.DataFrame(
        {
            "group": ["x", "y", "x"],
            "i64": [1, 2, 3],
            "i8": pd.array([1, 2, 3], dtype="int8"),
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "f": [1.5, float("nan"), 2.0],
            "f32": pd.array([1.5, 2.5, 3.5], dtype="float32"),
            "flag": [True, False, True],
            "maybe": pd.array([True, None, False], dtype="boolean"),
            "ns": pd.to_datetime(["2024-01-31", None, "2024-02-01"]).astype("datetime64[ns]"),
            "s": pd.to_datetime(["2024-01-31 12:00", "2024-01-31 13:00", "2024-02-01 14:00"]).astype(
                "datetime64[s]"
            ),
            "tz": pd.to_datetime(["2024-01-31 12:00"] * 3).tz_localize("Europe/Berlin"),
            "text": ["p", None, "q"],
            "objects": pd.Series(["p", None, "q"], dtype=object),
            "cat": pd.Categorical(["p", "q", "p"]),
            "numbers": pd.Categorical([1, 2, 1]),
            "dates": [datetime.date(2024, 1, 31)] * 3,
            "delta": pd.to_timedelta(["1 day", "2 days", "3 days"]),
        },
        index=["secret", "secret", "other"],
    )
    frame.attrs["note"] = "secret"
    columns = [c for c in frame.columns if c != "group"]
    out = through(engine, frame, columns)
    assert isinstance(out, pd.DataFrame)
    assert isinstance(out.index, pd.RangeIndex)
    assert (out.index.start, out.index.stop, out.attrs) == (0, 3, {})
    assert set(out["group"]) == {"*"}
    same = [c for c in columns if c not in ("cat", "numbers")]
    assert out[same].dtypes.to_dict() == frame[same].dtypes.to_dict()
    assert out["numbers"].dtype == "int64"
    order = frame.set_index("i64").loc[out["i64"]]
    for name in ("i8", "nullable", "f", "f32", "flag", "maybe", "ns", "s", "tz", "delta"):
        pd.testing.assert_series_equal(out[name], order[name].reset_index(drop=True))
    for name in ("text", "objects", "cat", "numbers"):
        theirs = [None if pd.isna(v) else v for v in order[name].tolist()]
        assert [None if pd.isna(v) else v for v in out[name].tolist()] == theirs
    assert out["dates"].tolist() == [datetime.date(2024, 1, 31)] * 3


def test_pandas_index_is_not_data(engine: Engine) -> None:
    frame = pd.DataFrame({"group": ["x", "y", "x", "y"], "n": [1, 2, 3, 4]}).sample(frac=1, random_state=3)
    doubled = pd.concat([frame, frame])
    doubled.index.name = "group"
    table = engine.open(doubled, Reading())
    assert [c.name for c in table.columns] == ["group", "n"]
    assert engine.domain(table, "group").counts == (4, 4)
    assert sorted(through(engine, doubled, ["n"])["n"]) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert doubled.index.name == "group"


def test_pandas_mixed_objects(engine: Engine) -> None:
    frame = pd.DataFrame(
        {"v": pd.Series([1, "a", 2.0, None, True, float("nan"), Decimal("1.5")], dtype=object)}
    )
    found = engine.domain(engine.open(frame, Reading()), "v")
    assert set(found.values) == {"1", "a", "2", "true", "1.5"}
    assert found.missing == 2
    for value in ([1], {"a": 1}, b"x"):
        with pytest.raises(InputError, match="column 'v' holds objects of type"):
            engine.open(pd.DataFrame({"v": pd.Series(["a", value], dtype=object)}), Reading())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([1, 2], "the name of column 1 is 1, not text"),
        (["a", "a"], "'a' occurs twice"),
        (["Age", "age"], "more than case"),
        (["a", " "], "column 2 has no name"),
        (pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]), "several levels"),
    ],
)
def test_pandas_refused(engine: Engine, columns: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        engine.open(pd.DataFrame([[1, 2], [3, 4]], columns=columns), Reading())


def test_frames_without_rows_or_of_strange_types(engine: Engine) -> None:
    for empty in (
        pd.DataFrame({"a": []}),
        pl.DataFrame({"a": []}),
        pa.table({"a": pa.array([], pa.string())}),
    ):
        with pytest.raises(InputError, match="no rows"):
            engine.open(empty, Reading())
    with pytest.raises(InputError, match="cannot be read"):
        engine.open(pd.DataFrame({"a": pd.period_range("2024-01", periods=2, freq="M")}), Reading())
    with pytest.raises(InputError, match=r"no columns|cannot be read|no rows"):
        engine.open(pd.DataFrame(index=[1, 2]), Reading())


@pytest.mark.parametrize("lazy", [False, True])
def test_polars(engine: Engine, lazy: bool) -> None:
    frame = pl.DataFrame(
        {
            "group": ["x", "y"],
            "i": pl.Series([1, 2], dtype=pl.Int16),
            "f": [1.5, float("nan")],
            "day": [datetime.date(2024, 1, 31)] * 2,
            "ms": pl.Series([datetime.datetime(2024, 1, 31)] * 2, dtype=pl.Datetime("ms")),
            "tz": pl.Series([datetime.datetime(2024, 1, 31)] * 2, dtype=pl.Datetime("us", "Europe/Berlin")),
            "cat": pl.Series(["p", "q"], dtype=pl.Categorical),
            "text": [None, " q "],
        }
    )
    out = through(engine, frame.lazy() if lazy else frame, frame.columns[1:])
    assert isinstance(out, pl.LazyFrame if lazy else pl.DataFrame)
    out = out.lazy().collect().sort("i")
    assert out.schema == {**frame.schema, "cat": pl.String}
    assert out["text"].to_list() == [None, "q"]
    assert out["f"].to_list() == [1.5, None]
    same = ["i", "day", "ms", "tz"]
    assert out.select(same).equals(frame.select(same))


@pytest.mark.parametrize("kind", ["table", "batch", "reader"])
def test_pyarrow(engine: Engine, kind: str) -> None:
    table = pa.table(
        {
            "group": ["x", "y"],
            "i": pa.array([1, 2], pa.int16()),
            "large": pa.array(["p", "q"], pa.large_string()),
            "day": pa.array([datetime.date(2024, 1, 31)] * 2),
            "words": pa.array(["p", "q"]).dictionary_encode(),
        },
        metadata={"secret": "note"},
    )
    source = {"table": table, "batch": table.to_batches()[0], "reader": table.to_reader()}[kind]
    out = through(engine, source, table.column_names[1:])
    assert isinstance(out, pa.Table)
    assert out.schema.metadata is None
    assert out.schema.types == [pa.string(), pa.int16(), pa.large_string(), pa.date32(), pa.string()]
    assert out.sort_by("i").column("words").to_pylist() == ["p", "q"]


def test_duckdb_relation_and_path_outlive_the_engine(tmp_path: Any) -> None:
    other = duckdb.connect()
    other.execute("CREATE TABLE people AS SELECT unnest(['x', 'y']) AS \"group\", unnest([1, 2]) AS n")
    path = tmp_path / "t.csv"
    path.write_text("group,n\nx,1\ny,2\n")
    for source, numbers in ((other.table("people"), [1, 2]), (path, ["1", "2"])):
        engine = open_engine()
        relation = through(engine, source, ["n"])
        engine.close()
        assert relation.columns == ["group", "n"]
        assert sorted(relation.fetchall()) == [("*", n) for n in numbers]
        assert relation.filter("n = '2'").fetchall() == [("*", numbers[1])]
    assert other.execute("SELECT count(*) FROM people").fetchall() == [(2,)]


def test_anything_with_an_arrow_stream(engine: Engine) -> None:
    class Foreign:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return pa.table({"group": ["x", "y"], "n": [1, 2]}).__arrow_c_stream__(requested_schema)

    table = engine.open(Foreign(), Reading())
    assert table.caller == "arrow"
    out = engine.hand_over(engine.recode(table, plan(["group", "n"], {"group": (GROUP, 0)})))
    assert sorted(out.fetchall()) == [("x", 1), ("y", 2)]
