"""Learned beliefs: what somebody concludes who learns from the release itself how values go with people [Kifer 2009].

Random worlds take every order of a group's values for equally likely. Whoever sees in the whole release that smokers
have cancer more often does not: the weight of an order is Π P(value | quasi-identifiers), by a model that is fitted to
the release. Beside it stands the same model for people who are not in the release: what is learned about them, too, is
true of the population, and no fault of the release.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from maskwright.attacks._learning.learned_model import (
    SMALL,
    Deals,
    Floats,
    LearnedModel,
    deals_of,
    learned_shares,
)
from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
    accompanying_figures,
    people_in_words,
    secrets_of,
    threshold_of,
)
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.grouping import Grouping

MOST_PAIRS = 60_000_000  # of people who share quasi-identifiers, and values of their group: what memory holds
CALIBRATION = 10  # equal steps of belief


class Learned(Attack):
    """The belief of somebody who learns from the release how sensitive values go with quasi-identifiers.

    Attributes:
        rounds: how often the model is fitted anew at most.
        smoothing: added to every count of the model, so that nothing is impossible.
    """

    name: ClassVar[str] = "learned"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"correlations"})
    by_rows: ClassVar[bool] = True

    rounds: int = Field(default=50, ge=1, le=10_000)
    smoothing: float = Field(default=1.0, ge=0)

    def applies(self, target: Target) -> bool:
        """Whether sensitive values are published of people with one row each, and there is anything to learn from."""
        return bool(target.grouping.published_classes.sensitive) and not self.unable(target)

    def unable(self, target: Target) -> str:
        """Why the attack cannot run: several rows per person, several values of one attribute, or too large."""
        if several := super().unable(target):
            return several
        grouping = target.grouping
        for name, counts in grouping.published_classes.sensitive.items():
            held = np.bincount(counts.owner, counts.counts, counts.n_classes)
            if (held > grouping.classes.sizes).any():
                return f"people have several values of {name}, and the model takes one of each"
            if _pairs(grouping, counts) > MOST_PAIRS:
                return f"{name} has too many values in groups of too many people to learn from at once"
        return ""

    def suits(self, adversary: Adversary) -> bool:
        """Whether the adversary learns from the release."""
        return adversary.learns

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief of anybody who learns, and how often what is believed is true."""
        found = secrets_of(target)
        measures = {s.attribute: self._measured(target, s, len(found) == 1) for s in found}
        worst = max(
            (m["worst"] for m in measures.values()), key=lambda b: (b.after, -b.before), default=NOTHING
        )
        return Beliefs(
            self.name,
            adversary.name,
            "estimated",
            worst,
            {"attributes": measures, **accompanying_figures(target, found)},
        )

    def _measured(self, target: Target, secrets: Secrets, only: bool) -> dict[str, Any]:
        """Everything that is reported about one sensitive attribute."""
        grouping = target.grouping
        deals = deals_of(grouping, grouping.published_classes.sensitive[secrets.attribute])
        shares, _, rounds = learned_shares(deals, self.smoothing, self.rounds)
        belief = shares / deals.rows[deals.entry]
        truth = _true_rows(grouping, secrets.attribute, deals)
        people = max(1, int(deals.rows.sum()))
        before = deals.even_shares() / deals.rows[deals.entry]
        threshold = threshold_of(target.models, secrets.attribute, only)
        secret_belief, secret_truth = _of_secrets(secrets, deals, shares, truth)
        above = secret_belief > float(threshold)
        alike = np.repeat(deals.rows[:, None], secret_belief.shape[1], axis=1)[above]
        control = _control(deals, truth, self.smoothing, self.rounds)
        return {
            "worst": _worst(grouping, secrets, deals, secret_belief),
            "mean_belief_in_the_truth": {
                "random worlds": float((truth * before).sum() / people),
                "learned": float((truth * belief).sum() / people),
                "people who are not in it": control["mean"],
            },
            "best_guess_is_true": {
                "learned": _accuracy(deals, shares, truth) / people,
                "people who are not in it": control["accuracy"],
            },
            "threshold": threshold,
            "people_above": int(deals.rows[above.any(axis=1)].sum()),
            "precision_above": float(secret_truth[above].sum() / alike.sum()) if above.any() else None,
            "calibration": _calibration(belief, deals.rows[deals.entry], truth),
            "rounds": rounds,
            "groups_counted_exactly": int((np.bincount(deals.group, deals.rows) <= SMALL).sum()),
        }


def _pairs(grouping: Grouping, counts: ValueCounts) -> int:
    """How many pairs of people who share quasi-identifiers and values of their group there are."""
    allocation = grouping.allocation
    entries = np.bincount(allocation.groups[allocation.groups >= 0], minlength=counts.n_classes)
    return int((entries * (np.diff(counts.start) + 1)).sum())


def _true_rows(grouping: Grouping, attribute: str, deals: Deals) -> Floats:
    """How many people of each pair really hold the value."""
    summary, allocation = grouping.summary, grouping.allocation
    if allocation.cells is not None:
        assert summary.joint is not None  # noqa: S101 - for the type checker
        row = list(summary.sensitive).index(attribute)
        tuples, groups = allocation.tuples, allocation.groups
        codes, rows = summary.joint.values[row][allocation.cells].astype(np.int64), allocation.rows
    else:
        counts = summary.sensitive[attribute]
        group_of = np.full(summary.n_tuples, -1, dtype=np.int64)
        group_of[allocation.tuples] = allocation.groups
        tuples, groups = counts.owner, group_of[counts.owner]
        codes, rows = counts.codes.astype(np.int64), counts.counts
    there = groups >= 0
    tuples, groups, codes, rows = tuples[there], groups[there], codes[there], rows[there]
    keys = np.unique(
        allocation.groups[allocation.groups >= 0] * summary.n_tuples
        + allocation.tuples[allocation.groups >= 0]
    )
    entry = np.searchsorted(keys, groups * summary.n_tuples + tuples)
    columns = deals.column_group * deals.n_values + deals.column_value
    wanted = groups * deals.n_values + codes
    column = np.minimum(np.searchsorted(columns, wanted), len(columns) - 1)
    shown = columns[column] == wanted  # a value that was changed is not in the group
    first = np.searchsorted(deals.entry, entry[shown])
    pair = first + column[shown] - np.searchsorted(deals.column_group, groups[shown])
    found: Floats = np.bincount(pair, rows[shown], len(deals.entry)).astype(float)
    rest = deals.value == deals.n_values - 1  # who holds none of the values: everybody else of the entry
    if rest.any():
        held = np.bincount(deals.entry, np.where(rest, 0.0, found), len(deals.rows))
        found[rest] = (deals.rows - held)[deals.entry[rest]]
    return found


def _of_secrets(secrets: Secrets, deals: Deals, shares: Floats, truth: Floats) -> tuple[Floats, Floats]:
    """Entry × secret: the belief in it, and the people who really hold it."""
    names = {value: i + 1 for i, value in enumerate(secrets.left_out.values)}  # the code of each value
    belief = np.zeros((len(deals.rows), len(secrets.sets)))
    held = np.zeros_like(belief)
    member = np.zeros(deals.n_values, dtype=bool)
    for s, members in enumerate(secrets.sets):
        member[:] = False
        member[[names[v] for v in members if v in names]] = True
        mine = member[deals.value]
        belief[:, s] = np.bincount(deals.entry[mine], shares[mine], len(deals.rows)) / deals.rows
        held[:, s] = np.bincount(deals.entry[mine], truth[mine], len(deals.rows))
    return belief, held


def _worst(grouping: Grouping, secrets: Secrets, deals: Deals, belief: Floats) -> Belief:
    """The person of whom most is believed, in words."""
    if not belief.size:
        return NOTHING
    entry, secret = divmod(int(belief.argmax()), belief.shape[1])
    group = int(deals.group[entry])
    shown = float(
        sum(int(c) for c, o, k in zip(secrets.counts.counts, secrets.counts.owner, secrets.counts.codes, strict=True)
            if o == group and k == secret + 1)
    ) / float(secrets.sizes[group])  # fmt: skip
    after = Fraction(min(1.0, float(belief[entry, secret])))
    return Belief(
        secrets.before(secret + 1), after, people_in_words(grouping, group),
        f"the class alone shows {secrets.name(secret + 1)} with {shown:.3g}; whoever learns from the whole release how "
        f"it goes with quasi-identifiers believes it of somebody there with {float(after):.3g}",
    )  # fmt: skip


def _accuracy(deals: Deals, shares: Floats, truth: Floats) -> float:
    """The people whose likeliest value is the true one; ties count in part."""
    first = np.searchsorted(deals.entry, np.arange(len(deals.rows)))
    best = np.maximum.reduceat(shares, first)[deals.entry] if len(shares) else shares
    likeliest = shares >= best * (1 - 1e-9)
    ties = np.bincount(deals.entry, likeliest, len(deals.rows))[deals.entry]
    return float((truth * likeliest / np.maximum(ties, 1)).sum())


def _control(deals: Deals, truth: Floats, smoothing: float, rounds: int) -> dict[str, float | None]:
    """The same model for people outside of what it was learned from: fitted to half of the groups, asked of the other.

    `mean` is the mean belief in the truth, `accuracy` how often the likeliest value is true; None with one group.
    """
    groups = np.unique(deals.group)
    if len(groups) < 2:
        return {"mean": None, "accuracy": None}
    half = np.zeros(int(groups[-1]) + 1, dtype=bool)
    half[np.random.default_rng(0).permutation(groups)[: len(groups) // 2]] = True
    mean = accuracy = 0.0
    for learned_from in (half, ~half):
        _, model, _ = learned_shares(deals.of_groups(learned_from), smoothing, rounds)
        outside = ~learned_from[deals.group]
        one, guess = _predicted(model, deals, outside, truth)
        mean, accuracy = mean + one, accuracy + guess
    people = float(deals.rows.sum())
    return {"mean": mean / people, "accuracy": accuracy / people}


def _predicted(model: LearnedModel, deals: Deals, outside: Any, truth: Floats) -> tuple[float, float]:
    """People outside: the sum of beliefs in the truth, and of guesses that are true."""
    mean = accuracy = 0.0
    entries: Ints = np.flatnonzero(outside)
    for start in range(0, len(entries), 100_000):
        chosen = entries[start : start + 100_000]
        beliefs = model.predictions(deals.features[:, chosen])
        place = np.full(len(deals.rows), -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        mine = place[deals.entry] >= 0
        row, value, held = place[deals.entry[mine]], deals.value[mine], truth[mine]
        mean += float((held * beliefs[row, value]).sum())
        accuracy += float((held * (beliefs.argmax(axis=1)[row] == value)).sum())
    return mean, accuracy


def _calibration(belief: Floats, people: Ints, truth: Floats) -> list[dict[str, float]]:
    """By step of belief: the people of whom so much is believed, the mean belief, and the share of whom it is true."""
    step = np.minimum((belief * CALIBRATION).astype(np.int64), CALIBRATION - 1)
    n = np.bincount(step, people, CALIBRATION)
    mean, true = np.bincount(step, people * belief, CALIBRATION), np.bincount(step, truth, CALIBRATION)
    return [
        {"pairs": float(n[i]), "belief": float(mean[i] / n[i]), "true": float(true[i] / n[i])}
        for i in range(CALIBRATION)
        if n[i]
    ]
