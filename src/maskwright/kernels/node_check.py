"""Checking one node of a lattice: who is suppressed there, at what cost, and what that means for finer nodes.

`Checker` is the numpy twin; `node_checker` prefers the compiled kernel where it is installed and can take the
problem. Both give the same results.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.exact import exact_dot
from maskwright.domain.rules import Rule, SizeAtLeast
from maskwright.domain.segments import dense_numbers
from maskwright.kernels.rule_checks import decide_classes

SNAPSHOTS = 64  # of merged tuples that the twin keeps


@dataclass(frozen=True, eq=False)
class LatticeColumn:
    """One quasi-identifier: the code of each tuple; by place its blocks and its costs by code."""

    codes: NDArray[np.int32]
    blocks: tuple[NDArray[np.int32], ...]
    costs: tuple[Ints, ...] = ()
    cap: int = 0


@dataclass(frozen=True, eq=False)
class NodeProblem:
    """What a node must satisfy.

    Attributes:
        columns: the quasi-identifiers.
        rows, sizes: rows and people of each tuple.
        sensitive: the sensitive counts by tuple that the rules look at.
        rules: every class that is kept must pass all of them.
        least: classes with fewer people are small.
        by_size: suppress the small classes, and no others; otherwise suppress every class that fails a rule.
        star: the suppressed rows are published as a class of their own, which must pass too.
        limit: rows that may be suppressed.
    """

    columns: tuple[LatticeColumn, ...]
    rows: Ints
    sizes: Ints
    sensitive: dict[str, ValueCounts]
    rules: tuple[Rule, ...]
    least: int
    by_size: bool
    star: bool
    limit: int


class Check(NamedTuple):
    """What was found at a node. Sums by column are empty where the columns have no costs.

    Attributes:
        feasible: the node may be published.
        suppressed: rows suppressed here.
        lost: rows that every feasible refinement of this node, itself included, suppresses at least.
        extra: by column, what suppression adds to the cost of the node.
        excess: by column, what suppression adds at least to the cost of every feasible refinement.
        classes: classes that are kept.
        squares: sum of their squared rows (where the columns have no costs).

    Where `lost` exceeds the limit, nothing but `feasible` (false) and `lost` can be relied on.
    """

    feasible: bool
    suppressed: int
    lost: int
    extra: tuple[int, ...]
    excess: tuple[int, ...]
    classes: int
    squares: int


class Checks(Protocol):
    """Anything that can check a node, given as one place per column.

    `kills`: wherever a class fails, some row is lost in every refinement.
    """

    kills: bool

    def check(self, places: tuple[int, ...]) -> Check:
        """What happens to the rows at a node, given by the place of each column's level."""
        ...


class ClassFates(NamedTuple):
    """The fate of each class of a node: is it suppressed, and how many rows must be lost below it?"""

    suppressed: NDArray[np.bool_]
    lost: Ints
    passes: bool


class Checker:
    """The numpy twin of the compiled kernel."""

    kills = True

    def __init__(self, problem: NodeProblem) -> None:
        self.problem = problem
        sizes = [rule.k for rule in problem.rules if isinstance(rule, SizeAtLeast)]
        self._least = problem.least if problem.by_size else max(sizes, default=1)  # people of a class
        # snapshots are taken at the levels of the columns with the most values: they shrink most
        by_size = sorted(range(len(problem.columns)), key=lambda c: -len(problem.columns[c].blocks[0]))
        self._head = frozenset(by_size[: (len(by_size) + 2) // 3])
        self._snapshots: dict[tuple[int, ...], NodeProblem] = {}

    def check(self, places: tuple[int, ...]) -> Check:
        """Check the node at these places."""
        problem = self._snapshot(places)
        keys = [
            column.blocks[place][column.codes] for column, place in zip(problem.columns, places, strict=True)
        ]
        group, n_groups, first = _group(keys, len(problem.rows))
        classes = _merged(problem, group, n_groups)
        return summarise_node(problem, places, first, classes.rows, self._outcome(classes))

    def _snapshot(self, places: tuple[int, ...]) -> NodeProblem:
        """The tuples merged at the levels of the head columns: checks start from the few that are left."""
        key = tuple(place for c, place in enumerate(places) if c in self._head)
        if key not in self._snapshots:
            if len(self._snapshots) >= SNAPSHOTS:
                self._snapshots.clear()
            columns = self.problem.columns
            keys = [
                c.blocks[places[i]][c.codes] if i in self._head else c.codes for i, c in enumerate(columns)
            ]
            group, n_groups, first = _group(keys, len(self.problem.rows))
            merged = _merged(self.problem, group, n_groups)
            self._snapshots[key] = replace(
                self.problem,
                columns=tuple(replace(column, codes=column.codes[first]) for column in columns),
                rows=merged.rows,
                sizes=merged.sizes,
                sensitive=dict(merged.sensitive),
            )
        return self._snapshots[key]

    def _outcome(self, classes: Classes) -> ClassFates:
        problem = self.problem
        passes = np.ones(classes.n, dtype=bool)
        lost = np.zeros(classes.n, dtype=np.int64)
        for rule in problem.rules:
            ok, least = decide_classes(rule, classes)
            passes &= ok
            lost = np.maximum(lost, least)
        lost = np.where((lost > 0) & (classes.rows - lost < self._least), classes.rows, lost)
        suppressed = ~passes
        if problem.by_size:
            suppressed = classes.sizes < problem.least
            lost = np.where(suppressed, classes.rows, lost)
        kept_pass = bool(passes[~suppressed].all())
        if problem.star and kept_pass and suppressed.any():
            star = _class_union(classes, suppressed)
            kept_pass = all(bool(decide_classes(rule, star)[0][0]) for rule in problem.rules)
        return ClassFates(suppressed, lost, kept_pass)


def _group(keys: list[NDArray[np.int32]], n: int) -> tuple[Ints, int, Ints]:
    """Tuples with equal keys together: the group of each tuple, the number of groups, and a tuple of each."""
    key, size = np.zeros(n, dtype=np.int64), 1
    for part in keys:
        radix = int(part.max(initial=0)) + 1
        if radix == 1:
            continue
        if size * radix > 2**40:
            key, size = dense_numbers(key, size)
        key = key * radix + part
        size *= radix
    group, n_groups = dense_numbers(key, size)
    first = np.zeros(n_groups, dtype=np.int64)
    first[group] = np.arange(n)
    return group, n_groups, first


def _merged(problem: NodeProblem, group: Ints, n_groups: int) -> Classes:
    """The groups of a problem's tuples as classes."""
    rows = _sums(group, problem.rows, n_groups)
    sizes = rows if problem.sizes is problem.rows else _sums(group, problem.sizes, n_groups)
    sensitive = {
        name: ValueCounts.collect(
            vc.values, n_groups, group[vc.owner], vc.codes.astype(np.int64), vc.counts, vc.ordered
        )
        for name, vc in problem.sensitive.items()
    }
    return Classes(sizes, rows, sensitive)


def _class_union(classes: Classes, chosen: NDArray[np.bool_]) -> Classes:
    """The chosen classes as one (people add up)."""
    parts = {}
    for name, vc in classes.sensitive.items():
        entry = chosen[vc.owner]
        codes = vc.codes[entry].astype(np.int64)
        parts[name] = ValueCounts.collect(
            vc.values, 1, np.zeros(len(codes), np.int64), codes, vc.counts[entry]
        )
    return Classes(classes.sizes[chosen].sum(keepdims=True), classes.rows[chosen].sum(keepdims=True), parts)


def summarise_node(
    problem: NodeProblem, places: tuple[int, ...], first: Ints, rows: Ints, outcome: ClassFates
) -> Check:
    """Add up what happens to the classes of a node."""
    gone, lost = outcome.suppressed, outcome.lost
    suppressed, total_lost = int(rows[gone].sum()), int(lost.sum())
    kept = rows[~gone]
    feasible = outcome.passes and suppressed <= problem.limit and len(kept) > 0
    extra, excess = [], []
    for column, place in zip(problem.columns, places, strict=True):
        if not column.costs:
            continue
        left = column.cap - column.costs[place][column.codes[first]]
        extra.append(int((rows[gone] * left[gone]).sum()))
        excess.append(int((lost * left).sum()))
    return Check(
        feasible, suppressed, total_lost, tuple(extra), tuple(excess), len(kept),
        0 if problem.columns[0].costs else exact_dot(kept, kept),
    )  # fmt: skip


def _sums(group: Ints, weights: Ints, n_groups: int) -> Ints:
    out = np.zeros(n_groups, dtype=np.int64)
    np.add.at(out, group, weights)
    return out


def rows_by_code(codes: NDArray[np.int32], rows: Ints, widths: tuple[int, ...]) -> list[Ints]:
    """Rows by code for each column (one row of `codes`), the codes of column a being below `widths[a]`."""
    from maskwright.kernels import compiled

    rows = np.ascontiguousarray(rows, dtype=np.int64)
    if compiled.kernel_available():
        return compiled.code_marginals(codes, rows, widths)
    counts = (np.bincount(c, weights=rows, minlength=n) for c, n in zip(codes, widths, strict=True))
    return [np.asarray(c, dtype=np.int64) for c in counts]  # exact: tables stay far below 2^53 rows


def node_checker(problem: NodeProblem) -> Checks:
    """The compiled kernel where it is installed and can take the problem, else its numpy twin."""
    from maskwright.kernels import compiled

    return compiled.CompiledChecker(problem) if compiled.can_take(problem) else Checker(problem)
