"""How far a release moved the distribution of each attribute and the associations between attributes.

*Before* are the rows of the input. *After* is what the release shows: quasi-identifiers with the rows of each label
spread evenly over the values that it stands for, or as published marginals say (exact ones as they are), sensitive
values as the groups show them.
Rows that were dropped are not in it; `*` is spread over everything. Distributions are compared by total variation and
earth mover's distance.

Where a method changes sensitive values (MASK), their distortion is the information loss of the nearest common ancestor
of the true and the published value, (coverage − 1)/(base − 1) [Wong et al. 2007]. Without a hierarchy every wrong value
counts 1. How much associations changed is Cramér's V before and after, pair by pair.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from maskwright.domain.classes import Ints
from maskwright.domain.distances import ValueTree
from maskwright.domain.exact import exact_dot
from maskwright.domain.grouping import Changes, Grouping, exact_view
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.metric import Weights
from maskwright.errors import HierarchyError
from maskwright.metrics._shared.supports import Floats, supports_of


def attribute_distributions(grouping: Grouping, exact: bool = False) -> dict[str, tuple[Floats, Floats]]:
    """Per published attribute the shares of its codes (0: missing) before and after; both add up to 1."""
    summary, shown = grouping.summary, exact_view(grouping) if exact else grouping
    result = {}
    for a, (hierarchy, labels) in enumerate(zip(summary.attributes, shown.labels, strict=True)):
        length = len(hierarchy.values) + 1
        before = np.bincount(summary.codes[a], weights=summary.rows, minlength=length).astype(np.float64)
        rows = np.bincount(labels.of_group, weights=shown.classes.rows, minlength=len(labels.texts))
        result[hierarchy.attribute] = (before, supports_of(shown)[a].spread_rows(rows))
    for name in summary.sensitive:
        published = grouping.row_counts(name).totals
        result[name] = (summary.row_totals(name).astype(np.float64), published.astype(np.float64))
    return {name: (_shares(before), _shares(after)) for name, (before, after) in result.items()}


def _shares(counts: Floats) -> Floats:
    total = counts.sum()
    return counts / total if total else counts


def total_variation(before: Floats, after: Floats) -> float:
    """½ Σ |before − after|: the largest difference in the probability of any event."""
    return float(np.abs(before - after).sum() / 2)


def earth_movers(before: Floats, after: Floats, hierarchy: Hierarchy | None, ordered: bool) -> float:
    """The least work that turns one distribution of known values into the other; distances are 0 to 1.

    Values in order are equally spaced; otherwise they are as far apart as the height of their lowest common ancestor
    over that of the root; without a hierarchy (or one that branches) every two are 1 apart. Missing has no place
    among the values and is left out.
    """
    p, q = _shares(before[1:]), _shares(after[1:])
    if len(p) < 2 or not p.any() or not q.any():
        return 0.0 if p.any() == q.any() else 1.0
    if ordered:
        return float(np.abs(np.cumsum(p - q))[:-1].sum() / (len(p) - 1))
    tree = _tree(hierarchy)
    if tree is None or tree.height == 0:
        return total_variation(p, q)
    moved = np.zeros(len(tree.edge))
    for path in tree.paths:
        there = path >= 0
        np.add.at(moved, path[there], (p - q)[there])
    return float((tree.edge * np.abs(moved)).sum() / (2 * tree.height))


def _tree(hierarchy: Hierarchy | None) -> ValueTree | None:
    try:
        return ValueTree.of_hierarchy(hierarchy, hierarchy.values) if hierarchy is not None else None
    except HierarchyError:  # its levels branch
        return None


def attribute_total_variation(grouping: Grouping, exact: bool = False) -> dict[str, float]:
    """Total variation of each published attribute."""
    return _each(grouping, exact, lambda name, before, after: total_variation(before, after))


def attribute_earth_movers(grouping: Grouping, exact: bool = False) -> dict[str, float]:
    """Earth mover's distance of each published attribute."""
    hierarchies = {h.attribute: h for h in grouping.summary.attributes}

    def _one(name: str, before: Floats, after: Floats) -> float:
        hierarchy = hierarchies.get(name)
        ordered = hierarchy.ordered if hierarchy else grouping.summary.sensitive[name].ordered
        return earth_movers(before, after, hierarchy, ordered)

    return _each(grouping, exact, _one)


def _each(
    grouping: Grouping, exact: bool, distance: Callable[[str, Floats, Floats], float]
) -> dict[str, float]:
    pairs = attribute_distributions(grouping, exact)
    return {name: distance(name, before, after) for name, (before, after) in pairs.items()}


def distribution_distance(grouping: Grouping, weights: Weights, exact: bool = False) -> float:
    """Mean over published attributes of the total variation between their distributions before and after."""
    return _mean(attribute_total_variation(grouping, exact))


def earth_movers_distance(grouping: Grouping, weights: Weights, exact: bool = False) -> float:
    """Mean over published attributes of the earth mover's distance between before and after."""
    return _mean(attribute_earth_movers(grouping, exact))


def _mean(values: dict[str, float]) -> float:
    return math.fsum(values.values()) / len(values) if values else 0.0


def sensitive_distortion(grouping: Grouping, weights: Weights) -> Fraction:
    """Mean over the published rows of how far a changed sensitive value is from the true one."""
    changes, joint = grouping.changes, grouping.summary.cells
    if changes is None or joint is None or not grouping.published_rows:
        return Fraction(0)
    index = list(grouping.summary.sensitive).index(changes.attribute)
    true = joint.values[index][changes.cells].astype(np.int64)
    wrong = true != changes.codes
    if changes.hierarchy is None:
        return Fraction(int(changes.rows[wrong].sum()), grouping.published_rows)
    base = changes.hierarchy.base
    if base == 1:
        return Fraction(0)
    extra = exact_dot((common_coverage(changes, true) - 1)[wrong], changes.rows[wrong])
    return Fraction(extra, (base - 1) * grouping.published_rows)


def common_coverage(changes: Changes, true: Ints) -> Ints:
    """The ground values below the nearest common ancestor of the true and the published value, change by change."""
    assert changes.hierarchy is not None  # noqa: S101 - for the type checker
    result = np.full(len(true), changes.hierarchy.base, dtype=np.int64)
    for level in changes.hierarchy.levels:
        block = level.blocks[true]
        same = block == level.blocks[changes.codes]
        result[same] = np.minimum(result, level.leaves[block])[same]
    return result


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


def two_way_distance(grouping: Grouping, weights: Weights, exact: bool = False) -> float:
    """Mean over pairs of quasi-identifiers of the total variation between their joint shares before and after."""
    narrow = [a for a, h in enumerate(grouping.summary.attributes) if len(h.values) <= WIDEST]
    shown = exact_view(grouping) if exact else grouping
    found = [
        total_variation(_shares(_tuple_table(grouping, a, b)), _shares(_label_table(shown, a, b)))
        for a, b in itertools.combinations(narrow, 2)
    ]
    return math.fsum(found) / len(found) if found else math.nan


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
