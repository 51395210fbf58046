"""Beliefs: what an adversary thought before the release, and what the adversary may conclude after it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from maskwright.domain.exact import belief_text
from maskwright.domain.shown import Shown
from maskwright.domain.verdict import plain_number

Kind = Literal["exact", "sampled", "estimated", "bounded", "not computed"]
NOT_COMPUTED: Kind = "not computed"


@dataclass(frozen=True)
class Belief:
    """One belief about one kind of individual; `whom` and `why` are words for people.

    `interval` holds the ends between which the belief lies: of stated coverage when it was sampled, certain when
    it was computed in floating point or only bounded. Decisions use its upper end.
    """

    before: Fraction
    after: Fraction
    whom: str
    why: str
    interval: tuple[float, float] | None = None

    @property
    def upper(self) -> Fraction:
        """What decisions use: the upper end where a belief is only known to lie in an interval."""
        return self.after if self.interval is None else max(self.after, Fraction(self.interval[1]))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "before": plain_number(self.before),
            "after": plain_number(self.after),
            "whom": self.whom,
            "why": self.why,
            "interval": self.interval,
        }


@dataclass(frozen=True, repr=False)
class Beliefs(Shown):
    """The result of an attack.

    kind: "exact"; "sampled" (independent draws, `worst.interval` has stated coverage); "estimated" (the number
        rests on an assumption that `worst.why` names); "bounded" (nobody can believe more than `worst.after`);
        "not computed" (for the reason in `worst.why`; it counts as 1).
    measures: further figures by name (risk averages, shares of rows above a bound, distributions). Attacks on
        sensitive values count in `dropped_people` and `values_not_flagged` what their worst belief leaves out.
    """

    attack: str
    adversary: str
    kind: Kind
    worst: Belief
    measures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def earlier(self) -> str:
        """What `before` is about, in words: the time before the release, or the release without further knowledge."""
        knowing = {"facts", "consistent"} & self.measures.keys()
        return "without that knowledge" if knowing else "before the release"

    @property
    def at_most(self) -> str:
        """Before the number of a bound, which nobody's belief need reach, in words."""
        return "at most " if self.kind == "bounded" else ""

    def headline(self) -> str:
        """The attack, its kind, and its worst belief."""
        if self.kind == NOT_COMPUTED:
            return f"{self.attack}, NOT COMPUTED"
        worst = self.worst
        return f"{self.attack} ({self.kind}), at worst {belief_text(worst.after)}, before {belief_text(worst.before)}"

    def sentence(self) -> str:
        """One line for people."""
        if self.kind == NOT_COMPUTED:
            return f"{self.attack}: NOT COMPUTED, so it counts as 1: {self.worst.why}"
        if idle := self.measures.get("idle"):
            return f"{self.attack}: no finding ({belief_text(self.worst.after)}), because {idle}"
        return (
            f"{self.attack}: at worst {belief_text(self.worst.after)} ({self.earlier}: "
            f"{belief_text(self.worst.before)}) "
            f"for {self.worst.whom}; {self.worst.why}"
        )

    @staticmethod
    def of(stored: Mapping[str, Any]) -> Beliefs:
        """What `as_dict` stored; numbers among the measures stay texts."""
        worst, interval = stored["worst"], stored["worst"]["interval"]
        return Beliefs(
            stored["attack"], stored["adversary"], stored["kind"],
            Belief(
                Fraction(worst["before"]), Fraction(worst["after"]), worst["whom"], worst["why"],
                None if interval is None else (float(interval[0]), float(interval[1])),
            ),
            stored["measures"],
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """The result for JSON."""
        return {
            "attack": self.attack,
            "adversary": self.adversary,
            "kind": self.kind,
            "worst": self.worst.as_dict(),
            "measures": _jsonable(self.measures),
        }


def _jsonable(value: Any) -> Any:
    """Measures as JSON can hold them; fractions become text."""
    if isinstance(value, Belief):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(v) for v in value]
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        return value
    return plain_number(value)


def rounded_belief(value: float) -> Fraction:
    """A measured belief, rounded up to one in a million."""
    return min(Fraction(1), Fraction(math.ceil(value * 1_000_000 - 1e-6), 1_000_000))
