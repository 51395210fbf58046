"""Dates moved by so many days for each person, so that intervals stay; and what known events tell of such a table.

The offset of a person is one of −n … −1, 1 … n steps of a day or a week, each as likely as any other: with h the first
60 bits of HMAC-SHA256(key, person), x = h mod 2n, it is x − n, and one more from x = n on. (1 + h mod 2n − n, as one
might write it, is 0 for h mod 2n = n − 1.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.identifiers.pseudonyms import Pseudonyms

Ints = NDArray[np.int64]
DIGITS = 15  # hexadecimal, of a hash
MOST_PAIRS = 20_000_000  # of events of one person, that are looked at


@dataclass(frozen=True)
class DateOffsets:
    """A function from persons to days.

    Attributes:
        draw: the keyed hash behind it; who has the key can move dates back.
        within: the most days that a date is moved.
        weekdays: are dates moved by whole weeks?
    """

    draw: Pseudonyms
    within: int
    weekdays: bool = False

    @property
    def step(self) -> int:
        """Days of one step."""
        return 7 if self.weekdays else 1

    @property
    def steps(self) -> int:
        """The most steps."""
        return self.within // self.step

    def days(self, person: str) -> int:
        """How many days the dates of a person are moved, never 0."""
        place = int(self.draw.digest(person).hex()[:DIGITS], 16) % (2 * self.steps)
        return self.step * (place - self.steps + (place >= self.steps))


@dataclass(frozen=True)
class KnownEvents:
    """What is left to somebody who knows the true days of so many events of a person.

    Attributes:
        events: that are known.
        fewest: people who fit, at least.
        found: people whom nobody but themselves fits, for some choice of known events.
        people: of whom so many events are published.
    """

    events: int
    fewest: int
    found: int
    people: int


@dataclass(frozen=True, eq=False)
class ShiftedEvents:
    """The published days of a table, as one who holds the key sees them; one entry each.

    Attributes:
        person: whose it is, as a number from 0.
        kind: what is known of the event besides its day: the column, and the class that it is published in.
        column: the column alone.
        shown: the day as published.
        true: the day as it was.
    """

    person: Ints
    kind: Ints
    column: Ints
    shown: Ints
    true: Ints


def known_events(events: ShiftedEvents, steps: int, step: int) -> list[KnownEvents]:
    """Who fits one known event, and two; exact. Two are left out where that would be too many pairs."""
    single = events.person, events.kind, events.shown, events.true
    found = [_fitting(*single, steps, step, 1)]
    pairs = _pairs(events)
    return found if pairs is None else [*found, _fitting(*pairs, steps, step, 2)]


def _pairs(events: ShiftedEvents) -> tuple[Ints, Ints, Ints, Ints] | None:
    """Each two events of a person as one: their kinds and the days between them, and the day of the first."""
    order = np.lexsort((events.shown, events.kind, events.person))
    person, kind, shown, true = (x[order] for x in (events.person, events.kind, events.shown, events.true))
    new = (
        np.r_[True, (np.diff(person) != 0) | (np.diff(kind) != 0) | (np.diff(shown) != 0)]
        if len(person)
        else []
    )
    person, kind, shown, true = (x[np.asarray(new, dtype=bool)] for x in (person, kind, shown, true))
    start = np.flatnonzero(np.r_[True, np.diff(person) != 0]) if len(person) else np.empty(0, np.int64)
    sizes = np.diff(np.r_[start, len(person)])
    if int((sizes * (sizes - 1) // 2).sum()) > MOST_PAIRS:
        return None
    first, second = list[Ints](), list[Ints]()
    for size in np.unique(sizes[sizes > 1]):
        one, two = np.triu_indices(int(size), 1)
        begins = start[sizes == size][:, None]
        first.append((begins + one).ravel())
        second.append((begins + two).ravel())
    a = np.concatenate(first) if first else np.empty(0, np.int64)
    b = np.concatenate(second) if second else np.empty(0, np.int64)
    keys = np.stack([kind[a], kind[b], shown[b] - shown[a]]) if len(a) else np.empty((3, 0), np.int64)
    alike = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return person[a], alike, shown[a], true[a]


def _fitting(
    person: Ints, kind: Ints, shown: Ints, true: Ints, steps: int, step: int, events: int
) -> KnownEvents:
    """For each event the people who have one of its kind that its true day could have become."""
    if not len(person):
        return KnownEvents(events, 0, 0, 0)
    group = (
        np.unique(np.stack([kind, shown % step]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    )
    low = int(min(shown.min(), true.min())) // step - steps - 2
    place, asked = shown // step - low, true // step - low  # moved by whole steps, both are in the same group
    span = int(max(place.max(), asked.max())) + steps + 3
    counts = _covered(person, group * span + place, group * span + asked, steps)
    alone = np.unique(person[counts == 1])
    return KnownEvents(events, int(counts.min()), len(alone), len(np.unique(person)))


def _covered(person: Ints, place: Ints, asked: Ints, steps: int) -> Ints:
    """For each place that is asked the people with a place at most so many steps from it, and not at it.

    The places of a person are joined into intervals, less the places themselves that no other reaches; then the ends
    are added up in the order of the places.
    """
    order = np.lexsort((place, person))
    p, x = person[order], place[order]
    once = np.r_[True, (np.diff(p) != 0) | (np.diff(x) != 0)]
    p, x = p[once], x[once]
    same = np.r_[False, np.diff(p) == 0]
    gap = np.r_[0, np.diff(x)]
    begins = ~same | (gap > 2 * steps)
    ends = np.r_[begins[1:], True]
    far = ~same | (gap > steps)
    lonely = far & np.r_[far[1:], True]
    at = np.concatenate([x[begins] - steps, x[ends] + steps + 1, x[lonely], x[lonely] + 1])
    change = np.repeat(
        np.array([1, -1, -1, 1], dtype=np.int64),
        [int(begins.sum()), int(ends.sum()), int(lonely.sum()), int(lonely.sum())],
    )
    sort = np.argsort(at, kind="stable")
    total = np.r_[0, np.cumsum(change[sort])]
    found: Ints = total[np.searchsorted(at[sort], asked, side="right")]
    return found


def offsets_left(events: ShiftedEvents, steps: int, step: int) -> Ints:
    """For each person the offsets that move no published day out of the time in which the table was collected.

    That time is known: of each column the first and the last true day.
    """
    n = int(events.person.max(initial=-1)) + 1
    most, least = np.full(n, steps, np.int64), np.full(n, -steps, np.int64)
    for column in np.unique(events.column):
        here = events.column == column
        days = events.true[here]
        np.minimum.at(most, events.person[here], (events.shown[here] - days.min()) // step)
        np.maximum.at(least, events.person[here], -((days.max() - events.shown[here]) // step))
    found: Ints = most - least + 1 - ((least <= 0) & (most >= 0))
    return found


@dataclass(frozen=True)
class DateShiftRisk:
    """What known events tell of a table with moved dates.

    Attributes:
        known: who fits one known event, and two.
        people: whose dates were moved.
        fewest_offsets: that are left to somebody who knows when the table was collected.
        one_offset: people of whom one is left, so that all their true days are known.
        offsets: how many there are.
        linked: are the rows of a person published as one person's?
        pairs: were two known events looked at?
    """

    known: tuple[KnownEvents, ...]
    people: int
    fewest_offsets: int
    one_offset: int
    offsets: int
    linked: bool
    pairs: bool

    @staticmethod
    def of(events: ShiftedEvents, offsets: DateOffsets, linked: bool) -> DateShiftRisk:
        """Attack some published days."""
        known = known_events(events, offsets.steps, offsets.step)
        left = offsets_left(events, offsets.steps, offsets.step)
        left = left[np.unique(events.person)]
        return DateShiftRisk(
            tuple(known), len(left), int(left.min(initial=2 * offsets.steps)), int((left == 1).sum()),
            2 * offsets.steps, linked, len(known) > 1,
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "offsets": self.offsets,
            "people": self.people,
            "linked": self.linked,
            "known_events": [
                {"events": k.events, "fewest_who_fit": k.fewest, "people_found": k.found, "people": k.people}
                for k in self.known
            ],
            "fewest_offsets_left": self.fewest_offsets,
            "people_with_one_offset_left": self.one_offset,
        }

    def sentences(self) -> Iterator[str]:
        """What was found, for people."""
        whose = "people" if self.linked else "rows"
        for known in self.known:
            if known.people:
                days = (
                    "the true day of one event"
                    if known.events == 1
                    else f"the true days of {known.events} events"
                )
                yield (
                    f"moved dates: whoever knows {days} of somebody, and the quasi-identifiers, is left with "
                    f"{known.fewest:,} {whose} at least; {known.found:,} of {known.people:,} are found"
                )
        if not self.pairs:
            yield "moved dates: what two known events tell is NOT COMPUTED, there are too many pairs of them"
        yield (
            f"moved dates: of {self.offsets:,} possible offsets the time of collection leaves "
            f"{self.fewest_offsets:,} at least; of {self.one_offset:,} {whose} it leaves one, so all their true "
            "days are known"
        )
