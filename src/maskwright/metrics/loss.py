"""How much detail the quasi-identifiers lost, by the number of ground values a published label covers.

Per attribute: mean over rows of (coverage − 1)/(base − 1); a suppressed row loses everything. An attribute with
a single ground value has nothing to lose.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from maskwright.core.exact import dot
from maskwright.core.grouping import Grouping
from maskwright.core.metric import Weights


def attribute_losses(grouping: Grouping) -> dict[str, Fraction]:
    """Information loss of each quasi-identifier: 0 = exact everywhere, 1 = fully suppressed."""
    total = grouping.summary.n_rows
    rows = grouping.classes.rows.copy()
    if grouping.starred is not None:
        rows[grouping.starred] = 0  # counted below, with the dropped ones
    result = {}
    for hierarchy, labels in zip(grouping.summary.attributes, grouping.labels, strict=True):
        if total == 0 or hierarchy.base == 1:
            result[hierarchy.attribute] = Fraction(0)
            continue
        extra = np.maximum(labels.coverage[labels.of_group], 1) - 1
        lost = Fraction(dot(extra, rows), hierarchy.base - 1)
        result[hierarchy.attribute] = (lost + grouping.suppressed_rows) / total
    return result


def _normalised(grouping: Grouping, weights: Weights) -> dict[str, Fraction]:
    raw = {h.attribute: weights.get(h.attribute, Fraction(1)) for h in grouping.summary.attributes}
    total = sum(raw.values())
    return (
        {name: w / total for name, w in raw.items()} if total else dict.fromkeys(raw, Fraction(1, len(raw)))
    )


def information_loss(grouping: Grouping, weights: Weights) -> Fraction:
    """Weighted mean, over attributes and rows, of (coverage − 1)/(base − 1)."""
    shares = _normalised(grouping, weights)
    return sum((shares[a] * loss for a, loss in attribute_losses(grouping).items()), Fraction(0))


def granularity(grouping: Grouping, weights: Weights) -> Fraction:
    """ARX's granularity: one minus the plain mean of the attribute losses."""
    losses = attribute_losses(grouping)
    return 1 - sum(losses.values(), Fraction(0)) / len(losses)


def arx_loss(grouping: Grouping, weights: Weights) -> float:
    """ARX's loss: geometric mean over attributes of (1 + loss), minus one."""
    losses = attribute_losses(grouping).values()
    return math.exp(math.fsum(math.log1p(float(loss)) for loss in losses) / len(losses)) - 1


def precision(grouping: Grouping, weights: Weights) -> Fraction | float:
    """Mean over rows and attributes of level/height; a suppressed row counts 1. Full-domain releases only."""
    if grouping.levels is None:
        return math.nan
    kept = grouping.summary.n_rows - grouping.suppressed_rows
    total = Fraction(0)
    for hierarchy, level in zip(grouping.summary.attributes, grouping.levels, strict=True):
        total += kept * Fraction(int(hierarchy.heights[level]), max(1, hierarchy.height))
        total += grouping.suppressed_rows
    return total / (grouping.summary.n_rows * len(grouping.levels))
