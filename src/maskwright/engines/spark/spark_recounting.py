"""Counting the classes of a published table by the texts that it shows: one grouping per sensitive column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount
from maskwright.engines.base import Found, Recount, Texts, shared
from maskwright.engines.spark.runner import SparkRunner
from maskwright.engines.sql import clauses
from maskwright.engines.sql.coding import Relation
from maskwright.engines.sql.packed_keys import Packing, number


def recount_classes(
    runner: SparkRunner, table: Relation, columns: Sequence[str], sensitive: Sequence[str], unit: str | None
) -> Recount:
    """See `Engine.recount`. Nothing that made the table is used: texts are numbered here, as they were found."""
    counted = {name: _grouped(runner, table, [*columns, name], unit) for name in sensitive}
    summed = unit is None and bool(sensitive)  # rows of a class are the sum over the values of a column
    whole = counted[sensitive[0]] if summed else _grouped(runner, table, columns, unit)
    width = len(columns)
    texts, codes = [], np.empty((width, whole.num_rows), dtype=np.int64)
    for i in range(width):
        known, codes[i] = _numbered(whole.column(f"g{i}"))
        texts.append(known)
    keys = Packing.of([len(t) for t in texts]).pack(codes)
    distinct, owner = number(keys, whole.num_rows)
    n = len(distinct[0]) if distinct else int(whole.num_rows > 0)
    labels = np.empty((width, n), dtype=np.int32)
    labels[:, owner] = codes
    rows, people = exact_bincount(owner, _ints(whole, "n"), n), exact_bincount(owner, _ints(whole, "p"), n)
    values = {}
    for name, found in counted.items():
        at = _located(texts, distinct, [found.column(f"g{i}") for i in range(width)], found.num_rows)
        known, code = _numbered(found.column(f"g{width}"))
        values[name] = Found(known, at, code, _ints(found, "p"))
    return Recount(tuple(texts), labels, rows, people, values)


def holds_rows(runner: SparkRunner, table: Relation, columns: Sequence[str], rows: Iterable[Recount]) -> bool:
    """Does a table have exactly these rows, in any order?"""
    found, pieces = recount_classes(runner, table, columns, (), None), list(rows)
    digits, radices = list[Ints](), list[int]()
    for i, (mine, theirs) in enumerate(zip(pieces[0].texts, found.texts, strict=True)):
        one, two, radix = shared(mine, theirs)
        digits.append(np.concatenate([*(one[p.codes[i]] for p in pieces), two[found.codes[i]]]))
        radices.append(radix)
    planned = np.concatenate([piece.rows for piece in pieces])
    n = len(planned)
    numbers = number(Packing.of(radices).pack(digits), n + len(found.rows))[1]
    size = int(numbers.max(initial=-1)) + 1
    return np.array_equal(
        exact_bincount(numbers[:n], planned, size), exact_bincount(numbers[n:], found.rows, size)
    )


def _grouped(runner: SparkRunner, table: Relation, columns: Sequence[str], unit: str | None) -> pa.Table:
    """Rows `n` and people `p` for each combination of texts g0, g1 … (whole numbers stay numbers).

    The table is grouped as it is first, so that values are spelled once per group, not per row.
    """
    names = [f"g{i}" for i in range(len(columns))]
    within = list(zip(names, columns, strict=True)) + ([("u", unit)] if unit is not None else [])
    stored = clauses.select(
        [clauses.alias(table.raw(c), g) for g, c in within] or [clauses.integer(1)], table.source()
    )
    inner = clauses.count_by(stored, [g for g, _ in within]).subquery("i", copy=False)
    items = [clauses.alias(_shown(table, c, clauses.column(g, "i")), g) for g, c in within]
    rows = clauses.alias(clauses.cast(exp.Sum(this=clauses.column("n")), "BIGINT"), "n")
    people = clauses.count_distinct("u") if unit is not None else rows.this.copy()
    query = clauses.select([*items, clauses.column("n", "i")], inner)
    return runner.arrow(clauses.count_by(query, names, rows, clauses.alias(people, "p")), table.parameters)


def _shown(table: Relation, name: str, stored: exp.Expression) -> exp.Expression:
    """A stored value as it is counted."""
    info = table.info(name)
    if info.kind != "integer":
        return table.canonical(name, stored)
    return stored if table.clean else clauses.cleaned(stored, info, table.parameters)


def _numbered(column: pa.ChunkedArray) -> tuple[Texts, Ints]:
    """The texts of a column, each once and ascending, missing last; and for each entry the number of its text."""
    if pa.types.is_integer(column.type) and not column.null_count:  # group numbers: there may be many
        return np.unique(column.to_numpy().astype(np.int64), return_inverse=True)
    encoded = column.combine_chunks().dictionary_encode()
    known: list[Any] = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False).astype(np.int64)
    whole = _whole_numbers(known)
    if whole is not None and not column.null_count:
        order = np.argsort(whole)
        texts: Texts = whole[order]
    else:
        order = np.array(sorted(range(len(known)), key=lambda i: str(known[i])), dtype=np.int64)
        texts = (*(str(known[i]) for i in order), None)
    place = np.empty(len(known) + 1, dtype=np.int64)
    place[order] = np.arange(len(known))
    place[-1] = len(known)
    return texts, place[codes]


def _whole_numbers(known: Sequence[Any]) -> Ints | None:
    """Values that are all whole numbers, written as such."""
    try:
        numbers = np.array([int(v) for v in known], dtype=np.int64)
    except (ValueError, OverflowError):
        return None
    return numbers if all(str(n) == str(v) for n, v in zip(numbers.tolist(), known, strict=True)) else None


def _located(
    texts: Sequence[Texts], distinct: Sequence[Ints], columns: Sequence[pa.ChunkedArray], length: int
) -> Ints:
    """The class of each entry of another grouping of the same table."""
    if not columns:
        return np.zeros(length, dtype=np.int64)
    codes = np.stack([_numbered(column)[1] for column in columns])
    keys = Packing.of([len(t) for t in texts]).pack(codes)
    n = len(distinct[0])
    return number([np.concatenate(pair) for pair in zip(distinct, keys, strict=True)], n + length)[1][n:]


def _ints(table: pa.Table, name: str) -> Ints:
    return np.asarray(table.column(name).to_numpy(), dtype=np.int64)
