"""What every engine that speaks SQL does alike: the questions that are one statement, rendered for the engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from maskwright.domain.summary import Summary
from maskwright.engines.base import Domain, SummarySpec, Table
from maskwright.engines.sql import frequency, set_columns, table_queries
from maskwright.engines.sql.coding import Relation, Runner


class SqlEngine(ABC):
    """The part of an `Engine` that asks questions; what makes and writes rows is the engine's own."""

    @property
    @abstractmethod
    def _runner(self) -> Runner:
        """What runs the queries."""

    @abstractmethod
    def _own(self, table: Table) -> Relation:
        """The table, which must be one of this engine."""

    def count(self, table: Table) -> int:
        """See `Engine.count`."""
        return table_queries.row_count(self._runner, self._own(table))

    def fingerprint(self, table: Table) -> str:
        """See `Engine.fingerprint`."""
        return table_queries.fingerprint(self._runner, self._own(table))

    def domain(self, table: Table, column: str, limit: int | None = None) -> Domain:
        """See `Engine.domain`."""
        return table_queries.domain(self._runner, self._own(table), column, limit)

    def domains(self, table: Table, columns: Sequence[str], limit: int | None = None) -> Iterator[Domain]:
        """See `Engine.domains`."""
        return (self.domain(table, name, limit) for name in columns)

    def elements(self, table: Table, column: str, separator: str | None) -> Domain:
        """See `Engine.elements`."""
        return set_columns.set_elements(self._runner, self._own(table), column, separator)

    def sample(
        self, table: Table, rows: int, columns: Sequence[str] | None = None
    ) -> list[dict[str, str | None]]:
        """See `Engine.sample`."""
        return table_queries.sample(self._runner, self._own(table), rows, columns)

    def uniqueness(self, table: Table, columns: Sequence[str]) -> tuple[int, int, int]:
        """See `Engine.uniqueness`."""
        return table_queries.uniqueness(self._runner, self._own(table), columns)

    def lone_values(self, table: Table, columns: Sequence[str], beside: Sequence[str] = ()) -> list[int]:
        """See `Engine.lone_values`."""
        return [self.uniqueness(table, [*beside, name])[1] for name in columns]

    def combinations(
        self, table: Table, spec: SummarySpec, choices: Sequence[Mapping[str, int]]
    ) -> list[int]:
        """See `Engine.combinations`."""
        return table_queries.combinations(self._runner, self._own(table), spec, choices)

    def summarise(self, table: Table, spec: SummarySpec) -> Summary:
        """See `Engine.summarise`."""
        return frequency.summarise(self._runner, self._own(table), spec)
