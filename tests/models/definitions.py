"""The models as on paper: one class at a time, in fractions, sharing nothing with the product.

Each function gets the values of a class (None: missing) and, where the model compares, those of the table.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

Values = Sequence[str | None]
DOMAIN = "abcd"


def known(values: Values) -> Counter[str]:
    return Counter(value for value in values if value is not None)


def simple(values: Values, l: Fraction, sets: Sequence[Sequence[str]] | None = None) -> bool:  # noqa: E741
    counts = known(values)
    return all(sum(counts[v] for v in group) * l <= len(values) for group in sets or [[v] for v in counts])


def distinct(values: Values, l: int) -> bool:  # noqa: E741
    return len(known(values)) >= l


def entropy(values: Values, l: Fraction) -> bool:  # noqa: E741
    """nⁿ ≥ lⁿ·∏ c^c, multiplied out."""
    counts = known(values)
    n = counts.total()
    return n > 0 and Fraction(n) ** n >= l**n * math.prod(c**c for c in counts.values())


def recursive(values: Values, c: Fraction, l: int) -> bool:  # noqa: E741
    counts = sorted(known(values).values(), reverse=True)
    return bool(counts) and counts[0] < c * sum(counts[l - 1 :])


def alpha_k(values: Values, alpha: Fraction, k: int) -> bool:
    return len(values) >= k and all(c <= alpha * len(values) for c in known(values).values())


def shares(values: Values, domain: Sequence[str] = DOMAIN) -> list[Fraction]:
    counts = known(values)
    return [Fraction(counts[v], counts.total()) for v in domain]


def equal(values: Values, table: Values, domain: Sequence[str] = DOMAIN) -> Fraction:
    if not known(values):
        return Fraction(0)
    both = zip(shares(values, domain), shares(table, domain), strict=True)
    return sum((abs(p - q) for p, q in both), Fraction(0)) / 2


def ordered(values: Values, table: Values, domain: Sequence[str] = DOMAIN) -> Fraction:
    if not known(values) or len(domain) == 1:
        return Fraction(0)
    p, q = shares(values, domain), shares(table, domain)
    steps = [abs(sum(p[: i + 1]) - sum(q[: i + 1])) for i in range(len(p) - 1)]
    return sum(steps, Fraction(0)) / (len(p) - 1)


def hierarchical(
    values: Values, table: Values, parent: dict[str, str], domain: Sequence[str] = DOMAIN
) -> Fraction:
    """Bottom-up: every inner node matches what its children have too much and too little of."""
    if not known(values):
        return Fraction(0)
    excess = {v: p - q for v, p, q in zip(domain, shares(values, domain), shares(table, domain), strict=True)}
    nodes = set(parent) | set(parent.values())
    height = dict.fromkeys(nodes - set(parent.values()), 0)
    children = {n: [c for c in parent if parent[c] == n] for n in nodes}
    cost, extra = Fraction(0), dict(excess)
    pending = [n for n in nodes if children[n]]
    while pending:
        node = next(n for n in pending if all(c in height for c in children[n]))
        pending.remove(node)
        height[node] = 1 + max(height[c] for c in children[node])
        parts = [extra.get(c, Fraction(0)) for c in children[node]]
        matched = min(sum(x for x in parts if x > 0), sum(-x for x in parts if x < 0))
        cost += height[node] * matched
        extra[node] = sum(parts, Fraction(0))
    return cost / max(height.values())


def ke(values: Values, k: int, e: int, by_distinct: bool = False) -> bool:
    numbers = [int(v) for v in values if v is not None]
    spread = max(numbers) - min(numbers) if numbers else 0
    size = len(set(numbers)) if by_distinct else len(values)
    return size >= k and spread >= e


def lift(values: Values, table: Values) -> dict[str, Fraction]:
    here, whole = known(values), known(table)
    return {v: Fraction(n, here.total()) / Fraction(whole[v], whole.total()) for v, n in here.items()}


def delta_disclosure(values: Values, table: Values, delta: Fraction, strict: bool) -> bool:
    if strict and set(known(table)) - set(known(values)):
        return False
    return not known(values) or all(abs(math.log(x)) < delta for x in lift(values, table).values())


def beta_likeness(values: Values, table: Values, beta: Fraction, enhanced: bool) -> bool:
    if not known(values):
        return True
    whole = known(table)
    for v, x in lift(values, table).items():
        if x > 1 and (x - 1 > beta or (enhanced and x - 1 > -math.log(whole[v] / whole.total()))):
            return False
    return True
