"""Non-uniform entropy: how many bits it takes to tell each original value again [Gionis, Tassa 2009]."""

from __future__ import annotations

import math

import numpy as np

from maskwright.core.classes import Ints
from maskwright.core.grouping import Grouping
from maskwright.core.metric import Weights
from maskwright.metrics.supports import supports_of


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
