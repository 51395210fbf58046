"""Several tables about the same people: who is in which class of each of them, and what the tables tell together.

Quasi-identifiers are known, so people with the same ones are alike. Where a method split them over several groups, it
is only known how many went where.

*The values of one set in different tables.* How many values a set holds can be enough to put the tables together.

Beliefs about attributes of different tables are independent, but the bits of a multi-valued column are not when it is
known that nobody's set is empty, or that none holds more than so many values (docs/attacks/intersection.md, D-2).

*Restoring the correspondence of rows*: which row of one table is about the same person as which row of another?

For whoever knows all quasi-identifiers, a row of class c is equally likely about each of its n(c) people, so two rows
of classes c and d are about the same person with probability N(c, d) / (n(c)·n(d)), where N(c, d) people are in both.

*One sensitive attribute in several tables with different groups*: every class narrows down what is possible.

People in the same class of every table are a *cell*. Classes that share people form *components*, which say nothing
about each other. A component that is small enough is counted exactly; in a large one the beliefs are fitted to all
margins at once (iterative proportional fitting), which is exact in the limit of large classes.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.adversary import Target
from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.grouping import Grouping
from maskwright.domain.summary import Summary
from maskwright.domain.value_sets import BIT_VALUES, PRESENT, SetColumn
from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.statements.joined_releases import ClassedRelease, joint_of_same_attribute

MOST_CELLS = 100_000

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JoinedPeople:
    """Distinct quasi-identifier tuples, and the rows of each that every table has in each of its groups.

    Attributes:
        sizes: people of each tuple.
        entries: per table (tuple, group, rows); group -1: not published.
    """

    sizes: Ints
    entries: tuple[tuple[Ints, Ints, Ints], ...]

    @staticmethod
    def of(targets: Sequence[Target]) -> JoinedPeople:
        """The people behind tables; refused unless all of them are about the same people."""
        first = targets[0].grouping.summary
        entries = []
        for target in targets:
            place = _tuples_of_other(first, target.grouping.summary, target.name)
            tuples, groups, rows = _added_up(target.grouping)
            entries.append((place[tuples], groups, rows))
        return JoinedPeople(first.rows, tuple(entries))

    def whole(self, tables: Sequence[int]) -> bool:
        """Whether it is known of everybody in which class of these tables they are."""
        return all(len(np.unique(self.entries[t][0])) == len(self.entries[t][0]) for t in tables)

    def cells(self, tables: Sequence[int]) -> JoinedCells:
        """The people by their classes in these tables."""
        lists = [self._by_tuple(t) for t in tables]
        if sum(math.prod(len(found[i]) for found in lists) for i in range(len(self.sizes))) > MOST_CELLS:
            raise TooManyWorlds(
                "people with equal quasi-identifiers are in too many groups to put tables together"
            )
        sizes: dict[tuple[int, ...], Fraction] = {}
        for tuple_, people in enumerate(self.sizes.tolist()):
            for chosen in itertools.product(*(found[tuple_] for found in lists)):
                key = tuple(group for group, _ in chosen)
                part = Fraction(people)
                for _, rows in chosen:
                    part *= Fraction(rows, people)
                sizes[key] = sizes.get(key, Fraction(0)) + part
        keys = sorted(sizes)
        classes = np.array(keys, dtype=np.int64).reshape(len(keys), len(tables)).T
        return JoinedCells(classes, [sizes[key] for key in keys], self.whole(tables))

    def _by_tuple(self, table: int) -> list[list[tuple[int, int]]]:
        found: list[list[tuple[int, int]]] = [[] for _ in self.sizes]
        for t, group, rows in zip(*(part.tolist() for part in self.entries[table]), strict=True):
            found[t].append((group, rows))
        return found


@dataclass(frozen=True, eq=False)
class JoinedCells:
    """People who are in the same class of every table.

    Attributes:
        classes: one row per table, one column per cell; -1: not published there.
        sizes: people in each cell; expected numbers where `whole` is false.
        whole: is it certain who is in which cell?
    """

    classes: Ints
    sizes: list[Fraction]
    whole: bool


def _added_up(grouping: Grouping) -> tuple[Ints, Ints, Ints]:
    """(tuple, group, rows) of an allocation, each pair once."""
    a = grouping.allocation
    n = grouping.classes.n + 1
    keys, inverse = np.unique(a.tuples * n + a.groups + 1, return_inverse=True)
    rows = np.bincount(inverse, weights=a.rows).astype(np.int64)
    return keys // n, keys % n - 1, rows


def _tuples_of_other(first: Summary, other: Summary, name: str) -> Ints:
    """For each tuple of a summary the number of the same tuple in the first one."""
    if first is other:
        return np.arange(first.n_tuples)
    here, there = _texts(first), _texts(other)
    if here is None or there is None or set(here) != set(there):
        raise UsageError(
            f"{name}: it is not about the same people by the same quasi-identifiers as the first table"
        )
    place = {text: i for i, text in enumerate(here)}
    result = np.array([place[text] for text in there], dtype=np.int64)
    if not np.array_equal(first.rows[result], other.rows):
        raise UsageError(f"{name}: it is not about the same people as the first table")
    return result


def _texts(summary: Summary) -> list[tuple[tuple[str, str | None], ...]] | None:
    """Every tuple as its values, by the names of the quasi-identifiers."""
    if summary.shared is not None:
        return None
    order = sorted(range(len(summary.attributes)), key=lambda a: summary.attributes[a].attribute)
    columns = []
    for a in order:
        values = (None, *summary.attributes[a].values)
        columns.append(
            [(summary.attributes[a].attribute, values[code]) for code in summary.codes[a].tolist()]
        )
    return list(zip(*columns, strict=True))


@dataclass(frozen=True)
class SetBelief:
    """The largest belief that somebody's set holds a value, and for whom."""

    share: Fraction
    alone: Fraction  # what the one table that has the value shows by itself
    bit: str
    classes: tuple[int, ...]
    exact: bool  # otherwise nobody's classes are certain, and it is an upper bound


def worst_of_sets(
    targets: Sequence[Target], crowd: JoinedPeople, column: SetColumn, least: int, most: int
) -> SetBelief | None:
    """The worst belief about a value of a column whose bits are in several of the tables.

    Beliefs are about a person whose set is known to hold at least `least` and at most `most` values; what is known of
    the sets of others is not used. None: too many kinds of people, or nothing to gain.
    """
    tables = [i for i, t in enumerate(targets) if any(b in t.grouping.summary.sensitive for b in column.bits)]
    if len(tables) < 2:
        return None
    try:
        cells = crowd.cells(tables)
    except TooManyWorlds:
        return None
    counted = [_sizes_by_class(targets[t], column) for t in tables]
    best: SetBelief | None = None
    for c in range(len(cells.sizes)):
        classes = tuple(cells.classes[:, c].tolist())
        if -1 in classes:
            continue
        parts = [counts[g] for counts, g in zip(counted, classes, strict=True)]
        for bit, share, alone in _beliefs(parts, least, most):
            if best is None or share > best.share:
                best = SetBelief(share, alone, bit, classes, cells.whole)
    return best


def _sizes_by_class(target: Target, column: SetColumn) -> list[dict[str | None, Counter[int]]]:
    """Per class: how many rows hold how many values of the column (None), and of those with a certain value."""
    grouping = target.grouping
    names = list(grouping.summary.sensitive)
    bits = [b for b in column.bits if b in names]
    cells, groups, rows = grouping.cells
    joint = grouping.summary.joint
    assert joint is not None  # noqa: S101 - there are cells
    present = BIT_VALUES.index(PRESENT) + 1
    held = np.array([joint.values[names.index(b)][cells] == present for b in bits])
    sizes = held.sum(axis=0)
    width, n = len(bits) + 1, grouping.classes.n
    key = groups * width + sizes
    found: list[dict[str | None, Counter[int]]] = [{} for _ in range(n)]
    for name, inside in ((None, np.ones(len(key), dtype=bool)), *zip(bits, held, strict=True)):
        counts = np.bincount(key[inside], weights=rows[inside], minlength=n * width).astype(np.int64)
        for g, line in enumerate(counts.reshape(n, width).tolist()):
            found[g][name] = Counter({size: count for size, count in enumerate(line) if count})
    return found


def _beliefs(
    parts: Sequence[dict[str | None, Counter[int]]], least: int, most: int
) -> list[tuple[str, Fraction, Fraction]]:
    """For each value: the belief given the size of the whole set, and what its table shows alone."""
    result = []
    everything = _ways([p[None] for p in parts], least, most)
    for i, part in enumerate(parts):
        for bit, counts in part.items():
            if bit is None or not counts:
                continue
            with_it = _ways([counts if j == i else p[None] for j, p in enumerate(parts)], least, most)
            alone = Fraction(counts.total(), part[None].total())
            result.append((bit, Fraction(with_it, everything) if everything else alone, alone))
    return result


def _ways(parts: Sequence[Counter[int]], least: int, most: int) -> int:
    """In how many ways one row of each table can be chosen so that the sizes add up to something allowed."""
    total: Counter[int] = Counter({0: 1})
    for part in parts:
        total = Counter({s: n for s, n in _added(total, part).items() if s <= most})
    return sum(n for s, n in total.items() if s >= least)


def _added(left: Counter[int], right: Counter[int]) -> Counter[int]:
    result: Counter[int] = Counter()
    for a, n in left.items():
        for b, m in right.items():
            result[a + b] += n * m
    return result


def link_rows(crowd: JoinedPeople, a: int, b: int) -> dict[str, Any]:
    """The best that can be restored between two tables.

    `best_guess` is the largest probability that two rows are about the same person, `expected_share` the share of rows
    (of the table where it is larger) that are matched correctly when the likeliest partner of each is guessed.
    """
    groups_a, groups_b, people = _shared(crowd, a, b)
    size_a, size_b = _sizes(crowd, a), _sizes(crowd, b)
    chance = people / (size_a[groups_a] * size_b[groups_b])
    return {
        "best_guess": float(chance.max(initial=0.0)),
        "expected_share": max(_expected(groups_a, chance, size_a), _expected(groups_b, chance, size_b)),
        "by_chance": 1.0 / max(1, int(crowd.sizes.sum())),
    }


def _shared(crowd: JoinedPeople, a: int, b: int) -> tuple[Ints, Ints, np.ndarray[Any, Any]]:
    """Pairs of classes with the (expected) number of people who are in both."""
    left, right = (_published(crowd.entries[t]) for t in (a, b))
    start = np.searchsorted(right[0], left[0], "left")
    end = np.searchsorted(right[0], left[0], "right")
    index = np.repeat(np.arange(len(left[0])), end - start)
    place = np.arange(len(index)) - np.repeat(np.cumsum(end - start) - (end - start), end - start)
    other = np.repeat(start, end - start) + place
    both = left[2][index] * right[2][other] / crowd.sizes[left[0][index]]
    radix = int(right[1].max(initial=0)) + 1
    keys, inverse = np.unique(left[1][index] * radix + right[1][other], return_inverse=True)
    people = np.bincount(inverse, weights=both, minlength=len(keys))
    return keys // radix, keys % radix, people


def _published(entries: tuple[Ints, Ints, Ints]) -> tuple[Ints, Ints, Ints]:
    """The entries of published rows, by tuple."""
    tuples, groups, rows = entries
    order = np.argsort(tuples, kind="stable")
    order = order[groups[order] >= 0]
    return tuples[order], groups[order], rows[order]


def _sizes(crowd: JoinedPeople, table: int) -> np.ndarray[Any, Any]:
    _, groups, rows = _published(crowd.entries[table])
    return np.bincount(groups, weights=rows)


def _expected(groups: Ints, chance: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any]) -> float:
    best = np.zeros(len(sizes))
    np.maximum.at(best, groups, chance)
    return float((best * sizes).sum() / sizes.sum()) if sizes.sum() else 0.0


STEPS = 20_000  # of the exact count, for one component
ALL_STEPS = 400_000  # and for all of them
MOST_PEOPLE = 60
ROUNDS, CLOSE = 2000, 1e-10


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
