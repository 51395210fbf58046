"""Personalised privacy: everybody says which part of the sensitive values must not be known [Xiao, Tao 2006]."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import StringConstraints

from maskwright.domain.classes import Classes
from maskwright.domain.exact import text_of
from maskwright.domain.guards import Guards
from maskwright.domain.model import Context, Need
from maskwright.domain.segments import Ratios
from maskwright.domain.sensitive import SensitiveModel, Share
from maskwright.domain.verdict import Verdict
from maskwright.errors import PolicyError


class PersonalisedPrivacy(SensitiveModel):
    """Nobody's value is believed, with more than p, to lie under the node of the hierarchy that guards the person.

    Attributes:
        p: the largest share of a class that may lie under a node which guards somebody in it.
        guarding: the column with the guarding node of each person; it is counted and never published.
        unnamed: people for whom the column is empty; unguarded: any value may be known of them.
        attribute: the sensitive column; each of them when it is not named.
    """

    name: ClassVar[str] = "personalised-privacy"
    merge_safe: ClassVar[bool] = False
    hereditary: ClassVar[bool] = False

    p: Share
    guarding: Annotated[str, StringConstraints(min_length=1)]
    unnamed: Literal["refuse", "unguarded"] = "refuse"

    def unfit_for_people(self) -> str:
        """Why it is not asked of people with several rows."""
        return (
            f"personalised-privacy counts a row for a person; require {{model: belief, max: {text_of(self.p)}}}, which "
            "is about some row of a person"
        )

    def needs(self) -> frozenset[Need]:
        """Which nodes guard somebody of a class."""
        return frozenset({"guards"})

    def _guards(self, classes: Classes) -> Guards:
        guards = (classes.guards or {}).get(self.attribute_of(classes))
        if guards is None:
            raise PolicyError(
                f"{self.name} cannot be checked here: the guarding column is never published, and only the run that "
                "reads it knows it"
            )
        return guards

    def _shares(self, classes: Classes) -> Ratios:
        return Ratios(self._guards(classes).largest_held(self.counts(classes)), classes.sizes)

    def passing(self, classes: Classes, context: Context) -> NDArray[np.bool_]:
        """Classes in which no node that guards somebody covers more than p of the people."""
        return self._shares(classes).at_most(self.p)

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the largest share of each class under a node that guards somebody in it."""
        shares = self._shares(classes)
        bound = f"at most {text_of(self.p)}"
        return self.verdict(
            shares.at_most(self.p), shares, shares.argmax(), bound, "share under a guarding node"
        )

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The largest such share in these classes as `p`."""
        shares = self._shares(classes)
        worst = shares.argmax()
        return None if worst is None or shares[worst] == 0 else f"p: {shares[worst]}"
