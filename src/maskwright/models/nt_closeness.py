"""(n,t)-closeness: each class is close to a natural superset of at least n people [Li, Li, Venkatasubramanian 2010]."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.core.classes import Classes, Ints, ValueCounts
from maskwright.core.distances import Kind, distances
from maskwright.core.exact import text_of
from maskwright.core.model import Context
from maskwright.core.segments import Ratios, rounded_up
from maskwright.core.sensitive import Count, NotNegative, SensitiveModel, tree_of
from maskwright.core.verdict import Verdict
from maskwright.errors import PolicyError


class NtCloseness(SensitiveModel):
    """Every class is distributed like some larger group around it of at least n people, up to a distance t.

    The groups around a class are those it was split from, where the method keeps them, else the whole table.

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
        return False

    def check(self, classes: Classes, context: Context) -> Verdict:
        values, enough = self._nearest_superset(classes, context)
        passes = values.at_most(self.t) & enough
        what = f"distance ({self.distance}) from the nearest group of at least {self.n} people"
        worst = values.argmax()
        return self.verdict(passes, values, worst, f"at most {text_of(self.t)}", what)

    def nearest(self, classes: Classes, context: Context) -> str | None:
        values, enough = self._nearest_superset(classes, context)
        worst = values.argmax()
        return None if worst is None or not enough.all() else f"t: {rounded_up(values[worst])}"

    def _nearest_superset(self, classes: Classes, context: Context) -> tuple[Ratios, NDArray[np.bool_]]:
        """Per class the least distance from a superset that is large enough (1 if none is), and is there one."""
        best = Ratios(np.ones(classes.n, dtype=object), np.ones(classes.n, dtype=object))
        enough = np.zeros(classes.n, dtype=bool)
        counts, tree = self.counts(classes), tree_of(self, self.distance, classes, context)
        for members, concerned in self._supersets(classes, context):
            if members is None:
                reference = self.reference(classes, context)
                people = max(context.n_people, int(reference.sum()))
            else:
                reference = _union(counts, members)
                people = int(classes.sizes[list(members)].sum())
            if people < self.n:
                continue
            found = distances(_part(counts, concerned), reference, self.distance, tree)
            for c, value in zip(concerned.tolist(), found, strict=True):
                if not enough[c] or value < best[c]:
                    best.numerators[c], best.denominators[c] = value.numerator, value.denominator
            enough[concerned] = True
        return best, enough

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


def _part(counts: ValueCounts, classes: Ints) -> ValueCounts:
    """The counts of some classes, in the order given."""
    width = np.diff(counts.start)[classes]
    start = np.concatenate([[0], np.cumsum(width)])
    entries = np.repeat(counts.start[classes] - start[:-1], width) + np.arange(start[-1])
    return ValueCounts(counts.values, start, counts.codes[entries], counts.counts[entries], counts.ordered)


def _union(counts: ValueCounts, members: tuple[int, ...]) -> Ints:
    """Counts by code of several classes together."""
    return _part(counts, np.array(members, dtype=np.int64)).totals
