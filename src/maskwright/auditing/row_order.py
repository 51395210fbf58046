"""Does the order of the rows tell something? A shuffled table is in random order, and chance can be computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.unique_sets import combined_codes

ODDS = 1e-4  # what happens by chance less often than this is no chance
DEVIATIONS = 5.0


@dataclass(frozen=True, eq=False)
class InOrder:
    """One column in the order of the rows: `codes` rise with the values; 0 is missing."""

    name: str
    codes: Ints


@dataclass(frozen=True)
class Trend:
    """What the order tells about one column.

    Attributes:
        column: its name.
        sorted: "rising" or "falling" when every row is in order.
        correlation: between the position and the rank of the value, −1 to 1.
        neighbours: the share of neighbouring rows with the same value, and
        expected: that share in a random order.
        random: nothing here is beyond chance.
    """

    column: str
    sorted: str | None
    correlation: float
    neighbours: float
    expected: float
    random: bool


def column_trend(column: InOrder) -> Trend | None:
    """None for a column that is the same everywhere."""
    codes = column.codes
    n, counts = len(codes), np.bincount(codes)
    counts = counts[counts > 0]
    if n < 3 or len(counts) < 2:
        return None
    steps = np.diff(codes)
    way = "rising" if (steps >= 0).all() else "falling" if (steps <= 0).all() else None
    if way is not None and log_odds_sorted(counts) + math.log(2) > math.log(ODDS):
        way = None
    rho = pearson_correlation(middle_ranks(codes), np.arange(n, dtype=np.float64))
    alike, mean, deviation = int((steps == 0).sum()), *alike_by_chance(counts)
    far = abs(rho) * math.sqrt(n - 1) > DEVIATIONS or (alike - mean) > DEVIATIONS * deviation > 0
    return Trend(column.name, way, rho, alike / (n - 1), mean / (n - 1), way is None and not far)


def sorted_inside(groups: Ints, column: InOrder) -> bool:
    """Are the rows of every group in the order of this column, more than chance explains?"""
    order = np.argsort(groups, kind="stable")
    same = groups[order][1:] == groups[order][:-1]
    steps = np.diff(column.codes[order])[same]
    if not len(steps) or not ((steps >= 0).all() or (steps <= 0).all()):
        return False
    cells = np.bincount(class_numbers([groups, column.codes]))
    sizes = np.bincount(groups)
    odds = sum(map(log_factorial, cells.tolist())) - sum(map(log_factorial, sizes.tolist()))
    return odds + math.log(2) < math.log(ODDS)


def log_odds_sorted(counts: NDArray[np.int64]) -> float:
    """The log of the chance that a random order is the rising one: ∏ n_v! / n!."""
    return sum(map(log_factorial, counts.tolist())) - log_factorial(int(counts.sum()))


def log_factorial(n: int) -> float:
    """The natural logarithm of n!."""
    return math.lgamma(n + 1)


def alike_by_chance(counts: NDArray[np.int64]) -> tuple[float, float]:
    """Mean and standard deviation of the number of neighbours that are alike, over all orders of the rows."""
    c = counts.astype(np.float64)
    n = float(c.sum())
    two, three = (c * (c - 1)).sum(), (c * (c - 1) * (c - 2)).sum()
    four = (c * (c - 1) * (c - 2) * (c - 3)).sum() + two**2 - ((c * (c - 1)) ** 2).sum()
    pair = two / (n * (n - 1))
    row = three / (n * (n - 1) * (n - 2)) if n > 2 else 0.0
    apart = four / (n * (n - 1) * (n - 2) * (n - 3)) if n > 3 else 0.0
    mean = (n - 1) * pair
    square = mean + 2 * (n - 2) * row + (n - 2) * (n - 3) * apart
    return mean, math.sqrt(max(0.0, square - mean**2))


def middle_ranks(codes: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 0; equal values share the middle of theirs."""
    _, number, counts = np.unique(codes, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle = (last - counts + last - 1) / 2
    result: NDArray[np.float64] = middle[number.reshape(-1)]
    return result


def pearson_correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Pearson's; of ranks it is Spearman's. 0 where one side does not vary."""
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt(float((x * x).sum()) * float((y * y).sum()))
    return float((x * y).sum()) / scale if scale else 0.0


def column_trends(columns: Sequence[InOrder]) -> list[Trend]:
    """The trends of those columns in which there is one."""
    found = [column_trend(column) for column in columns]
    return [t for t in found if t is not None]


def class_numbers(columns: Sequence[Ints]) -> Ints:
    """A number for every combination of values: the class of each row."""
    return combined_codes(columns, [int(codes.max(initial=0)) + 1 for codes in columns])[0]
