"""Attacks that draw possible worlds, for a limited time."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from maskwright.domain.adversary import Adversary, Attack, Target
from maskwright.domain.beliefs import Beliefs


class Timed(Attack):
    """What such attacks have in common.

    Attributes:
        draws: on how many possible worlds the method is run again at most, for each table, and
        seconds: how long that may take, for all tables of a release together. The result says how far it got.
    """

    draws: int = Field(default=10_000, ge=10, le=10_000_000)
    seconds: float = Field(default=3.0, gt=0)

    def each(self, targets: Sequence[Target], adversary: Adversary) -> list[tuple[Target, Beliefs]]:
        """Beliefs for each table; tables share the time equally, and what one leaves is for those that follow."""
        found, left = list[tuple[Target, Beliefs]](), self.seconds
        tables = [target for target in targets if self.applies(target)]
        for i, target in enumerate(tables):
            share = self.model_copy(update={"seconds": left / (len(tables) - i)})
            beliefs = share.run(target, adversary)
            taken = beliefs.measures.get("looked at", {}).get("seconds", 0.0)
            left -= min(taken, share.seconds)  # a run that has begun is not stopped
            found.append((target, beliefs))
        return found
