"""The privacy budget of a table: what its differentially private releases have spent, and what they may."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from maskwright.domain.exact import text_of
from maskwright.domain.method import Method
from maskwright.errors import PolicyError, UsageError
from maskwright.pipeline import history
from maskwright.pipeline.job import Job
from maskwright.pipeline.random_keys import Chance

NOTHING = (Fraction(0), 0.0)


@dataclass(frozen=True)
class PrivacyBudget:
    """What other releases of a table spent before this one; the same policy again is the same release, and free.

    Attributes:
        spent: their epsilons and deltas, added up.
        policies: the policies (hashes) that made them.
        again: this release was made before, so that it spends nothing.
    """

    spent: tuple[Fraction, float] = NOTHING
    policies: frozenset[str] = frozenset()
    again: bool = False

    @staticmethod
    def of(method: Method, fingerprint: str, policy: str, key: str) -> PrivacyBudget:
        """The budget of a table; of a method that is not differentially private nothing is looked up."""
        if method.privacy() is None:
            return PrivacyBudget()
        known = history.spent_before(fingerprint)
        others = [one for one in known if (one.policy, one.key) != (policy, key)]
        again = len(others) < len(known)
        total = sum((one.epsilon for one in others), Fraction(0)), sum(one.delta for one in others)
        return PrivacyBudget(total, frozenset(one.policy for one in others), again)

    def refuse_overspending(self, method: Method) -> None:
        """Refuse a release that would spend more than its policy allows all releases together."""
        privacy = method.privacy()
        if privacy is None or not self.policies or self.again:
            return
        epsilon, delta = privacy.epsilon + self.spent[0], privacy.delta + self.spent[1]
        if epsilon <= privacy.allowed[0] and delta <= privacy.allowed[1]:
            return
        many = f"{len(self.policies)} other release{'s' if len(self.policies) > 1 else ''}"
        raise PolicyError(
            f"method: {many} of this table spent epsilon {text_of(self.spent[0])} and delta {self.spent[1]:.3g}, and "
            f"what releases reveal adds up: with this one epsilon {text_of(epsilon)} and delta {delta:.3g}. Hand out "
            "the earlier release again (the same policy makes the same one, and spends nothing), or allow this much, "
            f"total_epsilon: {text_of(epsilon)}, total_delta: {_rounded_up(delta)}"
        )


def refuse_guessable(job: Job, chance: Chance, method: Method) -> None:
    """Refuse random choices that somebody could guess, or draw again, where rows are protected by them."""
    if method.privacy() is None or job.trial:  # nothing of a trial is published
        return
    if chance.seeded:
        raise UsageError(
            f"whoever guesses the seed knows which rows {method.name} kept: that voids differential privacy; run it "
            "without a seed"
        )
    if not chance.repeatable:
        raise UsageError(
            f"the installation key could not be kept ({chance.why_not_kept}), so {method.name} could be drawn "
            "again and again, each time at the cost of epsilon; name a folder that can be written to in "
            "MASKWRIGHT_STATE"
        )
    if job.sequel is not None:
        raise UsageError(
            f"a release after another one (--after) has people and groups of that one, which voids the differential "
            f"privacy of {method.name}; make it by itself"
        )
    if job.engine == "spark":
        raise UsageError(
            f"{method.name} is not proven to draw by cryptographic randomness on Spark; use DuckDB"
        )


def _rounded_up(delta: float) -> str:
    """A number of three digits that is no smaller."""
    if not delta:
        return "0"
    place = math.floor(math.log10(delta)) - 2
    return f"{math.ceil(delta / 10.0**place) * 10.0**place:.3g}"
