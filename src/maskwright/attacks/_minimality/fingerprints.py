"""Fingerprints of groups: what of a group a reader of the release can tell from another one, as one number.

The quasi-identifier tuples of its people, their sensitive values, the published labels, and whether it is the starred
group. Rows that were dropped have a fingerprint of their own. Two releases are the same when their fingerprints are, in
any order; that different groups share one happens once in 2⁶⁴.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping

Words = NDArray[np.uint64]


def _hashed_words(x: Words) -> Words:
    """The hash of each word (splitmix64): every bit of the result depends on every bit of the input."""
    with np.errstate(over="ignore"):
        x = (x + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def multiset_prints(n: int, owner: Ints, what: Ints, amount: Ints, salt: int) -> Words:
    """The fingerprint of each owner's multiset of things; owner −1 is counted as owner n."""
    result = np.zeros(n + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        words = _hashed_words(what.astype(np.uint64) + np.uint64(salt << 40)) * amount.astype(np.uint64)
        np.add.at(result, np.where(owner < 0, n, owner), words)
    return _hashed_words(result)


def group_fingerprints(grouping: Grouping) -> Words:
    """The fingerprint of each group, and at the end that of the dropped rows."""
    allocation, n = grouping.allocation, len(grouping.classes.sizes)
    result = multiset_prints(n, allocation.groups, allocation.tuples, allocation.rows, 1)
    with np.errstate(over="ignore"):
        cells = grouping.summary.cells
        if allocation.cells is not None and cells is not None:
            combination = np.zeros(len(cells.tuples), dtype=np.uint64)
            for codes in cells.values:
                combination = _hashed_words(combination + codes.astype(np.uint64))
            inside = combination[allocation.cells].view(np.int64)
            result += multiset_prints(n, allocation.groups, inside, allocation.rows, 2)
        by_rows = grouping.summary.personal is not None  # whose rows they are is not published
        for i, (name, people) in enumerate(grouping.published_classes.sensitive.items()):
            counts = grouping.row_counts(name) if by_rows else people
            codes = counts.codes.astype(np.int64)
            result += multiset_prints(n, counts.owner, codes, counts.counts, 10 + i)
        for i, labels in enumerate(grouping.labels):
            texts = [1 if t is None else 2 + zlib.crc32(t.encode()) for t in labels.texts]
            words = _hashed_words(np.array(texts, dtype=np.uint64) + np.uint64((1000 + i) << 40))
            result[:n] += words[labels.of_group]
        if grouping.starred is not None:
            result[grouping.starred] += np.uint64(1)
    return result
