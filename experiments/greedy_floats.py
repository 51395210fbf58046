"""Groups of greedy grouping with very many buckets: the recursion of `randomised_group` in floating point.

All terms are positive, so nothing cancels: the relative error is about 1e-16 for each bucket passed, 1e-12 for ten
thousand. Rows of weights are scaled to a largest entry of 1, and the scales are kept apart.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from maskwright.worlds.counting.counting_limits import share_fraction, whole_numbers

Floats = NDArray[np.float64]


def randomised_group_in_floats(ell: int, buckets: int, positives: int, p: float) -> Floats | None:
    """As `randomised_group`: beliefs per bucket; None when there is no such group."""
    whole_numbers("l and the number of buckets", [ell, buckets], 1)
    whole_numbers("positives", [positives])
    share_fraction("p", p)  # type: ignore[arg-type]
    if positives > buckets:
        return None
    odds = positives / (buckets * ell - positives) if positives < buckets * ell else 1.0
    # every world has the same number of positives, so a weight odds^k for k of them changes nothing, and keeps the
    # weights before and after a bucket where they meet
    ways = np.array([math.comb(ell, k) * odds**k for k in range(min(ell, positives) + 1)])
    ways /= ways.sum()
    held = np.arange(positives + 1)
    before = np.zeros((buckets, positives + 1))
    before[0, 0] = 1.0
    for i in range(1, buckets):
        before[i] = _scaled(np.convolve(before[i - 1], ways)[: positives + 1] * np.where(held <= i, p, 1.0))
    result = np.empty(buckets)
    after = np.zeros(positives + 1)
    after[positives] = 1.0
    mine = ways * np.arange(len(ways), dtype=float)
    for i in range(buckets - 1, -1, -1):
        through = _backwards(after, ways)
        total = float(before[i] @ through)
        if total <= 0.0:
            return None
        result[i] = float(before[i] @ _backwards(after, mine)) / (total * ell)
        after = _scaled(through * np.where(held <= i, p, 1.0))
    return result


def _backwards(after: Floats, ways: Floats) -> Floats:
    """Per number of positives before a bucket: the weight of everything from it on."""
    return np.convolve(after[::-1], ways)[: len(after)][::-1]


def _scaled(weights: Floats) -> Floats:
    top = weights.max()
    return weights / top if top > 0 else weights
