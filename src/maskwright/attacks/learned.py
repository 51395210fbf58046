"""Learned beliefs: what somebody concludes who learns from the release itself how values go with people [Kifer 2009].

Random worlds take every order of a group's values for equally likely. Whoever sees in the whole release that smokers
have cancer more often does not: the weight of an order is Π P(value | quasi-identifiers), by a model that is fitted to
the release: naive Bayes, fitted to the expected orders, and fitted again until beliefs stay put. Beside it stands the
same model for people who are not in the release: what is learned about them, too, is true of the population, and no
fault of the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from maskwright.attacks._people.linked_people import LearnedRows, visits_known, worst_learned_match
from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
    accompanying_figures,
    people_in_words,
    secrets_of,
    threshold_of,
)
from maskwright.attacks.homogeneity import OwnedRows, person_in_words
from maskwright.attacks.linked_visits import holders_of
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import NOT_COMPUTED, Belief, Beliefs
from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.exact import percent_text
from maskwright.domain.grouping import Grouping

MOST_PAIRS = 60_000_000  # of people who share quasi-identifiers, and values of their group: what memory holds
CALIBRATION = 10  # equal steps of belief


class Learned(Attack):
    """The belief of somebody who learns from the release how sensitive values depend on quasi-identifiers.

    Attributes:
        rounds: how often the model is fitted anew at most.
        smoothing: added to every count of the model, so that nothing is impossible.
    """

    name: ClassVar[str] = "learned"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"correlations"})

    rounds: int = Field(default=50, ge=1, le=10_000)
    smoothing: float = Field(default=1.0, ge=0)

    def applies(self, target: Target) -> bool:
        """Whether sensitive values are published, and there is anything to learn from."""
        return bool(target.grouping.published_classes.sensitive) and not self.unable(target)

    def unable(self, target: Target) -> str:
        """Why the attack cannot run: several values of one attribute in a row, or too large."""
        if unknown := super().unable(target):
            return unknown
        grouping = target.grouping
        for name in grouping.published_classes.sensitive:
            counts = _counts_of_rows(grouping, name)
            held = np.bincount(counts.owner, counts.counts, counts.n_classes)
            if (held > grouping.classes.rows).any():
                return f"people have several values of {name}, and the model takes one per person"
            if _pairs(grouping, counts) > MOST_PAIRS:
                return f"{name} has too many values in groups of too many people to learn from at once"
        return ""

    def suits(self, adversary: Adversary) -> bool:
        """Whether the adversary learns from the release."""
        return adversary.learns

    def sees_links(self, target: Target) -> bool:
        """It does: what is learned of visits tells which of the people who match somebody is."""
        return True

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief of anybody who learns, and how often what is believed is true."""
        found = secrets_of(target)
        measures = {s.attribute: self._measured(target, s, len(found) == 1) for s in found}
        if any(m["worst"] is None for m in measures.values()):
            unknown = Belief(Fraction(0), Fraction(1), "anybody", TOO_MANY_VISITS)
            return Beliefs(self.name, adversary.name, NOT_COMPUTED, unknown)
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
        deals = seen_groups(grouping, _counts_of_rows(grouping, secrets.attribute))
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
        others = _from_others(deals, truth, self.smoothing)
        worst: Belief | None = _worst(grouping, secrets, deals, secret_belief)
        people_above = int(deals.rows[above.any(axis=1)].sum())
        if visits_known(target):
            worst, people_above = _worst_linked(target, secrets, deals, belief, float(threshold))
        elif not grouping.summary.rows_are_people:
            worst, people_above = _worst_person(grouping, secrets, secret_belief, float(threshold))
        return {
            "worst": worst,
            "mean_belief_in_the_truth": {
                "random worlds": float((truth * before).sum() / people),
                "learned": float((truth * belief).sum() / people),
                "people who are not in it": control["mean"],
                **{how: mean for how, (mean, _) in others.items()},
            },
            "best_guess_is_true": {
                "learned": _accuracy(deals, shares, truth) / people,
                "people who are not in it": control["accuracy"],
                **{how: guess for how, (_, guess) in others.items()},
            },
            "threshold": threshold,
            "people_above": people_above,
            "precision_above": float(secret_truth[above].sum() / alike.sum()) if above.any() else None,
            "calibration": _calibration(belief, deals.rows[deals.entry], truth),
            "rounds": rounds,
            "groups_counted_exactly": int((np.bincount(deals.group, deals.rows) <= SMALL).sum()),
        }


def _counts_of_rows(grouping: Grouping, attribute: str) -> ValueCounts:
    """The rows of each class with each value, as they are published, whosever they are."""
    by_rows = grouping.summary.personal is not None
    return grouping.row_counts(attribute) if by_rows else grouping.published_classes.sensitive[attribute]


def _worst_person(
    grouping: Grouping, secrets: Secrets, belief: Floats, threshold: float
) -> tuple[Belief, int]:
    """The person with several rows of whom most is believed, at most the sum over the rows; and how many are above."""
    cells, groups, rows = grouping.cells
    personal, n = grouping.summary.personal, grouping.summary.n_tuples
    assert personal is not None and personal.people is not None  # noqa: S101 - for the type checker
    if not belief.size:
        return NOTHING, 0
    key = groups * n + personal.tuples[cells]
    entry = np.searchsorted(np.unique(key), key)  # entries are the tuples of each group, in this order
    people, number = np.unique(personal.people[cells], return_inverse=True)
    held = np.zeros((len(people), belief.shape[1]))
    np.add.at(held, number.reshape(-1), belief[entry] * rows[:, None])
    held = np.minimum(held, 1.0)
    which, secret = divmod(int(held.argmax()), held.shape[1])
    owned = OwnedRows.of(grouping)
    entries = np.flatnonzero(owned.person == people[which]).tolist()
    why = (
        f"whoever learns from the whole release how {secrets.name(secret + 1)} depends on quasi-identifiers believes "
        f"it of the rows of this person with {percent_text(float(held[which, secret]))} together, and no more of some "
        "row of them"
    )
    worst = Belief(
        secrets.before(secret + 1),
        Fraction(float(held[which, secret])),
        person_in_words(grouping, owned, entries),
        why,
    )
    return worst, int((held > threshold).any(axis=1).sum())


TOO_MANY_VISITS = (
    "a pseudonym links the visits of a person, and there are too many sets of known visits to weigh by what is "
    "learned; take events: 1, or keep fewer rows of each person"
)


def _worst_linked(
    target: Target, secrets: Secrets, deals: SeenGroups, belief: Floats, threshold: float
) -> tuple[Belief | None, int]:
    """The person of whom most is believed from known visits, all of which a pseudonym links; None: too many."""
    grouping = target.grouping
    cells, groups, _ = grouping.cells
    personal, n = grouping.summary.personal, grouping.summary.n_tuples
    assert personal is not None  # noqa: S101 - for the type checker
    key = groups * n + personal.tuples[cells]
    learned = LearnedRows(
        deals.entry,
        deals.value,
        belief,
        deals.column_rows[deals.column],
        np.searchsorted(np.unique(key), key),
    )
    held = holders_of(grouping, secrets.attribute, secrets.sets)
    found = worst_learned_match(target, secrets.attribute, held, learned, threshold)
    if found is None or not found.code:
        return None if found is None else NOTHING, 0
    known = "one visit is" if found.visits == 1 else f"{found.visits} visits are"
    why = (
        f"{found.people} people match; whoever learns from the whole release how {secrets.attribute} depends on "
        f"quasi-identifiers believes this much that it is one who has {secrets.name(found.code)} in some visit"
    )
    after = Fraction(min(1.0, found.share))
    return Belief(secrets.before(found.code), after, f"somebody of whom {known} known", why), found.above


def _pairs(grouping: Grouping, counts: ValueCounts) -> int:
    """How many pairs of people who share quasi-identifiers and values of their group there are."""
    allocation = grouping.allocation
    entries = np.bincount(allocation.groups[allocation.groups >= 0], minlength=counts.n_classes)
    return int((entries * (np.diff(counts.start) + 1)).sum())


def _true_rows(grouping: Grouping, attribute: str, deals: SeenGroups) -> Floats:
    """How many people of each pair really hold the value."""
    summary, allocation = grouping.summary, grouping.allocation
    if summary.personal is not None:
        cells, groups, rows = grouping.cells
        tuples = summary.personal.tuples[cells]
        codes = summary.personal.values[list(summary.sensitive).index(attribute)][cells].astype(np.int64)
    elif allocation.cells is not None:
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


def _of_secrets(secrets: Secrets, deals: SeenGroups, shares: Floats, truth: Floats) -> tuple[Floats, Floats]:
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


def _worst(grouping: Grouping, secrets: Secrets, deals: SeenGroups, belief: Floats) -> Belief:
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
        f"the class alone shows {secrets.name(secret + 1)} with {percent_text(shown)}; whoever learns from the whole "
        f"release how it depends on quasi-identifiers believes it of somebody there with {percent_text(after)}",
    )  # fmt: skip


def _accuracy(deals: SeenGroups, shares: Floats, truth: Floats) -> float:
    """The people whose likeliest value is the true one; ties count in part."""
    first = np.searchsorted(deals.entry, np.arange(len(deals.rows)))
    best = np.maximum.reduceat(shares, first)[deals.entry] if len(shares) else shares
    likeliest = shares >= best * (1 - 1e-9)
    ties = np.bincount(deals.entry, likeliest, len(deals.rows))[deals.entry]
    return float((truth * likeliest / np.maximum(ties, 1)).sum())


def _control(deals: SeenGroups, truth: Floats, smoothing: float, rounds: int) -> dict[str, float | None]:
    """What the model knows of people it was not learned from: fitted to half of the groups, asked of the other.

    `mean` is the mean belief in the truth, `accuracy` how often the likeliest value is true; None with one group.
    """
    halves = _halves(deals)
    if not halves:
        return {"mean": None, "accuracy": None}
    mean = accuracy = 0.0
    for learned_from in halves:
        _, model, _ = learned_shares(deals.of_groups(learned_from), smoothing, rounds)
        outside = ~learned_from[deals.group]
        one, guess = _predicted(model, deals, outside, truth)
        mean, accuracy = mean + one, accuracy + guess
    people = float(deals.rows.sum())
    return {"mean": mean / people, "accuracy": accuracy / people}


def _halves(deals: SeenGroups) -> tuple[NDArray[np.bool_], ...]:
    """Half of the groups, drawn at random, and the other half; nothing where there is one group."""
    groups = np.unique(deals.group)
    if len(groups) < 2:
        return ()
    half = np.zeros(int(groups[-1]) + 1, dtype=bool)
    half[np.random.default_rng(0).permutation(groups)[: len(groups) // 2]] = True
    return half, ~half


OTHERS, OTHERS_ALONE = "learned from others with known values", "these alone, without the release"


def _from_others(
    deals: SeenGroups, truth: Floats, smoothing: float
) -> dict[str, tuple[float, float] | tuple[None, None]]:
    """The mean belief in the truth, and how often the likeliest value is true, by a model of *other* people's values.

    It is fitted to the true values of the people of half of the groups, and asked of those of the other half: with
    their groups, and without.
    """
    halves = _halves(deals)
    sums = np.zeros((2, 2))
    for known in halves:
        theirs = known[deals.group[deals.entry]]
        if not truth[theirs].sum():  # all of their values were changed: there is nothing to learn from
            halves = ()
            break
        model = LearnedModel.fitted(deals.of_groups(known), truth[theirs], smoothing)
        rest, true = deals.of_groups(~known), truth[~theirs]
        shares = Expectation(rest).shares(model.weights(rest.features[:, rest.entry], rest.value))
        sums[0] += float((true * shares / rest.rows[rest.entry]).sum()), _accuracy(rest, shares, true)
        sums[1] += _predicted(model, deals, ~known[deals.group], truth)
    if not halves:
        return {OTHERS: (None, None), OTHERS_ALONE: (None, None)}
    (mean, guess), (alone, guess_alone) = (sums / float(deals.rows.sum())).tolist()
    return {OTHERS: (mean, guess), OTHERS_ALONE: (alone, guess_alone)}


def _predicted(model: LearnedModel, deals: SeenGroups, outside: Any, truth: Floats) -> tuple[float, float]:
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


Floats = NDArray[np.float64]
SMALL = 8  # people of a group whose orders are counted one by one
BINS = 10  # of a column of numbers with more than twice as many values
ROUNDS, STEADY = 50, 1e-6  # fit anew at most so often, or until beliefs change by less on average
SCALINGS, CLOSE = 60, 1e-7  # of rows and columns, or until all sums are so close


@dataclass(frozen=True, eq=False)
class SeenGroups:
    """The groups of a release as an adversary sees them: who is in them, and which values they hold how often.

    Attributes:
        features: one row per quasi-identifier, one column per entry: small numbers, so that they can be learned from.
        group: the group of each entry, ascending, and
        rows: the people of it who share their quasi-identifiers.
        column_group, column_value, column_rows: which value each group holds, and how often; by group, ascending.
        n_values: how many values there are, and
        kinds: how many numbers each feature has.
    """

    features: Ints
    group: Ints
    rows: Ints
    column_group: Ints
    column_value: Ints
    column_rows: Ints
    n_values: int
    kinds: tuple[int, ...]
    entry: Ints = field(init=False)
    column: Ints = field(init=False)

    def __post_init__(self) -> None:
        """Every entry beside every value of its group."""
        first = np.searchsorted(self.column_group, self.group, "left")
        many = np.searchsorted(self.column_group, self.group, "right") - first
        entry = np.repeat(np.arange(len(self.group)), many)
        column = np.arange(len(entry)) - np.repeat(np.cumsum(many) - many, many) + np.repeat(first, many)
        object.__setattr__(self, "entry", entry)
        object.__setattr__(self, "column", column)

    @property
    def value(self) -> Ints:
        """The value of each pair of an entry and a value of its group."""
        return self.column_value[self.column]

    def even_shares(self) -> Floats:
        """The expected people of each pair when every order is equally likely."""
        size = np.bincount(self.group, self.rows)[self.group]
        found: Floats = self.column_rows[self.column] * (self.rows / size)[self.entry]
        return found

    def of_groups(self, chosen: NDArray[np.bool_]) -> SeenGroups:
        """The groups that are marked, alone."""
        mine, columns = chosen[self.group], chosen[self.column_group]
        return replace(
            self, features=self.features[:, mine], group=self.group[mine], rows=self.rows[mine],
            column_group=self.column_group[columns], column_value=self.column_value[columns],
            column_rows=self.column_rows[columns],
        )  # fmt: skip


def seen_groups(grouping: Grouping, counts: ValueCounts) -> SeenGroups:
    """The groups of a release, with the counts of one sensitive attribute by group as they are published."""
    summary, allocation = grouping.summary, grouping.allocation
    there = allocation.groups >= 0
    key = allocation.groups[there] * summary.n_tuples + allocation.tuples[there]
    keys, where = np.unique(key, return_inverse=True)
    rows = np.bincount(where.reshape(-1), allocation.rows[there], len(keys)).astype(np.int64)
    group, tuples = keys // summary.n_tuples, keys % summary.n_tuples
    learnable = [
        np.unique(_learnable(codes, h.ordered, summary.rows)[tuples], return_inverse=True)
        for codes, h in zip(summary.codes, summary.attributes, strict=True)
    ]
    features = np.array([f.reshape(-1) for _, f in learnable], dtype=np.int64).reshape(-1, len(tuples))
    size = np.bincount(group, rows, counts.n_classes).astype(np.int64)
    listed = np.bincount(counts.owner, counts.counts, counts.n_classes).astype(np.int64)
    rest = np.flatnonzero(size > listed)  # who holds none of the values, as with the values of a set
    owner = np.concatenate([counts.owner, rest])
    value = np.concatenate([counts.codes.astype(np.int64), np.full(len(rest), len(counts.values) + 1)])
    held = np.concatenate([counts.counts, (size - listed)[rest]])
    order = np.lexsort((value, owner))
    return SeenGroups(
        features, group, rows, owner[order], value[order], held[order], len(counts.values) + 2,
        tuple(len(used) for used, _ in learnable),
    )  # fmt: skip


def _learnable(codes: NDArray[np.int32], ordered: bool, rows: Ints) -> Ints:
    """A column's codes, or equally frequent bins of them where it is one of many numbers."""
    used, small = np.unique(codes, return_inverse=True)
    small = small.reshape(-1).astype(np.int64)
    if not ordered or len(used) <= 2 * BINS:
        return small
    heavy = np.cumsum(np.bincount(small, rows, len(used)))
    bins: Ints = np.minimum((heavy - 1) * BINS // heavy[-1], BINS - 1).astype(np.int64)
    return bins[small]


@dataclass(frozen=True, eq=False)
class LearnedModel:
    """Naive Bayes in logarithms: a prior of each value, and of each feature given each value.

    Attributes:
        prior: value → log P(value).
        given: per feature, feature × value → log P(feature | value).
    """

    prior: Floats
    given: Sequence[Floats]

    @staticmethod
    def fitted(deals: SeenGroups, shares: Floats, smoothing: float = 1.0) -> LearnedModel:
        """The model that fits the expected people of each pair best."""
        value = deals.value
        held = np.bincount(value, shares, deals.n_values)
        given = []
        with np.errstate(divide="ignore", invalid="ignore"):
            prior = np.log(held / held.sum())
            for feature, kinds in zip(deals.features, deals.kinds, strict=True):
                counts = np.bincount(
                    feature[deals.entry] * deals.n_values + value, shares, kinds * deals.n_values
                )
                table = counts.reshape(kinds, deals.n_values) + smoothing
                given.append(np.log(table / (held + smoothing * kinds)))
        return LearnedModel(prior, given)

    def weights(self, features: Ints, value: Ints) -> Floats:
        """The logarithm of P(value)·Π P(feature | value) of each pair."""
        found = self.prior[value].copy()
        for feature, table in zip(features, self.given, strict=True):
            found += table[feature, value]
        return found

    def predictions(self, features: Ints) -> Floats:
        """Per column of `features`, P(value | features) of every value: what is believed of people in no group."""
        value = np.flatnonzero(np.isfinite(self.prior))
        found = np.zeros((features.shape[1], len(self.prior)))
        log = self.prior[value][None, :].repeat(features.shape[1], axis=0)
        for feature, table in zip(features, self.given, strict=True):
            log += table[feature][:, value]
        impossible = ~np.isfinite(log.max(axis=1))  # without smoothing: such people were never seen
        log[impossible] = self.prior[value]
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        found[:, value] = weight / weight.sum(axis=1, keepdims=True)
        return found


def learned_shares(
    deals: SeenGroups, smoothing: float = 1.0, rounds: int = ROUNDS
) -> tuple[Floats, LearnedModel, int]:
    """The expected people of each pair by somebody who learns, the model, and how often it was fitted."""
    shares, people = deals.even_shares(), max(1, int(deals.rows.sum()))
    solver = Expectation(deals)
    done = 0
    model = LearnedModel.fitted(deals, shares, smoothing)
    while done < rounds:
        done += 1
        again = solver.shares(model.weights(deals.features[:, deals.entry], deals.value))
        change = float(np.abs(again - shares).sum()) / people
        shares = again
        model = LearnedModel.fitted(deals, shares, smoothing)
        if change < STEADY:
            break
    return shares, model, done


class Expectation:
    """How many people of each entry are expected to hold each value, given the weight of each pair.

    Exact by counting weighted orders (permanents) in groups of up to `small` people; beyond, by scaling rows and
    columns of the weights until both sums are right (Sinkhorn), which is an estimate.
    """

    def __init__(self, deals: SeenGroups, small: int = SMALL) -> None:
        """Sort the small groups by how often they hold their values: those of one pattern are counted at once."""
        self._deals = deals
        self._start = np.searchsorted(deals.entry, np.arange(len(deals.group)))
        size = np.bincount(deals.group, deals.rows).astype(np.int64)
        self._large = size[deals.group][deals.entry] > small
        self._scale = np.ones(len(deals.column_group))
        self._patterns = self._by_pattern(np.flatnonzero((size > 0) & (size <= small)))

    def _by_pattern(self, groups: Ints) -> list[tuple[Orders, Ints]]:
        """Small groups by pattern, with the pair of every group, person and value."""
        deals = self._deals
        entries = np.searchsorted(deals.group, [groups, groups + 1]).T.tolist()
        columns = np.searchsorted(deals.column_group, [groups, groups + 1]).T.tolist()
        found: dict[tuple[int, ...], list[Ints]] = {}
        for (a, b), (c, d) in zip(entries, columns, strict=True):
            held = deals.column_rows[c:d]
            if len(held) == 1:
                continue
            order = np.argsort(-held, kind="stable")
            people = np.repeat(self._start[a:b], deals.rows[a:b])
            found.setdefault(tuple(held[order].tolist()), []).append(people[:, None] + order)
        return [(Orders(pattern), np.stack(pairs)) for pattern, pairs in found.items()]

    def shares(self, weights: Floats) -> Floats:
        """The expected people of each pair; `weights` are logarithms."""
        deals = self._deals
        found = deals.even_shares()
        if not len(weights):
            return found
        top = np.maximum.reduceat(weights, self._start)
        plain = np.exp(weights - np.where(np.isfinite(top), top, 0.0)[deals.entry])
        for orders, pairs in self._patterns:
            np.add.at(found, pairs, orders.marginals(plain[pairs]) - orders.even)
        if self._large.any():
            found[self._large] = self._scaled(plain[self._large])
        return found

    def _scaled(self, plain: Floats) -> Floats:
        """Rows and columns scaled in turn, from where the last round ended."""
        deals, weight = self._deals, np.maximum(plain, 1e-300)
        entry, column = deals.entry[self._large], deals.column[self._large]
        rows, target = deals.rows.astype(float), deals.column_rows.astype(float)
        for _ in range(SCALINGS):
            sums = np.bincount(entry, weight * self._scale[column], len(rows))
            left = np.divide(rows, sums, out=np.zeros(len(rows)), where=sums > 0)
            reached = np.bincount(column, weight * left[entry], len(target)) * self._scale
            off = np.abs(reached - target)[reached > 0]
            if float(off.max()) < CLOSE * float(target.max()):
                break
            self._scale = self._scale * np.divide(
                target, reached, out=np.ones(len(target)), where=reached > 0
            )
        found: Floats = weight * left[entry] * self._scale[column]
        return found


class Orders:
    """The orders in which values can lie in a group that holds them `pattern` times."""

    def __init__(self, pattern: tuple[int, ...]) -> None:
        """List the states: how many of each value are still to be dealt, by how many people are left."""
        self._pattern = pattern
        self.even = np.array(pattern, dtype=float) / sum(pattern)
        states = list(product(*(range(c + 1) for c in pattern)))
        place = {state: i for i, state in enumerate(states)}
        self._n_states = len(states)
        self._steps: list[list[tuple[Ints, Ints]]] = [[] for _ in range(sum(pattern))]
        for person, steps in enumerate(self._steps):
            here = [s for s in states if sum(s) == sum(pattern) - person]
            for v in range(len(pattern)):
                moves = [(place[s], place[(*s[:v], s[v] - 1, *s[v + 1 :])]) for s in here if s[v]]
                steps.append((np.array([a for a, _ in moves]), np.array([b for _, b in moves])))

    def marginals(self, weights: Floats) -> Floats:
        """P(person holds value) over all orders, weighted: groups × people × values, forwards and backwards."""
        n_groups, n_people, _ = weights.shape
        before = np.zeros((n_people + 1, n_groups, self._n_states))
        after = np.zeros_like(before)
        before[0][:, -1] = after[n_people][:, 0] = 1.0  # all are to be dealt; none is left
        for person, steps in enumerate(self._steps):
            for v, (a, b) in enumerate(steps):
                before[person + 1][:, b] += before[person][:, a] * weights[:, person, v, None]
        for person in reversed(range(n_people)):
            for v, (a, b) in enumerate(self._steps[person]):
                after[person][:, a] += after[person + 1][:, b] * weights[:, person, v, None]
        found = np.empty_like(weights)
        for person, steps in enumerate(self._steps):
            for v, (a, b) in enumerate(steps):
                through = np.einsum("gs,gs->g", before[person][:, a], after[person + 1][:, b])
                found[:, person, v] = through * weights[:, person, v]
        total = found.sum(axis=2, keepdims=True)
        even = np.broadcast_to(self.even, found.shape)
        shares: Floats = np.divide(found, total, out=even.copy(), where=total > 0)
        return shares
