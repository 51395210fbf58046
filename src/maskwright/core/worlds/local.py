"""Credibility under local recoding, one generalised class at a time [Wong et al. 2007, section 4.2].

A generalised class holds some rows of each of several original classes. The other rows of an original class were
published as they are, so that their values are known, or went to *other* generalised classes, of which only the number
of sensitive rows is known. The class was generalised because some original class in it violates the requirement, with
all its rows counted. Worlds assume that which rows of a class were generalised was decided without a look at values.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from maskwright.core.worlds.credibility import Number, count_with_empty
from maskwright.core.worlds.general import Group, explained
from maskwright.core.worlds.limits import refuse_beyond
from maskwright.core.worlds.multisets import Test
from maskwright.core.worlds.vectors import caps_of

SPREAD = 500  # ways in which classes may hold rows elsewhere before counting is refused
TABLES = 4_000  # different multisets that the classes of one generalised class may have, roughly
PATIENCE = 10  # times as many for a model, which asks once for each kind of class


@dataclass(frozen=True)
class Elsewhere:
    """Another generalised class with rows of these original classes: `rows[i]` of class i, of `size` rows in all."""

    rows: Mapping[int, int]
    size: int
    sensitive: int


@dataclass(frozen=True)
class Alone:
    """What one generalised class tells by itself.

    Attributes:
        shares: per original class and kind of value, the expected share among its rows in this class.
        violation: the probability, over all worlds, that an original class in it violates.
        relative_error: 0 where the numbers are exact.
    """

    shares: list[dict[Any, Number]]
    violation: Number
    relative_error: float = 0.0


def one_set(
    rows: Sequence[int],
    caps: Sequence[int],
    sensitive: int,
    elsewhere: Sequence[Elsewhere] = (),
    exact: bool | None = None,
) -> Alone | None:
    """The share of sensitive rows (key True) in each class when one threshold decided; None: no class can violate.

    Args:
        rows: of each original class in this generalised class.
        caps: the most sensitive rows it may have besides those that are known; below 0 it violates anyway.
        sensitive: the sensitive rows of the generalised class.
        elsewhere: other generalised classes that hold rows of these original classes.
        exact: True forces integers; otherwise they are used where they are fast.
    """
    total: Number = Fraction(0)
    held: list[Number] = [Fraction(0)] * len(rows)
    error = 0.0
    for there, chance in _spread(_that_matters(rows, caps, sensitive, elsewhere), len(rows)):
        left = [cap - x for cap, x in zip(caps, there, strict=True)]
        found = count_with_empty(rows, left, sensitive, exact)
        if found is None:
            continue
        error = max(error, found.relative_error)
        weight: Number = chance * found.violation
        total = total + weight
        for i, kind in enumerate(zip(rows, left, strict=True)):
            share = found.share[kind]  # in fractions where the weight may be too small for floating point
            held[i] = held[i] + weight * (Fraction(share) if isinstance(weight, Fraction) else share)
    if not total:
        return None
    shares: list[Number] = [float(x / total) if error else x / total for x in held]
    return Alone([{True: x, False: 1 - x} for x in shares], total, error)


def _that_matters(
    rows: Sequence[int], caps: Sequence[int], sensitive: int, elsewhere: Sequence[Elsewhere]
) -> list[Elsewhere]:
    """Without the original classes that violate already, or never: what they hold elsewhere changes nothing."""
    if any(cap < 0 for cap in caps):
        return []
    most = [min(n, sensitive) for n in rows]
    for other in elsewhere:
        for i, n in other.rows.items():
            most[i] += min(n, other.sensitive)
    kept = []
    for other in elsewhere:
        able = {i: n for i, n in other.rows.items() if most[i] > caps[i]}
        if able:
            kept.append(Elsewhere(able, other.size, other.sensitive))
    return kept


def _spread(elsewhere: Sequence[Elsewhere], classes: int) -> Iterator[tuple[list[int], Fraction]]:
    """How many sensitive rows each class may hold elsewhere, with the probability of that."""
    refuse_beyond(math.prod(n + 1 for other in elsewhere for n in other.rows.values()), SPREAD)
    ways = [list(_deal(other)) for other in elsewhere]
    for choice in itertools.product(*ways):
        there, chance = [0] * classes, Fraction(1)
        for other, (dealt, weight) in zip(elsewhere, choice, strict=True):
            chance *= weight
            for i, x in zip(other.rows, dealt, strict=True):
                there[i] += x
        yield there, chance


def _deal(other: Elsewhere) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Multivariate hypergeometric: the sensitive rows among those of each class."""
    rest = other.size - sum(other.rows.values())
    worlds = math.comb(other.size, other.sensitive)
    for dealt in itertools.product(*(range(n + 1) for n in other.rows.values())):
        left = other.sensitive - sum(dealt)
        if 0 <= left <= rest:
            ways = math.prod(math.comb(n, x) for n, x in zip(other.rows.values(), dealt, strict=True))
            yield dealt, Fraction(ways * math.comb(rest, left), worlds)


def any_requirement(
    rows: Sequence[int],
    values: Sequence[Any],
    known: Sequence[Sequence[Any]],
    passes: Test,
    patience: int = 1,
) -> Alone | None:
    """The same for any requirement, by counting multisets; refused (`TooManyWorlds`) where there are too many.

    Args:
        rows: of each original class in the generalised class.
        values: of the generalised class; kinds of values where the requirement tells only those apart.
        known: the values of the other rows of each original class.
        passes: the requirement, on the counts of each value in an original class.
        patience: refuse only so many times later.
    """
    counts = Counter(values)
    refuse_beyond(_work(rows, counts), patience * TABLES)
    names = [str(i) for i in range(len(rows))]
    groups = [Group(dict(zip(names, rows, strict=True)), list(values))]
    groups += [Group({name: len(k)}, list(k)) for name, k in zip(names, known, strict=True) if k]
    found = explained(groups, passes)
    if found is None:
        return None
    shares: list[dict[Any, Number]] = []
    for name, n, mine in zip(names, rows, known, strict=True):
        there = Counter(mine)
        shares.append(
            {v: (found.beliefs[name].get(v, Fraction(0)) * (n + len(mine)) - there[v]) / n for v in counts}
        )
    return Alone(shares, found.kept)


def several_sets(
    sizes: Sequence[int], held: Sequence[int], ell: Fraction, exact: bool | None = None
) -> list[list[Number]] | None:
    """Credibility of disjoint sets in classes that global recoding merged: [class][set]; None: nothing to explain.

    A world is kept when some class holds too much of *any* set. Sets too small to violate anywhere are spread evenly
    over what the others leave, so that only the rest has to be counted.

    Args:
        sizes: the rows of each original class.
        held: the rows of each set in all of them together.
        ell: the diversity asked for: a class violates when j·ℓ > n for a set.
        exact: as in `one_set`.
    """
    caps = caps_of(sizes, ell)
    able = [
        s for s, g in enumerate(held) if any(g > cap and n > cap for n, cap in zip(sizes, caps, strict=True))
    ]
    if not able:
        return None
    if len(able) == 1:
        found = one_set(sizes, caps, held[able[0]], exact=exact)
        shares = None if found is None else [{able[0]: row[True]} for row in found.shares]
    else:
        rest = sum(sizes) - sum(held[s] for s in able)
        refuse_beyond(
            _work(sizes, {s: held[s] for s in able} | {-1: rest}), PATIENCE * TABLES
        )  # before they are listed
        values = [s for s in able for _ in range(held[s])] + [-1] * rest
        passes: Test = lambda counts: all(  # noqa: E731
            c * ell <= sum(counts.values()) for s, c in counts.items() if s >= 0
        )
        found = any_requirement(sizes, values, [()] * len(sizes), passes, PATIENCE)
        shares = None if found is None else found.shares
    if shares is None:
        return None
    left = sum(sizes) - sum(held[s] for s in able)
    result = []
    for row in shares:
        others = 1 - sum(row[s] for s in able)
        result.append([row[s] if s in able else others * Fraction(g, left) for s, g in enumerate(held)])
    return result


def _work(rows: Sequence[int], counts: Mapping[Any, int]) -> int:
    """About how many multisets are looked at: states of what is left, times the parts that a class may take."""
    states = math.prod(c + 1 for c in counts.values())
    parts = max(math.prod(min(c, n) + 1 for c in counts.values()) for n in rows)
    return len(rows) * states * parts // 50
