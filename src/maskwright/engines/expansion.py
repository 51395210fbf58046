"""Published tables from entries: rows that show the same are interchangeable, so only their order is left to choose.

Without columns that pass through, a release is *expanded* from the plan and no row of the source is read again: the
entries, in the order of what is published of them, are shuffled uniformly by a stream cipher with the secret key.
What is shuffled is a function of the release alone: even somebody who could undo the shuffling would learn nothing.

With such columns, the entry of each row of the source is known (see grouped.py). Both are laid side by side, row by
row, and sorted by a place that is drawn in the same way.

Rows are kept as packed codes; the published table is a query that decodes them while it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from maskwright.core.classes import Ints
from maskwright.core.plan import GroupPlan
from maskwright.engines import sql
from maskwright.engines.base import ColumnInfo
from maskwright.engines.coding import Arrays, RowRunner, Runner, Source, passed, texts_of
from maskwright.engines.keys import Packing, number, totals
from maskwright.engines.recoding import Recoded, label
from maskwright.kernels import randomness
from maskwright.kernels.orders import sorted_by

CHUNK = 1 << 20  # rows that are made at a time
Int32s = NDArray[np.int32]


@dataclass(frozen=True)
class Shown:
    """A column: its values by code, and what each is published as (None: the values, in the type of the source)."""

    name: str
    domain: tuple[str, ...]
    texts: tuple[str | None, ...] | None

    @property
    def radix(self) -> int:
        return len(self.texts) if self.texts is not None else len(self.domain) + 1


@dataclass(frozen=True, eq=False)
class Entries:
    """Distinct published entries, ascending, the group first: `rows[i]` rows show the digits of key i.

    `numbers` has the number of the published entry for everything that the entries were made from.
    """

    columns: tuple[Shown, ...]
    packing: Packing
    keys: list[Ints]
    rows: Ints
    numbers: Ints

    @staticmethod
    def of(
        columns: Sequence[Shown], digits: Sequence[NDArray[np.integer]], groups: Ints, rows: Ints
    ) -> Entries:
        packing = Packing.of([int(groups.max(initial=0)) + 1, *(c.radix for c in columns)])
        keys, numbers = number(packing.pack([groups, *digits]), len(rows))
        return Entries(tuple(columns), packing, keys, totals(numbers, rows, len(keys[0])), numbers)

    def each_row(self) -> Int32s:
        """The number of the entry of every row, in ascending order."""
        return np.repeat(np.arange(len(self.rows), dtype=np.int32), self.rows)

    def groups(self) -> Ints:
        return self.packing.unpack(self.keys, 0)

    def used(self, i: int) -> set[int]:
        """The codes of column i that are published."""
        return set(np.unique(self.packing.unpack(self.keys, i + 1)).tolist())


def of_rows(plan: GroupPlan) -> Entries:
    """What is known of the rows, apart from shuffled values."""
    there = plan.groups > 0
    kept = slice(None) if there.all() else np.flatnonzero(there)  # no copies where nothing is left out
    rows = plan.rows[kept]
    groups = plan.groups[kept] if plan.group_column is not None or plan.blocks else np.zeros_like(rows)
    columns = [Shown(p.name, p.domain, p.texts) for p in plan.published]
    return Entries.of(columns, [p.index[kept] for p in plan.published], groups, rows)


def of_block(plan: GroupPlan, b: int) -> Entries:
    """The values of a block."""
    block = plan.blocks[b]
    columns = [Shown(name, domain, None) for name, domain in zip(block.names, block.domains, strict=True)]
    return Entries.of(columns, list(block.codes), block.groups, block.rows)


def create(
    runner: RowRunner,
    table: Source,
    plan: GroupPlan,
    target: str,
    columns: Sequence[str],
    parts: Sequence[Entries],
    purpose: str,
    of_source: Int32s | None = None,
) -> Recoded:
    """Make the published table. Rows of the parts that are in the same group are matched at random.

    Args:
        runner: the engine.
        table: the source.
        plan: what to publish.
        target: a name for what is stored.
        columns: the columns of this table.
        parts: the entries of the rows, and of the values that are shuffled.
        purpose: names the order of the rows; each table has one of its own.
        of_source: the entry of each row of the source (-1: left out), where columns pass through.
    """
    rng = generator(plan.key, purpose)
    rows = _shuffled(parts, rng) if of_source is None else _beside(parts, of_source, rng)
    runner.fill(f"{target}_rows", rows)
    infos, items, typed = decoded(runner, table, plan, target, columns, parts)
    named = [sql.alias(item, f"c{i}") for i, item in enumerate(items)]
    stored = sql.relation(f"{target}_rows", "x")
    if of_source is None:
        query = sql.select(named, stored)
    else:
        query = sql.side_by_side(named, table.source(), table.row_number(), stored)
    return Recoded(infos, typed, query, dict(table.parameters), of_source is not None)


def decoded(
    runner: Runner,
    table: Source,
    plan: GroupPlan,
    target: str,
    columns: Sequence[str],
    parts: Sequence[Entries],
) -> tuple[tuple[ColumnInfo, ...], list[exp.Expression], frozenset[str]]:
    """What the columns of a table `x` of packed rows show: what each is, its value, and those with the source's type.

    The group comes first, where it is published. What no part knows passes through from the source.
    """
    infos, items = list[ColumnInfo](), list[exp.Expression]()
    if plan.group_column is not None:
        infos.append(ColumnInfo(plan.group_column, "integer", "INTEGER"))
        items.append(sql.cast(sql.digit(parts[0].packing, 0, "x", "p0w"), "INT"))
    place = {c.name: (p, i) for p, part in enumerate(parts) for i, c in enumerate(part.columns)}
    typed = list[str]()
    for position, name in enumerate(columns):
        info = table.info(name)
        if name not in place:
            infos.append(ColumnInfo(name, "text", "VARCHAR") if info.kind == "text" else info)
            items.append(passed(runner, table, name))
            typed.append(name)
            continue
        p, i = place[name]
        shown, decode = parts[p].columns[i], f"{target}_{position}"
        if shown.texts is None:
            typed.append(name)
        plain = shown.texts is not None or info.kind == "text"
        store_texts(runner, table, shown, parts[p].used(i), decode, plain)
        items.append(runner.lookup(decode, sql.digit(parts[p].packing, i + 1, "x", f"p{p}w"), plain))
        infos.append(ColumnInfo(name, "text", "VARCHAR") if plain else info)
    return tuple(infos), items, frozenset(typed)


def store_texts(
    runner: Runner, table: Source, shown: Shown, used: set[int], decode: str, plain: bool
) -> None:
    """A table (k, t) with what is published for each code: texts, or values in the type of the source.

    It holds nothing that is not published: what it holds may be written as a dictionary.
    """
    given = f"{decode}_given"
    if plain:
        known: Sequence[str | None] = shown.texts or (None, *shown.domain)
        texts = [label(text) if code in used else None for code, text in enumerate(known)]
        content: Arrays = {"k": np.arange(len(texts), dtype=np.int64), "t": texts_of(texts)}
        query = sql.select(sql.columns(["k", "t"]), sql.relation(given))
    else:
        codes = np.arange(1, len(shown.domain) + 1, dtype=np.int64)
        content = {"v": texts_of(shown.domain), "k": codes}
        info = table.info(shown.name)
        query = sql.values_of(table.source(), table.raw(shown.name), info, table.parameters, given)
    with runner.tables({given: content}):
        runner.run(sql.create_table(decode, query), table.parameters)


def _shuffled(parts: Sequence[Entries], rng: np.random.Generator) -> Iterator[Arrays]:
    """The words of all parts, row by row in random order: `p0w0`, `p0w1` … `p1w0` …"""
    rows = [part.each_row() for part in parts]
    n = len(rows[0])
    if len(parts) == 1:
        rng.shuffle(rows[0])
        return _words(parts, rows, n)
    for p in range(1, len(parts)):
        rows[p] = shuffled_within(parts[p].groups()[rows[p]], rows[p], rng)
    return _words(parts, rows, n, permutation(n, rng))


def _beside(parts: Sequence[Entries], of_source: Int32s, rng: np.random.Generator) -> Iterator[Arrays]:
    """The words of all parts for the rows of the source in their order, and the `place` of each (-1: left out)."""
    kept = np.flatnonzero(of_source >= 0).astype(np.int32)
    rows = [np.maximum(of_source, 0)]
    if len(parts) > 1:
        group = parts[0].groups()[of_source[kept]].astype(np.int32)
        by_group = kept[sorted_by(group, int(group.max(initial=0)) + 1)]
    for part in parts[1:]:
        # rows of a group in any order, because its values are in random order
        entries = part.each_row()
        values = np.zeros(len(of_source), dtype=np.int32)
        values[by_group] = shuffled_within(part.groups()[entries], entries, rng)
        rows.append(values)
    place = np.full(len(of_source), -1, dtype=np.int32)
    place[kept] = permutation(len(kept), rng)
    return _words(parts, rows, len(of_source), place=place)


def _words(
    parts: Sequence[Entries],
    rows: Sequence[Int32s],
    n: int,
    order: Int32s | None = None,
    place: Int32s | None = None,
) -> Iterator[Arrays]:
    """The keys of the entries of all rows, chunk by chunk."""
    for begin in range(0, max(n, 1), CHUNK):
        chunk = slice(begin, begin + CHUNK)
        here = chunk if order is None else order[chunk]
        words = {
            f"p{p}w{w}": key[rows[p][here]] for p, part in enumerate(parts) for w, key in enumerate(part.keys)
        }
        yield words if place is None else words | {"place": place[chunk]}


def reordered(runner: RowRunner, target: str, recoded: Recoded, key: str) -> Recoded:
    """Rows stored under the name `target`, in random order."""
    [(n,)] = runner.rows(sql.select([sql.count()], sql.relation(target)), {})
    place = permutation(n, generator(key, "order of rows"))
    chunks = ({"place": place[begin : begin + CHUNK]} for begin in range(0, max(n, 1), CHUNK))
    runner.fill(f"{target}_rows", chunks)
    items = [sql.column(f"c{i}", "t") for i in range(len(recoded.columns))]
    stored, row = sql.relation(target, "t"), sql.column("rowid", "t")
    query = sql.side_by_side(items, stored, row, sql.relation(f"{target}_rows", "x"))
    return replace(recoded, query=query, sorts=True)


def permutation(n: int, rng: np.random.Generator) -> Int32s:
    """The numbers below n in random order, four bytes each."""
    numbers = np.arange(n, dtype=np.int32)
    rng.shuffle(numbers)
    return numbers


def shuffled_within(groups: NDArray[np.integer], values: Int32s, rng: np.random.Generator) -> Int32s:
    """Values shuffled inside their groups, which are ascending: a shuffle of all, sorted back by group."""
    order = permutation(len(groups), rng)
    sorting = sorted_by(groups.astype(np.int32)[order], int(groups.max(initial=0)) + 1)
    result: Int32s = values[order[sorting]]
    return result


def generator(key: str, purpose: str) -> np.random.Generator:
    """Random choices of their own for each purpose."""
    return randomness.generator(key.encode(), purpose)
