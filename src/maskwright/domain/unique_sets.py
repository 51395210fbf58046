"""Minimal unique sets: the smallest combinations of attributes that single somebody out [SUDA: Elliot, Manning 2002;
Manning, Haglin, Keane 2008].

A set of attributes singles a person out when nobody else has the same values in it. It is *minimal* when no part of it
does: the smaller it is, and the more of them a person has, the easier the person is to find. The sets are searched
level by level; whoever a set singles out can match nobody in a larger one, so that these people leave the count there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.exact import numbered_columns, numbered_values, sorted_distinct

Bools = NDArray[np.bool_]
MOST_CELLS = 50_000_000  # sets × classes: beyond this the search stops at smaller sets, and says so
LEAST_CELLS = 500  # that a set counts as: in a small table it is the sets that take the time
LISTED = 20


@dataclass(frozen=True, eq=False)
class Uniques:
    """Who is singled out, and by which attributes.

    Attributes:
        attributes: the names.
        most: sets of up to so many attributes were examined.
        found: per minimal set (ascending positions) the classes of one person that it singles out.
        people: people in the table.
    """

    attributes: tuple[str, ...]
    most: int
    found: dict[tuple[int, ...], Ints] = field(default_factory=dict)
    people: int = 0

    @cached_property
    def singled_out(self) -> int:
        """People whom at least one set of at most `most` attributes singles out."""
        return len(sorted_distinct(np.concatenate([*self.found.values(), np.zeros(0, np.int64)])))

    def weight(self, size: int) -> int:
        """What a minimal set of this size adds to the score of a person: ∏ (attributes − i), i from `size` on."""
        last = min(self.most, len(self.attributes) - 1)
        return math.prod(len(self.attributes) - i for i in range(size, last + 1))

    def scores(self, n_classes: int) -> Ints:
        """The SUDA score of every class: the sum over its minimal sets."""
        total = np.zeros(n_classes, dtype=np.int64)
        for columns, classes in self.found.items():
            total[classes] += self.weight(len(columns))
        return total

    def contributions(self) -> dict[str, Fraction]:
        """Per attribute the share of all scores that comes from sets with it, the largest first."""
        total = sum(self.weight(len(c)) * len(v) for c, v in self.found.items())
        parts = dict.fromkeys(self.attributes, 0)
        for columns, classes in self.found.items():
            for i in columns:
                parts[self.attributes[i]] += self.weight(len(columns)) * len(classes)
        ranked = sorted(parts.items(), key=lambda item: -item[1])
        return {name: Fraction(part, total) if total else Fraction(0) for name, part in ranked}

    def sets(self) -> list[tuple[tuple[str, ...], int]]:
        """The minimal sets and how many people each singles out, most people first."""
        ranked = sorted(self.found.items(), key=lambda item: (-len(item[1]), len(item[0]), item[0]))
        return [(tuple(self.attributes[i] for i in columns), len(classes)) for columns, classes in ranked]

    def measures(self) -> dict[str, Any]:
        """For a report: counts, the commonest sets, what each attribute contributes."""
        by_size = dict.fromkeys(range(1, self.most + 1), 0)
        for columns, classes in self.found.items():
            by_size[len(columns)] = by_size.get(len(columns), 0) + len(classes)
        return {
            "sets_up_to": self.most,
            "people": self.singled_out,
            "share": Fraction(self.singled_out, self.people) if self.people else Fraction(0),
            "minimal_sets_by_size": by_size,
            "sets": [{"attributes": list(names), "people": n} for names, n in self.sets()[:LISTED]],
            "contributions": self.contributions(),
        }


def minimal_uniques(
    attributes: Sequence[str], codes: NDArray[np.integer[Any]], sizes: Ints, most: int = 3
) -> Uniques:
    """Every minimal unique set of at most `most` attributes.

    Args:
        attributes: the names.
        codes: one row per attribute, one column per class: a number for each value.
        sizes: people per class; only classes of one person can be singled out.
        most: how many attributes a set may have. Fewer are examined where there are too many sets.
    """
    width, n = len(attributes), len(sizes)
    most = min(most, width)
    while (
        most > 1 and max(n, LEAST_CELLS) * sum(math.comb(width, k) for k in range(1, most + 1)) > MOST_CELLS
    ):
        most -= 1
    result = Uniques(tuple(attributes), most, {}, int(sizes.sum()))
    if not (sizes == 1).any():  # nobody is alone even with all attributes
        return result
    dense = [numbered_columns(row[None, :])[1] for row in codes]
    radix = [int(row.max(initial=0)) + 1 for row in dense]
    before: dict[tuple[int, ...], Bools] = {(): (sizes == 1) & (n == 1)}
    if before[()].any():  # one person alone needs no attribute to be found
        return Uniques(tuple(attributes), most, {(): np.zeros(1, np.int64)}, 1)
    for size in range(1, most + 1):
        level: dict[tuple[int, ...], Bools] = {}
        for columns in combinations(range(width), size):
            known = np.zeros(n, dtype=bool)
            for part in _parts(columns):
                known |= before[part]
            unique = _alone([dense[i] for i in columns], [radix[i] for i in columns], sizes, ~known)
            if unique.any():
                result.found[columns] = np.flatnonzero(unique)
            level[columns] = known | unique
        before = level
    return result


def _parts(columns: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The sets with one attribute less."""
    for i in range(len(columns)):
        yield columns[:i] + columns[i + 1 :]


def _alone(codes: Sequence[Ints], radix: Sequence[int], sizes: Ints, among: Bools) -> Bools:
    """Classes of one person whose values in all these attributes no other class of `among` has."""
    there = np.flatnonzero(among)
    key, n = combined_codes([code[there] for code in codes], radix)
    people = np.bincount(key, weights=sizes[there], minlength=n)
    result = np.zeros(len(sizes), dtype=bool)
    result[there[people[key] == 1]] = True
    return result


def combined_codes(codes: Sequence[Ints], radix: Sequence[int]) -> tuple[Ints, int]:
    """A number below n for each combination of codes, and n; equal combinations have equal numbers.

    Numbers are packed while they stay small, and given anew where they would not.
    """
    key, n = np.zeros(len(codes[0]), dtype=np.int64), 1
    most = max(1 << 20, 4 * len(key))
    for code, base in zip(codes, radix, strict=True):
        if n * base > most:
            key, n = _anew(key)
        key, n = key * base + code, n * base
    return _anew(key) if n > most else (key, n)


def _anew(key: Ints) -> tuple[Ints, int]:
    distinct, number = numbered_values(key)
    return number, len(distinct)
