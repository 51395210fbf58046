"""Maximum disclosure by enumeration: every world, and every set of k implications with a common conclusion.

That such implications are enough is Theorem 9 of Martin et al. 2007, confirmed over all implications where worlds are
few (`tests/worlds/test_disclosure.py`); here they are tried for every person and value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

from tests.oracles.worlds import dealt

Value = str | None
World = tuple[Value, ...]


def deals(groups: Sequence[Sequence[int]], values: Sequence[Value]) -> list[World]:
    """Every different way to deal the values of each group to its rows; rows in no group keep theirs."""
    found = dealt([(group, [values[i] for i in group]) for group in groups])
    return [tuple(world.get(i, value) for i, value in enumerate(values)) for world in found]


def with_facts(buckets: Sequence[Sequence[Value]], k: int) -> Fraction:
    """The largest belief in a recorded value that k facts can bring about, when the buckets are all that is known."""
    rows = [v for bucket in buckets for v in bucket]
    at, groups = 0, []
    for bucket in buckets:
        groups.append(list(range(at, at + len(bucket))))
        at += len(bucket)
    return largest(deals(groups, rows), range(len(rows)), k)


def largest(worlds: Sequence[World], people: Iterable[int], k: int) -> Fraction:
    """The same when these worlds are left; facts are about these people."""
    everything, atoms = (1 << len(worlds)) - 1, atoms_of(worlds, people)
    return max(
        (
            largest_belief(everything, [target], [(everything & ~a) | target for a in atoms.values()], k)
            for target in {where for (_, value), where in atoms.items() if value is not None}
        ),
        default=Fraction(0),
    )


def atoms_of(worlds: Sequence[Sequence[Any]], people: Iterable[int]) -> dict[tuple[int, Any], int]:
    """What worlds say of these people: (person, value) → the worlds, as bits, in which that is so."""
    atoms: dict[tuple[int, Any], int] = {}
    for i in people:
        for bit, world in enumerate(worlds):
            atoms[i, world[i]] = atoms.get((i, world[i]), 0) | 1 << bit
    return atoms


def largest_belief(everything: int, targets: Iterable[int], facts: Iterable[int], k: int) -> Fraction:
    """The largest belief in a target that at most k of the facts can bring about; each is the worlds in which it holds.

    `everything`: all worlds, which is what somebody knows who is told nothing.
    """
    best, targets = Fraction(0), list(targets)
    for chosen in combinations_with_replacement(sorted({everything, *facts}), k):
        left = everything
        for fact in chosen:
            left &= fact
        for target in targets if left else ():
            best = max(best, Fraction((left & target).bit_count(), left.bit_count()))
    return best
