"""Tables with the same attribute, where people have several rows: worlds of rows, beliefs about some row of a person.

Rows are put together as people are where every row is one. Where the tables are about the same few rows every world is
listed, and the belief about a person is exact. Otherwise it is at most the sum over the rows of the person (Lemma U).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.adversary import Target
from maskwright.domain.classes import Ints, ValueCounts
from maskwright.worlds.counting.multisets import count_orders

LISTED_ROWS = 16
WORLDS = 20_000


def rows_for_people(target: Target) -> Target:
    """A table as if every row were a person, as far as it matters who is in which class."""
    summary = target.grouping.summary
    alone = replace(summary, sizes=summary.rows, shared=None, owned=None)
    return replace(target, grouping=replace(target.grouping, summary=alone))


@dataclass(frozen=True, eq=False)
class OwnersOfTable:
    """Whose rows a table is about: one entry per (person, tuple).

    Attributes:
        people, tuples, rows: the entries, by person.
        first: the first entry of each person.
    """

    people: Ints
    tuples: Ints
    rows: Ints
    first: Ints

    @staticmethod
    def of(target: Target) -> OwnersOfTable:
        """The people of a table; where every row is one, each is somebody else."""
        personal = target.grouping.summary.personal
        if personal is None or personal.people is None:
            rows = target.grouping.summary.rows
            tuples = np.repeat(np.arange(len(rows)), rows)
            every = np.arange(len(tuples))
            return OwnersOfTable(every, tuples, np.ones_like(every), every)
        n = target.grouping.summary.n_tuples
        keys, number = np.unique(personal.people * n + personal.tuples, return_inverse=True)
        rows = np.bincount(number.reshape(-1), weights=personal.rows).astype(np.int64)
        people = keys // n
        return OwnersOfTable(people, keys % n, rows, np.flatnonzero(np.diff(people, prepend=-1)))

    def at_most(self, by_tuple: NDArray[np.float64]) -> NDArray[np.float64]:
        """The belief about each person, by that about a row of each tuple: at most the sum over the rows."""
        return np.minimum(1.0, np.add.reduceat(by_tuple[self.tuples] * self.rows, self.first))

    def rows_of(self, which: int) -> int:
        """The rows of one person, by the place of the person."""
        end = self.first[which + 1] if which + 1 < len(self.first) else len(self.rows)
        return int(self.rows[self.first[which] : end].sum())


@dataclass(frozen=True, eq=False)
class ListedRows:
    """Every world of a few rows: whose they are, and the value (code) of each in each world."""

    owner: Ints
    worlds: NDArray[np.int64]

    @staticmethod
    def of(owners: OwnersOfTable, classes: Ints, counts: Sequence[ValueCounts]) -> ListedRows | None:
        """The worlds; `classes`: table × tuple → the only class. None: they are too many."""
        owner = np.repeat(owners.people, owners.rows)
        groups = classes[:, np.repeat(owners.tuples, owners.rows)]
        if len(owner) > LISTED_ROWS or (groups < 0).any():
            return None
        held = [
            {g: _codes_of(c, g) for g in set(line.tolist())} for line, c in zip(groups, counts, strict=True)
        ]
        ways = 1
        for values in held[0].values():
            ways *= count_orders(tuple(values.values()))
        if ways > WORLDS:
            return None
        found = list(_worlds_of_rows(groups.T.tolist(), held))
        return ListedRows(owner, np.array(found, dtype=np.int64)) if found else None

    def beliefs(self, codes: Sequence[int]) -> list[Fraction]:
        """For each person the share of worlds in which some row has one of the values."""
        held = np.isin(self.worlds, codes)
        return [
            Fraction(int(held[:, self.owner == person].any(axis=1).sum()), len(held))
            for person in np.unique(self.owner).tolist()
        ]


def _codes_of(counts: ValueCounts, group: int) -> Counter[int]:
    """The values (codes) of the rows of a class."""
    mine = counts.owner == group
    return Counter(dict(zip(counts.codes[mine].tolist(), counts.counts[mine].tolist(), strict=True)))


def _worlds_of_rows(groups: list[list[int]], held: list[dict[int, Counter[int]]]) -> Iterator[list[int]]:
    """The values of the rows, one after the other, so that every class of every table keeps those that it shows."""
    world = [0] * len(groups)

    def _deal(i: int) -> Iterator[list[int]]:
        if i == len(groups):
            yield list(world)
            return
        places = [table[g] for table, g in zip(held, groups[i], strict=True)]
        for code in [c for c, n in places[0].items() if n]:
            if all(place[code] for place in places):
                world[i] = code
                for place in places:
                    place[code] -= 1
                yield from _deal(i + 1)
                for place in places:
                    place[code] += 1

    yield from itertools.islice(_deal(0), WORLDS)
