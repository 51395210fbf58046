"""Restoring the correspondence of rows: which row of one table is about the same person as which row of another?

For whoever knows all quasi-identifiers, a row of class c is equally likely about each of its n(c) people, so two rows
of classes c and d are about the same person with probability N(c, d) / (n(c)·n(d)), where N(c, d) people are in both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maskwright.attacks._joins.people import JoinedPeople
from maskwright.domain.classes import Ints


def link_rows(crowd: JoinedPeople, a: int, b: int) -> dict[str, Any]:
    """The best that can be restored between two tables.

    `best_guess` is the largest probability that two rows are about the same person, `expected_share` the share of rows
    (of the table where it is larger) that are matched correctly when the likeliest partner of each is guessed.
    """
    groups_a, groups_b, people = _shared(crowd, a, b)
    size_a, size_b = _sizes(crowd, a), _sizes(crowd, b)
    chance = people / (size_a[groups_a] * size_b[groups_b])
    return {
        "best_guess": float(chance.max(initial=0.0)),
        "expected_share": max(_expected(groups_a, chance, size_a), _expected(groups_b, chance, size_b)),
        "by_chance": 1.0 / max(1, int(crowd.sizes.sum())),
    }


def _shared(crowd: JoinedPeople, a: int, b: int) -> tuple[Ints, Ints, np.ndarray[Any, Any]]:
    """Pairs of classes with the (expected) number of people who are in both."""
    left, right = (_published(crowd.entries[t]) for t in (a, b))
    start = np.searchsorted(right[0], left[0], "left")
    end = np.searchsorted(right[0], left[0], "right")
    index = np.repeat(np.arange(len(left[0])), end - start)
    place = np.arange(len(index)) - np.repeat(np.cumsum(end - start) - (end - start), end - start)
    other = np.repeat(start, end - start) + place
    both = left[2][index] * right[2][other] / crowd.sizes[left[0][index]]
    radix = int(right[1].max(initial=0)) + 1
    keys, inverse = np.unique(left[1][index] * radix + right[1][other], return_inverse=True)
    people = np.bincount(inverse, weights=both, minlength=len(keys))
    return keys // radix, keys % radix, people


def _published(entries: tuple[Ints, Ints, Ints]) -> tuple[Ints, Ints, Ints]:
    """The entries of published rows, by tuple."""
    tuples, groups, rows = entries
    order = np.argsort(tuples, kind="stable")
    order = order[groups[order] >= 0]
    return tuples[order], groups[order], rows[order]


def _sizes(crowd: JoinedPeople, table: int) -> np.ndarray[Any, Any]:
    _, groups, rows = _published(crowd.entries[table])
    return np.bincount(groups, weights=rows)


def _expected(groups: Ints, chance: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any]) -> float:
    best = np.zeros(len(sizes))
    np.maximum.at(best, groups, chance)
    return float((best * sizes).sum() / sizes.sum()) if sizes.sum() else 0.0
