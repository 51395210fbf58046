"""Findings: the worst belief about one column, how far it can be trusted, and how many people it concerns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from maskwright.attacks._minimality.drawn_worlds import Bools, ListedWorlds
from maskwright.attacks._minimality.refusals import part_in_words, raw_classes
from maskwright.attacks._shared.secrets import NOTHING, Secrets, in_words, people_in_words, threshold_of
from maskwright.attacks.homogeneity import worst_share
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import ValueCounts
from maskwright.domain.exact import number_text

Kind = Literal["exact", "sampled", "estimated", "bounded"]
ONE = Fraction(1)
CONFIDENCE = 0.99
MILLION = 10**6


@dataclass(frozen=True)
class Finding:
    """One worst belief: how far it can be trusted, and how many people are above the policy's bound."""

    belief: Belief
    kind: Kind
    vulnerable: int

    def as_measure(self) -> dict[str, Any]:
        """The finding as a figure of a report."""
        return {"belief": self.belief, "kind": self.kind, "vulnerable_people": self.vulnerable}


def as_shown(target: Target, secrets: Secrets, why: str) -> Finding:
    """The share in the group, because what is known of the method adds nothing."""
    belief = worst_share(target.grouping, secrets)
    if belief is not NOTHING:
        belief = replace(belief, why=f"{belief.why}; {why}")
    every = np.ones(len(secrets.sizes), dtype=bool)
    return Finding(belief, "exact", _vulnerable_people(target, secrets, every))


def belief_limit(target: Target, secrets: Secrets) -> Fraction:
    """The policy's bound on belief in secrets of this column."""
    return threshold_of(target.models, secrets.attribute, len(target.grouping.classes.sensitive) == 1)


def _vulnerable_people(target: Target, secrets: Secrets, groups: Bools, factor: Fraction = ONE) -> int:
    """The number of people of these groups where some share, divided by a factor, is above the policy's bound."""
    owner = secrets.counts.owner
    above = owner[~secrets.shares().at_most(belief_limit(target, secrets) * factor) & groups[owner]]
    return int(secrets.sizes[np.unique(above)].sum())


def worse_elsewhere(target: Target, secrets: Secrets, groups: Bools, found: Finding | None) -> Finding:
    """The worse of a finding and of what the other groups (`groups`) show, of which nothing more is known."""
    counts = secrets.counts
    there = groups[counts.owner]
    only = ValueCounts.collect(
        counts.values, counts.n_classes, counts.owner[there], counts.codes[there].astype(np.int64),
        counts.counts[there],
    )  # fmt: skip
    shown = Finding(
        worst_share(target.grouping, replace(secrets, counts=only)),
        "exact",
        _vulnerable_people(target, secrets, groups),
    )
    if found is None:
        return shown
    worse = found if found.belief.after >= shown.belief.after else shown
    return replace(worse, vulnerable=found.vulnerable + shown.vulnerable)


def at_most(target: Target, secrets: Secrets, chance: Fraction, refused: int, kind: Kind) -> Finding:
    """The bound P(secret | refused) ≤ P(secret) / P(refused) for everybody at once, from one probability."""
    shares = secrets.shares()
    worst = shares.argmax()
    if worst is None:
        return Finding(NOTHING, "exact", 0)
    group, code = int(secrets.counts.owner[worst]), int(secrets.counts.codes[worst])
    upper = min(ONE, Fraction(math.ceil(shares[worst] / chance * MILLION), MILLION)) if chance else ONE
    nodes = "one finer node was" if refused == 1 else f"{refused} finer nodes were"
    sure = f" ({CONFIDENCE:.0%} confidence)" if kind == "sampled" else ""
    why = (
        f"{number_text(shares[worst])} of them have {secrets.name(code)}; that {nodes} refused is so in at least "
        f"{float(chance):.1%} of all worlds{sure}, and cannot tell more than this"
    )
    whom = people_in_words(target.grouping, group)
    if upper == 1:
        whom, why = "anybody", f"{why}: what it reveals could not be narrowed down"
    belief = Belief(
        secrets.before(code), upper, whom, why,
        (math.nextafter(float(shares[worst]), 0), float(upper)),
    )  # fmt: skip
    every = np.ones(len(secrets.sizes), dtype=bool)
    return Finding(belief, kind, _vulnerable_people(target, secrets, every, chance))


def enumerated_finding(
    target: Target, secrets: Secrets, listed: ListedWorlds, refused: Sequence[str] = ()
) -> Finding:
    """The worst belief over all worlds that are kept: these nodes are refused, or the method publishes the same."""
    raw = raw_classes(target.grouping, starred=True)
    worst: tuple[Fraction, int, int] | None = None
    above: set[int] = set()
    for code, of_tuple in listed.beliefs(secrets).items():
        for t, belief in of_tuple.items():
            if belief > belief_limit(target, secrets):
                above.add(t)
            if worst is None or belief > worst[0]:
                worst = belief, t, code
    people = int(raw.sizes[raw.class_of[sorted(above)]].sum()) if above else 0
    found = None
    if worst is not None:
        after, t, code = worst
        part = int(raw.class_of[t])
        known = "the method publishes the same groups only in"
        if refused:
            known = f"{' and '.join(refused)} {'was' if len(refused) == 1 else 'were'} refused, which is so only in"
        why = (
            f"published with {in_words(target.grouping, int(raw.group[part]))}; but {known} "
            f"{number_text(listed.chance)} of all worlds, and in this share of those they have {secrets.name(code)}"
        )
        belief_words = Belief(secrets.before(code), after, part_in_words(target, raw, part), why)
        found = Finding(belief_words, "exact", people)
    return worse_elsewhere(target, secrets, ~listed.groups, found)
