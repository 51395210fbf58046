"""Plans: which sensitive attributes are published together, one table for each subset [CODIP].

Merging two tables never raises Γα and never lowers Γβ, and the closeness (or any other requirement) that can be
reached for a table never improves when attributes are added to it. The searches rely on nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from maskwright.core.association import Association, Subset, Tables
from maskwright.core.classes import Ints, ValueCounts
from maskwright.core.distances import distances

Good = Callable[[Subset], bool]  # can a table with these attributes satisfy the requirements?
TIE = 1e-12  # averages of mutual information that differ by less are equal on paper


def singletons(n: int) -> Tables:
    return tuple((i,) for i in range(n))


def ordered(subsets: Sequence[Sequence[int]]) -> Tables:
    """A plan in its normal form: each subset ascending, subsets by their smallest attribute."""
    return tuple(sorted(tuple(sorted(s)) for s in subsets))


@dataclass(frozen=True)
class Merge:
    """One step of CODIP*: the plan after it, the union that was made, and its average mutual information."""

    tables: Tables
    union: Subset
    average: float


def merges(association: Association, start: Tables | None = None) -> Iterator[Merge]:
    """CODIP* without thresholds: always the union with the largest average I of all its pairs, until one is left."""
    tables = start or singletons(association.size)
    while len(tables) > 1:
        best: tuple[float, Subset, tuple[Subset, Subset]] | None = None
        for a, b in itertools.combinations(tables, 2):
            union = tuple(sorted(a + b))
            pairs = len(union) * (len(union) - 1) // 2
            average = association.inside(union) / pairs
            if best is None or average > best[0] + TIE:
                best = average, union, (a, b)
        assert best is not None  # noqa: S101 - there are two subsets
        average, union, parts = best
        tables = ordered([*(s for s in tables if s not in parts), union])
        yield Merge(tables, union, average)


@dataclass(frozen=True)
class Greedy:
    """What CODIP* found.

    Attributes:
        tables: the last good plan, None when not even singletons are good.
        merges: how many merges were accepted.
        refused: the merge that was not accepted, and `why`: "beta" or "requirements"; None: one table is left.
        failing: singletons that do not satisfy the requirements.
    """

    tables: Tables | None
    merges: int = 0
    refused: Subset | None = None
    why: str = ""
    failing: tuple[int, ...] = ()


def greedy(association: Association, beta: Fraction, good: Good) -> Greedy:
    """CODIP*: merge while Γβ ≤ beta and the new table is good; other merges are not tried after a refusal."""
    tables = singletons(association.size)
    failing = tuple(i for (i,) in tables if not good((i,)))
    if failing or not association.beta_at_most(tables, beta):
        return Greedy(None, why="requirements" if failing else "beta", failing=failing)
    done = 0
    for merge in merges(association):
        if not association.beta_at_most(merge.tables, beta):
            return Greedy(tables, done, merge.union, "beta")
        if not good(merge.union):
            return Greedy(tables, done, merge.union, "requirements")
        tables, done = merge.tables, done + 1
    return Greedy(tables, done)


def best_closeness(
    candidates: Sequence[Mapping[str, ValueCounts]], names: Sequence[str], reference: Mapping[str, Ints]
) -> Fraction | None:
    """The least closeness of a table with these attributes over candidate classes; None without candidates.

    The closeness of a candidate is the largest variational distance between a class and the whole table.
    """
    found = [
        max((max(distances(c[name], reference[name], "equal")) for name in names), default=Fraction(0))
        for c in candidates
    ]
    return min(found, default=None)


@dataclass
class Remembered:
    """A test of subsets that is asked as little as possible: what contains a bad subset is bad."""

    good: Good
    bad: list[frozenset[int]] = field(default_factory=list)
    known: dict[Subset, bool] = field(default_factory=dict)

    def __call__(self, subset: Subset) -> bool:
        if subset not in self.known:
            members = frozenset(subset)
            passes = not any(b <= members for b in self.bad) and self.good(subset)
            if not passes:
                self.bad.append(members)
            self.known[subset] = passes
        return self.known[subset]
