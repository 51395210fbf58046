"""Anatomy as an adversary knows it: groups of ℓ different values, rows picked at random [Xiao, Tao 2006].

While at least ℓ values have rows left, a group is formed of one row each of the ℓ values with most rows left (ties:
smaller value). What is left over joins, by row number, groups that lack its value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from maskwright.core.worlds.limits import whole_numbers
from maskwright.core.worlds.posterior import Publication

Groups = tuple[frozenset[int], ...]


def anatomy_counts(frequencies: Sequence[int], ell: int) -> tuple[int, list[int]]:
    """How many groups Anatomy forms of values with these frequencies, and what is left of them, descending."""
    whole_numbers("frequencies", frequencies)
    whole_numbers("l", [ell], 1)
    left = sorted((f for f in frequencies if f), reverse=True)
    rounds = 0
    while len(left) >= ell:
        left = sorted((f for f in (*(x - 1 for x in left[:ell]), *left[ell:]) if f), reverse=True)
        rounds += 1
    return rounds, left


def most_frequent(values: Sequence[Any], left: Iterable[int], ell: int) -> list[Any] | None:
    """The ℓ values with most rows left; None when fewer values have any."""
    counts = Counter(values[i] for i in left)
    return None if len(counts) < ell else sorted(counts, key=lambda v: (-counts[v], v))[:ell]


def first_row_anatomy(values: Sequence[Any], ell: int) -> list[list[int]] | None:
    """Anatomy that picks the first row of a value, and the first group that lacks it; None: no publication.

    It leaks where the order of the rows is known (erratum C-13).
    """
    whole_numbers("l", [ell], 1)
    left, groups = set(range(len(values))), []
    while (chosen := most_frequent(values, left, ell)) is not None:
        groups.append([min(i for i in left if values[i] == v) for v in chosen])
        left -= set(groups[-1])
    for i in sorted(left):
        home = next((g for g in groups if all(values[j] != values[i] for j in g)), None)
        if home is None:
            return None
        home.append(i)
    return groups


def anatomy(values: Sequence[Any], ell: int, only: Publication | None = None) -> dict[Publication, Fraction]:
    """The probability of each publication when rows, and groups for what is left over, are picked at random.

    Where a row that is left over finds no group the table has no publication; those probabilities are missing.

    Args:
        values: sensitive value of each row.
        ell: values in a group.
        only: follow only what can become this publication.
    """
    whole_numbers("l", [ell], 1)
    walk = _Walk(values, ell, only)
    walk.form((), frozenset(range(len(values))), Fraction(1))
    return walk.found


class _Walk:
    """Every course Anatomy may take, with its probability."""

    def __init__(self, values: Sequence[Any], ell: int, only: Publication | None) -> None:
        self.values, self.ell, self.only = values, ell, only
        self.found: dict[Publication, Fraction] = {}

    def form(self, groups: Groups, left: frozenset[int], chance: Fraction) -> None:
        """Form the next group."""
        chosen = most_frequent(self.values, left, self.ell)
        if chosen is None:
            self.join(groups, sorted(left), chance)
        else:
            self.pick(groups, chosen, frozenset(), left, chance)

    def pick(
        self, groups: Groups, chosen: list[Any], group: frozenset[int], left: frozenset[int], chance: Fraction
    ) -> None:
        """Pick one row of each chosen value."""
        if not chosen:
            self.form((*groups, group), left, chance)
            return
        rows = [i for i in left if self.values[i] == chosen[0]]
        for i in rows:
            if self.fits(group | {i}):
                self.pick(groups, chosen[1:], group | {i}, left - {i}, chance / len(rows))

    def join(self, groups: Groups, left: list[int], chance: Fraction) -> None:
        """Let the rows that are left over join groups."""
        if not left:
            published = frozenset(groups)
            if self.only in (None, published):
                self.found[published] = self.found.get(published, Fraction(0)) + chance
            return
        i = left[0]
        open_to = [k for k, g in enumerate(groups) if all(self.values[j] != self.values[i] for j in g)]
        for k in open_to:
            grown = groups[k] | {i}
            if self.fits(grown):
                self.join((*groups[:k], grown, *groups[k + 1 :]), left[1:], chance / len(open_to))

    def fits(self, group: frozenset[int]) -> bool:
        return self.only is None or any(group <= target for target in self.only)
