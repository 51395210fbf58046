"""Absence: what is believed about people who are missing from the release because of their values.

A class that was dropped for failing a requirement about sensitive values violated it, and who knows everybody's
quasi-identifiers knows who was in it. Nothing is published about these people, so the prior is that each has a value
with the probability of its share in the release, independently; the reason for their absence does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from maskwright.attacks._absence.greedy_tail import Tail, tail_of
from maskwright.attacks._absence.violating_classes import violating_shares
from maskwright.attacks._minimality.drawn_worlds import Bools
from maskwright.attacks._minimality.refusals import looked_at_values, node_classes
from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
    accompanying_figures,
    columns_of,
    label_text,
    secrets_of,
    threshold_of,
)
from maskwright.attacks._shared.thresholds import Threshold, thresholds_of
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target, drops_failing
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Ints
from maskwright.domain.exact import number_text


class Absence(Attack):
    """The belief about people who were dropped because a class of theirs failed a requirement about values."""

    name: ClassVar[str] = "absence"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"method"})
    by_rows: ClassVar[bool] = True
    whom: ClassVar[Literal["published", "dropped"]] = "dropped"

    def applies(self, target: Target) -> bool:
        """Whether people were dropped because of values, for a reason that thresholds on one column state."""
        grouping = target.grouping
        if tail_of(target) is not None:
            return True
        if not drops_failing(target) or not grouping.dropped_rows:
            return False
        if grouping.levels is None or not grouping.classes.sensitive or not grouping.summary.rows_are_people:
            return False
        if any(s.several for s in secrets_of(target)):
            return False
        rules = thresholds_of(looked_at_values(target.models), target.context)
        if not rules or len({r.attribute for r in rules}) > 1 or not _are_disjoint(rules):
            return False
        if rules[0].attribute not in columns_of(target):
            return False
        return bool(Dropped.of(target).for_values.any())

    def unable(self, target: Target) -> str:
        """Why the attack cannot run though people were dropped because of their values; otherwise nothing."""
        by_value = drops_failing(target) and looked_at_values(target.models)
        return super().unable(target) if by_value and target.grouping.dropped_rows else ""

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief about somebody who was dropped."""
        secrets = secrets_of(target)
        rules = thresholds_of(looked_at_values(target.models), target.context) or []
        tail = tail_of(target)
        if tail is not None:
            return self._tail(target, adversary, secrets, tail)
        dropped = Dropped.of(target)
        found = [_worst(target, s, rules, dropped) for s in secrets if rules[0].attribute == s.attribute]
        belief, vulnerable = found[0]
        people = int(dropped.sizes.sum())
        return Beliefs(
            self.name, adversary.name, "estimated", belief,
            {
                "prior": PRIOR,
                "dropped_for_values": int(dropped.sizes[dropped.for_values].sum()),
                "classes_dropped_for_values": int(dropped.for_values.sum()),
                "vulnerable_people": vulnerable,
                "vulnerable_share": Fraction(vulnerable, people),
                **accompanying_figures(target, secrets),
            },
        )  # fmt: skip

    def _tail(self, target: Target, adversary: Adversary, secrets: Sequence[Secrets], tail: Tail) -> Beliefs:
        """The last group of greedy grouping, which was dropped because it never satisfied the requirement."""
        mine = next(s for s in secrets if s.attribute == tail.rule.attribute)
        counts = target.grouping.published_classes.sensitive[mine.attribute]
        totals, people = counts.totals, int(counts.totals.sum())
        held = int(sum(totals[code] for code in tail.rule.codes))
        believed = tail.beliefs(
            max(held, 1) / (people + (held == 0))
        )  # what nobody has is taken to occur once
        limit = threshold_of(target.models, mine.attribute, len(target.grouping.classes.sensitive) == 1)
        worst, vulnerable = NOTHING, 0
        for share in believed.tolist():
            shares = [Fraction(share), 1 - Fraction(share)]
            beliefs = _of_secrets(mine, [tail.rule], counts.values, totals, shares)
            vulnerable += tail.size if max(beliefs.values()) > limit else 0
            for code, after in beliefs.items():
                if after > worst.after:
                    why = (
                        f"the last {tail.people} people in the order of the method are missing: their group never "
                        f"satisfied the requirement; in the release {number_text(Fraction(held, people))} hold such "
                        "a value"
                    )
                    ends = float(after) * (1 - ROUNDING), min(1.0, float(after) * (1 + ROUNDING))
                    whom = (
                        f"each of {tail.size} people who were dropped, of whom {mine.name(code)} is believed"
                    )
                    worst = Belief(mine.before(code), after, whom, why, ends)
        return Beliefs(
            self.name, adversary.name, "estimated", worst,
            {
                "prior": PRIOR,
                "dropped_for_values": tail.people,
                "vulnerable_people": vulnerable,
                "vulnerable_share": Fraction(vulnerable, tail.people),
                **accompanying_figures(target, secrets),
            },
        )  # fmt: skip


PRIOR = "each has a value with the probability of its share in the release, independently"
ROUNDING = 1e-9  # of sums in floating point, generously


def _are_disjoint(rules: Sequence[Threshold]) -> bool:
    """Whether no value belongs to two sets."""
    codes = [code for rule in rules for code in rule.codes]
    return len(set(codes)) == len(codes)


@dataclass(frozen=True, eq=False)
class Dropped:
    """The classes that were dropped: their people, a tuple of each, and whether values were the reason."""

    sizes: Ints
    first: Ints
    for_values: Bools

    @staticmethod
    def of(target: Target) -> Dropped:
        """The dropped classes, which everybody knows: those of the published node that the release does not have."""
        grouping, summary = target.grouping, target.grouping.summary
        assert grouping.levels is not None  # noqa: S101 - `applies` says so
        class_of, n = node_classes(summary, grouping.levels)
        gone = np.zeros(n, dtype=bool)
        gone[class_of[grouping.allocation.tuples[grouping.allocation.groups < 0]]] = True
        first = np.zeros(n, dtype=np.int64)
        first[class_of[::-1]] = np.arange(len(class_of))[::-1]
        classes = summary.classes(class_of, n).take(gone)
        search = [m for m in target.models if m.use == "search"]
        large = classes.sizes >= target.least_people
        for model in search:
            if model.about == "quasi-identifiers" and not model.needs():
                large &= model.passing(classes, target.context)
        return Dropped(classes.sizes, first[gone], large)


def _worst(
    target: Target, secrets: Secrets, rules: Sequence[Threshold], dropped: Dropped
) -> tuple[Belief, int]:
    """The worst belief about somebody who was dropped, and how many are above the policy's bound."""
    counts = target.grouping.published_classes.sensitive[secrets.attribute]
    totals, people = counts.totals, int(counts.totals.sum())
    held = [int(sum(totals[code] for code in rule.codes)) for rule in rules]
    limit = threshold_of(target.models, secrets.attribute, len(target.grouping.classes.sensitive) == 1)
    worst, vulnerable = NOTHING, 0
    for size in np.unique(dropped.sizes[dropped.for_values]).tolist():
        caps = [int(rule.caps(np.array([size]))[0]) for rule in rules]
        shares = violating_shares(size, [*held, people - sum(held)], caps)
        beliefs = _of_secrets(secrets, rules, counts.values, totals, shares)
        at = np.flatnonzero(dropped.for_values & (dropped.sizes == size))
        if max(beliefs.values(), default=Fraction(0)) > limit:
            vulnerable += size * len(at)
        for code, after in beliefs.items():
            if after > worst.after:
                whom = _in_words(target, dropped, int(at[0]))
                prior = Fraction(int(sum(totals[i + 1] for i, v in enumerate(counts.values)
                                         if v in secrets.sets[code - 1])), people)  # fmt: skip
                why = (
                    f"all {size} of their class are missing, though it was large enough: it violated the requirement; "
                    f"in the release {number_text(prior)} have {secrets.name(code)}"
                )
                worst = Belief(secrets.before(code), after, whom, why)
    return worst, vulnerable


def _of_secrets(
    secrets: Secrets,
    rules: Sequence[Threshold],
    values: Sequence[str],
    totals: Ints,
    shares: Sequence[Fraction],
) -> dict[int, Fraction]:
    """The belief in each secret, from the share of each rule's set (the last: of all other values)."""
    sets = [rule.codes for rule in rules]
    named = frozenset[int]().union(*sets)
    sets.append(frozenset(range(len(totals))) - named)
    result = {}
    for code, members in enumerate(secrets.sets, start=1):
        mine = {i + 1 for i, v in enumerate(values) if v in members}
        belief = Fraction(0)
        for codes, share in zip(sets, shares, strict=True):
            everybody = int(sum(totals[c] for c in codes))
            if everybody:
                belief += share * Fraction(int(sum(totals[c] for c in codes & mine)), everybody)
            elif codes & mine:
                belief += share * Fraction(len(codes & mine), len(codes))
        result[code] = belief
    return result


def _in_words(target: Target, dropped: Dropped, which: int) -> str:
    grouping, first = target.grouping, int(dropped.first[which])
    labels = []
    for hierarchy, codes, level in zip(
        grouping.summary.attributes, grouping.summary.codes, grouping.levels or (), strict=True
    ):
        block = hierarchy.levels[level].blocks[codes[first]]
        labels.append(f"{hierarchy.attribute} {label_text(hierarchy.levels[level].labels[block])}")
    return f"each of the {int(dropped.sizes[which])} dropped people with {', '.join(labels)}"
