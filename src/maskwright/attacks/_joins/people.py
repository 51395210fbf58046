"""The people of several tables about the same people: who is in which class of each of them.

Quasi-identifiers are known, so people with the same ones are alike. Where a method split them over several groups, it
is only known how many went where.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.adversary import Target
from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping
from maskwright.domain.summary import Summary
from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import TooManyWorlds

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
            place = _places(first, target.grouping.summary, target.name)
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


def _places(first: Summary, other: Summary, name: str) -> Ints:
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
