"""Random choices that are enumerated: every sequence of choices that a method can make, with its probability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.domain.classes import Ints

SORT_KEYS = 2**32  # integers drawn from a larger range are keys: only their order matters


class TooManyChoices(Exception):  # noqa: N818 - what there is too much of
    """There are more sequences of choices than may be tried."""


class Choices:
    """What methods ask of numpy's Generator; each choice is the next one of a path.

    Attributes:
        rows: of each row its tuple and its cell, for keys that order the rows of each tuple, where those of a cell are
            alike; None: keys are taken to order all rows.
        path: the choices: which one of how many, by their weights.
        at: how many were made so far.
    """

    def __init__(
        self, path: Sequence[tuple[int, tuple[int, ...]]] = (), rows: tuple[Ints, Ints] | None = None
    ) -> None:
        self.path, self.rows, self.at = list(path), rows, 0

    def choose(self, weights: Sequence[int]) -> int:
        """The index of one of several possibilities, with probabilities in proportion to whole weights."""
        if len(weights) == 1:
            return 0
        if self.at == len(self.path):
            self.path.append((0, tuple(weights)))
        index, known = self.path[self.at]
        if known != tuple(weights):
            raise RuntimeError("other random numbers were asked for after the same choices")
        self.at += 1
        return index

    @property
    def probability(self) -> Fraction:
        """The probability of the choices that were made."""
        result = Fraction(1)
        for index, weights in self.path[: self.at]:
            result *= Fraction(weights[index], sum(weights))
        return result

    def following(self) -> list[tuple[int, tuple[int, ...]]] | None:
        """The beginning of the path that comes after this one, once all choices were made; None: it was the last."""
        path = self.path[: self.at]
        while path and path[-1][0] + 1 == len(path[-1][1]):
            path.pop()
        if not path:
            return None
        index, weights = path.pop()
        return [*path, (index + 1, weights)]

    # --- numpy's names --------------------------------------------------------------------------------

    def shuffle(self, values: Any) -> None:
        """Every order of the values."""
        values[:] = self._dealt(values)

    def permutation(self, values: Any) -> Any:
        """Every order of the values, or of the numbers below one."""
        return self._dealt(np.arange(values) if isinstance(values, int | np.integer) else np.asarray(values))

    def integers(self, low: int, high: int | None = None, size: Any = None, dtype: Any = np.int64) -> Any:
        """Whole numbers; from a large range, keys whose order is drawn."""
        low, high = (0, low) if high is None else (low, high)
        n = 1 if size is None else int(np.prod(size))
        if high - low >= SORT_KEYS:
            keys = self._keys(n).astype(dtype)
            return keys[0] if size is None else keys.reshape(size)
        drawn = [low + self.choose([1] * int(high - low)) for _ in range(n)]
        return drawn[0] if size is None else np.array(drawn, dtype=dtype).reshape(size)

    def random(self, size: Any) -> Any:
        """Numbers that are compared with each other only."""
        n = int(np.prod(size))
        return ((self._dealt(np.arange(n)) + 0.5) / max(n, 1)).reshape(size)

    def multivariate_hypergeometric(self, colors: Any, nsample: int, **_: Any) -> Any:
        """How many of each color are drawn."""
        left = [int(c) for c in colors]
        taken = [0] * len(left)
        for _i in range(int(nsample)):
            there = [i for i, n in enumerate(left) if n]
            i = there[self.choose([left[i] for i in there])]
            left[i], taken[i] = left[i] - 1, taken[i] + 1
        return np.array(taken, dtype=np.int64)

    def _keys(self, n: int) -> Ints:
        if self.rows is None or len(self.rows[0]) != n:
            return np.asarray(self._dealt(np.arange(n)), dtype=np.int64)
        keys, (tuples, cells) = np.empty(n, dtype=np.int64), self.rows
        for each in np.unique(tuples).tolist():
            mine = np.flatnonzero(tuples == each)
            order = self._dealt(cells[mine])
            for cell in np.unique(order).tolist():
                keys[mine[cells[mine] == cell]] = np.flatnonzero(order == cell)
        return keys

    def _dealt(self, values: Any) -> Any:
        """The values in random order; equal ones are the same to everybody."""
        left: dict[Any, int] = {}
        for value in values.tolist():
            left[value] = left.get(value, 0) + 1
        result = []
        while left:
            kinds = list(left)
            value = kinds[self.choose(list(left.values()))]
            result.append(value)
            left[value] -= 1
            if not left[value]:
                del left[value]
        return np.array(result, dtype=values.dtype)


def every_choice(most: int, rows: tuple[Ints, Ints] | None = None) -> Iterator[Choices]:
    """All sequences of choices, one after the other: run the method with each before asking for the next."""
    path: list[tuple[int, tuple[int, ...]]] = []
    for _ in range(most):
        choices = Choices(path, rows)
        yield choices
        following = choices.following()
        if following is None:
            return
        path = following
    raise TooManyChoices
