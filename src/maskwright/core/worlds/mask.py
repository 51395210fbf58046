"""MASK: its plan, and what it gives away to an adversary who knows it [Wong et al. 2007].

MASK takes a k-anonymous table, finds the classes V that violate ℓ-diversity and makes each of them look like a
class drawn from L, the passing classes with the largest share of sensitive rows. Of the classes that show such a
share some are disguised, which is why the belief exceeds 1/ℓ (erratum W-5).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from maskwright.core.worlds.limits import WORLDS, refuse_beyond, share, whole_numbers
from maskwright.core.worlds.vectors import caps_of
from maskwright.errors import UsageError


@dataclass(frozen=True)
class MaskPlan:
    """Steps 2 and 3 of MASK.

    Attributes:
        violating: the classes that violate, V.
        models: the classes whose shares they may take, L, largest share first.
        wanted: u = ⌈(ℓ−1)|V|⌉, how many classes L should have; fewer where fewer pass.
        shares: the shares of L in ascending order, with repetitions, D.
        targets: for each class of V the different numbers of sensitive rows it may be left with.
    """

    violating: list[int]
    models: list[int]
    wanted: int
    shares: list[Fraction]
    targets: dict[int, list[int]]


def mask_plan(sizes: Sequence[int], sensitive: Sequence[int], ell: Fraction | int) -> MaskPlan:
    """The plan of MASK for classes of these sizes with these numbers of sensitive rows."""
    ell = Fraction(ell)
    _check(sizes, sensitive)
    caps = caps_of(sizes, ell)
    shown = [Fraction(s, n) for n, s in zip(sizes, sensitive, strict=True)]
    violating = [i for i, s in enumerate(sensitive) if s > caps[i]]
    wanted = math.ceil((ell - 1) * len(violating))
    passing = [i for i, s in enumerate(sensitive) if s <= caps[i]]
    models = sorted(passing, key=lambda i: (-shown[i], i))[: max(wanted, 0)]
    shares = sorted(shown[i] for i in models)
    different = set(shares)  # few, and so are the sizes of classes
    left = {n: sorted({math.floor(p * n) for p in different}) for n in {sizes[i] for i in violating}}
    return MaskPlan(violating, models, wanted, shares, {i: left[sizes[i]] for i in violating})


def mask_posterior(
    sizes: Sequence[int],
    observed: Sequence[int],
    ell: Fraction | int,
    theta: Fraction | int,
    limit: int = WORLDS,
) -> list[Fraction] | None:
    """Per class, that a given member was sensitive before MASK, for who knows MASK; None: it cannot be observed.

    Everybody is sensitive with probability theta, independently. A class outside V shows its true number, and
    those of V take shares that depend on the shown numbers and on V only, so it is enough to sum over V; classes
    of equal size and equal observed number are interchangeable, so it is enough to know how many of them V has.

    Args:
        sizes: the members of each class.
        observed: the sensitive members it was published with.
        ell: the diversity MASK was asked for.
        theta: the prior probability of being sensitive.
        limit: refuse (`TooManyWorlds`) beyond this many numbers of disguised classes.
    """
    ell, theta = Fraction(ell), share("theta", theta)
    _check(sizes, observed)
    caps = caps_of(sizes, ell)
    if any(s > cap for s, cap in zip(observed, caps, strict=True)):
        return None
    kinds = Counter(zip(sizes, observed, strict=True))
    refuse_beyond(math.prod(m + 1 for m in kinds.values()), limit)
    facts = {(n, s): _Prior.of(n, s, cap, theta) for n, s, cap in zip(sizes, observed, caps, strict=True)}
    total, held = Fraction(0), dict.fromkeys(kinds, Fraction(0))
    for chosen in itertools.product(*(range(m + 1) for m in kinds.values())):
        hidden = dict(zip(kinds, chosen, strict=True))
        weight = _likelihood(kinds, hidden, facts, ell)
        total += weight
        for kind, m in kinds.items():
            true = hidden[kind] * facts[kind].mean_beyond + (m - hidden[kind]) * kind[1]
            held[kind] += weight * true / m
    if not total:
        return None
    return [held[n, s] / (total * n) for n, s in zip(sizes, observed, strict=True)]


@dataclass(frozen=True)
class _Prior:
    """Prior facts about a class: to hold exactly what it shows, to violate, and its mean if it violates."""

    shown: Fraction
    beyond: Fraction
    mean_beyond: Fraction

    @classmethod
    def of(cls, n: int, shown: int, cap: int, theta: Fraction) -> _Prior:
        chance = [math.comb(n, j) * theta**j * (1 - theta) ** (n - j) for j in range(n + 1)]
        beyond = sum(chance[cap + 1 :], Fraction(0))
        counted = sum((j * chance[j] for j in range(cap + 1, n + 1)), Fraction(0))
        return cls(chance[shown], beyond, counted / beyond if beyond else Fraction(0))


def _likelihood(
    kinds: Counter[tuple[int, int]],
    hidden: dict[tuple[int, int], int],
    facts: dict[tuple[int, int], _Prior],
    ell: Fraction,
) -> Fraction:
    """The probability of the observation with `hidden[kind]` classes of each kind in V."""
    weight = Fraction(1)
    for kind, m in kinds.items():
        h = hidden[kind]
        weight *= math.comb(m, h) * facts[kind].shown ** (m - h) * facts[kind].beyond ** h
    disguised = sum(hidden.values())
    if not weight or not disguised:
        return weight
    left = max(math.ceil((ell - 1) * disguised), 0)
    shares: list[tuple[Fraction, int]] = []
    for n, s in sorted(kinds, key=lambda kind: -Fraction(kind[1], kind[0])):
        taken = min(left, kinds[n, s] - hidden[n, s])
        shares.append((Fraction(s, n), taken))
        left -= taken
    models = sum(taken for _, taken in shares)
    if not models:
        return Fraction(0)
    for (n, s), h in hidden.items():
        if h:
            fitting = sum(taken for p, taken in shares if math.floor(p * n) == s)
            weight *= Fraction(fitting, models) ** h
    return weight


def _check(sizes: Sequence[int], sensitive: Sequence[int]) -> None:
    whole_numbers("sizes", sizes, 1)
    whole_numbers("sensitive rows", sensitive)
    if len(sizes) != len(sensitive):
        raise UsageError(f"{len(sensitive)} numbers of sensitive rows are given for {len(sizes)} classes")
    if any(s > n for n, s in zip(sizes, sensitive, strict=True)):
        raise UsageError("a class has more sensitive rows than rows")
