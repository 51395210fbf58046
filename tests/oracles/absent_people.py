"""Absence: what is believed about people who are missing because of their values.

Nothing is published about them, so the prior is that everybody is sensitive with probability θ, independently (the
published share). What they are missing *for* is information: a dropped class violated the requirement.
"""

from __future__ import annotations

import math
from fractions import Fraction

from maskwright.worlds.counting.counting_limits import share_fraction, whole_numbers
from maskwright.worlds.counting.violation_counts import caps_of


def dropped_class(size: int, ell: Fraction | int, theta: Fraction | int) -> Fraction | None:
    """The belief that a member of a class dropped for violating ℓ-diversity is sensitive; None: impossible."""
    whole_numbers("size", [size], 1)
    theta = share_fraction("theta", theta)
    cap = caps_of([size], Fraction(ell))[0]
    chances = [
        (j, math.comb(size, j) * theta**j * (1 - theta) ** (size - j))
        for j in range(max(cap + 1, 0), size + 1)
    ]
    total = sum((c for _, c in chances), Fraction(0))
    return sum((j * c for j, c in chances), Fraction(0)) / (total * size) if total else None


def dropped_tail(ell: int, buckets: int, theta: Fraction | int) -> list[Fraction] | None:
    """The same, per bucket, for the last buckets of greedy grouping, which never became diverse.

    Every prefix of i buckets holds more than i positives. None: impossible.
    """
    whole_numbers("l and the number of buckets", [ell, buckets], 1)
    theta = share_fraction("theta", theta)
    chance = [math.comb(ell, k) * theta**k * (1 - theta) ** (ell - k) for k in range(ell + 1)]
    layers: list[dict[int, Fraction]] = [{0: Fraction(1)}]
    for i in range(1, buckets + 1):
        layer: dict[int, Fraction] = {}
        for s, weight in layers[-1].items():
            for k, c in enumerate(chance):
                if s + k > i and c:
                    layer[s + k] = layer.get(s + k, Fraction(0)) + weight * c
        layers.append(layer)
    total = sum(layers[-1].values(), Fraction(0))
    if not total:
        return None
    onwards = dict.fromkeys(layers[-1], Fraction(1))
    result = []
    for layer in reversed(layers[:-1]):
        held, here = Fraction(0), {}
        for s, weight in layer.items():
            steps = [(k, c * onwards.get(s + k, Fraction(0))) for k, c in enumerate(chance)]
            here[s] = sum((x for _, x in steps), Fraction(0))
            held += weight * sum((k * x for k, x in steps), Fraction(0))
        onwards = here
        result.append(held / (total * ell))
    return result[::-1]
