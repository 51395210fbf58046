"""Similarity: values that differ and still mean the same, by the hierarchy or as numbers [Li et al. 2007].

Three stomach diseases are three values, and give a stomach disease away; salaries of 30,000, 31,000 and 32,000 give a
low salary away. The belief is that the value lies under one node of the column's hierarchy, or in a narrow range.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from maskwright.attacks._shared.secrets import (
    NOTHING,
    accompanying_figures,
    clipped_counts,
    gather_counts,
    people_in_words,
    reference_of,
    secrets_of,
    threshold_of,
)
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import ValueCounts
from maskwright.domain.exact import Exact
from maskwright.domain.segments import Ratios, known_counts

Bools = NDArray[np.bool_]


class Similarity(Attack):
    """The belief that a value lies under one node of its hierarchy, or in a narrow range of numbers.

    Attributes:
        width: how wide a narrow range is, as a share of the range of the whole column.
    """

    name: ClassVar[str] = "similarity"
    about: ClassVar[About] = "ranges"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()

    width: Exact = Field(default=Fraction(1, 10), ge=0, lt=1)

    def applies(self, target: Target) -> bool:
        """Whether some sensitive column has a hierarchy or is made of numbers."""
        return any(
            next(nodes_of(target, name), None) is not None or numbers_of(counts) is not None
            for name, counts in target.grouping.published_classes.sensitive.items()
        )

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief that a value lies under one node, or in a narrow range."""
        secrets = secrets_of(target)
        columns = {s.attribute: self._column(target, s.attribute) for s in secrets}
        worst = max((m["worst"] for m in columns.values()), key=lambda belief: (belief.after, -belief.before))
        return Beliefs(
            self.name, adversary.name, "bounded" if any(s.several for s in secrets) else "exact", worst,
            {"attributes": columns, **accompanying_figures(target, secrets)},
        )  # fmt: skip

    def _column(self, target: Target, attribute: str) -> dict[str, Any]:
        classes = target.grouping.published_classes
        bound = threshold_of(target.models, attribute, len(classes.sensitive) == 1)
        found: dict[str, Belief] = {}
        above = np.zeros(classes.n, dtype=bool)
        for level, nodes in nodes_of(target, attribute):
            belief, over = _branch(target, attribute, nodes, bound)
            above |= over
            if belief is not None:
                found[f"level {level}"] = belief
        counts = known_counts(classes.sensitive[attribute])
        numbers = numbers_of(counts)
        if numbers is not None:
            belief, over = _narrow(target, attribute, counts, numbers, self.width, bound)
            above |= over
            if belief is not None:
                found["range"] = belief
        worst = max(found.values(), key=lambda b: (b.after, -b.before), default=NOTHING)
        return {
            "worst": worst,
            "by": found,
            "threshold": bound,
            "vulnerable_people": int(classes.sizes[above].sum()),
            "vulnerable_share": Fraction(int(classes.sizes[above].sum()), int(classes.sizes.sum())),
        }


def _branch(
    target: Target, attribute: str, nodes: dict[str, tuple[str, ...]], bound: Fraction
) -> tuple[Belief | None, Bools]:
    """The largest share of a class whose values lie under one of these nodes, and where it exceeds the bound."""
    sizes = target.grouping.published_classes.sizes
    counts = known_counts(target.grouping.published_classes.sensitive[attribute])
    gathered = clipped_counts(gather_counts(counts, tuple(nodes.values())), sizes)
    shares = Ratios(gathered.counts, sizes[gathered.owner])
    above = np.zeros(len(sizes), dtype=bool)
    above[gathered.owner[~shares.at_most(bound)]] = True
    worst = shares.argmax()
    if worst is None:
        return None, above
    group, code = int(gathered.owner[worst]), int(gathered.codes[worst])
    label, members = list(nodes.items())[code - 1]
    whole, people = reference_of(target, attribute)
    inside = sum(int(whole[i + 1]) for i, v in enumerate(counts.values) if v in members)
    return _belief(
        target, attribute, group, int(gathered.counts[worst]), min(inside, people), f"lies under {label}"
    ), above


def _belief(target: Target, attribute: str, group: int, held: int, table: int, where: str) -> Belief:
    size = int(target.grouping.published_classes.sizes[group])
    who = "all of them" if held == size else f"{held} of the {size}"
    people = reference_of(target, attribute)[1]
    return Belief(
        Fraction(table, people), Fraction(held, size), people_in_words(target.grouping, group),
        f"the {attribute} of {who} {where}",
    )  # fmt: skip


def nodes_of(target: Target, attribute: str) -> Iterator[tuple[int, dict[str, tuple[str, ...]]]]:
    """The nodes of each level of a sensitive column's hierarchy that cover several of its values, but not all."""
    hierarchy = target.context.hierarchies.get(attribute)
    if hierarchy is None:
        return
    for number, level in enumerate(hierarchy.levels[1:-1], start=1):
        members: dict[str, list[str]] = {}
        for value, block in zip(hierarchy.values, level.blocks[1:].tolist(), strict=True):
            members.setdefault(str(level.labels[block]), []).append(value)
        nodes = {k: tuple(vs) for k, vs in members.items() if 1 < len(vs) < len(hierarchy.values)}
        if nodes:
            yield number, nodes


def numbers_of(counts: ValueCounts) -> list[Fraction] | None:
    """The values as numbers; None unless all of them are numbers, and at least three."""
    try:
        found = [Fraction(value) for value in counts.values]
    except (ValueError, ZeroDivisionError):
        return None
    return found if len(set(found)) >= 3 else None


def _narrow(
    target: Target,
    attribute: str,
    counts: ValueCounts,
    numbers: list[Fraction],
    width: Fraction,
    bound: Fraction,
) -> tuple[Belief | None, Bools]:
    """The largest share of a class whose numbers lie within a narrow range, and where it exceeds the bound."""
    sizes = target.grouping.published_classes.sizes
    # ranks of the values and, for each, of the last value within the range that begins with it: exact
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    rank = np.empty(len(numbers), dtype=np.int64)
    rank[order] = np.arange(len(order))
    far = (numbers[order[-1]] - numbers[order[0]]) * width
    last = np.empty(len(numbers), dtype=np.int64)
    end = 0
    for at, v in enumerate(order):
        while end + 1 < len(order) and numbers[order[end + 1]] <= numbers[v] + far:
            end += 1
        last[at] = end
    mine = rank[counts.codes - 1]
    key = counts.owner * len(numbers) + mine
    sort = np.argsort(key, kind="stable")
    before = np.concatenate([[0], np.cumsum(counts.counts[sort])])
    until = np.searchsorted(key[sort], counts.owner[sort] * len(numbers) + last[mine[sort]], side="right")
    owner = counts.owner[sort]
    held = np.minimum(before[until] - before[:-1], sizes[owner])
    shares = Ratios(held, sizes[owner])
    above = np.zeros(len(sizes), dtype=bool)
    above[owner[~shares.at_most(bound)]] = True
    worst = shares.argmax()
    if worst is None:
        return None, above
    group, first = int(owner[worst]), int(mine[sort[worst]])
    inside = order[first : int(last[first]) + 1]
    there = [mine[sort[i]] for i in range(worst, int(until[worst]))]
    low, high = counts.values[order[min(there)]], counts.values[order[max(there)]]
    whole, people = reference_of(target, attribute)
    table = min(sum(int(whole[v + 1]) for v in inside), people)
    where = f"is {low}" if low == high else f"lies between {low} and {high}"
    return _belief(target, attribute, group, int(held[worst]), table, where), above
