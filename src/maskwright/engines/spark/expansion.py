"""Releases without columns that pass through, expanded from the plan on the cluster: the source is not read again."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from maskwright.core.plan import GroupPlan
from maskwright.engines import sql
from maskwright.engines.base import ColumnInfo
from maskwright.engines.expansion import Entries, store_texts
from maskwright.engines.spark.matching import matched
from maskwright.engines.spark.opening import SparkTable
from maskwright.engines.spark.recoding import Recoded
from maskwright.engines.spark.runner import SparkRunner


def create(
    runner: SparkRunner,
    table: SparkTable,
    plan: GroupPlan,
    target: str,
    columns: Sequence[str],
    parts: Sequence[Entries],
    purpose: str,
) -> Recoded:
    """Create the view `target`. Rows of the parts that are in the same group are matched at random."""
    matched(runner, f"{target}_rows", parts, plan.key, purpose)
    infos, items = [], list[exp.Expression]()
    if plan.group_column is not None:
        infos.append(ColumnInfo(plan.group_column, "integer", "INTEGER"))
        items.append(sql.cast(sql.digit(parts[0].packing, 0, "x", "p0w"), "INT"))
    place = {c.name: (p, i) for p, part in enumerate(parts) for i, c in enumerate(part.columns)}
    typed = []
    for position, name in enumerate(columns):
        p, i = place[name]
        shown, info, decode = parts[p].columns[i], table.info(name), f"{target}_{position}"
        if shown.texts is None:
            typed.append(name)
        plain = shown.texts is not None or info.kind == "text"
        store_texts(runner, table, shown, parts[p].used(i), decode, plain)
        items.append(runner.lookup(decode, sql.digit(parts[p].packing, i + 1, "x", f"p{p}w")))
        infos.append(ColumnInfo(name, "text", "VARCHAR") if plain else info)
    named = [sql.alias(item, f"c{i}") for i, item in enumerate(items)]
    query = sql.select(named, sql.relation(f"{target}_rows", "x"))
    runner.run(sql.create_table(target, query, kind="VIEW"), {})
    return Recoded(tuple(infos), frozenset(typed))
