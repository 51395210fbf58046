"""A model P(value | quasi-identifiers) that is learned from a release, and the beliefs that it leads to [Kifer 2009].

The rows of a group hold the group's values in some order. Under random worlds every order is equally likely; somebody
who has learned how values go together with quasi-identifiers gives an order the weight Π P(value of a row | its
quasi-identifiers). The model is naive Bayes, fitted to the expected orders, and fitted again until beliefs stay put.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.grouping import Grouping

Floats = NDArray[np.float64]
SMALL = 8  # people of a group whose orders are counted one by one
BINS = 10  # of a column of numbers with more than twice as many values
ROUNDS, STEADY = 50, 1e-6  # fit anew at most so often, or until beliefs change by less on average
SCALINGS, CLOSE = 60, 1e-7  # of rows and columns, or until all sums are so close


@dataclass(frozen=True, eq=False)
class Deals:
    """The groups of a release as an adversary sees them: who is in them, and which values they hold how often.

    Attributes:
        features: one row per quasi-identifier, one column per entry: small numbers, so that they can be learned from.
        group: the group of each entry, ascending, and
        rows: the people of it who share their quasi-identifiers.
        column_group, column_value, column_rows: which value each group holds, and how often; by group, ascending.
        n_values: how many values there are, and
        kinds: how many numbers each feature has.
    """

    features: Ints
    group: Ints
    rows: Ints
    column_group: Ints
    column_value: Ints
    column_rows: Ints
    n_values: int
    kinds: tuple[int, ...]
    entry: Ints = field(init=False)
    column: Ints = field(init=False)

    def __post_init__(self) -> None:
        """Every entry beside every value of its group."""
        first = np.searchsorted(self.column_group, self.group, "left")
        many = np.searchsorted(self.column_group, self.group, "right") - first
        entry = np.repeat(np.arange(len(self.group)), many)
        column = np.arange(len(entry)) - np.repeat(np.cumsum(many) - many, many) + np.repeat(first, many)
        object.__setattr__(self, "entry", entry)
        object.__setattr__(self, "column", column)

    @property
    def value(self) -> Ints:
        """The value of each pair of an entry and a value of its group."""
        return self.column_value[self.column]

    def even_shares(self) -> Floats:
        """The expected people of each pair when every order is equally likely."""
        size = np.bincount(self.group, self.rows)[self.group]
        found: Floats = self.column_rows[self.column] * (self.rows / size)[self.entry]
        return found

    def of_groups(self, chosen: NDArray[np.bool_]) -> Deals:
        """The groups that are marked, alone."""
        mine, columns = chosen[self.group], chosen[self.column_group]
        return replace(
            self, features=self.features[:, mine], group=self.group[mine], rows=self.rows[mine],
            column_group=self.column_group[columns], column_value=self.column_value[columns],
            column_rows=self.column_rows[columns],
        )  # fmt: skip


def deals_of(grouping: Grouping, counts: ValueCounts) -> Deals:
    """The groups of a release, with the counts of one sensitive attribute by group as they are published."""
    summary, allocation = grouping.summary, grouping.allocation
    there = allocation.groups >= 0
    key = allocation.groups[there] * summary.n_tuples + allocation.tuples[there]
    keys, where = np.unique(key, return_inverse=True)
    rows = np.bincount(where.reshape(-1), allocation.rows[there], len(keys)).astype(np.int64)
    group, tuples = keys // summary.n_tuples, keys % summary.n_tuples
    learnable = [
        np.unique(_learnable(codes, h.ordered, summary.rows)[tuples], return_inverse=True)
        for codes, h in zip(summary.codes, summary.attributes, strict=True)
    ]
    features = np.array([f.reshape(-1) for _, f in learnable], dtype=np.int64).reshape(-1, len(tuples))
    size = np.bincount(group, rows, counts.n_classes).astype(np.int64)
    listed = np.bincount(counts.owner, counts.counts, counts.n_classes).astype(np.int64)
    rest = np.flatnonzero(size > listed)  # who holds none of the values, as with the values of a set
    owner = np.concatenate([counts.owner, rest])
    value = np.concatenate([counts.codes.astype(np.int64), np.full(len(rest), len(counts.values) + 1)])
    held = np.concatenate([counts.counts, (size - listed)[rest]])
    order = np.lexsort((value, owner))
    return Deals(
        features, group, rows, owner[order], value[order], held[order], len(counts.values) + 2,
        tuple(len(used) for used, _ in learnable),
    )  # fmt: skip


def _learnable(codes: NDArray[np.int32], ordered: bool, rows: Ints) -> Ints:
    """A column's codes, or equally frequent bins of them where it is one of many numbers."""
    used, small = np.unique(codes, return_inverse=True)
    small = small.reshape(-1).astype(np.int64)
    if not ordered or len(used) <= 2 * BINS:
        return small
    heavy = np.cumsum(np.bincount(small, rows, len(used)))
    bins: Ints = np.minimum((heavy - 1) * BINS // heavy[-1], BINS - 1).astype(np.int64)
    return bins[small]


@dataclass(frozen=True, eq=False)
class LearnedModel:
    """Naive Bayes in logarithms: a prior of each value, and of each feature given each value.

    Attributes:
        prior: value → log P(value).
        given: per feature, feature × value → log P(feature | value).
    """

    prior: Floats
    given: Sequence[Floats]

    @staticmethod
    def fitted(deals: Deals, shares: Floats, smoothing: float = 1.0) -> LearnedModel:
        """The model that fits the expected people of each pair best."""
        value = deals.value
        held = np.bincount(value, shares, deals.n_values)
        given = []
        with np.errstate(divide="ignore", invalid="ignore"):
            prior = np.log(held / held.sum())
            for feature, kinds in zip(deals.features, deals.kinds, strict=True):
                counts = np.bincount(
                    feature[deals.entry] * deals.n_values + value, shares, kinds * deals.n_values
                )
                table = counts.reshape(kinds, deals.n_values) + smoothing
                given.append(np.log(table / (held + smoothing * kinds)))
        return LearnedModel(prior, given)

    def weights(self, features: Ints, value: Ints) -> Floats:
        """The logarithm of P(value)·Π P(feature | value) of each pair."""
        found = self.prior[value].copy()
        for feature, table in zip(features, self.given, strict=True):
            found += table[feature, value]
        return found

    def predictions(self, features: Ints) -> Floats:
        """Per column of `features`, P(value | features) of every value: what is believed of people in no group."""
        value = np.flatnonzero(np.isfinite(self.prior))
        found = np.zeros((features.shape[1], len(self.prior)))
        log = self.prior[value][None, :].repeat(features.shape[1], axis=0)
        for feature, table in zip(features, self.given, strict=True):
            log += table[feature][:, value]
        impossible = ~np.isfinite(log.max(axis=1))  # without smoothing: such people were never seen
        log[impossible] = self.prior[value]
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        found[:, value] = weight / weight.sum(axis=1, keepdims=True)
        return found


def learned_shares(
    deals: Deals, smoothing: float = 1.0, rounds: int = ROUNDS
) -> tuple[Floats, LearnedModel, int]:
    """The expected people of each pair by somebody who learns, the model, and how often it was fitted."""
    shares, people = deals.even_shares(), max(1, int(deals.rows.sum()))
    solver = Expectation(deals)
    done = 0
    model = LearnedModel.fitted(deals, shares, smoothing)
    while done < rounds:
        done += 1
        again = solver.shares(model.weights(deals.features[:, deals.entry], deals.value))
        change = float(np.abs(again - shares).sum()) / people
        shares = again
        model = LearnedModel.fitted(deals, shares, smoothing)
        if change < STEADY:
            break
    return shares, model, done


class Expectation:
    """How many people of each entry are expected to hold each value, given the weight of each pair.

    Exact by counting weighted orders (permanents) in groups of up to `small` people; beyond, by scaling rows and
    columns of the weights until both sums are right (Sinkhorn), which is an estimate.
    """

    def __init__(self, deals: Deals, small: int = SMALL) -> None:
        """Sort the small groups by how often they hold their values: those of one pattern are counted at once."""
        self._deals = deals
        self._start = np.searchsorted(deals.entry, np.arange(len(deals.group)))
        size = np.bincount(deals.group, deals.rows).astype(np.int64)
        self._large = size[deals.group][deals.entry] > small
        self._scale = np.ones(len(deals.column_group))
        self._patterns = self._by_pattern(np.flatnonzero((size > 0) & (size <= small)))

    def _by_pattern(self, groups: Ints) -> list[tuple[Orders, Ints]]:
        """Small groups by pattern, with the pair of every group, person and value."""
        deals = self._deals
        entries = np.searchsorted(deals.group, [groups, groups + 1]).T.tolist()
        columns = np.searchsorted(deals.column_group, [groups, groups + 1]).T.tolist()
        found: dict[tuple[int, ...], list[Ints]] = {}
        for (a, b), (c, d) in zip(entries, columns, strict=True):
            held = deals.column_rows[c:d]
            if len(held) == 1:
                continue
            order = np.argsort(-held, kind="stable")
            people = np.repeat(self._start[a:b], deals.rows[a:b])
            found.setdefault(tuple(held[order].tolist()), []).append(people[:, None] + order)
        return [(Orders(pattern), np.stack(pairs)) for pattern, pairs in found.items()]

    def shares(self, weights: Floats) -> Floats:
        """The expected people of each pair; `weights` are logarithms."""
        deals = self._deals
        found = deals.even_shares()
        if not len(weights):
            return found
        top = np.maximum.reduceat(weights, self._start)
        plain = np.exp(weights - np.where(np.isfinite(top), top, 0.0)[deals.entry])
        for orders, pairs in self._patterns:
            np.add.at(found, pairs, orders.marginals(plain[pairs]) - orders.even)
        if self._large.any():
            found[self._large] = self._scaled(plain[self._large])
        return found

    def _scaled(self, plain: Floats) -> Floats:
        """Rows and columns scaled in turn, from where the last round ended."""
        deals, weight = self._deals, np.maximum(plain, 1e-300)
        entry, column = deals.entry[self._large], deals.column[self._large]
        rows, target = deals.rows.astype(float), deals.column_rows.astype(float)
        for _ in range(SCALINGS):
            sums = np.bincount(entry, weight * self._scale[column], len(rows))
            left = np.divide(rows, sums, out=np.zeros(len(rows)), where=sums > 0)
            reached = np.bincount(column, weight * left[entry], len(target)) * self._scale
            off = np.abs(reached - target)[reached > 0]
            if float(off.max()) < CLOSE * float(target.max()):
                break
            self._scale = self._scale * np.divide(
                target, reached, out=np.ones(len(target)), where=reached > 0
            )
        found: Floats = weight * left[entry] * self._scale[column]
        return found


class Orders:
    """The orders in which values can lie in a group that holds them `pattern` times."""

    def __init__(self, pattern: tuple[int, ...]) -> None:
        """List the states: how many of each value are still to be dealt, by how many people are left."""
        self._pattern = pattern
        self.even = np.array(pattern, dtype=float) / sum(pattern)
        states = list(product(*(range(c + 1) for c in pattern)))
        place = {state: i for i, state in enumerate(states)}
        self._n_states = len(states)
        self._steps: list[list[tuple[Ints, Ints]]] = [[] for _ in range(sum(pattern))]
        for person, steps in enumerate(self._steps):
            here = [s for s in states if sum(s) == sum(pattern) - person]
            for v in range(len(pattern)):
                moves = [(place[s], place[(*s[:v], s[v] - 1, *s[v + 1 :])]) for s in here if s[v]]
                steps.append((np.array([a for a, _ in moves]), np.array([b for _, b in moves])))

    def marginals(self, weights: Floats) -> Floats:
        """P(person holds value) over all orders, weighted: groups × people × values, forwards and backwards."""
        n_groups, n_people, _ = weights.shape
        before = np.zeros((n_people + 1, n_groups, self._n_states))
        after = np.zeros_like(before)
        before[0][:, -1] = after[n_people][:, 0] = 1.0  # all are to be dealt; none is left
        for person, steps in enumerate(self._steps):
            for v, (a, b) in enumerate(steps):
                before[person + 1][:, b] += before[person][:, a] * weights[:, person, v, None]
        for person in reversed(range(n_people)):
            for v, (a, b) in enumerate(self._steps[person]):
                after[person][:, a] += after[person + 1][:, b] * weights[:, person, v, None]
        found = np.empty_like(weights)
        for person, steps in enumerate(self._steps):
            for v, (a, b) in enumerate(steps):
                through = np.einsum("gs,gs->g", before[person][:, a], after[person + 1][:, b])
                found[:, person, v] = through * weights[:, person, v]
        total = found.sum(axis=2, keepdims=True)
        even = np.broadcast_to(self.even, found.shape)
        shares: Floats = np.divide(found, total, out=even.copy(), where=total > 0)
        return shares
