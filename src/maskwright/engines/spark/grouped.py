"""Recoding by groups on Spark: a row shows what is known of its entry in the plan, and what passes through.

Rows of a unit are interchangeable but for the columns that pass through. Without such columns no row is read again
(see expansion.py here); with them, each row of a unit is given a number in it by a keyed hash, and so an entry, a
group, and a place in the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from maskwright.core.classes import Ints
from maskwright.core.plan import Block, GroupPlan
from maskwright.engines import expansion, sql
from maskwright.engines.base import ColumnInfo
from maskwright.engines.coding import Arrays
from maskwright.engines.keys import Packing
from maskwright.engines.spark.coding import SparkCoded
from maskwright.engines.spark.expansion import create
from maskwright.engines.spark.matching import derived_key, in_pieces, not_sent, numbered, repeated
from maskwright.engines.spark.opening import SparkTable
from maskwright.engines.spark.recoding import Recoded
from maskwright.engines.spark.runner import SparkRunner

ROWS = "x"  # the rows to publish: group `g`, `place`, packed codes w0 …, what passes p0 …


def recode(runner: SparkRunner, table: SparkTable, plan: GroupPlan, target: str) -> Recoded:
    """Create one table. Shuffled values find their rows by the place in the group."""
    if not plan.passed:
        parts = [expansion.of_rows(plan), *(expansion.of_block(plan, b) for b in range(len(plan.blocks)))]
        return create(runner, table, plan, target, plan.columns, parts, "order of rows")
    draft = _Draft(table, plan)
    draft.rows = _rows(draft, places=bool(plan.blocks))
    for b in range(len(plan.blocks)):
        draft.join_block(b)
    return draft.create(runner, target, plan.columns)


def bucketize(
    runner: SparkRunner, table: SparkTable, plan: GroupPlan, targets: tuple[str, str]
) -> list[Recoded]:
    """Create two tables that have nothing but the group in common: each is in an order of its own."""
    if not plan.blocks:
        raise ValueError("there is nothing to put into the table of sensitive values")
    apart = {name for block in plan.blocks for name in block.names}
    others, inside = ([n for n in plan.columns if (n in apart) is here] for here in (False, True))
    purpose = "order of quasi-identifiers"
    if plan.passed:
        draft = _Draft(table, plan)
        draft.rows = _rows(draft, places=False)
        first = draft.create(runner, targets[0], others)
    else:
        entries = [expansion.of_rows(plan)]
        first = create(runner, table, plan, targets[0], others, entries, purpose)
    values = [expansion.of_block(plan, b) for b in range(len(plan.blocks))]
    purpose = "order of sensitive values"
    return [first, create(runner, table, plan, targets[1], inside, values, purpose)]


@dataclass(frozen=True)
class _Code:
    """Where the code of a column is, what it stands for, and the codes that are published."""

    table: str
    packing: Packing
    digit: int
    shown: expansion.Shown
    used: set[int]


@dataclass
class _Draft:
    """A query in the making: its rows, and the tables and keys that it needs."""

    table: SparkTable
    plan: GroupPlan
    rows: exp.Select = field(default_factory=exp.Select)
    codes: dict[str, _Code] = field(default_factory=dict)
    joins: list[exp.Join] = field(default_factory=list)
    content: dict[str, Arrays] = field(default_factory=dict)  # arrays as tables
    parameters: dict[str, Any] = field(default_factory=dict)

    def key(self, name: str, purpose: str) -> str:
        self.parameters[name] = derived_key(self.plan.key, purpose)
        return name

    def join_block(self, b: int) -> None:
        """Give every row the values that were drawn for its place."""
        name = f"b{b}"
        same = sql.equal(sql.column("place", name), sql.column("place", ROWS))
        self.joins.append(sql.left_join(_drawn(self, b).subquery(name, copy=False), same))

    def create(self, runner: SparkRunner, target: str, columns: Sequence[str]) -> Recoded:
        """Create the view `target`, its columns called c0, c1 …"""
        self.parameters |= self.table.parameters
        infos, items = [], list[exp.Expression]()
        if self.plan.group_column is not None:
            infos.append(ColumnInfo(self.plan.group_column, "integer", "INTEGER"))
            items.append(sql.column("g", ROWS))
        for name in columns:
            value, info = self._published(runner, target, name)
            infos.append(info)
            items.append(value)
        query = sql.select(
            [sql.alias(item, f"c{i}") for i, item in enumerate(items)],
            self.rows.subquery(ROWS, copy=False),
            joins=self.joins,
        )
        not_sent(query, *(f"b{b}" for b in range(len(self.joins))))
        with runner.tables(self.content):
            runner.run(sql.create_table(target, query), self.parameters)
        typed = (n for n in columns if n not in self.codes or self.codes[n].shown.texts is None)
        return Recoded(tuple(infos), frozenset(typed))

    def _published(self, runner: SparkRunner, target: str, name: str) -> tuple[exp.Expression, ColumnInfo]:
        """What is published of a column, and what that is."""
        info = self.table.info(name)
        plain = ColumnInfo(name, "text", "VARCHAR")
        if name not in self.codes:
            number = self.plan.passed.index(name)
            return sql.column(f"p{number}", ROWS), plain if info.kind == "text" else info
        code, plain_text = self.codes[name], info.kind == "text" or self.codes[name].shown.texts is not None
        decode = f"{target}_{self.table.position(name)}"
        digit = sql.digit(code.packing, code.digit, code.table)
        value = expansion.looked_up(runner, self.table, code.shown, code.used, digit, decode, plain_text)
        return value, plain if plain_text else info


# --- rows of the quasi-identifiers --------------------------------------------------------------------


def _rows(draft: _Draft, places: bool) -> exp.Select:
    """Every published row with its entry; `places`: also with its place in the group."""
    plan = draft.plan
    kept = np.flatnonzero(plan.groups > 0)
    radices = [len(p.texts) if p.texts is not None else len(p.domain) + 1 for p in plan.published]
    packing = Packing.of(radices)
    shown = [p.shown(kept) for p in plan.published]
    for i, p in enumerate(plan.published):
        used = set(np.unique(shown[i]).tolist())
        draft.codes[p.name] = _Code(ROWS, packing, i, expansion.Shown(p.name, p.domain, p.texts), used)
    known: dict[str, NDArray[Any]] = {"g": plan.groups[kept].astype(np.int32)}
    known |= {f"w{w}": word for w, word in enumerate(packing.pack(shown))}
    rows, lo = plan.rows[kept], _before(plan.rows)
    names = list(known)
    if not places and (np.diff(plan.unit) > 0).all():
        return _whole_units(draft, plan.unit[kept], known)
    first = {"first": _places(plan.groups[kept], rows)} if places else {}
    draft.content["runs"] = in_pieces({"lo": lo[kept], "n": rows, **known, **first}, ("lo", "first"))
    copies = repeated("runs", "n").subquery("r", copy=False)
    items: list[exp.Expression] = [
        sql.alias(_plus("lo", "i", "r"), "id"),
        *(sql.column(n, "r") for n in names),
    ]
    if places:
        items.append(sql.alias(_plus("first", "i", "r"), "place"))
    expanded = sql.select(items, copies)
    return _split_units(draft, expanded, [*names, *(["place"] if places else [])], lo)


def _whole_units(draft: _Draft, units: Ints, known: Mapping[str, NDArray[Any]]) -> exp.Select:
    """The rows of the source, when all rows of a unit are in one entry."""
    return _source(draft, units, known, [sql.column(name, "u") for name in known])


def _split_units(draft: _Draft, expanded: exp.Select, names: Sequence[str], lo: Ints) -> exp.Select:
    """The rows of the source, each in the entry that its number in the unit belongs to.

    Rows that are alike are numbered first, so that each of them has a number of its own to be drawn by.
    """
    plan = draft.plan
    passed = [f"p{i}" for i in range(len(plan.passed))]
    units, first = np.unique(plan.unit, return_index=True)
    items = [sql.column("lo", "u"), sql.alias(draft.table.row_number(), "r")]
    source = _source(draft, units, {"lo": lo[first]}, items)
    together = sql.select([exp.Star()], source.subquery("y", copy=False))
    together.set("distribute", exp.Distribute(expressions=[sql.column("lo", "y")]))  # for both numbers
    by_content = exp.Order(expressions=sql.columns(["r"]))
    alike = exp.Window(this=exp.RowNumber(), partition_by=sql.columns(["lo", "r"]), order=by_content)
    row = exp.Anonymous(this="concat_ws", expressions=[exp.Literal.string("-"), sql.column("r"), alike])
    apart = sql.select(
        [*sql.columns(["lo", *passed]), sql.alias(row, "r")], together.subquery("z", copy=False)
    )
    number = numbered(sql.column("lo", "a"), sql.column("r", "a"), draft.key("cells", "rows of a unit"))
    slot = exp.Add(this=sql.column("lo", "a"), expression=exp.Paren(this=number))
    slots = sql.select(
        [sql.alias(slot, "slot"), *(sql.column(p, "a") for p in passed)], apart.subquery("a", copy=False)
    )
    published = [*(sql.column(name, "s") for name in names), *(sql.column(p, "b") for p in passed)]
    same = sql.equal(sql.column("id", "s"), sql.column("slot", "b"))
    join = exp.Join(this=expanded.subquery("s", copy=False), on=same)
    return not_sent(sql.select(published, slots.subquery("b", copy=False), joins=[join]), "s")


def _source(
    draft: _Draft, units: Ints, known: Mapping[str, NDArray[Any]], items: list[exp.Expression]
) -> exp.Select:
    """The rows of some units, with what is known of those as table `u`, and with what passes through."""
    table, plan = draft.table, draft.plan
    coded = SparkCoded(table, plan.units.names, plan.units.domains)
    packing = Packing.of(coded.radices)
    draft.content |= coded.content()
    keys = packing.pack(plan.units.codes[:, units])
    draft.content["u"] = {**{f"k{w}": key for w, key in enumerate(keys)}, **known}
    words = sql.packed([coded.code(i) for i in range(len(coded.names))], packing)
    same = [sql.equal(sql.column(f"k{w}", "u"), word) for w, word in enumerate(words)]
    join = exp.Join(this=sql.relation("u"), on=sql.all_of(same) if same else exp.true())
    passed = [sql.alias(table.value(name), f"p{i}") for i, name in enumerate(plan.passed)]
    where = [sql.not_null(table.value(name)) for name in plan.drop_missing]
    return sql.select([*items, *passed], table.source(), joins=[*coded.joins(), join], where=where)


# --- shuffled values ----------------------------------------------------------------------------------


def _drawn(draft: _Draft, b: int) -> exp.Select:
    """The values of a block, each with a place in its group that is drawn with a key."""
    names = _block(draft, b, f"b{b}")
    copies = repeated(f"block{b}", "n").subquery("r", copy=False)
    inner = sql.select(
        [*(sql.column(n, "r") for n in [*names, "first"]), sql.alias(_plus("lo", "i", "r"), "j")], copies
    )
    key = draft.key(f"draw{b}", "values of " + "\0".join(draft.plan.blocks[b].names))
    number = numbered(sql.column("g", "q"), sql.column("j", "q"), key)
    place = exp.Add(this=sql.column("first", "q"), expression=exp.Paren(this=number))
    items = [sql.alias(place, "place"), *(sql.column(n, "q") for n in names)]
    return sql.select(items, inner.subquery("q", copy=False))


def _block(draft: _Draft, b: int, table: str) -> list[str]:
    """Hand in a block as a table; gives the names of its columns."""
    block: Block = draft.plan.blocks[b]
    packing = Packing.of([len(domain) + 1 for domain in block.domains])
    for i, (name, domain) in enumerate(zip(block.names, block.domains, strict=True)):
        used = set(np.unique(block.codes[i]).tolist())
        draft.codes[name] = _Code(table, packing, i, expansion.Shown(name, domain, None), used)
    words = {f"w{w}": word for w, word in enumerate(packing.pack(block.codes))}
    lo = _before(block.rows)
    first = lo[np.searchsorted(block.groups, block.groups)]
    groups = block.groups.astype(np.int32)
    runs = {"lo": lo, "n": block.rows, "first": first, "g": groups, **words}
    draft.content[f"block{b}"] = in_pieces(runs, ("lo",))
    return ["g", *words]


# --- small things -------------------------------------------------------------------------------------


def _before(rows: Ints) -> Ints:
    """How many rows come before each entry."""
    return np.cumsum(rows) - rows


def _places(groups: NDArray[np.int32], rows: Ints) -> Ints:
    """The first place of each entry when the entries are in the order of their groups."""
    order = np.argsort(groups, kind="stable")
    places = np.empty(len(rows), dtype=np.int64)
    places[order] = _before(rows[order])
    return places


def _plus(left: str, right: str, table: str) -> exp.Expression:
    return exp.Add(this=sql.column(left, table), expression=sql.column(right, table))
