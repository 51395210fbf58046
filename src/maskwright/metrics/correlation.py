"""How much the associations between attributes changed: Cramér's V before and after, pair by pair.

*After* is what somebody computes who spreads the rows of a label evenly over the values it stands for, and the
sensitive values of a group over its rows: the same reading of a release as in `distributions` and `queries`.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping, exact_view
from maskwright.domain.metric import Weights
from maskwright.metrics._shared.supports import Floats, supports_of

WIDEST = 500  # an attribute with more ground values is left out: nearly every pair would be unique
CHUNK = 4096


def attribute_associations(
    grouping: Grouping, exact: bool = False
) -> dict[tuple[str, str], tuple[float, float]]:
    """Cramér's V before and after, for each two quasi-identifiers and each with each sensitive attribute."""
    narrow = [a for a, h in enumerate(grouping.summary.attributes) if len(h.values) <= WIDEST]
    names = [h.attribute for h in grouping.summary.attributes]
    shown = exact_view(grouping) if exact else grouping
    result = {}
    for a, b in itertools.combinations(narrow, 2):
        result[names[a], names[b]] = _pair(_tuple_table(grouping, a, b), _label_table(shown, a, b))
    for a in narrow:
        for name, counts in grouping.summary.sensitive.items():
            if len(counts.values) <= WIDEST:
                before = _value_table(grouping, a, name)
                result[names[a], name] = _pair(before, _group_table(grouping, a, name, exact))
    return result


def correlation_change(grouping: Grouping, weights: Weights, exact: bool = False) -> float:
    """Mean over pairs of attributes of |Cramér's V after − before|."""
    pairs = attribute_associations(grouping, exact).values()
    return math.fsum(abs(after - before) for before, after in pairs) / len(pairs) if pairs else math.nan


def cramers_v(table: Floats, rows: int, columns: int) -> float:
    """√(χ²/n ÷ (min(rows, columns) − 1)) of a table of counts: 0 = independent, 1 = one tells the other."""
    n = table.sum()
    least = min(rows, columns) - 1
    if n <= 0 or least < 1:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    there = expected > 0
    chi = ((table[there] - expected[there]) ** 2 / expected[there]).sum()
    return float(min(1.0, math.sqrt(chi / n / least)))


def _pair(before: Floats, after: Floats) -> tuple[float, float]:
    # the values that occur in the input set the scale of both, so that the two can be compared
    shape = int((before.sum(axis=1) > 0).sum()), int((before.sum(axis=0) > 0).sum())
    return cramers_v(before, *shape), cramers_v(after, *shape)


def _widths(grouping: Grouping) -> list[int]:
    return [len(h.values) + 1 for h in grouping.summary.attributes]


def _counted(rows: Ints, columns: Ints, weights: Ints, shape: tuple[int, int]) -> Floats:
    flat = np.bincount(rows * shape[1] + columns, weights=weights, minlength=shape[0] * shape[1])
    return flat.reshape(shape).astype(np.float64)


def _tuple_table(grouping: Grouping, a: int, b: int) -> Floats:
    codes, width = grouping.summary.codes.astype(np.int64), _widths(grouping)
    return _counted(codes[a], codes[b], grouping.summary.rows, (width[a], width[b]))


def _value_table(grouping: Grouping, a: int, name: str) -> Floats:
    counts, codes = grouping.summary.sensitive[name], grouping.summary.codes[a].astype(np.int64)
    shape = (_widths(grouping)[a], len(counts.values) + 1)
    return _counted(codes[counts.owner], counts.codes.astype(np.int64), counts.counts, shape)


def _label_table(shown: Grouping, a: int, b: int) -> Floats:
    """Σ over groups of rows · (spread of label a) × (spread of label b)."""
    first, second = (supports_of(shown)[i].matrix() for i in (a, b))
    la, lb = shown.labels[a].of_group, shown.labels[b].of_group
    table = np.zeros((first.shape[1], second.shape[1]))
    for begin in range(0, shown.classes.n, CHUNK):
        part = slice(begin, begin + CHUNK)
        table += first[la[part]].T @ (second[lb[part]] * shown.classes.rows[part, None])
    return table


def _group_table(grouping: Grouping, a: int, name: str, exact: bool) -> Floats:
    """Σ over groups of (share of each value of a) × (how often each sensitive value is published)."""
    counts = grouping.published_classes.sensitive[name]
    spread, labels = supports_of(grouping)[a].matrix(), grouping.labels[a].of_group
    n, width = grouping.classes.n, _widths(grouping)[a]
    table = np.zeros((width, len(counts.values) + 1))
    entries = grouping.allocation
    for begin in range(0, n, CHUNK):
        end = min(n, begin + CHUNK)
        shares = spread[labels[begin:end]]
        if exact:
            inside = (entries.groups >= begin) & (entries.groups < end)
            codes = grouping.summary.codes[a][entries.tuples[inside]].astype(np.int64)
            seen = _counted(entries.groups[inside] - begin, codes, entries.rows[inside], (end - begin, width))
            known = np.arange(begin, end) != (-1 if grouping.starred is None else grouping.starred)
            shares[known] = seen[known] / np.maximum(seen[known].sum(axis=1, keepdims=True), 1)
        part = slice(int(counts.start[begin]), int(counts.start[end]))
        values = counts.codes[part].astype(np.int64)
        held = _counted(
            counts.owner[part] - begin, values, counts.counts[part], (end - begin, table.shape[1])
        )
        table += shares.T @ held
    return table
