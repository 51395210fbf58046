"""Columns of sets: one yes-or-no column for each value that occurs in them, and back.

A set is a text with a separator ("cough; fever") or a list. Its values are canonical like any other value; missing
ones, repetitions and their order do not matter, and a set that is missing is the empty set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sqlglot import exp

from maskwright.core.multivalued import SetColumn
from maskwright.engines import sql
from maskwright.engines.base import ColumnInfo, Domain
from maskwright.engines.coding import texts_of
from maskwright.engines.database import Database
from maskwright.engines.opening import DuckTable
from maskwright.engines.reading import Stamp
from maskwright.engines.relation import element_of, folded, typed_with

BIT = "BOOLEAN"


def elements(db: Database, t: DuckTable, name: str, separator: str | None) -> Domain:
    """What occurs in the sets of a column, with the rows that hold it."""
    found = sql.select(
        [sql.column("v"), sql.alias(sql.count_distinct("r"), "n")],
        _exploded(t, name, separator).subquery("x", copy=False),
        where=[sql.not_null(sql.column("v"))],
        group=[sql.column("v")],
        order=[sql.column("v")],
    )
    rows = db.rows(found, {**t.parameters, "separator": separator})
    return Domain(tuple(v for v, _ in rows), tuple(int(n) for _, n in rows), 0, False)


def unfold(db: Database, t: DuckTable, sets: Sequence[SetColumn]) -> DuckTable:
    """The table with its columns of sets replaced by their bits."""
    columns, items, joins, content = list[ColumnInfo](), list[exp.Expression](), list[exp.Join](), {}
    parameters = dict(t.parameters)
    by_name = {s.name: (i, s) for i, s in enumerate(sets)}
    for info in t.columns:
        if info.name not in by_name:
            columns.append(info)
            items.append(t.raw(info.name))
            continue
        i, column = by_name[info.name]
        parameters[f"separator{i}"] = column.separator
        content[f"values{i}"] = {
            "v": texts_of(column.values),
            "k": np.arange(len(column.values), dtype=np.int64),
        }
        joins.append(_join_bits(t, column, i))
        for k, bit in enumerate(column.bits):
            columns.append(ColumnInfo(bit, "boolean", BIT))
            items.append(exp.Coalesce(this=sql.column(f"b{k}", f"s{i}"), expressions=[exp.false()]))
    name = db.new_name("unfolded")
    query = sql.select([sql.alias(item, f"c{i}") for i, item in enumerate(items)], t.source(), joins=joins)
    with db.tables(content):
        db.run(sql.create_table(name, query), parameters)
    originals = {s.name: t.info(s.name) for s in sets}
    return replace(t, columns=tuple(columns), relation=name, row="rowid", stamp=Stamp(), sets=originals)


def fold(db: Database, t: DuckTable, sets: Sequence[SetColumn]) -> DuckTable:
    """A published table with its bits put together again; a set is placed where its first bit is."""
    parameters: dict[str, str | None] = {}
    columns, items = folded(t, sets, t.sets, lambda s, info, place: _set(t, s, info, place, parameters))
    name = db.new_name("folded")
    query = sql.select([sql.alias(item, f"c{i}") for i, item in enumerate(items)], t.source())
    db.run(sql.create_table(name, query), parameters)
    made_of, typed = (*t.made_of, name), typed_with(t.typed, sets)
    return replace(t, columns=tuple(columns), relation=name, typed=typed, made_of=made_of)


def _exploded(t: DuckTable, name: str, separator: str | None, parameter: str = "separator") -> exp.Select:
    """One line per row `r` and value `v` of its set."""
    info, raw = t.info(name), t.raw(name)
    inner = element_of(info, separator, r"(.+)\[\d*\]")
    if separator is not None:
        text = sql.cast(raw, "TEXT")
        raw = exp.Anonymous(this="string_split", expressions=[text, sql.parameter(parameter)])
    lines = sql.select(
        [sql.alias(t.row_number(), "r"), sql.alias(exp.Anonymous(this="unnest", expressions=[raw]), "u")],
        t.source(),
    )
    value = sql.column("u", "y")
    clean = sql.text_of(value, inner) if t.clean else sql.canonical(value, inner, t.parameters)
    return sql.select([sql.column("r", "y"), sql.alias(clean, "v")], lines.subquery("y", copy=False))


def _join_bits(t: DuckTable, column: SetColumn, i: int) -> exp.Join:
    """Per row the bits b0, b1 … of its set."""
    exploded = _exploded(t, column.name, column.separator, f"separator{i}").subquery("x", copy=False)
    known = exp.Join(
        this=sql.relation(f"values{i}"), on=sql.equal(sql.column("v", f"values{i}"), sql.column("v", "x"))
    )
    bits = [
        sql.alias(exp.LogicalOr(this=sql.equal(sql.column("k"), sql.integer(k))), f"b{k}")
        for k in range(len(column.values))
    ]
    found = sql.select([sql.column("r", "x"), *bits], exploded, joins=[known], group=[sql.column("r", "x")])
    alias = f"s{i}"
    return sql.left_join(found.subquery(alias, copy=False), sql.equal(sql.column("r", alias), t.row_number()))


def _set(
    t: DuckTable, column: SetColumn, original: ColumnInfo, number: int, parameters: dict[str, str | None]
) -> exp.Expression:
    """The set of a row as a text or a list, its values in ascending order."""
    values = []
    for k, value in enumerate(column.values):
        parameters[f"v{number}_{k}"] = value
        values.append(sql.cast(sql.parameter(f"v{number}_{k}"), "TEXT"))
    present = [t.raw(bit) for bit in column.bits]
    if column.separator is not None:
        parameters[f"join{number}"] = column.separator
        texts = [sql.case((b, v), otherwise=exp.null()) for b, v in zip(present, values, strict=True)]
        joined = exp.Anonymous(this="concat_ws", expressions=[sql.parameter(f"join{number}"), *texts])
        return exp.Nullif(this=joined, expression=exp.Literal.string(""))
    lists = [
        sql.case((b, exp.Array(expressions=[v])), otherwise=sql.cast(exp.Array(expressions=[]), "TEXT[]"))
        for b, v in zip(present, values, strict=True)
    ]
    whole = exp.Anonymous(this="list_concat", expressions=lists)
    return exp.cast(whole, exp.DataType.build(original.type, dialect="duckdb"), copy=False)
