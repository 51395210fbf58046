"""Passing columns: what the columns that are published as they are tell about sensitive values.

An adversary knows the insensitive columns as well as the quasi-identifiers. Where a row shows them beside its sensitive
values they narrow the class down: the belief is the share of the secret among the rows that agree in all of them.
Where sensitive values are published apart from their rows, a column that goes together with a sensitive one gives it
away to whoever knows that it does: that is measured on the table itself, value by value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from maskwright.attacks._shared.secrets import NOTHING, accompanying_figures, columns_of, secrets_of
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, PassingBelief, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Classes
from maskwright.domain.segments import Ratios

RISK = 0.01  # of taking chance for an association, over all values of a column


class PassingColumns(Attack):
    """The belief in a sensitive value from the columns that are published as they are."""

    name: ClassVar[str] = "passing-columns"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()
    many_values: ClassVar[bool] = True

    def applies(self, target: Target) -> bool:
        """Whether passing columns were found to tell anything about the secrets in question."""
        return bool(_concerning(target))

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief from any passing column."""
        found = _concerning(target)
        worst = max((f.belief for f in found), key=lambda b: (b.upper, -b.before))
        measures: dict[str, Any] = {"attributes": {f.attribute: {"worst": f.belief} for f in found}}
        measures |= accompanying_figures(target, secrets_of(target))
        rows = all(f.in_rows for f in found)
        return Beliefs(self.name, adversary.name, "exact" if rows else "estimated", worst, measures)


def _concerning(target: Target) -> list[PassingBelief]:
    """What was computed about the secrets in question."""
    if target.secrets is None:
        return list(target.passing)
    return [
        p
        for p in target.passing
        if p.attribute in columns_of(target) and p.is_about(target.secrets[p.attribute])
    ]


def narrowed_belief(shares: Ratios, before: Belief, columns: Sequence[str]) -> Belief:
    """The worst belief among rows that agree in their class and in all passing columns."""
    worst = shares.argmax()
    if worst is None or shares[worst] == 0:
        return NOTHING
    return Belief(
        before.before, shares[worst], "somebody whose class and insensitive columns are known",
        f"of the rows that agree with theirs in {', '.join(columns)} too, this share holds the secret",
    )  # fmt: skip


def associated_belief(
    shares: Ratios, classes: Classes, largest: float, before: Belief, column: str
) -> Belief:
    """The worst belief from one value of a passing column, where chance alone does not explain more than a bound."""
    held = np.array([float(s) for s in shares])
    n = classes.sizes.astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = _relative_entropy(held, largest)
        surely = (held > largest) & (-n * distance <= np.log(RISK / max(1, classes.n)))
    if not surely.any():
        return NOTHING
    worst = int(np.flatnonzero(surely)[held[surely].argmax()])
    return Belief(
        before.before, shares[worst], f"each of {int(n[worst])} people with the same value of {column}",
        f"in the table this share of those with that value of {column} hold the secret, and {column} is published as "
        "it is",
    )  # fmt: skip


def _relative_entropy(p: Any, q: float) -> Any:
    """KL(p ‖ q) of two coins: n times it bounds the logarithm of the chance of a share p or more (Chernoff)."""
    heads = np.where(p > 0, p * np.log(p / q), 0.0)
    tails = np.where(p < 1, (1 - p) * np.log((1 - p) / max(1 - q, 1e-300)), 0.0)
    return heads + tails
