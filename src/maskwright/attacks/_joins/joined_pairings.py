"""Pairings: people with equal quasi-identifiers whom tables have in several classes, and which of these are the same's.

Each table says how many rows of a tuple are in which class, and not whose. A *pairing* says how many people of each
kind are in each cell, so that every table has as many as it shows; it can be done in N!/(n_1!·n_2!·…) ways for each
kind of N people. A world is one of these ways, with one of the assignments of values that agree with every class. All
are equally likely, and what is believed of somebody who is apart is the mean over the cells of the kind.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from maskwright.domain.classes import Ints
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.statements.fact_beliefs import ClassedRelease, worlds_of_same_attribute

if TYPE_CHECKING:
    from maskwright.attacks.intersection import JoinedCells

PAIRINGS = 500  # that are looked at
TRIED = 50_000  # numbers of people put into cells on the way


def paired_beliefs(
    cells: JoinedCells, dense: Sequence[Ints], members: list[int], limit: int
) -> dict[int, dict[int, Fraction]] | None:
    """The exact beliefs (cell → code → belief) of people in cells that hang together; None: no world agrees.

    Args:
        cells: of everybody.
        dense: per table class × code → rows.
        members: the cells in question.
        limit: refuse (`TooManyWorlds`) after this many steps (of each cell, where nobody is apart).
    """
    people: defaultdict[int, float] = defaultdict(float)
    for c in members:
        people[int(cells.kind[c])] += float(cells.sizes[c])
    found: dict[int, defaultdict[int, Fraction]] = {c: defaultdict(Fraction) for c in members}
    worlds, all_whole = Fraction(0), bool(cells.whole[members].all())
    for sizes, ways in _pairings(cells, members):
        releases, first = _releases(cells, dense, members, sizes)
        mine = Fraction(0)
        for c, size in zip(members, sizes, strict=True):
            if not size:
                continue
            dealt, steps = worlds_of_same_attribute(releases, first[c], limit)
            limit -= 0 if all_whole else steps
            mine = Fraction(ways * sum(dealt.values()))
            if not mine:
                break
            share = Fraction(1) if cells.whole[c] else Fraction(size, round(people[int(cells.kind[c])]))
            for code, n in dealt.items():
                found[c][code] += ways * n * share
        worlds += mine
    if not worlds:
        return None
    together: dict[int, defaultdict[int, Fraction]] = {}
    for c in members:
        mean = found[c] if cells.whole[c] else together.setdefault(int(cells.kind[c]), defaultdict(Fraction))
        if mean is not found[c]:
            for code, weight in found[c].items():
                mean[code] += weight
        found[c] = mean
    return {c: {code: weight / worlds for code, weight in of.items()} for c, of in found.items()}


def _releases(
    cells: JoinedCells, dense: Sequence[Ints], members: list[int], sizes: Sequence[int]
) -> tuple[list[ClassedRelease], dict[int, int]]:
    """The tables about numbered people, so many in each cell, and the first of each cell."""
    numbers, start = dict[int, range](), 0
    for c, size in zip(members, sizes, strict=True):
        numbers[c] = range(start, start + size)
        start += size
    releases = []
    for table, counts in enumerate(dense):
        groups = [int(g) for g in np.unique(cells.classes[table, members]) if g >= 0]
        rows = [[i for c in members if cells.classes[table, c] == g for i in numbers[c]] for g in groups]
        values = [np.repeat(np.arange(counts.shape[1]), counts[g]).tolist() for g in groups]
        releases.append(ClassedRelease(rows, values))
    return releases, {c: mine.start for c, mine in numbers.items()}


def _pairings(cells: JoinedCells, members: list[int]) -> Iterator[tuple[list[int], int]]:
    """The people of every cell, in each way that agrees with all tables, and in how many ways that can be done."""
    rooms = [
        [(t, int(cells.tuples[t, c]), int(cells.classes[t, c])) for t in range(len(cells.tuples))
         if cells.tuples[t, c] >= 0] for c in members
    ]  # fmt: skip
    left = {
        room: int(cells.rows[room[0], c]) for c, mine in zip(members, rooms, strict=True) for room in mine
    }
    kinds = [int(cells.kind[c]) for c in members]
    people: defaultdict[int, float] = defaultdict(float)
    for c, kind in zip(members, kinds, strict=True):
        people[kind] += float(cells.sizes[c])
    waiting = {kind: round(many) for kind, many in people.items() if kind >= 0}
    last = {kind: i for i, kind in enumerate(kinds)}
    orders = math.prod(map(math.factorial, waiting.values()))
    sizes, tried, made = [0] * len(members), 0, 0

    def _fill(i: int) -> Iterator[tuple[list[int], int]]:
        nonlocal tried, made
        tried += 1
        if i == len(members):
            if not any(left.values()):
                made += 1
                if made > PAIRINGS:
                    raise TooManyWorlds("people with equal quasi-identifiers can be paired in too many ways")
                apart = [n for n, kind in zip(sizes, kinds, strict=True) if kind >= 0]
                yield list(sizes), orders // math.prod(map(math.factorial, apart))
            return
        if tried > TRIED:
            raise TooManyWorlds("people with equal quasi-identifiers can be paired in too many ways")
        kind = kinds[i]
        if kind < 0:
            sizes[i] = round(float(cells.sizes[members[i]]))
            yield from _fill(i + 1)
            return
        most = min([waiting[kind], *(left[room] for room in rooms[i])])
        least = waiting[kind] if last[kind] == i else 0
        for n in range(least, most + 1):
            sizes[i] = n
            waiting[kind] -= n
            for room in rooms[i]:
                left[room] -= n
            yield from _fill(i + 1)
            waiting[kind] += n
            for room in rooms[i]:
                left[room] += n

    yield from _fill(0)
