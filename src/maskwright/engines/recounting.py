"""Counting the classes of a published table by what it shows, and by nothing that its makers knew.

Every column gets a dictionary of its own from the table itself, in which a code stands for exactly one text; rows are
grouped by those codes, packed into integers. The dictionaries are not those of the summary: a mistake there is not
repeated here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from sqlglot import exp

from maskwright.core.classes import Ints
from maskwright.core.exact import totals
from maskwright.engines import sql
from maskwright.engines.base import Found, Recount, Texts
from maskwright.engines.coding import RowRunner, Runner, Source, texts_of
from maskwright.engines.keys import Packing, ascending, numbered
from maskwright.engines.passing import passed

# whole numbers that fit into 64 bits; DuckDB's hash of larger ones is weak: it is the same for 0 and -1
SMALL = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "INT"}


def recount(
    runner: Runner, table: Source, columns: Sequence[str], sensitive: Sequence[str], unit: str | None
) -> Recount:
    """One pass over the rows per sensitive column, the classes with the first (people need one of their own)."""
    width = len(columns)
    with ExitStack() as stack:
        names = list(dict.fromkeys([*columns, *sensitive]))
        listed = {name: _listed(runner, table, name, f"listed{i}", stack) for i, name in enumerate(names)}
        by = [listed[name] for name in columns]
        found = {name: _counted(runner, table, [*by, listed[name]], unit) for name in sensitive}
        if unit is None and sensitive:
            classes = found[sensitive[0]].head(width)[0]
        else:
            classes = _counted(runner, table, by, unit)
    values = {}
    for name, counted in found.items():
        owner = counted.head(width)[1]
        values[name] = Found(listed[name].texts, owner, counted.codes(width), counted.people)
    codes = np.empty((width, len(classes.rows)), dtype=np.int32)
    for i in range(width):
        codes[i] = classes.codes(i)
    return Recount(tuple(c.texts for c in by), codes, classes.rows, classes.people, values)


@dataclass(frozen=True)
class _Listed:
    """A column with its dictionary, a stored table (raw, k); a missing value has the code after all others.

    Whole numbers that lie close together need no dictionary: their code is the distance from the least.
    """

    table: str | None
    raw: exp.Expression
    texts: Texts
    missing: int

    def code(self) -> exp.Expression:
        if self.table is None:
            least = sql.integer(int(self.texts[0] or 0))
            return exp.Sub(this=sql.cast(self.raw.copy(), "BIGINT"), expression=exp.Paren(this=least))
        found = sql.column("k", self.table)
        return exp.Coalesce(this=found, expressions=[sql.integer(self.missing)])

    def joins(self) -> list[exp.Join]:
        if self.table is None:
            return []
        same = sql.equal(sql.column("raw", self.table), self.raw.copy())
        return [sql.left_join(sql.relation(self.table), same)]


def _listed(runner: Runner, table: Source, name: str, stored: str, stack: ExitStack) -> _Listed:
    """Make the dictionary of a column: values with the same canonical text share a code, in the order of the texts.

    Texts that are all of whole numbers are kept as such: there may be as many as there are groups.
    """
    if (numbers := _close_numbers(runner, table, name)) is not None:
        return _Listed(None, table.raw(name), numbers, len(numbers))
    distinct = sql.select([sql.alias(table.raw(name), "raw")], table.source(), distinct=True)
    text = table.canonical(name, sql.column("raw", "a"))
    texts = sql.select([sql.column("raw"), sql.alias(text, "v")], distinct.subquery("a", copy=False))
    with runner.stored(f"{stored}_texts", texts, table.parameters):
        given = sql.relation(f"{stored}_texts")
        number = exp.TryCast(this=sql.column("v"), to=exp.DataType.build("BIGINT"))
        same = sql.equal(sql.cast(number.copy(), "TEXT"), sql.column("v"))
        plain = sql.case((same, sql.integer(0)), otherwise=sql.integer(1))  # 1 where it is missing, too
        [(others,)] = runner.rows(sql.select([exp.Sum(this=plain)], given.copy()), {})
        value = number if others == 0 else sql.column("v")
        order = exp.Order(expressions=[value])
        rank = exp.Window(this=exp.Anonymous(this="dense_rank"), order=order)
        code = exp.Sub(this=rank, expression=sql.integer(1))
        items = [sql.column("raw"), sql.alias(code, "k"), sql.alias(value.copy(), "t")]
        there = [sql.not_null(sql.column("v"))]
        stack.enter_context(runner.stored(stored, sql.select(items, given, where=there), {}))
    pairs = sql.select(sql.columns(["k", "t"]), sql.relation(stored), distinct=True)
    if others == 0:
        found = runner.arrays(pairs, {})
        numbers = np.empty(len(found["k"]), dtype=np.int64)
        numbers[found["k"]] = found["t"]
        return _Listed(stored, table.raw(name), numbers, len(numbers))
    ordered = [str(t) for _, t in sorted(runner.rows(pairs, {}))]
    return _Listed(stored, table.raw(name), (*ordered, None), len(ordered))


def _close_numbers(runner: Runner, table: Source, name: str) -> Ints | None:
    """All whole numbers from the least to the largest of a column, if it has no others and they are not too many."""
    if table.info(name).kind != "integer" or set(table.parameters) - {"blanks"}:
        return None
    raw = table.raw(name)
    counts = [sql.count(), exp.Count(this=raw.copy())]
    query = sql.select([exp.Min(this=raw.copy()), exp.Max(this=raw), *counts], table.source())
    [(least, most, rows, there)] = runner.rows(query, table.parameters)
    if there < rows or not rows or most - least > 2 * rows or not -(2**62) < least <= most < 2**62:
        return None
    return np.arange(least, most + 1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Counted:
    """Combinations of codes as packed keys, ascending, each with its rows and people."""

    packing: Packing
    keys: list[Ints]
    rows: Ints
    people: Ints

    def codes(self, i: int) -> Ints:
        return self.packing.unpack(self.keys, i)

    def head(self, width: int) -> tuple[_Counted, Ints]:
        """Rows by the first columns alone, and the number of each combination there."""
        head = Packing.of(self.packing.radices[:width])
        keys, owner = numbered(self.packing.head(self.keys, width), len(self.rows))
        n = int(owner[-1]) + 1 if len(owner) else 0
        rows = totals(owner, self.rows, n)
        return _Counted(head, keys, rows, rows), owner


def _counted(runner: Runner, table: Source, listed: Sequence[_Listed], unit: str | None) -> _Counted:
    packing = Packing.of([c.missing + 1 for c in listed])
    words = [f"k{w}" for w in range(len(packing.words))]
    packed = sql.packed([c.code() for c in listed], packing)
    items = [sql.alias(key, word) for word, key in zip(words, packed, strict=True)]
    counts = [sql.alias(sql.count(), "n")]
    if unit is not None:
        items.append(sql.alias(table.text(unit), "u"))
        counts.append(sql.alias(sql.count_distinct("u"), "p"))
    joins = [join for c in listed for join in c.joins()]
    query = sql.select(items or [sql.integer(1)], table.source(), joins=joins)
    found = runner.arrays(sql.count_by(query, words, *counts), table.parameters)
    keys, rows = [found[w].astype(np.int64) for w in words], found["n"].astype(np.int64)
    order = ascending(keys, len(rows))
    people = found["p"].astype(np.int64) if unit is not None else rows
    return _Counted(packing, [k[order] for k in keys], rows[order], people[order])


def holds(runner: RowRunner, table: Source, columns: Sequence[str], rows: Iterable[Recount]) -> bool:
    """Does a table have exactly these rows, in any order? Compares their number and two sums of hashes of 64 bits."""
    pieces = iter(rows)
    first = next(pieces)
    found, planned = list[exp.Expression](), list[exp.Expression]()
    for i, (name, known) in enumerate(zip(columns, first.texts, strict=True)):
        code = sql.column(f"c{i}", "planned")
        # then numbers are compared: making texts of them takes longer
        whole = table.info(name).type.upper() in SMALL
        if whole:
            found.append(_hash(sql.cast(table.value(name), "BIGINT")))
        else:
            text = table.info(name).kind == "text"
            found.append(_hash(passed(runner, table, name) if text else table.text(name)))
        if isinstance(known, np.ndarray):
            planned.append(_hash(sql.cast(code, "BIGINT" if whole else "TEXT")))
        else:
            decode = runner.new_name("planned")
            _store_hashes(runner, known, whole, decode)
            planned.append(runner.lookup(decode, code))
    [there] = runner.rows(sql.select(_sums(found, sql.integer(1)), table.source()), table.parameters)
    sums = sql.select(_sums(planned, sql.column("n", "planned")), sql.relation("planned"))
    wanted = [0] * len(there)
    for piece in chain([first], pieces):
        content: dict[str, np.ndarray[Any, Any]] = {"n": piece.rows}
        for i, (known, codes) in enumerate(zip(piece.texts, piece.codes, strict=True)):
            content[f"c{i}"] = known[codes] if isinstance(known, np.ndarray) else codes
        with runner.tables({"planned": content}):
            [more] = runner.rows(sums, {})
        wanted = [a + (b or 0) for a, b in zip(wanted, more, strict=True)]
    return [n or 0 for n in there] == wanted


def _store_hashes(runner: Runner, texts: Sequence[str | None], whole: bool, name: str) -> None:
    """A table (k, t) with the hash of each text, or of the whole number that it means."""
    value: exp.Expression = sql.column("t", "given")
    if whole:
        value = exp.TryCast(this=value, to=exp.DataType.build("BIGINT"))
    items = [sql.column("k", "given"), sql.alias(_hash(value), "t")]
    with runner.tables({"given": {"k": np.arange(len(texts), dtype=np.int64), "t": texts_of(texts)}}):
        runner.run(sql.create_table(name, sql.select(items, sql.relation("given"))), {})


def _sums(hashes: Sequence[exp.Expression], times: exp.Expression) -> list[exp.Expression]:
    """The number of rows, and two sums of hashes: those of 64-bit numbers, so that they cannot overflow."""
    total: list[exp.Expression] = [exp.Sum(this=sql.cast(times.copy(), "HUGEINT"))]
    row = _hash(*hashes)
    for _ in range(2):  # the hash of a row, and the hash of that
        total.append(exp.Sum(this=exp.Mul(this=sql.cast(row.copy(), "HUGEINT"), expression=times.copy())))
        row = _hash(row)
    return total


def _hash(*values: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this="hash", expressions=list(values))
