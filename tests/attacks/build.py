"""Releases built by hand, and the beliefs in them by counting possible worlds one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.domain.adversary import Target
from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Allocation, Grouping, Labels, allocated_classes
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Method
from maskwright.domain.model import Context, Model
from maskwright.domain.summary import Summary
from tests.oracles.worlds import dealt
from tests.support import context_of, summarise

Values = Sequence[str | None]


def release(
    groups: Sequence[Mapping[str, Values]], dropped: Mapping[str, Values] | None = None, **more: Any
) -> Target:
    """Groups as raw tuple → its sensitive values; every tuple stays together, so it lies in one group only."""
    pairs = [(t, v) for group in [*groups, dropped or {}] for t, values in group.items() for v in values]
    tuples = sorted({t for t, _ in pairs})
    qi = Hierarchy.of("zip", tuples, [])
    summary = summarise([qi], [[t for t, _ in pairs]], {"s": [v for _, v in pairs]})
    group_of = {t: g for g, group in enumerate(groups) for t in group}
    of_tuple = np.array([group_of.get(t, -1) for t in tuples], dtype=np.int64)
    return target_of(summary, of_tuple, **more)


def target_of(
    summary: Summary, of_tuple: Ints, models: Sequence[Model] = (), method: Method | None = None,
    context: Context | None = None, starred: int | None = None,
) -> Target:  # fmt: skip
    """A release that puts tuple i into group `of_tuple[i]`, each group labelled by its number."""
    n = int(of_tuple.max()) + 1
    allocation = Allocation(np.arange(summary.n_tuples), of_tuple, summary.rows)
    texts = tuple(f"group {g + 1}" for g in range(n))
    labels = Labels("zip", texts, np.ones(n, np.int64), np.arange(n, dtype=np.int32))
    classes = allocated_classes(summary, allocation, n)
    grouping = Grouping(summary, allocation, (labels,), classes, None, starred)
    return Target(grouping, models, method, context or context_of(summary))


def worlds(groups: Sequence[Mapping[str, Values]]) -> Iterator[list[dict[str, Values]]]:
    """Every different way to deal the values of each group to its rows; all are equally likely."""
    rows = [[(g, t, i) for t, vs in group.items() for i in range(len(vs))] for g, group in enumerate(groups)]
    values = [[v for vs in group.values() for v in vs] for group in groups]
    for world in dealt(list(zip(rows, values, strict=True))):
        yield [
            {t: [world[g, t, i] for i in range(len(vs))] for t, vs in group.items()}
            for g, group in enumerate(groups)
        ]


def beliefs_by_counting(
    groups: Sequence[Mapping[str, Values]], possible: Callable[[dict[str, Counter[str | None]]], bool],
    secrets: Sequence[Sequence[str]],
) -> dict[str, list[Fraction]] | None:  # fmt: skip
    """Raw tuple → for each secret the share of its rows that have it, over the possible worlds; None without one."""
    held: dict[str, list[int]] = {t: [0] * len(secrets) for g in groups for t in g}
    sizes = {t: len(v) for g in groups for t, v in g.items()}
    kept = 0
    for world in worlds(groups):
        counts = {t: Counter(values) for group in world for t, values in group.items()}
        if possible(counts):
            kept += 1
            for t, found in counts.items():
                for s, members in enumerate(secrets):
                    held[t][s] += sum(found[v] for v in members)
    if not kept:
        return None
    return {t: [Fraction(x, kept * sizes[t]) for x in row] for t, row in held.items()}
