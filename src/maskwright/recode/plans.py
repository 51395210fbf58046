"""The plans of the three recodings: which value each row is published with.

generalise: one table in which every quasi-identifier carries the label of its group.
permute: one table with exact quasi-identifiers, sensitive values shuffled inside the groups.
bucketize: a table of quasi-identifiers and one of sensitive values, which share a group number [Xiao, Tao 2006].

Permute and bucketize have one plan and differ in the tables that the engine writes from it. MASK publishes some rows
of a cell with another sensitive value than their own, under any of the three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.grouping import Grouping, Labels
from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.domain.recoding_plan import ColumnMap, GroupPlan, Plan, PublishedColumn, ShuffledBlock, Units
from maskwright.domain.summary import Joint, Summary
from maskwright.errors import PolicyError

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
            shown = grouping.published_labels[a]
            result.append(_labels(hierarchy, shown, codes, entries, grouping.labels_are_texts))
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


def _labels(
    hierarchy: Hierarchy, labels: Labels, codes: Int32s, entries: Entries, as_texts: bool
) -> PublishedColumn:
    """The labels of the groups; where they are the values themselves, the column keeps its type."""
    code = {value: i + 1 for i, value in enumerate(hierarchy.values)} | {None: 0}
    code_of_text = np.array([code.get(text, -1) for text in labels.texts], dtype=np.int32)
    there = entries.groups >= 0
    shown = labels.of_group[entries.groups[there]]
    themselves = np.array_equal(code_of_text[shown], codes[entries.tuples[there]])
    if hierarchy.origin is None and themselves and not as_texts:
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


def generalisation_plan(
    grouping: Grouping,
    columns: Sequence[str],
    drop_missing: Sequence[str],
    key: str,
    person: str | None = None,
) -> Plan | GroupPlan:
    """A full-domain grouping as one map per column, if rows must be read; any other one entry by entry.

    Args:
        grouping: what to publish.
        columns: the published columns in order.
        drop_missing: rows with a missing value in one of these columns are left out.
        key: the secret that orders rows, and picks them where some of a cell are treated in another way.
        person: the column that tells persons apart, where they may have several rows.
    """
    summary, changed = grouping.summary, grouping.changes is not None
    # without other columns a release can be written without reading the rows again, if cells are known
    names = {*(h.attribute for h in summary.attributes), *summary.sensitive}
    told = summary.joint if grouping.allocation.cells is None and not changed else summary.cells
    expands = told is not None and set(columns) <= names
    if grouping.levels is not None and not changed and not expands:
        return _full_domain(grouping, columns, drop_missing, key)
    cells = grouping.allocation.cells is not None or changed or expands
    entries = _disguised_entries(by_cell(grouping), grouping) if cells else by_tuple(grouping)
    shown = quasi_identifiers(grouping, entries, exact=False)
    if entries.values is not None:
        shown += _sensitive_columns(summary, entries)
    return GroupPlan(
        columns=tuple(columns),
        units=units_of(summary, cells, not expands, person),
        unit=entries.unit,
        groups=group_numbers(entries, published_numbers(entries, grouping.classes.n, None)),
        rows=entries.rows,
        published=tuple(p for p in shown if p.name in columns),
        blocks=(),
        group_column=None,
        drop_missing=tuple(drop_missing),
        key=key,
    )


def _sensitive_columns(summary: Summary, entries: Entries) -> list[PublishedColumn]:
    """The sensitive values that the entries of cells show."""
    assert entries.values is not None  # noqa: S101 - entries of cells
    named = zip(summary.sensitive.items(), entries.values, strict=True)
    return [PublishedColumn(name, vc.values, None, codes) for (name, vc), codes in named]


def plan_with_persons(made: Plan | GroupPlan, grouping: Grouping, person: str) -> Plan | GroupPlan:
    """The plan with the column that tells persons apart besides, to count them.

    Values that are shuffled inside groups are those of somebody: here every row keeps its own.
    """
    if person in made.columns:  # a pseudonym, which is published
        return made
    if isinstance(made, Plan):
        return replace(made, columns=(*made.columns, person), key="")  # what is only counted needs no order
    if made.numbers is not None:
        summary, entries = grouping.summary, _disguised_entries(by_cell(grouping), grouping)
        return replace(
            made, columns=(*summary.sensitive, person), units=units_of(summary, True, True, person),
            unit=entries.unit, groups=group_numbers(entries, made.numbers), rows=entries.rows,
            published=tuple(_sensitive_columns(summary, entries)), blocks=(),
        )  # fmt: skip
    again = generalisation_plan(grouping, (*made.columns, person), made.drop_missing, made.key, person)
    return replace(again, members_key=made.members_key) if isinstance(again, GroupPlan) else again


def _kept_as_they_are(hierarchy: Hierarchy, texts: Sequence[str | None], used: NDArray[np.int32]) -> bool:
    """Is every published value its own label?"""
    values = (None, *hierarchy.values)
    return hierarchy.origin is None and all(texts[code] == values[code] for code in used.tolist())


def _full_domain(grouping: Grouping, columns: Sequence[str], drop_missing: Sequence[str], key: str) -> Plan:
    """One map per column and the list of suppressed tuples."""
    away = grouping.allocation.groups < 0
    if grouping.starred is not None:
        away = away | (grouping.allocation.groups == grouping.starred)
    codes, tuples = grouping.summary.codes, grouping.allocation.tuples
    there = np.flatnonzero(~away)
    maps = []
    for a, labels in enumerate(grouping.published_labels):
        hierarchy = grouping.summary.attributes[a]
        used, first = np.unique(codes[a][tuples[there]], return_index=True)
        shown = labels.of_group[grouping.allocation.groups[there[first]]]
        texts: list[str | None] = [TOP] * (
            len(hierarchy.values) + 1
        )  # of values that nobody has who is published
        for code, text in zip(used.tolist(), shown.tolist(), strict=True):
            texts[code] = labels.texts[text]
        maps.append(ColumnMap(hierarchy, tuple(texts), _kept_as_they_are(hierarchy, texts, used), used))
    suppressed = codes[:, tuples[away]]
    return Plan(
        columns=tuple(columns),
        maps=tuple(maps),
        suppressed=np.ascontiguousarray(suppressed),
        star=grouping.starred is not None,
        drop_missing=tuple(drop_missing),
        key=key,
        n_rows=grouping.published_rows,
    )


def shuffled_plan(
    grouping: Grouping,
    columns: Sequence[str],
    drop_missing: Sequence[str],
    key: str,
    rng: np.random.Generator,
    *,
    exact: bool = True,
    together: Sequence[Sequence[str]] = (),
    group_column: str = "group",
    person: str | None = None,
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
        person: the column that tells persons apart, where they may have several rows.
    """
    if group_column.lower() in (c.lower() for c in columns):
        raise PolicyError(
            f"the column of group numbers cannot be called {group_column!r}: there is such a column"
        )
    summary = grouping.summary
    names = {h.attribute for h in summary.attributes} | set(summary.sensitive)
    # which row goes where depends on its sensitive values, but nobody sees that if only tuples are published
    passes = not set(columns) <= names
    cells = grouping.allocation.cells is not None and passes
    entries = by_cell(grouping) if cells else by_tuple(grouping)
    number = published_numbers(entries, grouping.classes.n, rng)
    shown = quasi_identifiers(grouping, entries, exact)
    plan = GroupPlan(
        columns=tuple(columns),
        units=units_of(summary, cells, passes, person),
        unit=entries.unit,
        groups=group_numbers(entries, number),
        rows=entries.rows,
        published=tuple(p for p in shown if p.name in columns),
        blocks=tuple(
            _shuffled_block(grouping, names, number)
            for names in _blocks(list(summary.sensitive), columns, together)
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


def _shuffled_block(grouping: Grouping, names: tuple[str, ...], number: Int32s) -> ShuffledBlock:
    """How often the groups have each combination of values, as it is published."""
    summary = grouping.summary
    domains = tuple(summary.sensitive[name].values for name in names)
    if len(names) == 1 and summary.joint is not None:  # otherwise those are of people
        return ShuffledBlock(
            names, domains, *_by_number(grouping.published_classes.sensitive[names[0]], number)
        )
    entries = _disguised_entries(by_cell(grouping), grouping)
    assert entries.values is not None  # noqa: S101 - entries of cells
    chosen = entries.values[[list(summary.sensitive).index(name) for name in names]]
    codes, groups, rows = _added_up(chosen, group_numbers(entries, number), entries.rows)
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


def _disguised_entries(entries: Entries, grouping: Grouping) -> Entries:
    """The entries of cells with the published values; a changed entry is split into what stays and what does not."""
    changes = grouping.changes
    if changes is None or not len(changes.rows):
        return entries
    if entries.values is None:
        raise ValueError("values of tuples cannot be changed; entries must be those of cells")
    owner = _entry_of(entries, changes.cells, changes.groups)
    rows = entries.rows.copy()
    np.subtract.at(rows, owner, changes.rows)
    if (rows < 0).any():
        raise ValueError("more rows of a cell were changed than there are")
    source = np.concatenate([np.arange(len(rows)), owner])
    rows = np.concatenate([rows, changes.rows])
    values = entries.values[:, source]
    values[list(grouping.summary.sensitive).index(changes.attribute), len(entries.rows) :] = changes.codes
    kept = np.flatnonzero(rows > 0)
    kept = kept[np.argsort(entries.unit[source[kept]], kind="stable")]
    at = source[kept]
    return replace(
        entries, unit=entries.unit[at], tuples=entries.tuples[at], groups=entries.groups[at], rows=rows[kept],
        values=values[:, kept],
    )  # fmt: skip


def _entry_of(entries: Entries, cells: Ints, groups: Ints) -> Ints:
    """The entry of each (cell, group)."""
    radix = int(max(entries.groups.max(initial=-1), groups.max(initial=-1))) + 2
    key, wanted = entries.unit * radix + entries.groups + 1, cells * radix + groups + 1
    order = np.argsort(key, kind="stable")
    place = np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)
    if not np.array_equal(key[order[place]], wanted) or (groups < 0).any():
        raise ValueError("rows were changed that are not published")
    found: Ints = order[place]
    return found
