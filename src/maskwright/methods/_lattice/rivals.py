"""Rivals: what a full-domain search would rather have published, had it satisfied the models of sensitive values.

A search that suppresses nothing but small classes scores every node by quasi-identifiers alone. So it is known without
a look at values which nodes come before the published one and satisfy everything that is required of quasi-identifiers;
whoever knows the method knows that each of them fails a model of sensitive values. Where merging classes keeps the
models satisfied and nothing may be suppressed, it is enough to know the coarsest of them: if they fail, so do
finer ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from maskwright.domain.method import Rival, Task
from maskwright.errors import PolicyError
from maskwright.methods._lattice.lattice import Node, group_tuples
from maskwright.methods._lattice.nodes import Nodes
from maskwright.methods.optimal_lattice import OptimalLattice

CANDIDATES = 100_000  # nodes that may come before the published one
RIVALS = 1_000  # beyond, running the method again is faster
KEPT = 20_000_000  # classes of tuples that are kept at once, for all of them together
FEWEST = 60  # that are kept whatever their size

Before = Callable[[Nodes, int, int], bool]  # does the first node come before the second?


def by_score(nodes: Nodes, a: int, b: int) -> bool:
    """The better score wins; among equals the lexicographically smaller levels."""
    order = nodes.objective.compare(nodes.vector(a), nodes.vector(b))
    return order < 0 or (order == 0 and a < b)


def by_height(nodes: Nodes, a: int, b: int) -> bool:
    """The lower node wins; among equals the better score."""
    low, high = int(nodes.heights[a]), int(nodes.heights[b])
    return low < high if low != high else by_score(nodes, a, b)


def rival_nodes(task: Task, node: Node, method: OptimalLattice, before: Before) -> list[Rival] | None:
    """The nodes that come before a published one and fail for their values; None where that cannot be said."""
    looked = [m for m in task.search if m.about == "sensitive"]
    if any(m.needs() for m in looked) or task.summary.shared is not None:
        return None
    if method.suppression and not all(m.is_local() for m in looked):
        return None  # what is left of a node depends on the other classes
    if method.suppress == "failing-classes" and method.suppression:
        return None
    blind = replace(task, search=[m for m in task.search if m.about != "sensitive"])
    least = max((m.least_size(task.context) for m in task.search), default=1)
    try:
        nodes = Nodes(blind, method, conditions=False, least=least)
    except PolicyError:  # too many to list
        return None
    closed = nodes.problem.limit == 0 and all(m.merge_safe for m in task.search)
    mine = nodes.lattice.number(node)
    if not nodes.satisfies(mine):
        return None
    most = max(FEWEST, min(RIVALS, KEPT // max(1, task.summary.n_tuples)))
    found = _before(nodes, mine, before, closed, most)
    if found is None:
        return None
    return [_rival(task, nodes, n) for n in found]


def _before(nodes: Nodes, mine: int, before: Before, closed: bool, most: int) -> list[int] | None:
    """Coarser ones first; below a node that loses too many rows nothing is feasible."""
    lattice = nodes.lattice
    numbers = np.arange(lattice.n_nodes, dtype=np.int64)
    places = lattice.level_indices(numbers)
    none = np.zeros(lattice.n_nodes, dtype=np.int64)
    scores = nodes.bounds.approximate(places, none, np.zeros((len(none), nodes.bounds.width), dtype=np.int64))
    mine_score = float(nodes.objective.approximate(np.array([nodes.vector(mine)], dtype=np.float64))[0])
    possible = scores <= mine_score + 1e-9 * abs(mine_score)
    if before is by_height:
        possible = (nodes.heights < nodes.heights[mine]) | (possible & (nodes.heights == nodes.heights[mine]))
    candidates = np.flatnonzero(possible)
    if len(candidates) > CANDIDATES:
        return None
    settled = np.zeros(lattice.n_nodes, dtype=np.uint8)
    found: list[int] = []
    for number in candidates[np.argsort(-nodes.heights[candidates], kind="stable")].tolist():
        if settled[number] or number == mine:
            continue
        if not nodes.satisfies(number):
            if nodes.hopeless(number):
                nodes.mark(settled, number, 1, up=False)
        elif before(nodes, number, mine):
            found.append(number)
            if closed:
                nodes.mark(settled, number, 1, up=False)
            if len(found) > most:
                return None
    return found


def _rival(task: Task, nodes: Nodes, number: int) -> Rival:
    node = nodes.lattice.node(number)
    class_of, n = group_tuples(task.summary, node)
    sizes = np.bincount(class_of, weights=task.summary.sizes, minlength=n)
    gone = sizes[class_of] < nodes.problem.least
    if nodes.problem.star and gone.any():
        return Rival(node, np.where(gone, n, class_of))
    return Rival(node, np.where(gone, -1, class_of))
