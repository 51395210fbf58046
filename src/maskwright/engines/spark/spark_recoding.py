"""Full-domain recoding on Spark: the labels of a level come with the codes of its values. Rows have no order here."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from maskwright.domain.hierarchy import TOP
from maskwright.domain.recoding_plan import ColumnMap, Plan
from maskwright.engines.base import ColumnInfo
from maskwright.engines.spark.runner import SparkRunner
from maskwright.engines.spark.spark_opening import SparkCoded, SparkTable
from maskwright.engines.sql import clauses
from maskwright.engines.sql.recoding import SUPPRESSED, kept_rows, label, maps_with_codes, with_their_type


@dataclass(frozen=True)
class RecodedView:
    """The columns of the published table, and those among them that keep the type of the source.

    `times`: a further column, which says how many rows each one stands for.
    """

    columns: tuple[ColumnInfo, ...]
    typed: frozenset[str]
    times: str | None = None


def recode_columns(runner: SparkRunner, table: SparkTable, plan: Plan, target: str) -> RecodedView:
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
        items.append(clauses.alias(value, f"c{position}"))

    joins, where, content = kept_rows(plan, table, coded)
    query = clauses.select(items, table.source(), joins=joins, where=where)
    with runner.tables(content):
        runner.run(clauses.create_table(target, query), parameters)
    return RecodedView(tuple(columns), with_their_type(plan))


def _published(
    table: SparkTable, coded: SparkCoded, name: str, map_: ColumnMap | None, stars: bool
) -> tuple[exp.Expression, ColumnInfo]:
    """What is published of a column, and what that is: text, unless the column keeps its type."""
    info = table.info(name)
    if map_ is None or (map_.identity and info.kind != "text"):
        value = table.text(name) if stars and map_ else table.value(name)
    else:
        i = coded.names.index(name)
        missing = clauses.cast(clauses.parameter(f"missing{i}"), "TEXT")
        value = clauses.case(
            (clauses.equal(coded.code(i), clauses.integer(0)), missing), otherwise=coded.label(i)
        )
    if stars and map_:
        value = clauses.case(
            (clauses.not_null(clauses.column("k0", SUPPRESSED)), exp.Literal.string(TOP)), otherwise=value
        )
    if map_ is None or (map_.identity and not stars):
        return value, info if info.kind != "text" else ColumnInfo(name, "text", "VARCHAR")
    return value, ColumnInfo(name, "text", "VARCHAR")
