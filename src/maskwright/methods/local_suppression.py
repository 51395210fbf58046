"""Local suppression: values are published as they are or as `*`, cell by cell, with as few suppressed as can be.

That is local recoding with two levels for each column. The fewest cells, weighted by column, are hard to find
[Meyerson, Williams 2004]: small tables are solved exactly, by the best way to divide their rows; larger ones by the
clustering of `local_recoding.py`. A class is everybody with the same cells, `*` among them: unlike in tools that let a
missing value match every other, k people share each row as it is published.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import lcm
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from maskwright.domain.grouping import Grouping
from maskwright.domain.hierarchy import TOP
from maskwright.domain.method import Decisions, Method, RowShare, Task
from maskwright.domain.model import fewest_rows
from maskwright.errors import PolicyNotMet
from maskwright.methods._rows.group_requirement import refuse_guards, refuse_unless_met
from maskwright.methods._rows.rows import Partition, Rows, to_grouping
from maskwright.methods.local_recoding import LocalRecoding

MOST_EXACT = 12  # rows of a table whose divisions are all compared


class LocalSuppression(Method):
    """Suppresses as few cells as possible, weighted by column, until the requirements hold.

    Attributes:
        suppression: the share of rows that may be left out altogether, where that lowers the loss.
        neighbours: how many of the nearest tuples are looked at for each; more is slower and better.
        rounds: how many times, at most, a better group is tried for each tuple.
    """

    name: ClassVar[str] = "local-suppression"
    proven_settings: ClassVar[frozenset[str]] = frozenset({"suppression", "neighbours", "rounds"})

    suppression: RowShare = Field(default=0, validate_default=True)
    neighbours: int = Field(default=32, ge=1, le=1000)
    rounds: int = Field(default=8, ge=0, le=1000)

    def decisions(self) -> Decisions:
        """Blind without models of values; groups are recoded class by class, the same tuples always alike."""
        return Decisions(blind=True, shape="local", by_tuples=True)

    def most_left_out(self, task: Task) -> int | None:
        """The rows that may be suppressed."""
        return int(self.suppression * task.summary.n_rows)

    def group(self, task: Task) -> Grouping:
        """The best division of a small table's rows; of a large one what local recoding finds with two levels."""
        refuse_guards(task, self.name)
        task = replace(
            task, levels={h.attribute: _two_levels(task, h.attribute, h.top) for h in task.summary.attributes}
        )
        found = self._exact(task)
        if found is None:
            inner = LocalRecoding(
                suppression=self.suppression,
                neighbours=self.neighbours,
                rounds=self.rounds,
                full_domain=False,
            )
            found = inner.group(task)
        return replace(found, search={**found.search, "suppressed_cells": suppressed_cells(found)})

    def _exact(self, task: Task) -> Grouping | None:
        """Of all divisions of few rows the best; None: there are too many, or more is asked than size."""
        n = task.summary.n_rows
        sized = all(
            m.about != "sensitive" and m.kernel(task.context) is not None and not m.needs()
            for m in task.search
        )
        single = task.summary.joint is not None and not task.own
        if not 0 < n <= MOST_EXACT or self.suppression or not sized or not single:
            return None
        k = max(1, fewest_rows(task.search, task.context))
        if k > n:
            raise PolicyNotMet(f"the table has {n} rows, and every class must have {k}")
        rows = Rows.expand(task, self.name)
        by_tuple = np.argsort(rows.tuples, kind="stable")  # which rows of a tuple come first is random
        cells = _finest_cells(task)[:, rows.tuples[by_tuple]]
        weights = [Fraction(task.weights.get(h.attribute, 1)) for h in task.summary.attributes]
        groups = best_division(cells.T.tolist(), weights, k)
        order = by_tuple[[row for group in groups for row in group]].astype(np.int32)
        start = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
        made = to_grouping(
            task, rows, Partition(order, start), "hierarchy", {"strategy": "every division compared"}
        )
        refuse_unless_met(task, made.classes, self.name)
        return made


def _finest_cells(task: Task) -> NDArray[np.int32]:
    """What each tuple is published with where nothing is suppressed, column by column."""
    found = []
    for hierarchy, codes in zip(task.summary.attributes, task.summary.codes, strict=True):
        found.append(hierarchy.levels[task.levels[hierarchy.attribute][0]].blocks[codes])
    return np.stack(found)


def _two_levels(task: Task, attribute: str, top: int) -> list[int]:
    """The finest level that is allowed, and `*`."""
    return sorted({min(task.levels.get(attribute, (0,))), top})


def best_division(rows: list[list[int]], weights: list[Fraction], k: int) -> list[list[int]]:
    """The rows in groups of at least k, so that the cells that differ within a group weigh least in all.

    Groups of 2k rows or more need not be looked at: two parts of them lose no more.
    """
    n, unit = len(rows), lcm(*(w.denominator for w in weights))
    prices = [int(w * unit) for w in weights]
    best: dict[int, tuple[int, int]] = {0: (0, 0)}
    cost = {}
    for size in range(k, min(n, 2 * k - 1) + 1):
        for group in combinations(range(n), size):
            differ = [w for a, w in enumerate(prices) if len({rows[i][a] for i in group}) > 1]
            cost[sum(1 << i for i in group)] = size * sum(differ)
    by_lowest: list[list[int]] = [[] for _ in range(n)]
    for group_mask in cost:
        by_lowest[(group_mask & -group_mask).bit_length() - 1].append(group_mask)
    for mask in range(1, 1 << n):
        lowest = (mask & -mask).bit_length() - 1
        options = [
            (cost[g] + best[mask ^ g][0], g) for g in by_lowest[lowest] if g & mask == g and mask ^ g in best
        ]
        if options:
            best[mask] = min(options)
    mask, groups = (1 << n) - 1, []
    while mask:
        group_mask = best[mask][1]
        groups.append([i for i in range(n) if group_mask >> i & 1])
        mask ^= group_mask
    return groups


def suppressed_cells(grouping: Grouping) -> dict[str, Any]:
    """How many published cells of each column are `*`."""
    rows = grouping.classes.rows
    stars = {
        x.attribute: np.array([t == TOP for t in x.texts], dtype=bool)[x.of_group] for x in grouping.labels
    }
    return {name: int(rows[starred].sum()) for name, starred in stars.items()}
