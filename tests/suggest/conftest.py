"""A small engine in memory, which counts as the interface says, so that guesses are tested without a database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

from maskwright.engines import open_engine
from maskwright.engines.base import ColumnInfo, Domain, Kind, Reading
from maskwright.prepare import Preparation, Repair
from maskwright.suggest import Suggestion, suggest_for_table


@dataclass
class FakeTable:
    columns: tuple[ColumnInfo, ...]
    data: dict[str, list[str | None]]
    caller: str = "path"
    format: str = "csv"
    repairs: tuple[Repair, ...] = ()


@dataclass
class FakeEngine:
    """Only what `suggest_for_table` may call; `calls` says what it did call."""

    name: str = "fake"
    calls: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def count(self, table: FakeTable) -> int:
        self.calls.append(("count", ()))
        return len(next(iter(table.data.values()), []))

    def prepare(self, table: FakeTable, steps: Sequence[tuple[str, Preparation]]) -> FakeTable:
        """What the real engine makes of the columns that are prepared."""
        if not steps:
            return table
        engine = open_engine()
        try:
            made = engine.open(
                pa.table({n: pa.array(v, pa.string()) for n, v in table.data.items()}), Reading()
            )
            ready = engine.prepare(made, steps)
            rows = engine.sample(ready, len(next(iter(table.data.values()))))
        finally:
            engine.close()
        touched = {name for name, _ in steps}
        data = {n: [row[n] for row in rows] if n in touched else v for n, v in table.data.items()}
        infos = tuple(ColumnInfo(c.name, "text", "") if c.name in touched else c for c in table.columns)
        return FakeTable(infos, data, repairs=ready.repairs)

    def domain(self, table: FakeTable, column: str, limit: int | None = None) -> Domain:
        self.calls.append(("domain", (column,)))
        found = Counter(table.data[column])
        missing = found.pop(None, 0)
        kept = sorted(v for v, _ in found.most_common(limit))
        return Domain(tuple(kept), tuple(found[v] for v in kept), missing, False)

    def domains(self, table: FakeTable, columns: Sequence[str], limit: int | None = None) -> Iterator[Domain]:
        return (self.domain(table, name, limit) for name in columns)

    def sample_table(self, table: FakeTable, rows: int) -> FakeTable:
        return replace(table, data={name: values[:rows] for name, values in table.data.items()})

    def open(self, source: FakeTable, reading: Reading) -> FakeTable:
        return source

    def sample(self, table: FakeTable, rows: int, columns: Sequence[str]) -> list[dict[str, str | None]]:
        cells = zip(*(table.data[c][:rows] for c in columns), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in cells]

    def uniqueness(self, table: FakeTable, columns: Sequence[str]) -> tuple[int, int, int]:
        self.calls.append(("uniqueness", tuple(columns)))
        found = Counter(zip(*(table.data[c] for c in columns), strict=True))
        return len(found), sum(n == 1 for n in found.values()), min(found.values(), default=0)


def fake_table(data: Mapping[str, Sequence[Any]], kinds: Mapping[str, Kind] | None = None) -> FakeTable:
    columns = tuple(ColumnInfo(name, (kinds or {}).get(name, "text"), "") for name in data)
    return FakeTable(columns, {k: [None if v is None else str(v) for v in vs] for k, vs in data.items()})


class Suggest:
    """Suggest a policy for columns given as lists."""

    def __init__(self) -> None:
        self.engine = FakeEngine()

    def __call__(
        self, data: Mapping[str, Sequence[Any]], kinds: Mapping[str, Kind] | None = None, **options: Any
    ) -> Suggestion:
        return suggest_for_table(self.engine, fake_table(data, kinds), **options)  # type: ignore[arg-type]


@pytest.fixture
def suggested() -> Suggest:
    return Suggest()
