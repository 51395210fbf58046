"""Perturbed columns: which row is a person's, to somebody who knows the true numbers and the way they were changed.

What linkage finds is measured on the published rows when the release is made (perturb/publication.py), and kept.
"""

from __future__ import annotations

from typing import Any, ClassVar

from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs, rounded_belief


class PerturbedColumns(Attack):
    """The belief in which row is somebody's, from true numbers that are published with changes."""

    name: ClassVar[str] = "perturbed-columns"
    about: ClassVar[About] = "rows"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"method", "values"})

    def applies(self, target: Target) -> bool:
        """Whether columns are published with changes, and what that leaves was measured."""
        return bool(target.perturbed)

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief from any of these columns, or from all of them together."""
        found = target.perturbed["linkage"]
        worst = max(found, key=lambda f: (f["in_class"]["worst"], f["in_class"]["truth"]))
        figures = worst["in_class"]
        columns = " and ".join(worst["columns"])
        belief = Belief(
            rounded_belief(figures["before"]), rounded_belief(figures["worst"]), "somebody whose class is known",
            f"and the true value of {columns}, with the method ({worst['way']}) and its settings; on average it is "
            f"{figures['truth']:.1%}, by the class alone {figures['before']:.1%}",
        )  # fmt: skip
        measures: dict[str, Any] = {"perturbed": target.perturbed}
        whole = all(f["in_class"]["whole"] for f in found)
        return Beliefs(self.name, adversary.name, "exact" if whole else "estimated", belief, measures)
