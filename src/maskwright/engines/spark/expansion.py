"""Releases without columns that pass through, expanded from the plan on the cluster: the source is not read again."""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.core.plan import GroupPlan
from maskwright.engines import sql
from maskwright.engines.expansion import Entries, decoded
from maskwright.engines.spark.matching import matched
from maskwright.engines.spark.opening import SparkTable
from maskwright.engines.spark.recoding import Recoded
from maskwright.engines.spark.runner import SparkRunner

TIMES = "n"  # how many rows an entry stands for


def create(
    runner: SparkRunner,
    table: SparkTable,
    plan: GroupPlan,
    target: str,
    columns: Sequence[str],
    parts: Sequence[Entries],
    purpose: str,
) -> Recoded:
    """Create the view `target`. Rows of the parts that are in the same group are matched at random.

    Where there is only one part, nothing is matched: its entries stay as they are, with the number of their rows.
    """
    rows = f"{target}_rows"
    if len(parts) == 1:
        words = {f"p0w{w}": key for w, key in enumerate(parts[0].keys)}
        runner.view(rows, runner.from_arrays({**words, TIMES: parts[0].rows}))
    else:
        matched(runner, rows, parts, plan.key, purpose)
    infos, items, typed = decoded(runner, table, plan, target, columns, parts, {})
    named = [sql.alias(item, f"c{i}") for i, item in enumerate(items)]
    times = TIMES if len(parts) == 1 else None
    if times is not None:
        named.append(sql.alias(sql.column(times, "x"), times))
    query = sql.select(named, sql.relation(rows, "x"))
    runner.run(sql.create_table(target, query, kind="VIEW"), {})
    return Recoded(infos, typed, times)
