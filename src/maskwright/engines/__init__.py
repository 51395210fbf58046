"""Engines: the only place that touches rows. Each is imported when it is opened, not before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from maskwright.engines.base import Engine
from maskwright.errors import UsageError

Factory = Callable[[str | None, Path | None, int | None], Engine]


def _duckdb(memory: str | None, temp: Path | None, threads: int | None) -> Engine:
    from maskwright.engines.duck import DuckDBEngine

    return DuckDBEngine(memory, temp, threads)


ENGINES: dict[str, Factory] = {"duckdb": _duckdb}


def open_engine(
    name: str = "duckdb", memory: str | None = None, temp: Path | None = None, threads: int | None = None
) -> Engine:
    """Start an engine.

    Args:
        name: one of `ENGINES`.
        memory: the most it may use, as "4GB" or "500MB"; by default 80 % of the machine.
        temp: a private folder for what does not fit; by default a new one that `close` removes.
        threads: how many to use; by default one per core.
    """
    if name not in ENGINES:
        from maskwright.core.settings import nearest

        raise UsageError(f"there is no engine {name!r}; {nearest(name, ENGINES)}")
    return ENGINES[name](memory, temp, threads)
