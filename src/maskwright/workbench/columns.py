"""The values of a column, for the editor of hierarchies: kept for columns that are coarsened, and for no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Reading, Row, Table, Wanted
from maskwright.policy.binding import reading_options
from maskwright.policy.policy import Policy
from maskwright.runtime.memory_budget import MemoryBudget
from maskwright.suggest.profile import Facts, look_at

BARS = 10  # of the small picture of a column
COARSENED = ("quasi-identifier", "sensitive")


def is_coarsened(policy: Policy, column: str) -> bool:
    """Whether a hierarchy of the column can be edited; values of identifiers and dropped columns are never kept."""
    return column in policy.columns and policy.columns[column].role in COARSENED


def reading_of(options: dict[str, Any]) -> Reading:
    """How the table of a project is read."""
    return Reading(
        delimiter=options.get("delimiter"), encoding=options.get("encoding") or "utf-8",
        header=options.get("header", True), sheet=options.get("sheet"),
    )  # fmt: skip


def values_of(facts: Facts) -> dict[str, Any]:
    """The values of a column, the commonest if there are very many, with their rows."""
    return {"values": facts.values, "counts": facts.counts, "complete": facts.complete}


def hidden_columns(profile: dict[str, Any], policy: Policy | None) -> set[str]:
    """Columns of which no page shows a value: identifiers, and what is left out; without a policy as it was guessed."""
    if policy is None:
        roles = {c["name"]: c["role"] for c in profile["columns"]}
    else:
        roles = {name: column.role for name, column in policy.columns.items()}
    names = [c["name"] for c in profile["columns"]]
    return {n for n in names if roles.get(n) not in (*COARSENED, "insensitive")}


@contextmanager
def opened_table(
    source: str, profile: dict[str, Any], policy: Policy | None
) -> Iterator[tuple[Engine, Table]]:
    """The table of a project as it is, prepared as the policy says, with the engine that reads it."""
    guessed = reading_of(profile.get("reading") or {})
    reading = guessed if policy is None else replace(reading_options(policy), missing=())
    engine = open_engine()
    try:
        engine.allow(MemoryBudget.of(None).engine())
        yield engine, engine.open(source, reading)
    finally:
        engine.close()


def spread_of(seen: dict[str, Any], numeric: bool) -> list[tuple[str, int]]:
    """How rows are spread over values, for a small picture: numbers in bins, other values the commonest first."""
    counted = list(zip(seen["values"], seen["counts"], strict=True))
    if numeric and len(counted) > BARS:
        numbers = [float(v) for v, _ in counted]
        low, wide = min(numbers), (max(numbers) - min(numbers)) / BARS
        rows = [0] * BARS
        for number, (_, n) in zip(numbers, counted, strict=True):
            rows[min(BARS - 1, int((number - low) / wide))] += n
        return [(f"{low + i * wide:.4g} to {low + (i + 1) * wide:.4g}", n) for i, n in enumerate(rows)]
    counted.sort(key=lambda item: -item[1])
    rest = sum(n for _, n in counted[BARS:])
    return [*counted[:BARS], *([(f"{len(counted) - BARS:,} others", rest)] if rest else [])]


def read_rows(
    source: str, profile: dict[str, Any], policy: Policy | None, wanted: Wanted, first: int, rows: int
) -> tuple[list[Row], int]:
    """Rows of the table that somebody wants to look at, and how many there are; nothing is kept."""
    with opened_table(source, profile, policy) as (engine, table):
        return engine.look_up(table, wanted, first, rows)


def read_facts(source: str, profile: dict[str, Any], number: int, policy: Policy | None) -> dict[str, Any]:
    """The values of one column, read from the table again, and prepared as the policy says."""
    with opened_table(source, profile, policy) as (engine, table):
        return values_of(look_at(engine, table, table.columns[number], profile["rows"]))
