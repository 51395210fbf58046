"""Nodes of a lattice that is listed as a whole, each checked at most once; what `samarati` and `incognito` share.

Binary search on height, and Incognito's candidates, are exact only where satisfaction is *upward closed*. Let
node n coarsen node m, so that the classes of n are unions of classes of m.

* Nothing may be suppressed: all classes of m satisfy. Merge-safe models then hold at n.
* Small classes are suppressed and only sizes matter: the parts of a small class are small, so that n suppresses
  a subset of what m does.
* Failing classes are suppressed and every model is hereditary: the same, with failing for small.

Otherwise it is not [Truta, Vinay 2006, corrected]: rows a:v, a:w, b:v, c:v with k = p = 2 and two rows to
suppress satisfy p-sensitive k-anonymity as they are (b and c go) but not after b and c have been merged. Starred
rows are a class of their own, which shrinks further up and may fail there.

The number of classes is bounded by two necessary conditions of p-sensitivity, from the frequencies alone [Truta, Vinay
2006]. Condition 1: p is at most `max_p`. Condition 2: there are at most `max_groups` classes. Suppression can only
lower both quantities, so they may be computed once, on the initial table. With one attribute, the smaller of
`max_groups` and rows/k can be attained; with several it is only necessary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, cmp_to_key
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Task
from maskwright.domain.model import Model
from maskwright.errors import MaskwrightError, PolicyError
from maskwright.kernels.node_check import Check, Checks, NodeProblem
from maskwright.methods._lattice import infeasibility
from maskwright.methods._lattice.lattice import Lattice, Node
from maskwright.methods._lattice.node_evaluation import Evaluator
from maskwright.methods._lattice.objectives import Bounds, Vector, build_objective
from maskwright.methods.optimal_lattice import OptimalLattice


def upward_closed(task: Task, problem: NodeProblem) -> tuple[bool, str]:
    """Is satisfaction upward closed, provably? With the reason in words."""
    if task.summary.shared is not None and not all(_counts_people(task, m) for m in task.search):
        return (
            False,
            "some people have rows in several classes, so merging classes can break a requirement",
        )
    if problem.limit == 0:
        unsafe = [m.name for m in task.search if not m.merge_safe]
        if unsafe:
            return False, f"merging classes that satisfy {unsafe[0]} can give one that does not"
        return (
            True,
            "nothing may be suppressed, and merging classes that satisfy the policy keeps it satisfied",
        )
    if problem.star:
        return (
            False,
            "the starred rows must satisfy the policy too, and may not where there are fewer of them",
        )
    if problem.by_size:
        other = [m.name for m in task.search if not _only_sizes(task, m)]
        if other:
            return (
                False,
                f"rows that are suppressed at one node can form a class that fails {other[0]} above it",
            )
        return True, "only classes smaller than k are suppressed: coarser nodes suppress no other rows"
    fragile = [m.name for m in task.search if not (m.hereditary and m.is_local())]
    if fragile:
        return False, f"a class can fail {fragile[0]} although a part of it satisfies it"
    return True, "parts of a failing class fail too: coarser nodes suppress no other rows"


def _counts_people(task: Task, model: Model) -> bool:
    """Is the model monotone even where the people of two classes do not add up?"""
    rules = model.kernel(task.context)
    return rules is not None and all(rule.adds_up for rule in rules)


def _only_sizes(task: Task, model: Model) -> bool:
    """Does every class that is large enough satisfy the model?"""
    rules = model.kernel(task.context)
    return rules is not None and all(
        rule.looks_at is None or (rule.adds_up and _one_value(task, rule.looks_at, rule.different))
        for rule in rules
    )


def _one_value(task: Task, attribute: str, different: int | None) -> bool:
    """One value is asked for, and nobody's is missing."""
    complete = task.summary.shared is None and bool((task.summary.sensitive[attribute].codes > 0).all())
    return different is not None and different <= 1 and complete


def most_groups(task: Task) -> int | None:
    """The most classes that a satisfying node can have, by the conditions of p-sensitivity; None: no bound.

    0 means that no node satisfies (condition 1). Of a distinct l-diversity requirement it holds as well.
    """
    if task.summary.shared is not None:  # one person can serve several classes
        return None
    rules = (rule for model in task.search for rule in model.kernel(task.context) or ())
    bounds = []
    for rule in rules:
        if rule.adds_up and rule.looks_at is not None and rule.different is not None:
            frequencies = [f for f in task.summary.sensitive[rule.looks_at].totals[1:].tolist() if f]
            bounds.append(max_groups([frequencies], rule.different))
    return min((bound for bound in bounds if bound is not None), default=None)


def max_p(frequencies: Sequence[Sequence[int]]) -> int:
    """The fewest different values over the attributes; `frequencies[a]` are the counts of attribute a's values."""
    return min((sum(1 for f in counts if f > 0) for counts in frequencies), default=0)


def max_groups(frequencies: Sequence[Sequence[int]], p: int) -> int | None:
    """The most classes that can each hold p different values of every attribute; None: no bound.

    A class has i values outside the p − i most frequent ones, at least; so g classes use up g·i of the rows
    that do not hold those.
    """
    if p <= 1:
        return None
    if p > max_p(frequencies):
        return 0
    bounds = []
    for counts in frequencies:
        cumulated = list(accumulate(sorted(counts, reverse=True)))
        bounds += [(cumulated[-1] - cumulated[p - i - 1]) // i for i in range(1, p)]
    return min(bounds)


LISTED = 2_000_000  # the largest lattice that is listed as a whole
FAR = np.int64(1 << 40)


class CheckedNode(NamedTuple):
    """What is known of a node. `hopeless`: neither it nor any refinement of it satisfies the policy."""

    satisfies: bool
    hopeless: bool
    check: Check | None  # None: a necessary condition failed, so that it was not checked


@dataclass(frozen=True)
class MinimalNode:
    """A node that satisfies the policy while none below it does.

    Attributes:
        levels: the level number of each quasi-identifier, and `names` their names.
        height: how far the node is above the untouched table.
        suppressed: rows suppressed there.
        score: what the objective makes of it.
    """

    levels: Node
    names: dict[str, str]
    height: int
    suppressed: int
    score: Fraction | float


class Nodes:
    """All nodes of a task's lattice. Nodes are told apart by their numbers (see `Lattice`)."""

    def __init__(
        self,
        task: Task,
        method: OptimalLattice,
        conditions: bool = True,
        objective: str = "",
        least: int | None = None,
    ) -> None:
        self.task = task
        self.lattice = Lattice.of(task.summary.attributes, task.levels)
        if self.lattice.n_nodes > LISTED:
            raise PolicyError(
                f"the lattice has {self.lattice.n_nodes:,} nodes, too many to list (at most {LISTED:,}); "
                "use optimal-lattice with budget_s, or allow fewer levels"
            )
        self.objective = build_objective(
            objective or method.objective, self.lattice, task.summary, task.weights
        )
        self.problem = method.problem(task, self.lattice, self.objective)
        if least is not None:  # classes that are small by models that are not part of this task
            self.problem = replace(self.problem, least=least)
        self.bounds = Bounds(self.objective, self.lattice, self.problem.least, task.summary)
        self.upward, self.why = upward_closed(task, self.problem)
        self.most_groups = most_groups(task) if conditions else None
        self.checked = self.by_size = self.by_condition = 0
        self._checks = method.checks(task, self.lattice, self.problem)
        self._sizes = self._size_checks(method)
        self._seen: dict[int, CheckedNode] = {}

    def _size_checks(self, method: OptimalLattice) -> Checks | None:
        """Checks that count classes only, where the number of classes can rule a node out.

        There are never more than people/k classes of k people, so that larger bounds on their number say nothing.
        """
        if self.most_groups is None or self.most_groups >= self.task.summary.n_people // self.least:
            return None
        columns = tuple(replace(column, costs=(), cap=0) for column in self.problem.columns)
        sizes = replace(
            self.problem, columns=columns, sensitive={}, rules=(), least=self.least, by_size=True, star=False
        )
        return method.checks(replace(self.task, search=[]), self.lattice, sizes)

    @cached_property
    def least(self) -> int:
        """Smaller classes are never published."""
        rules = (rule for model in self.task.search for rule in model.kernel(self.task.context) or ())
        least = max((rule.size for rule in rules), default=1)
        return max(least, self.problem.least) if self.problem.by_size else least

    def look(self, number: int) -> CheckedNode:
        """Check a node, unless that has been done or a necessary condition says that it cannot satisfy."""
        if number not in self._seen:
            self.task.progress.check()
            self._seen[number] = self._rule_out(number) or self._check(number)
        return self._seen[number]

    def hopeless(self, number: int) -> bool:
        """Does neither the node satisfy nor any refinement of it, as far as is known?"""
        seen = self.look(number)
        if seen.check is None and not seen.hopeless:
            seen = self._seen[number] = self._check(number)
        return seen.hopeless

    def _check(self, number: int) -> CheckedNode:
        self.checked += 1
        check = self._checks.check(self.lattice.places_of(number))
        hopeless = check.lost > self.problem.limit or (self.upward and not check.feasible)
        return CheckedNode(check.feasible, hopeless, check)

    def _rule_out(self, number: int) -> CheckedNode | None:
        """Rule a node out by the sizes of its classes, or by condition 2, if they suffice.

        Of the classes of at least k people, all those beyond `most_groups` must be suppressed as a whole, here and
        in every refinement. Suppression by size does not do that here, whatever the limit.
        """
        if self._sizes is None or self.most_groups is None:
            return None
        sizes = self._sizes.check(self.lattice.places_of(number))
        if sizes.lost > self.problem.limit:
            self.by_size += 1
            return CheckedNode(False, True, None)
        excess = max(0, sizes.classes - self.most_groups)
        hopeless = sizes.suppressed + excess * self.least > self.problem.limit
        if hopeless or (excess and self.problem.by_size):
            self.by_condition += 1
            return CheckedNode(False, hopeless, None)
        return None

    def satisfies(self, number: int) -> bool:
        """Whether a node satisfies the policy."""
        return self.look(number).satisfies

    def impossible(self) -> MaskwrightError | None:
        """The refusal when condition 1 fails: some column has fewer values than every class must show."""
        if self.most_groups != 0:
            return None
        return infeasibility.no_node_error(
            self.task, Evaluator(self.task, self.problem, self.lattice.allowed), self.lattice
        )

    @cached_property
    def heights(self) -> Ints:
        """By number, the sum of the longest paths from the ground to the levels."""
        total = np.zeros(1, dtype=np.int64)
        for hierarchy, levels in zip(self.lattice.attributes, self.lattice.allowed, strict=True):
            total = np.add.outer(total, hierarchy.heights[list(levels)]).reshape(-1)
        return total

    @cached_property
    def steps(self) -> Ints:
        """By number, how much higher the lowest of its immediate coarsenings is."""
        least = np.full(1, FAR)
        for a, levels in enumerate(self.lattice.allowed):
            heights = self.lattice.attributes[a].heights[list(levels)]
            climb = [
                min((heights[q] - heights[p] for q in up), default=FAR)
                for p, up in enumerate(self.lattice.coarser[a])
            ]
            least = np.minimum.outer(least, np.array(climb, dtype=np.int64)).reshape(-1)
        return least

    @cached_property
    def possible(self) -> NDArray[np.float64]:
        """By number, how many classes there could be: nodes with few are likely to satisfy."""
        total = np.ones(1)
        for labels in self.bounds.blocks:
            total = np.multiply.outer(total, np.array(labels, dtype=np.float64)).reshape(-1)
        return total

    def mark(self, state: NDArray[np.uint8], number: int, value: int, up: bool) -> None:
        """Set `state` at a node and at all nodes above it (`up`) or below it."""
        sides = self._above if up else self._below
        chosen = [sides[a][p] for a, p in enumerate(self.lattice.places_of(number))]
        state.reshape(self.lattice.shape)[np.ix_(*chosen)] = value

    @cached_property
    def _above(self) -> list[list[Ints]]:
        """Per attribute and place, the places that coarsen it, itself included."""
        return [_true_columns(h.refines[np.ix_(levels, levels)]) for h, levels in self._attributes()]

    @cached_property
    def _below(self) -> list[list[Ints]]:
        return [_true_columns(h.refines[np.ix_(levels, levels)].T) for h, levels in self._attributes()]

    def _attributes(self) -> list[tuple[Hierarchy, list[int]]]:
        return list(zip(self.lattice.attributes, map(list, self.lattice.allowed), strict=True))

    def vector(self, number: int) -> Vector:
        """The exact cost of a node that satisfies, column by column."""
        check = self.look(number).check
        assert check is not None  # noqa: S101 - only asked of nodes that satisfy
        return self.bounds.vector(self.lattice.places_of(number), check)

    def by_score(self, numbers: Sequence[int]) -> list[int]:
        """Satisfying nodes, best first; equal scores in lexicographic order of the levels."""

        def _compare(a: int, b: int) -> int:
            return self.objective.compare(self.vector(a), self.vector(b))

        return sorted(sorted(numbers), key=cmp_to_key(_compare))

    def suppressed(self, number: int) -> int:
        """The rows suppressed at a node that satisfies."""
        check = self.look(number).check
        assert check is not None  # noqa: S101
        return check.suppressed

    def describe(self, number: int) -> MinimalNode:
        """A node that satisfies with its levels, height, suppressed rows and score."""
        node = self.lattice.node(number)
        score = self.objective.score(self.vector(number))
        return MinimalNode(
            node, self.lattice.names(node), int(self.heights[number]), self.suppressed(number), score
        )


def _true_columns(order: NDArray[np.bool_]) -> list[Ints]:
    return [np.flatnonzero(row) for row in order]
