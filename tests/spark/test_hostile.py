"""Nothing of a table is ever run, on Spark neither: the names and values of tests/hostile.py."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.errors import InputError
from tests.amounts import cases
from tests.engines.test_hostile import check_names_and_values
from tests.hostile import NAMES, REFUSED, SOURCES, Rows
from tests.spark import MARKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS
KINDS = ["csv", "parquet", "frame"]  # each with another recoding


@pytest.mark.parametrize("kind", cases(KINDS, brief=["frame"]))
def test_every_name_and_value(
    kind: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def frame(names: list[str], rows: Rows, folder: Path) -> Any:
        return spark.createDataFrame(rows, names)

    monkeypatch.chdir(tmp_path)
    check_names_and_values(kind, SOURCES.get(kind, frame), "spark", tmp_path, KINDS.index(kind), len(NAMES))


@pytest.mark.parametrize("why", cases(REFUSED, brief=[next(iter(REFUSED))]))
def test_names_that_cannot_be_told_apart_are_refused(why: str, spark: SparkSession, tmp_path: Path) -> None:
    names = REFUSED[why]
    engine = open_engine("spark")
    try:
        for kind in ("csv", "parquet"):
            source = SOURCES[kind](names, [("x", "y")] * 6, tmp_path)
            with pytest.raises(InputError, match="NUL" if kind == "csv" and "NUL" in why else why):
                engine.open(source, Reading())
    finally:
        engine.close()
