"""Columns that pass through, as they are published.

Where such a column has a few texts, its rows hold members of an enumeration: sorting and writing them takes half the
time. All members of a column may be written as its dictionary, so that they must be texts that are published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from maskwright.engines.base import ColumnInfo
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Relation, RowRunner, Runner
from maskwright.engines.sql.table_queries import below_each_other, column_batches

MEMBERS = 4096  # of an enumeration: every group of rows in a Parquet file repeats them
TYPES = 256  # enumerations of columns that pass through
TEXT = ColumnInfo("", "text", "VARCHAR")


def passed(runner: Runner, table: Relation, name: str) -> exp.Expression:
    """A column that passes through. Where all of its distinct texts are clean, rows need not be cleaned one by one."""
    if not _to_clean(table, name):
        return table.value(name)
    found = runner.rows(_of_texts(table, [name]), table.parameters)  # nothing of a table without rows
    return table.value(name) if any(unclean for _, unclean in found) else table.raw(name)


def passed_texts(
    runner: RowRunner, table: Relation, names: Sequence[str]
) -> dict[str, tuple[exp.Expression, list[str]]]:
    """The texts of many columns that pass through, each with all that is published of it in ascending order.

    None are told where these are not texts, or too many, or too many columns: a type for each would take longer than it
    saves.
    """
    result: dict[str, tuple[exp.Expression, list[str]]] = {n: (table.value(n), []) for n in names}
    asked = [name for name in names if _to_clean(table, name)]
    clean = clauses.cleaned(clauses.column("g", "a"), TEXT, table.parameters)
    # the smallest are found while the distinct texts are looked at for the other answer
    most = MEMBERS + 1 if len(asked) <= TYPES else 1
    least = exp.Anonymous(this="min", expressions=[clean, clauses.integer(most)])
    for batch in column_batches(runner, table, asked):
        for i, unclean, found in runner.rows(_of_texts(table, batch, least), table.parameters):
            texts = sorted(set(found or ()))  # several may become the same
            few = len(found or ()) < most
            value = table.value(batch[i]) if unclean else table.raw(batch[i])
            result[batch[i]] = value, texts if few else []
    return result


def member(runner: RowRunner, kind: str, texts: Sequence[str], value: exp.Expression) -> exp.Expression:
    """A value as a member of an enumeration of these texts; as it is, where there are none."""
    if not texts:
        return value
    # DuckDB makes a cast that may fail once for each text of a block of rows, and one that must not for each row: the
    # second one here meets missing values only, unless the table is not the one whose texts these are
    members = runner.enumeration(kind, texts)
    tried = exp.TryCast(this=value, to=members)
    return exp.Coalesce(this=tried, expressions=[exp.cast(value.copy(), members)])


def texts_of_rows(runner: RowRunner, rows: exp.Select, parameters: Mapping[str, Any]) -> list[str]:
    """The texts that a query with one column has, in ascending order."""
    return sorted(text for (text,) in runner.rows(rows.distinct(copy=False), parameters) if text is not None)


def _to_clean(table: Relation, name: str) -> bool:
    """Are its values texts that may have to be cleaned? A published table is clean."""
    return table.info(name).type.upper() == "VARCHAR" and "blanks" in table.parameters


def _of_texts(table: Relation, names: Sequence[str], also: exp.Expression | None = None) -> exp.Select:
    """By the place `i` of columns: how many of their distinct texts are not clean, and what else is asked of them."""
    if len(names) == 1:  # quicker, and a table may have very many rows
        one = clauses.select([clauses.alias(table.raw(names[0]), "g")], table.source(), distinct=True)
        distinct = clauses.select(
            [clauses.alias(clauses.integer(0), "i"), clauses.column("g")], one.subquery("d", copy=False)
        )
    else:
        distinct = clauses.select(below_each_other(table, names), table.source(), distinct=True)
    raw = clauses.column("g", "a")
    unclean = exp.NullSafeNEQ(this=raw, expression=clauses.cleaned(raw.copy(), TEXT, table.parameters))
    # not a condition: that would be asked of every row, before they are made distinct
    counted = exp.Count(this=clauses.case((unclean, clauses.integer(1)), otherwise=exp.null()))
    place, items = clauses.column("i", "a"), [counted, *([also] if also else [])]
    return clauses.select([place, *items], distinct.subquery("a", copy=False), group=[place.copy()])
