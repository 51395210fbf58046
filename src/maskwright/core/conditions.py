"""Two necessary conditions of p-sensitivity, from the frequencies alone [Truta, Vinay 2006].

Condition 1: p is at most `max_p`. Condition 2: there are at most `max_groups` classes. Suppression can only
lower both quantities, so they may be computed once, on the initial table. With one attribute, the smaller of
`max_groups` and rows/k can be attained; with several it is only necessary.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def max_p(frequencies: Sequence[Sequence[int]]) -> int:
    """The fewest different values over the attributes; `frequencies[a]` are the counts of attribute a's values."""
    return min((sum(1 for f in counts if f > 0) for counts in frequencies), default=0)


def max_groups(frequencies: Sequence[Sequence[int]], p: int) -> int | None:
    """The most classes that can each hold p different values of every attribute; None: no bound.

    A class has i values outside the p − i most frequent ones, at least; so g classes use up g·i of the rows
    that do not hold those.
    """
    if p <= 1:
        return None
    if p > max_p(frequencies):
        return 0
    bounds = []
    for counts in frequencies:
        cumulated = list(accumulate(sorted(counts, reverse=True)))
        bounds += [(cumulated[-1] - cumulated[p - i - 1]) // i for i in range(1, p)]
    return min(bounds)
