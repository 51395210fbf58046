"""Uniqueness: how many rows a combination of columns singles out, before anything is done about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from maskwright.engines.base import Engine, Table

# Leaving out each column in turn costs one count each; with more columns than this it is not done.
MOST_LEFT_OUT = 16


@dataclass(frozen=True)
class Uniqueness:
    """How far columns tell rows apart.

    Attributes:
        columns: the guessed quasi-identifiers.
        rows: rows of the table.
        combinations: different combinations of their values.
        unique_rows: rows whose combination nobody else has.
        smallest_class: the rows of the rarest combination.
        adds_most: the column without which the fewest rows stay unique (None: no column alone makes a
            difference, or there are too many to try).
        without_it: the rows that are unique without that column.
    """

    columns: tuple[str, ...]
    rows: int
    combinations: int
    unique_rows: int
    smallest_class: int
    adds_most: str | None
    without_it: int

    @property
    def share(self) -> Fraction:
        """The share of rows that are unique."""
        return Fraction(self.unique_rows, self.rows)


def measure_uniqueness(engine: Engine, table: Table, columns: Sequence[str], rows: int) -> Uniqueness:
    """Count once with all columns and, where rows are unique, once without each."""
    combinations, unique_rows, smallest = engine.uniqueness(table, columns)
    adds_most, without_it = None, unique_rows
    if unique_rows and len(columns) == 1:
        adds_most, without_it = columns[0], 0
    elif unique_rows and len(columns) <= MOST_LEFT_OUT:
        left = {c: engine.uniqueness(table, [d for d in columns if d != c])[1] for c in columns}
        without_it = min(left.values())
        adds_most = min(columns, key=left.__getitem__) if without_it < unique_rows else None
    return Uniqueness(tuple(columns), rows, combinations, unique_rows, smallest, adds_most, without_it)
