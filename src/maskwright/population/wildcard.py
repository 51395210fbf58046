"""Frequencies in which a missing value matches every value, as statisticians count them.

(Male, Secondary complete, Employed), (Male, Secondary incomplete, Employed) and (Male, –, Employed) have frequencies
of 2, 2 and 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def wildcard_totals(
    codes: NDArray[np.integer], missing: NDArray[np.bool_], *amounts: NDArray[Any]
) -> list[NDArray[Any]]:
    """For each tuple the total of each amount (people, weights) over the tuples that match it.

    Tuples are compared on what is missing in neither of them. Patterns of what is missing are few: for each, those that
    leave the same columns to compare are one grouping.

    Args:
        codes: one row per attribute, one column per tuple; not negative.
        missing: which of the codes are missing.
        amounts: what is added up; tuples may be equal.
    """
    patterns, of_pattern = np.unique(missing, axis=1, return_inverse=True)
    of_pattern = of_pattern.reshape(-1)
    results = [np.zeros(codes.shape[1], dtype=amount.dtype) for amount in amounts]
    for p in range(patterns.shape[1]):
        mine = np.flatnonzero(of_pattern == p)
        unions, of_union = np.unique(patterns | patterns[:, [p]], axis=1, return_inverse=True)
        union_of_tuple = of_union.reshape(-1)[of_pattern]
        for u in range(unions.shape[1]):
            theirs = np.flatnonzero(union_of_tuple == u)
            number = _numbers(codes[~unions[:, u]], np.concatenate([mine, theirs]))
            for result, amount in zip(results, amounts, strict=True):
                sums = np.zeros(int(number.max()) + 1, dtype=amount.dtype)
                np.add.at(sums, number[len(mine) :], amount[theirs])
                result[mine] += sums[number[: len(mine)]]
    return results


def _numbers(codes: NDArray[np.integer], tuples: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each tuple, the same where all codes are."""
    number, count = np.zeros(len(tuples), dtype=np.int64), 1
    for column in codes:
        radix = int(column.max(initial=0)) + 1
        if count * radix >= 2**62:
            number, count = _dense(number)
        number, count = number * radix + column[tuples], count * radix
    return _dense(number)[0]


def _dense(number: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    distinct, inverse = np.unique(number, return_inverse=True)
    return inverse.reshape(-1), len(distinct)
