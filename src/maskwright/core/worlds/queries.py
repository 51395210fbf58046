"""COUNT queries on bucketized data: the estimate is the mean of the true count over all possible worlds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Predicate = Mapping[int, Collection[Any]]  # attribute number → allowed values; all must hold


def matches(row: Sequence[Any], predicate: Predicate) -> bool:
    """Does a row of quasi-identifiers satisfy every condition?"""
    return all(row[a] in allowed for a, allowed in predicate.items())


def count_estimate(
    groups: Iterable[tuple[Sequence[Sequence[Any]], Sequence[Any]]],
    predicate: Predicate,
    wanted: Collection[Any],
) -> Fraction:
    """Σ over groups of (rows that match)·(values wanted)/(rows in the group).

    Args:
        groups: quasi-identifiers of the rows of each group, and its sensitive values.
        predicate: the condition on quasi-identifiers.
        wanted: the sensitive values that are counted.
    """
    total = Fraction(0)
    for rows, values in groups:
        if rows:
            hits = sum(matches(row, predicate) for row in rows)
            total += Fraction(hits * sum(v in wanted for v in values), len(rows))
    return total


def count_actual(
    rows: Iterable[tuple[Sequence[Any], Any]], predicate: Predicate, wanted: Collection[Any]
) -> int:
    """How many original rows match both conditions."""
    return sum(matches(qi, predicate) and value in wanted for qi, value in rows)


def relative_error(estimate: Fraction, actual: int) -> Fraction | None:
    """|estimate − actual|/actual; None when nothing matches, where it is undefined."""
    return abs(estimate - actual) / actual if actual else None
