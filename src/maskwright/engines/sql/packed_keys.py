"""Packed keys: the codes of several attributes as mixed-radix digits of one 64-bit integer, or of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints

WORD = 2**63  # a signed 64-bit integer holds keys below this on every engine


class KeyDigits(Protocol):
    """One array of digits per attribute."""

    def __getitem__(self, i: int, /) -> NDArray[np.integer]: ...


@dataclass(frozen=True)
class Packing:
    """Digit i (0 <= digit < radices[i]) lies in word `words[w]`, the first digit of a word most significant."""

    radices: tuple[int, ...]
    words: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(radices: Sequence[int], limit: int = WORD) -> Packing:
        """The packing with as many digits to a word as fit: one word while the product of the radices is below 2^63."""
        words: list[list[int]] = []
        for i, radix in enumerate(radices):
            if words and prod(radices[j] for j in words[-1]) * radix < limit:
                words[-1].append(i)
            else:
                words.append([i])
        return Packing(tuple(radices), tuple(map(tuple, words)))

    def pack(self, digits: KeyDigits) -> list[Ints]:
        """One array per word, from one row of digits per attribute."""
        packed = []
        for word in self.words:
            key = digits[word[0]].astype(np.int64)
            for i in word[1:]:
                key *= self.radices[i]
                key += digits[i]
            packed.append(key)
        return packed

    def unpack(self, packed: Sequence[Ints], i: int) -> Ints:
        """Digit i of every key."""
        word, after = self.place(i)
        return packed[word] // after % self.radices[i]

    def place(self, i: int) -> tuple[int, int]:
        """The word of digit i, and by what to divide it so that the digit comes last."""
        word = next(w for w in range(len(self.words)) if i in self.words[w])
        return word, self._after(word, i)

    def head(self, packed: Sequence[Ints], n: int) -> list[Ints]:
        """The keys of the first n digits alone (their words, without what follows)."""
        parts = []
        for w, word in enumerate(self.words):
            kept = [i for i in word if i < n]
            if kept:
                parts.append(packed[w] // self._after(w, kept[-1]))
        return parts

    def _after(self, word: int, i: int) -> int:
        digits = self.words[word]
        return prod(self.radices[j] for j in digits[digits.index(i) + 1 :])


def ascending(keys: Sequence[Ints], length: int) -> Ints:
    """The order that sorts keys; equal keys in any order. Without keys the order there is."""
    if len(keys) == 1:
        return np.argsort(keys[0])
    return np.lexsort(tuple(reversed(keys))) if keys else np.arange(length)


def number(keys: Sequence[Ints], length: int) -> tuple[list[Ints], Ints]:
    """The distinct keys in ascending order, and for each entry the number of its key.

    Args:
        keys: the words of every entry; none at all means that all entries share the empty key.
        length: how many entries there are.
    """
    order = ascending(keys, length)
    distinct, among = numbered([k[order] for k in keys], length)
    numbers = np.empty(length, dtype=np.int64)
    numbers[order] = among
    return distinct, numbers


def numbered(keys: Sequence[Ints], length: int) -> tuple[list[Ints], Ints]:
    """The distinct keys and the number of each, for keys that are in ascending order."""
    if not keys or not length:
        return [k[:0] for k in keys], np.zeros(length, dtype=np.int64)
    new = np.zeros(length, dtype=bool)
    new[0] = True
    for k in keys:
        new[1:] |= k[1:] != k[:-1]
    numbers = np.cumsum(new)
    numbers -= 1
    return [k[new] for k in keys], numbers
