"""Perturbed numbers: how near one comes to somebody's number by what is published in its place.

Requirements are counted on the true values as if these were published. What is published instead may tell more of one
class than they would: two incomes that are far apart may be drawn to the same mean. It is measured when the release is
made (perturb/near_truth.py), and kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from maskwright.attacks._shared.secrets import columns_of
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs, Kind, rounded_belief
from maskwright.domain.exact import percent_text
from maskwright.domain.near_numbers import NumberWindows

ASSUMED = "how numbers were changed is taken into account, how the groups were made is not"


class PerturbedNumbers(Attack):
    """The belief that somebody's number lies near one that can be named, from numbers that were changed."""

    name: ClassVar[str] = "perturbed-numbers"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"method"})
    many_values: ClassVar[bool] = True

    def applies(self, target: Target) -> bool:
        """Whether a requirement asks how near anybody may come to numbers that are changed, and it was computed."""
        found = _concerning(target)
        return bool(found) and not any(f["why_not"] for f in found)

    def unable(self, target: Target) -> str:
        """Why it was not computed."""
        return next((f["why_not"] for f in _concerning(target) if f["why_not"]), "")

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief of a class."""
        found = _concerning(target)
        worst = max(found, key=lambda f: f["worst"])
        belief = Belief(
            rounded_belief(worst["before"]), rounded_belief(worst["worst"]),
            f"somebody in a class of {worst['rows']}",
            f"whoever knows how {worst['column']} is distributed and was changed can name a number within "
            f"{percent_text(Fraction(worst['within']))} of the true one: it is {worst['low']} to {worst['high']}",
        )  # fmt: skip
        measures = {"near_truth": found, "method assumed": ASSUMED}
        kind: Kind = "exact" if all(f["whole"] for f in found) else "estimated"
        return Beliefs(self.name, adversary.name, kind, belief, measures)


def _concerning(target: Target) -> list[Mapping[str, Any]]:
    """What was computed about the numbers in question."""
    found = [f for f in target.perturbed.get("near_truth", ()) if f["column"] in columns_of(target)]
    if target.secrets is None:
        return found
    asked = {n: s.within for n, s in target.secrets.items() if isinstance(s, NumberWindows)}
    return [f for f in found if asked.get(f["column"]) == Fraction(f["within"])]
