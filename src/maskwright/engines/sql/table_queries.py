"""Small questions about a table, for every engine that speaks SQL: its values, its combinations, a few rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
from sqlglot import exp

from maskwright.domain.classes import Ints
from maskwright.domain.hierarchy import Hierarchy
from maskwright.engines.base import ColumnInfo, Domain, Match, Row, SummarySpec, Wanted
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coded_columns import Labelled, Relation, Runner
from maskwright.engines.sql.packed_keys import ascending

CELLS = 500_000  # so many are looked at with one query; columns of more rows are quicker one by one
TOGETHER = 100  # columns


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


def look_up(runner: Runner, t: Relation, wanted: Wanted, first: int, rows: int) -> tuple[list[Row], int]:
    """See `Engine.look_up`."""
    parameters = {f"w{i}": text for i, (_, _, text) in enumerate(wanted.having)}
    where = [_matching(t.text(name), how, f"w{i}") for i, (name, how, _) in enumerate(wanted.having)]
    order: list[exp.Expression] = []
    if wanted.order is not None:
        text = t.text(wanted.order)
        keys = [clauses.try_cast(text, "DOUBLE"), text.copy()]
        order = [exp.Ordered(this=key, desc=wanted.descending, nulls_first=False) for key in keys]
    order.append(t.row_number())
    query = clauses.select(
        [t.text(n) for n in wanted.columns], t.source(), where=where, order=order, limit=rows
    )
    found = runner.rows(query.offset(first, copy=False), {**t.parameters, **parameters})
    count = clauses.select([clauses.count()], t.source(), where=[w.copy() for w in where])
    [(number,)] = runner.rows(count, {**t.parameters, **parameters})
    return [dict(zip(wanted.columns, row, strict=True)) for row in found], int(number)


def _matching(text: exp.Expression, how: Match, name: str) -> exp.Expression:
    """The condition that a cell matches the parameter of that name."""
    given: exp.Expression = clauses.parameter(name)
    if how == "missing":
        return clauses.is_null(text)
    if how == "is":
        return clauses.equal(text, given)
    if how == "holds":
        place = exp.StrPosition(this=exp.Lower(this=text), substr=exp.Lower(this=given))
        return exp.GT(this=place, expression=clauses.integer(0))
    compared = exp.GTE if how == "least" else exp.LTE
    return compared(this=clauses.try_cast(text, "DOUBLE"), expression=clauses.try_cast(given, "DOUBLE"))


def sample(
    runner: Runner, t: Relation, rows: int, columns: Sequence[str] | None = None
) -> list[dict[str, str | None]]:
    """A few rows as canonical text, with these columns of the table (None: all)."""
    known = set(t.names)
    names = t.names if columns is None else [name for name in dict.fromkeys(columns) if name in known]
    if not names:
        return []
    if len(names) <= TOGETHER or t.dialect != "duckdb":
        found = runner.rows(clauses.select([t.text(n) for n in names], t.source(), limit=rows), t.parameters)
        return [dict(zip(names, row, strict=True)) for row in found]
    few = replace(t, relation=runner.new_name("few"), row="rowid")
    stored = [clauses.alias(t.stored(n), f"c{t.position(n)}") for n in names]
    result: dict[int, dict[str, str | None]] = {}
    with runner.stored(str(few.relation), clauses.select(stored, t.source(), limit=rows), t.parameters):
        for batch in column_batches(runner, few, names):
            row = clauses.alias(few.row_number(), "r")
            cells = clauses.select([row, *below_each_other(few, batch)], few.source()).subquery(
                "x", copy=False
            )
            text = t.canonical(batch[0], clauses.column("g", "x"))
            query = clauses.select([*clauses.columns("ri"), text], cells, order=clauses.columns("ri"))
            for r, i, value in runner.rows(query, t.parameters):
                result.setdefault(r, {})[batch[i]] = value
    return list(result.values())


# --- the same question of many columns ----------------------------------------------------------------


def column_batches(runner: Runner, t: Relation, names: Sequence[str]) -> Iterator[list[str]]:
    """Columns that one query can look at: of the same type, and together not too large."""
    most = max(1, min(TOGETHER, CELLS // max(1, row_count(runner, t))))
    batch: list[str] = []
    for name in names:
        if batch and (len(batch) == most or not _same_type(t.info(batch[0]), t.info(name))):
            yield batch
            batch = []
        batch.append(name)
    if batch:
        yield batch


def _same_type(first: ColumnInfo, second: ColumnInfo) -> bool:
    return first.type == second.type and first.kind != "other"


def domains(runner: Runner, t: Relation, names: Sequence[str], limit: int | None = None) -> Iterator[Domain]:
    """`domain` of each column."""
    for batch in column_batches(runner, t, names):
        if len(batch) == 1:
            yield domain(runner, t, batch[0], limit)
            continue
        counted: list[list[tuple[str | None, int]]] = [[] for _ in batch]
        for i, value, n in runner.rows(_commonest(column_values(t, batch), limit), t.parameters):
            counted[i].append((value, n))
        yield from (domain_of(rows, limit) for rows in counted)


def _commonest(values: exp.Select, limit: int | None) -> exp.Select:
    """Of each column the commonest values, those that are missing first; one more than the limit."""
    if limit is None:
        return values
    missing = exp.Ordered(this=clauses.is_null(clauses.column("g")), desc=True)
    order = [missing, exp.Ordered(this=clauses.column("n"), desc=True), clauses.column("g")]
    place = exp.Window(
        this=exp.RowNumber(), partition_by=[clauses.column("i")], order=exp.Order(expressions=order)
    )
    placed = clauses.select(
        [*clauses.columns("ign"), clauses.alias(place, "p")], values.subquery("v", copy=False)
    )
    few = exp.LTE(this=clauses.column("p"), expression=clauses.integer(limit + 1))
    return clauses.select(
        clauses.columns("ign"), placed.subquery("w", copy=False), where=[few], order=clauses.columns("ip")
    )


def lone_values(runner: Runner, t: Relation, names: Sequence[str], beside: Sequence[str] = ()) -> list[int]:
    """For each column, the rows whose value of it nobody else has; or its combination with those `beside` it."""
    found: list[int] = []
    for batch in column_batches(runner, t, names):
        if len(batch) == 1:
            found.append(uniqueness(runner, t, [*beside, *batch])[1])
            continue
        alone = clauses.equal(clauses.column("n"), clauses.integer(1))
        values = column_values(t, batch, beside).subquery("v", copy=False)
        once = clauses.select([clauses.column("i")], values, where=[alone])
        counted = dict(runner.rows(clauses.count_by(once, ["i"]), t.parameters))
        found += [int(counted.get(i, 0)) for i in range(len(batch))]
    return found


def column_values(t: Relation, names: Sequence[str], beside: Sequence[str] = ()) -> exp.Select:
    """The canonical values `g` of each of some columns of the same type, with the place `i` of the column among them.

    `n` rows have the value (with the same values `b0`, `b1` … of those `beside` it). The columns are laid below each
    other, so that what is planned does not grow with them.
    """
    others = [(f"b{j}", name) for j, name in enumerate(beside)]
    keys = ["i", "g", *(key for key, _ in others)]
    raw = clauses.select(
        [*below_each_other(t, names), *(clauses.alias(t.raw(name), key) for key, name in others)], t.source()
    )
    inner = clauses.count_by(raw, keys).subquery("x", copy=False)
    texts = [("g", names[0]), *others]
    items = [clauses.alias(t.canonical(name, clauses.column(key, "x")), key) for key, name in texts]
    canonical = clauses.select([clauses.column("i", "x"), *items, clauses.column("n", "x")], inner)
    return clauses.count_by(canonical, keys, clauses.alias(exp.Sum(this=clauses.column("n")), "n"))


def below_each_other(t: Relation, names: Sequence[str]) -> list[exp.Expression]:
    """For each row, the values `g` of some columns as they are, with the place `i` of each column among them."""
    places = exp.Array(expressions=[clauses.integer(i) for i in range(len(names))])
    values = exp.Array(expressions=[t.raw(name) for name in names])
    unnested = [exp.Anonymous(this="unnest", expressions=[array]) for array in (values, places)]
    return [clauses.alias(array, name) for array, name in zip(unnested, "gi", strict=True)]


def uniqueness(
    runner: Runner, t: Relation, columns: Sequence[str], person: str | None = None
) -> tuple[int, int, int]:
    """(number of distinct combinations, rows whose combination is unique, rows of the rarest combination).

    With the column that tells persons apart, people are counted instead of rows.
    """
    counted = _canonical_groups(t, [*columns, *([person] if person else [])])
    if person:
        counted = clauses.count_by(counted, [f"g{i}" for i in range(len(columns))])
    groups = counted.subquery("g", copy=False)
    alone = clauses.equal(clauses.column("n"), clauses.integer(1))
    ones = exp.Count(this=clauses.case((alone, clauses.integer(1)), otherwise=exp.null()))
    least = exp.Min(this=clauses.column("n"))
    [found] = runner.rows(clauses.select([clauses.count(), ones, least], groups), t.parameters)
    distinct, unique, rarest = (int(n or 0) for n in found)
    return distinct, unique, rarest


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


def counted_keys(
    runner: Runner, table: Relation, query: exp.Select, words: Sequence[str]
) -> tuple[list[Ints], Ints]:
    """The distinct keys of a query over all rows of a table, ascending, and the rows of each.

    Where nearly every row has a key of its own, sorting the keys is many times cheaper than grouping by them.
    """
    [(rows,)] = runner.rows(clauses.select([clauses.count()], table.source()), table.parameters)
    if len(words) == 1 and runner.holds_keys(rows):
        keys = np.array(runner.arrays(query, table.parameters)[words[0]], dtype=np.int64)
        keys.sort()
        new = np.ones(len(keys), dtype=bool)
        new[1:] = keys[1:] != keys[:-1]
        first = np.flatnonzero(new)
        return [keys[first]], np.diff(first, append=len(keys))
    found = runner.arrays(clauses.count_by(query, words), table.parameters)
    grouped, counts = (
        [found[w].astype(np.int64, copy=False) for w in words],
        found["n"].astype(np.int64, copy=False),
    )
    order = ascending(grouped, len(counts))
    return [k[order] for k in grouped], counts[order]


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
