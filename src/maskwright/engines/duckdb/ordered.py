"""Rows in the order of the table, as codes: what an audit looks at to see whether the order tells something."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maskwright.domain.classes import Ints
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coding import Relation, Runner


def in_order(
    runner: Runner, table: Relation, names: Sequence[str], domains: Sequence[tuple[str, ...]], limit: int
) -> list[Ints]:
    """Per column the code of every row (value i of the domain is i + 1, missing 0), at most `limit` rows."""
    coded = table.coding(table, tuple(names), tuple(domains))
    items = [clauses.alias(coded.code(i), f"k{i}") for i in range(len(names))]
    query = clauses.select(
        items, table.source(), joins=coded.joins(), tables=coded.tables(), order=[table.row_number()],
        limit=limit,
    )  # fmt: skip
    with runner.tables(coded.content()):
        found = runner.arrays(query, table.parameters)
    return [np.asarray(found[f"k{i}"]).astype(np.int64) for i in range(len(names))]
