"""When every coarsening of a satisfying node satisfies too, and how many classes a satisfying node can have.

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
from itertools import accumulate

from maskwright.domain.method import Task
from maskwright.domain.model import Model
from maskwright.domain.rules import DistinctAtLeast, SizeAtLeast
from maskwright.kernels.node_check import NodeProblem


def upward_closed(task: Task, problem: NodeProblem) -> tuple[bool, str]:
    """Is satisfaction upward closed, provably? With the reason in words."""
    if task.summary.shared is not None and not all(_counts_people(task, m) for m in task.search):
        return (
            False,
            "some people have rows in several classes, so that merging classes can break a requirement",
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
        return False, "the starred rows must satisfy the policy too, and may fail to where they are fewer"
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
    return rules is not None and all(isinstance(rule, SizeAtLeast | DistinctAtLeast) for rule in rules)


def _only_sizes(task: Task, model: Model) -> bool:
    """Does every class that is large enough satisfy the model?"""
    rules = model.kernel(task.context)
    return rules is not None and all(
        isinstance(rule, SizeAtLeast) or (isinstance(rule, DistinctAtLeast) and _always(task, rule))
        for rule in rules
    )


def _always(task: Task, rule: DistinctAtLeast) -> bool:
    """One value is asked for, and nobody's is missing."""
    complete = task.summary.shared is None and bool((task.summary.sensitive[rule.attribute].codes > 0).all())
    return rule.l <= 1 and complete


def most_groups(task: Task) -> int | None:
    """The most classes that a satisfying node can have, by the conditions of p-sensitivity; None: no bound.

    0 means that no node satisfies (condition 1). Of a distinct l-diversity requirement it holds as well.
    """
    if task.summary.shared is not None:  # one person can serve several classes
        return None
    rules = (rule for model in task.search for rule in model.kernel(task.context) or ())
    bounds = []
    for rule in rules:
        if isinstance(rule, DistinctAtLeast):
            frequencies = [f for f in task.summary.sensitive[rule.attribute].totals[1:].tolist() if f]
            bounds.append(max_groups([frequencies], rule.l))
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
