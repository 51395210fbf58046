"""Credibility under the minimality attack: what the merging of classes gives away [Wong et al. 2007].

Classes of n₁ … n_u rows were generalised together because at least one of them violated ℓ-diversity with respect
to a set of sensitive values. Credibility of a class is the expected share of sensitive rows in it, over the worlds
in which some class violates. For any other model, and for several sets, see `general`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from maskwright.core.worlds.limits import refuse_beyond, whole_numbers
from maskwright.core.worlds.vectors import Counted, Kind, caps_of, count, kept_vectors
from maskwright.errors import UsageError

Number = Fraction | float
RATIONAL_BITS = 2_000  # beyond this, products of probabilities of many classes are taken in floating point


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
    return _as_credibility(merged, count(merged.kinds(), sensitive, exact))


def _as_credibility(merged: Merged, found: Counted | None) -> Credibility | None:
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
) -> Counted | None:
    """`count`, where a class may have no rows left to vary: it violates already, or never."""
    varying = Counter((g, cap) for g, cap in zip(free, caps, strict=True) if g)
    everybody = sum(free)
    if not 0 <= sensitive <= everybody:
        return None
    if any(cap < 0 for g, cap in zip(free, caps, strict=True)):
        before = Fraction(sensitive, everybody) if everybody else Fraction(0)
        return Counted(dict.fromkeys(varying, before), Fraction(1), before, "exact")
    return count(varying, sensitive, exact)


def credibility_each(merged: Iterable[Merged], *, exact: bool | None = None) -> Iterator[Credibility | None]:
    """The credibility of many published classes, one class at a time as the paper has it; equal ones are shared."""
    known: dict[tuple[frozenset[tuple[Kind, int]], int], Counted | None] = {}
    for one in merged:
        kinds = one.kinds()
        key = frozenset(kinds.items()), one.sensitive
        if key not in known:
            known[key] = count(kinds, one.sensitive, exact)
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
    anywhere, weights = explained_here([Fraction(0) if one is None else one.violation for one in each])
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


def explained_here(violations: Sequence[Number]) -> tuple[Number, Sequence[Number]]:
    """The probability of a violation anywhere, and for each published class that there is one in it and none outside,
    given one anywhere: what is believed about it is so much of what is believed of it alone, and the rest is as before.

    In fractions where all are fractions of a moderate length.
    """
    fractions = [v for v in violations if isinstance(v, Fraction)]
    if len(fractions) == len(violations):
        if sum(v.denominator.bit_length() for v in fractions) < RATIONAL_BITS:
            return _explained_exactly(fractions)
        if max(fractions) < Fraction(1, 10**200):
            return _explained_rarely(fractions)
    return _explained_in_floats([float(v) for v in violations])


def _explained_exactly(violations: Sequence[Fraction]) -> tuple[Fraction, list[Fraction]]:
    certain = sum(v == 1 for v in violations)
    none = math.prod((1 - v for v in violations if v != 1), start=Fraction(1))
    anywhere = Fraction(1) if certain else 1 - none
    if not anywhere:
        return anywhere, [Fraction(0)] * len(violations)
    clear = [(none if v == 1 else none / (1 - v)) * (certain == (v == 1)) for v in violations]
    return anywhere, [v * outside / anywhere for v, outside in zip(violations, clear, strict=True)]


def _explained_rarely(violations: Sequence[Fraction]) -> tuple[Fraction, list[float]]:
    """Two violations at once do not matter, so that probabilities add up; they may be too small for floating point."""
    logs = [math.log(v.numerator) - math.log(v.denominator) if v else -math.inf for v in violations]
    top = max(logs)
    parts = [math.exp(x - top) for x in logs]
    total = math.fsum(parts)
    return max(violations) * Fraction(total), [x / total for x in parts]


def _explained_in_floats(violations: Sequence[float]) -> tuple[float, list[float]]:
    certain = sum(v >= 1 for v in violations)
    logs = [math.log1p(-v) if v < 1 else 0.0 for v in violations]
    total = math.fsum(logs)
    anywhere = 1.0 if certain else -math.expm1(total)
    clear = [
        math.exp(total - x) if certain == (v >= 1) else 0.0 for v, x in zip(violations, logs, strict=True)
    ]
    return anywhere, [v * c / anywhere if anywhere else 0.0 for v, c in zip(violations, clear, strict=True)]


def readable_ell(sizes: Sequence[int], sensitive: Sequence[int]) -> Fraction | None:
    """The largest ℓ that every published class satisfies: what an adversary may read off the release.

    Args:
        sizes: the rows of each published class.
        sensitive: the sensitive rows in each.

    Returns:
        None when no class holds a sensitive row.
    """
    whole_numbers("sizes", sizes, 1)
    whole_numbers("sensitive rows", sensitive)
    return min((Fraction(n, s) for n, s in zip(sizes, sensitive, strict=True) if s), default=None)
