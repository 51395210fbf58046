"""t-closeness: no class is distributed much unlike the whole table [Li, Li, Venkatasubramanian 2007]."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes
from maskwright.domain.distances import Kind, ValueTree, class_distances
from maskwright.domain.exact import text_of
from maskwright.domain.model import Context
from maskwright.domain.rules import Closeness, Rule
from maskwright.domain.segments import Ratios, rounded_up
from maskwright.domain.sensitive import NotNegative, SensitiveModel, kernel_attribute, tree_of
from maskwright.domain.verdict import Verdict

HALF = Fraction(1, 2)
KERNEL_VALUES = 500  # a rule lists the set of each prefix or node; beyond this many values that is no help


class TCloseness(SensitiveModel):
    """The sensitive values of every class are distributed as in the whole table, up to a distance t.

    Attributes:
        t: the largest distance (0: exactly as in the whole table; 1: anything).
        attribute: the sensitive column; each of them when it is not named.
        distance: equal (half the sum of differences), ordered (values in a row, as numbers are), or
            hierarchical (by the hierarchy of the sensitive column).
    """

    name: ClassVar[str] = "t-closeness"
    of_bits: ClassVar[bool] = True
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = False

    t: NotNegative
    distance: Kind = "equal"

    def _distances(self, classes: Classes, context: Context) -> Ratios:
        tree = tree_of(self, self.distance, classes, context)
        return class_distances(self.counts(classes), self.reference(classes, context), self.distance, tree)

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes at a distance of at most t from the reference."""
        return self._distances(classes, context).at_most(self.t)

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the distance of each class from the reference."""
        values = self._distances(classes, context)
        what = f"distance ({self.distance}) from the {'published' if context.published else 'whole'} table"
        return self.verdict(
            values.at_most(self.t), values, values.argmax(), f"at most {text_of(self.t)}", what
        )

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The largest of these distances as t."""
        values = self._distances(classes, context)
        worst = values.argmax()
        return None if worst is None else f"t: {rounded_up(values[worst])}"

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """The rule on the distance; None where its sets of values are not known, or too many."""
        attribute = kernel_attribute(self, context)
        if attribute is None or attribute not in context.reference:
            return None
        whole = (0, *context.reference[attribute][1:].tolist())
        m = len(whole) - 1
        if sum(whole) == 0 or m < 2:
            return None
        sets = self._sets(attribute, m, context)
        return None if sets is None else (Closeness(attribute, self.t, whole, tuple(sets)),)

    def _sets(
        self, attribute: str, m: int, context: Context
    ) -> list[tuple[Fraction, tuple[int, ...]]] | None:
        if self.distance == "equal":
            return [(HALF, (v,)) for v in range(1, m + 1)]
        if m > KERNEL_VALUES:
            return None
        if self.distance == "ordered":
            return [(Fraction(1, m - 1), tuple(range(1, i + 1))) for i in range(1, m)]
        if attribute in context.trees:
            return context.trees[attribute].sets()
        hierarchy = context.hierarchies.get(attribute)
        values = context.domains.get(attribute)  # codes follow the domain, whatever the hierarchy's own order
        if hierarchy is None or values is None or len(values) != m:
            return None
        return ValueTree.of_hierarchy(hierarchy, values).sets()
