"""Published tables from entries: rows that show the same are interchangeable, so only their order is left to choose.

Without columns that pass through, a release is *expanded* from the plan and no row of the source is read again: the
entries, in the order of what is published of them, are shuffled uniformly by a stream cipher with the secret key.
What is shuffled is a function of the release alone: even somebody who could undo the shuffling would learn nothing.

With such columns, the unit of each row of the source is looked up, and the entries of a unit are dealt to its rows at
random. Both are laid side by side, row by row, and sorted by a place that is drawn in the same way.

Rows are kept as packed codes; the published table is a query that decodes them while it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount, sorted_distinct
from maskwright.domain.recoding_plan import GroupPlan, PublishedColumn
from maskwright.engines.base import ColumnInfo
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Arrays, Coded, Relation, RowRunner, Runner, texts_of
from maskwright.engines.sql.packed_keys import KeyDigits, Packing, number, numbered
from maskwright.engines.sql.passing import member, passed_texts, texts_of_rows
from maskwright.engines.sql.recoding import Recoded, label
from maskwright.errors import InputError
from maskwright.kernels import randomness
from maskwright.kernels.randomness import shuffle_within
from maskwright.kernels.tuple_orders import items_of_owners

CHUNK = 1 << 20  # rows that are made at a time
SLICE = 1 << 22  # rows that are fetched at a time
MOST = 2**31 - 1  # rows are numbered with four bytes
Int32s = NDArray[np.int32]


@dataclass(frozen=True)
class ShownColumn:
    """A column: its values by code, and what each is published as (None: the values, in the type of the source)."""

    name: str
    domain: tuple[str, ...]
    texts: tuple[str | None, ...] | None

    @property
    def radix(self) -> int:
        """The number of different entries of the column."""
        return len(self.texts) if self.texts is not None else len(self.domain) + 1


@dataclass(frozen=True, eq=False)
class PublishedEntries:
    """Distinct published entries, ascending, the group first: `rows[i]` rows show the digits of key i.

    `numbers` has the number of the published entry for everything that the entries were made from.
    """

    columns: tuple[ShownColumn, ...]
    packing: Packing
    keys: list[Ints]
    rows: Ints
    numbers: Int32s

    @staticmethod
    def of(columns: Sequence[ShownColumn], digits: KeyDigits, rows: Ints) -> PublishedEntries:
        """`digits` has the groups first, then those of the columns."""
        packing = Packing.of([int(digits[0].max(initial=0)) + 1, *(c.radix for c in columns)])
        keys, numbers = number(packing.pack(digits), len(rows))
        return PublishedEntries(
            tuple(columns),
            packing,
            keys,
            exact_bincount(numbers, rows, len(keys[0])),
            numbers.astype(np.int32),
        )

    def each_row(self) -> Int32s:
        """The number of the entry of every row, in ascending order."""
        return np.repeat(np.arange(len(self.rows), dtype=np.int32), self.rows)

    def groups(self) -> Ints:
        """The group of each entry."""
        return self.packing.unpack(self.keys, 0)

    def starts(self) -> Ints:
        """Where the rows of each group begin in `each_row`, and where the last of them end."""
        first = np.flatnonzero(np.diff(self.groups(), prepend=-1))
        return np.append((np.cumsum(self.rows) - self.rows)[first], self.rows.sum())

    def each_value(self, rng: np.random.Generator) -> Int32s:
        """The entries of all rows, group by group, in random order inside each group."""
        values = self.each_row()
        shuffle_within(rng, values, self.starts())
        return values

    def used(self, i: int) -> set[int]:
        """The codes of column i that are published."""
        return set(sorted_distinct(self.packing.unpack(self.keys, i + 1)).tolist())


def of_rows(plan: GroupPlan) -> PublishedEntries:
    """What is known of the rows, apart from shuffled values."""
    there = plan.groups > 0
    kept = slice(None) if there.all() else np.flatnonzero(there)  # no copies where nothing is left out
    groups = plan.groups[kept]
    if plan.group_column is None and not plan.blocks:
        groups = np.zeros_like(groups)
    columns = [ShownColumn(p.name, p.domain, p.texts) for p in plan.published]
    return PublishedEntries.of(columns, _OfEntries(groups, plan.published, kept), plan.rows[kept])


@dataclass(frozen=True, eq=False)
class _OfEntries:
    """The group of some entries, then what each column shows of them: made one by one, because all are large."""

    groups: Int32s
    published: Sequence[PublishedColumn]
    kept: NDArray[np.integer] | slice

    def __getitem__(self, i: int) -> NDArray[np.integer]:
        return self.groups if i == 0 else self.published[i - 1].shown(self.kept)


def of_block(plan: GroupPlan, b: int) -> PublishedEntries:
    """The values of a block."""
    block = plan.blocks[b]
    columns = [
        ShownColumn(name, domain, None) for name, domain in zip(block.names, block.domains, strict=True)
    ]
    return PublishedEntries.of(columns, [block.groups, *block.codes], block.rows)


def create(
    runner: RowRunner,
    table: Relation,
    plan: GroupPlan,
    target: str,
    columns: Sequence[str],
    parts: Sequence[PublishedEntries],
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
    if of_source is not None:
        purpose += "\0" + in_their_order(
            runner, table.source(), table.row_number(), [table.raw(n) for n in plan.passed], table.parameters
        )
    rng = generator(plan.key, purpose)
    rows = _shuffled(parts, rng) if of_source is None else _beside(parts, of_source, rng)
    runner.fill(f"{target}_rows", rows)
    passing = {}
    if of_source is not None:
        all_there = bool((of_source >= 0).all())
        known = {c.name for part in parts for c in part.columns}
        places = {name: position for position, name in enumerate(columns) if name not in known}
        passing = {
            name: _passing(
                runner, table, value, texts, (f"{target}_{places[name]}", f"{target}_rows"), all_there
            )
            for name, (value, texts) in passed_texts(runner, table, list(places)).items()
        }
    infos, items, typed = decoded(runner, table, plan, target, columns, parts, passing)
    named = [clauses.alias(item, f"c{i}") for i, item in enumerate(items)]
    stored = clauses.relation(f"{target}_rows", "x")
    if of_source is None:
        query = clauses.select(named, stored)
    else:
        query = clauses.side_by_side(named, table.source(), table.row_number(), stored)
    return Recoded(infos, typed, query, dict(table.parameters), of_source is not None, (f"{target}_rows",))


def _passing(
    runner: RowRunner,
    table: Relation,
    value: exp.Expression,
    texts: list[str],
    names: tuple[str, str],
    all_there: bool,
) -> exp.Expression:
    """What a column shows that passes through.

    The second of the names is that of a table that says which rows of the source are left out, the first for a type.
    """
    if texts and not all_there:
        stored = clauses.relation(names[1], "x")
        query = clauses.side_by_side(
            [value.copy()], table.source(), table.row_number(), stored, ordered=False
        )
        texts = texts_of_rows(runner, query, table.parameters)
    return member(runner, names[0], texts, value)


def decoded(
    runner: Runner,
    table: Relation,
    plan: GroupPlan,
    target: str,
    columns: Sequence[str],
    parts: Sequence[PublishedEntries],
    passing: Mapping[str, exp.Expression],
) -> tuple[tuple[ColumnInfo, ...], list[exp.Expression], frozenset[str]]:
    """What the columns of a table `x` of packed rows show: what each is, its value, and those with the source's type.

    The group comes first, where it is published. What no part knows is `passing` through from the source.
    """
    infos, items = list[ColumnInfo](), list[exp.Expression]()
    if plan.group_column is not None:
        infos.append(ColumnInfo(plan.group_column, "integer", "INTEGER"))
        items.append(clauses.cast(clauses.digit(parts[0].packing, 0, "x", "p0w"), "INT"))
    place = {c.name: (p, i) for p, part in enumerate(parts) for i, c in enumerate(part.columns)}
    typed = list[str]()
    for position, name in enumerate(columns):
        info = table.info(name)
        if name not in place:
            infos.append(ColumnInfo(name, "text", "VARCHAR") if info.kind == "text" else info)
            items.append(passing[name])
            typed.append(name)
            continue
        p, i = place[name]
        shown, decode = parts[p].columns[i], f"{target}_{position}"
        if shown.texts is None:
            typed.append(name)
        plain = shown.texts is not None or info.kind == "text"
        code = clauses.digit(parts[p].packing, i + 1, "x", f"p{p}w")
        items.append(looked_up(runner, table, shown, parts[p].used(i), code, decode, plain))
        infos.append(ColumnInfo(name, "text", "VARCHAR") if plain else info)
    return tuple(infos), items, frozenset(typed)


def looked_up(
    runner: Runner,
    table: Relation,
    shown: ShownColumn,
    used: set[int],
    code: exp.Expression,
    decode: str,
    plain: bool,
) -> exp.Expression:
    """What is published for a code: texts (`plain`), or values in the type of the source.

    What is stored for that, under the name `decode`, holds nothing that is not published: it may be written as a
    dictionary.
    """
    if plain:
        known: Sequence[str | None] = shown.texts or (None, *shown.domain)
        texts = [label(text) if k in used else None for k, text in enumerate(known)]
        return runner.lookup_text(decode, texts, code, published=True)
    given, info = f"{decode}_given", table.info(shown.name)
    content = {
        "v": texts_of(shown.domain),
        "k": np.arange(1, len(shown.domain) + 1, dtype=np.int64),
    }
    query = clauses.values_of(table.source(), table.raw(shown.name), info, table.parameters, given)
    with runner.tables({given: content}):
        runner.run(clauses.create_table(decode, query), table.parameters)
    return runner.lookup(decode, code)


def _shuffled(parts: Sequence[PublishedEntries], rng: np.random.Generator) -> Iterator[Arrays]:
    """The words of all parts, row by row in random order: `p0w0`, `p0w1` … `p1w0` …"""
    first = parts[0].each_row()
    if len(parts) == 1:
        shuffle_within(rng, first, np.array([0, len(first)]))
        return _words(parts, [first], len(first))
    rows = [first, *(part.each_value(rng) for part in parts[1:])]
    return _words(parts, rows, len(first), permutation(len(first), rng))


def _beside(
    parts: Sequence[PublishedEntries], of_source: Int32s, rng: np.random.Generator
) -> Iterator[Arrays]:
    """The words of all parts for the rows of the source in their order, and the `place` of each (-1: left out)."""
    group = np.append(numbered([parts[0].groups()], len(parts[0].rows))[1], -1).astype(np.int32)
    # the rows of a group take its values as they come, because those are in random order
    values = [items_of_owners(group[of_source], part.starts(), part.each_value(rng)) for part in parts[1:]]
    there = of_source >= 0
    place = permutation(int(np.count_nonzero(there)), rng)
    if not there.all():
        some, place = place, np.full(len(of_source), -1, dtype=np.int32)
        place[there] = some
    return _words(parts, [of_source, *values], len(of_source), place=place)


def _words(
    parts: Sequence[PublishedEntries],
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
    """Rows stored under the name `target` with their numbers `r`, in random order."""
    stored, number = clauses.relation(target, "t"), clauses.column("r", "t")
    columns = [clauses.column(f"c{i}", "t") for i in range(len(recoded.columns))]
    before = in_their_order(runner, stored.copy(), number.copy(), columns, {})
    place = _places_of(runner, target, generator(key, f"order of rows\0{before}"))
    chunks = ({"place": place[part["r"]]} for part in runner.slices(target, ["r"], CHUNK))
    runner.fill(f"{target}_rows", chunks)
    row = clauses.column("rowid", "t")
    query = clauses.side_by_side(
        recoded.query.expressions, stored, row, clauses.relation(f"{target}_rows", "x")
    )
    return replace(recoded, query=query, sorts=True, stored=(target, f"{target}_rows"))


def _places_of(runner: RowRunner, target: str, rng: np.random.Generator) -> Int32s:
    """By the number of a row in the source, its place in the random order of those that are stored."""
    most = exp.Max(this=clauses.column("r"))
    [(n, last)] = runner.rows(clauses.select([clauses.count(), most], clauses.relation(target)), {})
    if n == 0 or last + 1 == n:  # nobody is left out
        return permutation(n, rng)
    there = np.zeros(last + 1, dtype=bool)
    for part in runner.slices(target, ["r"], CHUNK):
        there[part["r"]] = True
    place = np.zeros(last + 1, dtype=np.int32)
    place[there] = permutation(n, rng)
    return place


def in_their_order(
    runner: RowRunner,
    source: exp.Expression,
    row: exp.Expression,
    columns: Sequence[exp.Expression],
    parameters: Mapping[str, Any],
) -> str:
    """Tells orders of the same rows apart: published by the same key, each would give the other away."""
    content = clauses.row_hash(row, *columns)
    total = exp.Sum(this=clauses.cast(content, "HUGEINT"))  # of 64-bit numbers: it cannot overflow
    [(found,)] = runner.rows(clauses.select([total], source), parameters)
    return str(found)


def permutation(n: int, rng: np.random.Generator) -> Int32s:
    """The numbers below n in random order, four bytes each."""
    numbers = np.arange(n, dtype=np.int32)
    shuffle_within(rng, numbers, np.array([0, n]))
    return numbers


def generator(key: str, purpose: str) -> np.random.Generator:
    """Random choices of their own for each purpose."""
    return randomness.random_generator(key.encode(), purpose)


def recode_groups(runner: RowRunner, table: Relation, plan: GroupPlan, target: str) -> Recoded:
    """One table. Shuffled values find their rows by the group."""
    rows = of_rows(plan)
    parts = [rows, *(of_block(plan, b) for b in range(len(plan.blocks)))]
    of_source = _of_source(runner, table, plan, rows) if plan.passed else None
    return create(runner, table, plan, target, plan.columns, parts, "order of rows", of_source)


def bucketize_groups(
    runner: RowRunner, table: Relation, plan: GroupPlan, targets: tuple[str, str]
) -> list[Recoded]:
    """Two tables that have nothing but the group in common: each is in an order of its own."""
    others, inside = plan.split_columns()
    rows = of_rows(plan)
    of_source = _of_source(runner, table, plan, rows) if plan.passed else None
    purpose = "order of quasi-identifiers"
    first = create(runner, table, plan, targets[0], others, [rows], purpose, of_source)
    values = [of_block(plan, b) for b in range(len(plan.blocks))]
    purpose = "order of sensitive values"
    return [first, create(runner, table, plan, targets[1], inside, values, purpose)]


def _of_source(runner: RowRunner, table: Relation, plan: GroupPlan, shown: PublishedEntries) -> Int32s:
    """The published entry of every row of the source; -1: it is left out."""
    splits = plan.splits_units
    rows, unit, n = _units(runner, table, plan, by_content=splits)
    published = np.full(len(plan.groups), -1, dtype=np.int32)
    published[plan.groups > 0] = shown.numbers
    # one entry for every row, unit by unit and in random order inside each; the rows of a unit take them as they come
    entries = np.repeat(published, plan.rows)
    start = np.append(0, np.cumsum(exact_bincount(plan.unit, plan.rows, plan.units.codes.shape[1])))
    if splits:  # otherwise all rows of a unit are in one entry
        shuffle_within(generator(plan.dealing_key, "rows of a unit"), entries, start)
    try:
        entry = items_of_owners(unit, start, entries)
    except ValueError:
        raise _changed() from None
    if rows is None:
        return entry
    of_source = np.full(n, -1, dtype=np.int32)
    of_source[rows] = entry
    return of_source


def _units(
    runner: RowRunner, table: Relation, plan: GroupPlan, by_content: bool
) -> tuple[Int32s | None, Int32s, int]:
    """The unit of every row of the source (-1: it is in none, because a value is missing), and how many rows there are.

    `by_content`: the numbers of the rows that are in a unit, and their units, in the order of a hash of what passes
    through. Then whoever puts the rows of the input into another order does not change which of them come together.
    """
    coded = Coded.of(table, plan.units.names, plan.units.domains)
    packing = Packing.of(coded.radices)
    keys = {f"k{w}": key for w, key in enumerate(packing.pack(plan.units.codes))}
    units = keys | {"unit": np.arange(plan.units.codes.shape[1], dtype=np.int32)}
    words = clauses.packed([coded.code(i) for i in range(len(coded.names))], packing)
    same = [clauses.equal(clauses.column(f"k{w}", "u"), word) for w, word in enumerate(words)]
    query = clauses.select(
        [clauses.alias(clauses.cast(table.row_number(), "INT"), "id"), clauses.column("unit", "u")],
        table.source(),
        joins=[
            *coded.joins(),
            exp.Join(this=clauses.relation("u"), on=clauses.all_of(same) if same else exp.true()),
        ],
        where=[clauses.not_null(table.value(name)) for name in plan.drop_missing],
        tables=coded.tables(),
        order=[_content(table, plan), table.row_number()] if by_content else [],
    )
    [(n,)] = runner.rows(clauses.select([clauses.count()], table.source()), table.parameters)
    if n > MOST:
        raise InputError(f"{n:,} rows are more than this engine numbers; use --engine spark")
    with coded.at_hand(runner, {"u": units}), runner.stored("units", query, table.parameters):
        if by_content:
            parts = list(runner.slices("units", ["id", "unit"], SLICE))
            rows, unit = (np.concatenate([part[name] for part in parts]) for name in ("id", "unit"))
            return rows, unit, n
        unit = np.full(n, -1, dtype=np.int32)
        for part in runner.slices("units", ["id", "unit"], SLICE):
            unit[part["id"]] = part["unit"]
    return None, unit, n


def _content(table: Relation, plan: GroupPlan) -> exp.Expression:
    """A hash of what a row shows by itself: rows with the same are interchangeable."""
    return clauses.row_hash(*(table.text(name) for name in plan.passed))


def _changed() -> InputError:
    return InputError("the table is not the one that was counted: it changed while it was read; start again")
