"""MASK: k-anonymise on the quasi-identifiers, then disguise the classes that are not diverse [Wong et al. 2007].

Every class with too many people of a sensitive set is published with the share of a class that passes: some of
its sensitive values are replaced. The guarantee covers only an adversary who does not know MASK; for somebody who does,
a class that shows a high share may be a disguised one, and belief exceeds 1/l (docs, erratum W-5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.grouping import Changes, Grouping
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Decisions, Method, RowShare, Task
from maskwright.domain.sensitive import Chosen, Positive
from maskwright.errors import PolicyError, PolicyNotMet
from maskwright.kernels.partition import Int32s
from maskwright.methods._rows.anatomize import sensitive_attribute
from maskwright.methods._rows.group_requirement import refuse_guards, refuse_unless_met
from maskwright.methods._rows.rows import Rows, rows_of
from maskwright.methods.alpha_k_local import AlphaKLocal
from maskwright.methods.mondrian import Mondrian
from maskwright.methods.optimal_lattice import OptimalLattice
from maskwright.worlds.counting.mask_worlds import MaskPlan, mask_plan

NOTE = (
    "sensitive values were changed; the bound 1/l holds only for an adversary who does not know MASK, for others "
    "beliefs are measured"
)


class Mask(Method):
    """Makes classes k-anonymous on quasi-identifiers alone, then disguises those that are not diverse.

    Attributes:
        l: at most one person in l may be believed to hold the set (default: by a simple-l-diversity model).
        values: the sensitive set (default: by that model).
        attribute: the sensitive column, where there are several.
        base: the method that makes the classes: optimal-lattice, mondrian (relaxed cuts), or alpha-k-local (local
            recoding on taxonomies, here for the size of classes alone).
        suppression: the share of rows that optimal-lattice may suppress, by class size.
    """

    name: ClassVar[str] = "mask"

    l: Positive | None = None  # noqa: E741 - the literature's name
    values: Chosen | None = None
    attribute: str | None = None
    base: Literal["optimal-lattice", "mondrian", "alpha-k-local"] = "optimal-lattice"
    suppression: RowShare = Field(default=0, validate_default=True)

    def decisions(self) -> Decisions:
        """Values are disguised."""
        return Decisions(shape="disguise")

    def group(self, task: Task) -> Grouping:
        """Group by the base method, then disguise the classes that are not diverse."""
        refuse_guards(task, self.name)
        attribute = sensitive_attribute(task, self.attribute, self.name)
        ell, codes = self._target(task, attribute)
        base = self._base(task)
        known = task.context.hierarchies.get(attribute)
        grouping = _Disguise(base, attribute, codes, ell, task.rng, known).run()
        refuse_unless_met(task, grouping.published_classes, "after disguising")
        return grouping

    def _target(self, task: Task, attribute: str) -> tuple[Fraction, NDArray[np.bool_]]:
        """l, and which codes are sensitive."""
        domain = task.summary.sensitive[attribute].values
        ell, sensitive = self.l, None
        if self.values is not None:
            unknown = [v for v in self.values if v not in domain]
            if unknown:
                raise PolicyError(f"method mask: the value {unknown[0]!r} does not occur in {attribute!r}")
            sensitive = [domain.index(v) + 1 for v in self.values]
        rules = [
            r.cap for m in task.search for r in m.kernel(task.context) or ()
            if r.cap is not None and r.looks_at == attribute
        ]  # fmt: skip
        if ell is None or sensitive is None:
            if len(rules) != 1 or rules[0].sets is None or len(rules[0].sets) != 1:
                raise PolicyError(
                    "method mask: say what to disguise: give `l` and `values`, or one simple-l-diversity with one "
                    "set of values"
                )
            ell, sensitive = ell or 1 / rules[0].share, sensitive or list(rules[0].sets[0])
        inside = np.zeros(len(domain) + 1, dtype=bool)
        inside[sensitive] = True
        return ell, inside

    def _base(self, task: Task) -> Grouping:
        """Classes made by looking at quasi-identifiers only."""
        sizes = [m for m in task.search if m.about == "quasi-identifiers"]
        if not sizes:
            raise PolicyError("method mask: say how large classes must be: require k-anonymity")
        only = replace(task, search=sizes)
        if self.base == "mondrian":
            return Mondrian(cut="relaxed").group(only)
        if self.base == "alpha-k-local":
            return AlphaKLocal().group(only)
        return OptimalLattice(suppression=self.suppression).group(only)


@dataclass(frozen=True, eq=False)
class _Disguise:
    """Steps 2 to 4 of MASK on the classes of a base method."""

    base: Grouping
    attribute: str
    sensitive: NDArray[np.bool_]  # by code
    ell: Fraction
    rng: np.random.Generator
    hierarchy: Hierarchy | None = None  # of the attribute

    def run(self) -> Grouping:
        """The grouping with its changed values."""
        counts = self.base.classes.sensitive[self.attribute]
        held = self._held(counts)
        plan = mask_plan(self.base.classes.sizes.tolist(), held.tolist(), self.ell)
        if plan.violating and not plan.models:
            raise PolicyNotMet(
                f"mask: {len(plan.violating)} classes have too many of the sensitive values and none has few enough "
                "to serve as a model for them; a larger k may do"
            )
        changes = self._changes(plan, held)
        published = {self.attribute: self._published(changes)}
        return replace(
            self.base, published=published, changes=changes,
            search={**self.base.search, "base": self.base.search, **self._words(plan, changes), "note": NOTE},
        )  # fmt: skip

    def _words(self, plan: MaskPlan, changes: Changes) -> dict[str, Any]:
        return {
            "disguised_classes": len(plan.violating),
            "model_classes": len(plan.models),
            "model_classes_wanted": plan.wanted,
            "changed_rows": int(changes.rows.sum()),
        }

    def _held(self, counts: ValueCounts) -> Ints:
        """The people of each class who hold a value of the set."""
        held = np.zeros(counts.n_classes, dtype=np.int64)
        np.add.at(held, counts.owner, np.where(self.sensitive[counts.codes], counts.counts, 0))
        return held

    def _changes(self, plan: MaskPlan, held: Ints) -> Changes:
        """For each violating class draw a share, keep so many sensitive rows at random, replace the others."""
        rows, parts = rows_of(self.base)
        codes = rows.values(self.attribute)
        order, start = parts.order, parts.start
        table = codes[order][~self.sensitive[codes[order]]]
        drawn: list[tuple[int, int, int]] = []
        for g in plan.violating:
            share = plan.shares[int(self.rng.integers(len(plan.shares)))]
            keep = int(share * int(self.base.classes.sizes[g]))
            inside = order[start[g] : start[g + 1]]
            positive = inside[self.sensitive[codes[inside]]]
            replaced = self._replaced(rows, positive, int(held[g]) - keep)
            harmless = codes[inside][~self.sensitive[codes[inside]]]
            pool = harmless if len(harmless) else table
            if not len(pool):
                raise PolicyNotMet(
                    "mask: every row holds a sensitive value; there is nothing to replace one by"
                )
            new = pool[self.rng.integers(0, len(pool), len(replaced))]
            drawn += zip(rows.cells[replaced].tolist(), [g] * len(replaced), new.tolist(), strict=True)
        return replace(_collected(self.attribute, drawn), hierarchy=self.hierarchy)

    def _replaced(self, rows: Rows, positive: Int32s, people: int) -> Int32s:
        """The sensitive rows of so many people of a class, drawn at random."""
        if rows.people is None:
            return self.rng.permutation(positive)[:people]
        drawn = self.rng.permutation(np.unique(rows.people[positive]))[:people]
        return positive[np.isin(rows.people[positive], drawn)]

    def _published(self, changes: Changes) -> ValueCounts:
        """Who is published with each value after the changes."""
        shown = replace(self.base, changes=changes).shown_cells(self.attribute)
        return self.base.summary.personal_counts(self.attribute, *shown, self.base.classes.n)


def _collected(attribute: str, drawn: Sequence[tuple[int, int, int]]) -> Changes:
    table = np.array(drawn, dtype=np.int64).reshape(-1, 3)
    unique, rows = np.unique(table, axis=0, return_counts=True)
    return Changes(
        attribute, unique[:, 0], unique[:, 1], unique[:, 2].astype(np.int32), rows.astype(np.int64)
    )
