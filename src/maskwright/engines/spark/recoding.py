"""Full-domain recoding on Spark: the labels of a level come with the codes of its values. Rows have no order here."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from maskwright.core.hierarchy import TOP
from maskwright.core.plan import ColumnMap, Plan
from maskwright.engines import sql
from maskwright.engines.base import ColumnInfo
from maskwright.engines.coding import Arrays
from maskwright.engines.keys import Packing, number
from maskwright.engines.recoding import label
from maskwright.engines.spark.coding import TextCoded
from maskwright.engines.spark.opening import SparkTable
from maskwright.engines.spark.runner import SparkRunner

SUPPRESSED = "suppressed"


@dataclass(frozen=True)
class Recoded:
    """The columns of the published table, and those among them that keep the type of the source."""

    columns: tuple[ColumnInfo, ...]
    typed: frozenset[str]


def recode(runner: SparkRunner, table: SparkTable, plan: Plan, target: str) -> Recoded:
    """Create the view `target`."""
    suppresses = plan.suppressed.shape[1] > 0
    stars = suppresses and plan.star
    by_name = {m.hierarchy.attribute: m for m in plan.maps}
    # columns of numbers that are published as they are need no code, unless rows are suppressed by it
    maps = [m for n, m in by_name.items() if suppresses or not m.identity or table.info(n).kind == "text"]
    coded = TextCoded(
        table,
        tuple(m.hierarchy.attribute for m in maps),
        tuple(m.hierarchy.values for m in maps),
        tuple(tuple(map(label, m.texts[1:])) for m in maps),
    )
    parameters = {**table.parameters}
    parameters |= {f"missing{i}": label(m.texts[0]) for i, m in enumerate(maps)}
    columns, items = [], []
    for position, name in enumerate(plan.columns):
        value, info = _published(table, coded, name, by_name.get(name), stars)
        columns.append(info)
        items.append(sql.alias(value, f"c{position}"))

    joins, content = coded.joins(), coded.content()
    where: list[exp.Expression] = [sql.not_null(table.value(name)) for name in plan.drop_missing]
    if suppresses:
        packing = Packing.of(coded.radices)
        content[SUPPRESSED] = _keys(packing, plan)
        joins.append(_join_suppressed(packing, coded))
        if not stars:
            where.append(sql.is_null(sql.column("k0", SUPPRESSED)))
    query = sql.select(items, table.source(), joins=joins, where=where)
    with runner.tables(content):
        runner.run(sql.create_table(target, query), parameters)
    kept = (n for n in plan.columns if n not in by_name or (by_name[n].identity and not stars))
    return Recoded(tuple(columns), frozenset(kept))


def _published(
    table: SparkTable, coded: TextCoded, name: str, map_: ColumnMap | None, stars: bool
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


def _keys(packing: Packing, plan: Plan) -> Arrays:
    """The packed keys of the suppressed tuples, each once."""
    keys, _ = number(packing.pack(plan.suppressed), plan.suppressed.shape[1])
    return {f"k{w}": key for w, key in enumerate(keys)}


def _join_suppressed(packing: Packing, coded: TextCoded) -> exp.Join:
    """Find the suppressed rows: the others have no key there."""
    words = sql.packed([coded.code(i) for i in range(len(coded.names))], packing)
    same = [sql.equal(sql.column(f"k{w}", SUPPRESSED), key) for w, key in enumerate(words)]
    return sql.left_join(sql.relation(SUPPRESSED), sql.all_of(same))
