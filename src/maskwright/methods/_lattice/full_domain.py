"""From a lattice node to a grouping: the classes counted independently of the search, and their labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Allocation, Grouping, Labels, Trace
from maskwright.domain.hierarchy import TOP
from maskwright.domain.method import Task
from maskwright.errors import NotVerified
from maskwright.kernels.node_check import NodeProblem
from maskwright.methods._lattice.lattice import Node
from maskwright.methods._lattice.node_evaluation import Evaluator, published_groups


def full_domain(
    task: Task, problem: NodeProblem, node: Node, suppressed: int | None, search: dict[str, Any]
) -> Grouping:
    """The grouping of a node. Refuses when the plain count contradicts what the search found there."""
    summary = task.summary
    evaluator = Evaluator(task, problem, tuple((n,) for n in node))
    found = evaluator.evaluate(node)
    gone = found.outcome.suppressed
    rows = int(found.classes.rows[gone].sum())
    if (suppressed is not None and rows != suppressed) or rows > problem.limit or not found.outcome.passes:
        raise NotVerified(
            f"the search found {suppressed} suppressed rows at levels {list(node)}, an independent count {rows} "
            f"({'the' if found.outcome.passes else 'not all'} models hold); please report this"
        )
    group_of, starred = published_groups(summary, node, found.group_of, gone, problem.star)
    n_groups = int((~gone).sum()) + (starred is not None)
    if n_groups == 0:
        raise NotVerified("the search chose a node that suppresses every row; please report this")
    allocation = Allocation(np.arange(summary.n_tuples, dtype=np.int64), group_of, summary.rows)
    classes = summary.classes(group_of, n_groups) if gone.any() else found.classes
    first = np.zeros(n_groups, dtype=np.int64)
    inside = np.flatnonzero(group_of >= 0)
    first[group_of[inside]] = inside  # any tuple of a group has its labels
    labels = tuple(_labels(task, a, n, first, starred) for a, n in enumerate(node))
    trace = Trace(search.get("optimal") is not False, search.get("nodes"))
    return Grouping(summary, allocation, labels, classes, node, starred, search, trace=trace)


def _labels(task: Task, a: int, number: int, first: Ints, starred: int | None) -> Labels:
    hierarchy = task.summary.attributes[a]
    level = hierarchy.levels[number]
    of_group = level.blocks[task.summary.codes[a][first]]
    texts, coverage = level.labels, level.leaves
    if starred is not None and number == hierarchy.top:
        of_group[starred] = 0
    elif starred is not None:
        of_group[starred] = len(texts)
        texts, coverage = (*texts, TOP), np.append(coverage, hierarchy.base)
    return Labels(hierarchy.attribute, texts, coverage, of_group)
