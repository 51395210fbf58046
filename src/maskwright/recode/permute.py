"""Permute: one table with exact quasi-identifiers, sensitive values shuffled inside the groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maskwright.core.grouping import Grouping
from maskwright.core.plan import GroupPlan
from maskwright.recode.blocks import shuffled


def plan(
    grouping: Grouping,
    columns: Sequence[str],
    drop_missing: Sequence[str],
    key: str,
    rng: np.random.Generator,
    *,
    exact: bool = True,
    together: Sequence[Sequence[str]] = (),
    group_column: str = "group",
) -> GroupPlan:
    """What `Engine.recode` writes as one table; for the arguments see `recode/blocks.py`."""
    return shuffled(grouping, columns, drop_missing, key, rng, exact, together, group_column)
