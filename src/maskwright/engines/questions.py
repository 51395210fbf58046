"""Small questions about a table, for every engine that speaks SQL: its values, its combinations, a few rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from sqlglot import exp

from maskwright.engines import sql
from maskwright.engines.base import Domain
from maskwright.engines.coding import Runner
from maskwright.engines.relation import Relation


def domain(runner: Runner, t: Relation, column: str, limit: int | None = None) -> Domain:
    """Distinct canonical values; with `limit`, at most that many, the commonest."""
    query = _canonical_groups(t, [column])
    if limit is not None:
        first = sql.case((sql.is_null(sql.column("g0")), sql.integer(0)), otherwise=sql.integer(1))
        commonest = exp.Ordered(this=sql.column("n"), desc=True)
        query = query.order_by(first, commonest, sql.column("g0")).limit(limit + 1)
    return domain_of(runner.rows(query, t.parameters), limit)


def domain_of(counted: Iterable[tuple[str | None, int]], limit: int | None = None) -> Domain:
    """From canonical values with their rows, the commonest first if there is a limit."""
    rows: dict[str | None, int] = {}
    for value, n in counted:
        rows[value] = rows.get(value, 0) + int(n)
    missing = rows.pop(None, 0)
    values = [value for value in rows if value is not None][:limit]
    numeric = bool(values) and all(map(sql.NUMBER.fullmatch, values))
    values = sorted(values, key=lambda v: (Decimal(v), v)) if numeric else sorted(values)
    return Domain(tuple(values), tuple(rows[v] for v in values), missing, numeric)


def sample(runner: Runner, t: Relation, rows: int) -> list[dict[str, str | None]]:
    """A few rows as canonical text."""
    found = runner.rows(sql.select([t.text(n) for n in t.names], t.source(), limit=rows), t.parameters)
    return [dict(zip(t.names, row, strict=True)) for row in found]


def uniqueness(runner: Runner, t: Relation, columns: Sequence[str]) -> tuple[int, int]:
    """(number of distinct combinations, rows whose combination is unique)."""
    groups = _canonical_groups(t, columns).subquery("g", copy=False)
    alone = sql.equal(sql.column("n"), sql.integer(1))
    ones = exp.Count(this=sql.case((alone, sql.integer(1)), otherwise=exp.null()))
    [(distinct, unique)] = runner.rows(sql.select([sql.count(), ones], groups), t.parameters)
    return int(distinct), int(unique)


def _canonical_groups(t: Relation, columns: Sequence[str]) -> exp.Select:
    """Rows `n` per combination of canonical values g0, g1 …

    The source is grouped as it is first, so that values are made canonical once per group, not per row.
    """
    names = [f"g{i}" for i in range(len(columns))]
    within = list(zip(names, columns, strict=True))
    raw = sql.select([sql.alias(t.raw(c), n) for n, c in within] or [sql.integer(1)], t.source())
    inner = sql.count_by(raw, names).subquery("i", copy=False)
    texts = [sql.alias(t.canonical(c, sql.column(n, "i")), n) for n, c in within]
    canonical = sql.select([*texts, sql.column("n", "i")], inner)
    return sql.count_by(canonical, names, sql.alias(exp.Sum(this=sql.column("n")), "n"))
