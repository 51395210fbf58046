"""A table of an engine that speaks SQL (a `Source`, see coding.py): a relation whose columns are called c0, c1 …"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from maskwright.engines import sql
from maskwright.engines.base import ColumnInfo, Format
from maskwright.engines.coding import Coded
from maskwright.errors import InputError


@dataclass(frozen=True, eq=False)
class Relation:
    """What every such table has.

    Attributes:
        relation: its name there, or a query.
        row: the column that tells rows apart.
        parameters: what counts as missing, and what the query refers to.
        clean: a published table, whose values need no cleaning any more.
    """

    columns: tuple[ColumnInfo, ...]
    caller: str
    format: Format
    label: str
    relation: str | exp.Select
    parameters: Mapping[str, Any] = field(default_factory=dict)
    clean: bool = False
    row: str = "rowid"

    @property
    def coding(self) -> type[Coded]:
        return Coded

    def source(self) -> exp.Expression:
        if isinstance(self.relation, str):
            return sql.relation(self.relation, "t")
        return self.relation.subquery("t")

    def row_number(self) -> exp.Expression:
        return sql.column(self.row, "t")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(info.name for info in self.columns)

    def position(self, name: str) -> int:
        for i, info in enumerate(self.columns):
            if info.name == name:
                return i
        raise InputError(f"{self.label}: there is no column {name!r}")

    def info(self, name: str) -> ColumnInfo:
        return self.columns[self.position(name)]

    def raw(self, name: str) -> exp.Expression:
        """A column as it is; texts of a published table may be members of an enumeration."""
        stored = self.stored(name)
        return sql.cast(stored, "TEXT") if self.clean and self.info(name).kind == "text" else stored

    def stored(self, name: str) -> exp.Expression:
        return sql.column(f"c{self.position(name)}", "t")

    def value(self, name: str) -> exp.Expression:
        """A column in its own type, missing where it counts as missing."""
        return self.raw(name) if self.clean else sql.cleaned(self.raw(name), self.info(name), self.parameters)

    def text(self, name: str) -> exp.Expression:
        """A column as canonical text."""
        return sql.text_of(self.value(name), self.info(name))

    def canonical(self, name: str, value: exp.Expression) -> exp.Expression:
        """The canonical text of a value of that column."""
        if self.clean:
            return sql.text_of(value, self.info(name))
        return sql.canonical(value, self.info(name), self.parameters)
