"""Skewness: how far the class moves belief away from what the whole table says [Li et al. 2007].

A class may show a value in only half of its people and still say a lot, if one person in a hundred has it elsewhere.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
    accompanying_figures,
    reference_of,
    secrets_of,
)
from maskwright.attacks.homogeneity import RowBeliefs, shown_belief
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Ints
from maskwright.domain.distances import class_distances
from maskwright.domain.exact import number_text, sorted_distinct, text_of
from maskwright.domain.grouping import Grouping
from maskwright.domain.segments import Ratios, widen_integers


class Skewness(Attack):
    """How many times as likely a sensitive value is in the person's class as in the whole table."""

    name: ClassVar[str] = "skewness"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()
    within_links: ClassVar[bool] = True

    def applies(self, target: Target) -> bool:
        """Whether sensitive values are published, and it is known whose rows they are."""
        return bool(target.grouping.published_classes.sensitive) and not self.unable(target)

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The secret that is most times as likely in a class as in the whole table."""
        secrets = secrets_of(target)
        columns = {s.attribute: _column_measures(target, s) for s in secrets}
        worst = max(columns.values(), key=lambda m: (m["ratio"], m["worst"].after))["worst"]
        rows = target.grouping.summary.rows_are_people
        bounded = rows and any(s.several and any(len(members) > 1 for members in s.sets) for s in secrets)
        return Beliefs(
            self.name, adversary.name, "bounded" if bounded else "exact", worst,
            {"attributes": columns, **accompanying_figures(target, secrets)},
        )  # fmt: skip


def _column_measures(target: Target, secrets: Secrets) -> dict[str, Any]:
    """The largest ratio and the largest gain of one column, and how far its classes are from the table."""
    grouping, counts = target.grouping, secrets.counts
    if not grouping.summary.rows_are_people:
        return _measures_of_people(target, secrets)
    held, whole, sizes = counts.counts, secrets.reference[counts.codes], secrets.sizes[counts.owner]
    there = np.flatnonzero(whole > 0)
    if len(there) < len(whole):  # otherwise nothing is copied: there may be millions of entries
        held, whole, sizes = held[there], whole[there], sizes[there]
    factor = int(max(sizes.max(initial=1), secrets.people))
    ratios = Ratios(widen_integers(held, factor) * secrets.people, widen_integers(whole, factor) * sizes)
    found = _largest(grouping, secrets, ratios, there, "ratio")
    doubled = _above(secrets, ratios, there, Fraction(2))
    gains = Ratios(ratios.numerators - ratios.denominators, widen_integers(sizes, factor) * secrets.people)
    gain = _largest(grouping, secrets, gains, there, "gain")
    del ratios, gains, whole, sizes, held  # each as large as the counts
    reference, _ = reference_of(target, secrets.attribute)
    distance = class_distances(grouping.published_classes.sensitive[secrets.attribute], reference, "equal")
    farthest = distance.argmax()
    return {
        **found,
        "gain": gain,
        "largest_distance": Fraction(0) if farthest is None else distance[farthest],
        "threshold": "more than twice as likely as in the whole table",
        "vulnerable_people": doubled,
        "vulnerable_share": Fraction(doubled, max(1, int(secrets.sizes.sum()))),
    }


def _measures_of_people(target: Target, secrets: Secrets) -> dict[str, Any]:
    """The same where people have several rows: how many times as likely a secret is in some row of a person."""
    people = RowBeliefs.of(target.grouping, secrets.attribute, secrets.sets)
    found: dict[str, dict[str, Any]] = {n: {"worst": NOTHING, n: Fraction(0)} for n in ("ratio", "gain")}
    doubled = np.zeros(len(people.first), dtype=bool)
    for code in people.codes:
        before = secrets.before(code)
        if not before:
            continue
        which = int(people.beliefs(code).argmax())
        after = people.exact(code, which)
        doubled |= people.above(code, 2 * before)
        for name, value in (("ratio", after / before), ("gain", after - before)):
            if value > found[name][name] or found[name]["worst"] is NOTHING:
                why = (
                    f"{secrets.name(code)} is {_short(value)} times as likely in some row as among all people"
                )
                if name == "gain":
                    why = f"{secrets.name(code)}: belief grows by {number_text(value)} against all people"
                found[name] = {"worst": Belief(before, after, people.whom(which), why), name: value}
    reference, _ = reference_of(target, secrets.attribute)
    classes = target.grouping.published_classes
    distance = class_distances(classes.sensitive[secrets.attribute], reference, "equal")
    farthest = distance.argmax()
    return {
        **found["ratio"],
        "gain": found["gain"],
        "largest_distance": Fraction(0) if farthest is None else distance[farthest],
        "threshold": "more than twice as likely as among all people",
        "vulnerable_people": int(doubled.sum()),
        "vulnerable_share": Fraction(int(doubled.sum()), max(1, len(people.first))),
    }


def _largest(grouping: Grouping, secrets: Secrets, measure: Ratios, there: Ints, name: str) -> dict[str, Any]:
    top = measure.argmax()
    if top is None:
        return {"worst": NOTHING, name: Fraction(0)}
    shown = shown_belief(grouping, secrets, int(there[top]))
    value = measure[top]
    secret = secrets.name(int(secrets.counts.codes[there[top]]))
    why = f"{secret} is {_short(value)} times as likely there as in the whole table"
    if name == "gain":
        why = f"{secret}: belief grows by {number_text(value)} against the whole table"
    return {"worst": Belief(shown.before, shown.after, shown.whom, why), name: value}


SEVERAL_TIMES = 100  # beyond, decimals say nothing


def _short(value: Fraction) -> str:
    """How many times, for people: 1.75, 4/3, 2,738."""
    if value >= SEVERAL_TIMES:
        return f"{float(value):,.0f}"
    return text_of(value) if value.denominator <= 20 else f"{float(value):.3g}"


def _above(secrets: Secrets, ratios: Ratios, there: Ints, factor: Fraction) -> int:
    """People in a class that makes some secret more than so many times as likely."""
    groups = sorted_distinct(secrets.counts.owner[there[~ratios.at_most(factor)]])
    return int(secrets.sizes[groups].sum())
