"""Maximum disclosure by enumeration: every world, and every set of k implications with a common conclusion.

That such implications are enough is Theorem 9 of Martin et al. 2007, confirmed over all implications where worlds are
few (`tests/worlds/test_disclosure.py`); here they are tried for every person and value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product

Value = str | None
World = tuple[Value, ...]


def deals(groups: Sequence[Sequence[int]], values: Sequence[Value]) -> list[World]:
    """Every different way to deal the values of each group to its rows; rows in no group keep theirs."""
    found = []
    for dealt in product(*(sorted(set(permutations([values[i] for i in g])), key=repr) for g in groups)):
        world = list(values)
        for group, mine in zip(groups, dealt, strict=True):
            for i, v in zip(group, mine, strict=True):
                world[i] = v
        found.append(tuple(world))
    return found


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
    everything = (1 << len(worlds)) - 1
    atoms: dict[tuple[int, Value], int] = {}
    for i in people:
        for bit, world in enumerate(worlds):
            atoms[i, world[i]] = atoms.get((i, world[i]), 0) | 1 << bit
    best = Fraction(0)
    for target in {where for (_, value), where in atoms.items() if value is not None}:
        facts = list(dict.fromkeys((everything & ~a) | target for a in atoms.values()))
        for chosen in combinations(facts, min(k, len(facts))):
            left = everything
            for fact in chosen:
                left &= fact
            if left:
                best = max(best, Fraction((left & target).bit_count(), left.bit_count()))
    return best
