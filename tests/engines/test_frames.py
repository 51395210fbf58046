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
from tests.support import needs

pd = needs("pandas")
pl = needs("polars")
pa = needs("pyarrow")

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


class Once:
    """A stream that can be asked for only once, as that of a reader."""

    def __init__(self, table: Any) -> None:
        self.streams = [table]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.streams.pop().__arrow_c_stream__(requested_schema)


class Own(Once):
    """A library that makes its tables from Arrow."""

    @classmethod
    def from_arrow(cls, source: Any) -> Own:
        return cls(pa.table(source))


def test_a_stream_is_asked_for_once(engine: Engine) -> None:
    out = through(engine, Once(pa.table({"group": ["x", "y"], "n": [1, 2]})), ["n"], 0)
    assert sorted(out.fetchall()) == [("x", 1), ("y", 2)]


def test_a_library_that_makes_tables_from_arrow_gets_its_own_kind(engine: Engine) -> None:
    out = through(engine, Own(pa.table({"group": ["x", "y"], "n": [1, 2]})), ["n"], 0)
    assert isinstance(out, Own)
    assert out.streams[0].sort_by("n").to_pydict() == {"group": ["x", "y"], "n": [1, 2]}


def test_nanoarrow(engine: Engine) -> None:
    na = needs("nanoarrow")
    out = through(engine, na.ArrayStream(pa.table({"group": ["x", "y"], "n": [1, 2]})), ["n"], 0)
    assert isinstance(out, na.ArrayStream)
    assert sorted(pa.table(out).column("n").to_pylist()) == [1, 2]


def test_a_stream_that_breaks_off(engine: Engine) -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            raise OSError("secret value")

    with pytest.raises(InputError, match="arrow table") as caught:
        engine.open(Broken(), Reading())
    assert "secret" not in str(caught.value)


def test_a_lazy_frame_is_streamed(engine: Engine, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read part by part, categories included, and never collected as a whole."""
    for i in range(3):
        frame = pl.DataFrame(
            {"group": ["xy"[j % 2] for j in range(1000)], "n": range(1000 * i, 1000 * (i + 1))}
        )
        frame.write_parquet(tmp_path / f"part{i}.parquet")
    letters = ["a", "b", "c", "d", "e", "f", "g"]
    lazy = pl.scan_parquet(tmp_path / "*.parquet").with_columns(
        (pl.col("n") // 500)
        .replace_strict(dict(enumerate(letters)), return_dtype=pl.String)
        .cast(pl.Categorical)
        .alias("c")
    )
    parts: list[int] = []
    batches = pl.LazyFrame.collect_batches

    def counted(self: Any, **options: Any) -> Any:
        for part in batches(self, chunk_size=700, **options):
            parts.append(len(part))
            yield part

    def refused(*args: Any, **options: Any) -> Any:
        raise AssertionError("the whole frame was collected")

    monkeypatch.setattr(pl.LazyFrame, "collect_batches", counted)
    monkeypatch.setattr(pl.LazyFrame, "collect", refused)
    table = engine.open(lazy, Reading())
    monkeypatch.undo()
    assert sum(parts) == 3000
    assert len(parts) > 3
    out = engine.hand_over(engine.recode(table, plan(["group", "n", "c"], {"group": (GROUP, 0)})))
    assert isinstance(out, pl.LazyFrame)
    expected = lazy.with_columns(pl.col("c").cast(pl.String)).collect().sort("n")
    assert out.collect().sort("n").equals(expected)


def test_lazy_frames_that_cannot_be_read(engine: Engine) -> None:
    lazy = pl.LazyFrame({"group": ["x", "y"], "n": ["1", "secret"]})
    with pytest.raises(InputError, match="the query of the lazy frame fails") as caught:
        engine.open(lazy.with_columns(pl.col("n").cast(pl.Int64)), Reading())
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="the query of the lazy frame fails"):
        engine.open(lazy.select("none"), Reading())
    with pytest.raises(InputError, match="no rows"):
        engine.open(lazy.filter(pl.col("n") == "3"), Reading())
