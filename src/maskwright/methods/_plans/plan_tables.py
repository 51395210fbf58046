"""The tables of a plan: each subset of the sensitive attributes is grouped by a method of its own choice, once.

How close to the whole table such tables can be is measured over all full-domain recodings that are allowed: the least
largest distance of a class.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.association import Subset
from maskwright.domain.distances import class_distances
from maskwright.domain.exact import number_text
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Method, Piece, Task
from maskwright.domain.model import Need
from maskwright.domain.projection import task_for
from maskwright.domain.references import furnished_classes
from maskwright.errors import PolicyNotMet
from maskwright.methods._lattice.lattice import Lattice, group_tuples

MOST_CHECKS = 2000  # nodes times attributes: beyond this it takes more than a few seconds


@dataclass(eq=False)
class Projections:
    """Makes the table of a subset of attributes, or says why it cannot be made. Every subset is tried once.

    Attributes:
        task: the whole table.
        base: the method that groups each table.
        cap: the largest discernibility allowed of a table.
        made, refused: what was tried so far.
    """

    task: Task
    base: Method
    cap: int | None = None
    made: dict[Subset, Piece] = field(default_factory=dict)
    refused: dict[Subset, PolicyNotMet] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The sensitive attributes of the table."""
        return tuple(self.task.summary.sensitive)

    def good(self, subset: Subset) -> bool:
        """Can this table be made so that every requirement about it holds?"""
        if subset not in self.made and subset not in self.refused:
            self.task.progress.check()
            try:
                self.made[subset] = self._make(subset)
            except PolicyNotMet as reason:
                self.refused[subset] = reason
        return subset in self.made

    def _make(self, subset: Subset) -> Piece:
        task = task_for(self.task, [self.names[i] for i in subset])
        grouping = self.base.group(task)
        _refuse_failing_gates(task, grouping)
        if self.cap is not None and grouping.discernibility > self.cap:
            raise PolicyNotMet(
                f"discernibility is {grouping.discernibility}, asked at most {self.cap}"
                + ("; base: {objective: discernibility} may do better" if self.other_objective else "")
            )
        return Piece("data", task, self.base, grouping)

    @property
    def other_objective(self) -> bool:
        """Could the base method look for the least discernibility, but does not?"""
        return getattr(self.base, "objective", "discernibility") != "discernibility"

    def in_words(self, subset: Subset) -> str:
        """The names of the attributes of a subset."""
        return ", ".join(self.names[i] for i in subset)


def _refuse_failing_gates(task: Task, grouping: Grouping) -> None:
    needs = frozenset[Need]().union(*(model.needs() for model in task.gates))
    classes = furnished_classes(grouping, needs, task.census)
    classes = replace(classes, sensitive=grouping.published_classes.sensitive)
    for model in task.gates:
        verdict = model.check(classes, task.context)
        if not verdict.ok:
            worst = "" if verdict.worst is None else f" (best reached: {number_text(verdict.worst)})"
            near = model.nearest(classes, task.context)
            raise PolicyNotMet(verdict.sentence() + (f"; {near} would do" if near else worst))


@dataclass(eq=False)
class NodeCloseness:
    """`distance[c, a]` is the largest distance (equal) of a class from the whole table at candidate c, attribute a."""

    distance: NDArray[np.float64]
    known: dict[Subset, float] = field(default_factory=dict)

    def of(self, subset: Subset) -> float:
        """The closeness that a table with these attributes can reach."""
        if subset not in self.known:
            self.known[subset] = float(self.distance[:, list(subset)].max(axis=1).min())
        return self.known[subset]

    def levels(self, most: int = 3) -> list[float]:
        """A few closenesses between what singletons and what one table can reach."""
        n = self.distance.shape[1]
        low, high = max(self.of((i,)) for i in range(n)), self.of(tuple(range(n)))
        between = np.unique(self.distance[(self.distance >= low) & (self.distance < high)])
        if not len(between):
            return []
        return sorted({float(between[round(q * (len(between) - 1))]) for q in np.linspace(0, 1, most)})


def node_closeness(task: Task, cap: int | None = None, most: int = MOST_CHECKS) -> NodeCloseness | None:
    """The closeness at every node that satisfies the models about quasi-identifiers and a cap on discernibility.

    None: there is no such node, or there are too many to look at. Suppression is not considered.
    """
    summary = task.summary
    lattice = Lattice.of(summary.attributes, task.levels)
    if lattice.n_nodes * len(summary.sensitive) > most or summary.shared is not None:
        return None
    models = [m for m in (*task.search, *task.gates) if m.about == "quasi-identifiers" and not m.needs()]
    found = []
    for number in range(lattice.n_nodes):
        task.progress.check()
        group_of, n = group_tuples(summary, lattice.node(number))
        rows = np.bincount(group_of, weights=summary.rows, minlength=n)
        if cap is not None and float((rows * rows).sum()) > cap:
            continue
        if not all(m.passing(summary.classes(group_of, n), task.context).all() for m in models):
            continue
        classes = summary.classes(group_of, n)
        found.append(
            [
                max(map(float, class_distances(vc, task.context.reference[name], "equal")), default=0.0)
                for name, vc in classes.sensitive.items()
            ]
        )
    return NodeCloseness(np.array(found)) if found else None
