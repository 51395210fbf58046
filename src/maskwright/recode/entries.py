"""Entries: how many rows of each unit go to each group. What all recodings by groups have in common.

A unit is a tuple, or a cell where the sensitive values decide to which group a row goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping, Labels
from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.domain.recoding_plan import PublishedColumn, Units
from maskwright.domain.summary import Joint, Summary

Int32s = NDArray[np.int32]
Texts = tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class Entries:
    """`rows[e]` rows of unit `unit[e]`, which all have tuple `tuples[e]`, go to group `groups[e]` (-1: to none).

    `values` has the codes of the sensitive attributes of each entry, where units are cells.
    """

    unit: Ints
    tuples: Ints
    groups: Ints
    rows: Ints
    values: NDArray[np.int32] | None = None


def by_tuple(grouping: Grouping) -> Entries:
    """The allocation, whatever the sensitive values."""
    allocation = grouping.allocation
    tuples, groups, rows = _ascending(allocation.tuples, allocation.groups, allocation.rows)
    return _complete(Entries(tuples, tuples, groups, rows), grouping.summary.rows)


def by_cell(grouping: Grouping) -> Entries:
    """The allocation of cells; where whole tuples were grouped, all cells of a tuple go with it."""
    summary, allocation = grouping.summary, grouping.allocation
    joint = joint_of(summary)
    if allocation.cells is not None:
        cells, tuples, groups, rows = _ascending(
            allocation.cells, allocation.tuples, allocation.groups, allocation.rows
        )
    else:
        group_of = np.full(summary.n_tuples, -1, dtype=np.int64)
        group_of[allocation.tuples] = allocation.groups
        cells, tuples, rows = np.arange(len(joint.rows), dtype=np.int64), joint.tuples, joint.rows
        groups = group_of[tuples]
    return _complete(Entries(cells, tuples, groups, rows, joint.values[:, cells]), joint.rows)


def _ascending(keys: Ints, *others: Ints) -> list[Ints]:
    """All of them by key; as they are where they are sorted already, since copies of millions of entries are large."""
    if (keys[1:] >= keys[:-1]).all():
        return [keys, *others]
    order = np.argsort(keys, kind="stable")
    return [column[order] for column in (keys, *others)]


def joint_of(summary: Summary) -> Joint:
    """The cells of a summary."""
    if summary.cells is None:
        raise ValueError("this summary has no cells")
    return summary.cells


def _complete(entries: Entries, rows: Ints) -> Entries:
    """Rows that no entry takes would be taken for rows of the next unit."""
    taken = np.zeros(len(rows), dtype=np.int64)
    np.add.at(taken, entries.unit, entries.rows)
    if not np.array_equal(taken, rows) or (entries.rows <= 0).any():
        raise ValueError("an allocation must take every row of every unit once")
    return entries


def units_of(summary: Summary, cells: bool, read: bool, person: str | None = None) -> Units:
    """How an engine tells the units of a table apart, where its rows are read; `person`: the column of the persons."""
    if not read:
        return Units((), (), np.empty((0, 0), dtype=np.int32))
    names = [h.attribute for h in summary.attributes]
    domains = [h.values for h in summary.attributes]
    if not cells:
        return Units(tuple(names), tuple(domains), summary.codes)
    joint = joint_of(summary)
    names += list(summary.sensitive)
    domains += [vc.values for vc in summary.sensitive.values()]
    codes = np.concatenate([summary.codes[:, joint.tuples], joint.values])
    if joint.people is not None:
        if summary.names is None or person is None:
            raise ValueError("rows cannot be told apart by person without the names of persons")
        names.append(person)
        domains.append(summary.names)
        codes = np.concatenate([codes, joint.people[None].astype(np.int32) + 1])
    return Units(tuple(names), tuple(domains), codes)


def published_numbers(entries: Entries, n_groups: int, rng: np.random.Generator | None) -> Int32s:
    """The published number of each group, from 1 and in random order, so that it says nothing; 0: it is empty."""
    sizes = np.zeros(n_groups, dtype=np.int64)
    kept = entries.groups >= 0
    np.add.at(sizes, entries.groups[kept], entries.rows[kept])
    there = np.flatnonzero(sizes)
    number = np.zeros(n_groups, dtype=np.int32)
    number[there] = 1 + (np.arange(len(there)) if rng is None else rng.permutation(len(there)))
    return number


def group_numbers(entries: Entries, number: Int32s) -> Int32s:
    """The published group number of each entry; 0: its rows are left out."""
    return np.append(number, np.int32(0))[entries.groups]  # group -1 is the last one


def quasi_identifiers(grouping: Grouping, entries: Entries, exact: bool) -> list[PublishedColumn]:
    """What is published of the quasi-identifiers: their values, or the labels of the groups."""
    result = []
    for a, hierarchy in enumerate(grouping.summary.attributes):
        codes = grouping.summary.codes[a]
        if exact:
            ground = None if grouping.renderings is None else grouping.renderings[a].ground
            result.append(_values(hierarchy, codes, entries, grouping.starred, ground))
        else:
            result.append(_labels(hierarchy, grouping.published_labels[a], codes, entries))
    return result


def _values(
    hierarchy: Hierarchy, codes: Int32s, entries: Entries, starred: int | None, ground: Texts | None
) -> PublishedColumn:
    """The values as they are, but `*` for suppressed rows: then the column is one of texts."""
    name, values = hierarchy.attribute, hierarchy.values
    texts = ground or (None, *values)
    if starred is None:
        return PublishedColumn(
            name, values, None if hierarchy.origin is None else texts, codes, entries.tuples
        )
    index = np.where(entries.groups == starred, len(values) + 1, codes[entries.tuples]).astype(np.int32)
    return PublishedColumn(name, values, (*texts, TOP), index)


def _labels(hierarchy: Hierarchy, labels: Labels, codes: Int32s, entries: Entries) -> PublishedColumn:
    """The labels of the groups; where they are the values themselves, the column keeps its type."""
    code = {value: i + 1 for i, value in enumerate(hierarchy.values)} | {None: 0}
    code_of_text = np.array([code.get(text, -1) for text in labels.texts], dtype=np.int32)
    there = entries.groups >= 0
    shown = labels.of_group[entries.groups[there]]
    if hierarchy.origin is None and np.array_equal(code_of_text[shown], codes[entries.tuples[there]]):
        return PublishedColumn(hierarchy.attribute, hierarchy.values, None, codes, entries.tuples)
    return PublishedColumn(
        hierarchy.attribute, hierarchy.values, labels.texts, labels.of_group, entries.groups
    )


def group_column(columns: Sequence[str]) -> str:
    """A name for the column of group numbers that no other column has: `group`, else `group_` and so on."""
    taken, name = {c.lower() for c in columns}, "group"
    while name in taken:
        name += "_"
    return name
