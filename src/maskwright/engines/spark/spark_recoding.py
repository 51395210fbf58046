"""Recoding on Spark. Full-domain: the labels of a level come with the codes of its values; rows have no order here.

By groups: a row shows what is known of its entry in the plan, and what passes through.

Rows of a unit are interchangeable but for the columns that pass through. Without such columns no row is read again
(`_create_expanded`): every entry is repeated, and shuffled values find rows by their place. With them, each row of a
unit is given a number in it by a keyed hash, and so an entry, a group, and a place in the group.

The places of a group are consecutive numbers. Rows take them in the order of the entries, values in an order that is
drawn with a key: so each assignment of the values of a group to its rows is equally likely.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from maskwright.domain.classes import Ints
from maskwright.domain.hierarchy import TOP
from maskwright.domain.recoding_plan import ColumnMap, GroupPlan, Plan, ShuffledBlock
from maskwright.engines.base import ColumnInfo
from maskwright.engines.spark.runner import SparkRunner
from maskwright.engines.spark.spark_opening import SparkCoded, SparkTable
from maskwright.engines.sql import clauses, expansion
from maskwright.engines.sql.coded_columns import Arrays, Runner
from maskwright.engines.sql.expansion import PublishedEntries, decoded
from maskwright.engines.sql.packed_keys import Packing
from maskwright.engines.sql.recoding import SUPPRESSED, kept_rows, label, maps_with_codes, with_their_type

if TYPE_CHECKING:
    from maskwright.engines.sql.expansion import PublishedEntries


@dataclass(frozen=True)
class RecodedView:
    """The columns of the published table, and those among them that keep the type of the source.

    `times`: a further column, which says how many rows each one stands for.
    """

    columns: tuple[ColumnInfo, ...]
    typed: frozenset[str]
    times: str | None = None


def recode_columns(runner: SparkRunner, table: SparkTable, plan: Plan, target: str) -> RecodedView:
    """Create the view `target`."""
    by_name, maps = plan.by_name, maps_with_codes(plan, table)
    coded = SparkCoded(
        table,
        tuple(m.hierarchy.attribute for m in maps),
        tuple(m.hierarchy.values for m in maps),
        tuple(tuple(map(label, m.texts[1:])) for m in maps),
    )
    parameters = {**table.parameters}
    parameters |= {f"missing{i}": label(m.texts[0]) for i, m in enumerate(maps)}
    columns, items = [], []
    for position, name in enumerate(plan.columns):
        value, info = _published(table, coded, name, by_name.get(name), plan.stars)
        columns.append(info)
        items.append(clauses.alias(value, f"c{position}"))

    joins, where, content = kept_rows(plan, table, coded)
    query = clauses.select(items, table.source(), joins=joins, where=where)
    with runner.tables(content):
        runner.run(clauses.create_table(target, query), parameters)
    return RecodedView(tuple(columns), with_their_type(plan))


def _published(
    table: SparkTable, coded: SparkCoded, name: str, map_: ColumnMap | None, stars: bool
) -> tuple[exp.Expression, ColumnInfo]:
    """What is published of a column, and what that is: text, unless the column keeps its type."""
    info = table.info(name)
    if map_ is None or (map_.identity and info.kind != "text"):
        value = table.text(name) if stars and map_ else table.value(name)
    else:
        i = coded.names.index(name)
        missing = clauses.cast(clauses.parameter(f"missing{i}"), "TEXT")
        value = clauses.case(
            (clauses.equal(coded.code(i), clauses.integer(0)), missing), otherwise=coded.label(i)
        )
    if stars and map_:
        value = clauses.case(
            (clauses.not_null(clauses.column("k0", SUPPRESSED)), exp.Literal.string(TOP)), otherwise=value
        )
    if map_ is None or (map_.identity and not stars):
        return value, info if info.kind != "text" else ColumnInfo(name, "text", "VARCHAR")
    return value, ColumnInfo(name, "text", "VARCHAR")


ROWS = "x"  # the rows to publish: group `g`, `place`, packed codes w0 …, what passes p0 …
TIMES = "n"  # how many rows an entry stands for
PIECE = 1 << 14  # rows that a run has at most: each is a list for a moment


def recode_groups(runner: SparkRunner, table: SparkTable, plan: GroupPlan, target: str) -> RecodedView:
    """Create one table. Shuffled values find their rows by the place in the group."""
    if not plan.passed:
        parts = [expansion.of_rows(plan), *(expansion.of_block(plan, b) for b in range(len(plan.blocks)))]
        return _create_expanded(runner, table, plan, target, plan.columns, parts, "order of rows")
    draft = _GroupQuery(table, plan)
    draft.rows = _rows(draft, places=bool(plan.blocks))
    for b in range(len(plan.blocks)):
        draft.join_block(b)
    return draft.create(runner, target, plan.columns)


def bucketize_groups(
    runner: SparkRunner, table: SparkTable, plan: GroupPlan, targets: tuple[str, str]
) -> list[RecodedView]:
    """Create two tables that have nothing but the group in common: each is in an order of its own."""
    others, inside = plan.split_columns()
    purpose = "order of quasi-identifiers"
    if plan.passed:
        draft = _GroupQuery(table, plan)
        draft.rows = _rows(draft, places=False)
        first = draft.create(runner, targets[0], others)
    else:
        entries = [expansion.of_rows(plan)]
        first = _create_expanded(runner, table, plan, targets[0], others, entries, purpose)
    values = [expansion.of_block(plan, b) for b in range(len(plan.blocks))]
    purpose = "order of sensitive values"
    return [first, _create_expanded(runner, table, plan, targets[1], inside, values, purpose)]


@dataclass(frozen=True)
class _Code:
    """Where the code of a column is, what it stands for, and the codes that are published."""

    table: str
    packing: Packing
    digit: int
    shown: expansion.ShownColumn
    used: set[int]


@dataclass
class _GroupQuery:
    """A query in the making: its rows, and the tables and keys that it needs."""

    table: SparkTable
    plan: GroupPlan
    rows: exp.Select = field(default_factory=exp.Select)
    codes: dict[str, _Code] = field(default_factory=dict)
    joins: list[exp.Join] = field(default_factory=list)
    content: dict[str, Arrays] = field(default_factory=dict)  # arrays as tables
    parameters: dict[str, Any] = field(default_factory=dict)

    def key(self, name: str, purpose: str, secret: str) -> str:
        """Keep a key of its own for a purpose as a parameter; gives the parameter's name."""
        self.parameters[name] = derived_key(secret, purpose)
        return name

    def join_block(self, b: int) -> None:
        """Give every row the values that were drawn for its place."""
        name = f"b{b}"
        same = clauses.equal(clauses.column("place", name), clauses.column("place", ROWS))
        self.joins.append(clauses.left_join(_block_values(self, b).subquery(name, copy=False), same))

    def create(self, runner: SparkRunner, target: str, columns: Sequence[str]) -> RecodedView:
        """Create the view `target`, its columns called c0, c1 …"""
        self.parameters |= self.table.parameters
        infos, items = [], list[exp.Expression]()
        if self.plan.group_column is not None:
            infos.append(ColumnInfo(self.plan.group_column, "integer", "INTEGER"))
            items.append(clauses.column("g", ROWS))
        for name in columns:
            value, info = self._published(runner, target, name)
            infos.append(info)
            items.append(value)
        query = clauses.select(
            [clauses.alias(item, f"c{i}") for i, item in enumerate(items)],
            self.rows.subquery(ROWS, copy=False),
            joins=self.joins,
        )
        _sorted_joins(query, *(f"b{b}" for b in range(len(self.joins))))
        with runner.tables(self.content):
            runner.run(clauses.create_table(target, query), self.parameters)
        typed = (n for n in columns if n not in self.codes or self.codes[n].shown.texts is None)
        return RecodedView(tuple(infos), frozenset(typed))

    def _published(self, runner: SparkRunner, target: str, name: str) -> tuple[exp.Expression, ColumnInfo]:
        """What is published of a column, and what that is."""
        info = self.table.info(name)
        plain = ColumnInfo(name, "text", "VARCHAR")
        if name not in self.codes:
            number = self.plan.passed.index(name)
            return clauses.column(f"p{number}", ROWS), plain if info.kind == "text" else info
        code, plain_text = self.codes[name], info.kind == "text" or self.codes[name].shown.texts is not None
        decode = f"{target}_{self.table.position(name)}"
        digit = clauses.digit(code.packing, code.digit, code.table)
        value = expansion.looked_up(runner, self.table, code.shown, code.used, digit, decode, plain_text)
        return value, plain if plain_text else info


# --- rows of the quasi-identifiers --------------------------------------------------------------------


def _rows(draft: _GroupQuery, places: bool) -> exp.Select:
    """Every published row with its entry; `places`: also with its place in the group."""
    plan = draft.plan
    kept = np.flatnonzero(plan.groups > 0)
    radices = [len(p.texts) if p.texts is not None else len(p.domain) + 1 for p in plan.published]
    packing = Packing.of(radices)
    shown = [p.shown(kept) for p in plan.published]
    for i, p in enumerate(plan.published):
        used = set(np.unique(shown[i]).tolist())
        draft.codes[p.name] = _Code(ROWS, packing, i, expansion.ShownColumn(p.name, p.domain, p.texts), used)
    known: dict[str, NDArray[Any]] = {"g": plan.groups[kept].astype(np.int32)}
    known |= {f"w{w}": word for w, word in enumerate(packing.pack(shown))}
    rows, lo = plan.rows[kept], _before(plan.rows)
    names = list(known)
    if not places and not plan.splits_units:
        return _whole_units(draft, plan.unit[kept], known)
    first = {"first": _first_numbers(plan.groups[kept], rows)} if places else {}
    draft.content["runs"] = _in_pieces({"lo": lo[kept], "n": rows, **known, **first}, ("lo", "first"))
    copies = _repeated_rows("runs", "n").subquery("r", copy=False)
    items: list[exp.Expression] = [
        clauses.alias(_plus("lo", "i", "r"), "id"),
        *(clauses.column(n, "r") for n in names),
    ]
    if places:
        items.append(clauses.alias(_plus("first", "i", "r"), "place"))
    expanded = clauses.select(items, copies)
    return _split_units(draft, expanded, [*names, *(["place"] if places else [])], lo)


def _whole_units(draft: _GroupQuery, units: Ints, known: Mapping[str, NDArray[Any]]) -> exp.Select:
    """The rows of the source, when all rows of a unit are in one entry."""
    return _source(draft, units, known, [clauses.column(name, "u") for name in known])


def _split_units(draft: _GroupQuery, expanded: exp.Select, names: Sequence[str], lo: Ints) -> exp.Select:
    """The rows of the source, each in the entry that its number in the unit belongs to.

    Rows that are alike are numbered first, so that each of them has a number of its own to be drawn by.
    """
    plan = draft.plan
    passed = [f"p{i}" for i in range(len(plan.passed))]
    units, first = np.unique(plan.unit, return_index=True)
    items = [clauses.column("lo", "u"), clauses.alias(draft.table.row_number(), "r")]
    source = _source(draft, units, {"lo": lo[first]}, items)
    together = clauses.select([exp.Star()], source.subquery("y", copy=False))
    together.set("distribute", exp.Distribute(expressions=[clauses.column("lo", "y")]))  # for both numbers
    by_content = exp.Order(expressions=clauses.columns(["r"]))
    alike = exp.Window(this=exp.RowNumber(), partition_by=clauses.columns(["lo", "r"]), order=by_content)
    row = exp.Anonymous(this="concat_ws", expressions=[exp.Literal.string("-"), clauses.column("r"), alike])
    apart = clauses.select(
        [*clauses.columns(["lo", *passed]), clauses.alias(row, "r")], together.subquery("z", copy=False)
    )
    key = draft.key("cells", "rows of a unit", plan.dealing_key)
    number = _number_in_part(clauses.column("lo", "a"), clauses.column("r", "a"), key)
    slot = exp.Add(this=clauses.column("lo", "a"), expression=exp.Paren(this=number))
    slots = clauses.select(
        [clauses.alias(slot, "slot"), *(clauses.column(p, "a") for p in passed)],
        apart.subquery("a", copy=False),
    )
    published = [*(clauses.column(name, "s") for name in names), *(clauses.column(p, "b") for p in passed)]
    same = clauses.equal(clauses.column("id", "s"), clauses.column("slot", "b"))
    join = exp.Join(this=expanded.subquery("s", copy=False), on=same)
    return _sorted_joins(clauses.select(published, slots.subquery("b", copy=False), joins=[join]), "s")


def _source(
    draft: _GroupQuery, units: Ints, known: Mapping[str, NDArray[Any]], items: list[exp.Expression]
) -> exp.Select:
    """The rows of some units, with what is known of those as table `u`, and with what passes through."""
    table, plan = draft.table, draft.plan
    coded = SparkCoded(table, plan.units.names, plan.units.domains)
    packing = Packing.of(coded.radices)
    draft.content |= coded.content()
    keys = packing.pack(plan.units.codes[:, units])
    draft.content["u"] = {**{f"k{w}": key for w, key in enumerate(keys)}, **known}
    words = clauses.packed([coded.code(i) for i in range(len(coded.names))], packing)
    same = [clauses.equal(clauses.column(f"k{w}", "u"), word) for w, word in enumerate(words)]
    join = exp.Join(this=clauses.relation("u"), on=clauses.all_of(same) if same else exp.true())
    passed = [clauses.alias(table.value(name), f"p{i}") for i, name in enumerate(plan.passed)]
    where = [clauses.not_null(table.value(name)) for name in plan.drop_missing]
    return clauses.select([*items, *passed], table.source(), joins=[*coded.joins(), join], where=where)


# --- shuffled values ----------------------------------------------------------------------------------


def _block_values(draft: _GroupQuery, b: int) -> exp.Select:
    """The values of a block, each with a place in its group that is drawn with a key."""
    block: ShuffledBlock = draft.plan.blocks[b]
    packing = Packing.of([len(domain) + 1 for domain in block.domains])
    for i, (name, domain) in enumerate(zip(block.names, block.domains, strict=True)):
        used = set(np.unique(block.codes[i]).tolist())
        draft.codes[name] = _Code(f"b{b}", packing, i, expansion.ShownColumn(name, domain, None), used)
    words = {f"w{w}": word for w, word in enumerate(packing.pack(block.codes))}
    draft.content[f"block{b}"] = _runs(block.groups, block.rows, words)
    key = draft.key(f"draw{b}", "values of " + "\0".join(block.names), draft.plan.key)
    return _drawn_places(f"block{b}", list(words), key)


# --- small things -------------------------------------------------------------------------------------


def _before(rows: Ints) -> Ints:
    """How many rows come before each entry."""
    return np.cumsum(rows) - rows


def _first_numbers(groups: NDArray[np.int32], rows: Ints) -> Ints:
    """The first place of each entry when the entries are in the order of their groups."""
    order = np.argsort(groups, kind="stable")
    places = np.empty(len(rows), dtype=np.int64)
    places[order] = _before(rows[order])
    return places


def _plus(left: str, right: str, table: str) -> exp.Expression:
    return exp.Add(this=clauses.column(left, table), expression=clauses.column(right, table))


# --- releases without columns that pass through -------------------------------------------------------


def _create_expanded(
    runner: SparkRunner,
    table: SparkTable,
    plan: GroupPlan,
    target: str,
    columns: Sequence[str],
    parts: Sequence[PublishedEntries],
    purpose: str,
) -> RecodedView:
    """Create the view `target`. Rows of the parts that are in the same group are matched at random.

    Where there is only one part, nothing is matched: its entries stay as they are, with the number of their rows.
    """
    rows = f"{target}_rows"
    if len(parts) == 1:
        words = {f"p0w{w}": key for w, key in enumerate(parts[0].keys)}
        runner.view(rows, runner.from_arrays({**words, TIMES: parts[0].rows}))
    else:
        _match_parts(runner, rows, parts, plan.key, purpose)
    infos, items, typed = decoded(runner, table, plan, target, columns, parts, {})
    named = [clauses.alias(item, f"c{i}") for i, item in enumerate(items)]
    times = TIMES if len(parts) == 1 else None
    if times is not None:
        named.append(clauses.alias(clauses.column(times, "x"), times))
    query = clauses.select(named, clauses.relation(rows, "x"))
    runner.run(clauses.create_table(target, query, kind="VIEW"), {})
    return RecodedView(infos, typed, times)


# --- places drawn with a key --------------------------------------------------------------------------


def derived_key(key: str, purpose: str) -> str:
    """A key of its own for each purpose, short enough for one block of the hash."""
    return hashlib.sha256(purpose.encode() + b"\0" + key.encode()).hexdigest()[:32]


def _keyed_hash(row: exp.Expression, key: str = "key") -> exp.Expression:
    """A keyed hash of the row number: an order that says nothing about the source without the key."""
    return exp.MD5(this=exp.DPipe(this=clauses.parameter(key), expression=clauses.cast(row, "TEXT")))


def _number_in_part(partition: exp.Expression, row: exp.Expression, key: str) -> exp.Expression:
    """The number of a row among those of its part, from 0, in an order drawn with a key."""
    order = exp.Order(expressions=[_keyed_hash(row, key), row.copy()])
    number = exp.Window(this=exp.RowNumber(), partition_by=[partition], order=order)
    return exp.Sub(this=number, expression=clauses.integer(1))


def _repeated_rows(name: str, times: str) -> exp.Select:
    """Each row of a table as often as its column `times` says, the copies numbered 0, 1 … in column `i`."""
    last = exp.Sub(this=clauses.column(times), expression=clauses.integer(1))
    copies = exp.Explode(this=exp.GenerateSeries(start=clauses.integer(0), end=last))
    return clauses.select([exp.Star(), clauses.alias(copies, "i")], clauses.relation(name))


def _sorted_joins(query: exp.Select, *names: str) -> exp.Select:
    """Joins with these relations sort both sides: Spark takes repeated rows for few, and would send all of them."""
    if names:
        merge = exp.Anonymous(this="MERGE", expressions=[exp.to_identifier(name) for name in names])
        query.set("hint", exp.Hint(expressions=[merge]))
    return query


def _match_parts(
    runner: Runner, target: str, parts: Sequence[PublishedEntries], key: str, purpose: str
) -> None:
    """Create a view with the words of all parts, row by row: `p0w0`, `p0w1` … `p1w0` …"""
    content: dict[str, Arrays] = {}
    parameters: dict[str, Any] = {}
    names: list[str] = []
    first = f"{target}_p0"
    rows = _placed_rows(first)
    joins = []
    for p, part in enumerate(parts):
        words = {f"p{p}w{w}": key for w, key in enumerate(part.keys)}
        names += words
        content[f"{target}_p{p}"] = _runs(part.groups(), part.rows, words)
        if p:
            parameters[f"draw{p}"] = derived_key(key, f"{purpose}\0{p}")
            places = _drawn_places(f"{target}_p{p}", list(words), f"draw{p}").subquery(f"x{p}", copy=False)
            same = clauses.equal(clauses.column("place", f"x{p}"), clauses.column("place", "x0"))
            joins.append(exp.Join(this=places, on=same))
    query = clauses.select(clauses.columns(names), rows.subquery("x0", copy=False), joins=joins)
    _sorted_joins(query, *(f"x{p}" for p in range(1, len(parts))))
    with runner.tables(content):
        runner.run(clauses.create_table(target, query), parameters)


def _in_pieces(runs: Mapping[str, Any], moving: Sequence[str]) -> dict[str, Any]:
    """Runs of `n` rows, cut so that none is long; `moving` columns count rows and go on from piece to piece."""
    n = np.asarray(runs["n"])
    pieces = -(-n // PIECE)
    index = np.repeat(np.arange(len(n)), pieces)
    before = (np.arange(len(index)) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * PIECE
    cut = {name: values[index] for name, values in runs.items()}
    cut["n"] = np.minimum(cut["n"] - before, PIECE)
    for name in moving:
        if name in cut:
            cut[name] = cut[name] + before
    return cut


def _runs(groups: NDArray[np.integer], rows: Ints, words: Mapping[str, Ints]) -> Arrays:
    """The runs of rows that show the same, by ascending groups, with the first place of their group."""
    lo = np.cumsum(rows) - rows
    first = lo[np.searchsorted(groups, groups)]
    return _in_pieces({"n": rows, "lo": lo, "first": first, "g": groups, **words}, ("lo",))


def _placed_rows(name: str) -> exp.Select:
    """Each row of the first part, entries are in the order of the groups: its number is its place."""
    copies = _repeated_rows(name, "n").subquery("r", copy=False)
    place = exp.Add(this=clauses.column("lo", "r"), expression=clauses.column("i", "r"))
    return clauses.select(
        [exp.Column(this=exp.Star(), table=exp.to_identifier("r")), clauses.alias(place, "place")], copies
    )


def _drawn_places(name: str, words: Sequence[str], key: str) -> exp.Select:
    """Each value of another part with a place in its group that is drawn with a key."""
    rows = _placed_rows(name).subquery("q", copy=False)
    number = _number_in_part(clauses.column("g", "q"), clauses.column("place", "q"), key)
    place = exp.Add(this=clauses.column("first", "q"), expression=exp.Paren(this=number))
    return clauses.select([clauses.alias(place, "place"), *(clauses.column(w, "q") for w in words)], rows)
