"""Random choices of the product: drawn, or every sequence of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from maskwright.worlds.sampling.choices import Choices


def chance(seed: int) -> random.Random:
    """Random choices of a test, the same for the same seed."""
    return random.Random(seed)  # noqa: S311


class Draws(Choices):
    """Choices that are drawn, and not enumerated."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance

    def choose(self, weights: Sequence[int]) -> int:
        if len(weights) == 1:
            return 0
        self.at += 1
        return self.chance.choices(range(len(weights)), weights)[0]
