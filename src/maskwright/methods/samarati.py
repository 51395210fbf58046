"""Samarati's search: the lowest nodes of the lattice that satisfy the policy [Samarati 2001].

The height of a node is the sum of the heights of its levels. Where satisfaction is upward closed (see
`_lattice/nodes.py`) the lowest height is found by binary search; where it is not, binary search can miss it [Truta,
Vinay 2006, corrected], and every node that has not been ruled out is checked, from the bottom. Among the nodes of
the lowest height the one with the least loss is chosen, ties going to the lexicographically smallest levels.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Rival, Task
from maskwright.domain.unmet_requirements import refuse_no_rows
from maskwright.domain.verdict import plain_number
from maskwright.methods._lattice.full_domain import full_domain
from maskwright.methods._lattice.nodes import Nodes
from maskwright.methods._lattice.rivals import by_height, rival_nodes
from maskwright.methods._rows.anatomize import anatomize_groups
from maskwright.methods.optimal_lattice import NodeSearch


class Samarati(NodeSearch):
    """The full-domain recoding of the lowest height that satisfies the policy.

    Attributes:
        objective: what decides among the nodes of the lowest height.
        suppression: the share of rows that may be suppressed.
        suppress: small-classes removes classes with fewer than k people; failing-classes removes every class
            that fails a requirement (then absence itself is information).
        suppressed_rows: drop them, or publish them as `*`; then they must satisfy the policy as a group.
        conditions: rule nodes out by the two necessary conditions of p-sensitive k-anonymity first.
        anatomize: split the classes further into buckets with this many different values of the sensitive column.
    """

    name: ClassVar[str] = "samarati"
    proven_settings: ClassVar[frozenset[str]] = NodeSearch.proven_settings | {"conditions"}

    conditions: bool = True

    def group(self, task: Task) -> Grouping:
        """Publish the best of the lowest nodes."""
        refuse_no_rows(task.summary)
        nodes = Nodes(task, self.optimal(), self.conditions)
        if (refusal := nodes.impossible()) is not None:
            raise refusal
        found = lowest_nodes(nodes)
        if not found:
            raise self.refuse(task)
        best = nodes.by_score(found)[0]
        grouping = full_domain(
            task,
            nodes.problem,
            nodes.lattice.node(best),
            nodes.suppressed(best),
            self._report(nodes, found, best),
        )
        return anatomize_groups(task, grouping, self.anatomize) if self.anatomize else grouping

    def rivals(self, task: Task, published: Grouping) -> list[Rival] | None:
        """The lower nodes that fail for their values, and those of equal height with a better score."""
        if published.levels is None:
            return None
        return rival_nodes(task, published.levels, self.optimal(), by_height)

    def _report(self, nodes: Nodes, found: list[int], best: int) -> dict[str, Any]:
        chosen = nodes.describe(best)
        return {
            "objective": self.objective,
            "score": plain_number(chosen.score),
            "levels": chosen.names,
            "height": chosen.height,
            "nodes": nodes.lattice.n_nodes,
            "nodes_of_this_height": len(found),
            "checked": nodes.checked,
            "ruled_out_by_size": nodes.by_size,
            "ruled_out_by_condition": nodes.by_condition,
            "most_groups": nodes.most_groups,
            "strategy": "binary" if nodes.upward else "exhaustive",
            "why": nodes.why,
        }


def lowest_nodes(nodes: Nodes) -> list[int]:
    """All satisfying nodes of the lowest height at which there are any; empty when there are none."""
    heights, top = nodes.heights, int(nodes.heights.max())
    dead = np.zeros(nodes.lattice.n_nodes, dtype=np.uint8)  # neither satisfies, nor does anything below
    low, high = 0, top
    while (
        low < high
    ):  # nothing lower than `low` satisfies; where satisfaction is upward closed, something at `high` does
        middle = (low + high) // 2
        if (hope := _hope(nodes, dead, middle)) is None:
            low = middle + 1
        else:
            high = int(heights[hope]) if nodes.upward else middle
    for height in range(low, top + 1):
        open_nodes = np.flatnonzero((heights == height) & (dead == 0)).tolist()
        found = [number for number in open_nodes if nodes.satisfies(number)]
        if found:
            return found
    return []


def _hope(nodes: Nodes, dead: NDArray[np.uint8], height: int) -> int | None:
    """A node up to this height that satisfies or may have satisfying nodes below it, if there is one.

    It is enough to look at the nodes of which no coarsening is within this height: all others are below them.
    In a chain these are the nodes of exactly this height, elsewhere a step can skip a height.
    """
    inside = (nodes.heights <= height) & (nodes.heights + nodes.steps > height) & (dead == 0)
    edge = np.flatnonzero(inside)
    for number in edge[np.argsort(nodes.possible[edge], kind="stable")].tolist():
        if not nodes.hopeless(number):
            return int(number)
        nodes.mark(dead, number, 1, up=False)
    return None
