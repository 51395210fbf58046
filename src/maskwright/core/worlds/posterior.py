"""Belief of an adversary who can run the method: every world in which it would have published this release.

Worlds are all different ways of dealing each published group's multiset of values to its rows. A world counts by
the probability with which the method, run on it, publishes exactly the groups that were published
[Cormode et al. 2010]. Rows in no group keep their value and get no belief: their absence is another question.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from maskwright.core.worlds.limits import WORLDS, refuse_beyond
from maskwright.core.worlds.multisets import arrangements, assignments
from maskwright.errors import UsageError

Groups = Iterable[Iterable[int]]
Publication = frozenset[frozenset[int]]
Likelihood = Callable[[Sequence[Any], Publication], Fraction | int]  # values of the rows, what was published


def publication(groups: Groups) -> Publication:
    """Groups of rows without order."""
    return frozenset(frozenset(group) for group in groups)


def deterministic(method: Callable[[Sequence[Any]], Groups]) -> Likelihood:
    """A method that always makes the same groups of the same values."""
    return lambda values, published: int(publication(method(values)) == published)


def randomised(method: Callable[[Sequence[Any]], Mapping[Publication, Fraction]]) -> Likelihood:
    """A method given as the probability of each publication."""
    return lambda values, published: method(values).get(published, 0)


@dataclass(frozen=True)
class Posterior:
    """What remains believable.

    Attributes:
        worlds: all worlds, and
        consistent: those in which the method may have published this.
        beliefs: per row value → probability, zeros left out, nothing for rows that were not published; None when
            no world is consistent.
    """

    worlds: int
    consistent: int
    beliefs: list[dict[Any, Fraction]] | None


def posterior(
    values: Sequence[Any], published: Groups, likelihood: Likelihood, limit: int = WORLDS
) -> Posterior:
    """Beliefs about every published row, by enumeration.

    Args:
        values: the true values of the rows.
        published: the groups of row numbers that were published.
        likelihood: the method; see `deterministic` and `randomised`.
        limit: refuse (`TooManyWorlds`) beyond this many worlds.
    """
    groups = [sorted(group) for group in published]
    target = publication(groups)
    check_groups(len(values), groups)
    worlds = math.prod(arrangements(list(Counter(values[i] for i in g).values())) for g in groups)
    refuse_beyond(worlds, limit)
    consistent, total = 0, Fraction(0)
    held: list[dict[Any, Fraction]] = [{} for _ in values]
    world = list(values)
    for dealt in itertools.product(*(list(assignments([values[i] for i in group])) for group in groups)):
        for group, mine in zip(groups, dealt, strict=True):
            for i, value in zip(group, mine, strict=True):
                world[i] = value
        weight = likelihood(world, target)
        if not weight:
            continue
        consistent += 1
        total += weight
        for group in groups:
            for i in group:
                held[i][world[i]] = held[i].get(world[i], Fraction(0)) + weight
    if not total:
        return Posterior(worlds, 0, None)
    beliefs = [{value: weight / total for value, weight in row.items()} for row in held]
    return Posterior(worlds, consistent, beliefs)


def check_groups(n: int, groups: Sequence[Sequence[int]]) -> None:
    """Refuse groups that are empty, overlap, or name rows that a table of n rows does not have."""
    rows = [i for group in groups for i in group]
    if len(set(rows)) < len(rows) or not all(groups):
        raise UsageError("published groups must not be empty, and no row may be in two of them")
    for i in rows:
        if not 0 <= i < n:
            raise UsageError(f"row {i} is published, but the table has {n} rows")
