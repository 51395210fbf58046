"""The minimality attack with a list of people that is longer than the table: the policy's population.

Who knows that somebody is in the table learns more; so this is reported beside the attack's own result.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._minimality.refusals import looked_at_values
from maskwright.attacks._shared.original_classes import ClassSpread, cells_of
from maskwright.attacks._shared.secrets import Secrets, in_words
from maskwright.attacks._shared.thresholds import Threshold, thresholds_of, values_of
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Ints
from maskwright.domain.exact import number_text
from maskwright.domain.summary import Summary
from maskwright.worlds.counting.credibility import ListCredibility, ListedPeople, credibility_listed

DRAWS = 2_000


def with_list(target: Target, secrets: Sequence[Secrets]) -> dict[str, Any]:
    """The worst belief about somebody of the population table, as `external list`; nothing where there is none."""
    census, cells = target.census, cells_of(target)
    rules = thresholds_of(looked_at_values(target.models), target.context)
    if census is None or cells is None or target.grouping.changes is not None or not rules:
        return {}
    spread, people = ClassSpread.of(cells), int(census.sizes.sum())
    groups = np.flatnonzero(spread.mixed).tolist()
    found: list[Belief] = []
    for rule in rules:
        name = next((s for s in secrets if s.attribute == rule.attribute), None)
        if name is None:
            continue
        for group in groups:
            listed, tuples = _listed(target, spread, census, group, rule)
            result = _believe(spread, listed, group, rule, len(rules) * len(groups) * len(listed))
            if result is not None:
                found.append(_in_words(target, spread, census, name, rule, group, listed, tuples, result))
    if not found:
        return {}
    return {
        "external list": {
            "people": people,
            "worst": max(found, key=lambda b: (b.upper, b.after)),
            "assumption": "any people of the list who match are as likely to be in the table as any others",
        }
    }


def _inside(spread: ClassSpread, rule: Threshold) -> NDArray[np.bool_]:
    return np.isin(spread.cells.codes[rule.attribute], list(rule.codes))


def _believe(
    spread: ClassSpread, listed: list[ListedPeople], group: int, rule: Threshold, asked: int
) -> ListCredibility | None:
    held = spread.held(group)
    rows, sensitive = int(held.sum()), int(held[_inside(spread, rule)].sum())
    return credibility_listed(listed, rows, sensitive, rule.share, DRAWS, asked)


def _listed(
    target: Target, spread: ClassSpread, census: Summary, group: int, rule: Threshold
) -> tuple[list[ListedPeople], list[int]]:
    """Everybody of the list who matches a group, by quasi-identifiers, and the tuples of the list."""
    matching = _covered(target, census, spread, group)
    number = {tuple(c): t for t, c in enumerate(target.grouping.summary.codes.T.tolist())}
    part = spread.parts(group)
    mine = {int(c): i for i, c in enumerate(spread.classes[part].tolist())}
    known = spread.known(spread.classes[part])
    inside = _inside(spread, rule)
    listed, tuples = [], []
    for t in np.flatnonzero(matching).tolist():
        own = number.get(tuple(census.codes[:, t].tolist()), -1)
        people = int(census.sizes[t])
        if own in mine:
            at = mine[own]
            rows, sensitive = int(known[at].sum()), int(known[at][inside].sum())
            people = max(
                people, int(spread.sizes[own])
            )  # a list that lacks people of the table is no superset
            elsewhere = int(spread.sizes[own]) - int(spread.rows[part][at]) - rows
            listed.append(ListedPeople(people - rows - elsewhere, rows, sensitive))
        else:
            listed.append(ListedPeople(people))
        tuples.append(t)
    return listed, tuples


def _covered(target: Target, census: Summary, spread: ClassSpread, group: int) -> NDArray[np.bool_]:
    """The tuples of the list that the published labels of a group cover."""
    grouping = target.grouping
    member = int(spread.classes[spread.parts(group)][0])
    found = np.ones(census.n_tuples, dtype=bool)
    for a, (hierarchy, labels) in enumerate(zip(grouping.summary.attributes, grouping.labels, strict=True)):
        text = labels.texts[labels.of_group[group]]
        code = int(grouping.summary.codes[a][member])
        blocks: Ints | None = None
        for level in hierarchy.levels:
            if level.labels[level.blocks[code]] == text:
                blocks = np.asarray(level.blocks)
                break
        if blocks is not None:
            found &= blocks[census.codes[a]] == blocks[code]
    return found


def _in_words(
    target: Target, spread: ClassSpread, census: Summary, secrets: Secrets, rule: Threshold, group: int,
    listed: list[ListedPeople], tuples: list[int], result: ListCredibility,
) -> Belief:  # fmt: skip
    at = max(range(len(listed)), key=result.beliefs.__getitem__)
    after, held = result.beliefs[at], spread.held(group)
    inside = _inside(spread, rule)
    shown = Fraction(int(held[inside].sum()), int(held.sum()))
    words = " or ".join(values_of(target, rule))
    labels = [
        f"{h.attribute} {h.levels[0].labels[h.levels[0].blocks[census.codes[a][tuples[at]]]]}"
        for a, h in enumerate(target.grouping.summary.attributes)
    ]
    people = listed[at].people
    who = "the only person" if people == 1 else f"each of the {people} people"
    everybody = sum(c.people for c in listed)
    interval = None
    if result.half:
        interval = max(0.0, float(after) - result.half), min(1.0, float(after) + result.half)
    return Belief(
        Fraction(int(held[inside].sum()), max(1, everybody)),
        after,
        f"{who} of the list with {', '.join(labels)}",
        f"{everybody} people of the list match {in_words(target.grouping, group)}, which has {int(held.sum())} rows, "
        f"{number_text(shown)} of them with {rule.attribute} {words}; it was generalised, so a class in it violates "
        "the "
        "requirement",
        interval,
    )
