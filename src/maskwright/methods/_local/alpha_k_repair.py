"""Rows that children give back to a remainder which fails the models, decided on histograms alone.

Whether a group passes depends on how many rows of each *kind* (combination of sensitive values) it holds, so that
the kinds to be moved are settled first. Which rows of a kind move is drawn later, and only where it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.rules import DistinctAtLeast, ShareAtMost, SizeAtLeast
from maskwright.domain.summary import Joint, Summary
from maskwright.methods._lattice.node_evaluation import rules_of
from maskwright.methods._rows.group_requirement import GroupRequirement

Histogram = list[int]  # rows of each kind
Passes = Callable[[Histogram], bool]


def rows_given_back(
    children: list[Histogram], remainder: Histogram, passes: Passes, alike: list[int] | None = None
) -> list[Histogram] | None:
    """Rows to be moved from each child, by kind, so that the remainder passes; None: no rows help.

    The largest child gives first, as long as it stays valid. First choice is a kind with which the remainder passes,
    then the one that it has least of. `alike`: kinds with the same number are the same to every model.
    """
    alike = alike or list(range(len(remainder)))
    given = [[0] * len(remainder) for _ in children]
    remainder = remainder.copy()
    for c in sorted(range(len(children)), key=lambda c: (-sum(children[c]), c)):
        child = children[c].copy()
        while (kind := _spared(child, remainder, passes, alike)) is not None:
            child[kind] -= 1
            remainder[kind] += 1
            given[c][kind] += 1
            if passes(remainder):
                return given
    return None


def _spared(child: Histogram, remainder: Histogram, passes: Passes, alike: list[int]) -> int | None:
    """The kind of the row that the child gives next."""
    if sum(child) <= 1:
        return None
    kinds = [kind for kind, rows in enumerate(child) if rows]
    examples = {alike[kind]: kind for kind in kinds}
    spared = {a for a, kind in examples.items() if _passes_with(child, kind, -1, passes)}
    if not spared:
        return None
    helps = {a: _passes_with(remainder, examples[a], 1, passes) for a in spared}
    return min(
        (not helps[alike[kind]], remainder[kind], kind) for kind in kinds if alike[kind] in spared
    )[2]  # fmt: skip


def _passes_with(histogram: Histogram, kind: int, change: int, passes: Passes) -> bool:
    """Would the group pass with so many rows of a kind more? The histogram is left as it was."""
    histogram[kind] += change
    result = passes(histogram)
    histogram[kind] -= change
    return result


class Kinds:
    """The combinations of sensitive values that occur, numbered, and the models as tests of histograms over them."""

    def __init__(self, summary: Summary, joint: Joint, requirement: GroupRequirement) -> None:
        self.summary, self.requirement = summary, requirement
        _, example, of_cell = np.unique(joint.values, axis=1, return_index=True, return_inverse=True)
        self.of_cell: Ints = of_cell.reshape(-1).astype(np.int64)
        self.example: NDArray[np.int64] = example  # a cell of each kind
        self.codes = dict(zip(summary.sensitive, joint.values[:, example].tolist(), strict=True))
        self.n = len(example)
        self.known: dict[tuple[int, ...], bool] = {}
        self.alike = list(range(self.n))
        self.tests = self._counting()

    def passes(self, histogram: Histogram) -> bool:
        """Does a group with so many rows of each kind satisfy the models?"""
        if self.tests is not None:
            for test in self.tests:  # noqa: SIM110 - twice as fast as all(), and called a million times
                if not test(histogram):
                    return False
            return True
        key = tuple(histogram)
        if key not in self.known:
            there = np.flatnonzero(histogram)
            rows = np.array(histogram, dtype=np.int64)[there]
            one = self.summary.cell_classes(
                self.example[there], np.zeros(len(there), dtype=np.int64), rows, 1
            )
            self.known[key] = bool(self.requirement.decide(one)[0])
        return self.known[key]

    def _counting(self) -> list[Passes] | None:
        """Tests of rules that only count, without arrays; None where a model is something else."""
        rules = rules_of(self.requirement.models, self.requirement.context)
        if rules is None:
            return None
        tests: list[Passes] = []
        named: list[list[int]] = []  # kinds in the same of these sets are the same to every rule
        for rule in rules:
            if isinstance(rule, SizeAtLeast):
                tests.append(_at_least(rule.k))
            elif isinstance(rule, DistinctAtLeast):
                sets = self._with_codes(rule.attribute, None)
                named += sets
                tests.append(_distinct(sets, rule.l))
            elif isinstance(rule, ShareAtMost):
                sets = self._with_codes(rule.attribute, rule.sets)
                named += sets
                tests.append(_share(sets, rule.share.numerator, rule.share.denominator))
            else:
                return None
        roles = [tuple(kind in kinds for kinds in named) for kind in range(self.n)]
        self.alike = [roles.index(role) for role in roles]
        return tests

    def _with_codes(self, attribute: str, sets: tuple[tuple[int, ...], ...] | None) -> list[list[int]]:
        """For each set of codes the kinds that count for it; None: each code but missing is a set."""
        codes = self.codes[attribute]
        wanted = sets if sets is not None else tuple((code,) for code in sorted(set(codes) - {0}))
        return [[kind for kind, code in enumerate(codes) if code in members] for members in wanted]


def _at_least(k: int) -> Passes:
    return lambda histogram: sum(histogram) >= k


def _distinct(sets: list[list[int]], l: int) -> Passes:  # noqa: E741
    return lambda histogram: sum(any(histogram[kind] for kind in kinds) for kinds in sets) >= l


def _share(sets: list[list[int]], numerator: int, denominator: int) -> Passes:
    if len(sets) > 1 and all(len(kinds) == 1 for kinds in sets):  # every value by itself
        alone = itemgetter(*(kinds[0] for kinds in sets))
        return lambda histogram: max(alone(histogram)) * denominator <= sum(histogram) * numerator

    def _test(histogram: Histogram) -> bool:
        most = max((sum(histogram[kind] for kind in kinds) for kinds in sets), default=0)
        return most * denominator <= sum(histogram) * numerator

    return _test
