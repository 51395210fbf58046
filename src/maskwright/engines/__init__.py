"""Engines: the only place that touches rows. Each is imported when it is opened, not before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from maskwright.engines.base import Engine
from maskwright.errors import UsageError

Factory = Callable[[str | None, Path | None, int | None, str | None], Engine]


def _duckdb(memory: str | None, temp: Path | None, threads: int | None, master: str | None) -> Engine:
    from maskwright.engines.duckdb.engine import DuckDBEngine

    if master is not None:
        raise UsageError("a master is for Spark; write engine: spark, too (--engine spark --master …)")
    return DuckDBEngine(memory, temp, threads)


def _spark(memory: str | None, temp: Path | None, threads: int | None, master: str | None) -> Engine:
    from maskwright.engines.spark.spark_engine import SparkEngine

    return SparkEngine(memory, master)


ENGINES: dict[str, Factory] = {"duckdb": _duckdb, "spark": _spark}


def engine_for(source: Any) -> str:
    """The engine of a source when nobody asked for one: where the data is."""
    return "spark" if is_spark_frame(source) else "duckdb"


def is_spark_frame(source: Any) -> bool:
    """Is this a data frame of PySpark? Answered without importing it."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.sql") and any(c.__name__ == "DataFrame" for c in kind.__mro__)


def open_engine(
    name: str = "duckdb",
    memory: str | None = None,
    temp: Path | None = None,
    threads: int | None = None,
    master: str | None = None,
) -> Engine:
    """Start an engine.

    Args:
        name: one of `ENGINES`.
        memory: the most it may use, as "4GB" or "500MB"; by default 80 % of the machine. Spark: that of the driver.
        temp: a private folder for what does not fit; by default a new one that `close` removes.
        threads: how many to use; by default one per core.
        master: of a Spark cluster, as "spark://host:7077", "yarn" or "local[4]".
    """
    if name not in ENGINES:
        from maskwright.domain.settings import did_you_mean

        raise UsageError(f"there is no engine {name!r}; {did_you_mean(name, ENGINES)}")
    return ENGINES[name](memory, temp, threads, master)
