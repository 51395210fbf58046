"""Rank swapping: each column's values change places with others of near rank [Moore 1996], and who knows the window.

Somebody who knows the window looks for rows whose rank is within it in every column: the person's own row always is one
of them [Nin, Herranz, Torra 2008].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def swapped_values(values: NDArray[Any], window: int, rng: np.random.Generator) -> NDArray[Any]:
    """Columns whose values were swapped in pairs, at most `window` ranks apart; ties are ordered at random.

    From the lowest value on, each one that was not swapped yet changes places with one of those that follow it within
    the window; where all of them were, it stays.
    """
    if window < 0:
        raise ValueError(f"window: {window} is not allowed; ranks are 0 or more apart")
    table = np.asarray(values)
    columns = table.reshape(len(table), -1)
    result = columns.copy()
    for c in range(columns.shape[1]):
        order = np.lexsort((rng.permutation(len(columns)), columns[:, c]))
        free = np.ones(len(order), dtype=bool)
        for i in range(len(order)):
            if not free[i]:
                continue
            others = i + 1 + np.flatnonzero(free[i + 1 : i + 1 + window])
            if len(others):
                j = int(others[rng.integers(len(others))])
                free[j] = False
                result[order[[i, j]], c] = columns[order[[j, i]], c]
            free[i] = False
    return result.reshape(table.shape)


def rank_candidates(people: NDArray[Any], published: NDArray[Any], window: int) -> NDArray[np.bool_]:
    """For each person (rows) the published rows (columns) that may be the person's.

    The rank of a value that occurs several times is a range; its distance from another one is that of the ranges.
    """
    theirs, shown = (np.asarray(v).reshape(len(v), -1) for v in (people, published))
    found = np.ones((len(theirs), len(shown)), dtype=bool)
    for c in range(shown.shape[1]):
        ordered = np.sort(shown[:, c])
        low, high = (np.searchsorted(ordered, theirs[:, c], side=side) for side in ("left", "right"))
        first, last = (np.searchsorted(ordered, shown[:, c], side=side) for side in ("left", "right"))
        found &= (first[None, :] - (high - 1)[:, None] <= window) & (
            low[:, None] - (last - 1)[None, :] <= window
        )
    return found


def rank_linkage(people: NDArray[Any], published: NDArray[Any], window: int) -> float:
    """The share of people who are linked to their own row, by guessing among the candidates; row i is person i's."""
    candidates = rank_candidates(people, published, window)
    own = candidates[np.arange(len(candidates)), np.arange(len(candidates))]
    return float((own / np.maximum(candidates.sum(axis=1), 1)).mean())
