"""Sensitive values apart from their rows: for each group a multiset, to be shuffled inside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.grouping import Grouping
from maskwright.domain.recoding_plan import GroupPlan, ShuffledBlock
from maskwright.errors import PolicyError
from maskwright.recode import entries as e
from maskwright.recode.disguise import disguised
from maskwright.recode.entries import Int32s


def shuffled(
    grouping: Grouping,
    columns: Sequence[str],
    drop_missing: Sequence[str],
    key: str,
    rng: np.random.Generator,
    *,
    exact: bool = True,
    together: Sequence[Sequence[str]] = (),
    group_column: str = "group",
) -> GroupPlan:
    """The plan of `permute` and of `bucketize`, which differ in the tables that are written.

    Args:
        grouping: what to publish.
        columns: the published columns in order, without the group.
        drop_missing: rows with a missing value in one of these columns are left out.
        key: the secret behind the shuffling.
        rng: draws the numbers of the groups.
        exact: publish the quasi-identifiers as they are, not as the labels of the groups.
        together: lists of sensitive columns whose values stay together; all others are shuffled on their own.
        group_column: the name of the column of group numbers.
    """
    if group_column.lower() in (c.lower() for c in columns):
        raise PolicyError(
            f"the column of group numbers cannot be called {group_column!r}: there is such a column"
        )
    summary = grouping.summary
    e.joint_of(summary)
    names = {h.attribute for h in summary.attributes} | set(summary.sensitive)
    # which row goes where depends on its sensitive values, but nobody sees that if only tuples are published
    passes = not set(columns) <= names
    cells = grouping.allocation.cells is not None and passes
    entries = e.by_cell(grouping) if cells else e.by_tuple(grouping)
    number = e.numbered(entries, grouping.classes.n, rng)
    shown = e.quasi_identifiers(grouping, entries, exact)
    plan = GroupPlan(
        columns=tuple(columns),
        units=e.units_of(summary, cells, passes),
        unit=entries.unit,
        groups=e.group_numbers(entries, number),
        rows=entries.rows,
        published=tuple(p for p in shown if p.name in columns),
        blocks=tuple(
            _block(grouping, names, number) for names in _blocks(list(summary.sensitive), columns, together)
        ),
        group_column=group_column,
        drop_missing=tuple(drop_missing),
        key=key,
        numbers=number,
    )
    for block in plan.blocks:
        total = np.zeros_like(plan.sizes)
        np.add.at(total, block.groups, block.rows)
        if not np.array_equal(total[1:], plan.sizes[1:]):
            raise ValueError(
                f"the published values of {block.names} are not as many as the rows of their groups"
            )
    return plan


def _blocks(
    sensitive: Sequence[str], columns: Sequence[str], together: Sequence[Sequence[str]]
) -> list[tuple[str, ...]]:
    """The sensitive columns that are published, as lists of those that stay together."""
    named = [name for names in together for name in names]
    for name in named:
        if name not in sensitive:
            raise PolicyError(
                f"`together` names {name!r}, which is not a sensitive column; sensitive are {', '.join(sensitive)}"
            )
        if named.count(name) > 1:
            raise PolicyError(f"`together` names {name!r} twice; name each column once")
    lists = [*together, *((name,) for name in sensitive if name not in named)]
    published = (tuple(n for n in names if n in columns) for names in lists)
    return [names for names in published if names]


def _block(grouping: Grouping, names: tuple[str, ...], number: Int32s) -> ShuffledBlock:
    """How often the groups have each combination of values, as it is published."""
    summary = grouping.summary
    domains = tuple(summary.sensitive[name].values for name in names)
    if len(names) == 1:
        return ShuffledBlock(
            names, domains, *_by_number(grouping.published_classes.sensitive[names[0]], number)
        )
    entries = disguised(e.by_cell(grouping), grouping)
    assert entries.values is not None  # noqa: S101 - entries of cells
    chosen = entries.values[[list(summary.sensitive).index(name) for name in names]]
    codes, groups, rows = _added_up(chosen, e.group_numbers(entries, number), entries.rows)
    there = np.flatnonzero(groups > 0)
    return ShuffledBlock(names, domains, codes[:, there], groups[there], rows[there])


def _by_number(counts: ValueCounts, number: Int32s) -> tuple[Int32s, Int32s, Ints]:
    """The counts of the groups that have a number, by number: their entries are moved group by group, not sorted."""
    shown = np.flatnonzero(number)
    group = np.empty(len(shown), dtype=np.int64)
    group[number[shown] - 1] = shown
    first, entries = counts.start[group], np.diff(counts.start)[group]
    index = np.repeat(first - np.cumsum(entries) + entries, entries)
    index += np.arange(len(index))
    return counts.codes[None, index], np.repeat(number[group], entries), counts.counts[index]


def _added_up(codes: Int32s, groups: Int32s, rows: Ints) -> tuple[Int32s, Int32s, Ints]:
    """One line for each group and combination of codes."""
    order = np.lexsort((*codes, groups))
    codes, groups = codes[:, order], groups[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (groups[1:] != groups[:-1]) | (codes[:, 1:] != codes[:, :-1]).any(axis=0)
    first = np.flatnonzero(new)
    return codes[:, first], groups[first], np.add.reduceat(rows[order], first)
