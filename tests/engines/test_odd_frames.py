"""Frames that ended in a raw exception: each is refused in one line, or published."""

from __future__ import annotations

import datetime
import uuid
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.engines.readers.csv_files import examine
from maskwright.errors import InputError, MaskwrightError, UsageError

PASSING = {"role": "insensitive", "near_unique": "allow"}
PEOPLE = {"age": [20, 21] * 4}
DAYS = [datetime.timedelta(days=1), datetime.timedelta(milliseconds=2)] * 4


def published(frame: Any, role: Any = "identifier") -> Any:
    columns = {"age": {"role": "quasi-identifier", "hierarchy": "suppress"}, "x": role}
    return mw.anonymize(frame, {"columns": columns, "require": [{"model": "k-anonymity", "k": 2}]}).table


@pytest.mark.parametrize("role", ["identifier", "sensitive", "insensitive"])
def test_half_characters_are_named_by_their_column(role: str) -> None:
    half = pd.Series(["a\ud800", "b"] * 4, dtype=object)
    mixed = pd.Series(["a\ud800", 1] * 4, dtype=object)
    category = pd.Categorical.from_codes([0, 1] * 4, categories=pd.Index(["a\ud800", "b"], dtype=object))
    for x in (half, mixed, category):
        with pytest.raises(InputError, match="column 'x' holds a text with half a character"):
            published(pd.DataFrame(PEOPLE).assign(x=x), role)


def test_half_characters_in_a_name() -> None:
    frame = pd.DataFrame({"age": [1, 2], "x": [1, 2]})
    frame.columns = pd.Index(["age", "x\ud800"], dtype=object)
    with pytest.raises(InputError, match="the name of column 2 holds half a character"):
        mw.suggest_policy(frame)


def test_missing_beside_text_and_numbers() -> None:
    x = pd.Series(["a", 1, pd.NA, "a", 1, pd.NA, "a", 1], dtype=object)
    table = published(pd.DataFrame(PEOPLE).assign(x=x), PASSING)
    assert sorted(map(str, table["x"].dropna())) == ["1"] * 3 + ["a"] * 3


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_durations_come_back_as_durations(unit: Any) -> None:
    frame = pl.DataFrame(PEOPLE | {"x": pl.Series(DAYS, dtype=pl.Duration(unit))})
    table = published(frame, PASSING)
    assert table.schema["x"] == pl.Duration(unit)
    assert sorted(table["x"].to_list()) == sorted(DAYS)


def test_kinds_that_nothing_is_cast_to_come_back_as_their_values() -> None:
    storage = pa.array([uuid.UUID(int=i % 2).bytes for i in range(8)], pa.binary(16))
    found = published(pa.table(PEOPLE | {"x": pa.ExtensionArray.from_storage(pa.uuid(), storage)}), PASSING)
    assert {str(v) for v in found["x"].to_pylist()} == {str(uuid.UUID(int=0)), str(uuid.UUID(int=1))}
    runs = pa.RunEndEncodedArray.from_arrays([4, 8], ["a", "b"])
    assert (
        sorted(published(pa.table(PEOPLE | {"x": runs}), PASSING)["x"].to_pylist()) == ["a"] * 4 + ["b"] * 4
    )


@pytest.mark.parametrize("name", ["a\x00b.csv", "a\ud800.csv", "x" * 5_000, "x" * 300 + ".csv"])
def test_names_that_no_file_can_have(name: str) -> None:
    policy = {"columns": {"age": "quasi-identifier"}, "require": [{"model": "k-anonymity", "k": 2}]}
    whole = mw.Recoder(mw.anonymize(pd.DataFrame(PEOPLE), policy))
    for call in (published, mw.suggest_policy, lambda n: mw.audit(n, ["age"]), whole.transform):
        with pytest.raises(MaskwrightError):
            call(name)


@pytest.mark.parametrize("role", ["identifier", "sensitive", "insensitive"])
@pytest.mark.parametrize("lazy", [False, True])
def test_objects_of_polars_are_refused(role: str, lazy: bool) -> None:
    """Polars hands over where they are in memory: addresses were published as values."""
    frame = pl.DataFrame({**PEOPLE, "x": pl.Series([object()] * 8, dtype=pl.Object)})
    with pytest.raises(InputError, match="column 'x' holds Python objects; convert them"):
        published(frame.lazy() if lazy else frame, role)


def test_unions_are_refused() -> None:
    """A file holds them as something else, so that the release was refused after all the work."""
    relation = duckdb.sql("SELECT 20 + i % 2 AS age, union_value(a := 1) AS x FROM range(8) t(i)")
    with pytest.raises(InputError, match="column 'x' has values of several types"):
        published(relation, "sensitive")


def test_what_is_no_release() -> None:
    for nothing in ({}, None, 3):
        with pytest.raises(UsageError, match="a release or its folder is needed"):
            mw.Recoder.from_release(nothing)  # type: ignore[arg-type]


def test_damaged_words_of_a_parquet_file(tmp_path: Path) -> None:
    """pyarrow cannot open it, so its dictionaries are not looked at, and that is said."""
    path = tmp_path / "t.parquet"
    pd.DataFrame({"age": ["1", "2"]}).to_parquet(path)
    data = path.read_bytes()
    at = data.index(b"ARROW:schema") + 20
    path.write_bytes(data[:at] + b"\xff\xff" + data[at + 2 :])
    try:
        assert "pyarrow cannot read it" in str(examine(path, "parquet").unread)
    except InputError as refused:
        assert "damaged" in str(refused)


def test_whole_numbers_beyond_64_bits_stay_exact() -> None:
    """They were read as floating numbers, and published as 1.18e+21."""
    many = [2**70 + i // 4 for i in range(8)]
    passing = PASSING
    made = published(pd.DataFrame(PEOPLE).assign(x=pd.Series(many, dtype=object)), passing)
    assert sorted(made["x"]) == sorted(map(str, many))
    with pytest.raises(InputError, match="a column has a type that cannot be read"):
        published(pl.DataFrame({**PEOPLE, "x": many}), passing)
