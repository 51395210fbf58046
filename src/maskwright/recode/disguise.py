"""Distorted sensitive values in rows: each group gets the published multiset, at the price of the fewest changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from maskwright.core.classes import Ints, ValueCounts
from maskwright.recode.entries import Entries


def disguised(
    entries: Entries, published: Mapping[str, ValueCounts], names: list[str], rng: np.random.Generator
) -> Entries:
    """The entries with published values instead of true ones; rows to change are drawn with `rng`.

    Args:
        entries: of cells.
        published: counts by group, for the attributes that are distorted.
        names: the sensitive attributes in the order of `entries.values`.
        rng: draws which rows of a too frequent value are changed, and which of the missing values each gets.
    """
    for name, counts in published.items():
        entries = _disguise(entries, names.index(name), counts, rng)
    return entries


def _disguise(entries: Entries, a: int, counts: ValueCounts, rng: np.random.Generator) -> Entries:
    assert entries.values is not None  # noqa: S101 - entries of cells
    radix = len(counts.values) + 1
    wanted = counts.owner * radix + counts.codes
    key = entries.groups * radix + entries.values[a]
    key[entries.groups < 0] = -1
    keys = np.unique(np.concatenate([key[key >= 0], wanted]))
    excess = np.zeros(len(keys), dtype=np.int64)
    there = np.flatnonzero(key >= 0)
    np.add.at(excess, np.searchsorted(keys, key[there]), entries.rows[there])
    np.subtract.at(excess, np.searchsorted(keys, wanted), counts.counts)

    lacking = np.repeat(keys, np.maximum(-excess, 0))
    owner, drawn = _draw(key, entries.rows, keys, np.maximum(excess, 0), rng)
    lacking = lacking[np.lexsort((rng.random(len(lacking)), lacking // radix))]
    if not np.array_equal(lacking // radix, drawn // radix):
        raise ValueError("a distorted group must have as many values as rows")
    return _replaced(entries, a, owner, (lacking % radix).astype(np.int32))


def _draw(key: Ints, rows: Ints, keys: Ints, number: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """So many random rows of each key: the entry and the key of each row drawn, by ascending key."""
    chosen = keys[number > 0]
    place = np.minimum(np.searchsorted(chosen, key), max(0, len(chosen) - 1))
    touched = np.flatnonzero(chosen[place] == key) if len(chosen) else np.empty(0, dtype=np.int64)
    owner = np.repeat(touched, rows[touched])
    owner = owner[np.lexsort((rng.random(len(owner)), key[owner]))]
    first = np.searchsorted(key[owner], chosen)
    rank = np.arange(len(owner)) - first[np.searchsorted(chosen, key[owner])]
    owner = owner[rank < number[np.searchsorted(keys, key[owner])]]
    return owner, key[owner]


def _replaced(
    entries: Entries, a: int, owner: Ints, codes: np.ndarray[tuple[int], np.dtype[np.int32]]
) -> Entries:
    """One row of entry `owner[i]` gets `codes[i]` as its value of attribute a, for each i."""
    assert entries.values is not None  # noqa: S101 - entries of cells
    rows = entries.rows.copy()
    np.subtract.at(rows, owner, 1)
    source = np.concatenate([np.arange(len(rows)), owner])
    rows = np.concatenate([rows, np.ones(len(owner), dtype=np.int64)])
    values = entries.values[:, source]
    values[a, len(entries.rows) :] = codes
    keep = np.flatnonzero(rows > 0)
    keep = keep[np.argsort(entries.unit[source[keep]], kind="stable")]
    at = source[keep]
    return replace(
        entries, unit=entries.unit[at], tuples=entries.tuples[at], groups=entries.groups[at], rows=rows[keep],
        values=values[:, keep],
    )  # fmt: skip
