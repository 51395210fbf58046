"""Credibility in a release, by counting worlds in closed form [Wong et al. 2007]: one threshold decided, one refusal.

Over the worlds in which some part of a published class holds more of a set of values than it may, the expected share of
the set in a part is its credibility. Given how much of the set a part holds, all other values are spread evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from maskwright.attacks._minimality.refusals import RefusedParts, part_in_words
from maskwright.attacks._shared.findings import Finding, as_shown, belief_limit, worse_elsewhere
from maskwright.attacks._shared.secrets import Secrets, in_words
from maskwright.attacks._shared.thresholds import Threshold, merged_classes
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.exact import number_text
from maskwright.worlds.counting.credibility import Credibility, credibility_each, credibility_release

Scope = Literal["release", "class"]  # where a violation explains what was refused


def closed_form_finding(
    target: Target, secrets: Secrets, threshold: Threshold, parts: RefusedParts, scope: Scope, least: int = 0
) -> Finding:
    """The worst belief when one partition is known to have been refused, by counting worlds in closed form."""
    rows = list(beliefs_of(target, secrets, threshold, parts, scope, least))
    if not rows:
        return as_shown(target, secrets, "no world explains what was refused")
    top = max(r.value for r in rows)
    worst = max((r for r in rows if r.value >= top * (1 - 1e-9)), key=PartBelief.exact)
    bound = belief_limit(target, secrets)
    vulnerable = sorted({part for r in rows if r.exceeds(bound) for part in r.parts})
    found = Finding(
        _in_words(target, secrets, parts, worst, scope), "exact", int(parts.sizes[vulnerable].sum())
    )
    others = np.ones(len(secrets.sizes), dtype=bool)
    others[parts.group] = False
    return worse_elsewhere(target, secrets, others, found)


def _in_words(target: Target, secrets: Secrets, parts: RefusedParts, row: PartBelief, scope: Scope) -> Belief:
    part = row.parts[0]
    group = int(parts.group[part])
    shown = Fraction(row.mine + row.rest, row.people)
    where = "a class of it" if scope == "release" else "a part of this class"
    why = (
        f"published with {in_words(target.grouping, group)}, where {number_text(shown)} have "
        f"{secrets.name(row.code)}; but "
        f"{parts.words} was refused, so {where} violates the requirement"
    )
    after, error = row.exact(), row.error
    interval = None if not error else (float(after) * (1 - error), float(after) * (1 + error))
    return Belief(secrets.before(row.code), after, part_in_words(target, parts, part), why, interval)


@dataclass(frozen=True)
class PartBelief:
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
        """The belief in floating point."""
        share, others = float(self.share), self.people - self.held
        return (share * self.mine / self.held if self.held else 0.0) + (
            (1 - share) * self.rest / others if others else 0.0
        )

    def exact(self) -> Fraction:
        """The belief as a fraction: given how much of the set a part holds, other values are spread evenly."""
        share, others = Fraction(self.share), self.people - self.held
        inside = share * Fraction(self.mine, self.held) if self.held else Fraction(0)
        return inside + ((1 - share) * Fraction(self.rest, others) if others else Fraction(0))

    def exceeds(self, limit: Fraction) -> bool:
        """Whether the belief is above a limit, decided exactly where they are close."""
        if abs(self.value - float(limit)) > 1e-9:
            return self.value > float(limit)
        return self.exact() > limit


def beliefs_of(
    target: Target, secrets: Secrets, threshold: Threshold, parts: RefusedParts, scope: Scope, least: int = 0
) -> Iterator[PartBelief]:
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
    overlap = _secret_overlaps(target, secrets, threshold)
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
                yield PartBelief(equal, code, share, mine, rest, merged.sensitive, people, error)


def _secret_overlaps(
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

    def _overlap(group: int) -> dict[int, tuple[int, int]]:
        found: dict[int, tuple[int, int]] = {}
        entries = slice(int(counts.start[group]), int(counts.start[group + 1]))
        for code, n in zip(counts.codes[entries].tolist(), counts.counts[entries].tolist(), strict=True):
            for secret in of_value.get(code, ()):
                mine, rest = found.get(secret, (0, 0))
                inside = code in threshold.codes
                found[secret] = (mine + n, rest) if inside else (mine, rest + n)
        return found

    return _overlap
