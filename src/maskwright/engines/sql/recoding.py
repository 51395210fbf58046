"""Full-domain recoding of rows: each quasi-identifier through its map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from maskwright.domain.hierarchy import TOP
from maskwright.domain.recoding_plan import ColumnMap, Plan
from maskwright.engines.base import ColumnInfo
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Arrays, Coded, Relation, RowRunner
from maskwright.engines.sql.packed_keys import Packing, number
from maskwright.engines.sql.passing import member, passed_texts, texts_of_rows

SUPPRESSED = "suppressed"


@dataclass(frozen=True)
class Recoded:
    """A published table that is yet to be read.

    Attributes:
        columns: its columns.
        typed: those among them that keep the type of the source.
        query: its rows in their order, the columns called c0, c1 …
        parameters: what the query refers to.
        sorts: every reading sorts the rows again.
        stored: the tables that hold its rows.
    """

    columns: tuple[ColumnInfo, ...]
    typed: frozenset[str]
    query: exp.Select
    parameters: Mapping[str, Any]
    sorts: bool
    stored: tuple[str, ...]


def recode(runner: RowRunner, table: Relation, plan: Plan, target: str) -> Recoded:
    """One map per quasi-identifier. Rows that are to be shuffled are stored as they come, with their number `r`.

    Joins that are made by several threads do not keep an order.
    """
    by_name, maps = plan.by_name, maps_with_codes(plan, table)
    coded = Coded.of(
        table, tuple(m.hierarchy.attribute for m in maps), tuple(m.hierarchy.values for m in maps)
    )
    columns, items, passing = list[ColumnInfo](), list[exp.Expression](), dict[int, list[str]]()
    as_they_are = passed_texts(
        runner, table, [n for n in plan.columns if _passes(plan, table, n, by_name.get(n))]
    )
    for position, name in enumerate(plan.columns):
        kind, map_, info = f"{target}_{position}", by_name.get(name), table.info(name)
        if map_ is None or name in as_they_are:
            value, passing[position] = as_they_are[name]
            value = member(runner, kind, passing[position], value)
        else:
            value = _labels(runner, coded, map_, plan.stars, kind)
            info = ColumnInfo(name, "text", "VARCHAR")
        columns.append(ColumnInfo(name, "text", "VARCHAR") if info.kind == "text" else info)
        items.append(clauses.alias(value, f"c{position}"))
    joins, where, content = kept_rows(plan, table, coded)
    order = [] if plan.key else [table.row_number()]
    if plan.key:
        items.append(clauses.alias(table.row_number(), "r"))
    query = clauses.select(
        items, table.source(), joins=joins, where=where, order=order, tables=coded.tables()
    )
    with coded.at_hand(runner, content):
        runner.run(clauses.create_table(target, query), table.parameters)
    shown: list[exp.Expression] = [clauses.column(f"c{i}", "t") for i in range(len(columns))]
    if where:
        for i, texts in passing.items():
            shown[i] = _of_kept_rows(runner, target, i, texts)
    stored = clauses.select(
        [clauses.alias(v, f"c{i}") for i, v in enumerate(shown)], clauses.relation(target, "t")
    )
    return Recoded(tuple(columns), with_their_type(plan), stored, {}, False, (target,))


def _passes(plan: Plan, table: Relation, name: str, map_: ColumnMap | None) -> bool:
    """Is a column published as it is?"""
    return map_ is None or (map_.identity and not plan.stars and table.info(name).kind != "text")


def _labels(runner: RowRunner, coded: Coded, map_: ColumnMap, stars: bool, decode: str) -> exp.Expression:
    """What is published of a quasi-identifier: texts."""
    code = coded.code(coded.names.index(map_.hierarchy.attribute))
    used = set(range(len(map_.texts)) if map_.used is None else map_.used.tolist())
    texts = [label(text) if i in used else None for i, text in enumerate(map_.texts)]
    if stars:
        away = clauses.not_null(clauses.column("k0", SUPPRESSED))
        code = clauses.case((away, clauses.integer(len(texts))), otherwise=code)
        texts.append(TOP)
    return runner.lookup_text(decode, texts, code, map_.used is not None)


def _of_kept_rows(runner: RowRunner, target: str, i: int, texts: list[str]) -> exp.Expression:
    """Column i of a stored table, whose members may be texts of rows that were left out: those are members no more."""
    value = clauses.column(f"c{i}", "t")
    if not texts:
        return value
    text = clauses.cast(value.copy(), "TEXT")
    kept = texts_of_rows(runner, clauses.select([text.copy()], clauses.relation(target, "t")), {})
    return value if kept == texts else member(runner, f"{target}_{i}_kept", kept, text)


def maps_with_codes(plan: Plan, table: Relation) -> list[ColumnMap]:
    """Columns of numbers that are published as they are need no code, unless rows are suppressed by it."""
    wanted = plan.by_name.items()
    return [m for n, m in wanted if plan.suppresses or not m.identity or table.info(n).kind == "text"]


def with_their_type(plan: Plan) -> frozenset[str]:
    """The columns that are published in the type of the source."""
    by_name = plan.by_name
    return frozenset(n for n in plan.columns if n not in by_name or (by_name[n].identity and not plan.stars))


def kept_rows(
    plan: Plan, table: Relation, coded: Coded
) -> tuple[list[exp.Join], list[exp.Expression], dict[str, Arrays]]:
    """Joins, conditions and small tables that find the rows to publish; suppressed ones have a key in `SUPPRESSED`."""
    joins, content = coded.joins(), coded.content()
    where: list[exp.Expression] = [clauses.not_null(table.value(name)) for name in plan.drop_missing]
    if plan.suppresses:
        packing = Packing.of(coded.radices)
        keys, _ = number(packing.pack(plan.suppressed), plan.suppressed.shape[1])  # each tuple once
        content[SUPPRESSED] = {f"k{w}": key for w, key in enumerate(keys)}
        words = clauses.packed([coded.code(i) for i in range(len(coded.names))], packing)
        same = [clauses.equal(clauses.column(f"k{w}", SUPPRESSED), word) for w, word in enumerate(words)]
        joins.append(clauses.left_join(clauses.relation(SUPPRESSED), clauses.all_of(same)))
        if not plan.star:
            where.append(clauses.is_null(clauses.column("k0", SUPPRESSED)))
    return joins, where, content


def label(text: str | None) -> str | None:
    """Labels are published like any other text: without surrounding blanks, and never empty."""
    return (text.strip() or None) if text is not None else None
