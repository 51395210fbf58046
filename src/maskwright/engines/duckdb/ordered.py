"""Rows in the order of the table, as codes: what an audit looks at to see whether the order tells something."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sqlglot import exp

from maskwright.domain.classes import Ints
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coding import Relation, Runner, texts_of
from maskwright.engines.sql.table_queries import below_each_other, column_batches


def in_order(
    runner: Runner, table: Relation, names: Sequence[str], domains: Sequence[tuple[str, ...]], limit: int
) -> list[Ints]:
    """Per column the code of every row (value i of the domain is i + 1, missing 0), at most `limit` rows."""
    known = dict(zip(names, domains, strict=True))
    found: list[Ints] = []
    for batch in column_batches(runner, table, names):
        found += _codes(runner, table, batch, [known[name] for name in batch], limit)
    return found


def _codes(
    runner: Runner, table: Relation, names: Sequence[str], domains: Sequence[tuple[str, ...]], limit: int
) -> list[Ints]:
    """The same of columns of one type, by one dictionary (i, v, k) for all of them."""
    row = clauses.alias(table.row_number(), "r")
    few = clauses.select(
        [row, *(clauses.alias(table.stored(n), f"c{table.position(n)}") for n in names)], table.source(),
        order=[table.row_number()], limit=limit,
    )  # fmt: skip
    cells = clauses.select(
        [*below_each_other(table, names), clauses.column("r", "t")], few.subquery("t", copy=False)
    ).subquery("x", copy=False)
    text = table.canonical(names[0], clauses.column("g", "x"))
    texts = clauses.select([*(clauses.column(c, "x") for c in "ir"), clauses.alias(text, "v")], cells)
    same = [clauses.equal(clauses.column(c, "codes"), clauses.column(c, "y")) for c in "iv"]
    code = exp.Coalesce(this=clauses.column("k", "codes"), expressions=[clauses.integer(0)])
    query = clauses.select(
        [clauses.alias(code, "k")], texts.subquery("y", copy=False),
        joins=[clauses.left_join(clauses.relation("codes"), clauses.all_of(same))],
        order=[clauses.column(c, "y") for c in "ir"],
    )  # fmt: skip
    sizes = [len(domain) for domain in domains]
    content = {
        "i": np.repeat(np.arange(len(names), dtype=np.int32), sizes),
        "v": texts_of([value for domain in domains for value in domain]),
        "k": np.concatenate([np.arange(1, n + 1, dtype=np.int64) for n in sizes]),
    }
    with runner.tables({"codes": content}):
        found = np.asarray(runner.arrays(query, table.parameters)["k"]).astype(np.int64)
    return list(found.reshape(len(names), -1))
