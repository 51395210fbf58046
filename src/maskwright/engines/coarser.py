"""Columns at a coarser level, before anything is counted: a view of the source, its dictionaries small tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from maskwright.core.hierarchy import Hierarchy
from maskwright.engines import sql
from maskwright.engines.base import ColumnInfo
from maskwright.engines.coding import Labelled, refuse_unknown
from maskwright.engines.database import Database
from maskwright.engines.estimating import level_texts
from maskwright.engines.opening import DuckTable
from maskwright.errors import PolicyError


def coarsen(db: Database, t: DuckTable, hierarchies: Sequence[Hierarchy]) -> DuckTable:
    """The table with those columns as texts: the labels of the level at which each hierarchy was cut."""
    whole = [h.origin for h in hierarchies if h.origin is not None]
    names = tuple(h.attribute for h, _ in whole)
    for h, level in whole:
        _check_labels(t, h, level)
    coded = Labelled(t, names, tuple(h.values for h, _ in whole), tuple(level_texts(*o) for o in whole))
    view = db.new_name("coarse")
    with db.tables(coded.content()):
        for i, (name, dictionary) in enumerate(zip(names, coded.tables().values(), strict=True)):
            db.run(sql.create_table(f"{view}_{i}", dictionary), t.parameters)
            unknown = sql.equal(sql.column("k"), sql.integer(coded.unknown(i)))
            query = sql.select(
                [sql.column("v")], sql.relation(f"{view}_{i}"), where=[unknown], order=[sql.column("v")]
            )
            refuse_unknown(name, [str(row[0]) for row in db.rows(query, {})])
    columns, items, joins = list[ColumnInfo](), list[exp.Expression](), list[exp.Join]()
    for c, info in enumerate(t.columns):
        shown: exp.Expression = t.raw(info.name)
        if info.name in names:
            i = names.index(info.name)
            same = sql.equal(sql.column("raw", f"d{i}"), t.raw(info.name))
            joins.append(sql.left_join(sql.relation(f"{view}_{i}", f"d{i}"), same))
            shown, info = sql.column("t", f"d{i}"), ColumnInfo(info.name, "text", "VARCHAR")
        items.append(sql.alias(shown, f"c{c}"))
        columns.append(info)
    items.append(sql.alias(t.row_number(), "r"))
    db.run(sql.create_table(view, sql.select(items, t.source(), joins=joins), kind="VIEW"), {})
    return replace(t, columns=tuple(columns), relation=view, row="r")


def _check_labels(t: DuckTable, hierarchy: Hierarchy, level: int) -> None:
    """A label that reads like a missing value, or changes when it is read, cannot stand for one."""
    tokens = {token for name, token in t.parameters.items() if name != "blanks"}
    for label in hierarchy.levels[level].labels[1:]:
        if label is None or not label or label.strip(sql.BLANKS) != label or label in tokens:
            raise PolicyError(
                f"column {hierarchy.attribute!r}: level {hierarchy.levels[level].name!r} has the label {label!r},"
                " which is empty, has blanks at its ends or means missing; rename it, or choose another `finest`"
            )
