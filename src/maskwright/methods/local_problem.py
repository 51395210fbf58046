"""From a task to the clustering problem of local recoding: prices of labels, sizes, and an order of the tuples."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from maskwright.core.classes import Ints
from maskwright.core.hierarchy import Hierarchy
from maskwright.core.method import Task
from maskwright.core.rules import DistinctAtLeast, EntropyAtLeast, Recursive, Rule, ShareAtMost, SizeAtLeast
from maskwright.kernels.local import STATES, Codes, Column, Problem, chain_column, dag_column

SCALE = 1 << 20  # the price of a row that has lost everything, where every attribute has something to lose
Allowed = tuple[tuple[int, ...], ...]


def shares(task: Task) -> list[Fraction]:
    """How much each quasi-identifier weighs in the loss; they sum to 1."""
    raw = [task.weights.get(h.attribute, Fraction(1)) for h in task.summary.attributes]
    total = sum(raw)
    return [w / total for w in raw] if total else [Fraction(1, len(raw))] * len(raw)


def prices(hierarchy: Hierarchy, share: Fraction, level: int) -> Ints:
    """By code, the price of its label at a level: share·(coverage − 1)/(base − 1), in units of 1/`SCALE`."""
    unit = share * SCALE / max(1, hierarchy.base - 1)
    leaves, where = np.unique(np.maximum(hierarchy.levels[level].leaves, 1), return_inverse=True)
    by_block = np.array([int(unit * (n - 1)) for n in leaves.tolist()], dtype=np.int64)[where.reshape(-1)]
    return np.asarray(by_block[hierarchy.levels[level].blocks])


def least_size(task: Task) -> int:
    """No group with fewer people passes (apart from groups of missing values): where clustering starts from."""
    rules = [rule for model in task.search for rule in model.kernel(task.context) or ()]
    sizes = [model.least_size(task.context) for model in task.search]
    return max([1, *sizes, *map(_least, rules)])


def _least(rule: Rule) -> int:
    if isinstance(rule, SizeAtLeast):
        return rule.k
    if isinstance(rule, ShareAtMost):
        return math.ceil(1 / rule.share) if rule.sets is None and rule.share else 1
    return math.ceil(rule.l) if isinstance(rule, DistinctAtLeast | EntropyAtLeast | Recursive) else 1


def problem_of(task: Task, allowed: Allowed, neighbours: int, limit: int) -> tuple[Problem, Ints]:
    """The problem, and the tuple at each place of its order.

    Values are numbered at random, so that ties, which go to the first tuple, are broken at random. Attributes
    with few values come first: then most of the tree of tuples need not be visited to find the nearest.
    """
    summary = task.summary
    made = [_column(task, a, allowed[a]) for a in range(len(allowed))]
    made.sort(key=lambda column: len(column.price))
    order = np.lexsort([column.codes for column in reversed(made)])
    columns = tuple(
        Column(np.ascontiguousarray(c.codes[order]), c.blocks, c.meet, c.price, c.table) for c in made
    )
    rows = np.ascontiguousarray(summary.rows[order], dtype=np.int64)
    sizes = np.ascontiguousarray(_people(task)[order], dtype=np.int64)
    width = max(1, min(neighbours, summary.n_tuples - 1))
    weights = zip(summary.attributes, shares(task), strict=True)
    full = int(SCALE * sum(share for hierarchy, share in weights if hierarchy.base > 1))
    return Problem(columns, rows, sizes, least_size(task), width, limit, full), order


def _column(task: Task, a: int, allowed: tuple[int, ...]) -> Column:
    hierarchy, share = task.summary.attributes[a], shares(task)[a]
    used, found = np.unique(task.summary.codes[a], return_inverse=True)
    number = task.rng.permutation(len(used))
    codes = number[found.reshape(-1)].astype(np.int32)
    used = used[np.argsort(number)]

    def tables(levels: tuple[int, ...]) -> tuple[Codes, Codes, Codes]:
        blocks = np.stack([hierarchy.levels[n].blocks[used] for n in levels]).astype(np.int32)
        costs = np.stack([prices(hierarchy, share, n)[used] for n in levels]).astype(np.int32)
        return codes, np.ascontiguousarray(blocks), costs

    chain = _chain(hierarchy, allowed)
    if len(chain) < len(allowed):
        column = dag_column(*tables(allowed))
        if column is not None:
            return column
    if len(chain) >= STATES:
        chain = (*chain[: STATES - 2], chain[-1])
    return chain_column(*tables(chain))


def _chain(hierarchy: Hierarchy, allowed: tuple[int, ...]) -> tuple[int, ...]:
    """The allowed levels, or those that form a chain with the finest."""
    kept = [allowed[0]]
    for level in allowed[1:]:
        if hierarchy.refines[kept[-1], level]:
            kept.append(level)
    return tuple(kept)


def _people(task: Task) -> Ints:
    """People of each tuple. Somebody with rows in several tuples counts in one of them, drawn at random: then the
    sizes of any tuples add up to no more people than are there."""
    summary = task.summary
    if summary.shared is None:
        return summary.sizes
    entries = task.rng.permutation(len(summary.shared.people))
    _, first = np.unique(summary.shared.people[entries], return_index=True)
    homes = summary.shared.tuples[entries[first]]
    return np.asarray(summary.sizes + np.bincount(homes, minlength=summary.n_tuples))
