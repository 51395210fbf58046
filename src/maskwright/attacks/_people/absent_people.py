"""Absent people with several rows: what is believed of those of whom rows are missing because of what classes hold.

Whose rows a missing class has is known. The prior is that of `absence`: each row has the values of a published row,
drawn at random, independently. Given that its class violated a requirement, what the rows of a person hold is drawn:
classes are independent of each other, and those in which equally many rows are whose are alike. Rows that are missing
for the size of their class keep the prior, and published ones what their class shows (or what a pseudonym links).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._minimality.refusals import looked_at_values
from maskwright.attacks._people.linked_people import most_of_each, visits_known
from maskwright.attacks._shared.findings import belief_limit
from maskwright.attacks._shared.secrets import NOTHING, Secrets
from maskwright.attacks.homogeneity import RowBeliefs
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.worlds.sampling.belief_intervals import FEW, RISK, exact_interval
from maskwright.worlds.sampling.world_sampler import WorldBudget

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
ENOUGH = 4_000  # worlds of a kind of class
AT_ONCE = 2_000_000  # rows that are drawn at a time


@dataclass(frozen=True, eq=False)
class MissingRows:
    """The rows that are missing, by person and class: one entry for each pair.

    Attributes:
        person, dropped, rows: who has how many rows in which missing class.
        for_values: per class, was it dropped because of its values?
    """

    person: Ints
    dropped: Ints
    rows: Ints
    for_values: Bools

    @staticmethod
    def of(target: Target, class_of: Ints, for_values: Bools) -> MissingRows:
        """The missing rows; `class_of`: the missing class of each tuple, −1: it is published."""
        cells = (
            target.grouping.summary.personal
        )  # people are numbered otherwise in `owned` than where beliefs are
        assert cells is not None and cells.people is not None  # noqa: S101 - people have several rows
        there = class_of[cells.tuples] >= 0
        n = len(for_values)
        pairs, number = np.unique(
            cells.people[there] * n + class_of[cells.tuples[there]], return_inverse=True
        )
        rows = np.bincount(number.reshape(-1), cells.rows[there], len(pairs)).astype(np.int64)
        return MissingRows(pairs // n, pairs % n, rows, for_values)

    def kinds(self) -> tuple[list[Ints], Ints]:
        """Kinds of classes that were dropped because of values, by how many rows are whose; and that of each class."""
        order = np.lexsort((self.rows, self.dropped))
        parts = np.split(self.rows[order], np.flatnonzero(np.diff(self.dropped[order])) + 1)
        numbers: dict[bytes, int] = {}
        found, kind = list[Ints](), np.full(len(self.for_values), -1, dtype=np.int64)
        for c, rows in zip(np.unique(self.dropped).tolist(), parts, strict=True):
            if self.for_values[c]:
                kind[c] = numbers.setdefault(rows.tobytes(), len(numbers))
                if kind[c] == len(found):
                    found.append(rows)
        return found, kind


@dataclass(frozen=True, eq=False)
class AbsentFinding:
    """The worst belief about somebody with missing rows, the people above a bound, and the worlds that were drawn."""

    belief: Belief
    vulnerable: int
    looked: int


def absent_findings(
    target: Target, secrets: Sequence[Secrets], missing: MissingRows, budget: WorldBudget
) -> list[AbsentFinding]:
    """What is believed of people with missing rows, in each column."""
    kinds, kind_of = missing.kinds()
    asked = sum(len(s.sets) for s in secrets)
    risk = RISK / max(1, asked * sum(len(np.unique(rows)) for rows in kinds))
    draw = _DrawnClasses.of(target, secrets)
    clock, looked = budget.time(), 0
    # kind → rows of a person → (low, middle, high) × secret of all columns: that no row of theirs holds it
    none = list[dict[int, Floats]]()
    for rows in kinds:
        found, tried = draw.spared(rows, risk, lambda: clock.is_over)
        none.append(found)
        looked += tried
    everybody, who = np.unique(missing.person, return_inverse=True)
    spared = np.ones((len(everybody), 3, asked))
    for at, c, r in zip(
        who.reshape(-1).tolist(), missing.dropped.tolist(), missing.rows.tolist(), strict=True
    ):
        spared[at] *= none[kind_of[c]][r] if kind_of[c] >= 0 else (1 - draw.prior) ** r
    result, first = list[AbsentFinding](), 0
    for s in secrets:
        mine = spared[:, :, first : first + len(s.sets)]
        first += len(s.sets)
        result.append(_finding(target, s, everybody, mine, looked))
    return result


def _finding(target: Target, secrets: Secrets, everybody: Ints, spared: Floats, looked: int) -> AbsentFinding:
    """The worst of the beliefs in one column, together with what the published rows of people tell."""
    shown = _published(target, secrets, everybody)
    low, middle, high = (1 - spared[:, end] * (1 - shown) for end in (2, 1, 0))
    if not middle.size:
        return AbsentFinding(NOTHING, 0, looked)
    at, s = np.unravel_index(int(middle.argmax()), middle.shape)
    above = int((high > float(belief_limit(target, secrets))).any(axis=1).sum())
    why = (
        f"rows of theirs are missing in classes that were large enough, and so violated the requirement; of {looked:,} "
        f"worlds of such classes in those that do, they hold {secrets.name(int(s) + 1)} in some row this often"
    )
    after = Fraction(round(float(middle[at, s]) * 10**6), 10**6)
    belief = Belief(secrets.before(int(s) + 1), after, "somebody with missing rows", why, (
        min(float(low.max()), float(after)), max(float(high.max()), float(after)),
    ))  # fmt: skip
    return AbsentFinding(belief, above, looked)


def _published(target: Target, secrets: Secrets, everybody: Ints) -> Floats:
    """Person × secret: what the published rows of these people tell; 0 where none is published."""
    found = np.zeros((len(everybody), len(secrets.sets)))
    if visits_known(target):
        by_person = most_of_each(target, secrets)
        return by_person[everybody]
    people = RowBeliefs.of(target.grouping, secrets.attribute, secrets.sets)
    numbers = people.owned.person[people.first]
    place = np.minimum(np.searchsorted(numbers, everybody), max(0, len(numbers) - 1))
    there = numbers[place] == everybody if len(numbers) else np.zeros(len(everybody), dtype=bool)
    for code in people.codes:
        found[there, code - 1] = people.beliefs(code)[place[there]]
    return found


@dataclass(frozen=True, eq=False)
class _DrawnClasses:
    """Classes whose rows have the values of published rows, drawn at random.

    Attributes:
        target: the release.
        codes: per sensitive column the values (codes) that published rows have together.
        share: how likely each of these is.
        inside: what is drawn × secret: does it hold the secret?
        prior: the share of rows that hold each secret.
    """

    target: Target
    codes: NDArray[np.int64]
    share: Floats
    inside: Bools
    prior: Floats

    @staticmethod
    def of(target: Target, secrets: Sequence[Secrets]) -> _DrawnClasses:
        """What published rows hold."""
        cells, _, rows = target.grouping.cells
        personal, sensitive = target.grouping.summary.personal, target.grouping.summary.sensitive
        assert personal is not None  # noqa: S101 - people have several rows
        codes, at = np.unique(personal.values[:, cells].astype(np.int64), axis=1, return_inverse=True)
        share = np.bincount(at.reshape(-1), rows, codes.shape[1])
        inside = [
            np.isin(codes[list(sensitive).index(s.attribute)], [sensitive[s.attribute].values.index(v) + 1
                    for v in members if v in sensitive[s.attribute].values])
            for s in secrets for members in s.sets
        ]  # fmt: skip
        marks = np.array(inside, dtype=bool).reshape(-1, codes.shape[1]).T
        return _DrawnClasses(target, codes, share / share.sum(), marks, (share / share.sum()) @ marks)

    def spared(self, rows: Ints, risk: float, is_over: Callable[[], bool]) -> tuple[dict[int, Floats], int]:
        """For somebody with so many rows of a class that violates: (most, middle, least) that none holds each secret.

        `rows`: how many rows of the class each of its people has.
        """
        rng, size = np.random.default_rng(int(rows.sum()) * 1_000_003 + len(rows)), int(rows.sum())
        batch = max(50, min(2_000, AT_ONCE // size))
        first = np.cumsum(rows) - rows
        examples = {int(r): slice(first[i], first[i] + int(r)) for i, r in enumerate(rows.tolist())}
        held = {r: np.zeros(self.inside.shape[1]) for r in examples}
        kept = looked = 0
        while kept < ENOUGH and looked < 20 * ENOUGH and not (looked and is_over()):
            drawn = rng.choice(len(self.share), size=(batch, size), p=self.share)
            bad = self._violates(drawn, rows)
            kept, looked = kept + int(bad.sum()), looked + batch
            for r, mine in examples.items():
                held[r] += self.inside[drawn[bad][:, mine]].any(axis=1).sum(axis=0)
        found = dict[int, Floats]()
        for r, count in held.items():
            low, high = (
                exact_interval(count, float(kept), risk / 2) if kept >= FEW else (0 * count, 0 * count + 1)
            )
            middle = count / kept if kept >= FEW else high
            found[r] = np.stack([1 - high, 1 - middle, 1 - low])
        return found, looked

    def _violates(self, drawn: Ints, rows: Ints) -> Bools:
        """Which of the drawn classes fail a requirement."""
        worlds, size = drawn.shape
        person = np.repeat(np.arange(len(rows)), rows)
        owner = np.repeat(np.arange(worlds), size)
        sensitive = {}
        for i, (name, counts) in enumerate(self.target.grouping.summary.sensitive.items()):
            width = len(counts.values) + 1
            keys = (owner * len(rows) + np.tile(person, worlds)) * width + self.codes[i][drawn].reshape(-1)
            once = np.unique(keys)
            sensitive[name] = ValueCounts.collect(
                counts.values,
                worlds,
                once // width // len(rows),
                once % width,
                np.ones_like(once),
                counts.ordered,
            )
        ones = np.ones(worlds, dtype=np.int64)
        classes = Classes(ones * len(rows), ones * size, sensitive)
        passes = np.ones(worlds, dtype=bool)
        for model in looked_at_values(self.target.models):
            passes &= model.passing(classes, self.target.context)
        return ~passes
