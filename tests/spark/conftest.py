"""One Spark cluster and one session for all tests here: they run in one process (see tests/conftest.py)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.amounts import LONG
from tests.spark import cluster, people
from tests.support import unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def master() -> Iterator[str]:
    """The address of a standalone cluster: one master, and one worker with room for four executors (two workers in the
    long run); a second cluster in the same run is a failure."""
    begun = Path(
        tempfile.gettempdir(),
        f"maskwright-test-spark-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}",
    )
    try:
        begun.touch(exist_ok=False)
    except FileExistsError:
        pytest.fail(
            "another process of this run has started a cluster: the tests were torn apart", pytrace=False
        )
    try:
        yield from _started()
    finally:
        begun.unlink()


def _started() -> Iterator[str]:
    try:
        import pyspark  # noqa: F401

        from maskwright.engines.spark.spark_session import java_home

        java_home()
    except Exception as problem:
        unavailable(f"no Spark cluster: {problem}")
    try:
        workers = 2 if LONG else 1
        running = cluster.cluster(
            workers=workers, cores=4 // workers, memory=f"{3200 // workers}m", options=cluster.QUICK
        )
        address = running.__enter__()
    except RuntimeError as problem:
        unavailable(f"no Spark cluster: {problem}")
    try:
        yield address
    finally:
        running.__exit__(None, None, None)


@pytest.fixture(scope="session")
def spark(master: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    from maskwright.engines.spark.spark_session import java_home

    if (home := java_home()) is not None:
        os.environ["JAVA_HOME"] = str(home)
    settings = {
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "1g",
        "spark.executor.memory": "600m", "spark.executor.cores": "1" if LONG else "2",
        "spark.cores.max": "2",  # two are left for a command
        "spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.warehouse.dir": tmp_path_factory.mktemp("warehouse").as_uri(), **cluster.SMALL,
    }  # fmt: skip
    builder = SparkSession.builder.master(master).appName("tests of maskwright")
    session = builder.config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of people as a Parquet file."""
    return people.stored(tmp_path_factory.mktemp("people"))
