"""Full-domain recoding on Spark: the labels of a level come with the codes of its values. Rows have no order here."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from maskwright.core.hierarchy import TOP
from maskwright.core.plan import ColumnMap, Plan
from maskwright.engines import sql
from maskwright.engines.base import ColumnInfo
from maskwright.engines.recoding import SUPPRESSED, kept_rows, label, maps_with_codes, with_their_type
from maskwright.engines.spark.coding import SparkCoded
from maskwright.engines.spark.opening import SparkTable
from maskwright.engines.spark.runner import SparkRunner


@dataclass(frozen=True)
class Recoded:
    """The columns of the published table, and those among them that keep the type of the source.

    `times`: a further column, which says how many rows each one stands for.
    """

    columns: tuple[ColumnInfo, ...]
    typed: frozenset[str]
    times: str | None = None


def recode(runner: SparkRunner, table: SparkTable, plan: Plan, target: str) -> Recoded:
    """Create the view `target`."""
    by_name, maps = plan.by_name, maps_with_codes(plan, table)
    coded = SparkCoded(
        table,
        tuple(m.hierarchy.attribute for m in maps),
        tuple(m.hierarchy.values for m in maps),
        tuple(tuple(map(label, m.texts[1:])) for m in maps),
    )
    parameters = {**table.parameters}
    parameters |= {f"missing{i}": label(m.texts[0]) for i, m in enumerate(maps)}
    columns, items = [], []
    for position, name in enumerate(plan.columns):
        value, info = _published(table, coded, name, by_name.get(name), plan.stars)
        columns.append(info)
        items.append(sql.alias(value, f"c{position}"))

    joins, where, content = kept_rows(plan, table, coded)
    query = sql.select(items, table.source(), joins=joins, where=where)
    with runner.tables(content):
        runner.run(sql.create_table(target, query), parameters)
    return Recoded(tuple(columns), with_their_type(plan))


def _published(
    table: SparkTable, coded: SparkCoded, name: str, map_: ColumnMap | None, stars: bool
) -> tuple[exp.Expression, ColumnInfo]:
    """What is published of a column, and what that is: text, unless the column keeps its type."""
    info = table.info(name)
    if map_ is None or (map_.identity and info.kind != "text"):
        value = table.text(name) if stars and map_ else table.value(name)
    else:
        i = coded.names.index(name)
        missing = sql.cast(sql.parameter(f"missing{i}"), "TEXT")
        value = sql.case((sql.equal(coded.code(i), sql.integer(0)), missing), otherwise=coded.label(i))
    if stars and map_:
        value = sql.case(
            (sql.not_null(sql.column("k0", SUPPRESSED)), exp.Literal.string(TOP)), otherwise=value
        )
    if map_ is None or (map_.identity and not stars):
        return value, info if info.kind != "text" else ColumnInfo(name, "text", "VARCHAR")
    return value, ColumnInfo(name, "text", "VARCHAR")
