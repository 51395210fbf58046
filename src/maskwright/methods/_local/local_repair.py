"""Merging groups until every model holds: what local recoding does about models that look at more than sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.method import Task
from maskwright.kernels.clusters import NEVER, Codes
from maskwright.methods._local.local_labels import (
    Allowed,
    Bools,
    LabelledGroups,
    attribute_shares,
    label_prices,
    labelled_groups,
)

IN_VAIN = 8  # a merge whose result still fails counts as so many times dearer
CHOICES = 4  # partners of a failing group that are considered in one round


@dataclass(frozen=True, eq=False)
class Repaired:
    """Groups that satisfy every model (`ok`), or the last ones that were tried; None: some have no label."""

    published: LabelledGroups | None
    ok: bool
    rounds: int


class GroupRepair:
    """Merges failing groups with near ones, round by round. `near`: the nearest tuples of each tuple, -1: none."""

    def __init__(self, task: Task, allowed: Allowed, near: Codes, star: bool) -> None:
        self.task, self.allowed, self.near, self.star = task, allowed, near, star
        weights = attribute_shares(task)
        self.prices = [
            [label_prices(h, weights[a], n) for n in allowed[a]]
            for a, h in enumerate(task.summary.attributes)
        ]

    def run(self, group_of: Ints) -> Repaired:
        """Each round has fewer groups than the one before, so that it comes to an end."""
        rounds = 0
        while True:
            published = labelled_groups(self.task, self.allowed, group_of, self.star)
            if published is None:
                return Repaired(None, False, rounds)
            fail = failing_groups(self.task, published)
            left = int(fail.sum())
            if left == 0:
                return Repaired(published, True, rounds)
            merged = _Round(self, published, fail).merged()
            if merged is None:
                return Repaired(published, False, rounds)
            group_of, rounds = merged, rounds + 1
            self.task.progress.share(1 - left / published.classes.n, f"{left} groups fail a requirement")


def failing_groups(task: Task, published: LabelledGroups) -> Bools:
    """The groups that fail a model."""
    passes = np.ones(published.classes.n, dtype=bool)
    for model in task.search:
        passes &= model.passing(published.classes, task.context)
    return ~passes


class _Round:
    """One round of merges."""

    def __init__(self, repair: GroupRepair, published: LabelledGroups, failing: Bools) -> None:
        self.repair, self.published, self.failing = repair, published, failing
        self.ordinary = np.arange(published.classes.n)
        if published.starred is not None:
            self.ordinary = self.ordinary[:-1]
        self.cost = self._price(self.ordinary, self.ordinary)

    def merged(self) -> Ints | None:
        """Pairs of groups become one, the cheapest first, each group in one pair; None where nothing helps."""
        published, rng = self.published, self.repair.task.rng
        if published.starred is not None and self.failing[published.starred]:
            return None
        x, y, key = self._offers()
        target, used = np.arange(published.classes.n), np.zeros(published.classes.n, dtype=bool)
        tried = np.zeros(published.classes.n, dtype=np.int64)
        for i in np.lexsort((rng.random(len(key)), key)).tolist():
            tried[x[i]] += 1
            if not used[x[i]] and not used[y[i]] and tried[x[i]] <= CHOICES:
                used[x[i]] = used[y[i]] = True
                target[x[i]] = y[i]
        if not used.any():
            return None
        if published.starred is not None:
            target[published.starred] = -1
        return np.asarray(np.where(published.group_of < 0, -1, target[published.group_of]))

    def _offers(self) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Failing groups, possible partners, and what it costs: near ones, or else the nearest of all groups."""
        x, y = self._near()
        parts = [self._priced(x, y)]
        for group in np.setdiff1d(np.flatnonzero(self.failing), parts[0][0]).tolist():
            others = self.ordinary[self.ordinary != group]
            parts.append(self._priced(np.full(len(others), group), others, CHOICES))
        xs, ys, keys = zip(*parts, strict=True)
        return np.concatenate(xs), np.concatenate(ys), np.concatenate(keys)

    def _near(self) -> tuple[Ints, Ints]:
        """Failing groups with the groups of their tuples' nearest tuples."""
        n, group_of, near = self.published.classes.n, self.published.group_of, self.repair.near
        tuples = np.flatnonzero((group_of >= 0) & self.failing[group_of])
        x, near = np.repeat(group_of[tuples], near.shape[1]), near[tuples].reshape(-1)
        x, y = x[near >= 0], group_of[near[near >= 0]]
        usable = (y >= 0) & (x != y) & (y < len(self.ordinary))
        pairs = np.unique(x[usable] * n + y[usable])
        return pairs // n, pairs % n

    def _priced(self, x: Ints, y: Ints, most: int | None = None) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """The pairs that can have a label, with what a merge adds to the loss per row of a failing group."""
        cost = self._price(x, y)
        x, y, cost = x[cost < NEVER], y[cost < NEVER], cost[cost < NEVER]
        rows = self.published.classes.rows
        added = (rows[x] + rows[y]) * cost - rows[x] * self.cost[x] - rows[y] * self.cost[y]
        key = added / (rows[x] + np.where(self.failing[y], rows[y], 0))
        key = np.where(self._passes(x, y), key, key * IN_VAIN)
        best = np.argsort(key, kind="stable")[:most]
        return x[best], y[best], key[best]

    def _passes(self, x: Ints, y: Ints) -> Bools:
        """Would groups x and y pass together, by what the models that decide group by group say?"""
        ok, classes = np.ones(len(x), dtype=bool), _together(self.published.classes, x, y)
        for model in self.repair.task.search:
            if model.is_local() and not model.needs():
                ok &= model.passing(classes, self.repair.task.context)
        return ok

    def _price(self, x: Ints, y: Ints) -> Ints:
        """The price of one label for groups x and y together; `NEVER` or more where there is none."""
        total = np.zeros(len(x), dtype=np.int64)
        first = self.published.first
        for a, codes in enumerate(self.repair.task.summary.codes):
            best = np.full(len(x), NEVER, dtype=np.int64)
            agree, hierarchy = self.published.agree[a], self.repair.task.summary.attributes[a]
            for p, number in enumerate(self.repair.allowed[a]):
                block, price = (
                    hierarchy.levels[number].blocks[codes[first]],
                    self.repair.prices[a][p][codes[first]],
                )
                same = agree[p][x] & agree[p][y] & (block[x] == block[y])
                best = np.where(same, np.minimum(best, price[x]), best)
            total += best
        return total


def _together(classes: Classes, x: Ints, y: Ints) -> Classes:
    """Pairs of classes as classes. People with rows in both count twice, so that this is a guess for units."""
    parts = {}
    for name, counts in classes.sensitive.items():
        both = np.concatenate([x, y])
        length = np.diff(counts.start)[both]
        entry = np.repeat(counts.start[both] - np.cumsum(length) + length, length) + np.arange(length.sum())
        pair = np.repeat(np.tile(np.arange(len(x)), 2), length)
        codes = counts.codes[entry].astype(np.int64)
        parts[name] = ValueCounts.collect(
            counts.values, len(x), pair, codes, counts.counts[entry], counts.ordered
        )
    return Classes(classes.sizes[x] + classes.sizes[y], classes.rows[x] + classes.rows[y], parts)
