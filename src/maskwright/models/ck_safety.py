"""(c,k)-safety: whatever k implications an attacker knows, no belief reaches c [Martin et al. 2007].

A release is safe or not *as a whole*: the worst k pieces of knowledge may be about people of several classes.
So `check` measures for each class what it would disclose if it were the only one, and as `worst` the maximum
disclosure of all together. When the requirement fails, the classes that fail are those that reach c alone
and those that a worst attacker combines; without them the rest may still fail, and must be checked again.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator

from maskwright.domain.adversary import MOST_FACTS
from maskwright.domain.classes import Classes, ValueCounts
from maskwright.domain.exact import text_of
from maskwright.domain.model import Context
from maskwright.domain.segments import class_sums
from maskwright.domain.sensitive import SensitiveModel, Share
from maskwright.domain.verdict import Verdict
from maskwright.errors import PolicyError
from maskwright.kernels.max_disclosure import max_disclosure, measure_disclosure


def _whole(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError(f"{value!r} is not a whole number (write 0, 1, 2 …)")  # noqa: TRY004 - for pydantic
    return value


def _facts(value: int) -> int:
    if not 0 <= value <= MOST_FACTS:
        raise ValueError(f"{value} is not allowed; k is the number of known facts, 0 to {MOST_FACTS}")
    return value


class CkSafety(SensitiveModel):
    """Knowing any k implications between people's values, nobody's value can be believed with c or more.

    Attributes:
        c: the belief that must not be reached (strictly below c passes), above 0 and at most 1.
        k: how many implications the attacker knows; "p has not s" is one.
        attribute: the sensitive column; each of them when it is not named.
    """

    name: ClassVar[str] = "ck-safety"
    merge_safe: ClassVar[bool] = True  # Theorem 14: merging classes never raises the maximum disclosure
    hereditary: ClassVar[bool] = False  # {a,a,b,c} fails where its part {a,b,c} passes

    c: Share
    k: Annotated[int, BeforeValidator(_whole), AfterValidator(_facts)]

    def unfit_for_people(self) -> str:
        """Why it is not asked of people with several rows."""
        return (
            "ck-safety takes everybody to have one value; require {model: belief, max: "
            f"{text_of(self.c)}, adversary: insider, facts: {max(1, self.k)}}}, which is about some row of a person"
        )

    def is_local(self) -> bool:
        """No: implications connect people of different classes."""
        return False

    def check(self, classes: Classes, context: Context) -> Verdict:
        """Measure the maximum disclosure, and what each class would disclose by itself."""
        disclosure, alone, fails = measure_disclosure(self._buckets(classes), self.k, self.c)
        belief, witness = disclosure.implications[self.k], disclosure.witness(self.k)
        ok = belief < self.c
        if not ok and witness is not None:
            fails[list(witness.buckets)] = True
        return Verdict(
            self.name, self.parameters(), self.attribute_name(), ok, ~fails, alone,
            None if witness is None else belief, None if witness is None else witness.target.bucket,
            f"below {text_of(self.c)}", f"belief of an attacker with {_facts_in_words(self.k)}", self.use,
        )  # fmt: skip

    def nearest(self, classes: Classes, context: Context) -> str | None:
        """The most facts that these classes withstand; where they withstand none, the least c that would suffice."""
        if not classes.n:
            return None
        curve = max_disclosure(self._buckets(classes), self.k).implications
        withstood = [k for k, belief in enumerate(curve) if belief < self.c]
        if withstood:
            return f"k: {max(withstood)}"
        above = Fraction(math.floor(curve[self.k] * 10**6) + 1, 10**6)
        return f"c: {text_of(above)}" if above <= 1 else None

    def _buckets(self, classes: Classes) -> ValueCounts:
        """The counts; every person must have exactly one value, or be missing."""
        counts = self.counts(classes)
        several = int((class_sums(counts.counts, counts.start) != classes.sizes).sum())
        if several:
            where = "1 class" if several == 1 else f"{several} classes"
            raise PolicyError(
                f"ck-safety needs one value of {self.attribute_of(classes)!r} per person, but in {where} "
                "somebody has several; use another model for this column"
            )
        return counts


def _facts_in_words(k: int) -> str:
    return f"{k} known fact{'' if k == 1 else 's'}"
