"""Dealing the values of a bucket to its people when some people cannot have some values (male, ovarian cancer).

People who cannot have the same values are of one *kind*. Worlds are counted by placing the values that somebody cannot
have, one after the other, on the kinds that can; the values that everybody can have fill what is left. The probability
that a person has a value is the number of worlds without the two, over the number of worlds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from maskwright.core.worlds.limits import TooManyWorlds
from maskwright.core.worlds.multisets import arrangements

STEPS = 300_000  # of placing values before counting is given up


@dataclass(frozen=True)
class Bucket:
    """The values of a bucket with their number, and its kinds of people: how many, and what they cannot have."""

    values: Mapping[Any, int]
    kinds: Sequence[tuple[int, frozenset[Any]]]

    @staticmethod
    def of(values: Sequence[Any]) -> Bucket:
        """Everybody can have everything."""
        return Bucket(Counter(values), [(len(values), frozenset())])

    @property
    def people(self) -> int:
        return sum(n for n, _ in self.kinds)


class Dealer:
    """Counts the worlds of one bucket while values are given to some of its people."""

    def __init__(self, bucket: Bucket) -> None:
        self.kinds = [frozenset(f) for _, f in bucket.kinds]
        self.room = [n for n, _ in bucket.kinds]
        self.left: dict[Any, int] = dict(bucket.values)
        denied = frozenset[Any]().union(*self.kinds)
        self.special = [v for v in self.left if v in denied]
        self.steps = 0
        self._place = cache(self._count_places)

    def give(self, kind: int, value: Any, many: int = 1) -> None:
        """Somebody of this kind has this value; −1 takes it back."""
        self.room[kind] -= many
        self.left[value] -= many

    def can_have(self, kind: int, value: Any) -> bool:
        return self.left[value] > 0 and value not in self.kinds[kind]

    def worlds(self) -> int:
        """The worlds of the people who have no value yet."""
        places = self._place(0, tuple(self.room), tuple(self.left[v] for v in self.special))
        free = [c for v, c in self.left.items() if v not in self.special]
        return places * arrangements(free) if places else 0

    def chance(self, kind: int, value: Any) -> Fraction:
        """The probability that somebody of this kind, without a value yet, has this value."""
        if not self.can_have(kind, value) or not self.room[kind]:
            return Fraction(0)
        whole = self.worlds()
        self.give(kind, value)
        mine = self.worlds()
        self.give(kind, value, -1)
        return Fraction(mine, whole)

    def state(self) -> Hashable:
        return tuple(self.room), tuple(self.left.items())

    def _count_places(self, at: int, room: tuple[int, ...], counts: tuple[int, ...]) -> int:
        """Ways to place the special values from number `at` on, kinds having so much room."""
        self.steps += 1
        if self.steps > STEPS:
            raise TooManyWorlds(f"the worlds of a bucket need more than {STEPS} steps to count; sample")
        if at == len(counts):
            return 1
        able = [k for k, denied in enumerate(self.kinds) if self.special[at] not in denied and room[k]]
        total = 0
        for dealt in _splits([room[k] for k in able], counts[at]):
            after = list(room)
            ways = 1
            for k, x in zip(able, dealt, strict=True):
                ways *= math.comb(room[k], x)
                after[k] -= x
            total += ways * self._place(at + 1, tuple(after), counts)
        return total


def _splits(room: Sequence[int], many: int) -> list[tuple[int, ...]]:
    """Every way to divide a number over places with so much room."""
    if not room:
        return [()] if not many else []
    rest = sum(room[1:])
    low, high = max(0, many - rest), min(room[0], many)
    return [(x, *more) for x in range(low, high + 1) for more in _splits(room[1:], many - x)]
