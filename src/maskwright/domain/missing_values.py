"""Missing values: which cells have none. One rule for files and frames, engines and hierarchies.

A text loses the blanks at its ends; what is empty then, or one of the policy's tokens, is missing. So is not-a-number,
in a column of numbers. From there on missing is code 0 (`domain/hierarchy.py`). The rule as a query: `cleaned` in
`engines/sql/clauses.py`; what else means missing in one messy column: its `prepare`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from maskwright.domain.settings import Settings

# What Python's str.strip removes: the same blanks on every engine.
BLANKS = "".join(map(chr, (*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
                           0x2028, 0x2029, 0x202F, 0x205F, 0x3000)))  # fmt: skip
NOT_A_NUMBER = ("nan", "-nan", "NaN")  # as DuckDB and Spark print it


class Missing(Settings):
    """What counts as missing besides empty cells, and what happens to rows that have it."""

    tokens: tuple[str, ...] = Field((), description="texts that mean missing, e.g. '?', 'NA'")
    rows: Literal["keep", "drop"] = Field(
        "keep", description="keep: missing is a value of its own; drop: leave out rows with one"
    )
    wildcard: bool = Field(
        False, description="when risks in the population are estimated, a missing value matches every value"
    )


def missing_texts(tokens: Iterable[str]) -> frozenset[str]:
    """The texts that mean missing, without the blanks at their ends: the empty one, and every token."""
    return frozenset({"", *(token.strip() for token in tokens)})
