"""MASK: what its releases tell somebody who knows MASK [Wong et al. 2007; erratum W-5].

A class that shows a large share of the sensitive set may be a disguised one, in which there were more. Everybody is
taken to hold the set with the same probability, independently: the share of the set in the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from maskwright.attacks._minimality.refusals import looked_at_values
from maskwright.attacks._shared.findings import Finding, Kind, as_shown, belief_limit
from maskwright.attacks._shared.secrets import Secrets, in_words, people_in_words
from maskwright.attacks._shared.thresholds import Threshold, thresholds_of
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.exact import number_text
from maskwright.worlds.counting.counting_limits import TooManyWorlds
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
class _Believed:
    """The belief in the disguised set in every class."""

    values: list[Fraction]
    half: list[float]
    kind: Kind
    measures: dict[str, Any]


def _believe(target: Target, secrets: Secrets, threshold: Threshold) -> _Believed:
    shown = target.grouping.published_classes
    sizes = shown.sizes.tolist()
    held = threshold.held(shown.sensitive[threshold.attribute]).tolist()
    names = [shown.sensitive[threshold.attribute].values[c - 1] for c in sorted(threshold.codes)]
    true = int(threshold.held(target.grouping.summary.totals().sensitive[threshold.attribute])[0])
    theta = Fraction(true, target.grouping.summary.n_people)
    measures = {"prior": theta, "disguised set": names}
    base = [Fraction(s, n) for n, s in zip(sizes, held, strict=True)]
    if not 0 < theta < 1:
        return _Believed(base, [0.0] * len(sizes), "exact", measures)
    if sum(sizes) <= EXACT:
        try:
            exact = mask_posterior(sizes, held, 1 / threshold.share, theta, STATES)
            return _Believed(exact or base, [0.0] * len(sizes), "exact", measures)
        except TooManyWorlds:
            pass
    found = mask_estimate(sizes, held, 1 / threshold.share, float(theta), STEPS)
    measures["chains agree (R-hat)"] = round(found.rhat, 3)
    return _Believed([Fraction(b) for b in found.beliefs], found.half, "estimated", measures)


def _finding(target: Target, secrets: Secrets, threshold: Threshold, believed: _Believed) -> Finding:
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
