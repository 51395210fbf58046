"""Local recoding: the same value may be published at different levels in different groups.

Tuples of quasi-identifiers are clustered into groups that satisfy the policy, and each group is published under the
narrowest labels of the given hierarchies that cover it (bottom-up clustering as in Xu et al. 2006 and Byun et al. 2007;
ARX iterates full-domain recoding instead). The merge that adds least to the information loss, per row that it helps,
comes first; then single tuples move to better groups while the loss falls. The steps: `kernels/clusters.py`. Groups are
merged further until models hold that look at more than sizes.

Classes are what a reader can tell apart, and a reader sees texts: two groups whose labels read the same in every
attribute are one class, whichever levels the texts come from. They are merged and labelled again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from maskwright.domain.classes import Classes, Ints, Originals, ValueCounts
from maskwright.domain.grouping import Allocation, Grouping, Labels
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Decisions, Method, RowShare, Task
from maskwright.domain.model import fewest_rows
from maskwright.domain.summary import Summary
from maskwright.domain.unmet_requirements import refuse_no_rows
from maskwright.domain.verdict import plain_number
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.kernels.clusters import (
    NEVER,
    STATES,
    ClusterProblem,
    Clusters,
    Codes,
    TrieColumn,
    chain_column,
    cluster_kernel,
    dag_column,
)
from maskwright.methods._lattice.lattice import Lattice
from maskwright.methods._rows.anatomize import Anatomize, anatomize_groups, no_stars_in_buckets
from maskwright.methods._rows.group_labels import attribute_shares, information_loss
from maskwright.methods._rows.group_requirement import refuse_guards, refuse_unless_met
from maskwright.methods._rows.own_columns import best_of_circles, people_task, visits_task
from maskwright.methods.optimal_lattice import LISTED, OptimalLattice
from maskwright.runtime.time_budget import TimeTaken

SLICE = 4096  # tuples or merges between two looks at progress and cancellation
PAIR_S = 1e-9  # usual seconds for a value of a pair of tuples, with everything that the clustering does
REPAIR_S = 70e-9  # for a value of a tuple and a model, in a round of repairs


class LocalRecoding(Method):
    """Groups of similar tuples, each under the narrowest labels that cover it; never worse than full-domain recoding.

    Attributes:
        suppression: the share of rows that may be suppressed; a row is suppressed where that lowers the loss.
        suppressed_rows: drop them, or publish them as `*`; then they must satisfy the policy as a group.
        neighbours: how many of the nearest tuples are looked at for each; more is slower and better.
        rounds: how many times, at most, a better group is tried for each tuple.
        full_domain: also search for the best full-domain recoding, and return that where it loses less.
        labels: smallest (the narrowest that cover each group), or fixed (of one level for each column, chosen for the
            whole table: their form reveals nothing about a group, and what is published is the full-domain recoding).
        anatomize: split the classes further into buckets with this many different values of the sensitive column.
    """

    name: ClassVar[str] = "local-recoding"
    proven_settings: ClassVar[frozenset[str]] = frozenset(
        {"suppression", "suppressed_rows", "neighbours", "rounds", "full_domain", "anatomize"}
    )

    suppression: RowShare = Field(default=0, validate_default=True)
    suppressed_rows: Literal["drop", "star"] = "drop"
    neighbours: int = Field(default=32, ge=1, le=1000)
    rounds: int = Field(default=8, ge=0, le=1000)
    full_domain: bool = True
    labels: Literal["smallest", "fixed"] = "smallest"
    anatomize: Anatomize = None

    @model_validator(mode="after")
    def _makes_sense(self) -> LocalRecoding:
        return no_stars_in_buckets(self)

    def decisions(self) -> Decisions:
        """Blind without models of values; groups are recoded class by class, and nothing is left to chance."""
        return Decisions(blind=True, shape="local", by_tuples=self.anatomize is None)

    def most_left_out(self, task: Task) -> int | None:
        """The rows that may be suppressed."""
        return int(self.suppression * task.summary.n_rows)

    def group(self, task: Task) -> Grouping:
        """Cluster the tuples, repair failing groups, and publish what loses less: that or the full-domain recoding."""
        taken = TimeTaken()
        refuse_no_rows(task.summary)
        if asking := [m.name for m in task.search if m.needs() & {"population", "sample"}]:
            raise PolicyError(
                f"method {self.name} cannot compare its groups with a population, which {asking[0]} asks for; "
                f"use optimal-lattice, or write use: gate for {asking[0]}"
            )
        refuse_guards(task, self.name)
        if self.labels == "fixed":
            return self._fixed(task)
        if task.own:
            return self._people_first(task)
        lattice = Lattice.of(task.summary.attributes, task.levels)
        report: dict[str, Any] = {"objective": "information-loss", "neighbours": self.neighbours}
        local = self._local(task, lattice.allowed, report)
        full, refusal = self._full_domain(task, lattice)
        if refusal is not None and not local.ok:
            raise refusal
        choices, clustered = list[Grouping](), None
        if local.ok and local.published is not None:
            clustered = local.published.grouping(task.summary, report)
            report["groups"] = clustered.classes.n
            choices.append(clustered)
        weights = attribute_shares(task)
        report["full_domain_score"] = None if full is None else plain_number(information_loss(full, weights))
        if full is not None:
            choices += [*self._narrowed(task, lattice.allowed, full), full]
        if not choices:
            raise _refusal(task, local)
        grouping = min(choices, key=lambda choice: information_loss(choice, weights))
        report["recoding"] = "local" if grouping is clustered else "full-domain"
        report["score"] = plain_number(information_loss(grouping, weights))
        report |= taken.as_dict()
        grouping = replace(grouping, search=report)
        return anatomize_groups(task, grouping, self.anatomize) if self.anatomize else grouping

    def _fixed(self, task: Task) -> Grouping:
        """The best recoding whose labels were chosen without looking into any group."""
        method = OptimalLattice(suppression=self.suppression, suppressed_rows=self.suppressed_rows)
        grouping = method.group(task)
        grouping = replace(grouping, search={**grouping.search, "recoding": "full-domain"})
        return anatomize_groups(task, grouping, self.anatomize) if self.anatomize else grouping

    def _people_first(self, task: Task) -> Grouping:
        """People are clustered by their own columns, and then the rows of each cluster of people by the others."""
        lattice, weights = Lattice.of(task.summary.attributes, task.levels), attribute_shares(task)
        star = self.suppressed_rows == "star"
        whole = self.model_copy(update={"suppression": Fraction(0)})
        inside = self.model_copy(update={"anatomize": None})

        def _grouped(size: int) -> Grouping:
            people, number = people_task(task)
            allowed = Lattice.of(people.summary.attributes, people.levels).allowed
            found = whole._clustered(people, allowed, False, {}, size)
            if not found.ok or found.published is None:
                raise _refusal(people, found)
            visits, place = visits_task(task, found.published.group_of[number])
            made = inside.group(visits)
            group_of = made.allocation.groups[np.argsort(made.allocation.tuples)][place]
            if made.starred is not None:
                group_of = np.where(group_of == made.starred, -1, group_of)
            published = labelled_groups(task, lattice.allowed, group_of, star)
            if published is None:
                raise _refusal(task, Repaired(None, False, 0))
            return published.grouping(task.summary, made.search | {"groups": published.classes.n})

        choices, refusal = list[Grouping](), None
        try:
            choices.append(best_of_circles(task, _grouped, lambda made: information_loss(made, weights)))
        except PolicyNotMet as problem:
            refusal = problem
        full, _ = self._full_domain(task, lattice)  # one level for all is one for each person
        if full is not None:
            choices.append(full)
        if not choices:
            raise refusal or _refusal(task, Repaired(None, False, 0))
        grouping = min(choices, key=lambda choice: information_loss(choice, weights))
        report = {**grouping.search, "recoding": "full-domain" if grouping is full else "local"}
        report["score"] = plain_number(information_loss(grouping, weights))
        grouping = replace(grouping, search=report)
        return anatomize_groups(task, grouping, self.anatomize) if self.anatomize else grouping

    def _full_domain(self, task: Task, lattice: Lattice) -> tuple[Grouping | None, PolicyNotMet | None]:
        """The best full-domain recoding, or why there is none; neither where it was not searched for."""
        if not self.full_domain or lattice.n_nodes > LISTED:
            return None, None
        method = OptimalLattice(suppression=self.suppression, suppressed_rows=self.suppressed_rows)
        try:
            return method.group(task), None
        except PolicyNotMet as problem:
            return None, problem

    def _narrowed(self, task: Task, allowed: Allowed, full: Grouping) -> list[Grouping]:
        """The groups of a full-domain recoding, each under the narrowest labels, unless a reader would see others."""
        group_of = full.allocation.groups
        if full.starred is not None:
            group_of = np.where(group_of == full.starred, -1, group_of)
        published = labelled_groups(task, allowed, group_of, self.suppressed_rows == "star")
        if published is None or failing_groups(task, published).any():
            return []
        return [published.grouping(task.summary, {})]

    def _local(self, task: Task, allowed: Allowed, report: dict[str, Any]) -> Repaired:
        """Cluster, and merge what fails. Suppressing outliers is given up where that makes it impossible."""
        found = self._clustered(task, allowed, True, report)
        if not found.ok and self.suppression:
            return self._clustered(task, allowed, False, report)
        return found

    def _clustered(
        self, task: Task, allowed: Allowed, outliers: bool, report: dict[str, Any], least: int = 1
    ) -> Repaired:
        """Clusters of at least so many people, and as many as the models ask for; those that fail are merged."""
        limit = int(self.suppression * task.summary.n_rows)
        if not allowed:
            return Repaired(None, False, 0)
        problem, order = problem_of(task, allowed, self.neighbours, limit if outliers else 0, least)
        work = cluster_kernel(problem)
        report["moves"] = self._run(task, work, problem.n)
        of, lists = work.result()
        del work  # it holds as much again
        sizes = np.zeros(problem.n, dtype=np.int64)
        np.add.at(sizes, of[of >= 0], problem.sizes[of >= 0])
        small = (of >= 0) & (sizes[of] < problem.k)  # no label covers them and anything else
        if int(problem.rows[small | (of < 0)].sum()) <= limit:
            of[small] = -1
        group_of = np.empty(problem.n, dtype=np.int64)
        group_of[order] = of
        near = np.empty_like(lists)
        near[order] = np.where(lists < 0, np.int32(-1), order.astype(np.int32)[lists])
        star, weights = self.suppressed_rows == "star", attribute_shares(task)
        repair = GroupRepair(task, allowed, near, star)
        repaired = repair.run(group_of)
        report["repairs"] = repaired.rounds
        if not repaired.rounds or not FEWEST_REORDERED <= problem.n <= MOST_REORDERED:
            return repaired
        others = (repair.run(group_of, order) for order in range(1, ORDERS))
        return min((repaired, *others), key=lambda made: made.loss(task.summary, weights))

    def _run(self, task: Task, work: Clusters, n: int) -> int:
        """The steps of the clustering, with progress. How many tuples were moved?"""
        for lo in range(0, n, SLICE):
            task.progress.work(PAIR_S * min(SLICE, n - lo) * n * len(task.summary.attributes))
            work.neighbours(lo, lo + SLICE)
            task.progress.share(0.5 * lo / n, "looking for similar rows")
        while work.agglomerate(SLICE):
            task.progress.share(0.5, "grouping similar rows")
        moves = 0
        for number in range(self.rounds):
            moved = 0
            for lo in range(0, n, SLICE):
                moved += work.move(lo, lo + SLICE)
                task.progress.share(
                    0.6 + 0.3 * number / self.rounds, f"{moves + moved} moved to better groups"
                )
            moves += moved
            if not moved:
                break
        return moves


def _refusal(task: Task, local: Repaired) -> PolicyNotMet:
    """How close the last groups came."""
    if local.published is not None:
        try:
            refuse_unless_met(task, local.published.classes, "after merging all groups that can be merged")
        except PolicyNotMet as problem:
            return problem
    return PolicyNotMet(
        "no label of the allowed levels covers groups that are large enough; allow more levels"
    )


IN_VAIN = 8  # a merge whose result still fails counts as so many times dearer
CHOICES = 4  # partners of a failing group that are considered in one round
ORDERS = 2  # in which repairs of one price are tried; the one that loses least is taken
FEWEST_REORDERED = 1_000  # tuples: smaller tables are run again by attacks
MOST_REORDERED = 30_000  # larger ones take long


@dataclass(frozen=True, eq=False)
class Repaired:
    """Groups that satisfy every model (`ok`), or the last ones that were tried; None: some have no label."""

    published: LabelledGroups | None
    ok: bool
    rounds: int

    def loss(self, summary: Summary, weights: list[Fraction]) -> tuple[bool, float]:
        """What is less for better groups: those that satisfy every model first, then those that lose less."""
        if not self.ok or self.published is None:
            return True, 0.0
        return False, float(information_loss(self.published.grouping(summary, {}), weights))


class GroupRepair:
    """Merges failing groups with near ones, round by round. `near`: the nearest tuples of each tuple, -1: none."""

    def __init__(self, task: Task, allowed: Allowed, near: Codes, star: bool) -> None:
        self.task, self.allowed, self.near, self.star = task, allowed, near, star
        weights = attribute_shares(task)
        self.prices = [
            [label_prices(h, weights[a], n) for n in allowed[a]]
            for a, h in enumerate(task.summary.attributes)
        ]

    def run(self, group_of: Ints, order: int = 0) -> Repaired:
        """Each round has fewer groups than the one before, so that it comes to an end.

        `order`: which of the orders merges of one price are taken in.
        """
        rounds = 0
        while True:
            published = labelled_groups(self.task, self.allowed, group_of, self.star)
            if published is None:
                return Repaired(None, False, rounds)
            fail = failing_groups(self.task, published)
            left = int(fail.sum())
            if left == 0:
                return Repaired(published, True, rounds)
            self.task.progress.work(REPAIR_S * group_of.size * len(self.allowed) * len(self.task.search))
            merged = _Round(self, published, fail, order).merged()
            if merged is None:
                return Repaired(published, False, rounds)
            group_of, rounds = merged, rounds + 1
            self.task.progress.share(
                0.9 + 0.1 * (1 - left / published.classes.n), f"{left} groups fail a requirement"
            )


def failing_groups(task: Task, published: LabelledGroups) -> Bools:
    """The groups that fail a model."""
    passes = np.ones(published.classes.n, dtype=bool)
    for model in task.search:
        passes &= model.passing(published.classes, task.context)
    return ~passes


class _Round:
    """One round of merges."""

    def __init__(self, repair: GroupRepair, published: LabelledGroups, failing: Bools, order: int) -> None:
        self.repair, self.published, self.failing, self.order = repair, published, failing, order
        self.ordinary = np.arange(published.classes.n)
        if published.starred is not None:
            self.ordinary = self.ordinary[:-1]
        self.cost = self._price(self.ordinary, self.ordinary)

    def merged(self) -> Ints | None:
        """Pairs of groups become one, the cheapest first, each group in one pair; None where nothing helps."""
        published = self.published
        if published.starred is not None and self.failing[published.starred]:
            return None
        x, y, key = self._offers()
        target, used = np.arange(published.classes.n), np.zeros(published.classes.n, dtype=bool)
        tried = np.zeros(published.classes.n, dtype=np.int64)
        # of equal prices any may come first, but always the same; in the order of the groups they lose more
        for i in np.lexsort((_scattered(len(key), self.order), key)).tolist():
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


def _scattered(n: int, order: int) -> NDArray[np.uint64]:
    """Numbers in an order that has little to do with their places, always the same: multiples of the golden ratio."""
    return np.arange(n, dtype=np.uint64) * np.uint64((0x9E3779B97F4A7C15 * (2 * order + 1)) % (1 << 64))


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


Bools = NDArray[np.bool_]
SCALE = 1 << 20  # the price of a row that has lost everything, where every attribute has something to lose
Allowed = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class LabelledGroups:
    """Groups as they would be published.

    Attributes:
        group_of: the group of each tuple, -1: dropped.
        first: a tuple of each group.
        agree: by attribute, allowed level and group: are all its tuples in one block?
        labels: the texts, and what they cover.
        classes: sizes, sensitive counts, and the numbers of the labels.
        starred: the group of the suppressed rows, where they are published as `*`.
    """

    group_of: Ints
    first: Ints
    agree: list[Bools]
    labels: tuple[Labels, ...]
    classes: Classes
    starred: int | None

    def grouping(self, summary: Summary, search: dict[str, Any]) -> Grouping:
        """The grouping that these groups make."""
        tuples = np.arange(summary.n_tuples, dtype=np.int64)
        allocation = Allocation(tuples, self.group_of, summary.rows)
        classes = Classes(self.classes.sizes, self.classes.rows, self.classes.sensitive)
        return Grouping(
            summary, allocation, self.labels, classes, None, self.starred, search, labelling="blocks"
        )


def labelled_groups(task: Task, allowed: Allowed, group_of: Ints, star: bool) -> LabelledGroups | None:
    """Label the groups (numbers may have gaps; -1: suppressed); None where no label covers some group."""
    summary = task.summary
    while True:
        group_of, n = _renumbered(group_of)
        kept = group_of >= 0
        if n == 0:
            return None
        order = np.argsort(group_of, kind="stable")[np.count_nonzero(~kept) :]
        starts = np.searchsorted(group_of[order], np.arange(n))
        found = [_levels(summary, a, allowed[a], order, starts) for a in range(len(allowed))]
        first, levels = order[starts], np.stack([levels for _, levels in found])
        if (levels < 0).any():
            return None
        starred = n if star and not kept.all() else None
        if starred is not None:  # a group like any other, with the top as its label everywhere
            first = np.append(first, np.flatnonzero(~kept)[0])
            levels = np.column_stack([levels, [h.top for h in summary.attributes]])
        labels = tuple(_labels(summary, a, levels[a], first) for a in range(len(allowed)))
        codes = np.stack([x.of_group for x in labels])
        same = np.unique(codes, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
        if int(same.max()) + 1 == len(same):
            break
        # suppressed rows that read like a group are rows of that group
        joined = starred is not None and int((same == same[starred]).sum()) > 1
        group_of = np.where(kept, same[group_of], same[-1] if joined else -1)
    if starred is not None:
        group_of = np.where(kept, group_of, starred)
    classes = replace(
        summary.classes(group_of, len(same)),
        attributes=tuple(h.attribute for h in summary.attributes),
        codes=codes,
        originals=Originals.of(group_of, summary.sizes, len(same)) if "originals" in task.needs() else None,
    )
    return LabelledGroups(group_of, first, [agree for agree, _ in found], labels, classes, starred)


def _renumbered(group_of: Ints) -> tuple[Ints, int]:
    """Groups numbered anew, without gaps."""
    numbers, dense = np.unique(group_of, return_inverse=True)
    gone = int(len(numbers) > 0 and numbers[0] < 0)
    return dense.reshape(-1).astype(np.int64) - gone, len(numbers) - gone


def _levels(
    summary: Summary, a: int, allowed: tuple[int, ...], order: Ints, starts: Ints
) -> tuple[Bools, Ints]:
    """At which levels the groups agree, and the one of them that covers least (ties: the first; -1: none)."""
    hierarchy, codes = summary.attributes[a], summary.codes[a][order]
    agree = np.empty((len(allowed), len(starts)), dtype=bool)
    best = np.full(len(starts), np.iinfo(np.int64).max)
    chosen = np.full(len(starts), -1, dtype=np.int64)
    for p, number in enumerate(allowed):
        level = hierarchy.levels[number]
        block = level.blocks[codes]
        agree[p] = np.minimum.reduceat(block, starts) == np.maximum.reduceat(block, starts)
        covers = np.maximum(level.leaves[block[starts]], 1)
        better = agree[p] & (covers < best)
        best[better], chosen[better] = covers[better], number
    return agree, chosen


def _labels(summary: Summary, a: int, levels: Ints, first: Ints) -> Labels:
    """The texts of one attribute. A text that stands for several blocks covers all of them."""
    hierarchy = summary.attributes[a]
    texts: dict[str | None, int] = {}
    blocks_of: dict[int, list[tuple[int, int]]] = {}
    of_group = np.empty(len(levels), dtype=np.int32)
    for number in np.unique(levels).tolist():
        groups = np.flatnonzero(levels == number)
        level = hierarchy.levels[number]
        used, where = np.unique(level.blocks[summary.codes[a][first[groups]]], return_inverse=True)
        ids = []
        for block in used.tolist():
            ids.append(texts.setdefault(_shown(level.labels[block]), len(texts)))
            blocks_of.setdefault(ids[-1], []).append((number, block))
        of_group[groups] = np.array(ids, dtype=np.int32)[where.reshape(-1)]
    coverage = np.array([_covered(hierarchy, blocks_of[i]) for i in range(len(texts))], dtype=np.int64)
    return Labels(hierarchy.attribute, tuple(texts), coverage, of_group)


def _shown(text: str | None) -> str | None:
    """A label as it is written: without surrounding blanks, and never empty."""
    return (text.strip() or None) if text is not None else None


def _covered(hierarchy: Hierarchy, blocks: list[tuple[int, int]]) -> int:
    """How many ground values lie in any of the blocks."""
    inside = np.zeros(len(hierarchy.values), dtype=bool)
    for number, block in blocks:
        inside |= hierarchy.levels[number].blocks[1:] == block
    return int(inside.sum())


def label_prices(hierarchy: Hierarchy, share: Fraction, level: int) -> Ints:
    """By code, the price of its label at a level: share·(coverage − 1)/(base − 1), in units of 1/`SCALE`."""
    unit = share * SCALE / max(1, hierarchy.base - 1)
    leaves, where = np.unique(np.maximum(hierarchy.levels[level].leaves, 1), return_inverse=True)
    by_block = np.array([int(unit * (n - 1)) for n in leaves.tolist()], dtype=np.int64)[where.reshape(-1)]
    return np.asarray(by_block[hierarchy.levels[level].blocks])


def problem_of(
    task: Task, allowed: Allowed, neighbours: int, limit: int, people: int = 1
) -> tuple[ClusterProblem, Ints]:
    """The problem, and the tuple at each place of its order.

    Ties go to the first tuple in the order of the values. Attributes with few values come first: then most of the tree
    of tuples need not be visited to find the nearest.
    """
    summary = task.summary
    made = [_column(task, a, allowed[a]) for a in range(len(allowed))]
    made.sort(key=lambda column: len(column.price))
    order = np.lexsort([column.codes for column in reversed(made)])
    columns = tuple(
        TrieColumn(np.ascontiguousarray(c.codes[order]), c.blocks, c.meet, c.price, c.table) for c in made
    )
    rows = np.ascontiguousarray(summary.rows[order], dtype=np.int64)
    sizes = np.ascontiguousarray(_people(task)[order], dtype=np.int64)
    width = max(1, min(neighbours, summary.n_tuples - 1))
    weights = zip(summary.attributes, attribute_shares(task), strict=True)
    full = int(SCALE * sum(share for hierarchy, share in weights if hierarchy.base > 1))
    least = max(people, fewest_rows(task.search, task.context, named=False))  # where clustering starts from
    return ClusterProblem(columns, rows, sizes, least, width, limit, full), order


def _column(task: Task, a: int, allowed: tuple[int, ...]) -> TrieColumn:
    hierarchy, share = task.summary.attributes[a], attribute_shares(task)[a]
    used, found = np.unique(task.summary.codes[a], return_inverse=True)
    codes = found.reshape(-1).astype(np.int32)

    def _tables(levels: tuple[int, ...]) -> tuple[Codes, Codes, Codes]:
        blocks = np.stack([hierarchy.levels[n].blocks[used] for n in levels]).astype(np.int32)
        costs = np.stack([label_prices(hierarchy, share, n)[used] for n in levels]).astype(np.int32)
        return codes, np.ascontiguousarray(blocks), costs

    chain = _chain(hierarchy, allowed)
    if len(chain) < len(allowed):
        column = dag_column(*_tables(allowed))
        if column is not None:
            return column
    if len(chain) >= STATES:
        chain = (*chain[: STATES - 2], chain[-1])
    return chain_column(*_tables(chain))


def _chain(hierarchy: Hierarchy, allowed: tuple[int, ...]) -> tuple[int, ...]:
    """The allowed levels, or those that form a chain with the finest."""
    kept = [allowed[0]]
    for level in allowed[1:]:
        if hierarchy.refines[kept[-1], level]:
            kept.append(level)
    return tuple(kept)


def _people(task: Task) -> Ints:
    """People of each tuple. Somebody with rows in several tuples counts in the first of them: then the sizes of any
    tuples add up to no more people than are there."""
    summary = task.summary
    if summary.shared is None:
        return summary.sizes
    _, person = np.unique(summary.shared.people, return_inverse=True)
    homes = np.full(int(person.max(initial=-1)) + 1, summary.n_tuples, dtype=np.int64)
    np.minimum.at(homes, person.reshape(-1), summary.shared.tuples)
    return np.asarray(summary.sizes + np.bincount(homes, minlength=summary.n_tuples))
