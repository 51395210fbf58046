"""The same data, policy and seed give the same release on Spark as on DuckDB."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pytest

import maskwright as mw
from maskwright.domain.release import Release
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.prepare import Preparation
from maskwright.runtime.time_budget import TimeBudget
from maskwright.verification.verify import verify_folder
from maskwright.worlds.sampling.world_sampler import WorldBudget
from tests.amounts import cases
from tests.prepare.messy import PREPARE, messy_table
from tests.spark import MARKS
from tests.spark.people import POLICIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attacks stop after so many looks at the clock: what they find must not depend on the load of the machine."""

    def counted(budget: WorldBudget, times: int = 1) -> TimeBudget:
        return TimeBudget(times * budget.seconds, (look / 500 for look in itertools.count()).__next__)

    monkeypatch.setattr(WorldBudget, "time", counted)


def rows(file: Path) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as database:
        return Counter(database.execute("SELECT * FROM read_parquet(?)", [str(file)]).fetchall())


def schema(file: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect() as database:
        found = database.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(file)]).fetchall()
        return [column[:2] for column in found]


def tables(folder: Path) -> dict[str, Path]:
    return {p.name: p for p in (folder / "public").glob("*.parquet")}


def both(policy: dict[str, Any], source: Any, folder: Path) -> tuple[Release, Release]:
    seed = len(str(policy))  # another one for every policy
    duck = mw.anonymize(source, policy, folder / "duckdb", seed=seed)
    return duck, mw.anonymize(source, policy, folder / "spark", engine="spark", seed=seed)


def assert_same_decisions(one: Release, two: Release) -> None:
    """What was counted, how it was grouped, what was measured."""
    for mine, theirs in zip(one.parts, two.parts, strict=True):
        a, b = mine.grouping, theirs.grouping
        assert np.array_equal(a.summary.codes, b.summary.codes)
        assert np.array_equal(a.summary.rows, b.summary.rows)
        assert [h.values for h in a.summary.attributes] == [h.values for h in b.summary.attributes]
        assert [label.texts for label in a.labels] == [label.texts for label in b.labels]
        assert all(np.array_equal(x.of_group, y.of_group) for x, y in zip(a.labels, b.labels, strict=True))
        assert np.array_equal(a.classes.rows, b.classes.rows)
        assert a.suppressed_rows == b.suppressed_rows
    assert [v.as_dict() for v in one.verdicts] == [v.as_dict() for v in two.verdicts]
    assert [b.as_dict() for b in one.beliefs] == [b.as_dict() for b in two.beliefs]
    assert one.metrics == two.metrics


DECIDED = [
    name for name in POLICIES if not name.startswith("permute")
]  # where nothing is drawn by the engine


@pytest.mark.parametrize("name", cases(DECIDED, brief=["full-domain", "mondrian-passed", "bucketize-passed"]))
def test_the_release_is_the_same(name: str, spark: SparkSession, source: Path, tmp_path: Path) -> None:
    assert_same_decisions(*both(POLICIES[name], source, tmp_path))
    mine, theirs = tables(tmp_path / "duckdb"), tables(tmp_path / "spark")
    assert mine.keys() == theirs.keys() and mine
    for file in mine:
        assert schema(mine[file]) == schema(theirs[file])
        if name != "bucketize-passed" or file == "sensitive.parquet":
            assert rows(mine[file]) == rows(theirs[file])
        else:
            assert_same_but_for_what_passes(mine[file], theirs[file])
    assert verify_folder(tmp_path / "spark").ok  # with DuckDB


def assert_same_but_for_what_passes(mine: Path, theirs: Path) -> None:
    """Which of several rows with the same quasi-identifiers goes to which group is drawn, by engines differently."""
    passed = {name for name, _ in schema(mine)} & {"ward", "cost", "seen", "born"}
    assert passed
    every = f"SELECT * EXCLUDE (\"group\") FROM read_parquet('{mine}')"  # noqa: S608
    grouped = f"SELECT * EXCLUDE ({', '.join(passed)}) FROM read_parquet('{mine}')"  # noqa: S608
    with duckdb.connect() as database:
        for query in (every, grouped):
            found = [database.execute(query.replace(str(mine), str(f))).fetchall() for f in (mine, theirs)]
            assert Counter(found[0]) == Counter(found[1])


@pytest.mark.parametrize("name", cases(["permute", "permute-passed"], brief=["permute-passed"]))
def test_permuted_releases_have_the_same_groups(
    name: str, spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """Who gets which value of the group is drawn by each engine for itself; all else is the same."""
    assert_same_decisions(*both(POLICIES[name], source, tmp_path))
    mine, theirs = (
        folder / "public" / "data.parquet" for folder in (tmp_path / "duckdb", tmp_path / "spark")
    )
    assert schema(mine) == schema(theirs)
    known = [c for c, _ in schema(mine) if c not in ("group", "disease", "ward")]
    for columns in (["disease"], known):  # the values of each group, and the quasi-identifiers of each group
        query = f'SELECT "group", {", ".join(columns)} FROM read_parquet(?)'  # noqa: S608 - columns of ours
        with duckdb.connect() as database:
            found = [Counter(database.execute(query, [str(f)]).fetchall()) for f in (mine, theirs)]
        assert found[0] == found[1] and len(found[0]) > 10
    assert verify_folder(tmp_path / "spark").ok


def test_messy_columns_are_prepared_alike(spark: SparkSession, tmp_path: Path) -> None:
    made = messy_table(120)
    path = made.write(tmp_path / "messy.csv")
    steps = tuple((name, Preparation.model_validate(step)) for name, step in PREPARE.items())
    found = []
    for name in ("duckdb", "spark"):
        engine = open_engine(name)
        try:
            table = engine.open(path, Reading(prepare=steps))
            rows = sorted(engine.sample(table, 1000), key=str)
            found.append((rows, table.repairs, engine.domain(table, "weight")))
        finally:
            engine.close()
    assert found[0] == found[1]
