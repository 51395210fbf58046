"""Credibility under the minimality attack, global recoding: what the merging of classes gives away [Wong 2007].

Classes of n₁ … n_u people were merged because at least one of them violated the requirement. The possible
worlds are all assignments of the merged class's values to its people; kept are those in which some class i
holds more than n_i/ℓ people of a sensitive set. Credibility is the share of the set in a class, averaged over
the worlds kept.

Those that are *not* kept are easy to count: for one set, the coefficients of ∏ Σ_{j·ℓ ≤ n_i} C(n_i, j) xʲ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

WORK = 30_000_000  # multiplications of large integers before the exact computation is refused


class TooLarge(Exception):  # noqa: N818 - the caller says what to do instead
    """The exact computation would take too long."""


def one_set(sizes: Sequence[int], sensitive: int, ell: Fraction) -> list[Fraction] | None:
    """Credibility in each class when `sensitive` people hold the set; None when no world is kept."""
    if not sensitive:
        return None
    caps = [min(sensitive, math.floor(n / ell)) for n in sizes]
    if sum(caps) * sensitive > WORK:
        raise TooLarge
    safe = {(n, cap): [math.comb(n, j) for j in range(cap + 1)] for n, cap in zip(sizes, caps, strict=True)}
    product = [1]
    for n, cap in zip(sizes, caps, strict=True):
        product = _multiply(product, safe[n, cap], sensitive)
    product += [0] * (sensitive + 1 - len(product))
    everybody = sum(sizes)
    kept = math.comb(everybody, sensitive) - product[sensitive]
    if not kept:
        return None
    found: dict[tuple[int, int], Fraction] = {}
    for (n, cap), polynomial in safe.items():
        others = _divide(product, polynomial)
        held = sum(j * c * others[sensitive - j] for j, c in enumerate(polynomial))
        found[n, cap] = Fraction(n * math.comb(everybody - 1, sensitive - 1) - held, n * kept)
    return [found[n, cap] for n, cap in zip(sizes, caps, strict=True)]


def several_sets(
    sizes: Sequence[int], sensitive: Sequence[int], ell: Fraction
) -> list[list[Fraction]] | None:
    """The same with disjoint sets, `sensitive[s]` people holding set s: [class][set]; None without worlds.

    A world is kept when some class holds too much of *any* set. Sets too small to violate anywhere are spread
    evenly over what the others leave, so only the rest has to be counted.
    """
    least = min(math.floor(n / ell) for n in sizes)
    able = [s for s, g in enumerate(sensitive) if g > least]
    if not able:
        return None
    if len(able) == 1:
        alone = one_set(sizes, sensitive[able[0]], ell)
        table = None if alone is None else [[x] for x in alone]
    else:
        table = _count_states(sizes, tuple(sensitive[s] for s in able), ell)
    if table is None:
        return None
    left = sum(sizes) - sum(sensitive[s] for s in able)
    result = []
    for row in table:
        share = dict(zip(able, row, strict=True))
        others = 1 - sum(row, Fraction(0))
        result.append([share[s] if s in share else others * g / left for s, g in enumerate(sensitive)])
    return result


def _count_states(sizes: Sequence[int], goal: tuple[int, ...], ell: Fraction) -> list[list[Fraction]] | None:
    """Count the safe worlds class by class, by how many people of each set have been placed."""
    everybody = sum(sizes)
    shares = {n: _safe_shares(n, math.floor(n / ell), goal, everybody - sum(goal)) for n in set(sizes)}
    if not all(shares.values()):  # some class violates in every world: all are kept
        return [[Fraction(g, everybody) for g in goal] for _ in sizes]
    nobody = {(0,) * len(goal): 1}
    before, after = [nobody], [nobody]
    for n in sizes:
        before.append(_convolve(before[-1], shares[n], goal))
    for n in reversed(sizes):
        after.append(_convolve(after[-1], shares[n], goal))
    after.reverse()
    worlds = _multinomial(everybody, goal)
    kept = worlds - before[-1].get(goal, 0)
    if not kept:
        return None
    result = []
    for i, n in enumerate(sizes):
        held = _held(shares[n], _convolve(before[i], after[i + 1], goal), goal)
        result.append(
            [
                Fraction(n * g * worlds - h * everybody, everybody * n * kept)
                for g, h in zip(goal, held, strict=True)
            ]
        )
    return result


def _held(
    shares: dict[tuple[int, ...], int], others: dict[tuple[int, ...], int], goal: tuple[int, ...]
) -> list[int]:
    """How many people of each set a class holds, added up over all safe worlds."""
    held = [0] * len(goal)
    for share, ways in shares.items():
        worlds = ways * others.get(tuple(g - x for g, x in zip(goal, share, strict=True)), 0)
        for s, x in enumerate(share):
            held[s] += x * worlds
    return held


def _multiply(a: list[int], b: list[int], degree: int) -> list[int]:
    result = [0] * min(degree + 1, len(a) + len(b) - 1)
    for j, y in enumerate(b):
        for i, x in enumerate(a[: len(result) - j]):
            result[i + j] += x * y
    return result


def _divide(a: list[int], b: list[int]) -> list[int]:
    """a/b as power series; b starts with 1, so it is exact up to the degree of a."""
    result = list(a)
    for i in range(len(result)):
        for j in range(1, min(i, len(b) - 1) + 1):
            result[i] -= b[j] * result[i - j]
    return result


def _multinomial(n: int, parts: Sequence[int]) -> int:
    result = 1
    for part in parts:
        result *= math.comb(n, part)
        n -= part
    return result


def _safe_shares(n: int, cap: int, goal: tuple[int, ...], rest: int) -> dict[tuple[int, ...], int]:
    """How many of each set a class of n may hold without violating, with the number of ways.

    `rest` people hold none of the sets: what the sets leave of the class has to be filled from them.
    """
    found: dict[tuple[int, ...], int] = {(): 1}
    for s, g in enumerate(goal):
        later = rest + sum(min(x, cap) for x in goal[s + 1 :])
        longer: dict[tuple[int, ...], int] = {}
        for share, ways in found.items():
            free = n - sum(share)
            for x in range(max(0, free - later), min(g, cap, free) + 1):
                longer[*share, x] = ways * math.comb(free, x)
        if len(longer) > WORK // 100:
            raise TooLarge
        found = longer
    return found


def _convolve(
    a: dict[tuple[int, ...], int], b: dict[tuple[int, ...], int], goal: tuple[int, ...]
) -> dict[tuple[int, ...], int]:
    if len(a) * len(b) > WORK // 10:
        raise TooLarge
    result: dict[tuple[int, ...], int] = {}
    for x, p in a.items():
        for y, q in b.items():
            both = tuple(i + j for i, j in zip(x, y, strict=True))
            if all(i <= g for i, g in zip(both, goal, strict=True)):
                result[both] = result.get(both, 0) + p * q
    return result
