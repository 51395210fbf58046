"""Written knowledge about people with several rows: each row of a person whom it names has a place in a bucket.

What is said of a person is said of some row: "Ed.disease = flu" is true where a row of Ed has flu, and "not" of it
where none has. Rows of a bucket get its values in every order alike; which rows are whose is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._shared.secrets import Secrets, secrets_of
from maskwright.attacks.homogeneity import RowBeliefs
from maskwright.domain.adversary import Target
from maskwright.domain.grouping import Grouping
from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import TooManyWorlds
from maskwright.worlds.statements.fact_beliefs import (
    Fact,
    FactBeliefs,
    Person,
    RestrictedBucket,
    belief_in_fact,
)

Place = tuple[int, Any]  # a group, and which bans concern the row
MOST_ALIKE = 1000  # people who may be meant by the same quasi-identifiers
MOST_OTHERS = 3000  # people beside those who are named, of whom beliefs are added up
MOST_EVENTS = 200  # kinds of people with several rows in the buckets, whose worlds are counted
STEPS = 100_000


@dataclass(frozen=True)
class PersonBelief:
    """One belief: whom it concerns (so many people), which secret, before and after."""

    whom: str
    people: int
    secret: str
    before: Fraction
    after: Fraction
    half: float
    attribute: str

    def upper(self) -> Fraction:
        """The upper end of the belief."""
        return min(Fraction(1), self.after + Fraction(self.half))


def rows_of_somebody(
    grouping: Grouping, matching: NDArray[np.bool_], who: str, text: str, pattern: Callable[[int], Any]
) -> tuple[list[Place], list[int]]:
    """The published rows of whoever has a row with one of the tuples, and the people who may be meant: all alike."""
    cells, groups, rows = grouping.cells
    personal = grouping.summary.personal
    assert personal is not None and personal.people is not None  # noqa: S101 - for the type checker
    meant = np.unique(personal.people[matching[personal.tuples]])
    if not len(meant):
        raise UsageError(f"{who}: nobody in the table has {text}")
    if len(meant) > MOST_ALIKE:
        raise UsageError(f"{who}: {len(meant):,} people have a row with {text}; give more quasi-identifiers")
    owner = personal.people[cells]
    kinds = set[tuple[Place, ...]]()
    for person in meant.tolist():
        mine = np.flatnonzero(owner == person)
        tuples = personal.tuples[cells[mine]]
        _refuse_several_groups(grouping, tuples, who, text)
        found = Counter[Place]()
        for t, group, n in zip(tuples.tolist(), groups[mine].tolist(), rows[mine].tolist(), strict=True):
            found[group, pattern(t)] += n
        kinds.add(tuple(sorted(found.elements())))
    if len(kinds) > 1:
        raise UsageError(
            f"{who}: {len(meant)} people have a row with {text}, and their rows are in different classes; give more "
            "quasi-identifiers"
        )
    [places] = kinds
    if not places:
        raise UsageError(
            f"{who}: the rows of people with {text} were dropped; the release says nothing about them"
        )
    return list(places), meant.tolist()


def _refuse_several_groups(grouping: Grouping, tuples: Any, who: str, text: str) -> None:
    """Rows with equal quasi-identifiers in several classes: whose row is where is not known."""
    allocation = grouping.allocation
    mine = np.isin(allocation.tuples, tuples)
    pairs = np.unique(np.stack([allocation.tuples[mine], allocation.groups[mine]]), axis=1)
    if len(pairs[0]) > len(np.unique(pairs[0])):
        raise UsageError(
            f"{who}: rows like those of people with {text} were published in several classes, and which row is "
            "whose is not known: the release was recoded locally"
        )


def values_of_rows(target: Target, columns: Sequence[str]) -> Callable[[int], dict[tuple[Any, ...], int]]:
    """The function from a group to the values of its rows with their numbers; a value is a tuple."""
    grouping = target.grouping
    if grouping.changes is not None:
        raise UsageError(
            "knowledge about people with several rows: values were changed, and it is not known whose"
        )
    if len(columns) > 1 and (target.exact or target.joined is not None):
        raise UsageError(
            "knowledge about several sensitive columns needs to know which values belong to one row"
        )
    cells, groups, rows = grouping.cells
    joint, names = grouping.summary.cells, list(grouping.summary.sensitive)
    assert joint is not None  # noqa: S101 - for the type checker
    values = [grouping.summary.sensitive[name].values for name in columns]
    at = [names.index(name) for name in columns]

    def _held(group: int) -> dict[tuple[Any, ...], int]:
        found = Counter[tuple[Any, ...]]()
        for entry in np.flatnonzero(groups == group).tolist():
            codes = [int(joint.values[i, cells[entry]]) for i in at]
            key = tuple(known[code - 1] if code else None for known, code in zip(values, codes, strict=True))
            found[key] += int(rows[entry])
        return dict(found)

    return _held


@dataclass(frozen=True, eq=False)
class PeopleInBuckets:
    """The buckets, who is named in them, and what is known.

    Attributes:
        target: the release.
        columns: that the knowledge is about.
        groups, buckets: the published groups with their values and kinds of rows.
        named: the places of each person whom statements name, by their name in words.
        numbers: the numbers of these people in the summary.
        kind_of: the kind of each place.
        pattern: from a tuple to the number of its kind in a bucket.
        facts: what is known.
        draws: how many worlds are drawn where they cannot be counted.
    """

    target: Target
    columns: Sequence[str]
    groups: Sequence[int]
    buckets: Sequence[RestrictedBucket]
    named: Mapping[str, tuple[int, tuple[Person, ...]]]
    kind_of: Mapping[Person, int]
    pattern: Callable[[int, int], int]
    facts: Sequence[Fact]
    draws: int

    def beliefs(
        self, found: FactBeliefs, bounds: Mapping[str, Fraction]
    ) -> tuple[list[PersonBelief], int, bool]:
        """Beliefs about everybody named and the worst of everybody else; who is above a bound; is all of it counted?"""
        rows, above, counted = list[PersonBelief](), set[int](), True
        others = self._others()
        for secrets in (s for s in secrets_of(self.target) if s.attribute in self.columns):
            people = RowBeliefs.of(self.target.grouping, secrets.attribute, secrets.sets)
            numbers, bound = people.owned.person[people.first], bounds[secrets.attribute]
            for code in people.codes:
                members = secrets.sets[code - 1]
                for whom, (number, places) in self.named.items():
                    which = int(np.searchsorted(numbers, number))
                    after, half = self._chance(secrets, members, places, self.kind_of, found, self.draws)
                    rows.append(PersonBelief(whom, 1, secrets.name(code), people.exact(code, which), after, half,
                                             secrets.attribute))  # fmt: skip
                    above |= {number} if rows[-1].upper() > bound else set()
                best, over, exact = self._worst_other(secrets, people, code, others, found, bound)
                counted &= exact
                above |= over
                rows += [best] if best is not None else []
        return rows, len(above), counted

    def _others(self) -> dict[int, Counter[tuple[int, int]]]:
        """Everybody else with a row in the buckets: the rows in each bucket, by kind."""
        cells, groups, rows = self.target.grouping.cells
        personal = self.target.grouping.summary.personal
        assert personal is not None and personal.people is not None  # noqa: S101 - for the type checker
        bucket_of = {group: b for b, group in enumerate(self.groups)}
        known = {number for number, _ in self.named.values()}
        found: dict[int, Counter[tuple[int, int]]] = {}
        for entry in np.flatnonzero(np.isin(groups, self.groups)).tolist():
            person, t = int(personal.people[cells[entry]]), int(personal.tuples[cells[entry]])
            if person not in known:
                b = bucket_of[int(groups[entry])]
                found.setdefault(person, Counter())[b, self.pattern(b, t)] += int(rows[entry])
        return found

    def _chance(
        self, secrets: Secrets, members: Sequence[str], places: Sequence[Person], kind_of: Mapping[Person, int],
        found: FactBeliefs, draws: int,
    ) -> tuple[Fraction, float]:  # fmt: skip
        """The belief that some place holds a secret, and half the width of its interval."""
        at = list(self.columns).index(secrets.attribute)
        if len(places) == 1:
            b = places[0][0]
            chances = found.named.get(places[0], found.others.get((b, kind_of.get(places[0], 0)), {}))
            return sum((p for v, p in chances.items() if v[at] in members), Fraction(0)), found.half
        wanted = frozenset(members)
        event = Fact(
            tuple(places),
            lambda world: any(isinstance(world[p], tuple) and world[p][at] in wanted for p in places),
            frozenset((v,) for v in wanted) if len(self.columns) == 1 else None,
        )
        told = belief_in_fact(event, self.buckets, kind_of, self.facts, STEPS, draws)
        return (Fraction(0), 1.0) if told is None else told

    def _worst_other(
        self, secrets: Secrets, people: RowBeliefs, code: int, others: Mapping[int, Counter[tuple[int, int]]],
        found: FactBeliefs, bound: Fraction,
    ) -> tuple[PersonBelief | None, set[int], bool]:  # fmt: skip
        """The worst belief about anybody else, those above a bound, and whether it was counted."""
        if not others:
            return None, set(), True
        if len(others) > MOST_OTHERS:
            whom = f"any of the {len(others):,} other people in these classes"
            top = PersonBelief(
                whom,
                len(others),
                secrets.name(code),
                secrets.before(code),
                Fraction(1),
                0.0,
                secrets.attribute,
            )
            return top, set(others), False
        count, owned = people.counts(code), people.owned
        inside = np.isin(owned.group, self.groups)
        numbers, known, counted = owned.person[people.first], dict[Any, tuple[Fraction, float]](), True
        outside = people.exactly_outside(count, inside)
        best: tuple[Fraction, float, int] | None = None
        over = set[int]()
        for number, mine in others.items():
            key = frozenset(mine.items())
            if key not in known:
                known[key], exact = self._some(secrets, secrets.sets[code - 1], mine, found, len(known))
                counted &= exact
            here, half = known[key]
            which = int(np.searchsorted(numbers, number))
            belief = 1 - (1 - here) * outside(which)
            if belief + Fraction(half) > bound:
                over.add(number)
            if best is None or belief > best[0]:
                best = belief, half, which
        assert best is not None  # noqa: S101 - there are others
        after, half, which = best
        row = PersonBelief(people.whom(which), 1, secrets.name(code), people.exact(code, which), after, half,
                           secrets.attribute)  # fmt: skip
        return row, over, counted

    def _some(
        self,
        secrets: Secrets,
        members: Sequence[str],
        mine: Counter[tuple[int, int]],
        found: FactBeliefs,
        tried: int,
    ) -> tuple[tuple[Fraction, float], bool]:
        """The belief that one of somebody's rows in the buckets holds a secret; at most the sum over the rows."""
        at = list(self.columns).index(secrets.attribute)
        if mine.total() > 1 and tried < MOST_EVENTS:
            far = sum(bucket.people for bucket in self.buckets)  # no named place has such a number
            rows = list(mine.elements())
            kind_of = {**self.kind_of} | {(b, far + i): k for i, (b, k) in enumerate(rows)}
            places = [(b, far + i) for i, (b, _) in enumerate(rows)]
            try:
                return self._chance(secrets, members, places, kind_of, found, 0), True
            except TooManyWorlds:
                pass
        share = Fraction(0)
        for place, n in mine.items():
            chances = found.others.get(place, {})
            share += n * sum((p for v, p in chances.items() if v[at] in members), Fraction(0))
        return (min(Fraction(1), share), min(1.0, found.half * mine.total())), mine.total() == 1
