"""Numbers within a share of the truth: what somebody comes near to who can name one number [Li, Tao, Xiao 2008].

A guess g lies within a share w of the truth x where |g − x| ≤ w·|x|. One guess does for all numbers of a *window*: of
one sign, the largest at most (1 + w)/(1 − w) times the smallest, in absolute values; zero is alone. The secret is
that a number lies in a window, whichever, so that nobody can come near whatever is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import overload

import numpy as np

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.exact import to_fraction
from maskwright.domain.segments import class_max
from maskwright.errors import PolicyError

MOST_WINDOWS, MOST_MEMBERS = 2_000, 500_000  # that attacks look at one by one


@dataclass(frozen=True, eq=False)
class NumberWindows(Sequence[tuple[str, ...]]):
    """The windows of a column's numbers that lie in no other one, each as the values in it, ascending.

    Attributes:
        within: the share of the truth.
        values: the numbers as they are written, ascending.
        reach: for each of them the place of the last number that shares a window with it and those between.
    """

    within: Fraction
    values: tuple[str, ...]
    reach: Ints

    @cached_property
    def first(self) -> Ints:
        """The place of the smallest number of each window."""
        return np.flatnonzero(np.diff(self.reach, prepend=-1)).astype(np.int64)

    @cached_property
    def last(self) -> Ints:
        """The place of the largest number of each window."""
        return self.reach[self.first]

    @cached_property
    def place(self) -> dict[str, int]:
        """The place of each number."""
        return {value: i for i, value in enumerate(self.values)}

    def __len__(self) -> int:
        return len(self.first)

    @overload
    def __getitem__(self, index: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[str, ...], ...]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, ...] | tuple[tuple[str, ...], ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        return self.values[int(self.first[index]) : int(self.last[index]) + 1]

    @property
    def few(self) -> bool:
        """Are they few enough to be looked at one by one?"""
        return len(self) <= MOST_WINDOWS and int((self.last - self.first + 1).sum()) <= MOST_MEMBERS

    def in_words(self, index: int) -> str:
        """A window as its ends."""
        low, high = self.values[int(self.first[index])], self.values[int(self.last[index])]
        return low if low == high else f"between {low} and {high}"

    def gathered(self, counts: ValueCounts) -> ValueCounts:
        """Class → window → people, for all windows where they are few, else for those that hold most of a class."""
        slide = _Slide.of(self, counts)
        if not self.few:
            window = np.searchsorted(self.last, self.reach[slide.place]) + 1
            keep = np.flatnonzero(np.diff(slide.owner * (len(self) + 1) + window, prepend=-1))
            return _collected(self, counts, slide.owner[keep], window[keep], slide.held[keep])
        low = np.searchsorted(self.last, slide.place)  # the windows that a number is in are consecutive
        many = np.searchsorted(self.first, slide.place, side="right") - low
        entry = np.repeat(np.arange(len(low)), many)
        window = np.arange(len(entry)) - np.repeat(np.cumsum(many) - many, many) + low[entry] + 1
        return _collected(self, counts, slide.owner[entry], window, slide.amount[entry])


def _collected(
    windows: NumberWindows, counts: ValueCounts, owner: Ints, window: Ints, held: Ints
) -> ValueCounts:
    names = tuple(windows.in_words(i) for i in range(len(windows)))
    return ValueCounts.collect(names, counts.n_classes, owner, window.astype(np.int64), held)


@dataclass(frozen=True, eq=False)
class _Slide:
    """The numbers of each class ascending, and how many people of it have one of those that each reaches."""

    owner: Ints
    place: Ints
    amount: Ints
    held: Ints

    @staticmethod
    def of(windows: NumberWindows, counts: ValueCounts) -> _Slide:
        """The numbers of the classes that these values are counted in."""
        known = np.flatnonzero(counts.codes > 0)  # missing is no number
        at = np.array([windows.place[v] for v in counts.values], dtype=np.int64)
        place, owner = at[counts.codes[known] - 1], counts.owner[known]
        order = np.lexsort((place, owner))
        place, owner, amount = place[order], owner[order], counts.counts[known][order]
        n = len(windows.values)
        before = np.concatenate([[0], np.cumsum(amount)])
        until = np.searchsorted(owner * n + place, owner * n + windows.reach[place], side="right")
        return _Slide(owner, place, amount, before[until] - before[:-1])


@lru_cache(maxsize=8)
def number_windows(values: tuple[str, ...], within: Fraction) -> NumberWindows:
    """The windows of these numbers; raises `ValueError` for a value that is none."""
    numbers = [to_fraction(value) for value in values]
    order = sorted(range(len(values)), key=numbers.__getitem__)
    reach, end = np.zeros(len(values), dtype=np.int64), 0
    for place, number in enumerate(order):
        end = max(end, place)
        while end + 1 < len(order) and _share_a_guess(numbers[number], numbers[order[end + 1]], within):
            end += 1
        reach[place] = end
    return NumberWindows(within, tuple(values[i] for i in order), reach)


def _share_a_guess(low: Fraction, high: Fraction, within: Fraction) -> bool:
    if low == high:
        return True
    if low < 0 < high:
        return False
    near, far = sorted((abs(low), abs(high)))
    return far * (1 - within) <= near * (1 + within)


def largest_window(counts: ValueCounts, within: Fraction) -> Ints:
    """Per class the most people whose numbers one guess comes so near to."""
    slide = _Slide.of(number_windows(counts.values, within), counts)
    start = np.searchsorted(slide.owner, np.arange(counts.n_classes + 1))
    return class_max(slide.held, start)


def refuse_what_is_no_number(values: Sequence[str], column: str, where: str) -> None:
    """Refuse a column of which a share of the truth cannot be told."""
    for value in values:
        try:
            to_fraction(value)
        except ValueError:
            raise PolicyError(
                f"{where}: a share of the truth exists for numbers only, and {column!r} holds {value[:40]!r}; say in "
                "`prepare` what it means, or name values that belong together in `sets`"
            ) from None
