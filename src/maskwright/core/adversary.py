"""Who attacks, and what an attack is."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from maskwright.core.beliefs import Beliefs
from maskwright.core.grouping import Grouping
from maskwright.core.settings import Registered


@dataclass(frozen=True)
class Adversary:
    """What somebody knows: who is in the table and their quasi-identifiers, the method, and some facts."""

    name: str = "neighbour"
    knows_method: bool = False
    facts: int = 0


class Attack(Registered):
    """Plays the adversary against a grouping and says what may be believed afterwards."""

    @abstractmethod
    def run(self, grouping: Grouping, adversary: Adversary) -> Beliefs:
        """Attack one release."""
