"""Maximum disclosure by enumeration: every world, and every set of k implications with a common conclusion.

That such implications are enough is Theorem 9 of Martin et al. 2007, confirmed over all implications where worlds are
few (`tests/core/test_disclosure.py`); here they are tried for every person and value.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from tests.knowledge_worlds import Worlds

Values = Sequence[str | None]


def with_facts(buckets: Sequence[Values], k: int) -> Fraction:
    """The largest belief in a recorded value that k facts can bring about."""
    return largest(Worlds(buckets), k)


def largest(worlds: Worlds, k: int) -> Fraction:
    best = Fraction(0)
    atoms = list(dict.fromkeys(worlds.atoms.values()))
    for target in {where for atom, where in worlds.atoms.items() if atom.value is not None}:
        facts = list(dict.fromkeys((worlds.all & ~a) | target for a in atoms))
        for chosen in combinations(facts, min(k, len(facts))):
            left = worlds.all
            for fact in chosen:
                left &= fact
            if left:
                best = max(best, Fraction((left & target).bit_count(), left.bit_count()))
    return best
