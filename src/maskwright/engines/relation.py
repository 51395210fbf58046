"""A table of an engine that speaks SQL (a `Source`, see coding.py): a relation whose columns are called c0, c1 …"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from maskwright.core.multivalued import SetColumn
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


def element_of(info: ColumnInfo, separator: str | None, lists: str) -> ColumnInfo:
    """What a value in the sets of a column is; `lists` is the pattern of the engine's types of lists."""
    name = info.name
    if separator is not None:
        if info.kind != "text":
            raise InputError(
                f"column {name!r} does not hold texts, so there is nothing to separate; for lists write "
                "multivalued: true"
            )
        return ColumnInfo(name, "text", "VARCHAR")
    element = re.fullmatch(lists, info.type)
    if element is None:
        raise InputError(
            f"column {name!r} is declared multivalued: true, but does not hold lists; "
            'name the separator: multivalued: ";"'
        )
    inner = ColumnInfo(name, sql.kind_of(element[1]), element[1])
    if inner.kind == "other":
        raise InputError(f"column {name!r} holds lists of {element[1]}; lists of texts or numbers are needed")
    return inner


def folded(
    t: Relation,
    sets: Sequence[SetColumn],
    originals: Mapping[str, ColumnInfo],
    put_together: Callable[[SetColumn, ColumnInfo, int], exp.Expression],
) -> tuple[list[ColumnInfo], list[exp.Expression]]:
    """The columns of a published table and what they show, with sets in place of their bits.

    Each set is where its first bit was. `put_together` makes it, for the column as it was and for its place.
    """
    owner = {bit: s for s in sets for bit in s.bits}
    found: dict[str, ColumnInfo | SetColumn] = {}
    for info in t.columns:
        column = owner.get(info.name, info)
        found.setdefault(column.name, column)
    columns, items = list[ColumnInfo](), list[exp.Expression]()
    for place, column in enumerate(found.values()):
        if isinstance(column, ColumnInfo):
            columns.append(column)
            items.append(t.raw(column.name))
            continue
        original = originals.get(column.name, ColumnInfo(column.name, "text", "VARCHAR"))
        columns.append(replace(original, type="VARCHAR") if original.kind == "text" else original)
        items.append(put_together(column, original, place))
    return columns, items


def typed_with(typed: frozenset[str], sets: Sequence[SetColumn]) -> frozenset[str]:
    """The columns that keep the type of the source, when sets are in place of their bits."""
    return (typed - {bit for s in sets for bit in s.bits}) | {s.name for s in sets}
