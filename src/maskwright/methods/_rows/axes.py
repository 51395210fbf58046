"""Axes: the values of each quasi-identifier on a line, so that rows can be sorted and cut.

Numbers, dates and declared orders keep their order. Values without an order stand in the order of their
hierarchy's tree, so that values that are generalised together are neighbours and a cut follows the taxonomy.
Missing comes first, with rank 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from maskwright.domain.classes import Ints
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.summary import Summary
from maskwright.kernels.partition import Int32s
from maskwright.kernels.tuple_orders import rank_matrix

SPAN = 2**31  # positions farther apart than this would overflow when ratios are compared crosswise


@dataclass(frozen=True, eq=False)
class Axis:
    """One attribute on a line: `rank[code]`, `code[rank]`, and `position[rank]`, from which widths are measured.

    Positions are the numbers themselves where the values are numbers (scaled to integers), else the ranks.
    """

    hierarchy: Hierarchy
    rank: Int32s
    code: Int32s
    position: Ints


def axis_of(hierarchy: Hierarchy) -> Axis:
    """The line on which the values of an attribute stand."""
    codes = np.arange(len(hierarchy.values) + 1, dtype=np.int32)
    if hierarchy.ordered:
        return Axis(hierarchy, codes, codes, _positions(hierarchy.values))
    by_height = sorted(range(hierarchy.top), key=lambda j: (int(hierarchy.heights[j]), j))
    keys = [hierarchy.levels[j].blocks[1:] for j in by_height]
    order = np.concatenate([[0], 1 + np.lexsort(keys)]).astype(np.int32) if len(codes) > 1 else codes
    rank = np.empty_like(codes)
    rank[order] = codes
    return Axis(hierarchy, rank, order, codes.astype(np.int64))


def _positions(values: Sequence[str]) -> Ints:
    ranks = np.arange(len(values) + 1, dtype=np.int64)
    try:
        numbers = [Fraction(value) for value in values]
    except (ValueError, ZeroDivisionError):
        return ranks
    if not numbers or any(a >= b for a, b in pairwise(numbers)):
        return ranks
    scale = math.lcm(*(x.denominator for x in numbers))
    span = (numbers[-1] - numbers[0]) * scale
    step = max(1, int(span) // max(1, len(values) - 1))
    if span + step >= SPAN:
        return ranks
    first = numbers[0]
    return np.array([-step, *(int((x - first) * scale) for x in numbers)], dtype=np.int64)


def axes_of(summary: Summary) -> tuple[Axis, ...]:
    """The axes of all quasi-identifiers."""
    return tuple(axis_of(h) for h in summary.attributes)


def tuple_ranks(summary: Summary, axes: Sequence[Axis]) -> Int32s:
    """The rank of each attribute in each tuple, one line per tuple."""
    return rank_matrix(summary.codes, [axis.rank for axis in axes])
