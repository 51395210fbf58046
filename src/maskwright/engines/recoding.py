"""Full-domain recoding of rows: each quasi-identifier through its map, in an order drawn with a secret key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from maskwright.core.plan import ColumnMap, Plan
from maskwright.engines import sql
from maskwright.engines.base import ColumnInfo
from maskwright.engines.coding import Arrays, Coded, Runner, Source, dictionary
from maskwright.engines.keys import Packing, number

SUPPRESSED = "suppressed"


@dataclass(frozen=True)
class Recoded:
    """The columns of the published table, and those among them that keep the type of the source."""

    columns: tuple[ColumnInfo, ...]
    typed: frozenset[str]


def recode(
    runner: Runner, table: Source, infos: Mapping[str, ColumnInfo], plan: Plan, target: str
) -> Recoded:
    """Create the table `target`. It is stored, so that whoever reads it sees the same rows in the same order."""
    suppresses = plan.suppressed.shape[1] > 0
    maps = [m for m in plan.maps if suppresses or not m.identity]
    coded = Coded(
        table,
        tuple(m.hierarchy.attribute for m in maps),
        tuple(m.hierarchy.values for m in maps),
        tuple(tuple(_clean(m.texts[1:])) for m in maps),
    )
    joins, content = coded.joins(), coded.content()
    where: list[exp.Expression] = [sql.not_null(table.value(name)) for name in plan.drop_missing]
    if suppresses:
        packing = Packing.of(coded.radices)
        content[SUPPRESSED] = _keys(packing, plan)
        joins.append(_join_suppressed(packing, coded))
        if not plan.star:
            where.append(sql.is_null(sql.column("k0", SUPPRESSED)))

    parameters: dict[str, Any] = {**table.parameters, "key": order_key(plan.key)}
    columns, items, typed = [], [], set()
    for position, name in enumerate(plan.columns):
        value, info = table.value(name), table.info(name)
        map_ = next((m for m in plan.maps if m.hierarchy.attribute == name), None)
        if map_ is not None and not map_.identity:
            i = coded.names.index(name)
            parameters[f"missing{i}"] = _clean(map_.texts[:1])[0]
            missing = (sql.is_null(table.raw(name)), sql.cast(sql.parameter(f"missing{i}"), "TEXT"))
            value, info = sql.case(missing, otherwise=coded.label(i)), ColumnInfo(name, "text", "VARCHAR")
        elif map_ is not None and suppresses and plan.star:
            value, info = table.text(name), ColumnInfo(name, "text", "VARCHAR")
        else:
            typed.add(name)
        if map_ is not None and suppresses and plan.star:
            value = sql.case((sql.not_null(sql.column("k0", SUPPRESSED)), sql.star()), otherwise=value)
        columns.append(ColumnInfo(name, info.kind, "VARCHAR" if info.kind == "text" else info.type))
        items.append(sql.alias(value, f"c{position}"))
    query = sql.select(
        items,
        table.source(),
        joins=joins,
        where=where,
        order=[sql.shuffled(table.row_number()), table.row_number()],
        tables=coded.tables(),
    )
    with runner.tables(content):
        runner.run(sql.create_table(target, query), parameters)
    return Recoded(tuple(columns), frozenset(typed))


def _published(
    table: Source, info: ColumnInfo, map_: ColumnMap, i: int, starred: bool
) -> tuple[exp.Expression, ColumnInfo]:
    """What is published of one quasi-identifier, and what that is."""
    name = map_.hierarchy.attribute
    if map_.identity:
        value: exp.Expression = table.text(name) if starred else table.value(name)
    else:
        missing = sql.cast(sql.parameter(f"missing{i}"), "TEXT")
        value = sql.case((sql.is_null(table.text(name)), missing), otherwise=sql.column("t", f"d{i}"))
    if starred:
        value = sql.case((sql.not_null(sql.column("k0", SUPPRESSED)), sql.star()), otherwise=value)
    if map_.identity and not starred:
        return value, info
    return value, ColumnInfo(name, "text", "VARCHAR")


def _keys(packing: Packing, plan: Plan) -> Arrays:
    """The packed keys of the suppressed tuples, each once."""
    keys, _ = number(packing.pack(plan.suppressed), plan.suppressed.shape[1])
    return {f"k{w}": key for w, key in enumerate(keys)}


def _join_suppressed(packing: Packing, coded: Coded) -> exp.Join:
    """Find the suppressed rows: the others have no key there."""
    words = sql.packed([coded.code(i) for i in range(len(coded.names))], packing)
    same = [sql.equal(sql.column(f"k{w}", SUPPRESSED), key) for w, key in enumerate(words)]
    return sql.left_join(sql.relation(SUPPRESSED), sql.all_of(same))


def _clean(texts: Sequence[str | None]) -> list[str | None]:
    """Labels are published like any other text: without surrounding blanks, and never empty."""
    return [(text.strip() or None) if text is not None else None for text in texts]


__all__ = ["Recoded", "recode"]
