"""Maximum disclosure under worst-case background knowledge [Martin et al., ICDE 2007], exactly.

An *atom* says "person p has value s"; a piece of knowledge is a basic implication (atoms → atoms). Maximum
disclosure for k is the largest belief in any atom A that k implications can bring about. By Theorem 9 there
is a worst case of the form A_1 → A, …, A_k → A, and the belief is 1/(1+R) with R = min Pr(no atom)/Pr(A).

Per bucket, with `none[g]` the least probability that none of g atoms about its people is true (MINIMIZE1)
and `ratio[h]` the least Pr(none of h atoms, A among them)/Pr(A), R is the least product over all ways of
dealing out the atoms among buckets (MINIMIZE2). That needs only *one minimum per number of atoms*:

**Lemma.** R(k) = min over h + g_1 + … + g_j = k + 1, h ≥ 1, of ratio*[h]·none*[g_1]·…·none*[g_j], where *
is the minimum over all buckets, each taken independently of the others.
*Why.* "≥" is a relaxation: it forgets that the buckets must be different. "≤": where one bucket attains two
of the minima, give it the atoms of both. Spread as Lemma 12 does, person i is denied its k_i most frequent
values and contributes the factor 1 − S(k_i)/(n−i), which falls with i. Putting two such sequences one after
the other (and sorting) moves no person to a smaller i, so the merged product is at most the product of the
two: none[g+g'] ≤ none[g]·none[g'] and ratio[h+g] ≤ ratio[h]·none[g]. If the bucket has too few people for
both sequences, its last person is denied its only possible value, and the product is 0. ∎

Missing values: an attacker may know whether somebody's value is missing, but "missing" is nothing to learn:
A is never about it. Where missing is a bucket's most frequent value (`hidden`), A must be added to the atoms:
h = 1 gives (n−t)/t for the most frequent recorded value, t times; for h ≥ 2 some person is denied at least
two values, "missing" and A's. (Denying A's value to one person and "missing" to h−1 others is never better
than denying both to one of them: the ratio of the two is (n−M−t)/(n−M−t+tM/(n−h+1)) ≤ 1.)

*On top of any set of possible worlds*, for an adversary who knows the method, too. Maximum disclosure takes all orders
of a bucket's values to be equally likely. What a method gives away leaves some of them out. Its central fact survives:

**Lemma.** Whatever the distribution over worlds, k basic implications raise the belief in an atom A most when they are
A_1 → A, …, A_k → A for some atoms. *Why.* Replace each implication (all of some atoms → one of others) by "its first
atom → A". All of these are true wherever A is, so that P(A and what is known) = P(A) does not shrink. Where A is false,
they say that no A_i is true; but then every implication that was replaced holds, its first atom being false: the worlds
that remain without A are among those that remained before. ∎

So belief is 1/(1 + R), R the least P(none of A, A_1 … A_k)/P(A), found here by going through all sets of atoms. Blocks
of worlds that are independent are combined as buckets are.

**Bound.** Let at least the share c of all worlds be left, and R the least ratio when all were. Then what is left has
R' ≥ R − (1 − c)·(R + k + 1). *Why.* P(none | left)/P(A | left) ≥ (P(none) − (1 − c))/P(A). For A the likeliest of its
atoms, P(A) = p, it is P(none) ≥ max(R·p, 1 − (k + 1)·p); the least of what follows is at p = 1/(R + k + 1). ∎
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.exact import number_text

Counts = Mapping[str | None, int]
Ratio = Fraction | None  # None is infinity: there is nothing to learn in this bucket
Spread = tuple[int, ...]  # k_0 ≥ k_1 ≥ …: how many of its most frequent values person i is denied


def values_by_frequency(counts: Counts) -> list[str | None]:
    """The values of a bucket by falling frequency; among equals missing (None) comes last."""
    return sorted((v for v, n in counts.items() if n > 0), key=lambda v: (-counts[v], v is None))


@dataclass(frozen=True)
class Bucket:
    """All that a bucket's probabilities depend on.

    Attributes:
        n: its people.
        sums: sums[j] people have one of the j most frequent values, for j = 0 … the largest number of atoms.
        target: how many have the most frequent recorded value.
        hidden: is "missing" more frequent than that?
    """

    n: int
    sums: tuple[int, ...]
    target: int
    hidden: bool = False

    @classmethod
    def of(cls, counts: Counts, atoms: int) -> Bucket:
        """The bucket with these counts (None: missing), prepared for up to `atoms` atoms."""
        falling = sorted(counts.values(), reverse=True)[:atoms]
        sums = [0]
        for j in range(atoms):
            sums.append(sums[-1] + (falling[j] if j < len(falling) else 0))
        target = max((n for v, n in counts.items() if v is not None), default=0)
        return cls(sum(counts.values()), tuple(sums), target, counts.get(None, 0) > target)

    def none(self, atoms: int) -> Fraction:
        """MINIMIZE1: the least probability that none of this many atoms about the bucket's people is true."""
        narrow, wide, whole = self._minima
        return Fraction(min(narrow[atoms][0], wide[atoms][0]), whole)

    def ratio(self, atoms: int) -> Ratio:
        """The least Pr(none of the atoms, A among them) / Pr(A)."""
        if not self.target:
            return None
        if not self.hidden:
            return self.none(atoms) * Fraction(self.n, self.target)
        if atoms == 1:
            return Fraction(self.n - self.target, self.target)
        _, wide, whole = self._minima
        return Fraction(wide[atoms][0] * self.n, whole * self.target)

    def negated(self, atoms: int) -> Ratio:
        """As `ratio`, when all atoms must be about one person: knowledge of the form "p has not s"."""
        if not self.target:
            return None
        rest = self.n - (self.target if atoms == 1 else self.sums[atoms])
        return Fraction(rest, self.target)

    def denied_values(self, atoms: int, with_target: bool) -> Spread:
        """How the atoms lie in a worst case. With A among them in a hidden bucket, person 0 is A's."""
        narrow, wide, _ = self._minima
        if with_target and self.hidden:
            return wide[atoms][1]  # empty for one atom: A itself, which is then all there is
        return min(narrow[atoms], wide[atoms], key=lambda cell: cell[0])[1]

    @cached_property
    def _minima(self) -> tuple[list[_Cell], list[_Cell], int]:
        """MINIMIZE1 for every number of atoms at once: largest part 1, largest part ≥ 2, and the denominator.

        cells[i][h] is the best way to place h atoms on people i, i+1, … with at most `cap` atoms each, as an
        integer over (n−i)(n−i−1)…; since i people before them hold at least `cap` each, only h ≤ H − i·cap
        can matter, which leaves O(H² log H) steps for all h together. More atoms than values or people add
        nothing, and a numerator below 0 counts as 0: the same factor is 0 for somebody before.
        """
        top, n = len(self.sums) - 1, self.n
        people = min(top, n)
        below = [1] * (people + 1)
        for i in reversed(range(people)):
            below[i] = below[i + 1] * (n - i)
        cells = [[_Cell(below[i], ())] * (top + 1) for i in range(people + 1)]
        wide = list(cells[0])
        for cap in range(1, top + 1):
            for i in reversed(range(min(people, top // cap))):
                factor = max(0, n - i - self.sums[cap])
                row = wide if i == 0 and cap > 1 else cells[i]
                for h in range(cap, top - i * cap + 1):
                    rest, tail = cells[i + 1][h - cap]
                    if factor * rest < row[h][0]:
                        row[h] = _Cell(factor * rest, (cap, *tail))
        return cells[0], wide, below[0]


class _Cell(NamedTuple):
    numerator: int
    spread: Spread


class Split(NamedTuple):
    """One worst case: R, the atoms of A's bucket (A among them), and the atoms of each other bucket."""

    ratio: Fraction
    target: int
    others: tuple[int, ...]


def combine_minima(none: Sequence[Fraction], ratio: Sequence[Ratio]) -> list[Split | None]:
    """The worst split, with R(k), for each k, from the minima over all buckets, by the lemma above.

    Args:
        none: for 0, 1, … K atoms.
        ratio: for 1, 2, … K + 1 atoms.
    """
    rest: list[tuple[Fraction, tuple[int, ...]]] = [(Fraction(1), ())]
    for h in range(1, len(ratio)):
        ways = [(none[g] * rest[h - g][0], (g, *rest[h - g][1])) for g in range(h, 0, -1)]
        rest.append(min(ways, key=lambda way: way[0]))
    splits: list[Split | None] = []
    for k in range(len(ratio)):
        found = [
            Split(r * rest[k - g][0], g + 1, rest[k - g][1])
            for g in range(k, -1, -1)  # equal ways: as few buckets as possible
            if (r := ratio[g]) is not None
        ]
        splits.append(min(found, key=lambda split: split.ratio, default=None))
    return splits


class Atom(NamedTuple):
    """ "Person `person` of bucket `bucket` has `value`"; which person of the bucket makes no difference."""

    bucket: int
    person: int
    value: str | None


@dataclass(frozen=True)
class Witness:
    """Knowledge that reaches the maximum: each antecedent implies the target.

    `several`: may somebody have several values? Then one value does not rule out another.
    """

    target: Atom
    antecedents: tuple[Atom, ...]
    belief: Fraction
    several: bool = False

    @property
    def buckets(self) -> tuple[int, ...]:
        """The buckets of the people whom the knowledge is about."""
        return tuple(sorted({atom.bucket for atom in (self.target, *self.antecedents)}))

    def in_words(self, names: Mapping[tuple[int, int], str] | None = None) -> str:
        """One sentence; `names` may give the people names, by (bucket, person)."""

        def _who(atom: Atom) -> str:
            default = f"person {atom.person + 1} of group {atom.bucket + 1}"
            return default if names is None else names.get((atom.bucket, atom.person), default)

        def _value(atom: Atom) -> str:
            return "a missing value" if atom.value is None else atom.value

        goal = f"{_who(self.target)} has {_value(self.target)}"
        facts = []
        for atom in self.antecedents:
            if atom[:2] == self.target[:2] and not self.several:
                # nobody has two values: "if p had s, p would have s⁰" means "not s"
                facts.append(f"{_who(atom)} does not have {_value(atom)}")
            else:
                facts.append(f"if {_who(atom)} has {_value(atom)}, then {goal}")
        knowing = f"knowing that {'; and that '.join(facts)}: " if facts else ""
        return f"{knowing}the belief that {goal} is {number_text(self.belief)}"


@dataclass(frozen=True, eq=False)
class Disclosure:
    """Maximum disclosure for 0, 1, … K pieces of knowledge.

    Attributes:
        ratios: R for each k (None: nothing to learn at all).
        negations: the largest belief from k facts of the form "p has not s" (never above `implications`).
        plans: for each k where the atoms of a worst case lie, as (bucket, atoms), A's bucket first.
        counts_of: the value counts of a bucket.
    """

    ratios: tuple[Ratio, ...]
    negations: tuple[Fraction, ...]
    plans: tuple[tuple[tuple[int, int], ...], ...]
    counts_of: Callable[[int], Counts]

    @property
    def implications(self) -> tuple[Fraction, ...]:
        """The largest belief from k basic implications."""
        return tuple(belief_of_ratio(ratio) for ratio in self.ratios)

    def witness(self, k: int) -> Witness | None:
        """Knowledge that reaches `implications[k]`; None when there is nothing to learn."""
        if not self.plans[k]:
            return None
        target: Atom | None = None
        antecedents: list[Atom] = []
        for bucket, atoms in self.plans[k]:
            counts = self.counts_of(bucket)
            values = values_by_frequency(counts)
            first = target is None
            spread = Bucket.of(counts, atoms).denied_values(atoms, first)
            here = [Atom(bucket, i, v) for i, most in enumerate(spread) for v in values[:most]]
            if target is None:
                best = next(v for v in values if v is not None)
                target = Atom(bucket, 0, best)
                here = [atom for atom in here if atom != target]
            antecedents += here
        assert target is not None  # noqa: S101 - a plan names A's bucket
        return Witness(target, tuple(antecedents), self.implications[k])


def belief_of_ratio(ratio: Ratio) -> Fraction:
    """The belief 1/(1+R) of a ratio R; 0 for an infinite one."""
    return Fraction(0) if ratio is None else 1 / (1 + ratio)


def atoms_of(column: int, k: int) -> int:
    """The number of atoms that a column (see `bucket_columns`) is about."""
    if column < k:
        return column + 1
    return column - k + 1 if column <= 2 * k else column - 2 * k + 1


def bucket_column(bucket: Bucket, which: int, k: int) -> Ratio:
    """The quantity of one column, see `bucket_columns`."""
    atoms = atoms_of(which, k)
    if which < k:
        return bucket.none(atoms)
    return bucket.ratio(atoms) if which <= 2 * k else bucket.negated(atoms)


def bucket_columns(bucket: Bucket, k: int) -> list[Ratio]:
    """The 3k + 1 quantities whose minima over buckets decide everything for up to k atoms, in this order.

    none for 1 … k atoms, ratio for 1 … k + 1, negated for 2 … k + 1 (for one atom it equals ratio).
    """
    return [bucket_column(bucket, which, k) for which in range(3 * k + 1)]


def assemble_disclosure(
    best: Sequence[tuple[Ratio, int]], k: int, counts_of: Callable[[int], Counts]
) -> Disclosure:
    """The disclosure that follows from the minimum of each column over all buckets, with the bucket that attains it."""
    none, ratio, negated = best[:k], best[k : 2 * k + 1], [best[k], *best[2 * k + 1 :]]
    splits = combine_minima(
        [Fraction(1), *(Fraction(1) if r is None else r for r, _ in none)], [r for r, _ in ratio]
    )
    plans = []
    for split in splits:
        plan: dict[int, int] = {}
        if split is not None:
            plan[ratio[split.target - 1][1]] = split.target
            for g in split.others:  # a bucket that serves twice takes the atoms of both
                bucket = none[g - 1][1]
                plan[bucket] = plan.get(bucket, 0) + g
        plans.append(tuple(plan.items()))
    return Disclosure(
        tuple(None if s is None else s.ratio for s in splits), tuple(belief_of_ratio(r) for r, _ in negated),
        tuple(plans), counts_of,
    )  # fmt: skip


def max_disclosure(buckets: Sequence[Counts], k: int) -> Disclosure:
    """Maximum disclosure of a few buckets, everything in fractions. `kernels.disclosure` takes millions."""
    rows = [bucket_columns(Bucket.of(counts, k + 1), k) for counts in buckets]
    best = [_least_ratio((row[c], b) for b, row in enumerate(rows)) for c in range(3 * k + 1)]
    return assemble_disclosure(best, k, lambda b: buckets[b])


def _least_ratio(found: Iterable[tuple[Ratio, int]]) -> tuple[Ratio, int]:
    """The smallest, the first of equals; infinite when there is none."""
    finite = [(ratio, b) for ratio, b in found if ratio is not None]
    return min(finite, key=lambda pair: pair[0]) if finite else (None, -1)


Ints = NDArray[np.int64]

Plan = tuple[
    Fraction, tuple[tuple[int, int], ...]
]  # a ratio; block → atoms in it, negative where A is among them

SETS = 100_000  # of atoms that are gone through


def bound_when_left(ratio: Fraction, chance: Fraction, k: int) -> Fraction:
    """The bound on belief given any k facts when the method leaves at least this share of all worlds."""
    least = ratio - (1 - chance) * (ratio + k + 1)
    return 1 / (1 + max(least, Fraction(0)))


def sets_of_atoms(atoms: int, k: int) -> int:
    """The number of sets of 1 … k + 1 of so many atoms."""
    return sum(math.comb(atoms, h) for h in range(1, k + 2))


@dataclass(frozen=True)
class AtomSet:
    """Atoms (place, item), the one to be believed first, and the belief."""

    atoms: tuple[tuple[int, int], ...]
    belief: Fraction


class WorldBlock:
    """Worlds that belong together, one row each; what none of h atoms, and A, can come to.

    All are equally likely, or as likely as `weight` says. Where people have several rows, the atoms are given: "the
    person has the value in some row" (`of_people`).

    Attributes:
        places: the number of each column.
        none: none[h], the least share of worlds in which none of h atoms is true, and the atoms.
        ratio: ratio[h], the least of that divided by the share of A, A being one of h atoms.
        negated: the largest belief in an atom from h facts "person p has not value s".
        of_place: place → the least ratio with k + 1 atoms of this block, one of them about that place.
    """

    def __init__(self, worlds: Ints, places: Ints, hidden: int | None, k: int) -> None:
        atoms = [(p, int(v)) for p in range(worlds.shape[1]) for v in np.unique(worlds[:, p])]
        true = np.array([worlds[:, p] == v for p, v in atoms]).reshape(len(atoms), len(worlds))
        self._go_through(atoms, true, np.ones(len(worlds), dtype=np.int64), places, hidden, k)

    @classmethod
    def of_people(cls, has: NDArray[np.bool_], weight: Ints, hidden: int | None, k: int) -> WorldBlock:
        """The block of worlds in which `has[world, person, value]` says who has what in some row."""
        found = cls.__new__(cls)
        atoms = [(int(p), int(v)) for p, v in np.argwhere(has.any(axis=0))]
        true = np.array([has[:, p, v] for p, v in atoms]).reshape(len(atoms), len(weight))
        found._go_through(atoms, true, weight, np.arange(has.shape[1]), hidden, k)
        return found

    def _go_through(
        self, atoms: list[tuple[int, int]], true: NDArray[np.bool_], weight: Ints, places: Ints, hidden: int | None,
        k: int,
    ) -> None:  # fmt: skip
        """Look at every set of up to k + 1 atoms."""
        self.places, self.weight, self.hidden, self.k = places, weight, hidden, k
        count = true @ weight
        order = np.argsort(-count, kind="stable")
        self.atoms, self.true, self.count = [atoms[i] for i in order], true[order], count[order]
        n = self.total = int(weight.sum())
        self.least: list[tuple[int, tuple[int, ...]]] = [(n, ()), *[(n + 1, ())] * (k + 1)]
        self.best: list[tuple[Ratio, tuple[int, ...]]] = [(None, ())] * (k + 2)
        self.negated: list[Fraction] = [Fraction(0)] * (k + 1)
        self.of_place: dict[int, Fraction] = {}
        everywhere = np.ones(len(weight), dtype=bool)
        self._denied(everywhere, 0)
        self._extend((), everywhere, 0)
        for h in range(1, k + 2):  # who knows fewer things knows no more; and there may be fewer atoms
            self.least[h] = min(self.least[h - 1], self.least[h], key=lambda x: x[0])
            found = [x for x in self.best[h - 1 : h + 1] if x[0] is not None]
            self.best[h] = min(found, key=lambda x: x[0] or 0) if found else (None, ())
            if h <= k:
                self.negated[h] = max(self.negated[h - 1 : h + 1])

    @staticmethod
    def sets(worlds: Ints, k: int) -> int:
        """The number of sets of atoms that would have to be looked at."""
        return sets_of_atoms(sum(len(np.unique(worlds[:, p])) for p in range(worlds.shape[1])), k)

    def _extend(self, chosen: tuple[int, ...], alive: NDArray[np.bool_], first: int) -> None:
        """Every set of atoms that begins like this one."""
        for a in range(first, len(self.atoms)):
            here, left = (*chosen, a), alive & ~self.true[a]
            self._look(here, int(left @ self.weight))
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
        total = int(left @ self.weight)
        if not total:
            return
        held = self.true[:, left] @ self.weight[left]
        for a, (_, value) in enumerate(self.atoms):
            if value != self.hidden:
                self.negated[facts] = max(self.negated[facts], Fraction(int(held[a]), total))

    def none(self, h: int) -> Fraction:
        """The least share of worlds in which none of h atoms is true."""
        return Fraction(min(self.least[h][0], self.total), self.total)

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
