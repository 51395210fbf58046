"""How far a release moved the distribution of each attribute, and how far changed sensitive values are from true ones.

*Before* are the rows of the input. *After* is what the release shows: quasi-identifiers with the rows of each label
spread evenly over the values that it stands for (exact ones as they are), sensitive values as the groups show them.
Rows that were dropped are not in it; `*` is spread over everything. Distributions are compared by total variation and
earth mover's distance.

Where a method changes sensitive values (MASK), their distortion is the information loss of the nearest common ancestor
of the true and the published value, (coverage − 1)/(base − 1) [Wong et al. 2007]. Without a hierarchy every wrong value
counts 1.
"""

from __future__ import annotations

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
