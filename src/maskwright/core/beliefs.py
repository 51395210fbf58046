"""Beliefs: what an adversary thought before the release, and what the adversary may conclude after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from maskwright.core.exact import show
from maskwright.core.verdict import plain


@dataclass(frozen=True)
class Belief:
    """One belief about one kind of individual; `whom` and `why` are words for people."""

    before: Fraction
    after: Fraction
    whom: str
    why: str
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Beliefs:
    """The result of an attack.

    kind: "exact", "sampled" (independent draws, `worst.interval` has stated coverage) or "estimated".
    measures: further figures by name (risk averages, shares of rows above a bound, distributions).
    """

    attack: str
    adversary: str
    kind: Literal["exact", "sampled", "estimated"]
    worst: Belief
    measures: Mapping[str, Any] = field(default_factory=dict)

    def sentence(self) -> str:
        return (
            f"{self.attack}: at worst {show(self.worst.after)} (before the release: {show(self.worst.before)}) "
            f"for {self.worst.whom}; {self.worst.why}"
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "adversary": self.adversary,
            "kind": self.kind,
            "worst": {
                "before": plain(self.worst.before),
                "after": plain(self.worst.after),
                "whom": self.worst.whom,
                "why": self.worst.why,
                "interval": self.worst.interval,
            },
            "measures": {
                k: plain(v) if isinstance(v, (int, float, Fraction)) else v for k, v in self.measures.items()
            },
        }
