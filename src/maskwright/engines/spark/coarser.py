"""Columns at a coarser level, before anything is counted: a view of the source, to which the labels are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from maskwright.core.hierarchy import Hierarchy
from maskwright.engines import sql
from maskwright.engines.base import ColumnInfo
from maskwright.engines.coarser import check_labels
from maskwright.engines.coding import refuse_unknown
from maskwright.engines.estimating import level_texts
from maskwright.engines.spark.coding import SparkCoded
from maskwright.engines.spark.opening import SparkTable
from maskwright.engines.spark.runner import SparkRunner


def coarsen(runner: SparkRunner, t: SparkTable, hierarchies: Sequence[Hierarchy]) -> SparkTable:
    """The table with those columns as texts: the labels of the level at which each hierarchy was cut."""
    whole = [h.origin for h in hierarchies if h.origin is not None]
    names = tuple(h.attribute for h, _ in whole)
    for h, level in whole:
        check_labels(t, h, level)
    coded = SparkCoded(t, names, tuple(h.values for h, _ in whole), tuple(level_texts(*o) for o in whole))
    for i, name in enumerate(names):
        refuse_unknown(name, coded.unknown_values(runner, i))
    shown = {name: coded.label(i) for i, name in enumerate(names)}
    columns = [ColumnInfo(c.name, "text", "VARCHAR") if c.name in shown else c for c in t.columns]
    items = [sql.alias(shown.get(c.name, t.raw(c.name)), f"c{i}") for i, c in enumerate(t.columns)]
    items.append(sql.alias(t.row_number(), t.row))
    view = runner.new_name("coarse")
    with runner.tables(coded.content()):
        runner.view(view, runner.frame(sql.select(items, t.source(), joins=coded.joins()), {}))
    return replace(t, columns=tuple(columns), relation=view)
