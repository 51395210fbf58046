"""Minimality: what an adversary learns who knows the method and its parameters [Wong et al. 2007; Cormode et al. 2010].

A method that recodes no more than it must gives away that it *had* to: where a finer recoding was refused, some class
of it violates the requirement. The belief in a secret is its share over the possible worlds in which that is so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from maskwright.attacks.draws import refused_at_least
from maskwright.attacks.homogeneity import worst_share
from maskwright.attacks.refusals import (
    FULL_DOMAIN,
    Parts,
    looked_at_values,
    part_in_words,
    raw_classes,
    refusals,
    some_levels_were_excluded,
)
from maskwright.attacks.secrets import (
    NOTHING,
    Secrets,
    beside,
    in_words,
    people_in_words,
    secrets_of,
    threshold_of,
)
from maskwright.attacks.thresholds import Threshold, deciding, merged_classes, thresholds_of
from maskwright.core.adversary import Adversary, Attack, Target
from maskwright.core.beliefs import Belief, Beliefs
from maskwright.core.exact import show
from maskwright.core.guarantees import BLIND, family
from maskwright.core.worlds.credibility import Credibility, credibility_each, credibility_release

Kind = Literal["exact", "sampled", "estimated", "bounded"]
Scope = Literal["release", "class"]  # where a violation explains what was refused


@dataclass(frozen=True)
class Finding:
    """One worst belief: how far it can be trusted, and how many people are above the policy's bound."""

    belief: Belief
    kind: Kind
    vulnerable: int

    def as_measure(self) -> dict[str, Any]:
        return {"belief": self.belief, "kind": self.kind, "vulnerable_people": self.vulnerable}


class Minimality(Attack):
    """The belief of somebody who knows the method, and so why nothing finer was published.

    Attributes:
        draws: how many worlds are drawn where they cannot be counted.
    """

    name: ClassVar[str] = "minimality"

    draws: int = Field(default=200, ge=10, le=100_000)

    def applies(self, target: Target) -> bool:
        classes = target.grouping.classes
        if target.method is None or not classes.sensitive or target.grouping.changes is not None:
            return False
        if target.grouping.summary.shared is not None or any(s.several for s in secrets_of(target)):
            return False
        return shows_all(target) or searched_a_lattice(target)

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        secrets = secrets_of(target)
        measures: dict[str, Any] = beside(target, secrets)
        if shows_all(target):
            found = [_as_shown(target, s, len(secrets) == 1) for s in secrets]
            measures["status"] = "guaranteed"
        else:
            found, more = self._lattice(target, secrets)
            measures |= {"status": "measured", **more}
        worst = max(found, key=lambda f: (f.belief.after, -f.belief.before))
        published = int(target.grouping.classes.sizes.sum())
        measures["vulnerable_people"] = max(f.vulnerable for f in found)
        measures["vulnerable_share"] = Fraction(measures["vulnerable_people"], published)
        kind = worst.kind
        if some_levels_were_excluded(target.grouping) or target.grouping.search.get("optimal") is False:
            kind = "estimated" if measures["status"] == "measured" else kind
            measures["assumption"] = "every finer level was allowed, and tried"
        return Beliefs(self.name, adversary.name, kind, worst.belief, measures)

    def _lattice(self, target: Target, secrets: Sequence[Secrets]) -> tuple[list[Finding], dict[str, Any]]:
        """A full-domain search that looked at sensitive values."""
        refused, others = refusals(target)
        rules = thresholds_of(looked_at_values(target.models), target.context)
        grouping, only = target.grouping, len(secrets) == 1
        threshold = deciding(rules, refused, grouping.classes)
        found, alone = [], []
        certain = refused_at_least(target, refused, self.draws) if refused else 1.0
        for s in secrets:
            together = _at_most(target, s, certain, len(refused), only)
            if not refused:
                found.append(_as_shown(target, s, only, "no finer node was refused because of values alone"))
            elif threshold is not None and threshold.attribute == s.attribute:
                found.append(_counted(target, s, threshold, refused, "release", only))
                alone.append(_counted(target, s, threshold, refused, "class", only))
            else:
                found.append(together)
        raw = raw_classes(grouping)
        paper = deciding(rules, [raw], grouping.classes)
        per_class = [
            _counted(target, s, paper, [raw], "class", only, least_people(target))
            for s in secrets
            if paper is not None and paper.attribute == s.attribute
        ]
        more = {
            "refused": [p.words for p in refused],
            "not_refused_for_values": others,
            "all refusals together": {"at_most": _worst(secrets, certain), "confidence": CONFIDENCE},
            "whole release": [f.as_measure() for f in found],
            "per class": [f.as_measure() for f in alone],
            "per class (paper)": [f.as_measure() for f in per_class],
        }
        return found, more


CONFIDENCE = 0.99


def shows_all(target: Target) -> bool:
    """Does the method give nothing away: is the belief what each group shows, provably?"""
    method = target.method
    if method is None:
        return False
    looked, options = looked_at_values(target.models), method.options()
    if target.grouping.search.get("dropped_for_their_values") or (options.get("anatomize") and looked):
        return False
    if not looked and method.name in BLIND | {"local-recoding"}:
        return True
    return family(method.name, options) in ("balanced", "anatomy")


def searched_a_lattice(target: Target) -> bool:
    """Is it a full-domain search whose refusals can be judged?"""
    method, looked = target.method, looked_at_values(target.models)
    if method is None or method.name not in FULL_DOMAIN or target.grouping.levels is None:
        return False
    if getattr(method, "suppress", "") == "failing-classes" and getattr(method, "suppression", 0):
        return False
    return all(m.is_local() and not m.needs() for m in looked)


def least_people(target: Target) -> int:
    """The size that a class must have, whatever its values."""
    return max((m.least_size(target.context) for m in target.models if m.use == "search"), default=1)


def _as_shown(target: Target, secrets: Secrets, only: bool, why: str = "") -> Finding:
    """The share in the group, because knowing the method adds nothing."""
    belief = worst_share(target.grouping, secrets)
    reason = (
        why
        or "the method gives nothing away: its decisions would be the same if the group's values were dealt anew"
    )
    limit = threshold_of(target.models, secrets.attribute, only)
    above = np.unique(secrets.counts.owner[~secrets.shares().at_most(limit)])
    if belief is not NOTHING:
        belief = replace(belief, why=f"{belief.why}; {reason}")
    return Finding(belief, "exact", int(secrets.sizes[above].sum()))


def _worst(secrets: Sequence[Secrets], probability: float) -> float:
    shares = [worst for s in secrets if (worst := _largest(s)) is not None]
    return min(1.0, float(max(shares, default=Fraction(0))) / probability) if probability else 1.0


def _largest(secrets: Secrets) -> Fraction | None:
    shares = secrets.shares()
    worst = shares.argmax()
    return None if worst is None else shares[worst]


def _at_most(target: Target, secrets: Secrets, probability: float, refused: int, only: bool) -> Finding:
    """P(secret | refused) ≤ P(secret) / P(refused): a bound for everybody at once, from one probability."""
    shares = secrets.shares()
    worst = shares.argmax()
    if worst is None:
        return Finding(NOTHING, "exact", 0)
    group, code = int(secrets.counts.owner[worst]), int(secrets.counts.codes[worst])
    factor = Fraction(probability).limit_denominator(10**6) if probability else Fraction(0)
    upper = min(Fraction(1), shares[worst] / factor) if factor else Fraction(1)
    limit = threshold_of(target.models, secrets.attribute, only) * factor
    above = (
        np.unique(secrets.counts.owner[~shares.at_most(limit)]) if factor else np.unique(secrets.counts.owner)
    )
    nodes = "one finer node was" if refused == 1 else f"{refused} finer nodes were"
    why = (
        f"{show(shares[worst])} of them have {secrets.name(code)}; that {nodes} refused happens in at least "
        f"{probability:.1%} of all worlds ({CONFIDENCE:.0%} confidence), so that it cannot tell more than this"
    )
    belief = Belief(
        secrets.before(code), upper, people_in_words(target.grouping, group), why,
        (float(shares[worst]), float(upper)),
    )  # fmt: skip
    return Finding(belief, "sampled", int(secrets.sizes[above].sum()))


def _counted(
    target: Target, secrets: Secrets, threshold: Threshold, refused: Sequence[Parts], scope: Scope, only: bool,
    least: int = 0,
) -> Finding:  # fmt: skip
    """The worst belief over all refusals, each taken alone, by counting worlds."""
    limit = threshold_of(target.models, secrets.attribute, only)
    found = []
    for parts in refused:
        rows = list(beliefs_of(target, secrets, threshold, parts, scope, least))
        top = max((r.value for r in rows), default=0.0)
        near = [r for r in rows if r.value >= top * (1 - 1e-9)]
        if near:
            worst = max(near, key=Row.exact)
            vulnerable = {part for r in rows if r.exceeds(limit) for part in r.parts}
            people = int(parts.sizes[sorted(vulnerable)].sum())
            found.append(Finding(_in_words(target, secrets, parts, worst, scope), "exact", people))
    if not found:
        return _as_shown(target, secrets, only, "no world explains the refusal")
    worst_one = max(found, key=lambda f: f.belief.after)
    return replace(worst_one, vulnerable=max(f.vulnerable for f in found))


def _in_words(target: Target, secrets: Secrets, parts: Parts, row: Row, scope: Scope) -> Belief:
    part = row.parts[0]
    group = int(parts.group[part])
    shown = Fraction(row.mine + row.rest, row.people)
    where = "a class of it" if scope == "release" else "a part of this class"
    why = (
        f"published with {in_words(target.grouping, group)}, where {show(shown)} have {secrets.name(row.code)}; but "
        f"{parts.words} was refused, so {where} violates the requirement"
    )
    after, error = row.exact(), row.error
    interval = None if not error else (float(after) * (1 - error), float(after) * (1 + error))
    return Belief(secrets.before(row.code), after, part_in_words(target, parts, part), why, interval)


@dataclass(frozen=True)
class Row:
    """The belief in one secret about the people of equal parts of one group.

    Attributes:
        parts: the parts.
        code: the secret.
        share: the credibility of the deciding set in each of them.
        mine: people of the group whose value belongs to the secret and to that set, and
        rest: to the secret only.
        held: people of the group whose value is in the set, of
        people: people of the group.
        error: the relative error of `share`.
    """

    parts: Sequence[int]
    code: int
    share: Fraction | float
    mine: int
    rest: int
    held: int
    people: int
    error: float

    @property
    def value(self) -> float:
        share, others = float(self.share), self.people - self.held
        return (share * self.mine / self.held if self.held else 0.0) + (
            (1 - share) * self.rest / others if others else 0.0
        )

    def exact(self) -> Fraction:
        """Given how much of the set a part holds, the values inside of it are spread evenly, and those outside."""
        share, others = Fraction(self.share), self.people - self.held
        inside = share * Fraction(self.mine, self.held) if self.held else Fraction(0)
        return inside + ((1 - share) * Fraction(self.rest, others) if others else Fraction(0))

    def exceeds(self, limit: Fraction) -> bool:
        if abs(self.value - float(limit)) > 1e-9:
            return self.value > float(limit)
        return self.exact() > limit


def beliefs_of(
    target: Target, secrets: Secrets, threshold: Threshold, parts: Parts, scope: Scope, least: int = 0
) -> Iterator[Row]:
    """The belief in every secret of a group, for each kind of part in it.

    Args:
        target: the release.
        secrets: of the column that the threshold is about.
        threshold: the requirement that decided.
        parts: what was refused.
        scope: a violation in the same published class (the paper), or anywhere in the release, explains the refusal.
        least: parts with fewer people violate the requirement whatever their values.
    """
    grouped = merged_classes(threshold, parts, target.grouping.classes, least)
    each: Iterable[Credibility | None] | None
    each = credibility_each(grouped.merged) if scope == "class" else credibility_release(grouped.merged)
    if each is None:
        return
    overlap = _overlaps(target, secrets, threshold)
    for group, members, merged, found in zip(
        grouped.groups.tolist(), grouped.members, grouped.merged, each, strict=True
    ):
        kinds: dict[tuple[int, int], list[int]] = {}
        for i, kind in enumerate(zip(merged.sizes, merged.caps, strict=True)):
            kinds.setdefault(kind, []).append(i)
        people = sum(merged.sizes)
        for places in kinds.values():
            share = Fraction(merged.sensitive, people) if found is None else found.values[places[0]]
            error = 0.0 if found is None else found.relative_error
            equal = [int(members[i]) for i in places]
            for code, (mine, rest) in overlap(group).items():
                yield Row(equal, code, share, mine, rest, merged.sensitive, people, error)


def _overlaps(
    target: Target, secrets: Secrets, threshold: Threshold
) -> Callable[[int], dict[int, tuple[int, int]]]:
    """Per group and secret: people whose value belongs to the secret and to the deciding set, or only to the secret."""
    counts = target.grouping.classes.sensitive[secrets.attribute]
    number = {value: i + 1 for i, value in enumerate(counts.values)}
    of_value: dict[int, list[int]] = {}
    for s, members in enumerate(secrets.sets):
        for value in members:
            if value in number:
                of_value.setdefault(number[value], []).append(s + 1)

    def overlap(group: int) -> dict[int, tuple[int, int]]:
        found: dict[int, tuple[int, int]] = {}
        entries = slice(int(counts.start[group]), int(counts.start[group + 1]))
        for code, n in zip(counts.codes[entries].tolist(), counts.counts[entries].tolist(), strict=True):
            for secret in of_value.get(code, ()):
                mine, rest = found.get(secret, (0, 0))
                inside = code in threshold.codes
                found[secret] = (mine + n, rest) if inside else (mine, rest + n)
        return found

    return overlap
