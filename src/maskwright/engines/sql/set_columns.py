"""Columns of sets: one yes-or-no column for each value that occurs in them, and back, on every engine.

A set is a text with a separator ("cough; fever") or a list. Its values are canonical like any other value; missing
ones, repetitions and their order do not matter, and a set that is missing is the empty set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from maskwright.domain.value_sets import SetColumn
from maskwright.engines.base import ColumnInfo, Domain
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Relation, Runner
from maskwright.errors import InputError

Selected = tuple[tuple[ColumnInfo, ...], list[exp.Expression], dict[str, Any]]  # columns, items, parameters


def set_elements(runner: Runner, t: Relation, name: str, separator: str | None) -> Domain:
    """What occurs in the sets of a column, with the rows that hold it."""
    parameters = dict(t.parameters)
    distinct = _call("array_distinct", _canonical_values(t, name, separator, 0, parameters))
    lines = clauses.select([clauses.alias(exp.Explode(this=distinct), "v")], t.source())
    there = clauses.select(
        [clauses.column("v")], lines.subquery("x", copy=False), where=[clauses.not_null(clauses.column("v"))]
    )
    rows = sorted(runner.rows(clauses.count_by(there, ["v"]), parameters))
    return Domain(tuple(v for v, _ in rows), tuple(int(n) for _, n in rows), 0, False)


def unfolded_columns(t: Relation, sets: Sequence[SetColumn]) -> Selected:
    """The columns of a table, with bits in place of its sets, what they show, and the parameters of that."""
    columns, items, parameters = list[ColumnInfo](), list[exp.Expression](), dict(t.parameters)
    by_name = {s.name: (i, s) for i, s in enumerate(sets)}
    for info in t.columns:
        if info.name not in by_name:
            columns.append(info)
            items.append(t.raw(info.name))
            continue
        i, column = by_name[info.name]
        values = _canonical_values(t, column.name, column.separator, i, parameters)
        for k, (bit, value) in enumerate(zip(column.bits, column.values, strict=True)):
            parameters[f"value{i}_{k}"] = value
            held = _call("array_contains", values.copy(), clauses.parameter(f"value{i}_{k}"))
            columns.append(ColumnInfo(bit, "boolean", "BOOLEAN"))
            items.append(exp.Coalesce(this=held, expressions=[exp.false()]))
    return tuple(columns), _numbered(items), parameters


def folded_columns(t: Relation, sets: Sequence[SetColumn], originals: Mapping[str, ColumnInfo]) -> Selected:
    """The columns of a published table, with sets in place of their bits, what they show, and the parameters of that.

    Each set is where its first bit was. `originals`: the columns of sets as they were in the source.
    """
    owner = {bit: s for s in sets for bit in s.bits}
    found: dict[str, ColumnInfo | SetColumn] = {}
    for info in t.columns:
        column = owner.get(info.name, info)
        found.setdefault(column.name, column)
    columns, items, parameters = list[ColumnInfo](), list[exp.Expression](), dict(t.parameters)
    for place, column in enumerate(found.values()):
        if isinstance(column, ColumnInfo):
            columns.append(column)
            items.append(t.raw(column.name))
            continue
        original = originals.get(column.name, ColumnInfo(column.name, "text", "VARCHAR"))
        columns.append(replace(original, type="VARCHAR") if original.kind == "text" else original)
        items.append(_whole_set(t, column, original, place, parameters))
    return tuple(columns), _numbered(items), parameters


def typed_with_sets(typed: frozenset[str], sets: Sequence[SetColumn]) -> frozenset[str]:
    """The columns that keep the type of the source, when sets are in place of their bits."""
    return (typed - {bit for s in sets for bit in s.bits}) | {s.name for s in sets}


def _canonical_values(
    t: Relation, name: str, separator: str | None, number: int, parameters: dict[str, Any]
) -> exp.Expression:
    """The canonical values of the set in a row, as a list; missing ones are null."""
    inner, values = _element_info(t.info(name), separator), t.raw(name)
    if separator is not None:
        parameters[f"separator{number}"] = separator
        text = clauses.cast(values, "TEXT")
        values = exp.Split(this=text, expression=clauses.parameter(f"separator{number}"))
    clean = t.canonical_as(clauses.column("u"), inner)
    return exp.Transform(this=values, expression=exp.Lambda(this=clean, expressions=[exp.to_identifier("u")]))


def _element_info(info: ColumnInfo, separator: str | None) -> ColumnInfo:
    """What a value in the sets of a column is."""
    name = info.name
    if separator is not None:
        if info.kind != "text":
            raise InputError(
                f"column {name!r} does not hold texts, so there is nothing to separate; for lists write "
                "multivalued: true"
            )
        return ColumnInfo(name, "text", "VARCHAR")
    element = re.fullmatch(r"(.+)\[\d*\]|ARRAY<(.+)>", info.type)  # of DuckDB, of Spark
    if element is None:
        raise InputError(
            f"column {name!r} is declared multivalued: true, but does not hold lists; "
            'name the separator: multivalued: ";"'
        )
    kind = element[1] or element[2]
    inner = ColumnInfo(name, clauses.kind_of(kind), kind)
    if inner.kind == "other":
        raise InputError(f"column {name!r} holds lists of {kind}; lists of texts or numbers are needed")
    return inner


def _whole_set(
    t: Relation, column: SetColumn, original: ColumnInfo, number: int, parameters: dict[str, Any]
) -> exp.Expression:
    """The set of a row as a text or a list, its values in ascending order."""
    present = list[exp.Expression]()
    for k, (bit, value) in enumerate(zip(column.bits, column.values, strict=True)):
        parameters[f"v{number}_{k}"] = value
        text = clauses.cast(clauses.parameter(f"v{number}_{k}"), "TEXT")
        present.append(clauses.case((t.raw(bit), text), otherwise=exp.null()))
    if column.separator is not None:
        parameters[f"join{number}"] = column.separator
        joined = _call("concat_ws", clauses.parameter(f"join{number}"), *present)
        return exp.Nullif(this=joined, expression=exp.Literal.string(""))
    there = exp.Lambda(this=clauses.not_null(clauses.column("u")), expressions=[exp.to_identifier("u")])
    whole = exp.ArrayFilter(this=exp.Array(expressions=present), expression=there)
    return exp.cast(whole, exp.DataType.build(original.type, dialect=t.dialect), copy=False)


def _numbered(items: Sequence[exp.Expression]) -> list[exp.Expression]:
    return [clauses.alias(item, f"c{i}") for i, item in enumerate(items)]


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))
