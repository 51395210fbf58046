"""Metrics of class sizes."""

from __future__ import annotations

from fractions import Fraction

from maskwright.core.grouping import Grouping
from maskwright.core.metric import Weights


def discernibility(grouping: Grouping, weights: Weights) -> int:
    """Sum of squared class sizes, plus (suppressed rows) × (all rows)."""
    return grouping.discernibility


def average_class_size(grouping: Grouping, weights: Weights) -> Fraction:
    """Rows per class; suppressed rows, where there are any, count as one class."""
    classes = grouping.classes.n - (grouping.starred is not None) + (grouping.suppressed_rows > 0)
    return Fraction(grouping.summary.n_rows, classes) if classes else Fraction(0)


def suppression(grouping: Grouping, weights: Weights) -> Fraction:
    """Share of the rows that lost all their quasi-identifiers."""
    return Fraction(grouping.suppressed_rows, max(1, grouping.summary.n_rows))
