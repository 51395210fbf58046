"""Generalise: one table in which every quasi-identifier carries the label of its group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maskwright.core.grouping import Grouping
from maskwright.core.plan import ColumnMap, Plan


def plan(grouping: Grouping, columns: Sequence[str], drop_missing: Sequence[str], key: str) -> Plan:
    """A full-domain grouping as one map per column and the list of suppressed tuples."""
    if grouping.levels is None:
        raise ValueError("this grouping is not full-domain; its rows cannot be recoded column by column")
    maps = []
    for hierarchy, index in zip(grouping.summary.attributes, grouping.levels, strict=True):
        level = hierarchy.levels[index]
        texts = tuple(level.labels[block] for block in level.blocks.tolist())
        maps.append(ColumnMap(hierarchy, texts, identity=index == 0))
    away = grouping.allocation.groups < 0
    if grouping.starred is not None:
        away = away | (grouping.allocation.groups == grouping.starred)
    suppressed = grouping.summary.codes[:, grouping.allocation.tuples[away]]
    return Plan(
        columns=tuple(columns),
        maps=tuple(maps),
        suppressed=np.ascontiguousarray(suppressed),
        star=grouping.starred is not None,
        drop_missing=tuple(drop_missing),
        key=key,
    )
