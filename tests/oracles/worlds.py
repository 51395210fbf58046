"""Beliefs by the definition, world by world: slow, obvious, and sharing no code with the product."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

Row = TypeVar("Row")


def orders(values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Every different order of the values."""
    return sorted(set(itertools.permutations(values)), key=repr)


def positive_rows(sizes: Sequence[int], positives: int) -> Iterator[list[int]]:
    """Every choice of positive rows, as the number of positives in each class."""
    owner = [i for i, n in enumerate(sizes) for _ in range(n)]
    for chosen in itertools.combinations(range(len(owner)), positives):
        held = Counter(owner[row] for row in chosen)
        yield [held[i] for i in range(len(sizes))]


def shares(sizes: Sequence[int], kept: Sequence[Sequence[int]]) -> list[Fraction] | None:
    """The mean share of positives in each class over the worlds kept."""
    if not kept:
        return None
    return [Fraction(sum(world[i] for world in kept), len(kept) * n) for i, n in enumerate(sizes)]


def after_violation(sizes: Sequence[int], positives: int, caps: Sequence[int]) -> list[Fraction] | None:
    """Shares given that some class holds more positives than its cap."""
    kept = [w for w in positive_rows(sizes, positives) if any(j > c for j, c in zip(w, caps, strict=True))]
    return shares(sizes, kept)


def credibility_of_sets(
    sizes: Sequence[int], held: Sequence[int], ell: Fraction
) -> list[list[Fraction]] | None:
    """Of each class the mean shares of several sets of values, given that some class violates ℓ-diversity; set number
    -1 is nothing sensitive."""
    values = [s for s, count in enumerate(held) for _ in range(count)]
    values += [-1] * (sum(sizes) - len(values))
    ends = [0, *itertools.accumulate(sizes)]
    seen, total = 0, [[Fraction(0)] * len(held) for _ in sizes]
    for world in orders(values):
        inside = [Counter(world[a:b]) for a, b in itertools.pairwise(ends)]
        if not any(c[s] * ell > n for c, n in zip(inside, sizes, strict=True) for s in range(len(held))):
            continue
        seen += 1
        for i, (c, n) in enumerate(zip(inside, sizes, strict=True)):
            for s in range(len(held)):
                total[i][s] += Fraction(c[s], n)
    return [[x / seen for x in row] for row in total] if seen else None


def dealt(groups: Sequence[tuple[Sequence[Row], Sequence[Any]]]) -> Iterator[dict[Row, Any]]:
    """Every way to deal each group's values to its rows."""
    for world in itertools.product(*(orders(values) for _, values in groups)):
        yield {
            row: value
            for (rows, _), mine in zip(groups, world, strict=True)
            for row, value in zip(rows, mine, strict=True)
        }


def beliefs(worlds: Sequence[tuple[dict[int, Any], Fraction]]) -> dict[int, dict[Any, Fraction]] | None:
    """Per row, value → probability, from weighted worlds."""
    total = sum((weight for _, weight in worlds), Fraction(0))
    if not total:
        return None
    found: dict[int, dict[Any, Fraction]] = {}
    for world, weight in worlds:
        for row, value in world.items():
            mine = found.setdefault(row, {})
            if weight:
                mine[value] = mine.get(value, Fraction(0)) + weight / total
    return found


def at_most_one_in(ell: Fraction | int) -> Callable[[Any], bool]:
    """Simple ℓ-diversity on counts."""
    return lambda counts: all(c * ell <= sum(counts.values()) for c in counts.values())


def binary(ell: Fraction | int, positive: Any = "P") -> Callable[[Any], bool]:
    """Binary ℓ-diversity on counts."""
    return lambda counts: counts.get(positive, 0) * ell <= sum(counts.values())


def distinct(ell: int) -> Callable[[Any], bool]:
    return lambda counts: sum(1 for c in counts.values() if c) >= ell
