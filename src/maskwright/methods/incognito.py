"""Incognito: all minimal nodes, found over ever larger sets of quasi-identifiers [LeFevre et al. 2005].

Leaving a quasi-identifier out merges classes. So, where satisfaction is upward closed (see `_lattice/nodes.py`), a node
can satisfy the policy only if each of its projections on fewer quasi-identifiers does: candidates for i
quasi-identifiers are what the nodes found for i - 1 leave over. The frequency set of each subset is rolled up
from that of a larger one. In all other cases the minimal nodes are found by predictive tagging (`minimal.py`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.grouping import Grouping
from maskwright.domain.guards import merged_guards
from maskwright.domain.method import Rival, Task
from maskwright.domain.sample import weight_totals
from maskwright.domain.summary import Summary
from maskwright.domain.unmet_requirements import refuse_no_rows
from maskwright.domain.verdict import plain_number
from maskwright.methods._lattice.full_domain import full_domain
from maskwright.methods._lattice.lattice import group_tuples
from maskwright.methods._lattice.minimal_nodes import tag_minimal_nodes
from maskwright.methods._lattice.nodes import LISTED, MinimalNode, Nodes
from maskwright.methods._lattice.rivals import by_score, rival_nodes
from maskwright.methods._rows.anatomize import anatomize_groups
from maskwright.methods.optimal_lattice import NodeSearch, OptimalLattice

Subset = tuple[int, ...]
Bools = NDArray[np.bool_]


class Incognito(NodeSearch):
    """All minimal full-domain recodings, of which the one with the least loss is published.

    Attributes:
        objective: what decides among the minimal nodes.
        suppression: the share of rows that may be suppressed.
        suppress: small-classes removes classes with fewer than k people; failing-classes removes every class
            that fails a requirement (then absence itself is information).
        suppressed_rows: drop them, or publish them as `*`; then they must satisfy the policy as a group.
        anatomize: split the classes further into buckets with this many different values of the sensitive column.
    """

    name: ClassVar[str] = "incognito"

    def group(self, task: Task) -> Grouping:
        """Publish the best of all minimal nodes."""
        refuse_no_rows(task.summary)
        nodes = Nodes(task, self.optimal())
        if (refusal := nodes.impossible()) is not None:
            raise refusal
        by_subsets, why = self._by_subsets(nodes)
        search = BySubsets(nodes, self.optimal()) if by_subsets else None
        found = nodes.by_score(search.run() if search else tag_minimal_nodes(nodes))
        if not found:
            raise self.refuse(task)
        minimal = [nodes.describe(number) for number in found]
        report = {
            "objective": self.objective,
            "score": plain_number(minimal[0].score),
            "levels": minimal[0].names,
            "nodes": nodes.lattice.n_nodes,
            "checked": nodes.checked,
            "checked_on_subsets": search.checked if search else 0,
            "strategy": "subsets" if search else "tagging",
            "why": why,
            "minimal_nodes": [_row(node) for node in minimal],
        }
        grouping = full_domain(task, nodes.problem, minimal[0].levels, minimal[0].suppressed, report)
        return anatomize_groups(task, grouping, self.anatomize) if self.anatomize else grouping

    def rivals(self, task: Task, published: Grouping) -> list[Rival] | None:
        """The better nodes that fail for their values; None where rows may be suppressed or models not merge-safe."""
        # the best of all minimal nodes is the best of all where nothing is suppressed: scores rise with the levels
        if published.levels is None or self.suppression or not all(m.merge_safe for m in task.search):
            return None
        return rival_nodes(task, published.levels, self.optimal(), by_score)

    def _by_subsets(self, nodes: Nodes) -> tuple[bool, str]:
        """Can candidates be made from smaller sets of quasi-identifiers? With the reason in words."""
        task = nodes.task
        if not nodes.upward:
            return False, nodes.why
        if task.summary.shared is not None or (task.census is not None and task.census.shared is not None):
            return (
                False,
                "some people have rows in several classes, so frequency sets cannot be rolled up",
            )
        if not all(model.is_local() for model in task.search):
            return False, "a requirement looks at several classes at once"
        if math.prod(size + 1 for size in nodes.lattice.shape) > LISTED:
            return False, "there are too many nodes on subsets of the quasi-identifiers to list them"
        return True, nodes.why


def _row(node: MinimalNode) -> dict[str, Any]:
    return {
        "levels": node.names,
        "height": node.height,
        "suppressed_rows": node.suppressed,
        "score": plain_number(node.score),
    }


class BySubsets:
    """The a-priori search over subsets of the quasi-identifiers, smaller ones first."""

    def __init__(self, nodes: Nodes, method: OptimalLattice) -> None:
        self.nodes = nodes
        self.method = method
        self.checked = 0
        self.everything = tuple(range(len(nodes.lattice.shape)))
        self._frequency_sets: dict[Subset, Summary] = {self.everything: nodes.task.summary}

    def run(self) -> list[int]:
        """The minimal nodes, by number."""
        satisfying: dict[Subset, Bools] = {}
        for size in range(1, len(self.everything)):
            previous, satisfying = satisfying, {}
            for subset in itertools.combinations(self.everything, size):
                candidates = self._candidates(subset, previous)
                satisfying[subset], _ = self._search(self._on(subset), candidates)
        return self._search(self.nodes, self._candidates(self.everything, satisfying))[1]

    def _candidates(self, subset: Subset, smaller: dict[Subset, Bools]) -> Bools:
        """The nodes on a subset of which every projection on one attribute less satisfies."""
        candidates = np.ones([self.nodes.lattice.shape[a] for a in subset], dtype=bool)
        for axis in range(len(subset)):
            projected = smaller.get(subset[:axis] + subset[axis + 1 :])
            if projected is not None:
                candidates &= np.expand_dims(projected, axis)
        return candidates

    def _search(self, nodes: Nodes, candidates: Bools) -> tuple[Bools, list[int]]:
        """Which candidates satisfy, and the minimal ones among them: breadth first, tagging upwards."""
        satisfying = np.zeros(nodes.lattice.n_nodes, dtype=np.uint8)
        minimal = []
        numbers = np.flatnonzero(candidates)
        for number in numbers[np.argsort(nodes.heights[numbers], kind="stable")].tolist():
            if not satisfying[number] and nodes.satisfies(number):
                minimal.append(number)
                nodes.mark(satisfying, number, 1, up=True)
        if nodes is not self.nodes:
            self.checked += nodes.checked
        return satisfying.reshape(nodes.lattice.shape).astype(bool), minimal

    def _on(self, subset: Subset) -> Nodes:
        """The task with these quasi-identifiers only."""
        census = self.nodes.task.census
        task = replace(
            self.nodes.task,
            summary=self._frequency_set(subset),
            census=None if census is None else roll_up(census, subset),
        )
        return Nodes(task, self.method, conditions=False, objective="suppressed")

    def _frequency_set(self, subset: Subset) -> Summary:
        if subset not in self._frequency_sets:
            more = next(a for a in self.everything if a not in subset)
            larger = tuple(sorted((*subset, more)))
            keep = [i for i, a in enumerate(larger) if a != more]
            self._frequency_sets[subset] = roll_up(self._frequency_set(larger), keep)
        return self._frequency_sets[subset]


def roll_up(summary: Summary, keep: Sequence[int]) -> Summary:
    """The frequency set of some of the attributes, from that of all. Every person must be in one tuple."""
    attributes = tuple(summary.attributes[a] for a in keep)
    some = replace(summary, attributes=attributes, codes=summary.codes[list(keep)])
    group_of, n_groups = group_tuples(some, (0,) * len(keep))
    first = np.zeros(n_groups, dtype=np.int64)
    first[group_of] = np.arange(summary.n_tuples)
    classes = some.classes(group_of, n_groups)
    return replace(
        some,
        codes=np.ascontiguousarray(some.codes[:, first]),
        rows=classes.rows,
        sizes=classes.sizes,
        sensitive=classes.sensitive,
        weights=None if summary.weights is None else weight_totals(group_of, summary.weights, n_groups),
        households=None,
        guards=merged_guards(summary.guards, group_of),
    )
