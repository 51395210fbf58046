"""Releases without columns that pass through are *expanded* from the plan: no row of the source is read again.

Rows with the same published values are interchangeable, so all that is left to choose is the order of the rows, and for
shuffled values who gets which. Entries are first put in the order of what is published of them, and then shuffled
uniformly with a generator seeded by the secret key. What is shuffled is a function of the release alone: even somebody
who could undo the shuffling would learn nothing.

Rows are kept as packed codes; the published table is a view that decodes them while it is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from maskwright.core.classes import Ints
from maskwright.core.plan import GroupPlan
from maskwright.engines import sql
from maskwright.engines.base import ColumnInfo
from maskwright.engines.coding import Arrays, Runner, Source, texts_of
from maskwright.engines.keys import Packing, number
from maskwright.engines.matching import matched
from maskwright.engines.recoding import Recoded, label

CHUNK = 1 << 20  # rows that are made at a time


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
    """Distinct published entries, ascending, the group first: `rows[i]` rows show the digits of key i."""

    columns: tuple[Shown, ...]
    packing: Packing
    keys: list[Ints]
    rows: Ints

    @staticmethod
    def of(
        columns: Sequence[Shown], digits: Sequence[NDArray[np.integer]], groups: Ints, rows: Ints
    ) -> Entries:
        packing = Packing.of([int(groups.max(initial=0)) + 1, *(c.radix for c in columns)])
        keys, numbers = number(packing.pack([groups, *digits]), len(rows))
        total = np.zeros(len(keys[0]), dtype=np.int64)
        np.add.at(total, numbers, rows)
        return Entries(tuple(columns), packing, keys, total)

    def each_row(self) -> NDArray[np.int32]:
        """The number of the entry of every row, in ascending order."""
        return np.repeat(np.arange(len(self.rows), dtype=np.int32), self.rows)

    def groups(self) -> Ints:
        return self.packing.unpack(self.keys, 0)


def of_rows(plan: GroupPlan) -> Entries:
    """What is known of the rows, apart from shuffled values."""
    kept = np.flatnonzero(plan.groups > 0)
    groups = plan.groups[kept] if plan.group_column is not None or plan.blocks else np.zeros_like(kept)
    columns = [Shown(p.name, p.domain, p.texts) for p in plan.published]
    return Entries.of(columns, [p.index[kept] for p in plan.published], groups, plan.rows[kept])


def of_block(plan: GroupPlan, b: int) -> Entries:
    """The values of a block."""
    block = plan.blocks[b]
    columns = [Shown(name, domain, None) for name, domain in zip(block.names, block.domains, strict=True)]
    return Entries.of(columns, list(block.codes), block.groups, block.rows)


def create(
    runner: Runner,
    table: Source,
    plan: GroupPlan,
    target: str,
    columns: Sequence[str],
    parts: Sequence[Entries],
    purpose: str,
) -> Recoded:
    """Create the view `target`. Rows of the parts that are in the same group are matched at random."""
    if runner.distributed:
        matched(runner, f"{target}_rows", parts, plan.key, purpose)
    else:
        runner.fill(f"{target}_rows", _shuffled(parts, _generator(plan.key, purpose)))
    infos, items = [], list[exp.Expression]()
    if plan.group_column is not None:
        infos.append(ColumnInfo(plan.group_column, "integer", "INTEGER"))
        items.append(sql.cast(sql.digit(parts[0].packing, 0, "x", "p0w"), "INT"))
    place = {c.name: (p, i) for p, part in enumerate(parts) for i, c in enumerate(part.columns)}
    typed = []
    for position, name in enumerate(columns):
        p, i = place[name]
        shown, info, decode = parts[p].columns[i], table.info(name), f"{target}_{position}"
        if shown.texts is None:
            typed.append(name)
        plain = shown.texts is not None or info.kind == "text"
        _store_texts(runner, table, shown, decode, plain)
        items.append(runner.lookup(decode, sql.digit(parts[p].packing, i + 1, "x", f"p{p}w")))
        infos.append(ColumnInfo(name, "text", "VARCHAR") if plain else info)
    named = [sql.alias(item, f"c{i}") for i, item in enumerate(items)]
    query = sql.select(named, sql.relation(f"{target}_rows", "x"))
    runner.run(sql.create_table(target, query, kind="VIEW"), {})
    return Recoded(tuple(infos), frozenset(typed))


def _store_texts(runner: Runner, table: Source, shown: Shown, decode: str, plain: bool) -> None:
    """A table (k, t) with what is published for each code: texts, or values in the type of the source."""
    given = f"{decode}_given"
    if plain:
        texts = [label(text) for text in shown.texts or (None, *shown.domain)]
        content: Arrays = {"k": np.arange(len(texts), dtype=np.int64), "t": texts_of(texts)}
        query = sql.select(sql.columns(["k", "t"]), sql.relation(given))
    else:
        known = np.arange(1, len(shown.domain) + 1, dtype=np.int64)
        content = {"v": texts_of(shown.domain), "k": known}
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
        order: slice | NDArray[Any] = slice(None)
    else:
        for p in range(1, len(parts)):
            rows[p] = shuffled_within(parts[p].groups()[rows[p]], rows[p], rng)
        order = rng.permutation(n)
    for begin in range(0, max(n, 1), CHUNK):
        here = slice(begin, begin + CHUNK) if isinstance(order, slice) else order[begin : begin + CHUNK]
        yield {
            f"p{p}w{w}": key[rows[p][here]] for p, part in enumerate(parts) for w, key in enumerate(part.keys)
        }


def shuffled_within(groups: Ints, values: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
    """Values shuffled inside their groups, which are ascending: a shuffle of all, sorted back by group."""
    n = len(groups)
    order = rng.permutation(n)
    keys = groups[order] * n + np.arange(n)
    keys.sort()
    result: NDArray[np.int32] = values[order[keys % n]]
    return result


def _generator(key: str, purpose: str) -> np.random.Generator:
    """A generator of its own for each purpose, with all 256 bits of the key."""
    entropy = int.from_bytes(hashlib.sha256(purpose.encode() + b"\0" + key.encode()).digest())
    return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(entropy, pool_size=8)))
