"""Distorted sensitive values: some rows of a cell are published with another value than their own (MASK)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping
from maskwright.recode.entries import Entries


def disguised(entries: Entries, grouping: Grouping) -> Entries:
    """The entries of cells with the published values; a changed entry is split into what stays and what does not."""
    changes = grouping.changes
    if changes is None or not len(changes.rows):
        return entries
    if entries.values is None:
        raise ValueError("values of tuples cannot be changed; entries must be those of cells")
    owner = _find(entries, changes.cells, changes.groups)
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


def _find(entries: Entries, cells: Ints, groups: Ints) -> Ints:
    """The entry of each (cell, group)."""
    radix = int(max(entries.groups.max(initial=-1), groups.max(initial=-1))) + 2
    key, wanted = entries.unit * radix + entries.groups + 1, cells * radix + groups + 1
    order = np.argsort(key, kind="stable")
    place = np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)
    if not np.array_equal(key[order[place]], wanted) or (groups < 0).any():
        raise ValueError("rows were changed that are not published")
    found: Ints = order[place]
    return found
