"""How far published sensitive values are from the true ones, where a method changes them (MASK) [Wong et al. 2007].

The formula of the information loss on the sensitive attribute: (coverage − 1)/(base − 1) of the nearest common ancestor
of the true and the published value. Without a hierarchy every wrong value counts 1.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from maskwright.core.classes import Ints
from maskwright.core.exact import dot
from maskwright.core.grouping import Changes, Grouping
from maskwright.core.metric import Weights


def sensitive_distortion(grouping: Grouping, weights: Weights) -> Fraction:
    """Mean over the published rows of how far a changed sensitive value is from the true one."""
    changes, joint = grouping.changes, grouping.summary.joint
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
    extra = dot((common_coverage(changes, true) - 1)[wrong], changes.rows[wrong])
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
