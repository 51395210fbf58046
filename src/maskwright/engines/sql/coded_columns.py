"""Values as codes, for every engine that speaks SQL: dictionaries are joined as small tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from sqlglot import exp

from maskwright.domain.classes import Ints
from maskwright.engines.base import ColumnInfo, Format
from maskwright.engines.sql import clauses
from maskwright.errors import HierarchyError, InputError
from maskwright.prepare import Repair

Arrays = Mapping[str, np.ndarray[Any, Any]]


class Runner(Protocol):
    """What an engine that speaks SQL offers to the modules that build queries."""

    def run(self, query: exp.Expression, parameters: Mapping[str, Any]) -> None:
        """Execute a statement."""

    def arrays(self, query: exp.Expression, parameters: Mapping[str, Any]) -> Arrays:
        """The result of a query, an array per column."""

    def rows(self, query: exp.Expression, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The result of a query, row by row."""

    def holds_keys(self, rows: int) -> bool:
        """Is there room here for a number of each of so many rows?"""

    def new_name(self, kind: str) -> str:
        """A name that nothing has yet."""

    def tables(self, content: Mapping[str, Arrays]) -> AbstractContextManager[None]:
        """Small tables of values, there as long as the context."""

    def stored(
        self, name: str, query: exp.Expression, parameters: Mapping[str, Any]
    ) -> AbstractContextManager[None]:
        """The result of a query as a table, there as long as the context."""

    def lookup(self, name: str, code: exp.Expression) -> exp.Expression:
        """What a small table (k, t) has for a code, null where it has none. Rows that have an order keep it."""

    def lookup_text(
        self, name: str, texts: Sequence[str | None], code: exp.Expression, published: bool
    ) -> exp.Expression:
        """The text of a code, which is its place in the list; rows keep their order. `name` is for what is stored.

        `published`: all of the texts are in the release, so that they may be written as a dictionary.
        """


class RowRunner(Runner, Protocol):
    """What an engine offers besides when its tables have an order, and rows can be made here."""

    def fill(self, name: str, chunks: Iterator[Arrays]) -> None:
        """Make a table from chunks with the same columns, its rows in their order."""

    def slices(self, name: str, columns: Sequence[str], rows: int) -> Iterator[Arrays]:
        """Columns of integers of a stored table, its rows in their order, so many at a time."""

    def enumeration(self, name: str, texts: Sequence[str]) -> exp.DataType:
        """A type whose members are these texts."""


@dataclass(frozen=True, eq=False)
class Relation:
    """What every such table has.

    Attributes:
        relation: its name there, or a query.
        row: the column that tells rows apart.
        parameters: what counts as missing, and what the query refers to.
        clean: a published table, whose values need no cleaning any more.
        repairs: what was found in the columns that were prepared.
        identity: of a prepared table: the fingerprint that it had before.
    """

    dialect: ClassVar[str] = "duckdb"  # in which the types of its columns are written

    columns: tuple[ColumnInfo, ...]
    caller: str
    format: Format
    label: str
    relation: str | exp.Select
    parameters: Mapping[str, Any] = field(default_factory=dict)
    clean: bool = False
    row: str = "rowid"
    repairs: tuple[Repair, ...] = ()
    identity: str | None = None

    @property
    def coding(self) -> type[Coded]:
        """The class that codes its values."""
        return Coded

    def source(self) -> exp.Expression:
        """The rows, to select from under the name `t`."""
        if isinstance(self.relation, str):
            return clauses.relation(self.relation, "t")
        return self.relation.subquery("t")

    def row_number(self) -> exp.Expression:
        """What tells rows apart."""
        return clauses.column(self.row, "t")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(info.name for info in self.columns)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def position(self, name: str) -> int:
        """The position of a column; refused where there is none."""
        try:
            return self._positions[name]
        except KeyError:
            raise InputError(f"{self.label}: there is no column {name!r}") from None

    def info(self, name: str) -> ColumnInfo:
        """What is known of a column."""
        return self.columns[self.position(name)]

    def raw(self, name: str) -> exp.Expression:
        """A column as it is; texts of a published table may be members of an enumeration."""
        stored = self.stored(name)
        return clauses.cast(stored, "TEXT") if self.clean and self.info(name).kind == "text" else stored

    def stored(self, name: str) -> exp.Expression:
        """A column as it is stored."""
        return clauses.column(f"c{self.position(name)}", "t")

    def hashable(self, name: str) -> exp.Expression:
        """A column as it is hashed: the hash that DuckDB has for very large numbers is weak."""
        raw = self.raw(name)
        return clauses.cast(raw, "TEXT") if "HUGEINT" in self.info(name).type.upper() else raw

    def value(self, name: str) -> exp.Expression:
        """A column in its own type, missing where it counts as missing."""
        return (
            self.raw(name)
            if self.clean
            else clauses.cleaned(self.raw(name), self.info(name), self.parameters)
        )

    def text(self, name: str) -> exp.Expression:
        """A column as canonical text."""
        return clauses.text_of(self.value(name), self.info(name))

    def canonical(self, name: str, value: exp.Expression) -> exp.Expression:
        """The canonical text of a value of that column."""
        return self.canonical_as(value, self.info(name))

    def canonical_as(self, value: exp.Expression, info: ColumnInfo) -> exp.Expression:
        """The canonical text of a value that is as `info` says."""
        if self.clean:
            return clauses.text_of(value, info)
        return clauses.canonical(value, info, self.parameters)


JOINED = 32  # dictionaries in one query: the time to plan it grows with the cube of their number


def _part(i: int) -> str:
    """The stored table with the codes of column i, where they are stored."""
    return f"codes{i // JOINED}"


@dataclass(frozen=True)
class Coded:
    """Columns of a source as codes: value i of the domain is i + 1, missing 0, unknown the last code.

    Within a context `coded.at_hand(runner)`, a query with `tables=coded.tables()` and `joins=coded.joins()` may use
    `code(i)`. So may one within `runner.tables(coded.content())`, where `in_parts` is none.

    Attributes:
        in_parts: more columns than a query should join dictionaries for: their codes are stored first, part by part.
    """

    table: Relation
    names: tuple[str, ...]
    domains: tuple[tuple[str, ...], ...]

    in_parts: bool = field(default=False, kw_only=True)

    @staticmethod
    def of(table: Relation, names: tuple[str, ...], domains: tuple[tuple[str, ...], ...]) -> Coded:
        """Columns as the table codes them, in parts where there are many."""
        made = table.coding(table, names, domains)
        return replace(made, in_parts=True) if len(names) > JOINED and table.dialect == "duckdb" else made

    @contextmanager
    def at_hand(self, runner: Runner, more: Mapping[str, Arrays] | None = None) -> Iterator[None]:
        """The domains as small tables, and the codes of every row where they are stored; `more` tables besides."""
        with ExitStack() as stack:
            stack.enter_context(runner.tables({**self.content(), **(more or {})}))
            if self.in_parts:
                plain = replace(self, in_parts=False)
                joins, tables = plain.joins(), plain.tables()
                for begin in range(0, len(self.names), JOINED):
                    part = range(begin, min(begin + JOINED, len(self.names)))
                    items = [clauses.alias(plain.code(i), f"k{i}") for i in part]
                    query = clauses.select(
                        [clauses.alias(self.table.row_number(), "r"), *items], self.table.source(),
                        joins=[joins[i] for i in part], tables={f"d{i}": tables[f"d{i}"] for i in part},
                    )  # fmt: skip
                    stack.enter_context(runner.stored(_part(begin), query, self.table.parameters))
            yield

    @property
    def radices(self) -> tuple[int, ...]:
        """The number of codes of each column: its values, missing and unknown."""
        return tuple(len(d) + 2 for d in self.domains)

    def unknown(self, i: int) -> int:
        """The code of values that are not in the domain of column i."""
        return len(self.domains[i]) + 1

    def code(self, i: int) -> exp.Expression:
        """The code of column i, in a query that joins its dictionary."""
        if self.in_parts:
            return clauses.column(f"k{i}", _part(i))
        return exp.Coalesce(this=clauses.column("k", f"d{i}"), expressions=[clauses.integer(0)])

    def joins(self) -> list[exp.Join]:
        """Left joins, because inner ones would lose rows (and because databases reorder them, at a cost)."""
        if self.in_parts:
            parts = [_part(i) for i in range(0, len(self.names), JOINED)]
            row = self.table.row_number()
            return [
                clauses.left_join(clauses.relation(p), clauses.equal(clauses.column("r", p), row.copy()))
                for p in parts
            ]
        raw = [self.table.raw(name) for name in self.names]
        return [
            clauses.left_join(clauses.relation(f"d{i}"), clauses.equal(clauses.column("raw", f"d{i}"), r))
            for i, r in enumerate(raw)
        ]

    def tables(self) -> dict[str, exp.Select]:
        """The dictionaries, as queries by their names."""
        return {} if self.in_parts else {f"d{i}": self._dictionary(i) for i in range(len(self.names))}

    def content(self) -> dict[str, Arrays]:
        """The domains as tables (value, code)."""
        return {f"v{i}": _domain(domain) for i, domain in enumerate(self.domains)}

    def unknown_values(self, runner: Runner, i: int) -> list[str]:
        """The values of column i that are not in its domain."""
        k = clauses.equal(clauses.column("k"), clauses.integer(self.unknown(i)))
        source = self._dictionary(i).subquery("y", copy=False)
        query = clauses.select(
            [clauses.column("v")], source, where=[k], order=[clauses.column("v")], distinct=True
        )
        return [str(row[0]) for row in runner.rows(query, self.table.parameters)]

    def _dictionary(self, i: int) -> exp.Select:
        name, table = self.names[i], self.table
        text = clauses.canonical(clauses.column("raw", "a"), table.info(name), table.parameters)
        return clauses.dictionary(table.source(), table.raw(name), text, f"v{i}", self.unknown(i))


@dataclass(frozen=True)
class Labelled(Coded):
    """Coded columns with the label of each value: a query may also use `label(i)`, which is null for missing values."""

    labels: tuple[tuple[str | None, ...], ...] = ()

    def label(self, i: int) -> exp.Expression:
        """The label of column i, in a query that joins its dictionary."""
        return clauses.column("t", f"d{i}")

    def tables(self) -> dict[str, exp.Select]:
        """The dictionaries, each with the labels of its codes."""
        found = {}
        for i, (name, dictionary) in enumerate(super().tables().items()):
            same = clauses.equal(clauses.column("k", f"l{i}"), clauses.column("k", "y"))
            items = [clauses.column(c, "y") for c in ("raw", "v", "k")] + [clauses.column("t", f"l{i}")]
            label = clauses.left_join(clauses.relation(f"l{i}"), same)
            found[name] = clauses.select(items, dictionary.subquery("y", copy=False), joins=[label])
        return found

    def content(self) -> dict[str, Arrays]:
        """The tables that the dictionaries are made from."""
        codes = [np.arange(1, len(texts) + 1, dtype=np.int64) for texts in self.labels]
        pairs = enumerate(zip(codes, self.labels, strict=True))
        return super().content() | {f"l{i}": {"k": k, "t": texts_of(texts)} for i, (k, texts) in pairs}


def _domain(values: Sequence[str]) -> Arrays:
    if len(set(values)) != len(values):
        raise ValueError("a domain lists a value twice")
    return {"v": texts_of(values), "k": np.arange(1, len(values) + 1, dtype=np.int64)}


def texts_of(texts: Sequence[str | None]) -> np.ndarray[Any, Any]:
    """Texts as a column of a small table; None is null."""
    if all(t is None for t in texts):  # an array of objects would not be taken for text
        return np.ma.array(np.full(len(texts), "", dtype="<U1"), mask=True)
    return np.array(texts, dtype=object)


def check_known(runner: Runner, coded: Coded, digits: Iterable[Ints], width: int) -> None:
    """Refuse values without a code: the first `width` columns are quasi-identifiers, whose values are named."""
    for i, (name, codes) in enumerate(zip(coded.names, digits, strict=True)):
        if not (codes == coded.unknown(i)).any():
            continue
        if i >= width:
            raise InputError(f"column {name!r} holds values outside its declared domain; declare them")
        refuse_unknown(name, coded.unknown_values(runner, i))


def refuse_unknown(name: str, values: Sequence[str]) -> None:
    """Refuse values that the hierarchy of a column does not know, if there are any."""
    if not values:
        return
    more = f" and {len(values) - 3} more" if len(values) > 3 else ""
    raise HierarchyError(
        f"column {name!r}: its hierarchy does not know {', '.join(map(repr, values[:3]))}{more}; "
        "add what is missing to the hierarchy, or name it a missing token"
    )
