"""Singling out: a description that fits exactly one person of the table, made from the release [Cohen, Nissim 2020].

A class of n people is a box: what its labels cover. Somebody who knows nothing of anybody picks the box and a random
n-th of all that could be told of a person besides (a hash of weight 1/n): the description fits exactly one person of
the class with probability (1 − 1/n)^(n − 1), more than a third, whatever k. That is a failure of the release only where
the box itself is rare: without the release nobody would have named it. So the boxes are counted among people who are
*not* in the release (the control), and those that hold nobody there count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._shared.secrets import HALF, dropped_people, in_words
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping, exact_view
from maskwright.domain.hierarchy import TOP, Hierarchy
from maskwright.errors import UsageError
from maskwright.worlds.sampling.belief_intervals import exact_interval

EXACT = 200  # people in a class, up to which a chance is an exact fraction
WORK = 2_000_000_000  # classes × people of the control × columns; beyond, classes are drawn
CHUNK = 1 << 26  # of these at a time
RISK = 0.025  # that either end of an interval misses
UNKNOWN = -1  # a value that the hierarchy does not have: only `*` covers it
Bools = NDArray[np.bool_]


class SinglingOut(Attack):
    """The chance that a class of the release describes exactly one person, where it describes nobody outside.

    Attributes:
        control: rows of people who are not in the release, with its quasi-identifiers; without them there is no attack.
            Where people have several rows, with the column that tells them apart, too.
    """

    name: ClassVar[str] = "singling-out"
    about: ClassVar[About] = "rows"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()

    control: Sequence[Mapping[str, Any]] | None = None

    def applies(self, target: Target) -> bool:
        """Whether there are people outside the release to compare with."""
        return self.control is not None and bool(target.grouping.classes.n) and not self.unable(target)

    def unable(self, target: Target) -> str:
        """Why the rows of the control cannot be counted as people."""
        if self.control is None or target.grouping.summary.rows_are_people:
            return ""
        person = _person_column(target)
        if person and all(person in row for row in self.control):
            return ""
        missing = f"no column {person!r}" if person else "no column"
        return f"people have several rows, and the control has {missing} that says which of its rows are one person's"

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst chance over the boxes that hold nobody of the control, and how many there are."""
        grouping = exact_view(target.grouping) if target.exact else target.grouping
        people, many = control_codes(grouping, self.control or ())
        chosen, sampled = _classes_to_count(grouping, people.shape[1])
        held = people_inside(grouping, chosen, people, many)
        sizes = grouping.classes.sizes[chosen]
        empty = held == 0
        chances = [isolation_chance(int(n)) for n in sizes[empty]]
        everybody = people_of_control(self.control or (), _person_column(target))
        ends = [float(end) for end in exact_interval(np.array(float(empty.sum())), float(len(chosen)), RISK)]
        measures: dict[str, Any] = {
            "control_people": everybody, "classes": grouping.classes.n - (grouping.starred is not None),
            "classes_counted": len(chosen), "empty_boxes": int(empty.sum()),
            "empty_share": Fraction(int(empty.sum()), max(1, len(chosen))), "empty_share_interval": ends,
            "expected_singled_out": math.fsum(map(float, chances)),
            **_vulnerable(grouping, chosen, empty),
            "dropped_people": dropped_people(target.grouping), "threshold": HALF,
        }  # fmt: skip
        worst = Belief(
            Fraction(0), Fraction(0), "nobody", "every class describes people outside the release, too"
        )
        if chances:
            at = max(range(len(chances)), key=chances.__getitem__)
            group = int(chosen[np.flatnonzero(empty)[at]])
            worst = Belief(
                chance_outside(grouping.summary.n_people, int(sizes[empty][at]), everybody), chances[at],
                f"somebody with {in_words(grouping, group)}",
                f"the class describes {int(sizes[empty][at])} people of the table and none of {everybody:,} who are "
                "not in it; what is rare about one of them by chance then describes nobody else",
            )  # fmt: skip
        return Beliefs(self.name, adversary.name, "sampled" if sampled else "estimated", worst, measures)


def _person_column(target: Target) -> str:
    """The column that tells persons apart; empty: the policy names none."""
    return (target.design.unit if target.design is not None else None) or ""


def people_of_control(control: Sequence[Mapping[str, Any]], person: str) -> int:
    """How many people the rows of the control are about; where they do not have the column, each is a person."""
    if not person or not all(person in row for row in control):
        return len(control)
    if nobody := next((i for i, row in enumerate(control, start=1) if row[person] in (None, "")), 0):
        raise UsageError(
            f"singling-out: row {nobody} of the control is nobody's: {person!r} is missing there"
        )
    return len({str(row[person]) for row in control})


def isolation_chance(n: int) -> Fraction:
    """The chance that a hash of weight 1/n fits exactly one of n people: (1 − 1/n)^(n − 1).

    Of many people to nine digits: the exact fraction has as many digits as there are people, and more.
    """
    if n <= EXACT:
        return (1 - Fraction(1, n)) ** (n - 1)
    return Fraction(math.exp((n - 1) * math.log1p(-1 / n))).limit_denominator(10**9)


def chance_outside(people: int, n: int, control: int) -> Fraction:
    """The most that the same description isolates without the release, if its box holds none of the control.

    The weight of the box is at most 1 − RISK^(1/control) (Clopper and Pearson), of which the hash takes an n-th.
    """
    weight = (1 - RISK ** (1 / max(1, control))) / n
    weight = min(weight, 1 / max(1, people))  # the chance of isolating is largest there
    return Fraction(people * weight * (1 - weight) ** (people - 1)).limit_denominator(10**9)


def control_codes(grouping: Grouping, control: Sequence[Mapping[str, Any]]) -> tuple[Ints, Ints]:
    """The distinct people of the control in the codes of the release, one column each, and how many there are of each.

    Each line of numbers has two codes for each quasi-identifier: a value between two that the release knows lies where
    both do. A value that it cannot know lies in `*` alone.
    """
    if not control:
        raise UsageError("singling-out: the control names nobody")
    lines = []
    for hierarchy in grouping.summary.attributes:
        column = hierarchy.attribute
        if missing := next((i for i, row in enumerate(control, start=1) if column not in row), 0):
            raise UsageError(f"singling-out: row {missing} of the control has no column {column!r}")
        texts = [None if row[column] in (None, "") else str(row[column]) for row in control]
        known = {text: _codes_of_value(hierarchy, text) for text in dict.fromkeys(texts)}
        lines += [[known[text][0] for text in texts], [known[text][1] for text in texts]]
    found, many = np.unique(np.array(lines, dtype=np.int64), axis=1, return_counts=True)
    return found, many.astype(np.int64)


def _codes_of_value(hierarchy: Hierarchy, text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, 0
    if text in hierarchy.values:
        return (hierarchy.values.index(text) + 1,) * 2
    try:
        value, numbers = Fraction(text), [Fraction(v) for v in hierarchy.values]
    except (ValueError, ZeroDivisionError):
        return UNKNOWN, UNKNOWN
    above = next((i for i, number in enumerate(numbers) if number > value), None)
    if not hierarchy.ordered or not above:
        return UNKNOWN, UNKNOWN
    return above, above + 1


def people_inside(grouping: Grouping, classes: Ints, people: Ints, many: Ints) -> Ints:
    """How many people of the control lie in the box of each of these classes."""
    inside = [
        _covered(hierarchy, labels.texts, labels.coverage, people[2 * a : 2 * a + 2])
        for a, (hierarchy, labels) in enumerate(
            zip(grouping.summary.attributes, grouping.labels, strict=True)
        )
    ]
    result = np.zeros(len(classes), dtype=np.int64)
    step = max(1, CHUNK // max(1, len(many) * max(1, len(inside))))
    for at in range(0, len(classes), step):
        part = classes[at : at + step]
        there = np.ones((len(part), len(many)), dtype=bool)
        for labels, covered in zip(grouping.labels, inside, strict=True):
            there &= covered[labels.of_group[part]]
        result[at : at + step] = there @ many
    return result


def _covered(hierarchy: Hierarchy, texts: Sequence[str | None], coverage: Ints, codes: Ints) -> Bools:
    """For each label whether it covers each person of the control, by the two codes of the person."""
    result = np.zeros((len(texts), codes.shape[1]), dtype=bool)
    for i, (text, leaves) in enumerate(zip(texts, coverage.tolist(), strict=True)):
        if text == TOP:
            result[i] = True
            continue
        inside = np.zeros(len(hierarchy.values) + 2, dtype=bool)  # the last place is UNKNOWN
        inside[hierarchy.codes_of(text, leaves)] = True
        result[i] = inside[codes[0]] & inside[codes[1]]
    return result


def _classes_to_count(grouping: Grouping, people: int) -> tuple[Ints, bool]:
    """The classes with labels of their own; some of them, drawn at random, where all would take too long."""
    every = np.flatnonzero(
        np.arange(grouping.classes.n) != (-1 if grouping.starred is None else grouping.starred)
    )
    most = max(100, WORK // max(1, people * max(1, len(grouping.labels))))
    if len(every) <= most:
        return every, False
    return np.sort(np.random.default_rng(0).choice(every, most, replace=False)), True


def _vulnerable(grouping: Grouping, chosen: Ints, empty: Bools) -> dict[str, Any]:
    """The people of the boxes that hold nobody else, each once, and their share of those in the boxes counted."""
    kept = np.zeros(grouping.classes.n, dtype=bool)
    kept[chosen] = True
    everybody = grouping.classes.take(kept).n_people
    kept[chosen[~empty]] = False
    people = grouping.classes.take(kept).n_people
    return {"vulnerable_people": people, "vulnerable_share": Fraction(people, max(1, everybody))}
