"""Credibility under the minimality attack: what the merging of classes gives away [Wong et al. 2007].

Classes of n₁ … n_u rows were generalised together because at least one of them violated ℓ-diversity with respect
to a set of sensitive values. Credibility of a class is the expected share of sensitive rows in it, over the worlds
in which some class violates: under global recoding, under local recoding, for a release as a whole. For any other
model, and for several sets, see `general_credibility`.

The adversary's list of people may be longer than the table [section 3 of the paper]. People whose quasi-identifiers
cannot be generalised to what a class shows change nothing. The others may or may not be among its rows: a world
chooses the rows of the class among all who match, and assigns them the values (`credibility_listed`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import refuse_beyond, whole_numbers
from maskwright.worlds.counting.violation_counts import (
    Kind,
    ViolationCount,
    caps_of,
    count_violations,
    kept_vectors,
)

Number = Fraction | float
RATIONAL_BITS = 2_000  # beyond this, products of probabilities of many classes are taken in floating point
STEPS = 2_000_000
RISK = 0.01


@dataclass(frozen=True)
class Credibility:
    """The credibility of each class, in the order in which the classes were given.

    Attributes:
        values: the expected share of sensitive rows in each class.
        before: the share of sensitive rows in the merged class, which an adversary believes anyway.
        violation: the probability that some class violates, before that is known; for a release as a whole,
            that some class of it does.
        arithmetic: "exact", or "float" with `relative_error` a bound relative to the larger of a value and
            `before`.
    """

    values: Sequence[Number]
    before: Fraction
    violation: Number
    arithmetic: Literal["exact", "float"]
    relative_error: float

    @property
    def worst(self) -> Number:
        """The largest credibility of a class."""
        return max(self.values)

    def sentence(self) -> str:
        """How far to trust the numbers."""
        if self.arithmetic == "exact":
            return "exact"
        return f"float, relative error at most {self.relative_error:.1g}"


@dataclass(frozen=True)
class Merged:
    """One published class: its original classes, the sensitive rows it holds, and the threshold of each class.

    Attributes:
        sizes: the rows of each original class.
        sensitive: the sensitive rows among all of them; those of this published class only.
        caps: the most sensitive rows each original class may hold without violating the requirement.
    """

    sizes: tuple[int, ...]
    sensitive: int
    caps: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], sensitive: int, ell: Fraction | int) -> Merged:
        """Merged for ℓ-diversity: a class violates it when j·ℓ > n."""
        whole_numbers("sizes", sizes, 1)
        whole_numbers("sensitive rows", [sensitive])
        return cls(tuple(sizes), sensitive, tuple(caps_of(sizes, Fraction(ell))))

    def kinds(self) -> Counter[Kind]:
        """How many original classes there are of each size and cap."""
        return Counter(zip(self.sizes, self.caps, strict=True))


def credibility_global(
    sizes: Sequence[int],
    sensitive: int,
    ell: Fraction | int | None = None,
    *,
    caps: Sequence[int] | None = None,
    exact: bool | None = None,
) -> Credibility | None:
    """Credibility in each of the classes that global recoding merged; None when no class can violate.

    Args:
        sizes: the rows of each original class.
        sensitive: the sensitive rows in the merged class.
        ell: the diversity asked for: a class violates when j·ℓ > n.
        caps: instead of `ell`, the most sensitive rows each class may hold.
        exact: True forces integers, False floating point; otherwise integers are used where they are fast.
    """
    if (ell is None) == (caps is None):
        raise UsageError("give either l or the caps of the classes, not both")
    if caps is None:
        merged = Merged.of(sizes, sensitive, Fraction(ell or 0))
    else:
        whole_numbers("sizes", sizes, 1)
        whole_numbers("sensitive rows", [sensitive])
        if len(caps) != len(sizes):
            raise UsageError(f"{len(caps)} caps are given for {len(sizes)} classes")
        merged = Merged(tuple(sizes), sensitive, tuple(caps))
    return _as_credibility(merged, count_violations(merged.kinds(), sensitive, exact))


def _as_credibility(merged: Merged, found: ViolationCount | None) -> Credibility | None:
    if found is None:
        return None
    values = tuple(found.share[kind] for kind in zip(merged.sizes, merged.caps, strict=True))
    return Credibility(values, found.before, found.violation, found.arithmetic, found.relative_error)


def vector_table(
    sizes: Sequence[int], sensitive: int, ell: Fraction | int
) -> list[tuple[tuple[int, ...], int]]:
    """The vectors (j₁ … j_u) with a violation and their weights, ascending: the table of the paper."""
    merged = Merged.of(sizes, sensitive, ell)
    refuse_beyond(math.prod(min(n, sensitive) + 1 for n in sizes[1:]))
    return list(kept_vectors(merged.sizes, merged.caps, sensitive))


def credibility_local(
    sizes: Sequence[int],
    published: Sequence[int],
    published_sensitive: Sequence[int],
    sensitive: int,
    ell: Fraction | int,
    *,
    exact: bool | None = None,
) -> Credibility | None:
    """Credibility under local recoding, where part of each class stayed ungeneralised; None without worlds.

    The worlds assume that *which* rows of a class were generalised was chosen without looking at their sensitive
    values. Violation is that of the original classes, ungeneralised rows included: (published_sensitive + j)·ℓ > n.

    Args:
        sizes: the rows of each original class.
        published: how many of them were published ungeneralised, and
        published_sensitive: how many of those are sensitive.
        sensitive: the sensitive rows in the generalised class.
        ell: the diversity asked for.
        exact: as in `credibility_global`.
    """
    whole_numbers("sizes", sizes, 1)
    for name, values in (("published rows", published), ("published sensitive rows", published_sensitive)):
        whole_numbers(name, values)
        if len(values) != len(sizes):
            raise UsageError(f"{name}: {len(values)} numbers are given for {len(sizes)} classes")
    if any(s > u or u > n for n, u, s in zip(sizes, published, published_sensitive, strict=True)):
        raise UsageError("a class has more published rows than rows, or more sensitive ones than published")
    free = [n - u for n, u in zip(sizes, published, strict=True)]
    caps = [c - s for c, s in zip(caps_of(sizes, Fraction(ell)), published_sensitive, strict=True)]
    found = count_with_empty(free, caps, sensitive, exact)
    if found is None:
        return None
    known = zip(sizes, free, caps, published_sensitive, strict=True)
    shares: dict[Kind, Number] = dict(found.share)
    credible: list[Number] = []
    for n, g, cap, s in known:
        held: Number = g * shares.get((g, cap), Fraction(0)) + s
        credible.append(held / n)
    return Credibility(tuple(credible), found.before, found.violation, found.arithmetic, found.relative_error)


def count_with_empty(
    free: Sequence[int], caps: Sequence[int], sensitive: int, exact: bool | None = None
) -> ViolationCount | None:
    """The count of violations where a class may have no rows left to vary: it violates already, or never."""
    varying = Counter((g, cap) for g, cap in zip(free, caps, strict=True) if g)
    everybody = sum(free)
    if not 0 <= sensitive <= everybody:
        return None
    if any(cap < 0 for g, cap in zip(free, caps, strict=True)):
        before = Fraction(sensitive, everybody) if everybody else Fraction(0)
        return ViolationCount(dict.fromkeys(varying, before), Fraction(1), before, "exact")
    return count_violations(varying, sensitive, exact)


def credibility_each(merged: Iterable[Merged], *, exact: bool | None = None) -> Iterator[Credibility | None]:
    """The credibility of many published classes, one class at a time as the paper has it; equal ones are shared."""
    known: dict[tuple[frozenset[tuple[Kind, int]], int], ViolationCount | None] = {}
    for one in merged:
        kinds = one.kinds()
        key = frozenset(kinds.items()), one.sensitive
        if key not in known:
            known[key] = count_violations(kinds, one.sensitive, exact)
        yield _as_credibility(one, known[key])


def credibility_release(merged: Sequence[Merged], *, exact: bool | None = None) -> list[Credibility] | None:
    """Credibility for the whole release: a violation *anywhere* explains what was published.

    Under full-domain recoding one violating class is reason enough for every merging, so the credibility of one
    published class alone overstates. With v the probability of a violation inside a published class, V that of
    one anywhere, S that of none outside this class, credibility is (v·S·(credibility alone) + (1−S)·before)/V.

    Returns:
        One result per published class; None when nothing anywhere can violate.
    """
    each = list(credibility_each(merged, exact=exact))
    anywhere, weights = violation_weights([Fraction(0) if one is None else one.violation for one in each])
    if not anywhere:
        return None
    exactly = all(isinstance(w, Fraction) for w in weights) and all(
        x.arithmetic == "exact" for x in each if x
    )
    error = 0.0
    if not exactly:
        digits = anywhere.denominator.bit_length() if isinstance(anywhere, Fraction) else 0  # of logarithms
        error = max(x.relative_error for x in each if x) + 1e-15 * (len(each) + 10 + digits)
    result = []
    for part, one, weight in zip(merged, each, weights, strict=True):
        before = Fraction(part.sensitive, sum(part.sizes))
        base: Number = before if exactly else float(before)
        here: Number = weight if exactly else float(weight)
        found: dict[Kind, Number] = {
            kind: here * alone + (1 - here) * base for kind, alone in _by_kind(part, one, base).items()
        }
        values = tuple(found[kind] for kind in zip(part.sizes, part.caps, strict=True))
        result.append(Credibility(values, before, anywhere, "exact" if exactly else "float", error))
    return result


def _by_kind(part: Merged, one: Credibility | None, base: Number) -> dict[Kind, Number]:
    """The credibility of each kind of class; without a violation the share of sensitive rows is even."""
    kinds = list(zip(part.sizes, part.caps, strict=True))
    if one is None:
        return dict.fromkeys(kinds, base)
    values = one.values if isinstance(base, Fraction) else [float(x) for x in one.values]
    return dict(zip(kinds, values, strict=True))


def violation_weights(violations: Sequence[Number]) -> tuple[Number, Sequence[Number]]:
    """The probability of a violation anywhere, and for each published class the weight of what is believed of it alone.

    That weight is the probability, given a violation anywhere, that one is in the class and none outside; with the
    rest of the weight, belief is as it was before. In fractions where all are fractions of a moderate length.
    """
    fractions = [v for v in violations if isinstance(v, Fraction)]
    if len(fractions) == len(violations):
        if sum(v.denominator.bit_length() for v in fractions) < RATIONAL_BITS:
            return _exact_weights(fractions)
        if max(fractions) < Fraction(1, 10**200):
            return _rare_weights(fractions)
    return _float_weights([float(v) for v in violations])


def _exact_weights(violations: Sequence[Fraction]) -> tuple[Fraction, list[Fraction]]:
    certain = sum(v == 1 for v in violations)
    none = math.prod((1 - v for v in violations if v != 1), start=Fraction(1))
    anywhere = Fraction(1) if certain else 1 - none
    if not anywhere:
        return anywhere, [Fraction(0)] * len(violations)
    clear = [(none if v == 1 else none / (1 - v)) * (certain == (v == 1)) for v in violations]
    return anywhere, [v * outside / anywhere for v, outside in zip(violations, clear, strict=True)]


def _rare_weights(violations: Sequence[Fraction]) -> tuple[Fraction, list[float]]:
    """Two violations at once do not matter, so that probabilities add up; they may be too small for floating point."""
    logs = [math.log(v.numerator) - math.log(v.denominator) if v else -math.inf for v in violations]
    top = max(logs)
    parts = [math.exp(x - top) for x in logs]
    total = math.fsum(parts)
    return max(violations) * Fraction(total), [x / total for x in parts]


def _float_weights(violations: Sequence[float]) -> tuple[float, list[float]]:
    certain = sum(v >= 1 for v in violations)
    logs = [math.log1p(-v) if v < 1 else 0.0 for v in violations]
    total = math.fsum(logs)
    anywhere = 1.0 if certain else -math.expm1(total)
    clear = [
        math.exp(total - x) if certain == (v >= 1) else 0.0 for v, x in zip(violations, logs, strict=True)
    ]
    return anywhere, [v * c / anywhere if anywhere else 0.0 for v, c in zip(violations, clear, strict=True)]


@dataclass(frozen=True)
class ListedPeople:
    """People of the list with the same quasi-identifiers.

    Attributes:
        candidates: those who may be among the rows of the generalised class.
        rows: rows with these quasi-identifiers that were published as they are, and
        sensitive: the sensitive ones among them.
    """

    candidates: int
    rows: int = 0
    sensitive: int = 0

    @property
    def people(self) -> int:
        """The number of people in the class of the list."""
        return self.candidates + self.rows

    def violates(self, rows: int, sensitive: int, share: Fraction) -> bool:
        """Whether the class exceeds the share once so many of its candidates are rows, and sensitive ones."""
        return self.sensitive + sensitive > share * (self.rows + rows)


@dataclass(frozen=True)
class ListCredibility:
    """Per class of the list, the probability that a person of it is in the table and sensitive; `half`: ± so much."""

    beliefs: list[Fraction]
    violation: Fraction
    half: float = 0.0


def credibility_listed(
    classes: Sequence[ListedPeople],
    rows: int,
    sensitive: int,
    share: Fraction,
    draws: int = 0,
    asked: int = 1,
) -> ListCredibility | None:
    """Beliefs about people of the list; None: no world in which a class violates.

    Args:
        classes: the list, by quasi-identifiers: all who may be among the rows of one generalised class.
        rows: of that class, and
        sensitive: the sensitive ones among them.
        share: the most sensitive rows a class may have, as a share.
        draws: worlds to draw where counting takes too long; 0: refuse (`TooManyWorlds`).
        asked: so many beliefs must lie in their intervals at once.
    """
    kinds = Counter(classes)
    work = sum(m * (c.candidates + 1) * (min(c.candidates, sensitive) + 1) for c, m in kinds.items())
    work *= (rows + 1) * (sensitive + 1) * (len(kinds) + 1)
    if work > STEPS and draws:
        return _drawn_worlds(classes, rows, sensitive, share, draws, asked)
    refuse_beyond(work, STEPS)
    everybody = sum(c.candidates for c in classes)
    worlds = math.comb(everybody, rows) * math.comb(rows, sensitive)
    safe = _safe_worlds(kinds, None, rows, sensitive, share)
    kept = worlds - safe
    if not kept:
        return None
    found: dict[ListedPeople, Fraction] = {}
    for kind in kinds:
        held = Fraction(worlds * kind.candidates * sensitive, everybody) if everybody else Fraction(0)
        held -= _safe_worlds(kinds, kind, rows, sensitive, share)
        found[kind] = (kind.sensitive + held / kept) / kind.people if kind.people else Fraction(0)
    return ListCredibility([found[c] for c in classes], Fraction(kept, worlds))


def _safe_worlds(
    kinds: Counter[ListedPeople], marked: ListedPeople | None, rows: int, sensitive: int, share: Fraction
) -> int:
    """Worlds in which no class violates; with a marked kind, the sensitive rows of one class of it over all of them."""
    ways = {(0, 0): 1}
    for kind, many in kinds.items():
        parts = {
            (m, j): math.comb(kind.candidates, m) * math.comb(m, j)
            for m in range(min(kind.candidates, rows) + 1)
            for j in range(min(m, sensitive) + 1)
            if not kind.violates(m, j, share)
        }
        for number in range(many):
            weighted = kind == marked and number == 0
            after: dict[tuple[int, int], int] = {}
            for (m, j), w in ways.items():
                for (dm, dj), p in parts.items():
                    if m + dm <= rows and j + dj <= sensitive:
                        key = m + dm, j + dj
                        after[key] = after.get(key, 0) + w * p * (dj if weighted else 1)
            ways = after
    return ways.get((rows, sensitive), 0)


def _drawn_worlds(
    classes: Sequence[ListedPeople], rows: int, sensitive: int, share: Fraction, draws: int, asked: int
) -> ListCredibility | None:
    """Draw worlds independently; those without a violation are thrown away."""
    rng = np.random.default_rng(0)
    room = [c.candidates for c in classes]
    m = rng.multivariate_hypergeometric(room, rows, draws)
    j = np.stack([rng.multivariate_hypergeometric(x, sensitive) for x in m])
    known, seen = np.array([c.rows for c in classes]), np.array([c.sensitive for c in classes])
    over = (seen + j) * share.denominator > share.numerator * (known + m)
    kept = j[over.any(axis=1)]
    if not len(kept):
        return None
    people = np.array([max(1, c.people) for c in classes])
    means = (seen + kept.mean(axis=0)) / people
    half = math.sqrt(math.log(2 * asked / RISK) / (2 * len(kept)))
    return ListCredibility([Fraction(x) for x in means.tolist()], Fraction(len(kept), draws), half)
