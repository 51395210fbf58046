"""A plan: what the engine must write. Made from a grouping by `maskwright/recode`, carried out by an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskwright.core.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class ColumnMap:
    """How one quasi-identifier is published: the text for each code of its hierarchy.

    `identity`: the column is not recoded, so it keeps the type it had in the source.
    """

    hierarchy: Hierarchy
    texts: tuple[str | None, ...]
    identity: bool


@dataclass(frozen=True, eq=False)
class Plan:
    """Full-domain recoding: one map per quasi-identifier, and the tuples that are suppressed.

    Attributes:
        columns: the published columns in order; those without a map are passed through.
        maps: one per quasi-identifier, in the order of the summary's attributes.
        suppressed: codes of the suppressed tuples, one row per attribute, one column per tuple.
        star: publish suppressed rows with every quasi-identifier `*`; otherwise they are dropped.
        drop_missing: rows with a missing value in one of these columns are left out.
        key: the secret that orders the published rows (256 bits, hexadecimal).
    """

    columns: Sequence[str]
    maps: Sequence[ColumnMap]
    suppressed: NDArray[np.int32]
    star: bool
    drop_missing: Sequence[str]
    key: str
