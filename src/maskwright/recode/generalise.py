"""Generalise: one table in which every quasi-identifier carries the label of its group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.grouping import Grouping
from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.domain.recoding_plan import ColumnMap, GroupPlan, Plan, PublishedColumn
from maskwright.recode import entries as e
from maskwright.recode.disguise import disguised


def plan(
    grouping: Grouping, columns: Sequence[str], drop_missing: Sequence[str], key: str
) -> Plan | GroupPlan:
    """A full-domain grouping as one map per column, if rows must be read; any other one entry by entry.

    Args:
        grouping: what to publish.
        columns: the published columns in order.
        drop_missing: rows with a missing value in one of these columns are left out.
        key: the secret that orders rows, and picks them where some of a cell are treated in another way.
    """
    summary, changed = grouping.summary, grouping.changes is not None
    # without other columns a release can be written without reading the rows again, if cells are known
    names = {*(h.attribute for h in summary.attributes), *summary.sensitive}
    expands = summary.joint is not None and set(columns) <= names
    if grouping.levels is not None and not changed and not expands:
        return _full_domain(grouping, columns, drop_missing, key)
    cells = grouping.allocation.cells is not None or changed or expands
    entries = disguised(e.by_cell(grouping), grouping) if cells else e.by_tuple(grouping)
    shown = e.quasi_identifiers(grouping, entries, exact=False)
    if entries.values is not None:
        for (name, vc), codes in zip(summary.sensitive.items(), entries.values, strict=True):
            shown.append(PublishedColumn(name, vc.values, None, codes))
    return GroupPlan(
        columns=tuple(columns),
        units=e.units_of(summary, cells, not expands),
        unit=entries.unit,
        groups=e.group_numbers(entries, e.numbered(entries, grouping.classes.n, None)),
        rows=entries.rows,
        published=tuple(p for p in shown if p.name in columns),
        blocks=(),
        group_column=None,
        drop_missing=tuple(drop_missing),
        key=key,
    )


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
