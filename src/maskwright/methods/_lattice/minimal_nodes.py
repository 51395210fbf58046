"""Minimal nodes: every node that satisfies the policy while no other node below it does.

They are all the choices there are: whatever else satisfies the policy is coarser than one of them [Samarati 2001;
LeFevre et al. 2005]. The search is right for every policy, monotone or not, because it relies on two facts that
always hold: a node above a satisfying node is not minimal, and a node below one that must lose too much (see
`kernels/rule_checks.py`) does not satisfy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.method import Task
from maskwright.domain.settings import parse_settings
from maskwright.errors import UsageError
from maskwright.methods._lattice.nodes import MinimalNode, Nodes
from maskwright.methods.optimal_lattice import OptimalLattice

State = NDArray[np.uint8]
OPEN, SETTLED, FOUND = 0, 1, 2


def minimal_nodes(
    task: Task,
    *,
    suppression: Any = 0,
    suppress: str = "small-classes",
    suppressed_rows: str = "drop",
    objective: str = "information-loss",
) -> list[MinimalNode]:
    """All minimal nodes of a task, best score first; empty when no node satisfies.

    The options are those of `optimal-lattice`; the objective decides nothing but the order.
    """
    options = {
        "suppression": suppression,
        "suppress": suppress,
        "suppressed_rows": suppressed_rows,
        "objective": objective,
    }
    method = parse_settings(OptimalLattice, options, "minimal_nodes", UsageError)
    if task.summary.n_rows == 0:
        return []
    nodes = Nodes(task, method)
    return [nodes.describe(number) for number in nodes.by_score(tag_minimal_nodes(nodes))]


def tag_minimal_nodes(nodes: Nodes) -> list[int]:
    """The minimal nodes, by number, with predictive tagging: upwards from what satisfies, downwards from what cannot.

    From each open node, lowest first, a path through open nodes is climbed and bisected [Kohlmayer et al. 2012].
    """
    if nodes.most_groups == 0:
        return []
    state = np.zeros(nodes.lattice.n_nodes, dtype=np.uint8)
    order = np.argsort(nodes.heights, kind="stable")
    for done, start in enumerate(order.tolist()):
        if state[start] != OPEN:
            continue
        nodes.task.progress.share(done / len(order), f"{nodes.checked} nodes checked")
        _bisect(nodes, state, _path(nodes, state, start))
        if state[start] == OPEN:
            _settle(nodes, state, start)
    return [int(number) for number in np.flatnonzero(state == FOUND)]


def _path(nodes: Nodes, state: State, start: int) -> list[int]:
    """Upwards through open nodes, each time to the one that has the fewest classes."""
    path = [start]
    while True:
        up = [n for n in nodes.lattice.steps(path[-1], nodes.lattice.coarser) if state[n] == OPEN]
        if not up:
            return path
        path.append(min(up, key=nodes.possible.__getitem__))


def _bisect(nodes: Nodes, state: State, path: list[int]) -> None:
    low, high = 0, len(path)
    while low < high:
        middle = (low + high) // 2
        if _settle(nodes, state, path[middle]):
            high = middle
        else:
            low = middle + 1


def _settle(nodes: Nodes, state: State, number: int) -> bool:
    """Check a node and tag what follows. Does it satisfy?"""
    satisfies = nodes.satisfies(number)
    if satisfies:
        nodes.mark(state, number, SETTLED, up=True)
        state[number] = FOUND
    elif nodes.hopeless(number):
        nodes.mark(state, number, SETTLED, up=False)
    else:
        state[number] = SETTLED
    return satisfies
