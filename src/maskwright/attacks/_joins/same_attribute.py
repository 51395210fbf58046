"""One sensitive attribute in several tables with different groups: every class narrows down what is possible.

People in the same class of every table are a *cell*. Classes that share people form *components*, which say nothing
about each other. A component that is small enough is counted exactly; in a large one the beliefs are fitted to all
margins at once (iterative proportional fitting), which is exact in the limit of large classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._joins.people import JoinedCells
from maskwright.domain.classes import Ints, ValueCounts
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.statements.joined_releases import ClassedRelease, joint_of_same_attribute

STEPS = 20_000  # of the exact count, for one component
ALL_STEPS = 400_000  # and for all of them
MOST_PEOPLE = 60
ROUNDS, CLOSE = 2000, 1e-10
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ValueBeliefs:
    """`of[cell, code]`: the belief that somebody in a cell has a value; `exact` says of which cells it is exact."""

    of: Floats
    exact: NDArray[np.bool_]
    fractions: dict[int, dict[int, Fraction]]  # cell → code → the belief as a fraction, where it is exact


def joined_beliefs(cells: JoinedCells, counts: Sequence[ValueCounts]) -> ValueBeliefs:
    """The beliefs about everybody, from the published values of each class of each table."""
    n, width = len(cells.sizes), len(counts[0].values) + 1
    dense = [_dense(c, width) for c in counts]
    sizes = np.array([float(s) for s in cells.sizes])
    of = np.zeros((n, width))
    exact = np.zeros(n, dtype=bool)
    fractions: dict[int, dict[int, Fraction]] = {}
    left = ALL_STEPS
    for members in _components(cells.classes):
        found = _counted(cells, dense, members, min(STEPS, left)) if cells.whole and left > 0 else None
        if found is None:
            left -= STEPS if len(members) > 1 else 0
            continue
        for cell, shares in found.items():
            exact[cell] = True
            fractions[cell] = dict(shares)
            for code, share in shares.items():
                of[cell, code] = float(share)
    rest = np.flatnonzero(~exact)
    if len(rest):
        of[rest] = _fitted(sizes[rest], cells.classes[:, rest], dense)
    return ValueBeliefs(of, exact, fractions)


def _dense(counts: ValueCounts, width: int) -> Ints:
    table = np.zeros((counts.n_classes, width), dtype=np.int64)
    table[counts.owner, counts.codes] = counts.counts
    return table


def _components(classes: Ints) -> list[list[int]]:
    """Cells that hang together through classes that they share."""
    owner: dict[tuple[int, int], int] = {}
    parent = list(range(classes.shape[1]))

    def _root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for cell in range(classes.shape[1]):
        for table, group in enumerate(classes[:, cell].tolist()):
            if group >= 0:
                other = owner.setdefault((table, group), cell)
                parent[_root(cell)] = _root(other)
    found: dict[int, list[int]] = {}
    for cell in range(classes.shape[1]):
        found.setdefault(_root(cell), []).append(cell)
    return list(found.values())


def _counted(
    cells: JoinedCells, dense: Sequence[Ints], members: list[int], limit: int
) -> dict[int, dict[int, Fraction]] | None:
    """The exact beliefs in one component; None where it is too large, or somebody was left out of a table."""
    classes = cells.classes[:, members]
    people = int(sum(cells.sizes[c] for c in members))
    if (classes < 0).any() or people > MOST_PEOPLE:
        return None
    numbers, start = {}, 0
    for c in members:
        numbers[c] = range(start, start + int(cells.sizes[c]))
        start += int(cells.sizes[c])
    releases = []
    for table, counts in enumerate(dense):
        groups = sorted(set(classes[table].tolist()))
        rows = [[i for c in members if cells.classes[table, c] == g for i in numbers[c]] for g in groups]
        values = [np.repeat(np.arange(counts.shape[1]), counts[g]).tolist() for g in groups]
        releases.append(ClassedRelease(rows, values))
    result: dict[int, dict[int, Fraction]] = {}
    try:
        for c in members:
            found = joint_of_same_attribute(releases, numbers[c][0], limit)
            if found is None:
                return None
            result[c] = dict(found)
    except TooManyWorlds:
        return None
    return result


def _fitted(sizes: Floats, classes: Ints, dense: Sequence[Ints]) -> Floats:
    """Beliefs that agree with the values of every class, and are otherwise as even as can be."""
    table = np.ones((len(sizes), dense[0].shape[1])) * sizes[:, None]
    tables = [(counts.astype(np.float64), groups) for counts, groups in zip(dense, classes, strict=True)]
    for counts, groups in tables:
        inside = groups >= 0
        table[inside] *= counts[groups[inside]] > 0
    for _ in range(ROUNDS):
        before = table.copy()
        for counts, groups in tables:
            inside = np.flatnonzero(groups >= 0)
            total = np.zeros_like(counts)
            np.add.at(total, groups[inside], table[inside])
            ratio = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
            table[inside] *= ratio[groups[inside]]
        row = table.sum(axis=1)
        table *= np.divide(sizes, row, out=np.zeros_like(sizes), where=row > 0)[:, None]
        if np.abs(table - before).max(initial=0.0) <= CLOSE * max(1.0, float(sizes.max(initial=1.0))):
            break
    return np.divide(table, sizes[:, None], out=np.zeros_like(table), where=sizes[:, None] > 0)
