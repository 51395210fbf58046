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
from maskwright.attacks.homogeneity import RowBeliefs
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
        return not self.unable(target) and any(
            next(nodes_of(target, name), None) is not None or numbers_of(counts) is not None
            for name, counts in target.grouping.published_classes.sensitive.items()
        )

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief that a value lies under one node, or in a narrow range."""
        secrets, rows = secrets_of(target), target.grouping.summary.rows_are_people
        columns = {s.attribute: self._column(target, s.attribute) for s in secrets}
        worst = max((m["worst"] for m in columns.values()), key=lambda belief: (belief.after, -belief.before))
        return Beliefs(
            self.name, adversary.name, "bounded" if rows and any(s.several for s in secrets) else "exact", worst,
            {"attributes": columns, **accompanying_figures(target, secrets)},
        )  # fmt: skip

    def _column(self, target: Target, attribute: str) -> dict[str, Any]:
        classes = target.grouping.published_classes
        bound = threshold_of(target.models, attribute, len(classes.sensitive) == 1)
        found: dict[str, Belief] = {}
        if not target.grouping.summary.rows_are_people:
            return self._column_of_people(target, attribute, bound)
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

    def _column_of_people(self, target: Target, attribute: str, bound: Fraction) -> dict[str, Any]:
        """The same where people have several rows: the belief that a value of some row of theirs lies there."""
        ways = [
            (f"level {n}", {f"lies under {k}": vs for k, vs in v.items()})
            for n, v in nodes_of(target, attribute)
        ]
        counts = known_counts(target.grouping.published_classes.sensitive[attribute])
        found: dict[str, Belief] = {}
        people = RowBeliefs.of(target.grouping, attribute, ())
        above = np.zeros(len(people.first), dtype=bool)
        whole, everybody = reference_of(target, attribute)
        for name, sets in ways:
            people = RowBeliefs.of(target.grouping, attribute, tuple(sets.values()))
            for code in people.codes:
                where, members = list(sets.items())[code - 1]
                which = int(people.beliefs(code).argmax())
                above |= people.above(code, bound)
                after = people.exact(code, which)
                if name not in found or after > found[name].after:
                    table = sum(int(whole[i + 1]) for i, v in enumerate(counts.values) if v in members)
                    why = f"the {attribute} of some row of the person {where}"
                    before = Fraction(min(table, everybody), everybody)
                    found[name] = Belief(before, after, people.whom(which), why)
        if numbers_of(counts) is not None:
            belief, over = _narrow_of_people(target, attribute, self.width, bound)
            above |= over
            if belief is not None:
                found["range"] = belief
        return {
            "worst": max(found.values(), key=lambda b: (b.after, -b.before), default=NOTHING),
            "by": found,
            "threshold": bound,
            "vulnerable_people": int(above.sum()),
            "vulnerable_share": Fraction(int(above.sum()), max(1, len(above))),
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


def _narrow_of_people(
    target: Target, attribute: str, width: Fraction, bound: Fraction
) -> tuple[Belief | None, Bools]:
    """The largest belief that some row of a person lies within a narrow range, and of whom more than a bound is.

    The range slides over the numbers. What is believed of people grows only where a number comes in: those with rows
    in its classes are looked at again, nobody else.
    """
    people = RowBeliefs.of(target.grouping, attribute, ())
    held = known_counts(target.grouping.row_counts(attribute))
    above = np.zeros(len(people.first), dtype=bool)
    numbers = numbers_of(held)
    if numbers is None or not len(people.first):
        return None, above
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    far = (numbers[order[-1]] - numbers[order[0]]) * width
    by_code = np.argsort(held.codes, kind="stable")
    start = np.searchsorted(held.codes[by_code], np.arange(len(numbers) + 2))
    entries = [by_code[start[value + 1] : start[value + 2]] for value in order]
    inside, end = np.zeros(len(people.owned.sizes), dtype=np.int64), 0
    most, best = -1.0, (0, 0, Fraction(0), 0)  # the ranks of the first and the last number, belief, person
    for first, value in enumerate(order):
        if first:
            inside[held.owner[entries[first - 1]]] -= held.counts[entries[first - 1]]
        began = end
        while end < len(order) and numbers[order[end]] <= numbers[value] + far:
            inside[held.owner[entries[end]]] += held.counts[entries[end]]
            end += 1
        if end == began:
            continue  # the range before holds these numbers, and more
        came_in = np.unique(held.owner[np.concatenate(entries[began:end])])
        concerned = people.owned.people_of(came_in)
        belief = people.beliefs_of(concerned, inside)
        asked = np.flatnonzero(~above[concerned])
        who = concerned[asked]
        above[who] = people.exceeding(belief[asked], bound, lambda i: people.exactly(inside, int(who[i])))  # noqa: B023
        if len(belief) and belief.max() > most + 1e-12:
            which = int(concerned[belief.argmax()])
            most, best = float(belief.max()), (first, end - 1, people.exactly(inside, which), which)
    low, high = held.values[order[best[0]]], held.values[order[best[1]]]
    whole, everybody = reference_of(target, attribute)
    members = {held.values[i] for i in order[best[0] : best[1] + 1]}
    known = target.grouping.published_classes.sensitive[attribute].values
    table = sum(int(whole[i + 1]) for i, v in enumerate(known) if v in members)
    where = f"is {low}" if low == high else f"lies between {low} and {high}"
    why = f"the {attribute} of some row of the person {where}"
    return Belief(Fraction(min(table, everybody), everybody), best[2], people.whom(best[3]), why), above
