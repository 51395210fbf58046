"""Recoding by groups: a row shows what is known of its entry in the plan, and what passes through.

Rows of a unit are interchangeable but for the columns that pass through. Without such columns no row is read again
(see expansion.py). With them, the unit of each row is looked up, and the entries of a unit are dealt to its rows at
random.
"""

from __future__ import annotations

import numpy as np
from sqlglot import exp

from maskwright.core.exact import totals
from maskwright.core.plan import GroupPlan
from maskwright.engines import expansion, sql
from maskwright.engines.coding import Coded, RowRunner, Source
from maskwright.engines.expansion import Entries, Int32s
from maskwright.engines.keys import Packing
from maskwright.engines.recoding import Recoded
from maskwright.errors import InputError
from maskwright.kernels.orders import dealt
from maskwright.kernels.randomness import shuffle_within

MOST = 2**31 - 1  # rows are numbered with four bytes
SLICE = 1 << 22  # rows that are fetched at a time


def recode(runner: RowRunner, table: Source, plan: GroupPlan, target: str) -> Recoded:
    """One table. Shuffled values find their rows by the group."""
    rows = expansion.of_rows(plan)
    parts = [rows, *(expansion.of_block(plan, b) for b in range(len(plan.blocks)))]
    of_source = _of_source(runner, table, plan, rows) if plan.passed else None
    return expansion.create(runner, table, plan, target, plan.columns, parts, "order of rows", of_source)


def bucketize(runner: RowRunner, table: Source, plan: GroupPlan, targets: tuple[str, str]) -> list[Recoded]:
    """Two tables that have nothing but the group in common: each is in an order of its own."""
    if not plan.blocks:
        raise ValueError("there is nothing to put into the table of sensitive values")
    apart = {name for block in plan.blocks for name in block.names}
    others, inside = ([n for n in plan.columns if (n in apart) is here] for here in (False, True))
    rows = expansion.of_rows(plan)
    of_source = _of_source(runner, table, plan, rows) if plan.passed else None
    purpose = "order of quasi-identifiers"
    first = expansion.create(runner, table, plan, targets[0], others, [rows], purpose, of_source)
    values = [expansion.of_block(plan, b) for b in range(len(plan.blocks))]
    purpose = "order of sensitive values"
    return [first, expansion.create(runner, table, plan, targets[1], inside, values, purpose)]


def _of_source(runner: RowRunner, table: Source, plan: GroupPlan, rows: Entries) -> Int32s:
    """The published entry of every row of the source; -1: it is left out."""
    unit = _units(runner, table, plan)
    published = np.full(len(plan.groups), -1, dtype=np.int32)
    published[plan.groups > 0] = rows.numbers
    # one entry for every row, unit by unit and in random order inside each; the rows of a unit take them as they come
    entries = np.repeat(published, plan.rows)
    start = np.append(0, np.cumsum(totals(plan.unit, plan.rows, plan.units.codes.shape[1])))
    if not (np.diff(plan.unit) > 0).all():  # otherwise all rows of a unit are in one entry
        shuffle_within(expansion.generator(plan.key, "rows of a unit"), entries, start)
    try:
        return dealt(unit, start, entries)
    except ValueError:
        raise _changed() from None


def _units(runner: RowRunner, table: Source, plan: GroupPlan) -> Int32s:
    """The unit of every row of the source; -1: it is in none, because a value is missing."""
    coded = Coded(table, plan.units.names, plan.units.domains)
    packing = Packing.of(coded.radices)
    keys = {f"k{w}": key for w, key in enumerate(packing.pack(plan.units.codes))}
    units = keys | {"unit": np.arange(plan.units.codes.shape[1], dtype=np.int32)}
    words = sql.packed([coded.code(i) for i in range(len(coded.names))], packing)
    same = [sql.equal(sql.column(f"k{w}", "u"), word) for w, word in enumerate(words)]
    query = sql.select(
        [sql.alias(sql.cast(table.row_number(), "INT"), "id"), sql.column("unit", "u")],
        table.source(),
        joins=[*coded.joins(), exp.Join(this=sql.relation("u"), on=sql.all_of(same) if same else exp.true())],
        where=[sql.not_null(table.value(name)) for name in plan.drop_missing],
        tables=coded.tables(),
    )
    [(n,)] = runner.rows(sql.select([sql.count()], table.source()), table.parameters)
    if n > MOST:
        raise InputError(f"{n:,} rows are more than this engine numbers; use --engine spark")
    result = np.full(n, -1, dtype=np.int32)
    with runner.tables({**coded.content(), "u": units}), runner.stored("units", query, table.parameters):
        for part in runner.slices("units", SLICE):
            result[part["id"]] = part["unit"]
    return result


def _changed() -> InputError:
    return InputError("the table is not the one that was counted: it changed while it was read; start again")
