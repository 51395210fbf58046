"""(n,t)-closeness: each class is close to a natural superset of at least n people [Li, Li, Venkatasubramanian 2010]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ancestors, Classes, Ints, ValueCounts
from maskwright.domain.distances import Kind, class_distances
from maskwright.domain.exact import text_of
from maskwright.domain.model import Context, Need
from maskwright.domain.segments import Ratios, rounded_up
from maskwright.domain.sensitive import Count, NotNegative, SensitiveModel, tree_of
from maskwright.domain.verdict import Verdict
from maskwright.errors import PolicyError


class NtCloseness(SensitiveModel):
    """Every class is distributed like some larger group around it of at least n people, up to a distance t.

    The groups around a class are those it was split from, where the method keeps them, and the whole table.

    Attributes:
        n: the least number of people in the larger group.
        t: the largest distance from it.
        attribute: the sensitive column; each of them when it is not named.
        distance: equal, ordered or hierarchical, as for t-closeness.
    """

    name: ClassVar[str] = "nt-closeness"
    of_bits: ClassVar[bool] = True
    merge_safe: ClassVar[bool] = False
    hereditary: ClassVar[bool] = False

    n: Count
    t: NotNegative
    distance: Kind = "equal"

    def is_local(self) -> bool:
        """No: a class is compared with larger groups around it."""
        return False

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the distance of each class from the nearest group of at least n people around it."""
        values, enough = self._nearest_superset(classes, context)
        passes = values.at_most(self.t) & enough
        what = f"distance ({self.distance}) from the nearest group of at least {self.n} people"
        worst = values.argmax()
        return self.verdict(passes, values, worst, f"at most {text_of(self.t)}", what)

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The largest of these distances as t; None where a class has no large enough group around it."""
        values, enough = self._nearest_superset(classes, context)
        worst = values.argmax()
        return None if worst is None or not enough.all() else f"t: {rounded_up(values[worst])}"

    def _nearest_superset(self, classes: Classes, context: Context) -> tuple[Ratios, NDArray[np.bool_]]:
        """Per class the least distance from a superset that is large enough (1 if none is), and is there one."""
        best = Ratios(np.ones(classes.n, dtype=object), np.ones(classes.n, dtype=object))
        enough = np.zeros(classes.n, dtype=bool)
        counts, tree = self.counts(classes), tree_of(self, self.distance, classes, context)
        for reference, people, concerned in self._references(classes, counts, context):
            if people < self.n:
                continue
            found = class_distances(_part(counts, concerned), reference, self.distance, tree)
            for c, value in zip(concerned.tolist(), found, strict=True):
                if not enough[c] or value < best[c]:
                    best.numerators[c], best.denominators[c] = value.numerator, value.denominator
            enough[concerned] = True
        return best, enough

    def needs(self) -> frozenset[Need]:
        """The groups that classes were split from."""
        return frozenset({"ancestors"})

    def _references(
        self, classes: Classes, counts: ValueCounts, context: Context
    ) -> Iterator[tuple[Ints, int, Ints]]:
        """Each superset, as counts by code and people, with the classes that may be compared with it."""
        for members, concerned in self._supersets(classes, context):
            if members is None:
                reference = self.reference(classes, context)
                yield reference, context.n_people or int(reference.sum()), concerned
            else:
                yield _union(counts, members), int(classes.sizes[list(members)].sum()), concerned
        if context.supersets is None and classes.ancestors is not None:
            yield from _ancestors(classes, classes.ancestors, counts, self.n)

    def _supersets(self, classes: Classes, context: Context) -> list[tuple[tuple[int, ...] | None, Ints]]:
        """Each superset (None: the whole table) with the classes that may be compared with it."""
        if context.supersets is None:
            return [(None, np.arange(classes.n))]
        if len(context.supersets) != classes.n:
            raise PolicyError(
                f"{self.name}: supersets are given for {len(context.supersets)} classes of {classes.n}"
            )
        concerned: dict[tuple[int, ...], list[int]] = {}
        for c, family in enumerate(context.supersets):
            for members in family:
                concerned.setdefault(tuple(sorted({int(i) for i in members})), []).append(c)
        return [(members, np.array(cs, dtype=np.int64)) for members, cs in concerned.items()]


def _ancestors(
    classes: Classes, tree: Ancestors, counts: ValueCounts, least: int
) -> Iterator[tuple[Ints, int, Ints]]:
    """The groups of at least so many people that classes were split from, each with the classes inside it."""
    people = tree.sums(classes.sizes)
    large = np.flatnonzero(people >= least)
    number = np.full(len(people) + 1, -1, dtype=np.int64)  # the last entry: above the root
    number[large] = np.arange(len(large))
    table = np.zeros((len(large), len(counts.values) + 1), dtype=np.int64)
    for node in tree.steps_up():
        at = number[node][counts.owner]
        np.add.at(table, (at[at >= 0], counts.codes[at >= 0]), counts.counts[at >= 0])
    for node in tree.steps_up():
        at = number[node]
        inside = np.flatnonzero(at >= 0)
        inside = inside[np.argsort(at[inside], kind="stable")]
        cuts = np.flatnonzero(np.diff(at[inside])) + 1
        for concerned in np.split(inside, cuts) if len(inside) else []:
            i = int(at[concerned[0]])
            yield table[i], int(people[large[i]]), concerned


def _part(counts: ValueCounts, classes: Ints) -> ValueCounts:
    """The counts of some classes, in the order given."""
    width = np.diff(counts.start)[classes]
    start = np.concatenate([[0], np.cumsum(width)])
    entries = np.repeat(counts.start[classes] - start[:-1], width) + np.arange(start[-1])
    return ValueCounts(counts.values, start, counts.codes[entries], counts.counts[entries], counts.ordered)


def _union(counts: ValueCounts, members: tuple[int, ...]) -> Ints:
    """Counts by code of several classes together."""
    return _part(counts, np.array(members, dtype=np.int64)).totals
