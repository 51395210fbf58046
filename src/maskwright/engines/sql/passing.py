"""Columns that pass through, as they are published.

Where such a column has a few texts, its rows hold members of an enumeration: sorting and writing them takes half the
time. All members of a column may be written as its dictionary, so that they must be texts that are published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from maskwright.engines.sql import clauses
from maskwright.engines.sql.coding import Relation, RowRunner, Runner

MEMBERS = 4096  # of an enumeration: every group of rows in a Parquet file repeats them


def passed(runner: Runner, table: Relation, name: str) -> exp.Expression:
    """A column that passes through. Where all of its distinct texts are clean, rows need not be cleaned one by one."""
    if not _to_clean(table, name):
        return table.value(name)
    [(unclean,)] = runner.rows(_of_texts(table, name, []), table.parameters)
    return table.value(name) if unclean else table.raw(name)


def passed_texts(runner: RowRunner, table: Relation, name: str) -> tuple[exp.Expression, list[str]]:
    """The same, with all that is published of it in ascending order; none where these are not texts, or too many."""
    if not _to_clean(table, name):
        return table.value(name), []
    # the smallest are found while the distinct texts are looked at for the other answer
    clean = clauses.cleaned(clauses.column("raw", "a"), table.info(name), table.parameters)
    least = exp.Anonymous(this="min", expressions=[clean, clauses.integer(MEMBERS + 1)])
    [(unclean, found)] = runner.rows(_of_texts(table, name, [least]), table.parameters)
    texts = sorted(set(found or ()))  # several may become the same
    return table.value(name) if unclean else table.raw(name), texts if len(found or ()) <= MEMBERS else []


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


def _of_texts(table: Relation, name: str, also: Sequence[exp.Expression]) -> exp.Select:
    """How many of the distinct texts of a column are not clean, and what else is asked of them (`raw` of table `a`)."""
    distinct = clauses.select([clauses.alias(table.raw(name), "raw")], table.source(), distinct=True)
    raw = clauses.column("raw", "a")
    unclean = exp.NullSafeNEQ(
        this=raw, expression=clauses.cleaned(raw.copy(), table.info(name), table.parameters)
    )
    # not a condition: that would be asked of every row, before they are made distinct
    counted = exp.Count(this=clauses.case((unclean, clauses.integer(1)), otherwise=exp.null()))
    return clauses.select([counted, *also], distinct.subquery("a", copy=False))
