"""Which credibility of Wong et al. 2007 fits a release: local recoding, MASK, or a table of unknown origin.

*MASK* [erratum W-5]: a class that shows a large share of the sensitive set may be a disguised one, in which there were
more. Everybody is taken to hold the set with the same probability, independently: the share of the set in the whole
table.

*A list of people that is longer than the table*, the policy's population: with it less is learned than by somebody who
knows who is in the table; so this is reported beside the attack's own result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._minimality.local_credibility import (
    local_findings,
    readable_thresholds,
    recoded_locally,
    requirement_of,
)
from maskwright.attacks._minimality.refusals import looked_at_values
from maskwright.attacks._shared.findings import Finding, Kind, as_shown, belief_limit
from maskwright.attacks._shared.original_classes import ClassesInGroups, cells_of
from maskwright.attacks._shared.secrets import Secrets, in_words, people_in_words
from maskwright.attacks._shared.thresholds import Threshold, thresholds_of, values_of
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Ints
from maskwright.domain.exact import number_text, text_of
from maskwright.domain.summary import Summary
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.counting.credibility import ListCredibility, ListedPeople, credibility_listed
from maskwright.worlds.counting.mask_worlds import mask_estimate, mask_posterior

EXACT = 300  # people; with more, the exact fractions grow too long
STATES = 5_000  # numbers of disguised classes that are added up one by one
STEPS = 6_000  # of each Markov chain


def made_by_mask(target: Target) -> bool:
    """Whether the release was made by MASK, with known settings."""
    known = target.method is not None and target.method.decisions().shape == "disguise"
    return known and target.grouping.summary.rows_are_people and _threshold(target) is not None


def _threshold(target: Target) -> Threshold | None:
    """The set that was disguised, and its largest share: by the method's settings, else by the only threshold."""
    method, classes = target.method, target.grouping.classes
    attribute = getattr(method, "attribute", None) or next(iter(classes.sensitive), None)
    if attribute is None:
        return None
    ell, values = getattr(method, "l", None), getattr(method, "values", None)
    rules = thresholds_of(looked_at_values(target.models), target.context) or []
    mine = [r for r in rules if r.attribute == attribute]
    if ell is None or values is None:
        if len(mine) != 1:
            return None
        ell, codes = ell or 1 / mine[0].share, mine[0].codes
    if values is not None:
        codes = frozenset(i + 1 for i, v in enumerate(classes.sensitive[attribute].values) if v in values)
    return Threshold(attribute, codes, 1 / Fraction(ell))


def mask_findings(
    target: Target, secrets: Sequence[Secrets], draws: int
) -> tuple[list[Finding], dict[str, Any]]:
    """The worst belief in the disguised set; other secrets are believed as their classes show them."""
    threshold = _threshold(target)
    if threshold is None:
        raise ValueError("it is not known what was disguised")
    found, measures = [], dict[str, Any]()
    for s in secrets:
        if s.attribute != threshold.attribute:
            found.append(as_shown(target, s, "this column was not disguised"))
            continue
        believed = _believe(target, s, threshold)
        found.append(_finding(target, s, threshold, believed))
        measures |= believed.measures
    return found, measures | {"knowing": KNOWING, "assumption": PRIOR}


KNOWING = "MASK and its parameters"
PRIOR = (
    "everybody holds the set with the probability that it has in the whole table, independently of the others"
)


@dataclass(frozen=True)
class _MaskBeliefs:
    """The belief in the disguised set in every class."""

    values: list[Fraction]
    half: list[float]
    kind: Kind
    measures: dict[str, Any]


def _believe(target: Target, secrets: Secrets, threshold: Threshold) -> _MaskBeliefs:
    shown = target.grouping.published_classes
    sizes = shown.sizes.tolist()
    held = threshold.held(shown.sensitive[threshold.attribute]).tolist()
    names = [shown.sensitive[threshold.attribute].values[c - 1] for c in sorted(threshold.codes)]
    true = int(threshold.held(target.grouping.summary.totals().sensitive[threshold.attribute])[0])
    theta = Fraction(true, target.grouping.summary.n_people)
    measures = {"prior": theta, "disguised set": names}
    base = [Fraction(s, n) for n, s in zip(sizes, held, strict=True)]
    if not 0 < theta < 1:
        return _MaskBeliefs(base, [0.0] * len(sizes), "exact", measures)
    if sum(sizes) <= EXACT:
        try:
            exact = mask_posterior(sizes, held, 1 / threshold.share, theta, STATES)
            return _MaskBeliefs(exact or base, [0.0] * len(sizes), "exact", measures)
        except TooManyWorlds:
            pass
    found = mask_estimate(sizes, held, 1 / threshold.share, float(theta), STEPS)
    measures["chains agree (R-hat)"] = round(found.rhat, 3)
    return _MaskBeliefs([Fraction(b) for b in found.beliefs], found.half, "estimated", measures)


def _finding(target: Target, secrets: Secrets, threshold: Threshold, believed: _MaskBeliefs) -> Finding:
    grouping = target.grouping
    upper = [float(b) + h for b, h in zip(believed.values, believed.half, strict=True)]
    worst = max(range(len(upper)), key=lambda g: (upper[g], believed.values[g]))
    values = grouping.published_classes.sensitive[threshold.attribute]
    held, size = int(threshold.held(values)[worst]), int(grouping.classes.sizes[worst])
    names = " or ".join(believed.measures["disguised set"])
    half = believed.half[worst]
    after = min(believed.values[worst], Fraction(1))
    why = (
        f"published with {in_words(grouping, worst)}, where {number_text(Fraction(held, size))} have "
        f"{threshold.attribute} {names}; but MASK gives violating classes such shares, and this may be one of them "
        f"(assuming that {PRIOR})"
    )
    interval = None if not half else (max(0.0, float(after) - half), min(1.0, float(after) + half))
    bound = belief_limit(target, secrets)
    above = [
        g
        for g, (b, h) in enumerate(zip(believed.values, believed.half, strict=True))
        if b + Fraction(h) > bound
    ]
    vulnerable = int(grouping.classes.sizes[above].sum())
    belief = Belief(believed.measures["prior"], after, people_in_words(grouping, worst), why, interval)
    found = Finding(belief, believed.kind, vulnerable)
    shown = as_shown(target, secrets, "as the class shows it")
    return found if found.belief.upper >= shown.belief.after else shown


CredibilityAnalysis = Callable[[Target, Sequence[Secrets], int], tuple[list[Finding], dict[str, Any]]]
MINIMAL = "that the method generalises no more than the requirement forces it to"


def credibility_analysis(target: Target) -> CredibilityAnalysis | None:
    """The way to attack a release whose method is known by what it does to classes; None: other ways fit."""
    if made_by_mask(target):
        return mask_findings
    if recoded_locally(target):
        return _local
    if of_unknown_origin(target):
        return _inferred
    return None


def of_unknown_origin(target: Target) -> bool:
    """A table that somebody else made, whose original classes are known, some of them merged."""
    if target.method is not None or target.grouping.changes is not None:
        return False
    cells = cells_of(target)
    return cells is not None and bool(ClassesInGroups.of(cells).mixed.any())


def _inferred(target: Target, secrets: Sequence[Secrets], draws: int) -> tuple[list[Finding], dict[str, Any]]:
    """The requirement is read off the table where nobody states it; every release of a minimal method shows it."""
    needed = requirement_of(target, draws)
    known: dict[str, Any] = {"knowing": MINIMAL, "method assumed": True}
    if not needed.models:
        thresholds = readable_thresholds(target, secrets)
        needed = replace(needed, thresholds=thresholds)
        known["requirement read off the release"] = "; ".join(
            f"at most {text_of(t.share)} of a class have {t.attribute} {' or '.join(values_of(target, t))}"
            for t in thresholds
        )
    found, measures = local_findings(target, secrets, needed)
    if target.grouping.levels is not None:  # full-domain: a violation anywhere explains every class
        found = [Finding(m["belief"], m["kind"], m["vulnerable_people"]) for m in measures["whole release"]]
    return found, measures | known


def _local(target: Target, secrets: Sequence[Secrets], draws: int) -> tuple[list[Finding], dict[str, Any]]:
    found, measures = local_findings(target, secrets, requirement_of(target, draws))
    return found, measures | {"knowing": MINIMAL, "method assumed": True}


DRAWS = 2_000


def with_list(target: Target, secrets: Sequence[Secrets]) -> dict[str, Any]:
    """The worst belief about somebody of the population table, as `external list`; nothing where there is none."""
    census, cells = target.census, cells_of(target)
    rules = thresholds_of(looked_at_values(target.models), target.context)
    if census is None or cells is None or target.grouping.changes is not None or not rules:
        return {}
    spread, people = ClassesInGroups.of(cells), int(census.sizes.sum())
    groups = np.flatnonzero(spread.mixed).tolist()
    found: list[Belief] = []
    for rule in rules:
        name = next((s for s in secrets if s.attribute == rule.attribute), None)
        if name is None:
            continue
        for group in groups:
            listed, tuples = _listed(target, spread, census, group, rule)
            result = _list_credibility(spread, listed, group, rule, len(rules) * len(groups) * len(listed))
            if result is not None:
                found.append(
                    _listed_belief(target, spread, census, name, rule, group, listed, tuples, result)
                )
    if not found:
        return {}
    return {
        "external list": {
            "people": people,
            "worst": max(found, key=lambda b: (b.upper, b.after)),
            "assumption": "any people of the list who match are as likely to be in the table as any others",
        }
    }


def _inside(spread: ClassesInGroups, rule: Threshold) -> NDArray[np.bool_]:
    return np.isin(spread.cells.codes[rule.attribute], list(rule.codes))


def _list_credibility(
    spread: ClassesInGroups, listed: list[ListedPeople], group: int, rule: Threshold, asked: int
) -> ListCredibility | None:
    items, held = spread.held(group)
    rows, sensitive = int(held.sum()), int(held[_inside(spread, rule)[items]].sum())
    return credibility_listed(listed, rows, sensitive, rule.share, DRAWS, asked)


def _listed(
    target: Target, spread: ClassesInGroups, census: Summary, group: int, rule: Threshold
) -> tuple[list[ListedPeople], list[int]]:
    """Everybody of the list who matches a group, by quasi-identifiers, and the tuples of the list."""
    matching = _covered(target, census, spread, group)
    number = {tuple(c): t for t, c in enumerate(target.grouping.summary.codes.T.tolist())}
    part = spread.parts(group)
    mine = {int(c): i for i, c in enumerate(spread.classes[part].tolist())}
    place, items, many = spread.known(spread.classes[part])
    known = np.bincount(place, many, len(mine)).astype(np.int64)
    sensitive = np.bincount(place, np.where(_inside(spread, rule)[items], many, 0), len(mine)).astype(
        np.int64
    )
    listed, tuples = [], []
    for t in np.flatnonzero(matching).tolist():
        own = number.get(tuple(census.codes[:, t].tolist()), -1)
        people = int(census.sizes[t])
        if own in mine:
            at = mine[own]
            rows = int(known[at])
            people = max(
                people, int(spread.sizes[own])
            )  # a list that lacks people of the table is no superset
            elsewhere = int(spread.sizes[own]) - int(spread.rows[part][at]) - rows
            listed.append(ListedPeople(people - rows - elsewhere, rows, int(sensitive[at])))
        else:
            listed.append(ListedPeople(people))
        tuples.append(t)
    return listed, tuples


def _covered(target: Target, census: Summary, spread: ClassesInGroups, group: int) -> NDArray[np.bool_]:
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


def _listed_belief(
    target: Target, spread: ClassesInGroups, census: Summary, secrets: Secrets, rule: Threshold, group: int,
    listed: list[ListedPeople], tuples: list[int], result: ListCredibility,
) -> Belief:  # fmt: skip
    at = max(range(len(listed)), key=result.beliefs.__getitem__)
    after, (items, held) = result.beliefs[at], spread.held(group)
    inside = _inside(spread, rule)[items]
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
