"""How close tables can be: over all full-domain recodings that are allowed, the least largest distance of a class."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from maskwright.core.association import Subset
from maskwright.core.distances import distances
from maskwright.core.method import Task
from maskwright.methods.lattice import Lattice, group_tuples

MOST_CHECKS = 2000  # nodes times attributes: beyond this it takes more than a few seconds


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
                max(map(float, distances(vc, task.context.reference[name], "equal")), default=0.0)
                for name, vc in classes.sensitive.items()
            ]
        )
    return NodeCloseness(np.array(found)) if found else None
