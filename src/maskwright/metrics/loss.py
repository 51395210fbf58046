"""How much detail a release lost: by what labels cover, in bits, by class sizes, and between the tables of a plan.

Information loss, per attribute: mean over rows of (coverage − 1)/(base − 1); a suppressed row loses everything. An
attribute with a single ground value has nothing to lose. Non-uniform entropy: how many bits it takes to tell each
original value again [Gionis, Tassa 2009].

Metrics of a plan of several tables [CODIP] are about all sensitive attributes of the input, so a method that splits
them records them with its groups; for releases of one table they are not defined.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_dot
from maskwright.domain.grouping import Grouping
from maskwright.domain.metric import Weights
from maskwright.metrics._shared.supports import supports_of


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
        lost = Fraction(exact_dot(extra, rows), hierarchy.base - 1)
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


def attribute_bits(grouping: Grouping) -> dict[str, float]:
    """Per quasi-identifier: Σ over rows of log2(rows of the values the label stands for / rows of the value)."""
    summary, allocation = grouping.summary, grouping.allocation
    total = summary.n_rows
    gone = allocation.groups < 0
    if grouping.starred is not None:
        gone = gone | (allocation.groups == grouping.starred)
    result = {}
    for a, (hierarchy, labels) in enumerate(zip(summary.attributes, grouping.labels, strict=True)):
        by_code = _rows_by_code(summary.codes[a], summary.rows, len(hierarchy.values) + 1)
        of_label = np.asarray(supports_of(grouping)[a].sums(by_code), dtype=np.float64)
        published = np.full(len(allocation.rows), float(max(1, total)))
        published[~gone] = of_label[labels.of_group[allocation.groups[~gone]]]
        original = by_code[summary.codes[a][allocation.tuples]]
        result[hierarchy.attribute] = math.fsum(allocation.rows * (np.log2(published) - np.log2(original)))
    return result


def non_uniform_entropy(grouping: Grouping, weights: Weights) -> float:
    """Bits lost: Σ over rows and attributes of log2(frequency of the published / of the original value)."""
    bits = attribute_bits(grouping)
    return math.fsum(float(weights.get(name, 1)) * value for name, value in bits.items())


def _rows_by_code(codes: np.ndarray[tuple[int], np.dtype[np.int32]], rows: Ints, length: int) -> Ints:
    result = np.zeros(length, dtype=np.int64)
    np.add.at(result, codes, rows)
    return result


def discernibility(grouping: Grouping, weights: Weights) -> int:
    """Sum of squared class sizes, plus (suppressed rows) × (all rows)."""
    return grouping.discernibility


def average_class_size(grouping: Grouping, weights: Weights) -> Fraction:
    """Rows per class; suppressed rows, where there are any, count as one class."""
    classes = grouping.classes.n - (grouping.starred is not None) + (grouping.suppressed_rows > 0)
    return Fraction(grouping.summary.n_rows, classes) if classes else Fraction(0)


def suppression(grouping: Grouping, weights: Weights) -> Fraction:
    """Share of the rows that lost all their quasi-identifiers."""
    return Fraction(grouping.suppressed_rows, max(1, grouping.summary.n_rows))


def association_loss(grouping: Grouping, weights: Weights) -> float:
    """Γα of codip: the share of the mutual information between sensitive attributes that the tables cut."""
    return float(grouping.search.get("association_loss", math.nan))


def information_exposure(grouping: Grouping, weights: Weights) -> float:
    """Γβ of codip: how much of the others somebody learns who knows one sensitive attribute of a person."""
    return float(grouping.search.get("information_exposure", math.nan))
