"""Small questions about a table, for every engine that speaks SQL: its values, its combinations, a few rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from sqlglot import exp

from maskwright.domain.hierarchy import Hierarchy
from maskwright.engines.base import Domain, SummarySpec
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coding import Labelled, Relation, Runner


def row_count(runner: Runner, t: Relation) -> int:
    """The number of rows."""
    return int(runner.rows(clauses.select([clauses.count()], t.source()), {})[0][0])


def fingerprint(runner: Runner, t: Relation) -> str:
    """What tells inputs apart (see `Engine.fingerprint`)."""
    if t.identity is not None:
        return t.identity
    row = clauses.row_hash(*map(t.hashable, t.names))
    total = exp.Sum(this=clauses.cast(row, "HUGEINT"))  # of 64-bit numbers: it cannot overflow
    [found] = runner.rows(clauses.select([clauses.count(), total], t.source()), {})
    return hashlib.sha256("\0".join([*map(str, found), *t.names]).encode()).hexdigest()


def domain(runner: Runner, t: Relation, column: str, limit: int | None = None) -> Domain:
    """Distinct canonical values; with `limit`, at most that many, the commonest."""
    query = _canonical_groups(t, [column])
    if limit is not None:
        first = clauses.case(
            (clauses.is_null(clauses.column("g0")), clauses.integer(0)), otherwise=clauses.integer(1)
        )
        commonest = exp.Ordered(this=clauses.column("n"), desc=True)
        query = query.order_by(first, commonest, clauses.column("g0")).limit(limit + 1)
    return domain_of(runner.rows(query, t.parameters), limit)


def domain_of(counted: Iterable[tuple[str | None, int]], limit: int | None = None) -> Domain:
    """From canonical values with their rows, the commonest first if there is a limit."""
    rows: dict[str | None, int] = {}
    for value, n in counted:
        rows[value] = rows.get(value, 0) + int(n)
    missing = rows.pop(None, 0)
    values = [value for value in rows if value is not None][:limit]
    numeric = bool(values) and all(map(clauses.NUMBER.fullmatch, values))
    values = sorted(values, key=lambda v: (Decimal(v), v)) if numeric else sorted(values)
    return Domain(tuple(values), tuple(rows[v] for v in values), missing, numeric)


def sample(
    runner: Runner, t: Relation, rows: int, columns: Sequence[str] | None = None
) -> list[dict[str, str | None]]:
    """A few rows as canonical text, with these columns of the table (None: all)."""
    known = set(t.names)
    names = t.names if columns is None else [name for name in dict.fromkeys(columns) if name in known]
    if not names:
        return []
    found = runner.rows(clauses.select([t.text(n) for n in names], t.source(), limit=rows), t.parameters)
    return [dict(zip(names, row, strict=True)) for row in found]


def uniqueness(runner: Runner, t: Relation, columns: Sequence[str]) -> tuple[int, int]:
    """(number of distinct combinations, rows whose combination is unique)."""
    groups = _canonical_groups(t, columns).subquery("g", copy=False)
    alone = clauses.equal(clauses.column("n"), clauses.integer(1))
    ones = exp.Count(this=clauses.case((alone, clauses.integer(1)), otherwise=exp.null()))
    [(distinct, unique)] = runner.rows(clauses.select([clauses.count(), ones], groups), t.parameters)
    return int(distinct), int(unique)


def _canonical_groups(t: Relation, columns: Sequence[str]) -> exp.Select:
    """Rows `n` per combination of canonical values g0, g1 …

    The source is grouped as it is first, so that values are made canonical once per group, not per row.
    """
    names = [f"g{i}" for i in range(len(columns))]
    within = list(zip(names, columns, strict=True))
    raw = clauses.select([clauses.alias(t.raw(c), n) for n, c in within] or [clauses.integer(1)], t.source())
    inner = clauses.count_by(raw, names).subquery("i", copy=False)
    texts = [clauses.alias(t.canonical(c, clauses.column(n, "i")), n) for n, c in within]
    canonical = clauses.select([*texts, clauses.column("n", "i")], inner)
    return clauses.count_by(canonical, names, clauses.alias(exp.Sum(this=clauses.column("n")), "n"))


SAMPLE = 1 << 17  # combinations to look at, if every row had one of its own


def combinations(
    runner: Runner, table: Relation, spec: SummarySpec, choices: Sequence[Mapping[str, int]]
) -> list[int]:
    """About how many cells the summary would have, for each choice of coarser levels (none: as the table is).

    With a unit, people are told apart too: that is the most that can be counted.
    """
    [(rows,)] = runner.rows(clauses.select([clauses.count()], table.source()), table.parameters)
    share = max(1, rows // SAMPLE)
    wanted = sorted({(name, level) for choice in choices for name, level in choice.items()})
    by_name = {h.attribute: h for h in spec.attributes}
    coded = Labelled(
        table, tuple(name for name, _ in wanted), tuple(by_name[name].values for name, _ in wanted),
        tuple(level_texts(by_name[name], level) for name, level in wanted),
    )  # fmt: skip
    names = [*by_name, *(s.name for s in spec.sensitive), *([spec.unit] if spec.unit else [])]
    keys = []
    for choice in choices:
        parts = [coded.label(wanted.index((n, choice[n]))) if n in choice else table.raw(n) for n in names]
        keys.append(clauses.row_hash(*parts))
    rows_hashed = clauses.select(
        [clauses.alias(key, f"h{i}") for i, key in enumerate(keys)],
        table.source(), joins=coded.joins(), tables=coded.tables(),
    )  # fmt: skip
    counts = [_distinct(f"h{i}", share) for i in range(len(keys))]
    with runner.tables(coded.content()):
        [found] = runner.rows(clauses.select(counts, rows_hashed.subquery("q", copy=False)), table.parameters)
    return [int(n) * share for n in found]


def _distinct(name: str, share: int) -> exp.Expression:
    """How many different hashes are in the sample."""
    rest = exp.Mod(this=clauses.column(name), expression=clauses.integer(share))
    chosen = clauses.case(
        (clauses.equal(rest, clauses.integer(0)), clauses.column(name)), otherwise=exp.null()
    )
    return exp.Count(this=exp.Distinct(expressions=[chosen]))


def level_texts(hierarchy: Hierarchy, level: int) -> tuple[str | None, ...]:
    """The label of each value at a level."""
    at = hierarchy.levels[level]
    return tuple(at.labels[block] for block in at.blocks[1:].tolist())
