"""One engine for all tests of this folder, and small helpers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.recoding_plan import ColumnMap, Plan
from maskwright.engines import open_engine
from maskwright.engines.base import Engine

KEY = "00ff" * 16


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    opened = open_engine()
    yield opened
    opened.close()


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    def write(content: str | bytes, name: str = "table.csv", encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write


def flat(name: str, values: Sequence[str]) -> Hierarchy:
    """A hierarchy with nothing between the values and the top."""
    return Hierarchy.of(name, list(values), [])


def pairs(name: str, values: Sequence[str]) -> Hierarchy:
    """A hierarchy whose middle level joins neighbours two by two."""
    return Hierarchy.of(name, list(values), [("pairs", [f"{name}-{i // 2}" for i in range(len(values))])])


def map_to(hierarchy: Hierarchy, level: int) -> ColumnMap:
    chosen = hierarchy.levels[level]
    return ColumnMap(hierarchy, tuple(chosen.labels[b] for b in chosen.blocks), level == 0)


def plan(
    columns: Sequence[str],
    levels: Mapping[str, tuple[Hierarchy, int]],
    suppressed: Sequence[Sequence[int]] = (),
    **options: Any,
) -> Plan:
    """A plan with each hierarchy at a level; `suppressed` lists tuples of codes."""
    codes = np.array(suppressed, dtype=np.int32).reshape(len(suppressed), len(levels)).T
    settings = {"star": False, "drop_missing": (), "key": KEY} | options
    return Plan(columns, [map_to(h, level) for h, level in levels.values()], codes, **settings)


def bag(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows as a multiset that can be compared."""
    return sorted((tuple(row.values()) for row in rows), key=repr)
