"""Local recoding: the same value may be published at different levels in different groups.

Tuples of quasi-identifiers are clustered into groups that satisfy the policy, and each group is published under the
narrowest labels of the given hierarchies that cover it (bottom-up clustering as in Xu et al. 2006 and Byun et al. 2007;
ARX iterates full-domain recoding instead). The merge that adds least to the information loss, per row that it helps,
comes first; then single tuples move to better groups while the loss falls. The steps: `kernels/clusters.py`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Decisions, Method, RowShare, Task
from maskwright.domain.verdict import plain_number
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.kernels.clusters import Clusters, cluster_kernel
from maskwright.methods._lattice.lattice import Lattice
from maskwright.methods._local.local_labels import (
    Allowed,
    attribute_shares,
    information_loss,
    labelled_groups,
    problem_of,
)
from maskwright.methods._local.local_repair import GroupRepair, Repaired, failing_groups
from maskwright.methods._rows.anatomize import Anatomize, anatomize_groups, no_stars_in_buckets
from maskwright.methods._rows.group_requirement import refuse_unless_met
from maskwright.methods.optimal_lattice import LISTED, OptimalLattice

SLICE = 4096  # tuples or merges between two looks at progress and cancellation


class LocalRecoding(Method):
    """Groups of similar tuples, each under the narrowest labels that cover it; never worse than full-domain recoding.

    Attributes:
        suppression: the share of rows that may be suppressed; a row is suppressed where that lowers the loss.
        suppressed_rows: drop them, or publish them as `*`; then they must satisfy the policy as a group.
        neighbours: how many of the nearest tuples are looked at for each; more is slower and better.
        rounds: how often all tuples are tried to be moved to a better group, at most.
        full_domain: also search for the best full-domain recoding, and return that where it loses less.
        anatomize: split the classes further into buckets with so many different values of the sensitive column.
    """

    name: ClassVar[str] = "local-recoding"

    suppression: RowShare = Field(default=0, validate_default=True)
    suppressed_rows: Literal["drop", "star"] = "drop"
    neighbours: int = Field(default=32, ge=1, le=1000)
    rounds: int = Field(default=8, ge=0, le=1000)
    full_domain: bool = True
    anatomize: Anatomize = None

    @model_validator(mode="after")
    def _makes_sense(self) -> LocalRecoding:
        return no_stars_in_buckets(self)

    def decisions(self) -> Decisions:
        """Blind without models of values; groups are recoded class by class."""
        return Decisions(blind=True, shape="local")

    def most_left_out(self, task: Task) -> int | None:
        """The rows that may be suppressed."""
        return int(self.suppression * task.summary.n_rows)

    def group(self, task: Task) -> Grouping:
        """Cluster the tuples, repair failing groups, and publish what loses less: that or the full-domain recoding."""
        started, cpu = time.monotonic(), time.process_time()
        if task.summary.n_rows == 0:
            raise PolicyNotMet("the table has no rows; there is nothing to publish")
        if asking := [m.name for m in task.search if m.needs() & {"population", "sample"}]:
            raise PolicyError(
                f"method {self.name} cannot compare its groups with a population, which {asking[0]} asks for; "
                f"use optimal-lattice, or write use: gate for {asking[0]}"
            )
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
        report["wall_s"], report["cpu_s"] = time.monotonic() - started, time.process_time() - cpu
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

    def _clustered(self, task: Task, allowed: Allowed, outliers: bool, report: dict[str, Any]) -> Repaired:
        limit = int(self.suppression * task.summary.n_rows)
        if not allowed:
            return Repaired(None, False, 0)
        problem, order = problem_of(task, allowed, self.neighbours, limit if outliers else 0)
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
        repaired = GroupRepair(task, allowed, near, self.suppressed_rows == "star").run(group_of)
        report["repairs"] = repaired.rounds
        return repaired

    def _run(self, task: Task, work: Clusters, n: int) -> int:
        """The steps of the clustering, with progress. How many tuples were moved?"""
        for lo in range(0, n, SLICE):
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
