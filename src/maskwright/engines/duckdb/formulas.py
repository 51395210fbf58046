"""The rule of domain/spreadsheets.py inside DuckDB: cells that a spreadsheet would run are refused, or marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from maskwright.domain.exact import short_repr
from maskwright.domain.spreadsheets import FIRST, HARMLESS, MARK, MARKED, RUNS, would_run
from maskwright.engines.base import ColumnInfo
from maskwright.engines.duckdb.database import Database
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Relation
from maskwright.engines.sql.table_queries import column_batches, column_values
from maskwright.errors import InputError

REMEDY = (
    "nothing was published; write output: {formulas: escape} to put an apostrophe before such cells, output: {format: "
    "parquet} for a file that no spreadsheet runs, or output: {formulas: allow}"
)


def can_hold(info: ColumnInfo) -> bool:
    """Numbers, dates and truth values never read as formulas."""
    return info.kind in ("text", "other")


def refuse_name(name: str) -> None:
    """Refuse a column whose name a spreadsheet would run."""
    if would_run(name):
        raise InputError(
            f"the name of column {short_repr(name)} is one that a spreadsheet would run as a formula; rename the "
            "column, or "
            f"{REMEDY}"
        )


def refuse_columns(db: Database, t: Relation, names: Sequence[str]) -> None:
    """Refuse a table in one of whose columns a cell would run."""
    for batch in column_batches(db, t, names):
        if len(batch) == 1:
            text = clauses.alias(t.text(batch[0]), "g")
            values = clauses.select([text, clauses.alias(clauses.integer(0), "i")], t.source(), distinct=True)
        else:
            values = column_values(t, batch)
        cell = clauses.column("g")
        bad = exp.And(this=_matches(cell, RUNS), expression=exp.Not(this=_harmless(cell.copy())))
        # not a condition: that would be asked of every row, before they are made distinct
        one = exp.Min(this=clauses.case((bad, cell.copy()), otherwise=exp.null()))
        found = dict(db.rows(clauses.count_by(values, ["i"], one), t.parameters))
        for i, name in enumerate(batch):
            refuse_found(name, found.get(i))


def refuse_among(name: str, texts: Iterable[str]) -> None:
    """Refuse a column, all of whose texts are known, where one of them is a formula."""
    refuse_found(name, min(filter(would_run, texts), default=None))


def refuse_found(name: str, found: str | None) -> None:
    """Refuse a column for a cell that was found in it, if one was."""
    if found is not None:
        raise InputError(
            f"column {name!r}: a spreadsheet would run the cell {short_repr(found)} as a formula; {REMEDY}"
        )


def marked(text: exp.Expression) -> exp.Expression:
    """`escape` of a text."""
    done = _replaced(_replaced(text, MARKED, r"\1'\2"), FIRST, r"'\1")
    return clauses.case((_harmless(text.copy()), text.copy()), otherwise=done)


def unmarked(text: exp.Expression) -> exp.Expression:
    """`unescape` of a text."""
    return _replaced(text, MARK, r"\1")


def _matches(text: exp.Expression, pattern: str) -> exp.Expression:
    return exp.Anonymous(this="regexp_matches", expressions=[text, exp.Literal.string(pattern)])


def _harmless(text: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this="regexp_full_match", expressions=[text, exp.Literal.string(HARMLESS)])


def _replaced(text: exp.Expression, pattern: str, by: str) -> exp.Expression:
    options = [exp.Literal.string(x) for x in (pattern, by, "g")]
    return exp.Anonymous(this="regexp_replace", expressions=[text.copy(), *options])
