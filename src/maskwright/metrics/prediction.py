"""Predictive utility: does a model that was trained on the release predict as well as one trained on the original?

A quarter of the rows is held out. One model learns from the original values of the others, one from what the release
shows of them: labels become the even spread over the values they stand for, and where sensitive values are shuffled
inside groups, every row learns from all values of its group, each with its share. Both are tested on the original
values of the rows that were held out. Needs scikit-learn: pip install 'maskwright[predict]'.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping
from maskwright.domain.metric import Weights
from maskwright.errors import UsageError
from maskwright.metrics._shared.supports import Floats, supports_of
from maskwright.runtime.events import Progress

ROWS = 10_000  # more are sampled down to this: a linear model learns no more from them


@dataclass(frozen=True)
class Prediction:
    """Accuracy on rows that were held out: of the two models, and of always saying the commonest value."""

    target: str
    release: float
    original: float
    commonest: float


def predictive_utility(grouping: Grouping, weights: Weights, exact: bool = False) -> float:
    """Accuracy of a model trained on the release ÷ of one trained on the original, for the first sensitive column."""
    if not grouping.summary.sensitive:
        return math.nan
    found = measure_prediction(grouping, exact=exact)
    return found.release / found.original if found.original else math.nan


def measure_prediction(
    grouping: Grouping,
    target: str | None = None,
    *,
    exact: bool = False,
    seed: int = 1,
    rows: int = ROWS,
    progress: Progress | None = None,
) -> Prediction:
    """Train on the release and on the original, test on held-out rows; `target` is a sensitive column."""
    try:
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits  # comes with it
    except ImportError:
        raise UsageError(
            "predictive-utility needs scikit-learn; install it: pip install 'maskwright[predict]'"
        ) from None
    sample = _LearningSample.of(grouping, target, np.random.default_rng(seed), rows)
    if len(np.unique(sample.value[sample.train])) < 2 or not len(sample.test):
        raise UsageError(
            f"{sample.target!r} has fewer than two values among the rows that a model learns from"
        )

    def _accuracy(features: Floats, values: Ints, weight: Floats) -> float:
        model = LogisticRegression(max_iter=100, tol=1e-3)
        model.fit(features, values, sample_weight=weight)
        return float(model.score(sample.original(sample.test), sample.value[sample.test]))

    progress = progress or Progress()
    with _quiet(), threadpool_limits(1):  # small matrices: threads only wait for each other
        ones = np.ones(len(sample.train))
        progress.share(0.1, "learning from the table")
        original = _accuracy(sample.original(sample.train), sample.value[sample.train], ones)
        progress.share(0.5, "learning from the release")
        release = _accuracy(*sample.published(exact))
    values, counts = np.unique(sample.value[sample.train], return_counts=True)
    commonest = float((sample.value[sample.test] == values[counts.argmax()]).mean())
    return Prediction(sample.target, release, original, commonest)


def _quiet() -> Any:
    """A model that has not fully converged is still the model that is compared; the warning helps nobody."""
    import warnings

    return warnings.catch_warnings(action="ignore")


@dataclass(frozen=True, eq=False)
class _LearningSample:
    """Rows with their tuple, group (-1: dropped) and value; some to learn from, some held out."""

    grouping: Grouping
    target: str
    tuples: Ints
    groups: Ints
    value: Ints
    shown: Ints  # the value that is published, which a method may have distorted
    train: Ints
    test: Ints

    @staticmethod
    def of(grouping: Grouping, target: str | None, rng: np.random.Generator, most: int) -> _LearningSample:
        """Draw rows with known values: three quarters to learn from, one to be held out."""
        summary = grouping.summary
        target = target or next(iter(summary.sensitive), "")
        if target not in summary.sensitive:
            raise UsageError(f"predictive-utility needs a sensitive column to predict; {target!r} is none")
        if summary.shared is not None or not np.array_equal(summary.rows, summary.sizes):
            raise UsageError(
                "predictive-utility needs one row per person: rows of one person would be learned from and held out; "
                "two-way-distance and correlation-change compare what rows show"
            )
        tuples, groups, value, shown = _rows(grouping, target, rng)
        known = rng.permutation(np.flatnonzero(value > 0))[:most]
        cut = len(known) // 4
        train = np.sort(known[cut:])
        return _LearningSample(grouping, target, tuples, groups, value, shown, train, np.sort(known[:cut]))

    def original(self, rows: Ints) -> Floats:
        """One column per value of each quasi-identifier; ordered ones have a single column, their rank."""
        parts = []
        for hierarchy, codes in zip(
            self.grouping.summary.attributes, self.grouping.summary.codes, strict=True
        ):
            one_hot = np.eye(len(hierarchy.values) + 1)
            parts.append(_features(one_hot, hierarchy.ordered)[codes[self.tuples[rows]]])
        return np.concatenate(parts, axis=1)

    def published(self, exact: bool) -> tuple[Floats, Ints, Floats]:
        """Features, values and weights as the release shows the rows that are learned from."""
        rows = self.train[self.groups[self.train] >= 0]
        features = self._labels(self.groups[rows])
        if not exact:
            return features, self.shown[rows], np.ones(len(rows))
        starred = -1 if self.grouping.starred is None else self.grouping.starred
        known = self.groups[rows] != starred
        features[known] = self.original(rows[known])
        return self._every_value(features, self.groups[rows])

    def _every_value(self, features: Floats, groups: Ints) -> tuple[Floats, Ints, Floats]:
        """Each row once with every value of its group, weighted by how often the group has it.

        Values of rows that were held out are among them: they are published, but nobody knows whose they are.
        """
        counts = self.grouping.published_classes.sensitive[self.target]
        number = np.diff(counts.start)[groups]
        row = np.repeat(np.arange(len(groups)), number)
        first = np.cumsum(number) - number
        entry = counts.start[groups][row] + np.arange(len(row)) - first[row]
        values, held = counts.codes[entry].astype(np.int64), counts.counts[entry]
        known = values > 0
        share = held[known] / self.grouping.classes.rows[groups][row[known]]
        return features[row[known]], values[known], share

    def _labels(self, groups: Ints) -> Floats:
        parts = []
        for a, hierarchy in enumerate(self.grouping.summary.attributes):
            spread = supports_of(self.grouping)[a].matrix()
            parts.append(_features(spread, hierarchy.ordered)[self.grouping.labels[a].of_group[groups]])
        return np.concatenate(parts, axis=1)


def _rows(grouping: Grouping, target: str, rng: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints]:
    """Every row: its tuple, its group, its value, and the value that is published for it."""
    summary, allocation = grouping.summary, grouping.allocation
    if allocation.cells is None:
        counts = summary.sensitive[target]
        group_of = np.full(summary.n_tuples, -1, dtype=np.int64)
        group_of[allocation.tuples] = allocation.groups
        entry = np.repeat(np.arange(len(counts.counts)), counts.counts)
        tuples, value = counts.owner[entry], counts.codes[entry].astype(np.int64)
        return tuples, group_of[tuples], value, value
    assert summary.joint is not None  # noqa: S101 - cells are cells of it
    of_cell = summary.joint.values[list(summary.sensitive).index(target)].astype(np.int64)
    entry = np.repeat(np.arange(len(allocation.rows)), allocation.rows)
    cells, groups = allocation.cells[entry], allocation.groups[entry]
    value = of_cell[cells]
    shown = value.copy()
    changes = grouping.changes
    if changes is not None and changes.attribute == target:
        for cell, group, code, rows in zip(
            changes.cells, changes.groups, changes.codes, changes.rows, strict=True
        ):
            same = np.flatnonzero((cells == cell) & (groups == group) & (shown == of_cell[cell]))
            shown[rng.choice(same, size=int(rows), replace=False)] = code
    return allocation.tuples[entry], groups, value, shown


def _features(by_code: Floats, ordered: bool) -> Floats:
    """label (or code) × feature: shares of the values; of ordered values their mean rank, from 0 to 1."""
    if not ordered or by_code.shape[1] <= 2:
        return by_code
    rank = np.arange(by_code.shape[1] - 1) / (by_code.shape[1] - 2)
    return np.column_stack([by_code[:, 0], by_code[:, 1:] @ rank])
