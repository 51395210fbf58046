"""Rules decided class by class in numpy, and how many rows a failing class must lose in any refinement.

The second figure is what lets a search discard nodes it has not looked at. Split a failing class in any way:
the parts that pass cannot hold all of its rows. A class that is too small, or has too few values, loses all of
them. For the other rules the violation is convex, so that a class that violates it by much must lose much:

* share: c_v − L ≤ share·(n − L), so L ≥ (c_v − share·n)/(1 − share);
* entropy is concave: n·H ≥ (n − L)·log l, so L ≥ n·(1 − H/log l);
* recursive: the tail of a sum is at least the sum of the tails, so L ≥ r₁ − c·tail;
* closeness: n·d ≤ (n − L)·t + L·d_max, so L ≥ n·(d − t)/(d_max − t); and of the R rows that remain a set S of values
  has at most c(S), so that what the shares c(S)/R fall short of the reference, weighted, is at most t. With equal
  weights that is exact: R is possible if and only if Σ min(c_v, q_v·R) ≥ (1 − t)·R;
* shares within bounds: the R rows that remain satisfy R ≤ Σ min(c_v, most_v·R), also with whole people; a value
  that must not be absent is at least a share of them, so L ≥ n − c_v/least_v. A value that is too rare but may be
  absent loses nothing: a part can do without it.

Where what could remain is smaller than the least class, nothing remains (`Checker`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.exact import entropy_at_least
from maskwright.domain.rules import (
    Closeness,
    DistinctAtLeast,
    EntropyAtLeast,
    Recursive,
    Rule,
    ShareAtMost,
    SharesWithin,
    SizeAtLeast,
)

Bools = NDArray[np.bool_]
TABLED = 1024  # people of a class, and values, below which people are taken as whole, as in the kernel
KEPT_STEPS = 4  # of Newton's, as in the kernel
ALL = np.iinfo(np.int64).max  # "every row of the class", before it is cut to the class


def decide_classes(rule: Rule, classes: Classes) -> tuple[Bools, Ints]:
    """Which classes pass, and how many rows each failing class loses at least in any refinement."""
    if isinstance(rule, SizeAtLeast):
        passes = classes.sizes >= rule.k
        return passes, np.where(passes, 0, classes.rows)
    counts = classes.sensitive[rule.attribute]
    if isinstance(rule, DistinctAtLeast):
        values = counts.counts * 0 + (counts.codes > 0)
        passes = _per_class(counts, values) >= rule.l
        return passes, np.where(passes, 0, classes.rows)
    if isinstance(rule, ShareAtMost):
        passes, least = _share(rule, counts, classes)
    elif isinstance(rule, EntropyAtLeast):
        passes, least = _entropy(rule, counts)
    elif isinstance(rule, Recursive):
        passes, least = _recursive(rule, counts)
    elif isinstance(rule, SharesWithin):
        passes, least = _shares_within(rule, counts)
        return passes, np.minimum(classes.rows, np.where(least > 0, at_least_one(least), 0))
    else:
        passes, least = _closeness(rule, counts)
    return passes, np.where(passes, 0, np.minimum(classes.rows, at_least_one(least)))


def at_least_one(bound: NDArray[np.float64]) -> Ints:
    """A lower bound on whole rows from its float: rounded up, after giving way for the float's own error."""
    return np.maximum(1, np.ceil(bound * (1 - 1e-9) - 1e-9)).astype(np.int64)


def _per_class(counts: ValueCounts, values: Ints) -> Ints:
    """Sums over the entries of each class."""
    sums = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(sums[counts.start[1:]] - sums[counts.start[:-1]], dtype=np.int64)


def _kept(counts: ValueCounts, missing: str) -> Ints:
    """The counts that take part."""
    return counts.counts if missing == "value" else np.where(counts.codes > 0, counts.counts, 0)


def _safe(*sizes: int | Fraction) -> bool:
    return math.prod(int(s) + 1 for s in sizes) < 2**62


def _share(rule: ShareAtMost, counts: ValueCounts, classes: Classes) -> tuple[Bools, NDArray[np.float64]]:
    sets = rule.sets
    if sets is None:
        most = np.zeros(classes.n, dtype=np.int64)
        np.maximum.at(most, counts.owner, _kept(counts, "out"))
    else:
        most = np.zeros(classes.n, dtype=np.int64)
        for codes in sets:
            inside = np.isin(counts.codes, codes)
            most = np.maximum(most, _per_class(counts, np.where(inside, counts.counts, 0)))
    num, den = rule.share.numerator, rule.share.denominator
    peak = int(max(most.max(initial=0), classes.sizes.max(initial=0)))
    if _safe(peak, num) and _safe(peak, den):
        passes = most * den <= classes.sizes * num
    else:
        passes = np.array(
            [int(x) * den <= int(n) * num for x, n in zip(most, classes.sizes, strict=True)], bool
        )
    share = float(rule.share)
    # where a row is a person, a lost row makes the class smaller as well
    room = np.where(classes.sizes == classes.rows, 1 - share, 1.0) if share < 1 else 1.0
    return passes, (most - share * classes.sizes) / room


def _entropy(rule: EntropyAtLeast, counts: ValueCounts) -> tuple[Bools, NDArray[np.float64]]:
    kept = _kept(counts, rule.missing)
    total = _per_class(counts, kept)
    x = kept.astype(np.float64)
    terms = np.concatenate([[0.0], np.cumsum(x * np.log(np.maximum(x, 1)))])
    n = np.maximum(total, 1).astype(np.float64)
    spread = (terms[counts.start[1:]] - terms[counts.start[:-1]]) / n
    gap = np.log(n) - spread - math.log(rule.l)
    passes = (gap > 0) & (total > 0)
    # cumulative sums lose digits: everything near the threshold is decided in integers
    for c in np.flatnonzero((np.abs(gap) < 1e-6) & (total > 0)):
        part = kept[counts.start[c] : counts.start[c + 1]]
        passes[c] = entropy_at_least([int(v) for v in part if v], rule.l)
    log_l = math.log(rule.l)
    return passes, n * (-gap - 1e-6) / log_l if log_l > 0 else np.zeros(len(n))


def _recursive(rule: Recursive, counts: ValueCounts) -> tuple[Bools, NDArray[np.float64]]:
    kept = _kept(counts, rule.missing)
    order = np.lexsort((-kept, counts.owner))
    falling = kept[order]
    rank = np.arange(len(falling)) - counts.start[:-1][counts.owner]
    n_classes = counts.n_classes
    first = np.zeros(n_classes, dtype=np.int64)
    np.maximum.at(first, counts.owner, falling)
    tail = _per_class(counts, np.where(rank >= rule.l - 1, falling, 0))
    num, den = rule.c.numerator, rule.c.denominator
    if _safe(int(first.max(initial=0)), den) and _safe(int(tail.max(initial=0)), num):
        passes = first * den < tail * num
    else:
        passes = np.array([int(r) * den < int(s) * num for r, s in zip(first, tail, strict=True)], bool)
    return passes, first - float(rule.c) * tail


def _closeness(rule: Closeness, counts: ValueCounts) -> tuple[Bools, NDArray[np.float64]]:
    table, whole, scale = closeness_tables(rule)
    n_values = len(rule.reference)
    reference_total = int(sum(rule.reference))
    dense = np.zeros((counts.n_classes, n_values), dtype=np.int64)
    dense[counts.owner, counts.codes] = _kept(counts, rule.missing)
    total = dense.sum(axis=1)
    inside = np.zeros((n_values, len(table)), dtype=np.int64)
    for j, (_, codes) in enumerate(table):
        inside[list(codes), j] = 1
    weight = [w for w, _ in table]
    peak = int(total.max(initial=0))
    asked = rule.t * whole
    if _safe(2 * peak, reference_total, sum(weight), asked.denominator) and _safe(
        peak, reference_total, asked.numerator
    ):
        off = np.abs(dense @ inside * reference_total - total[:, None] * scale)
        moved = off @ np.array(weight, dtype=np.int64)
        passes = moved * asked.denominator <= total * (reference_total * asked.numerator)
        distance = moved / np.maximum(1.0, total * float(reference_total)) / whole
    else:
        off = np.abs(
            (dense @ inside).astype(object) * reference_total - np.outer(total.astype(object), scale)
        )
        moved_exact = [sum(w * x for w, x in zip(weight, row, strict=True)) for row in off.tolist()]
        bounds = [int(n) * reference_total * asked.numerator for n in total]
        passes = np.array(
            [m * asked.denominator <= b for m, b in zip(moved_exact, bounds, strict=True)], bool
        )
        distance = np.array(
            [m / max(1, int(n) * reference_total * whole) for m, n in zip(moved_exact, total, strict=True)]
        )
    room = largest_distance(rule) - float(rule.t)
    lost = total * (distance - float(rule.t)) / room if room > 0 else np.zeros(len(total))
    return passes, np.maximum(lost, total - _most_close(rule, (dense @ inside).astype(np.float64), total))


def _most_close(rule: Closeness, held: NDArray[np.float64], total: Ints) -> NDArray[np.float64]:
    """The most people of each class that parts within t can keep; `held` are those of each set of values."""
    lacks, exceeds = shortfall_weights(rule)
    shares = closeness_tables(rule)[2] / max(sum(rule.reference), 1)
    n = total.astype(np.float64)
    sides = [(lacks, shares, held), (exceeds, 1 - shares, n[:, None] - held)]
    kept = n.copy()
    going = np.ones(len(n), dtype=bool)
    for _ in range(KEPT_STEPS):
        have, asked = np.zeros(len(n)), np.full(len(n), -float(rule.t))
        for weights, q, c in sides:
            short = np.where(q * kept[:, None] > c, weights, 0.0)
            have += (short * c).sum(axis=1)
            asked += (short * q).sum(axis=1)
        steps = have / np.where(asked < 1e-9, 1.0, asked)
        going &= (asked >= 1e-9) & (steps < kept)
        kept = np.where(going, steps, kept)
    return kept


@lru_cache(maxsize=64)
def shortfall_weights(rule: Closeness) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By set: the distance is at least Σ lacks·(q(S) − p(S))⁺ + Σ exceeds·(q(S̄) − p(S̄))⁺, S̄ the complement.

    Both weights are the set's own, for |x| = x⁺ + (−x)⁺. Sets that part the values have as much too much as too
    little together, so that for them the least of their weights is added to what is lacked, and nothing is exceeded.
    """
    first = 0 if rule.missing == "value" else 1
    lacks = np.array([float(weight) for weight, _ in rule.sets])
    exceeds = lacks.copy()
    open_sets = sorted(range(len(rule.sets)), key=lambda j: len(rule.sets[j][1]))
    while open_sets:
        part: list[int] = []
        seen: set[int] = set()
        for j in open_sets:
            codes = rule.sets[j][1]
            if codes and seen.isdisjoint(codes):
                part.append(j)
                seen.update(codes)
        if not seen.issuperset(range(first, len(rule.reference))):
            break
        lacks[part] += lacks[part].min()
        exceeds[part] = 0.0
        open_sets = [j for j in open_sets if j not in part]
    return lacks, exceeds


def _shares_within(rule: SharesWithin, counts: ValueCounts) -> tuple[Bools, NDArray[np.float64]]:
    values = slice(1, len(rule.most))
    dense = np.zeros((counts.n_classes, len(rule.most)), dtype=np.int64)
    dense[counts.owner, counts.codes] = counts.counts
    held = dense[:, values]
    n = held.sum(axis=1)[:, None]
    over = _exceeds(held, rule.most[values], n)
    under = ~_exceeds(held, rule.least[values], n, or_equal=True)
    if not rule.absent:
        under &= held > 0
    least = np.array([float(x) for x in rule.least[values]])
    lost = np.where(over.any(axis=1), n[:, 0] - _most_within(rule, held), 0.0)
    if rule.absent:
        asked = np.where(least > 0, least, np.inf)
        without = np.where(under, n - held / asked, 0.0).max(axis=1, initial=0.0)
        lost = np.maximum(lost, without)
    passes = np.where(n[:, 0] > 0, ~(over | under).any(axis=1), not rule.absent)
    return passes, np.where(passes, 0.0, lost)


def _most_within(rule: SharesWithin, held: Ints) -> NDArray[np.float64]:
    """The most people of each class that parts can keep in which no value has more than its share."""
    people = held.sum(axis=1)
    few = (people < TABLED) & (len(rule.most) <= TABLED)
    most = np.array([float(x) for x in rule.most[1:]])
    kept, going = people.astype(np.float64), ~few
    for _ in range(KEPT_STEPS):
        full = held <= most * kept[:, None]
        slope = np.where(full, 0.0, most).sum(axis=1)
        steps = np.where(full, held, 0).sum(axis=1) / np.where(slope > 1 - 1e-9, 1.0, 1 - slope)
        going &= (slope <= 1 - 1e-9) & (steps < kept)
        kept = np.where(going, steps, kept)
    whole = np.where(few, people, 0)
    up, down = (np.array([getattr(x, part) for x in rule.most[1:]]) for part in ("numerator", "denominator"))
    for _ in range(2 * KEPT_STEPS):
        whole = np.minimum(whole, np.minimum(held, whole[:, None] * up // down).sum(axis=1))
    return np.where(few, whole, kept)


def _exceeds(held: Ints, bounds: tuple[Fraction, ...], n: Ints, or_equal: bool = False) -> Bools:
    """held > bound·n, or ≥: in 64 bits where the products fit, else in Python's integers."""
    num, den = ([getattr(x, part) for x in bounds] for part in ("numerator", "denominator"))
    kind = np.int64 if _safe(int(n.max(initial=0)), max(num + den, default=1)) else object
    left, right = held.astype(kind) * np.array(den, kind), n.astype(kind) * np.array(num, kind)
    return np.asarray(left >= right if or_equal else left > right, dtype=bool)


@lru_cache(maxsize=64)
def closeness_tables(rule: Closeness) -> tuple[list[tuple[int, tuple[int, ...]]], int, Ints]:
    """Integer weights with their codes, the common denominator of the weights, and each set's reference."""
    whole = math.lcm(*(w.denominator for w, _ in rule.sets)) if rule.sets else 1
    table = [(int(w * whole), tuple(codes)) for w, codes in rule.sets]
    reference = np.array([sum(rule.reference[v] for v in codes) for _, codes in table], dtype=np.int64)
    return table, whole, reference


def largest_distance(rule: Closeness) -> float:
    """The largest distance that a class can have: all of it on one value. Never less than the exact figure."""
    total = sum(rule.reference)
    if not total:
        return 0.0
    base, change = 0.0, [0.0] * len(rule.reference)
    for weight, codes in rule.sets:
        share = sum(rule.reference[v] for v in codes) / total
        base += float(weight) * share
        for v in codes:  # a class inside the set is 1 − share away from it instead of share
            change[v] += float(weight) * (1 - 2 * share)
    first = 0 if rule.missing == "value" else 1
    return (base + max(change[first:], default=0.0)) * (1 + 1e-9)
