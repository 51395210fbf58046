"""Absence: what is believed about people who are missing from the release because of their values.

A class that was dropped for failing a requirement about sensitive values violated it, and an adversary with everybody's
quasi-identifiers knows who was in it. Nothing is published about these people, so the prior is that each has a value
with the probability of its share in the release, independently; the reason for their absence does the rest.

In the dropped tail of greedy grouping people are missing because their group never satisfied the requirement. An
adversary who knows the method knows that every prefix of the tail violated it (with `extend`: or went on by chance).
Nothing is published about these people, so the prior is that each holds a value of the set with its share in the
release, independently. Forward and backward sums over the buckets give what is then believed, bucket by bucket.

In a class that is known to violate, n people draw one of several sets of values (or none of them) with probabilities
in the ratio of given weights. Known is that some set is held by more people than its cap. Worlds without a violation
are counted in integers, set by set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._minimality.drawn_worlds import Bools
from maskwright.attacks._minimality.refusals import looked_at_values, node_classes
from maskwright.attacks._minimality.replay import LISTED_ROWS
from maskwright.attacks._people.absent_people import MissingRows, absent_findings
from maskwright.attacks._people.linked_people import visits_known
from maskwright.attacks._people.people_worlds import explained_worlds, listed_finding
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
from maskwright.domain.beliefs import NOT_COMPUTED, Belief, Beliefs
from maskwright.domain.classes import Ints
from maskwright.domain.exact import number_text
from maskwright.worlds.counting.binomial import log_binomial
from maskwright.worlds.sampling.world_sampler import WorldBudget


class Absence(Attack):
    """The belief about people who were dropped because a class of theirs failed a requirement about values."""

    name: ClassVar[str] = "absence"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"method"})
    whom: ClassVar[Literal["published", "dropped"]] = "dropped"

    def applies(self, target: Target) -> bool:
        """Whether people were dropped because of values, for a reason that thresholds on one column state."""
        grouping = target.grouping
        if not grouping.summary.rows_are_people:
            return _dropped_by_value(target) and not self.unable(target)
        if tail_of(target) is not None:
            return True
        return bool(drops_failing(target) and _missing_for_values(target)) and _told_by_shares(target)

    def unable(self, target: Target) -> str:
        """Why the attack cannot run though people were dropped because of their values; otherwise nothing."""
        if not _dropped_by_value(target):
            return ""
        if target.grouping.summary.rows_are_people:
            missing = 0 if tail_of(target) is not None else _missing_for_values(target)
            if not missing or (not target.grouping.trace.dropped_for_values and _told_by_shares(target)):
                return ""
            return (
                f"{missing:,} people are missing because of their values, and what that reveals about them is "
                "computed only where the shares of one column's values were the reason (simple-l-diversity, "
                "alpha-k-anonymity)"
            )
        few = target.grouping.summary.n_rows <= LISTED_ROWS and not visits_known(target)
        if not (few or _can_draw_classes(target)):
            return (
                "people have several rows, and what is missing is a tail of rows, or was judged by all classes: "
                f"every world is listed, which is done up to {LISTED_ROWS} rows that no pseudonym links"
            )
        return super().unable(target)

    def sees_links(self, target: Target) -> bool:
        """It does: to missing rows is added what the published ones tell."""
        return True

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief about somebody who was dropped."""
        secrets = secrets_of(target)
        if not target.grouping.summary.rows_are_people:
            return self._people(target, adversary, secrets)
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

    def _people(self, target: Target, adversary: Adversary, secrets: Sequence[Secrets]) -> Beliefs:
        """Everybody with a row that is missing, over all worlds in which the same is published."""
        few = target.grouping.summary.n_rows <= LISTED_ROWS and not visits_known(target)
        listed = explained_worlds(target, WorldBudget(), "dropped") if few else None
        if listed is None and _can_draw_classes(target):
            return self._drawn(target, adversary, secrets)
        if listed is None:
            why = "people have several rows, and whose rows are missing could not be listed world by world"
            return Beliefs(
                self.name, adversary.name, NOT_COMPUTED, Belief(Fraction(0), Fraction(1), "anybody", why)
            )
        found = [listed_finding(target, s, listed) for s in secrets]
        worst = max(found, key=lambda f: f.belief.after)
        vulnerable = max(f.vulnerable for f in found)
        return Beliefs(
            self.name, adversary.name, worst.kind, worst.belief,
            {
                "prior": "every assignment of all values of the table to its rows is equally likely",
                "dropped_for_values": target.grouping.dropped_rows,
                "vulnerable_people": vulnerable,
                "vulnerable_share": Fraction(vulnerable, max(1, len(listed.people))),
                **accompanying_figures(target, secrets),
            },
        )  # fmt: skip

    def _drawn(self, target: Target, adversary: Adversary, secrets: Sequence[Secrets]) -> Beliefs:
        """Everybody with a row that is missing, from drawn worlds of the missing classes."""
        dropped = Dropped.of(target)
        missing = MissingRows.of(target, dropped.class_of, dropped.for_values)
        found = absent_findings(target, secrets, missing, WorldBudget())
        worst = max(found, key=lambda f: f.belief.after)
        vulnerable = max(f.vulnerable for f in found)
        by_value = missing.for_values[missing.dropped]
        return Beliefs(
            self.name, adversary.name, "estimated", worst.belief,
            {
                "prior": "each row has the values of a published row, drawn at random, independently",
                "dropped_for_values": int(missing.rows[by_value].sum()),
                "classes_dropped_for_values": int(missing.for_values.sum()),
                "vulnerable_people": vulnerable,
                "vulnerable_share": Fraction(vulnerable, max(1, len(np.unique(missing.person)))),
                "worlds of classes": worst.looked,
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


def _can_draw_classes(target: Target) -> bool:
    """Whether whole classes of a level are missing, each for its own values."""
    grouping = target.grouping
    if not drops_failing(target) or grouping.levels is None or grouping.changes is not None:
        return False
    if (
        grouping.trace.dropped_for_values
        or grouping.summary.owned is None
        or grouping.summary.personal is None
    ):
        return False
    return all(m.is_local() and not m.needs() for m in looked_at_values(target.models))


def _dropped_by_value(target: Target) -> bool:
    """Whether rows are missing because of values."""
    by_value = drops_failing(target) and looked_at_values(target.models)
    return bool((by_value and target.grouping.dropped_rows) or target.grouping.trace.dropped_for_values)


def _missing_for_values(target: Target) -> int:
    """How many people are missing because of values: those of a tail, or of classes that were large enough."""
    grouping = target.grouping
    if tail := grouping.trace.dropped_for_values:
        return int(tail)
    if not grouping.dropped_rows or not grouping.classes.sensitive:
        return 0
    if grouping.levels is None:
        return grouping.dropped_rows
    dropped = Dropped.of(target)
    return int(dropped.sizes[dropped.for_values].sum())


def _told_by_shares(target: Target) -> bool:
    """Whether thresholds on one column state why whole classes of a level are missing."""
    rules = thresholds_of(looked_at_values(target.models), target.context)
    if target.grouping.levels is None or any(s.several for s in secrets_of(target)) or not rules:
        return False
    one = len({r.attribute for r in rules}) == 1 and _are_disjoint(rules)
    return one and rules[0].attribute in columns_of(target)


PRIOR = "each has a value with the probability of its share in the release, independently"
ROUNDING = 1e-9  # of sums in floating point, generously


def _are_disjoint(rules: Sequence[Threshold]) -> bool:
    """Whether no value belongs to two sets."""
    codes = [code for rule in rules for code in rule.codes]
    return len(set(codes)) == len(codes)


@dataclass(frozen=True, eq=False)
class Dropped:
    """The classes that were dropped: their people, a tuple of each, and whether values were the reason.

    `class_of`: the class of each tuple; −1: it was not dropped.
    """

    sizes: Ints
    first: Ints
    for_values: Bools
    class_of: Ints

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
        number = np.where(gone, np.cumsum(gone) - 1, -1)
        return Dropped(classes.sizes, first[gone], large, number[class_of])


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
                    f"all {size} of their class are missing, though it was large enough, so it violated the "
                    f"requirement; in the release {number_text(prior)} have {secrets.name(code)}"
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


Floats = NDArray[np.float64]
LARGEST = 20_000_000  # numbers in a table; longer tails are not judged


@dataclass(frozen=True)
class Tail:
    """`buckets` buckets of `size` rows that were dropped because of one threshold; `extend`: as the method had it."""

    rule: Threshold
    size: int
    buckets: int
    extend: Fraction

    @property
    def people(self) -> int:
        """The number of people in the tail."""
        return self.size * self.buckets

    def beliefs(self, prior: float) -> Floats:
        """Per bucket, the belief that one of its people holds a value of the set; 1 where the prior rules it out."""
        if not 0 < prior < 1:
            return np.ones(self.buckets)
        # worlds in which so many violate are rare: they are dealt with a share at which they are not, and weighted by
        # how many hold the value in all, which is all that the prior depends on
        dealt = max(prior, float(self.rule.share)) if self.rule.share < 1 else prior
        deal = _binomial(self.size, dealt)
        most = self.people + 1
        held = np.arange(most)
        caps = self.rule.caps(self.size * np.arange(1, self.buckets + 1))
        # what the prefix up to each bucket tells: it violated, or it did not and went on by chance
        told = np.where(held[None, :] > caps[:, None], 1.0, float(self.extend))
        told[-1] = held > caps[-1]
        before = np.zeros((self.buckets, most))
        state = np.zeros(most)
        state[0] = 1.0
        for i in range(self.buckets):
            before[i] = state
            state = _scaled(np.convolve(state, deal)[:most] * told[i])
        odds = math.log(prior / (1 - prior)) - math.log(dealt / (1 - dealt))
        after, result = np.exp(odds * np.maximum(held - caps[-1] - 1, 0)), np.zeros(self.buckets)
        for i in reversed(range(self.buckets)):
            rest = told[i] * after  # by the number held up to and with bucket i
            joint = np.array([before[i][: most - j] @ rest[j:] * deal[j] for j in range(self.size + 1)])
            result[i] = np.arange(self.size + 1) @ joint / joint.sum() / self.size
            after = _scaled(np.convolve(rest, deal[::-1])[self.size :][:most])
        return result


def _binomial(n: int, p: float) -> Floats:
    """The probabilities of 0 … n successes."""

    def _log(j: int) -> float:
        ways = math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1)
        return ways + j * math.log(p) + (n - j) * math.log1p(-p)

    return np.exp([_log(j) for j in range(n + 1)])


def _scaled(weights: Floats) -> Floats:
    """Weights scaled so that the largest is 1: only ratios matter, and nothing underflows."""
    result: Floats = weights / weights.max()
    return result


def tail_of(target: Target) -> Tail | None:
    """The tail that greedy grouping dropped for its values, where one threshold was the reason; else None."""
    trace, method = target.grouping.trace, target.method
    rows, bucket = trace.dropped_for_values, trace.bucket
    if method is None or not rows or not bucket:
        return None
    search_models = [m for m in target.models if m.use == "search"]
    rules = thresholds_of(looked_at_values(target.models), target.context)
    if not rules or len(rules) != 1 or rules[0].attribute not in columns_of(target):
        return None
    if any(m.kernel(target.context) is None or m.least_size(target.context) > bucket for m in search_models):
        return None  # something else may have been the reason
    tail = Tail(rules[0], int(bucket), int(rows) // int(bucket), method.decisions().extend)
    return tail if tail.buckets * tail.people <= LARGEST else None


EXACT = 60_000  # steps of the exact count; beyond, two sets that violate at once are neglected


def violating_shares(n: int, weights: Sequence[int], caps: Sequence[int]) -> list[Fraction]:
    """The expected share of each set in a class of n people that violates a cap.

    Args:
        n: people in the class.
        weights: how often each set occurs elsewhere; the last is that of everything else, which has no cap.
        caps: the most of each set that is allowed.

    Returns:
        One share per weight. Where the weights make a violation impossible, sets that occur nowhere else are taken
        to occur once; where the caps do, nothing is known, and the shares are those of the weights.
    """
    if all(cap >= n for cap in caps):
        return [Fraction(w, sum(weights)) for w in weights]
    if not any(w and cap < n for w, cap in zip(weights[:-1], caps, strict=True)):
        return violating_shares(n, [*(max(1, w) for w in weights[:-1]), weights[-1]], caps)
    if n * sum(min(cap, n) + 1 for cap in caps) * (len(caps) + 1) <= EXACT:
        return _exactly(n, weights, [*caps, n])
    return _approximately(n, weights, caps)


def _exactly(n: int, weights: Sequence[int], caps: Sequence[int]) -> list[Fraction]:
    whole = sum(weights)
    violating = whole**n - _safe(n, weights, caps)
    result = []
    for i, w in enumerate(weights):
        # of the worlds in which a given person has set i, those in which the others leave all well
        fewer = [cap - (i == j) for j, cap in enumerate(caps)]
        mine = w * (whole ** (n - 1) - _safe(n - 1, weights, fewer))
        result.append(Fraction(mine, violating))
    return result


def _safe(n: int, weights: Sequence[int], caps: Sequence[int]) -> int:
    """Σ n!/∏c! · ∏ w^c over all counts c within their caps that add up to n."""
    ways = [1] + [0] * n  # ways[j]: for j people, with the sets so far
    for w, cap in zip(weights, caps, strict=True):
        if cap < 0:
            return 0
        powers = [w**c for c in range(min(cap, n) + 1)]
        ways = [
            sum(ways[j - c] * math.comb(j, c) * powers[c] for c in range(min(cap, j) + 1))
            for j in range(n + 1)
        ]
    return ways[n]


def _approximately(n: int, weights: Sequence[int], caps: Sequence[int]) -> list[Fraction]:
    """Shares when at most one set violates: each by its own probability, in floating point."""
    whole = sum(weights)
    logs, means = [], []
    for w, cap in zip(weights[:-1], caps, strict=True):
        if not w or cap >= n or w == whole:
            logs.append(0.0 if w == whole and cap < n else -math.inf)
            means.append(1.0 if w == whole else 0.0)
            continue
        # what is further from the mean than forty deviations is nothing, beside what is left, in floating point
        mean, far = n * w / whole, 20 * math.sqrt(n) + 1000
        least = max(cap + 1, 0, math.floor(mean - far))
        j = np.arange(least, min(n, math.ceil(max(least, mean) + far)) + 1, dtype=np.float64)
        log = log_binomial(j, np.full(len(j), float(n)), w / whole)
        top = float(log.max())
        tail = np.exp(log - top)
        logs.append(top + math.log(float(tail.sum())))
        means.append(float((tail * j).sum() / tail.sum()) / n)
    most = max(logs)
    chances = [math.exp(x - most) for x in logs]
    result = []
    for i, w in enumerate(weights):
        share = 0.0
        for u, (chance, mean) in enumerate(zip(chances, means, strict=True)):
            rest = whole - weights[u]
            share += chance * (mean if i == u else (1 - mean) * w / rest if rest else 0.0)
        result.append(Fraction(share / math.fsum(chances)))
    return result
