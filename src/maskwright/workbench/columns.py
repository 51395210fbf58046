"""The values of a column, for the editor of hierarchies: kept for columns that are coarsened, and for no other."""

from __future__ import annotations

from typing import Any

from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.policy.policy import Policy
from maskwright.runtime.memory_budget import MemoryBudget
from maskwright.suggest.profile import Facts, look_at

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


def read_values(source: str, profile: dict[str, Any], number: int) -> dict[str, Any]:
    """The values of one column, read from the table again."""
    engine = open_engine()
    try:
        engine.allow(MemoryBudget.of(None).engine())
        table = engine.open(source, reading_of(profile.get("reading") or {}))
        return values_of(look_at(engine, table, table.columns[number], profile["rows"]))
    finally:
        engine.close()
