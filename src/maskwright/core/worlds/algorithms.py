"""Grouping methods as an adversary knows them: plain functions of rows, for running on possible worlds.

They work row by row on small tables and follow the papers to the letter (ties by row number); the methods that
make releases are elsewhere. A requirement is a test on the counts of each value in a group. Deterministic methods
return groups of row numbers; randomised ones the probability of every publication, or only of the one asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from maskwright.core.worlds.limits import share, whole_numbers
from maskwright.core.worlds.multisets import Test
from maskwright.core.worlds.posterior import Publication, publication

Qi = Sequence[Sequence[Any]]
Rows = list[int]
Distribution = dict[Publication, Fraction]


def row_order(qi: Qi) -> Rows:
    """Rows by quasi-identifiers, lexicographically, then by row number."""
    return sorted(range(len(qi)), key=lambda i: (tuple(qi[i]), i))


def _satisfied(values: Sequence[Any], rows: Rows, passes: Test) -> bool:
    return passes(Counter(values[i] for i in rows))


def greedy_grouping(qi: Qi, values: Sequence[Any], passes: Test, bucket: int = 1) -> list[Rows]:
    """GG: add buckets of rows in order until the group passes; what never passes is dropped.

    Args:
        qi: quasi-identifiers of each row.
        values: sensitive value of each row.
        passes: the requirement on a group.
        bucket: rows in a bucket; 1 is the row-by-row variant.
    """
    whole_numbers("bucket size", [bucket], 1)
    order = row_order(qi)
    groups: list[Rows] = []
    group: Rows = []
    for start in range(0, len(order) - bucket + 1, bucket):
        group = [*group, *order[start : start + bucket]]
        if _satisfied(values, group, passes):
            groups.append(group)
            group = []
    return groups


def randomised_greedy(
    qi: Qi,
    values: Sequence[Any],
    passes: Test,
    bucket: int,
    p: Fraction | int,
    only: Publication | None = None,
) -> Distribution:
    """RGG: like GG, but a group that passes is extended with probability p while there are buckets.

    Args:
        qi, values, passes, bucket: as for `greedy_grouping`.
        p: the probability of extending.
        only: follow only what can become this publication.
    """
    whole_numbers("bucket size", [bucket], 1)
    p = share("p", p)
    order = row_order(qi)
    found: Distribution = {}

    def walk(start: int, group: Rows, done: tuple[frozenset[int], ...], chance: Fraction) -> None:
        if not chance:
            return
        if start + bucket > len(order):
            passing = bool(group) and _satisfied(values, group, passes)
            last = publication((*done, group) if passing else done)
            if only in (None, last):
                found[last] = found.get(last, Fraction(0)) + chance
            return
        if group and _satisfied(values, group, passes):
            closed = frozenset(group)
            if only is None or closed in only:
                walk(start, [], (*done, closed), chance * (1 - p))
            chance *= p
        walk(start + bucket, [*group, *order[start : start + bucket]], done, chance)

    walk(0, [], (), Fraction(1))
    return found


def symmetric_grouping(qi: Qi, values: Sequence[Any], passes: Test, min_child: int = 0) -> list[Rows]:
    """SG: halve the ordered rows while both halves pass and have at least `min_child` rows."""

    def split(rows: Rows) -> list[Rows]:
        half = -(-len(rows) // 2)
        children = rows[:half], rows[half:]
        if not _allowed(values, passes, min_child, children):
            return [rows]
        return [group for child in children for group in split(child)]

    return split(row_order(qi)) if qi else []


def _allowed(values: Sequence[Any], passes: Test, least: int, children: tuple[Rows, Rows]) -> bool:
    return all(len(c) >= max(1, least) and _satisfied(values, c, passes) for c in children)


@dataclass(frozen=True)
class Mondrian:
    """Mondrian: cut at the median of the relatively widest dimension while both sides pass.

    Attributes:
        strict: equal values stay on one side; otherwise rows are halved.
        policy: "widest" tries one dimension per group, "fallback" the next widest after a refusal.
        side: where a strict cut puts its own value: "lt" left of it is below, "le" up to and including it.
        min_child: the fewest rows of a side.
    """

    strict: bool
    policy: Literal["widest", "fallback"] = "fallback"
    side: Literal["lt", "le"] = "lt"
    min_child: int = 0

    def group(self, qi: Qi, values: Sequence[Any], passes: Test) -> list[Rows]:
        """The groups of these rows; no row is dropped."""
        everything = list(range(len(qi)))
        spans = [_span(qi, everything, d) for d in range(len(qi[0]))] if qi else []

        def split(rows: Rows) -> list[Rows]:
            for d in self._ranking(qi, rows, spans):
                children = self._cut(qi, rows, d)
                if _allowed(values, passes, self.min_child, children):
                    return [group for child in children for group in split(child)]
            return [rows]

        return split(everything) if qi else []

    def _ranking(self, qi: Qi, rows: Rows, spans: list[Any]) -> list[int]:
        wide = [d for d in range(len(spans)) if _span(qi, rows, d)]
        wide.sort(key=lambda d: (-Fraction(_span(qi, rows, d), spans[d]), d))
        return wide[:1] if self.policy == "widest" else wide

    def _cut(self, qi: Qi, rows: Rows, d: int) -> tuple[Rows, Rows]:
        order = sorted(rows, key=lambda i: (qi[i][d], i))
        if not self.strict:
            half = -(-len(order) // 2)
            return order[:half], order[half:]
        if self.side == "lt":
            at = qi[order[len(order) // 2]][d]
            left = [i for i in order if qi[i][d] < at]
        else:
            at = qi[order[(len(order) - 1) // 2]][d]
            left = [i for i in order if qi[i][d] <= at]
        return left, order[len(left) :]


def _span(qi: Qi, rows: Rows, d: int) -> Any:
    return max(qi[i][d] for i in rows) - min(qi[i][d] for i in rows)


def global_recoding(qi: Qi, values: Sequence[Any], passes: Test) -> list[Rows]:
    """Publish the classes of equal quasi-identifiers if all of them pass, otherwise everything as one group."""
    classes: dict[tuple[Any, ...], Rows] = {}
    for i, row in enumerate(qi):
        classes.setdefault(tuple(row), []).append(i)
    if all(_satisfied(values, rows, passes) for rows in classes.values()):
        return list(classes.values())
    return [list(range(len(qi)))]
