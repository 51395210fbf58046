"""How near to somebody's number one can come by what is published of it, knowing how it was changed.

Whoever knows the class of a person, how the true values are distributed in the table, and the settings, believes of
each row of the class: P(truth | published) ∝ P(truth) · P(published | truth). The person's row is any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.near_numbers import NumberWindows, number_windows
from maskwright.perturb.publication import Floats, Ints, PerturbedFamily, log_likelihoods

MOST_PAIRS = 60_000_000  # of a published row and a true value; beyond, some values stand for those near them
FEWEST_VALUES = 500  # that stand for all: where rows are too many even for these, nothing is computed
AT_ONCE = 4_000_000


@dataclass(frozen=True)
class NearTruth:
    """The most that is believed about how near somebody's number lies to one that can be named.

    Attributes:
        column: the column, and
        within: the share of the truth that counts as near.
        worst: the belief, after the release.
        before: the share of the table that the same guess comes near to.
        rows: of the class.
        low, high: the ends of the window.
        whole: was every true value looked at, not only some that stand for others?
        why_not: it was not computed, for this reason; empty: it was.
    """

    column: str
    within: Fraction
    worst: float = 1.0
    before: float = 0.0
    rows: int = 0
    low: str = ""
    high: str = ""
    whole: bool = True
    why_not: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self)) | {"within": str(self.within)}


def near_truth(
    family: PerturbedFamily, column: str, within: Fraction, rows: Ints, classes: Ints
) -> NearTruth:
    """The worst belief in any class; `rows` are the places of published rows in the input, with their class."""
    numbers = _true_numbers(family, column)
    people, weights = _distinct_rows(family)
    many = len(people)
    if family.publishing.random and len(rows) * many > MOST_PAIRS:
        few = max(FEWEST_VALUES, MOST_PAIRS // len(rows))
        if len(rows) * min(few, many) > 5 * MOST_PAIRS:
            why = f"{len(rows):,} rows and {many:,} different true values are too many to compare"
            return NearTruth(column, within, why_not=why)
        people, weights = _some_for_all(people, weights, numbers[people], few)
    candidates = _Candidates.of(family, people)
    known = ~np.isnan(numbers[people])
    values, inverse = np.unique(numbers[people][known], return_inverse=True)
    place = inverse.reshape(-1)
    windows = number_windows(tuple(map(repr, values.tolist())), within)
    table = np.bincount(place, weights[known], len(values))
    most, found = -1.0, (0, 0)
    order = np.argsort(classes, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(classes[order])) + 1):
        held = np.bincount(place, candidates.expected(weights, rows[part])[known], len(values))
        belief, first = _largest(held / len(part), windows)
        if belief > most:
            most, found = belief, (first, len(part))
    first, n = found
    end = int(windows.reach[first]) if len(values) else 0
    low, high = (f"{v:.10g}" for v in (values[[first, end]] if len(values) else (0.0, 0.0)))
    before = float(table[first : end + 1].sum() / weights.sum())
    return NearTruth(column, within, min(1.0, max(0.0, most)), before, n, low, high, len(people) == many)


def _true_numbers(family: PerturbedFamily, column: str) -> Floats:
    codes = family.true[:, family.names.index(column)]
    if not family.categories:
        return codes
    numbers = np.array([*map(float, family.categories), np.nan])
    return np.asarray(numbers[np.where(np.isnan(codes), len(family.categories), codes).astype(np.int64)])


def _distinct_rows(family: PerturbedFamily) -> tuple[Ints, Floats]:
    """One row of each kind, and how many are like it: by what is true, and by what is shown where that is not drawn."""
    told = family.true if family.publishing.random else np.concatenate([family.true, family.shown], axis=1)
    _, first, many = np.unique(_missing_last(told), axis=0, return_index=True, return_counts=True)
    return first.astype(np.int64), many.astype(np.float64)


def _missing_last(numbers: Floats) -> Floats:
    return np.where(np.isnan(numbers), np.inf, numbers)  # equal to each other


def _some_for_all(people: Ints, weights: Floats, numbers: Floats, few: int) -> tuple[Ints, Floats]:
    """So many rows, each standing for those that are next to it by their number."""
    order = np.argsort(numbers, kind="stable")
    part = np.minimum((np.cumsum(weights[order]) - 0.5) * few // weights.sum(), few - 1).astype(np.int64)
    start = np.flatnonzero(np.diff(part, prepend=-1))
    middle = (start + np.append(start[1:], len(order)) - 1) // 2
    return people[order[middle]], np.add.reduceat(weights[order], start)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Whose published row each may be: everybody's by the likelihood, or theirs alone for whom the same is shown."""

    family: PerturbedFamily
    people: Ints
    image: Ints  # of each row of the input: what is shown of it, as a number
    order: Ints  # the people by their images, and
    start: Ints  # where those of each begin

    @staticmethod
    def of(family: PerturbedFamily, people: Ints) -> _Candidates:
        """The candidates of every row."""
        found = np.unique(_missing_last(family.shown), axis=0, return_inverse=True)[1]
        image = found.reshape(-1).astype(np.int64)
        order = np.argsort(image[people], kind="stable")
        start = np.searchsorted(image[people][order], np.arange(int(image.max(initial=-1)) + 2))
        return _Candidates(family, people, image, order, start)

    def expected(self, weights: Floats, rows: Ints) -> Floats:
        """How many of these published rows are expected to be of each of the people."""
        images, first, many = np.unique(self.image[rows], return_index=True, return_counts=True)
        total = np.zeros(len(self.people))
        if not self.family.publishing.random:
            for image, n in zip(images.tolist(), many.tolist(), strict=True):
                alike = self.order[self.start[image] : self.start[image + 1]]
                total[alike] += n * weights[alike] / weights[alike].sum()
            return total
        shown, step = self.family.shown[rows[first]], max(1, AT_ONCE // len(self.people))
        for begin in range(0, len(shown), step):
            some = shown[begin : begin + step]
            logs = log_likelihoods(self.family, self.people, self.family.shown[self.people], some)
            logs += np.log(weights)[:, None]
            top = logs.max(axis=0)
            likely: NDArray[np.float64] = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
            total += (likely / np.maximum(likely.sum(axis=0), 1e-300)) @ many[begin : begin + step]
        return total


def _largest(held: Floats, windows: NumberWindows) -> tuple[float, int]:
    """The window that holds most, and the place of its smallest number."""
    if not len(held):
        return 0.0, 0
    before = np.concatenate([[0.0], np.cumsum(held)])
    sums = before[windows.reach + 1] - before[:-1]
    first = int(sums.argmax())
    return float(sums[first]), first
