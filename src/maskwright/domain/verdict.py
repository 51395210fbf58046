"""A verdict: not only whether a requirement holds, but the measured value of every group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.exact import belief_text, number_text
from maskwright.domain.promise import LABELS, Promise

Measured = Fraction | int | float


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a model measured.

    Attributes:
        model: the registered name, and `parameters` as in the policy.
        attribute: the sensitive attribute concerned, or None.
        ok: does every group satisfy the requirement?
        passes: the same per group.
        values: the measured value per group (its size, its share, its distance …).
        worst: the value of the group that is nearest to failing, or fails most; None without groups.
        worst_group: its number.
        bound: what was asked, as text ("at least 5").
        quantity: what `values` are, in words ("people in the class").
        use: "search" or "gate", as the policy says.
        status: of a requirement on belief: "guaranteed" (proven before any data were seen) or "measured", and
        why: the reason, in words.
        part: the table concerned, where a release has several parts.
        promises: of a requirement on belief, what is promised of each attribute, with every ingredient.
    """

    model: str
    parameters: dict[str, Any]
    attribute: str | None
    ok: bool
    passes: NDArray[np.bool_]
    values: Sequence[Measured] | NDArray[Any]
    worst: Measured | None
    worst_group: int | None
    bound: str
    quantity: str
    use: str = "search"
    status: Literal["guaranteed", "measured"] | None = None
    why: str = ""
    part: str | None = None
    promises: tuple[Promise, ...] = ()

    @property
    def failing(self) -> NDArray[np.int64]:
        """The numbers of the classes that fail."""
        return np.flatnonzero(~self.passes)

    def result(self) -> str:
        """What was measured, in one line for people."""
        about = f" of {self.attribute}" if self.attribute else ""
        about += f" in {self.part}" if self.part else ""
        if self.worst is None:
            return f"{self.model}{about}: nothing to measure"
        sign = (
            "holds"
            if self.ok
            else f"FAILS in {len(self.failing)} of {len(self.passes)} group{'s' if len(self.passes) != 1 else ''}"
        )
        if self.status is not None and not self.ok:
            sign = "FAILS"  # it is about the release as a whole
        text = f"{self.model}{about} {sign}: worst {self.quantity} {self.measured_text()}, asked {self.bound}"
        return f"{text}; {LABELS[self.status]}" if self.status else text

    def measured_text(self) -> str:
        """The worst that was measured, for people: shares and beliefs in percent."""
        if isinstance(self.worst, Fraction) and self.quantity.startswith(("share", "belief", "credibility")):
            return belief_text(self.worst)
        return "" if self.worst is None else number_text(self.worst)

    def sentence(self) -> str:
        """The result in a sentence, with what a requirement on belief rests on."""
        return f"{self.result()}: {self.why}" if self.status and self.worst is not None else self.result()

    def as_dict(self) -> dict[str, Any]:
        """For JSON: everything but the per-group arrays."""
        return {
            "model": self.model,
            "parameters": self.parameters,
            "attribute": self.attribute,
            **({"part": self.part} if self.part else {}),
            "ok": self.ok,
            "worst": None if self.worst is None else plain_number(self.worst),
            "asked": self.bound,
            "quantity": self.quantity,
            "groups": len(self.passes),
            "failing_groups": len(self.failing),
            "use": self.use,
        } | (
            {"status": self.status, "why": self.why, "promises": [p.as_dict() for p in self.promises]}
            if self.status
            else {}
        )


LONGEST_BITS = 10_000  # of a denominator: about 3,000 digits


def plain_number(value: Measured) -> int | float | str:
    """A number that JSON can hold without losing exactness.

    A fraction of thousands of digits, which Python does not write, is rounded up to thirty places.
    """
    if isinstance(value, Fraction):
        if value.denominator.bit_length() > LONGEST_BITS:
            value = Fraction(math.ceil(value * 10**30), 10**30)
        return int(value) if value.denominator == 1 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON has no infinity
    return int(value)


def parsed_number(value: str | float | int) -> Measured:
    """What `plain_number` made JSON of."""
    if not isinstance(value, str):
        return value
    return float(value) if value.strip("-") in ("inf", "nan") else Fraction(value)
