"""Columns of sets on Spark: bits for the values in them, and back (engines/sets.py says what sets are)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from maskwright.core.multivalued import SetColumn
from maskwright.engines import sql
from maskwright.engines.base import ColumnInfo, Domain
from maskwright.engines.relation import element_of, folded, typed_with
from maskwright.engines.spark.opening import SparkTable
from maskwright.engines.spark.runner import SparkRunner


def elements(runner: SparkRunner, t: SparkTable, name: str, separator: str | None) -> Domain:
    """What occurs in the sets of a column, with the rows that hold it."""
    parameters = dict(t.parameters)
    each = exp.Explode(this=_call("array_distinct", _values(t, name, separator, 0, parameters)))
    lines = sql.select([sql.alias(each, "v")], t.source()).subquery("x", copy=False)
    there = sql.select([sql.column("v")], lines, where=[sql.not_null(sql.column("v"))])
    rows = sorted(runner.rows(sql.count_by(there, ["v"]), parameters))
    return Domain(tuple(v for v, _ in rows), tuple(int(n) for _, n in rows), 0, False)


def unfold(runner: SparkRunner, t: SparkTable, sets: Sequence[SetColumn]) -> SparkTable:
    """The table with its columns of sets replaced by their bits."""
    columns, items, parameters = list[ColumnInfo](), list[exp.Expression](), dict(t.parameters)
    by_name = {s.name: (i, s) for i, s in enumerate(sets)}
    for info in t.columns:
        if info.name not in by_name:
            columns.append(info)
            items.append(t.raw(info.name))
            continue
        i, column = by_name[info.name]
        values = _values(t, column.name, column.separator, i, parameters)
        for k, (bit, value) in enumerate(zip(column.bits, column.values, strict=True)):
            parameters[f"value{i}_{k}"] = value
            held = _call("array_contains", values.copy(), sql.parameter(f"value{i}_{k}"))
            columns.append(ColumnInfo(bit, "boolean", "BOOLEAN"))
            items.append(exp.Coalesce(this=held, expressions=[exp.false()]))
    named = [sql.alias(item, f"c{i}") for i, item in enumerate(items)]
    if not t.clean:
        named.append(sql.alias(t.row_number(), t.row))
    name = runner.new_name("unfolded")
    runner.view(name, runner.frame(sql.select(named, t.source()), parameters))
    return replace(t, columns=tuple(columns), relation=name, sets={s.name: t.info(s.name) for s in sets})


def fold(runner: SparkRunner, t: SparkTable, sets: Sequence[SetColumn]) -> SparkTable:
    """A published table with its bits put together again; a set is placed where its first bit is."""
    parameters: dict[str, Any] = {}
    columns, items = folded(t, sets, t.sets, lambda s, info, place: _set(t, s, info, place, parameters))
    name = runner.new_name("folded")
    named = [sql.alias(item, f"c{i}") for i, item in enumerate(items)]
    if t.times is not None:
        named.append(sql.alias(sql.column(t.times, "t"), t.times))
    runner.view(name, runner.frame(sql.select(named, t.source()), parameters))
    return replace(t, columns=tuple(columns), relation=name, typed=typed_with(t.typed, sets))


def _values(
    t: SparkTable, name: str, separator: str | None, number: int, parameters: dict[str, Any]
) -> exp.Expression:
    """The canonical values of the set in a row, as an array; missing ones are null."""
    info, raw = t.info(name), t.raw(name)
    inner = element_of(info, separator, r"ARRAY<(.+)>")
    if separator is not None:
        parameters[f"separator{number}"] = re.sub(
            r"(\W)", r"\\\1", separator
        )  # a pattern, of these characters
        raw = _call("split", raw, sql.parameter(f"separator{number}"))
    value = sql.column("u")
    clean = sql.text_of(value, inner) if t.clean else sql.canonical(value, inner, t.parameters)
    return _call("transform", raw, exp.Lambda(this=clean, expressions=[exp.to_identifier("u")]))


def _set(
    t: SparkTable, column: SetColumn, original: ColumnInfo, number: int, parameters: dict[str, Any]
) -> exp.Expression:
    """The set of a row as a text or a list, its values in ascending order."""
    present = []
    for k, (bit, value) in enumerate(zip(column.bits, column.values, strict=True)):
        parameters[f"v{number}_{k}"] = value
        text = sql.cast(sql.parameter(f"v{number}_{k}"), "TEXT")
        present.append(sql.case((t.raw(bit), text), otherwise=exp.null()))
    if column.separator is not None:
        parameters[f"join{number}"] = column.separator
        joined = _call("concat_ws", sql.parameter(f"join{number}"), *present)
        return exp.Nullif(this=joined, expression=exp.Literal.string(""))
    whole = _call("array_compact", exp.Array(expressions=present))
    return exp.cast(whole, exp.DataType.build(original.type, dialect="spark"), copy=False)


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))
