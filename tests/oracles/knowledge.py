"""Background knowledge by enumeration: every world, every set of implications. A bucket is its list of values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from maskwright.domain.classes import ValueCounts
from maskwright.worlds.statements.disclosure import Atom, Counts, Witness
from tests.oracles.facts import largest_belief
from tests.oracles.worlds import orders

Values = Sequence[str | None]
FIGURE_3 = (
    ["flu", "lung cancer", "mumps", "flu", "lung cancer"],
    ["flu", "breast cancer", "flu", "heart disease", "ovarian cancer"],
)
BOB, CHARLIE, DAVE, ED, FRANK = ((0, i) for i in range(5))
GLORIA, HANNAH, IRMA, JESSICA, KAREN = ((1, i) for i in range(5))


class Worlds:
    """All distinct assignments of each bucket's values to its people; a proposition is a set of worlds (bits)."""

    def __init__(self, buckets: Sequence[Values]) -> None:
        self.worlds = list(product(*map(orders, buckets)))
        self.all = (1 << len(self.worlds)) - 1
        self.atoms = {
            Atom(b, person, value): self._where(b, person, value)
            for b, bucket in enumerate(buckets)
            for person in range(len(bucket))
            for value in dict.fromkeys(bucket)
        }

    def _where(self, bucket: int, person: int, value: str | None) -> int:
        return sum(1 << i for i, world in enumerate(self.worlds) if world[bucket][person] == value)

    def implies(self, left: Iterable[Atom], right: Iterable[Atom]) -> int:
        """All of the left → at least one of the right."""
        both, one = self.all, 0
        for atom in left:
            both &= self.atoms[atom]
        for atom in right:
            one |= self.atoms[atom]
        return (self.all & ~both) | one

    def belief(self, target: Atom, knowledge: Iterable[int]) -> Fraction | None:
        left = self.all
        for fact in knowledge:
            left &= fact
        return Fraction((left & self.atoms[target]).bit_count(), left.bit_count()) if left else None

    def largest(self, facts: Iterable[int], k: int) -> Fraction:
        """The largest belief in a recorded value that k of the facts can bring about."""
        targets = {where for atom, where in self.atoms.items() if atom.value is not None}
        return largest_belief(self.all, targets, facts, k)

    def by_implications(self, k: int) -> Fraction:
        """Over all sets of k simple implications, atom → atom."""
        return self.largest((self.implies([a], [b]) for a in self.atoms for b in self.atoms), k)

    def by_negations(self, k: int) -> Fraction:
        return self.largest([self.all & ~where for where in self.atoms.values()], k)

    def least_none(self, k: int) -> Fraction:
        """The least probability that none of at most k atoms is true."""
        best = Fraction(1)
        for chosen in combinations(self.atoms.values(), min(k, len(self.atoms))):
            left = self.all
            for where in chosen:
                left &= ~where
            best = min(best, Fraction(left.bit_count(), len(self.worlds)))
        return best

    def of_witness(self, witness: Witness) -> Fraction | None:
        """What the witness' knowledge really brings about."""
        return self.belief(witness.target, [self.implies([a], [witness.target]) for a in witness.antecedents])


def counted(bucket: Values) -> Counts:
    return {value: list(bucket).count(value) for value in dict.fromkeys(bucket)}


def packed(buckets: Sequence[Counts]) -> ValueCounts:
    """The same buckets as sparse counts."""
    values = sorted({value for counts in buckets for value in counts if value is not None})
    code = {None: 0, **{value: i + 1 for i, value in enumerate(values)}}
    owner = [b for b, counts in enumerate(buckets) for _ in counts]
    codes = [code[value] for counts in buckets for value in counts]
    people = [n for counts in buckets for n in counts.values()]
    return ValueCounts.collect(
        tuple(values),
        len(buckets),
        np.array(owner, np.int64),
        np.array(codes, np.int64),
        np.array(people, np.int64),
    )
