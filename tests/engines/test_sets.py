"""Columns of sets as bits and back, in every kind of table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.domain.value_sets import SetColumn
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Reading
from maskwright.errors import InputError

VALUES = ["a b", "é", "x", "ÿ;", "z'"]
SETS = st.lists(st.sets(st.sampled_from(VALUES)), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def engine() -> Any:
    opened = open_engine()
    yield opened
    opened.close()


def bits_of(engine: Engine, table: Any, column: SetColumn) -> list[dict[str, str | None]]:
    return engine.sample(engine.unfold(table, [column]), 100)


@given(SETS)
def test_bits_are_those_of_the_definition_and_lose_nothing(engine: Engine, sets: list[set[str]]) -> None:
    frame = pl.DataFrame(
        {"n": range(len(sets)), "s": [sorted(s) for s in sets]}, schema_overrides={"s": pl.List(pl.String)}
    )
    table = engine.open(frame, Reading(lists=("s",)))
    column = SetColumn("s", engine.elements(table, "s", None).values)
    assert set(column.values) == set().union(*sets)
    unfolded = engine.unfold(table, [column])
    rows = sorted(engine.sample(unfolded, 100), key=lambda row: int(row["n"] or 0))
    for bit, value in zip(column.bits, column.values, strict=True):
        assert [row[bit] for row in rows] == ["true" if value in s else "false" for s in sets]
    if column.values:
        back = engine.hand_over(engine.fold(unfolded, [column])).sort("n")
        assert back["s"].to_list() == [[v for v in column.values if v in s] for s in sets]


@pytest.mark.parametrize("cell", ["cough;fever", " fever ; cough", "fever;cough;cough", "?;cough;;fever;"])
def test_texts_are_sets(engine: Engine, cell: str) -> None:
    table = engine.open(pd.DataFrame({"s": [cell, None, "", "?", "rash"]}), Reading(missing=("?",)))
    domain = engine.elements(table, "s", ";")
    assert domain.values == ("cough", "fever", "rash")
    assert domain.counts == (1, 1, 1)
    column = SetColumn("s", domain.values, ";")
    folded = engine.sample(engine.fold(engine.unfold(table, [column]), [column]), 10)
    assert sorted(str(row["s"]) for row in folded) == ["None", "None", "None", "cough;fever", "rash"]


def test_the_separator_is_no_pattern(engine: Engine) -> None:
    table = engine.open(pd.DataFrame({"s": ["a.b|c", "a|b"]}), Reading())
    assert engine.elements(table, "s", "|").values == ("a", "a.b", "b", "c")
    assert engine.elements(table, "s", ".").values == ("a", "a|b", "b|c")


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"s": [["x", "y"], None, {"y"}]}),
        pl.DataFrame({"s": [["x", "y"], None, ["y"]]}),
        pa.table({"s": pa.array([["x", "y"], None, ["y"]], pa.large_list(pa.string()))}),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_lists_come_back_in_the_kind_of_the_caller(engine: Engine, frame: Any) -> None:
    table = engine.open(frame, Reading(lists=("s",)))
    column = SetColumn("s", engine.elements(table, "s", None).values)
    back = engine.hand_over(engine.fold(engine.unfold(table, [column]), [column]))
    assert type(back) is type(frame)
    lists = back["s"].to_pylist() if isinstance(back, pa.Table) else list(back["s"])
    assert sorted(sorted(x) for x in lists) == [[], ["x", "y"], ["y"]]
    if isinstance(frame, pa.Table):
        assert back.schema == frame.schema


def test_lists_of_numbers_keep_their_type(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"s": [[30, 2], [2], []]}).write_parquet(path)
    table = engine.open(path, Reading())
    column = SetColumn("s", engine.elements(table, "s", None).values)
    assert column.values == ("2", "30")
    folded = engine.fold(engine.unfold(table, [column]), [column])
    assert folded.columns[0].type == "BIGINT[]"


def test_what_is_no_set_is_refused(engine: Engine) -> None:
    table = engine.open(pd.DataFrame({"n": [1, 2], "s": ["a", "b"]}), Reading())
    with pytest.raises(InputError, match="'n' does not hold texts"):
        engine.elements(table, "n", ";")
    with pytest.raises(InputError, match="'s' is declared multivalued: true"):
        engine.elements(table, "s", None)
    nested = engine.open(pl.DataFrame({"s": [[[1]], [[2]]]}), Reading(lists=("s",)))
    with pytest.raises(InputError, match="lists of"):
        engine.elements(nested, "s", None)
