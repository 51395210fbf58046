"""Even-split methods: what the refusal of a split gives away [Cormode et al. 2010].

A group is divided into children whose sizes differ by at most one row, and is published undivided because a child
violates ℓ-diversity. The worlds are those of the minimality attack; see `bounds` for what is believed at worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from maskwright.core.worlds.credibility import credibility_global


def even_split(sizes: Sequence[int], sensitive: int, ell: Fraction | int) -> list[Fraction] | None:
    """The belief that a row of each child is sensitive, after the split was refused; None without worlds.

    Args:
        sizes: the rows of each child.
        sensitive: the sensitive rows in the group.
        ell: the diversity that every child had to satisfy.
    """
    found = credibility_global(sizes, sensitive, ell, exact=True)
    return None if found is None else [Fraction(x) for x in found.values]
