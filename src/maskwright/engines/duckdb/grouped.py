"""Recoding by groups: a row shows what is known of its entry in the plan, and what passes through.

Rows of a unit are interchangeable but for the columns that pass through. Without such columns no row is read again
(see expansion.py). With them, the unit of each row is looked up, and the entries of a unit are dealt to its rows at
random.
"""

from __future__ import annotations

import numpy as np
from sqlglot import exp

from maskwright.domain.exact import exact_bincount
from maskwright.domain.recoding_plan import GroupPlan
from maskwright.engines.sql import clauses, expansion
from maskwright.engines.sql.coding import Coded, Relation, RowRunner
from maskwright.engines.sql.expansion import Entries, Int32s
from maskwright.engines.sql.packed_keys import Packing
from maskwright.engines.sql.recoding import Recoded
from maskwright.errors import InputError
from maskwright.kernels.randomness import shuffle_within
from maskwright.kernels.tuple_orders import items_of_owners

MOST = 2**31 - 1  # rows are numbered with four bytes
SLICE = 1 << 22  # rows that are fetched at a time


def recode(runner: RowRunner, table: Relation, plan: GroupPlan, target: str) -> Recoded:
    """One table. Shuffled values find their rows by the group."""
    rows = expansion.of_rows(plan)
    parts = [rows, *(expansion.of_block(plan, b) for b in range(len(plan.blocks)))]
    of_source = _of_source(runner, table, plan, rows) if plan.passed else None
    return expansion.create(runner, table, plan, target, plan.columns, parts, "order of rows", of_source)


def bucketize(runner: RowRunner, table: Relation, plan: GroupPlan, targets: tuple[str, str]) -> list[Recoded]:
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


def _of_source(runner: RowRunner, table: Relation, plan: GroupPlan, shown: Entries) -> Int32s:
    """The published entry of every row of the source; -1: it is left out."""
    splits = plan.splits_units
    rows, unit, n = _units(runner, table, plan, by_content=splits)
    published = np.full(len(plan.groups), -1, dtype=np.int32)
    published[plan.groups > 0] = shown.numbers
    # one entry for every row, unit by unit and in random order inside each; the rows of a unit take them as they come
    entries = np.repeat(published, plan.rows)
    start = np.append(0, np.cumsum(exact_bincount(plan.unit, plan.rows, plan.units.codes.shape[1])))
    if splits:  # otherwise all rows of a unit are in one entry
        shuffle_within(expansion.generator(plan.dealing_key, "rows of a unit"), entries, start)
    try:
        entry = items_of_owners(unit, start, entries)
    except ValueError:
        raise _changed() from None
    if rows is None:
        return entry
    of_source = np.full(n, -1, dtype=np.int32)
    of_source[rows] = entry
    return of_source


def _units(
    runner: RowRunner, table: Relation, plan: GroupPlan, by_content: bool
) -> tuple[Int32s | None, Int32s, int]:
    """The unit of every row of the source (-1: it is in none, because a value is missing), and how many rows there are.

    `by_content`: the numbers of the rows that are in a unit, and their units, in the order of a hash of what passes
    through. Then whoever puts the rows of the input into another order does not change which of them come together.
    """
    coded = Coded.of(table, plan.units.names, plan.units.domains)
    packing = Packing.of(coded.radices)
    keys = {f"k{w}": key for w, key in enumerate(packing.pack(plan.units.codes))}
    units = keys | {"unit": np.arange(plan.units.codes.shape[1], dtype=np.int32)}
    words = clauses.packed([coded.code(i) for i in range(len(coded.names))], packing)
    same = [clauses.equal(clauses.column(f"k{w}", "u"), word) for w, word in enumerate(words)]
    query = clauses.select(
        [clauses.alias(clauses.cast(table.row_number(), "INT"), "id"), clauses.column("unit", "u")],
        table.source(),
        joins=[
            *coded.joins(),
            exp.Join(this=clauses.relation("u"), on=clauses.all_of(same) if same else exp.true()),
        ],
        where=[clauses.not_null(table.value(name)) for name in plan.drop_missing],
        tables=coded.tables(),
        order=[_content(table, plan), table.row_number()] if by_content else [],
    )
    [(n,)] = runner.rows(clauses.select([clauses.count()], table.source()), table.parameters)
    if n > MOST:
        raise InputError(f"{n:,} rows are more than this engine numbers; use --engine spark")
    with coded.at_hand(runner, {"u": units}), runner.stored("units", query, table.parameters):
        if by_content:
            parts = list(runner.slices("units", SLICE))
            rows, unit = (np.concatenate([part[name] for part in parts]) for name in ("id", "unit"))
            return rows, unit, n
        unit = np.full(n, -1, dtype=np.int32)
        for part in runner.slices("units", SLICE):
            unit[part["id"]] = part["unit"]
    return None, unit, n


def _content(table: Relation, plan: GroupPlan) -> exp.Expression:
    """A hash of what a row shows by itself: rows with the same are interchangeable."""
    return clauses.row_hash(*(table.text(name) for name in plan.passed))


def _changed() -> InputError:
    return InputError("the table is not the one that was counted: it changed while it was read; start again")
