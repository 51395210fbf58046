"""Columns at a coarser level, before anything is counted: a view of the source, to which the labels are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from maskwright.core.hierarchy import Hierarchy
from maskwright.engines import sql
from maskwright.engines.coarser import coded_at, with_labels
from maskwright.engines.coding import refuse_unknown
from maskwright.engines.spark.coding import SparkCoded
from maskwright.engines.spark.opening import SparkTable
from maskwright.engines.spark.runner import SparkRunner


def coarsen(runner: SparkRunner, t: SparkTable, hierarchies: Sequence[Hierarchy]) -> SparkTable:
    """The table with those columns as texts: the labels of the level at which each hierarchy was cut."""
    coded = coded_at(t, hierarchies, SparkCoded)
    for i, name in enumerate(coded.names):
        refuse_unknown(name, coded.unknown_values(runner, i))
    columns, items = with_labels(t, {name: coded.label(i) for i, name in enumerate(coded.names)})
    items.append(sql.alias(t.row_number(), t.row))
    view = runner.new_name("coarse")
    with runner.tables(coded.content()):
        runner.view(view, runner.frame(sql.select(items, t.source(), joins=coded.joins()), {}))
    return replace(t, columns=columns, relation=view)
