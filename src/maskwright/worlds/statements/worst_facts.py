"""The worst k facts on top of any set of possible worlds: for an adversary who knows the method, too.

Maximum disclosure [Martin et al. 2007] takes all orders of a bucket's values to be equally likely. What a method gives
away leaves some of them out. Its central fact survives:

**Lemma.** Whatever the distribution over worlds, k basic implications raise the belief in an atom A most when they are
A_1 → A, …, A_k → A for some atoms. *Why.* Replace each implication (all of some atoms → one of others) by "its first
atom → A". All of these are true wherever A is, so that P(A and what is known) = P(A) does not shrink. Where A is false,
they say that no A_i is true; but then every implication that was replaced holds, its first atom being false: the worlds
that remain without A are among those that remained before. ∎

So belief is 1/(1 + R), R the least P(none of A, A_1 … A_k)/P(A), found here by going through all sets of atoms. Blocks
of worlds that are independent are combined as buckets are (`disclosure`).

**Bound.** Let at least the share c of all worlds be left, and R the least ratio when all were. Then what is left has
R' ≥ R − (1 − c)·(R + k + 1). *Why.* P(none | left)/P(A | left) ≥ (P(none) − (1 − c))/P(A). For A the likeliest of its
atoms, P(A) = p, it is P(none) ≥ max(R·p, 1 − (k + 1)·p); the least of what follows is at p = 1/(R + k + 1). ∎
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Ratio = Fraction | None

Plan = tuple[
    Fraction, tuple[tuple[int, int], ...]
]  # a ratio; block → atoms in it, negative where A is among them

SETS = 100_000  # of atoms that are gone through


def bound_when_left(ratio: Fraction, chance: Fraction, k: int) -> Fraction:
    """The bound on belief given any k facts when the method leaves at least this share of all worlds."""
    least = ratio - (1 - chance) * (ratio + k + 1)
    return 1 / (1 + max(least, Fraction(0)))


@dataclass(frozen=True)
class AtomSet:
    """Atoms (place, item), the one to be believed first, and the belief."""

    atoms: tuple[tuple[int, int], ...]
    belief: Fraction


class WorldBlock:
    """Worlds that belong together, one row each, all equally likely; what none of h atoms, and A, can come to.

    Attributes:
        places: the number of each column.
        none: none[h], the least share of worlds in which none of h atoms is true, and the atoms.
        ratio: ratio[h], the least of that divided by the share of A, A being one of h atoms.
        negated: the largest belief in an atom from h facts "person p has not value s".
        of_place: place → the least ratio with k + 1 atoms of this block, one of them about that place.
    """

    def __init__(self, worlds: Ints, places: Ints, hidden: int | None, k: int) -> None:
        self.places, self.worlds, self.hidden, self.k = places, worlds, hidden, k
        atoms = [(p, int(v)) for p in range(worlds.shape[1]) for v in np.unique(worlds[:, p])]
        atoms.sort(key=lambda a: -int((worlds[:, a[0]] == a[1]).sum()))
        self.atoms = atoms
        self.true = np.array([worlds[:, p] == v for p, v in atoms]).reshape(len(atoms), len(worlds))
        self.count = self.true.sum(axis=1)
        n = len(worlds)
        self.least: list[tuple[int, tuple[int, ...]]] = [(n, ()), *[(n + 1, ())] * (k + 1)]
        self.best: list[tuple[Ratio, tuple[int, ...]]] = [(None, ())] * (k + 2)
        self.negated: list[Fraction] = [Fraction(0)] * (k + 1)
        self.of_place: dict[int, Fraction] = {}
        self._denied(np.ones(n, dtype=bool), 0)
        self._extend((), np.ones(n, dtype=bool), 0)
        for h in range(1, k + 2):  # who knows fewer things knows no more; and there may be fewer atoms
            self.least[h] = min(self.least[h - 1], self.least[h], key=lambda x: x[0])
            found = [x for x in self.best[h - 1 : h + 1] if x[0] is not None]
            self.best[h] = min(found, key=lambda x: x[0] or 0) if found else (None, ())
            if h <= k:
                self.negated[h] = max(self.negated[h - 1 : h + 1])

    @staticmethod
    def sets(worlds: Ints, k: int) -> int:
        """The number of sets of atoms that would have to be looked at."""
        atoms = sum(len(np.unique(worlds[:, p])) for p in range(worlds.shape[1]))
        return sum(math.comb(atoms, h) for h in range(1, k + 2))

    def _extend(self, chosen: tuple[int, ...], alive: NDArray[np.bool_], first: int) -> None:
        """Every set of atoms that begins like this one."""
        for a in range(first, len(self.atoms)):
            here, left = (*chosen, a), alive & ~self.true[a]
            self._look(here, int(left.sum()))
            if len(here) <= self.k:
                self._denied(left, len(here))
                self._extend(here, left, a + 1)

    def _look(self, chosen: tuple[int, ...], none: int) -> None:
        h = len(chosen)
        if none < self.least[h][0]:
            self.least[h] = none, chosen
        for a in chosen:
            if self.atoms[a][1] == self.hidden:
                continue
            ratio = Fraction(none, int(self.count[a]))
            place = self.atoms[a][0]
            if place not in self.of_place or ratio < self.of_place[place]:
                self.of_place[place] = ratio
            best = self.best[h][0]
            if best is None or ratio < best:
                self.best[h] = ratio, (a, *(b for b in chosen if b != a))

    def _denied(self, left: NDArray[np.bool_], facts: int) -> None:
        total = int(left.sum())
        if not total:
            return
        held = self.true[:, left].sum(axis=1)
        for a, (_, value) in enumerate(self.atoms):
            if value != self.hidden:
                self.negated[facts] = max(self.negated[facts], Fraction(int(held[a]), total))

    def none(self, h: int) -> Fraction:
        """The least share of worlds in which none of h atoms is true."""
        return Fraction(min(self.least[h][0], len(self.worlds)), len(self.worlds))

    def ratio(self, h: int) -> Ratio:
        """The least share of worlds with none of h atoms, A among them, divided by the share with A."""
        return self.best[h][0]

    def named(self, chosen: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """The atoms of these numbers, as place and item."""
        return tuple((int(self.places[self.atoms[a][0]]), self.atoms[a][1]) for a in chosen)


def worst_facts(blocks: Sequence[WorldBlock], k: int) -> AtomSet | None:
    """The atoms whose implications raise some belief most; None where there is nothing to learn.

    Blocks are independent: atoms of a block other than A's multiply the chance that none of them is true.
    """
    placed: list[Plan] = [(Fraction(1), ())] * (k + 1)  # h atoms about the blocks so far, without A
    with_target: list[Plan | None] = [None] * (k + 1)  # A and h more
    for number, block in enumerate(blocks):
        fresh: list[Plan | None] = []
        for h in range(k + 1):
            ways = [w for w in [with_target[h]] if w is not None]
            for g in range(h + 1):
                ratio, before = block.ratio(g + 1), with_target[h - g]
                if ratio is not None:
                    rest = placed[h - g]
                    ways.append((ratio * rest[0], ((number, -(g + 1)), *rest[1])))
                if before is not None and g:
                    ways.append((block.none(g) * before[0], (*before[1], (number, g))))
            fresh.append(min(ways, key=lambda w: w[0]) if ways else None)
        placed = [
            min(
                ((block.none(g) * placed[h - g][0], (*placed[h - g][1], (number, g)) if g else placed[h - g][1])
                 for g in range(h + 1)),
                key=lambda w: w[0],
            )
            for h in range(k + 1)
        ]  # fmt: skip
        with_target = fresh
    best = with_target[k]
    if best is None:
        return None
    ratio, plan = best
    atoms: list[tuple[int, int]] = []
    for number, how in sorted(plan, key=lambda step: step[1]):
        block = blocks[number]
        chosen = block.best[-how][1] if how < 0 else block.least[how][1]
        atoms += block.named(chosen)
    return AtomSet(tuple(atoms), 1 / (1 + ratio))
