"""Counting the classes of a published table by what it shows, and by nothing that its makers knew.

Every column gets a dictionary of its own from the table itself, in which a code stands for exactly one text; rows are
grouped by those codes, packed into integers. The dictionaries are not those of the summary: a mistake there is not
repeated here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from sqlglot import exp

from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount
from maskwright.engines.base import Found, Recount, Texts
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Relation, RowRunner, Runner, texts_of
from maskwright.engines.sql.packed_keys import Packing, ascending, numbered
from maskwright.engines.sql.passing import passed
from maskwright.engines.sql.table_queries import below_each_other, column_batches, counted_keys

# whole numbers that fit into 64 bits; DuckDB's hash of larger ones is weak: it is the same for 0 and -1
SMALL = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "INT"}


def recount(
    runner: Runner, table: Relation, columns: Sequence[str], sensitive: Sequence[str], unit: str | None
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
        """The code of a row's value."""
        if self.table is None:
            least = clauses.integer(int(self.texts[0] or 0))
            return exp.Sub(this=clauses.cast(self.raw.copy(), "BIGINT"), expression=exp.Paren(this=least))
        found = clauses.column("k", self.table)
        return exp.Coalesce(this=found, expressions=[clauses.integer(self.missing)])

    def joins(self) -> list[exp.Join]:
        """The join that finds the code; none where it is computed."""
        if self.table is None:
            return []
        same = clauses.equal(clauses.column("raw", self.table), self.raw.copy())
        return [clauses.left_join(clauses.relation(self.table), same)]


def _listed(runner: Runner, table: Relation, name: str, stored: str, stack: ExitStack) -> _Listed:
    """Make the dictionary of a column: values with the same canonical text share a code, in the order of the texts.

    Texts that are all of whole numbers are kept as such: there may be as many as there are groups.
    """
    if (numbers := _close_numbers(runner, table, name)) is not None:
        return _Listed(None, table.raw(name), numbers, len(numbers))
    distinct = clauses.select([clauses.alias(table.raw(name), "raw")], table.source(), distinct=True)
    text = table.canonical(name, clauses.column("raw", "a"))
    texts = clauses.select(
        [clauses.column("raw"), clauses.alias(text, "v")], distinct.subquery("a", copy=False)
    )
    with runner.stored(f"{stored}_texts", texts, table.parameters):
        given = clauses.relation(f"{stored}_texts")
        number = exp.TryCast(this=clauses.column("v"), to=exp.DataType.build("BIGINT"))
        same = clauses.equal(clauses.cast(number.copy(), "TEXT"), clauses.column("v"))
        plain = clauses.case(
            (same, clauses.integer(0)), otherwise=clauses.integer(1)
        )  # 1 where it is missing, too
        [(others,)] = runner.rows(clauses.select([exp.Sum(this=plain)], given.copy()), {})
        value = number if others == 0 else clauses.column("v")
        order = exp.Order(expressions=[value])
        rank = exp.Window(this=exp.Anonymous(this="dense_rank"), order=order)
        code = exp.Sub(this=rank, expression=clauses.integer(1))
        items = [clauses.column("raw"), clauses.alias(code, "k"), clauses.alias(value.copy(), "t")]
        there = [clauses.not_null(clauses.column("v"))]
        stack.enter_context(runner.stored(stored, clauses.select(items, given, where=there), {}))
    pairs = clauses.select(clauses.columns(["k", "t"]), clauses.relation(stored), distinct=True)
    if others == 0:
        found = runner.arrays(pairs, {})
        numbers = np.empty(len(found["k"]), dtype=np.int64)
        numbers[found["k"]] = found["t"]
        return _Listed(stored, table.raw(name), numbers, len(numbers))
    ordered = [str(t) for _, t in sorted(runner.rows(pairs, {}))]
    return _Listed(stored, table.raw(name), (*ordered, None), len(ordered))


def _close_numbers(runner: Runner, table: Relation, name: str) -> Ints | None:
    """All whole numbers from the least to the largest of a column, if it has no others and they are not too many."""
    if table.info(name).kind != "integer" or set(table.parameters) - {"blanks"}:
        return None
    raw = table.raw(name)
    counts = [clauses.count(), exp.Count(this=raw.copy())]
    query = clauses.select([exp.Min(this=raw.copy()), exp.Max(this=raw), *counts], table.source())
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
        """The codes of column i."""
        return self.packing.unpack(self.keys, i)

    def head(self, width: int) -> tuple[_Counted, Ints]:
        """Rows by the first columns alone, and the number of each combination there."""
        head = Packing.of(self.packing.radices[:width])
        keys, owner = numbered(self.packing.head(self.keys, width), len(self.rows))
        n = int(owner[-1]) + 1 if len(owner) else 0
        rows = exact_bincount(owner, self.rows, n)
        return _Counted(head, keys, rows, rows), owner


JOINED = 32  # dictionaries in one query: the time to plan it grows with the cube of their number


def _counted(runner: Runner, table: Relation, listed: Sequence[_Listed], unit: str | None) -> _Counted:
    packing = Packing.of([c.missing + 1 for c in listed])
    words = [f"k{w}" for w in range(len(packing.words))]
    people: list[exp.Expression] = [] if unit is None else [clauses.alias(table.text(unit), "u")]
    counts = [clauses.alias(clauses.count(), "n"), clauses.alias(clauses.count_distinct("u"), "p")]
    with ExitStack() as stack:
        codes, source, joins = (
            [c.code() for c in listed],
            table.source(),
            [j for c in listed for j in c.joins()],
        )
        if len(joins) > JOINED:
            codes, source = _stored_codes(runner, table, listed, people, stack)
            people, joins = [clauses.column("u") for _ in people], []
        packed = clauses.packed(codes, packing)
        items = [clauses.alias(key, word) for word, key in zip(words, packed, strict=True)]
        query = clauses.select([*items, *people] or [clauses.integer(1)], source, joins=joins)
        if unit is None:
            keys, rows = counted_keys(runner, table, query, words)
            return _Counted(packing, keys, rows, rows)
        found = runner.arrays(clauses.count_by(query, words, *counts), table.parameters)
    keys, rows = [found[w].astype(np.int64) for w in words], found["n"].astype(np.int64)
    order = ascending(keys, len(rows))
    return _Counted(packing, [k[order] for k in keys], rows[order], found["p"].astype(np.int64)[order])


def _stored_codes(
    runner: Runner,
    table: Relation,
    listed: Sequence[_Listed],
    more: Sequence[exp.Expression],
    stack: ExitStack,
) -> tuple[list[exp.Expression], exp.Expression]:
    """The codes of many columns, and where they are stored with `more`: a few dictionaries are joined at a time."""
    values = [clauses.alias(c.raw.copy(), f"v{i}") for i, c in enumerate(listed)]
    rows = clauses.select([*values, *(item.copy() for item in more)], table.source())
    stack.enter_context(runner.stored("coded0", rows, table.parameters))
    by_step = [range(begin, min(begin + JOINED, len(listed))) for begin in range(0, len(listed), JOINED)]
    for step, part in enumerate(by_step):
        there = [replace(listed[i], raw=clauses.column(f"v{i}", "t")) for i in part]
        left = [clauses.column(f"v{i}", "t") for i in range(part.stop, len(listed))]
        done = [clauses.column(f"k{i}", "t") for i in range(part.start)]
        now = [clauses.alias(c.code(), f"k{i}") for i, c in zip(part, there, strict=True)]
        query = clauses.select(
            [*done, *now, *left, *(clauses.column("u", "t") for _ in more)],
            clauses.relation(f"coded{step}", "t"), joins=[join for c in there for join in c.joins()],
        )  # fmt: skip
        stack.enter_context(runner.stored(f"coded{step + 1}", query, {}))
    codes: list[exp.Expression] = [clauses.column(f"k{i}") for i in range(len(listed))]
    return codes, clauses.relation(f"coded{len(by_step)}")


def holds(runner: RowRunner, table: Relation, columns: Sequence[str], rows: Iterable[Recount]) -> bool:
    """Does a table have exactly these rows, in any order? Compares their number and two sums of hashes of 64 bits."""
    pieces = iter(rows)
    first = next(pieces)
    found, planned = list[exp.Expression](), list[exp.Expression]()
    for i, (name, known) in enumerate(zip(columns, first.texts, strict=True)):
        code = clauses.column(f"c{i}", "planned")
        # then numbers are compared: making texts of them takes longer
        whole = table.info(name).type.upper() in SMALL
        if whole:
            found.append(clauses.row_hash(clauses.cast(table.value(name), "BIGINT")))
        else:
            text = table.info(name).kind == "text"
            found.append(clauses.row_hash(passed(runner, table, name) if text else table.text(name)))
        if isinstance(known, np.ndarray):
            planned.append(clauses.row_hash(clauses.cast(code, "BIGINT" if whole else "TEXT")))
        else:
            decode = runner.new_name("planned")
            _store_hashes(runner, known, whole, decode)
            planned.append(runner.lookup(decode, code))
    [there] = runner.rows(clauses.select(_sums(found, clauses.integer(1)), table.source()), table.parameters)
    sums = clauses.select(_sums(planned, clauses.column("n", "planned")), clauses.relation("planned"))
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
    value: exp.Expression = clauses.column("t", "given")
    if whole:
        value = exp.TryCast(this=value, to=exp.DataType.build("BIGINT"))
    items = [clauses.column("k", "given"), clauses.alias(clauses.row_hash(value), "t")]
    with runner.tables({"given": {"k": np.arange(len(texts), dtype=np.int64), "t": texts_of(texts)}}):
        runner.run(clauses.create_table(name, clauses.select(items, clauses.relation("given"))), {})


def _sums(hashes: Sequence[exp.Expression], times: exp.Expression) -> list[exp.Expression]:
    """The number of rows, and two sums of hashes: those of 64-bit numbers, so that they cannot overflow."""
    total: list[exp.Expression] = [exp.Sum(this=clauses.cast(times.copy(), "HUGEINT"))]
    row = clauses.row_hash(*hashes)
    for _ in range(2):  # the hash of a row, and the hash of that
        total.append(exp.Sum(this=exp.Mul(this=clauses.cast(row.copy(), "HUGEINT"), expression=times.copy())))
        row = clauses.row_hash(row)
    return total


def in_order(
    runner: Runner, table: Relation, names: Sequence[str], domains: Sequence[tuple[str, ...]], limit: int
) -> list[Ints]:
    """Per column the code of every row (value i of the domain is i + 1, missing 0), at most `limit` rows."""
    known = dict(zip(names, domains, strict=True))
    found: list[Ints] = []
    for batch in column_batches(runner, table, names):
        found += _codes(runner, table, batch, [known[name] for name in batch], limit)
    return found


def _codes(
    runner: Runner, table: Relation, names: Sequence[str], domains: Sequence[tuple[str, ...]], limit: int
) -> list[Ints]:
    """Codes of columns of one type, by one dictionary (i, v, k) for all of them."""
    row = clauses.alias(table.row_number(), "r")
    few = clauses.select(
        [row, *(clauses.alias(table.stored(n), f"c{table.position(n)}") for n in names)], table.source(),
        order=[table.row_number()], limit=limit,
    )  # fmt: skip
    cells = clauses.select(
        [*below_each_other(table, names), clauses.column("r", "t")], few.subquery("t", copy=False)
    ).subquery("x", copy=False)
    text = table.canonical(names[0], clauses.column("g", "x"))
    texts = clauses.select([*(clauses.column(c, "x") for c in "ir"), clauses.alias(text, "v")], cells)
    same = [clauses.equal(clauses.column(c, "codes"), clauses.column(c, "y")) for c in "iv"]
    code = exp.Coalesce(this=clauses.column("k", "codes"), expressions=[clauses.integer(0)])
    query = clauses.select(
        [clauses.alias(code, "k")], texts.subquery("y", copy=False),
        joins=[clauses.left_join(clauses.relation("codes"), clauses.all_of(same))],
        order=[clauses.column(c, "y") for c in "ir"],
    )  # fmt: skip
    sizes = [len(domain) for domain in domains]
    content = {
        "i": np.repeat(np.arange(len(names), dtype=np.int32), sizes),
        "v": texts_of([value for domain in domains for value in domain]),
        "k": np.concatenate([np.arange(1, n + 1, dtype=np.int64) for n in sizes]),
    }
    with runner.tables({"codes": content}):
        found = np.asarray(runner.arrays(query, table.parameters)["k"]).astype(np.int64)
    return list(found.reshape(len(names), -1))
