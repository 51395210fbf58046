"""Beliefs from what else is known: other columns of the victim's row, or other releases about the same people."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import WORLDS, TooManyWorlds
from maskwright.worlds.counting.multisets import count_orders, sub_multisets, subtract_counts

Sized = tuple[tuple[int, ...], int]


def matching_shares(
    rows: Sequence[Sequence[Any]], members: Iterable[int], known: Mapping[int, Any], target: int
) -> dict[Any, Fraction] | None:
    """Shares of the target attribute among the members that match everything known; None when none does.

    Args:
        rows: the published rows.
        members: the rows among which the victim is, by number.
        known: values of the victim, by attribute number.
        target: the attribute in question, by number.
    """
    matching = [rows[i][target] for i in members if all(rows[i][a] == v for a, v in known.items())]
    if not matching:
        return None
    return {value: Fraction(c, len(matching)) for value, c in Counter(matching).items()}


@dataclass(frozen=True)
class ClassedRelease:
    """One release: its classes as row numbers, and the sensitive values of each class."""

    classes: Sequence[Sequence[int]]
    values: Sequence[Sequence[Any]]

    def check(self, people: frozenset[int] | None = None) -> frozenset[int]:
        """The people in it; refused unless the classes are disjoint, fit their values and cover `people`."""
        rows = [i for members in self.classes for i in members]
        if len(set(rows)) < len(rows) or list(map(len, self.classes)) != list(map(len, self.values)):
            raise UsageError("a release must have every row in one class, and as many values in it as rows")
        if people is not None and frozenset(rows) != people:
            raise UsageError("the releases are not about the same people")
        return frozenset(rows)

    def class_of(self, person: int) -> int:
        """The number of the class in which a person is."""
        found = next((c for c, members in enumerate(self.classes) if person in members), None)
        if found is None:
            raise UsageError(f"person {person} is not in the release")
        return found


def joint_of_different_attributes(
    releases: Sequence[ClassedRelease], person: int
) -> dict[tuple[Any, ...], Fraction]:
    """The belief in each combination of values, from releases of different attributes.

    Their worlds are independent: beliefs multiply, and nothing is gained.
    """
    shares = []
    for release in releases:
        release.check()
        values = Counter(release.values[release.class_of(person)])
        shares.append([(v, Fraction(c, values.total())) for v, c in values.items()])
    return {
        tuple(v for v, _ in chosen): math.prod((p for _, p in chosen), start=Fraction(1))
        for chosen in itertools.product(*shares)
    }


def joint_of_same_attribute(
    releases: Sequence[ClassedRelease], person: int, limit: int = WORLDS
) -> dict[Any, Fraction] | None:
    """The belief in each value, from releases of one attribute under different groupings; None: no assignment fits.

    People in the same class of every release are interchangeable: such *cells* are dealt values one after the
    other, and what is left of each class is all that has to be remembered.

    Args:
        releases: all about the same people.
        person: whom the belief is about.
        limit: refuse (`TooManyWorlds`) after this many steps.
    """
    people = releases[0].check()
    for release in releases[1:]:
        release.check(people)
    domain = list(dict.fromkeys(v for release in releases for values in release.values for v in values))
    home = tuple(release.class_of(person) for release in releases)
    table = _SharedCells(releases, domain, home, limit)
    worlds = {value: table.with_person(v) for v, value in enumerate(domain)}
    total = sum(worlds.values())
    return {value: Fraction(n, total) for value, n in worlds.items() if n} if total else None


class _SharedCells:
    """Counts the assignments of values to everybody but one person."""

    def __init__(
        self, releases: Sequence[ClassedRelease], domain: list[Any], home: tuple[int, ...], limit: int
    ) -> None:
        place: dict[int, list[int]] = {}
        for release in releases:
            for c, members in enumerate(release.classes):
                for i in members:
                    place.setdefault(i, []).append(c)
        cells = Counter(tuple(classes) for classes in place.values())
        cells[home] -= 1
        self.cells = _near_first(sorted((cell, n) for cell, n in cells.items() if n), home)
        self.home, self.limit, self.steps = home, limit, 0
        numbered = [[Counter(values) for values in release.values] for release in releases]
        self.start = {
            (r, c): tuple(counts[v] for v in domain)
            for r, classes in enumerate(numbered) for c, counts in enumerate(classes)
        }  # fmt: skip
        self.known: dict[tuple[int, frozenset[tuple[tuple[int, int], tuple[int, ...]]]], int] = {}

    def with_person(self, v: int) -> int:
        """The number of assignments to everybody else when the person has this value."""
        left = dict(self.start)
        for key in enumerate(self.home):
            if not left[key][v]:
                return 0
            left[key] = tuple(x - (i == v) for i, x in enumerate(left[key]))
        return self._count(0, left)

    def _count(self, at: int, left: dict[tuple[int, int], tuple[int, ...]]) -> int:
        if at == len(self.cells):
            return int(not any(any(vector) for vector in left.values()))
        key = at, frozenset(left.items())
        if key not in self.known:
            self.steps += 1
            if self.steps > self.limit:
                raise TooManyWorlds(f"joining the releases needs more than {self.limit} steps; sample")
            cell, size = self.cells[at]
            classes = list(enumerate(cell))
            room = tuple(map(min, zip(*(left[c] for c in classes), strict=True)))
            total = 0
            for part in sub_multisets(room, size) if sum(room) >= size else ():
                rest = left | {c: subtract_counts(left[c], part) for c in classes}
                if self._open(at, classes, rest):
                    total += count_orders(part) * self._count(at + 1, rest)
            self.known[key] = total
        return self.known[key]

    def _open(
        self, at: int, classes: list[tuple[int, int]], left: dict[tuple[int, int], tuple[int, ...]]
    ) -> bool:
        """A class whose last cell this was must have dealt all its values."""
        later = {c for cell, _ in self.cells[at + 1 :] for c in enumerate(cell)}
        return all(c in later or not any(left[c]) for c in classes)


def _near_first(cells: list[Sized], home: tuple[int, ...]) -> list[Sized]:
    """Cells in an order in which each shares a class with one before it, if any does: fewer states."""
    order: list[Sized] = []
    seen = set(enumerate(home))
    while cells:
        best = max(cells, key=lambda sized: sum(c in seen for c in enumerate(sized[0])))
        cells = [sized for sized in cells if sized is not best]
        order.append(best)
        seen |= set(enumerate(best[0]))
    return order
