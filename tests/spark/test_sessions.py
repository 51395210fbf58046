"""Sessions: the caller's is left as it is, one that was started here ends, and neither leaves anything behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from maskwright.domain.recoding_plan import Plan
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from tests.pages import TUTORIALS, run_page
from tests.spark import MARKS
from tests.spark.cluster import SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS
ROOT = Path(__file__).parents[2]

START = """
import os, sys, threading
from pathlib import Path

import maskwright as mw
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from tests.patients import patients, write_csv

from pyspark import SparkContext
from pyspark.sql import SparkSession
from maskwright.engines.spark.spark_session import java_home

folder, errors = Path(sys.argv[1]), []
source = write_csv(folder / "p.csv", patients(40))
policy = {
    "version": 1,
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 40]}},
        "ward": {"role": "insensitive", "near_unique": "allow"},
    },
    "require": [{"model": "k-anonymity", "k": 4}],
}

def in_a_thread(work):
    def run():
        try:
            work()
        except BaseException as problem:
            errors.append(problem)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
"""

CALLERS = """
if (home := java_home()) is not None:
    os.environ["JAVA_HOME"] = str(home)
builder = SparkSession.builder.master("local[2]").appName("the caller's").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.globalTempDatabase", "else_where")
builder = builder.config("spark.sql.session.timeZone", "Asia/Tokyo")
spark = builder.config("spark.sql.warehouse.dir", (folder / "warehouse").as_uri()).getOrCreate()
spark.sparkContext.setLogLevel("FATAL")
root = spark._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
before = dict(spark.conf.getAll), str(root.getLevel())

in_a_thread(lambda: mw.anonymize(source, policy, folder / "out", engine="spark"))
assert SparkContext._active_spark_context is spark.sparkContext, "the caller's session was stopped"
assert (dict(spark.conf.getAll), str(root.getLevel())) == before, "settings of the caller were changed"
found = []
in_a_thread(lambda: found.append(mw.anonymize(source, policy, engine="spark")))
[release] = found
assert release.table.sparkSession is spark and release.table.count() == 40
assert SparkSession.getActiveSession() is spark, "another session is active now"

frame = spark.createDataFrame([tuple(row) for row in patients(40)], ["name", "age", "zip", "sex", "disease", "ward"])
table = mw.anonymize(frame, policy).table
assert table.sparkSession is spark and table.count() == 40
assert SparkSession.getActiveSession() is spark, "another session is active now"
assert (dict(spark.conf.getAll), str(root.getLevel())) == before
"""

OURS = """
one, two = open_engine("spark"), open_engine("spark")
table = one.open(source, Reading())
opened = []
in_a_thread(lambda: opened.append(two.open(source, Reading())))
assert len(list(Path(os.environ["TMPDIR"]).glob("maskwright-scratch-*"))) == 1
one.close()
assert two.count(opened[0]) == 40, "it ended while it was in use"
two.close()
assert SparkContext._active_spark_context is None, "it did not end"
assert not list(Path(os.environ["TMPDIR"]).glob("maskwright-scratch-*"))

mw.anonymize(source, policy, folder / "out", engine="spark")
assert SparkContext._active_spark_context is None, "it did not end"
assert not os.listdir("."), "it wrote to the working directory"

release = mw.anonymize(source, policy, engine="spark")
table = release.table
del release
assert table.count() == 40  # the session is that of the table now
again = mw.anonymize(source, policy, engine="spark")
assert again.table.sparkSession is table.sparkSession and table.count() == 40
"""


def run(script: str, folder: Path) -> None:
    here, temp, conf = folder / "here", folder / "temp", folder / "conf"
    for path in (here, temp, conf):
        path.mkdir()
    (conf / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in SMALL.items()))
    environment = os.environ | {
        "SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT), "TMPDIR": str(temp),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", START + script, str(folder)], capture_output=True, text=True, cwd=here,
        env=environment, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(here.iterdir()) == []
    assert list(temp.glob("maskwright-scratch-*")) == []


def test_the_session_of_the_caller_is_left_as_it_is(master: str, tmp_path: Path) -> None:
    """Also by a run in another thread, where it is not the active one; wherever it keeps its views."""
    run(CALLERS, tmp_path)


def test_a_session_of_ours_ends_with_the_last_engine_that_uses_it(master: str, tmp_path: Path) -> None:
    """It leaves nothing in the working directory, nor among temporary files; unless it was handed over, it ends."""
    run(OURS, tmp_path)


def test_what_was_stored_goes_with_the_engine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that was kept and never handed over, too; also where jobs cannot be cancelled any more."""
    stored = spark.sparkContext._jsc.getPersistentRDDs  # type: ignore[attr-defined]
    before = set(stored())
    (tmp_path / "t.csv").write_text("a,b\n" + "5,x\n" * 8, encoding="utf-8")
    engine = open_engine("spark")
    table = engine.open(tmp_path / "t.csv", Reading())
    plan = Plan(["a", "b"], [], np.empty((0, 0), dtype=np.int32), False, (), "ab", 8)
    kept = engine.keep(engine.recode(table, plan))
    assert engine.count(kept) == 8 and len(set(stored()) - before) >= 2

    def gone(runner: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(engine, "_cancel", gone)
    engine.close()
    assert set(stored()) <= before


def test_the_tutorial_about_clusters_does_what_it_says(spark: SparkSession) -> None:
    assert run_page(TUTORIALS / "on-a-cluster.md", {"spark": spark}) == 2
