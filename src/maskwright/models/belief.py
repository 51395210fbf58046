"""Belief: nobody may be believed to hold a sensitive value with more than a stated probability, by a stated adversary.

What each class shows is the least that anybody believes, so that it is checked like any other requirement. What a
stronger adversary concludes is known only after the attack: the pipeline attacks the release before it is published
and decides by what the attacks found. Where a bound is proven for the method, the diversity that it needs is added
to the search before any row is read [Cormode et al. 2010, with the corrections of the documentation].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, field_validator, model_validator

from maskwright.domain.adversary import MOST_FACTS
from maskwright.domain.classes import Classes
from maskwright.domain.exact import Exact, text_of
from maskwright.domain.model import Context
from maskwright.domain.near_numbers import largest_window, number_windows, refuse_what_is_no_number
from maskwright.domain.rules import Rule
from maskwright.domain.segments import Ratios
from maskwright.domain.sensitive import Count, SensitiveModel, Sets, Share, largest_count, share_rules
from maskwright.domain.verdict import Verdict


def _below_one(value: Fraction) -> Fraction:
    if not 0 <= value < 1:
        raise ValueError(f"{value} is not allowed; write a share of the truth from 0 to below 1, e.g. 10%")
    return value


Within = Annotated[Exact, AfterValidator(_below_one)]


class BeliefAtMost(SensitiveModel):
    """After the release no adversary of this kind believes any sensitive value with more than max.

    Attributes:
        max: the largest belief in anybody's value, above 0 and at most 1.
        adversary: neighbour, journalist, knows-method, insider or learns, as the threat model defines them.
        facts: how many facts the insider knows (default 3).
        attribute: the sensitive column; each of them when it is not named.
        sets: holding *any* value of one of these sets is what must not be believed (default: each value).
        within: of numbers, what must not be believed is that somebody's lies near *any* that can be named: within this
            share of the truth, e.g. 10%.
    """

    name: ClassVar[str] = "belief"
    merge_safe: ClassVar[bool] = True
    hereditary: ClassVar[bool] = False
    share_setting: ClassVar[str] = "max"

    max: Share
    adversary: Literal["neighbour", "journalist", "knows-method", "insider", "learns"] = "knows-method"
    facts: Count | None = None
    sets: Sets | None = None
    within: Within | None = None
    use: Literal["search", "gate"] = "gate"

    @field_validator("use")
    @classmethod
    def _is_a_gate(cls, value: str) -> str:
        if value != "gate":
            raise ValueError(
                "belief is decided after the attack, so it cannot be searched for; leave `use` out: where a "
                "bound is proven for the method, the diversity that it needs is added to the search"
            )
        return value

    @model_validator(mode="after")
    def _knows_facts(self) -> BeliefAtMost:
        if self.facts is not None and self.adversary != "insider":
            raise ValueError(f"facts: only the insider knows facts, {self.adversary} does not; remove it")
        if self.facts is not None and self.facts > MOST_FACTS:
            raise ValueError(f"facts: {self.facts} is not allowed; at most {MOST_FACTS} facts can be known")
        return self

    @model_validator(mode="after")
    def _values_or_numbers(self) -> BeliefAtMost:
        if self.within is not None and self.sets is not None:
            raise ValueError(
                "within: numbers near the truth are what must not be believed, or the `sets` are; keep one"
            )
        return self

    def refuse_unknown(self, domains: Mapping[str, Sequence[str]]) -> None:
        """Refuse an `attribute` that is no sensitive column, and `within` of a column that holds no numbers."""
        super().refuse_unknown(domains)
        asked = [self.attribute] if self.attribute is not None else list(domains)
        for name in asked if self.within is not None else ():
            refuse_what_is_no_number(domains[name], name, f"{self.name}, within")

    def secrets_among(self, values: Sequence[str]) -> Sequence[tuple[str, ...]] | None:
        """What must not be believed of a column with these values, as sets of them; None: each value."""
        return self.sets if self.within is None else number_windows(tuple(values), self.within)

    def named_values(self) -> list[str]:
        """The values in `sets`."""
        return [v for members in self.sets or () for v in members]

    def shares(self, classes: Classes) -> Ratios:
        """Per class the largest share of a secret."""
        if self.within is not None:
            most = np.minimum(largest_window(self.counts(classes), self.within), classes.sizes)
            return Ratios(most, classes.sizes)
        return Ratios(largest_count(self.counts(classes), self.sets), classes.sizes)

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes that show no secret with a share above `max`."""
        return self.shares(classes).at_most(self.max)

    def kernel(self, context: Context) -> tuple[Rule, ...] | None:
        """The rule on the shares of secrets; None: numbers near the truth are no set that is named in advance."""
        if self.within is not None:
            return None
        return share_rules(self, self.max, self.sets, context)

    def check(self, classes: Classes, context: Context) -> Verdict:
        """What the classes alone show: the belief of a neighbour, and the least that any adversary believes."""
        shares = self.shares(classes)
        bound = f"at most {text_of(self.max)}"
        return self.verdict(
            shares.at_most(self.max), shares, shares.argmax(), bound, "belief from the class alone"
        )

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The largest share of a secret in these classes as `max`."""
        shares = self.shares(classes)
        worst = shares.argmax()
        return None if worst is None or shares[worst] == 0 else f"max: {shares[worst]}"
