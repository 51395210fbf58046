"""Background knowledge: the worst facts, against enumeration of worlds and of all implications."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from attacks.build import Values, release, target_of
from hypothesis import given, settings
from hypothesis import strategies as st
from knowledge_worlds import FIGURE_3, Worlds, chosen_facts
from support import summarise

from maskwright.attacks.background_knowledge import BackgroundKnowledge
from maskwright.core.adversary import Adversary, Target
from maskwright.core.hierarchy import Hierarchy


def attack(target: Target, facts: int = 0, **options: Any) -> Any:
    return BackgroundKnowledge(**options).run(target, Adversary("insider", facts=facts))


def named(groups: Any) -> list[dict[str, Values]]:
    return [{f"t{g}": values} for g, values in enumerate(groups)]
