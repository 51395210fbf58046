"""Classes: what a privacy model looks at. Sizes, and how often each sensitive value occurs in each class.

`Ancestors` are the larger groups that classes were split from, as a tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.exact import exact_bincount, sorted_distinct
from maskwright.domain.guards import Guards, merged_guards

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Sparse counts (class, value) → people, stored by class (compressed rows).

    Class c holds entries `start[c]:start[c + 1]`. Code v stands for `values[v - 1]`; code 0 is missing, which
    is counted but is no value. `ordered`: the values are in a meaningful order (numbers, a declared order).
    """

    values: tuple[str, ...]
    start: Ints
    codes: NDArray[np.int32]
    counts: Ints
    ordered: bool = False

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.start) - 1

    @cached_property
    def owner(self) -> Ints:
        """The class of each entry."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.start))

    @cached_property
    def totals(self) -> Ints:
        """How often each code occurs over all classes (index 0: missing)."""
        return _bincount(self.codes.astype(np.int64), self.counts, len(self.values) + 1)

    def of_class(self, c: int) -> dict[str | None, int]:
        """One class as a dictionary; missing is None."""
        part = slice(int(self.start[c]), int(self.start[c + 1]))
        return {
            (self.values[code - 1] if code else None): int(count)
            for code, count in zip(self.codes[part].tolist(), self.counts[part].tolist(), strict=True)
        }

    @staticmethod
    def collect(
        values: tuple[str, ...], n_classes: int, owner: Ints, codes: Ints, counts: Ints, ordered: bool = False
    ) -> ValueCounts:
        """Add up counts that may name the same (class, value) more than once."""
        radix = len(values) + 1
        if n_classes * radix >= 2**62:
            raise OverflowError("too many classes times sensitive values for one key")
        key = owner.astype(np.int64) * radix + codes
        if n_classes * radix <= max(1 << 22, 4 * len(key)):
            dense = _bincount(key, counts, n_classes * radix)
            unique = np.flatnonzero(dense)
            total = dense[unique]
        elif (key[1:] > key[:-1]).all():
            unique, total = key, counts.astype(np.int64)
        else:
            unique, inverse = np.unique(key, return_inverse=True)
            total = _bincount(inverse, counts, len(unique))
        owners = unique // radix
        start = np.searchsorted(owners, np.arange(n_classes + 1)).astype(np.int64)
        return ValueCounts(values, start, (unique % radix).astype(np.int32), total, ordered)


def _bincount(index: Ints, weights: Ints, length: int) -> Ints:
    """Sum integer weights per index exactly (np.bincount would go through floats)."""
    if len(weights) == 0 or weights.sum(dtype=np.float64) < 2**52:
        return np.bincount(index, weights=weights, minlength=length).astype(np.int64)
    return exact_bincount(index, weights, length)


@dataclass(frozen=True, eq=False)
class Originals:
    """The classes of the raw table inside each published class: class c holds `sizes[start[c]:start[c + 1]]`."""

    start: Ints
    sizes: Ints

    @staticmethod
    def of(class_of: Ints, sizes: Ints, n_classes: int) -> Originals:
        """Raw class i, of `sizes[i]` people, was published in class `class_of[i]` (negative: in none)."""
        inside = np.flatnonzero(class_of >= 0)
        order = inside[np.argsort(class_of[inside], kind="stable")]
        return Originals(np.searchsorted(class_of[order], np.arange(n_classes + 1)), sizes[order])

    def take(self, keep: NDArray[np.bool_]) -> Originals:
        """The raw classes inside the chosen classes, which are numbered anew."""
        class_of = np.repeat(np.where(keep, np.cumsum(keep) - 1, -1), np.diff(self.start))
        return Originals.of(class_of, self.sizes, int(keep.sum()))


@dataclass(frozen=True, eq=False)
class Classes:
    """The equivalence classes of a table: `sizes` in people, `rows` in rows (the same without a unit).

    The rest is there only where a model needs it (`Model.needs`): `codes[a, c]` numbers the published label of
    `attributes[a]` in class c ("labels"); `population[c]` are the people of the population table who match class c
    ("population"); `originals` are the raw classes inside each class ("originals"); `ancestors` are the groups that
    the classes were split from, where the method keeps them ("ancestors"); `weights` are the sums of the survey weights
    of the people in each class, where there are any ("sample"); `guards` are, per sensitive attribute, the nodes that
    guard somebody of each class ("guards").

    `several` are the (class, person) pairs of people who may have rows in several classes; None: nobody has.
    """

    sizes: Ints
    rows: Ints
    sensitive: Mapping[str, ValueCounts] = field(default_factory=dict)
    attributes: tuple[str, ...] = ()
    codes: NDArray[np.int32] | None = None
    population: Ints | None = None
    originals: Originals | None = None
    ancestors: Ancestors | None = None
    weights: NDArray[np.float64] | None = None
    guards: Mapping[str, Guards] | None = None
    several: tuple[Ints, Ints] | None = None

    @property
    def n(self) -> int:
        """The number of classes."""
        return len(self.sizes)

    @property
    def n_people(self) -> int:
        """The number of people, each of them once."""
        if self.several is None:
            return int(self.sizes.sum())
        owner, person = self.several
        return int(self.sizes.sum()) - len(owner) + len(np.unique(person))

    def take(self, keep: NDArray[np.bool_]) -> Classes:
        """Only some of the classes."""
        number = np.cumsum(keep) - 1
        parts = {}
        for name, vc in self.sensitive.items():
            entry = keep[vc.owner]
            parts[name] = ValueCounts.collect(
                vc.values, int(keep.sum()), number[vc.owner[entry]], vc.codes[entry].astype(np.int64),
                vc.counts[entry], vc.ordered,
            )  # fmt: skip
        return Classes(
            self.sizes[keep], self.rows[keep], parts, self.attributes,
            None if self.codes is None else self.codes[:, keep],
            None if self.population is None else self.population[keep],
            None if self.originals is None else self.originals.take(keep),
            None if self.ancestors is None else self.ancestors.merged(np.where(keep, number, -1), int(keep.sum())),
            None if self.weights is None else self.weights[keep],
            merged_guards(self.guards, np.where(keep, number, -1)),
            None if self.several is None else kept_pairs(self.several, np.where(keep, number, -1)),
        )  # fmt: skip


def kept_pairs(pairs: tuple[Ints, Ints], class_of: Ints) -> tuple[Ints, Ints]:
    """The (class, person) pairs where class i is now class `class_of[i]` (−1: none), each once."""
    owner, person = class_of[pairs[0]], pairs[1]
    n = int(person.max(initial=0)) + 1
    keys = sorted_distinct(owner[owner >= 0] * n + person[owner >= 0])
    return keys // n, keys % n


@dataclass(frozen=True, eq=False)
class Ancestors:
    """A tree over `n` classes: node i < n is class i, the others are larger groups, in which their children lie.

    `parent[i]` is the node that node i was split from, and has a higher number; −1: it was not split from any.
    """

    n: int
    parent: Ints

    def __post_init__(self) -> None:
        number = np.arange(len(self.parent))
        higher = (self.parent > number) & (self.parent < len(number)) & (self.parent >= self.n)
        if len(number) < self.n or not (higher | (self.parent == -1)).all():
            raise ValueError("a group is split from a group with a higher number, or from none")

    def steps_up(self) -> Iterator[Ints]:
        """For each class its parent, then its grandparent and so on; −1 above the last."""
        node = self.parent[: self.n]
        while (node >= 0).any():
            yield node
            node = np.where(node >= 0, self.parent[node], -1)

    def sums(self, amounts: Ints) -> Ints:
        """The sum over the classes inside each node."""
        total = np.zeros(len(self.parent), dtype=np.int64)
        for node in self.steps_up():
            inside = node >= 0
            np.add.at(total, node[inside], amounts[inside])
        return total

    def merged(self, class_of: Ints, n: int) -> Ancestors:
        """The tree of classes that consist of several of these: `class_of[i]` is the new class of class i (−1: none).

        Groups that hold only a part of a new class are no supersets of it, and of nobody in a release that does
        not show which part: they are left out.
        """
        parts = np.bincount(class_of[class_of >= 0], minlength=n)
        whole = np.ones(len(self.parent), dtype=bool)
        inner = np.zeros(len(self.parent), dtype=bool)
        several = (class_of >= 0) & (parts[class_of] > 1)
        for node in self.steps_up():
            inner[node[(node >= 0) & (class_of >= 0)]] = True
        every = np.concatenate([np.empty(0, dtype=np.int64), *self._pairs(class_of, several)])
        pairs, members = np.unique(every, return_counts=True)
        of_pair, node = np.divmod(pairs, len(self.parent))
        whole[node[members < parts[of_pair]]] = False
        kept = np.flatnonzero(whole & inner)
        number = np.full(len(self.parent) + 1, -1, dtype=np.int64)  # the last entry: above the last node
        number[kept] = n + np.arange(len(kept))
        nearest = self._nearest(number)
        parent = np.full(n + len(kept), -1, dtype=np.int64)
        there = np.flatnonzero(class_of >= 0)
        parent[class_of[there]] = nearest[there]
        parent[n:] = nearest[kept]
        return Ancestors(n, parent)

    def _pairs(self, class_of: Ints, chosen: NDArray[np.bool_]) -> Iterator[Ints]:
        """(new class, ancestor of a part of it) as one number, once for each part."""
        for node in self.steps_up():
            inside = chosen & (node >= 0)
            yield class_of[inside] * len(self.parent) + node[inside]

    def _nearest(self, number: Ints) -> Ints:
        """The new number of the nearest ancestor of each node that has one; −1: none has."""
        found = np.full(len(self.parent) + 1, -1, dtype=np.int64)
        node = self.parent
        while (node >= 0).any():
            here = number[node]
            found[:-1] = np.where(found[:-1] < 0, here, found[:-1])
            node = np.where(node >= 0, self.parent[node], -1)
        return found[:-1]


def tree_of(leaves: Ints, parent: Ints) -> Ancestors:
    """From numbers given from the root down: `leaves[i]` is the number of class i, `parent` that of each number."""
    n = len(leaves)
    inner = np.ones(len(parent), dtype=bool)
    inner[leaves] = False
    number = np.empty(len(parent) + 1, dtype=np.int64)
    number[-1] = -1  # what has no parent
    number[leaves] = np.arange(n)
    number[:-1][inner] = n + np.arange(int(inner.sum()))[::-1]  # children first
    result = np.empty(len(parent), dtype=np.int64)
    result[number[:-1]] = number[parent]
    return Ancestors(n, result)
