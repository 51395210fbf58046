"""Belief given facts: the worlds of bucketized data in which everything the adversary knows is true.

The last part is about other columns of the victim's row, and other releases about the same people.

Knowledge is any predicate of a few people's values; basic implications (all of some atoms → at least one of others)
express every predicate [Martin et al. 2007]. Counting the worlds is #P-complete in general: only people whom the
knowledge names are enumerated, bucket by bucket where no knowledge links them; beyond that, worlds are drawn.

Some people cannot have some values (male, ovarian cancer). People who cannot have the same values are of one *kind*.
The worlds of a bucket are counted by placing the values that somebody cannot have, one after the other, on the kinds
that can; the values that everybody can have fill what is left. The probability that a person has a value is the number
of worlds without the two, over the number of worlds.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import WORLDS, TooManyWorlds
from maskwright.worlds.counting.multisets import count_orders, sub_multisets, subtract_counts

Person = tuple[int, int]  # bucket, position in it
Atom = tuple[Person, Any]  # this person has this value
Known = Mapping[Person, Any]
Chances = dict[Any, Fraction]
STEPS = 300_000  # of placing values before counting is given up


@dataclass(frozen=True)
class Fact:
    """Something that is true of some people.

    Attributes:
        people: whom it is about.
        holds: asked with the value of each of them.
        mentions: the values it tells apart from the others; None: it may look at any. Where every fact names its
            values, all others count as one, which shortens the enumeration.
    """

    people: tuple[Person, ...]
    holds: Callable[[Known], bool]
    mentions: frozenset[Any] | None = None


def implication_fact(if_all: Sequence[Atom], then_any: Sequence[Atom]) -> Fact:
    """The fact that one of the second atoms is true if all of the first are."""
    atoms = (*if_all, *then_any)

    def _holds(world: Known) -> bool:
        return not all(world[p] == v for p, v in if_all) or any(world[p] == v for p, v in then_any)

    return Fact(tuple(dict.fromkeys(p for p, _ in atoms)), _holds, frozenset(v for _, v in atoms))


def negation_fact(atom: Atom) -> Fact:
    """The fact that a person does not have a value."""
    person, value = atom
    return Fact((person,), lambda world: world[person] != value, frozenset([value]))


def belief_given_facts(
    buckets: Sequence[Sequence[Any]], knowledge: Sequence[Fact], target: Atom, limit: int = WORLDS
) -> Fraction | None:
    """The belief P(target | all that is known); None when the knowledge contradicts the buckets.

    Args:
        buckets: the values of each bucket; their order says nothing.
        knowledge: what the adversary knows.
        target: the atom in question.
        limit: refuse (`TooManyWorlds`) after this many steps.
    """
    (bucket, at), value = target
    for b, i in (target[0], *(p for fact in knowledge for p in fact.people)):
        if not (0 <= b < len(buckets) and 0 <= i < len(buckets[b])):
            raise UsageError(f"there is no person {i} in bucket {b}")
    found = beliefs_given_facts([RestrictedBucket.of(values) for values in buckets], {}, knowledge, limit)
    if found is None:
        return None
    return found.named.get((bucket, at), found.others[bucket, 0]).get(value, Fraction(0))


@dataclass(frozen=True)
class FactBeliefs:
    """What is believed by somebody who knows all facts.

    Attributes:
        named: per person whom a fact names, value → probability.
        others: per bucket and kind, the same for everybody else; of kinds in which everybody is named, nothing.
        half: half the width of every interval; 0: the numbers are exact.
        kept: the share of worlds that were drawn and in which all facts are true; None: nothing was drawn.
    """

    named: dict[Person, Chances]
    others: dict[tuple[int, int], Chances]
    half: float = 0.0
    kept: Fraction | None = None


def beliefs_given_facts(
    buckets: Sequence[RestrictedBucket],
    kind_of: Mapping[Person, int],
    knowledge: Sequence[Fact],
    limit: int = WORLDS,
    draws: int = 0,
    risk: float = 0.01,
) -> FactBeliefs | None:
    """Beliefs about everybody; None when no world agrees with what is known.

    Args:
        buckets: values and kinds of people.
        kind_of: the kind of each person whom a fact names, where it is not the first.
        knowledge: what the adversary knows.
        limit: steps of counting, and
        draws: worlds to draw where that is not enough; 0: refuse (`TooManyWorlds`).
        risk: that any interval of drawn beliefs misses.
    """
    named: dict[Person, Chances] = {}
    others: dict[tuple[int, int], Chances] = {}
    half, kept = 0.0, None
    for touched, facts in _components(knowledge, len(buckets)):
        part = _LinkedBuckets(buckets, touched, facts, kind_of)
        try:
            found = part.counted(limit)
        except TooManyWorlds:
            if not draws:
                raise
            found = _LinkedBuckets(buckets, touched, facts, kind_of).drawn(draws, risk)
            kept = found.kept if found is not None else Fraction(0)
        if found is None:
            return None
        named |= found.named
        others |= found.others
        half = max(half, found.half)
    return FactBeliefs(named, others, half, kept)


def belief_in_fact(
    event: Fact,
    buckets: Sequence[RestrictedBucket],
    kind_of: Mapping[Person, int],
    knowledge: Sequence[Fact],
    limit: int = WORLDS,
    draws: int = 0,
    risk: float = 0.01,
) -> tuple[Fraction, float] | None:
    """The belief in something about several people, and half the width of its interval; None: no world agrees.

    The arguments are those of `beliefs_given_facts`; drawn beliefs that are asked for one after the other are each
    missed with this risk divided by 1,000.
    """
    asked = Fact(event.people, lambda world: True, event.mentions)
    touched, facts = next(c for c in _components([*knowledge, asked], len(buckets)) if asked in c[1])
    part = _LinkedBuckets(buckets, touched, facts, kind_of)
    held = total = 0
    try:
        for weight, world in part.worlds(limit):
            total += weight
            held += weight if event.holds(world) else 0
        return (Fraction(held, total), 0.0) if total else None
    except TooManyWorlds:
        if not draws:
            raise
    kept, held = 0, 0
    for drawn in _LinkedBuckets(buckets, touched, facts, kind_of).dealt(draws):
        kept += drawn is not None
        held += drawn is not None and event.holds(drawn)
    if not kept:
        return Fraction(0), 1.0
    return Fraction(held, kept), math.sqrt(math.log(2000 / risk) / (2 * kept))


def _components(knowledge: Sequence[Fact], buckets: int) -> list[tuple[list[int], list[Fact]]]:
    """Buckets linked through facts, with those facts; a fact about nobody stands alone."""
    found: list[tuple[set[int], list[Fact]]] = [({b}, []) for b in range(buckets)]
    for fact in knowledge:
        touched = {p[0] for p in fact.people}
        linked = [c for c in found if c[0] & touched]
        rest = [c for c in found if not c[0] & touched]
        merged = (touched.union(*(c[0] for c in linked)), [*(f for c in linked for f in c[1]), fact])
        found = [*rest, merged]
    return [(sorted(touched), facts) for touched, facts in found]


class _OtherValues:
    """Stands for all values that no fact mentions and everybody can have; it equals none of them."""


OTHER = _OtherValues()


@dataclass
class _LinkedBuckets:
    """Buckets that facts link: people are named one after the other, everybody else is counted at once."""

    buckets: Sequence[RestrictedBucket]
    touched: list[int]
    facts: list[Fact]
    kind_of: Mapping[Person, int]
    dealers: dict[int, BucketCounter] = field(init=False)
    people: list[Person] = field(init=False)

    def __post_init__(self) -> None:
        self.people = list(dict.fromkeys(p for fact in self.facts for p in fact.people))
        self.merged = {b: self._told_apart(self.buckets[b]) for b in self.touched}
        self.dealers = {
            b: BucketCounter(RestrictedBucket(self.merged[b], self.buckets[b].kinds)) for b in self.touched
        }
        position = {p: i for i, p in enumerate(self.people)}
        self.due: list[list[Fact]] = [[] for _ in range(len(self.people) + 1)]
        for fact in self.facts:
            self.due[max((position[p] + 1 for p in fact.people), default=0)].append(fact)

    def _told_apart(self, bucket: RestrictedBucket) -> dict[Any, int]:
        """The values with their number; those that nothing tells apart as one."""
        told: frozenset[Any] | None = frozenset[Any]().union(*(f for _, f in bucket.kinds))
        for fact in self.facts:
            told = None if told is None or fact.mentions is None else told | fact.mentions
        merged: dict[Any, int] = {}
        for value, count in bucket.values.items():
            key = value if told is None or value in told else OTHER
            merged[key] = merged.get(key, 0) + count
        return merged

    def counted(self, limit: int) -> FactBeliefs | None:
        """Beliefs from all values of the people named, weighted by the worlds of everybody else."""
        sums = _WorldSums(self)
        for weight, world in self.worlds(limit):
            sums.add(world, weight)
        return sums.normalised()

    def worlds(self, limit: int) -> Iterator[tuple[int, dict[Person, Any]]]:
        """The worlds of the people named in which the facts are true, each with its weight."""
        world: dict[Person, Any] = {}
        steps = 0

        def _assign(i: int) -> Iterator[tuple[int, dict[Person, Any]]]:
            nonlocal steps
            steps += 1
            if steps > limit:
                raise TooManyWorlds(f"the formula needs more than {limit} steps to count; sample")
            if not all(fact.holds(world) for fact in self.due[i]):
                return
            if i == len(self.people):
                weight = math.prod(self.dealers[b].worlds() for b in self.touched)
                if weight:
                    yield weight, world
                return
            person = self.people[i]
            dealer, kind = self.dealers[person[0]], self.kind_of.get(person, 0)
            for value in [v for v in dealer.left if dealer.can_have(kind, v)]:
                world[person] = value
                dealer.give(kind, value)
                yield from _assign(i + 1)
                dealer.give(kind, value, -1)
            world.pop(person, None)

        yield from _assign(0)

    def drawn(self, draws: int, risk: float) -> FactBeliefs | None:
        """Draw worlds independently; those in which the facts are false are thrown away."""
        if not all(dealer.worlds() for dealer in self.dealers.values()):
            return None
        sums, kept = _WorldSums(self), 0
        for world in self.dealt(draws):
            if world is not None:
                sums.add(world, 1)
                kept += 1
        values = sum(len(m) for m in self.merged.values())
        asked = 2 * values * (len(self.people) + sum(len(self.buckets[b].kinds) for b in self.touched))
        if not kept:  # no world was seen: nothing can be said, not even that there is none
            blind = _LinkedBuckets(self.buckets, self.touched, [], self.kind_of).counted(1)
            assert blind is not None  # noqa: S101 - there are worlds, as was asked above
            someone = {p: blind.others[p[0], self.kind_of.get(p, 0)] for p in self.people}
            return FactBeliefs(someone, blind.others, 1.0, Fraction(0))
        found = sums.normalised()
        assert found is not None  # noqa: S101 - something was kept
        half = math.sqrt(math.log(asked / risk) / (2 * kept))  # Hoeffding, for all beliefs at once
        return FactBeliefs(found.named, found.others, half, Fraction(kept, draws))

    def dealt(self, draws: int) -> Iterator[dict[Person, Any] | None]:
        """So many worlds of the people named, drawn independently; None where a fact is false."""
        rng = random.Random(0)  # noqa: S311 - the draws are no secret, and a report should be repeatable
        for _ in range(draws):
            world = self._draw(rng)
            yield world
            for person, value in (world or {}).items():
                self.dealers[person[0]].give(self.kind_of.get(person, 0), value, -1)

    def _draw(self, rng: random.Random) -> dict[Person, Any] | None:
        """One world of the people named, None when a fact is false in it; values stay given."""
        world: dict[Person, Any] = {}
        for i, person in enumerate([*self.people, None]):
            if not all(fact.holds(world) for fact in self.due[i]):
                for (b, at), value in world.items():
                    self.dealers[b].give(self.kind_of.get((b, at), 0), value, -1)
                return None
            if person is None:
                break
            dealer, kind = self.dealers[person[0]], self.kind_of.get(person, 0)
            values = [v for v in dealer.left if dealer.can_have(kind, v)]
            value = rng.choices(values, [float(dealer.chance(kind, v)) for v in values])[0]
            dealer.give(kind, value)
            world[person] = value
        return world


class _WorldSums:
    """Adds up weighted worlds: what people named have, and what everybody else has on average."""

    def __init__(self, part: _LinkedBuckets) -> None:
        self.part = part
        self.total = 0
        self.named: dict[Person, dict[Any, int]] = {p: {} for p in part.people}
        self.states: dict[tuple[int, Any], list[Any]] = {}

    def add(self, world: Known, weight: int) -> None:
        """Add a world of the people named, with everybody else's part of it."""
        self.total += weight
        for person, value in world.items():
            self.named[person][value] = self.named[person].get(value, 0) + weight
        for b, dealer in self.part.dealers.items():
            key = b, dealer.state()
            if key not in self.states:
                self.states[key] = [0, self._expected(dealer)]
            self.states[key][0] += weight

    @staticmethod
    def _expected(dealer: BucketCounter) -> list[Chances]:
        """Per kind, what those have who are not named."""
        return [
            {v: dealer.chance(k, v) for v in dealer.left} if room else {}
            for k, room in enumerate(dealer.room)
        ]

    def normalised(self) -> FactBeliefs | None:
        """The beliefs over all worlds that were added; None without one."""
        if not self.total:
            return None
        others: dict[tuple[int, int], Chances] = {}
        for (b, _), (weight, expected) in self.states.items():
            for k, chances in enumerate(expected):
                mine = others.setdefault((b, k), {})
                for v, p in chances.items():
                    mine[v] = mine.get(v, Fraction(0)) + p * Fraction(weight, self.total)
        named = {
            p: self._apart(p[0], {v: Fraction(w, self.total) for v, w in held.items()})
            for p, held in self.named.items()
        }
        return FactBeliefs(named, {(b, k): self._apart(b, c) for (b, k), c in others.items()})

    def _apart(self, bucket: int, chances: Chances) -> Chances:
        """What was counted as one value is spread over those that it stands for; zeros are left out."""
        merged, values = self.part.merged[bucket], self.part.buckets[bucket].values
        result = {v: p for v, p in chances.items() if v is not OTHER and p}
        if chances.get(OTHER):
            for v, count in values.items():
                if v not in merged:
                    result[v] = chances[OTHER] * Fraction(count, merged[OTHER])
        return result


@dataclass(frozen=True)
class RestrictedBucket:
    """The values of a bucket with their number, and its kinds of people: how many, and what they cannot have."""

    values: Mapping[Any, int]
    kinds: Sequence[tuple[int, frozenset[Any]]]

    @staticmethod
    def of(values: Sequence[Any]) -> RestrictedBucket:
        """The bucket of these values in which everybody can have each of them."""
        return RestrictedBucket(Counter(values), [(len(values), frozenset())])

    @property
    def people(self) -> int:
        """The number of people in the bucket."""
        return sum(n for n, _ in self.kinds)


class BucketCounter:
    """Counts the worlds of one bucket while values are given to some of its people."""

    def __init__(self, bucket: RestrictedBucket) -> None:
        self.kinds = [frozenset(f) for _, f in bucket.kinds]
        self.room = [n for n, _ in bucket.kinds]
        self.left: dict[Any, int] = dict(bucket.values)
        denied = frozenset[Any]().union(*self.kinds)
        self.special = [v for v in self.left if v in denied]
        self.steps = 0
        self._place = cache(self._count_places)

    def give(self, kind: int, value: Any, many: int = 1) -> None:
        """Give somebody of this kind this value; −1 takes it back."""
        self.room[kind] -= many
        self.left[value] -= many

    def can_have(self, kind: int, value: Any) -> bool:
        """Whether the value is left and somebody of this kind can have it."""
        return self.left[value] > 0 and value not in self.kinds[kind]

    def worlds(self) -> int:
        """The number of worlds of the people who have no value yet."""
        places = self._place(0, tuple(self.room), tuple(self.left[v] for v in self.special))
        free = [c for v, c in self.left.items() if v not in self.special]
        return places * count_orders(free) if places else 0

    def chance(self, kind: int, value: Any) -> Fraction:
        """The probability that somebody of this kind, without a value yet, has this value."""
        if not self.can_have(kind, value) or not self.room[kind]:
            return Fraction(0)
        whole = self.worlds()
        self.give(kind, value)
        mine = self.worlds()
        self.give(kind, value, -1)
        return Fraction(mine, whole)

    def state(self) -> Hashable:
        """What is left to assign: equal states have equal beliefs."""
        return tuple(self.room), tuple(self.left.items())

    def _count_places(self, at: int, room: tuple[int, ...], counts: tuple[int, ...]) -> int:
        """Ways to place the special values from number `at` on, kinds having so much room."""
        self.steps += 1
        if self.steps > STEPS:
            raise TooManyWorlds(f"the worlds of a bucket need more than {STEPS} steps to count; sample")
        if at == len(counts):
            return 1
        able = [k for k, denied in enumerate(self.kinds) if self.special[at] not in denied and room[k]]
        total = 0
        for dealt in _splits([room[k] for k in able], counts[at]):
            after = list(room)
            ways = 1
            for k, x in zip(able, dealt, strict=True):
                ways *= math.comb(room[k], x)
                after[k] -= x
            total += ways * self._place(at + 1, tuple(after), counts)
        return total


def _splits(room: Sequence[int], many: int) -> list[tuple[int, ...]]:
    """Every way to divide a number over places with so much room."""
    if not room:
        return [()] if not many else []
    rest = sum(room[1:])
    low, high = max(0, many - rest), min(room[0], many)
    return [(x, *more) for x in range(low, high + 1) for more in _splits(room[1:], many - x)]


def matching_shares(
    rows: Sequence[Sequence[Any]], members: Iterable[int], known: Mapping[int, Any], target: int
) -> dict[Any, Fraction] | None:
    """Shares of the target attribute among the members that match everything known; None when none does.

    Args:
        rows: the published rows.
        members: the rows among which the victim is, by number.
        known: values of the victim, by attribute number.
        target: the attribute in question, by number.
    """
    matching = [rows[i][target] for i in members if all(rows[i][a] == v for a, v in known.items())]
    if not matching:
        return None
    return {value: Fraction(c, len(matching)) for value, c in Counter(matching).items()}


@dataclass(frozen=True)
class ClassedRelease:
    """One release: its classes as row numbers, and the sensitive values of each class."""

    classes: Sequence[Sequence[int]]
    values: Sequence[Sequence[Any]]

    def check(self) -> None:
        """Refuse a release unless the classes are disjoint and fit their values."""
        rows = [i for members in self.classes for i in members]
        if len(set(rows)) < len(rows) or list(map(len, self.classes)) != list(map(len, self.values)):
            raise UsageError("a release must have every row in one class, and as many values in it as rows")

    def class_of(self, person: int) -> int:
        """The number of the class in which a person is."""
        found = next((c for c, members in enumerate(self.classes) if person in members), None)
        if found is None:
            raise UsageError(f"person {person} is not in the release")
        return found


def joint_of_different_attributes(
    releases: Sequence[ClassedRelease], person: int
) -> dict[tuple[Any, ...], Fraction]:
    """The belief in each combination of values, from releases of different attributes.

    Their worlds are independent: beliefs multiply, and nothing is gained.
    """
    shares = []
    for release in releases:
        release.check()
        values = Counter(release.values[release.class_of(person)])
        shares.append([(v, Fraction(c, values.total())) for v, c in values.items()])
    return {
        tuple(v for v, _ in chosen): math.prod((p for _, p in chosen), start=Fraction(1))
        for chosen in itertools.product(*shares)
    }


def joint_of_same_attribute(
    releases: Sequence[ClassedRelease], person: int, limit: int = WORLDS
) -> dict[Any, Fraction] | None:
    """The belief in each value, from releases of one attribute under different groupings; None: no assignment fits.

    People in the same class of every release are interchangeable: such *cells* are dealt values one after the
    other, and what is left of each class is all that has to be remembered. Some people may be in some of the releases
    only: what a class holds besides goes to them, so that values of those who are in two classes c and d weigh as the
    product of falling factorials of their numbers in c and in d.

    Args:
        releases: about people of whom some may be in several.
        person: whom the belief is about.
        limit: refuse (`TooManyWorlds`) after this many steps.
    """
    worlds, _ = worlds_of_same_attribute(releases, person, limit)
    total = sum(worlds.values())
    return {value: Fraction(n, total) for value, n in worlds.items()} if total else None


def worlds_of_same_attribute(
    releases: Sequence[ClassedRelease], person: int, limit: int = WORLDS
) -> tuple[dict[Any, int], int]:
    """The number of assignments in which a person has each value, as `joint_of_same_attribute` counts them, and the
    steps that were taken."""
    for release in releases:
        release.check()
    domain = list(dict.fromkeys(v for release in releases for values in release.values for v in values))
    table = _SharedCells(releases, domain, person, limit)
    worlds = {value: table.with_person(v) for v, value in enumerate(domain)}
    return {value: n for value, n in worlds.items() if n}, table.steps


Place = tuple[int, int]  # the number of a release, and of a class in it


class _SharedCells:
    """Counts the assignments of values to everybody but one person."""

    def __init__(
        self, releases: Sequence[ClassedRelease], domain: list[Any], person: int, limit: int
    ) -> None:
        places: dict[int, list[Place]] = {}
        for r, release in enumerate(releases):
            for c, members in enumerate(release.classes):
                for i in members:
                    places.setdefault(i, []).append((r, c))
        if person not in places:
            raise UsageError(f"person {person} is not in the releases")
        cells = Counter(tuple(mine) for mine in places.values())
        self.home = tuple(places[person])
        cells[self.home] -= 1
        self.cells = _near_first(sorted((cell, n) for cell, n in cells.items() if n), self.home)
        self.limit, self.steps = limit, 0
        self.start = {
            (r, c): tuple(counts[v] for v in domain)
            for r, release in enumerate(releases) for c, counts in enumerate(map(Counter, release.values))
        }  # fmt: skip
        self.known: dict[tuple[int, frozenset[tuple[Place, tuple[int, ...]]]], int] = {}

    def with_person(self, v: int) -> int:
        """The number of assignments to everybody else when the person has this value."""
        left = dict(self.start)
        for key in self.home:
            if not left[key][v]:
                return 0
            left[key] = tuple(x - (i == v) for i, x in enumerate(left[key]))
        return self._count(0, left)

    def _count(self, at: int, left: dict[Place, tuple[int, ...]]) -> int:
        if at == len(self.cells):
            return int(not any(any(vector) for vector in left.values()))
        key = at, frozenset(left.items())
        if key not in self.known:
            self.steps += 1
            if self.steps > self.limit:
                raise TooManyWorlds(f"joining the releases needs more than {self.limit} steps; sample")
            classes, size = self.cells[at]
            room = tuple(map(min, zip(*(left[c] for c in classes), strict=True)))
            total = 0
            for part in sub_multisets(room, size) if sum(room) >= size else ():
                rest = left | {c: subtract_counts(left[c], part) for c in classes}
                if self._open(at, classes, rest):
                    total += count_orders(part) * self._count(at + 1, rest)
            self.known[key] = total
        return self.known[key]

    def _open(self, at: int, classes: Sequence[Place], left: dict[Place, tuple[int, ...]]) -> bool:
        """A class whose last cell this was must have dealt all its values."""
        later = {c for cell, _ in self.cells[at + 1 :] for c in cell}
        return all(c in later or not any(left[c]) for c in classes)


def _near_first(
    cells: list[tuple[tuple[Place, ...], int]], home: Sequence[Place]
) -> list[tuple[tuple[Place, ...], int]]:
    """Cells in an order in which each shares a class with one before it, if any does: fewer states.

    Those of one release come last: whatever the others leave is theirs.
    """
    order: list[tuple[tuple[Place, ...], int]] = []
    seen = set(home)
    while cells:
        best = max(cells, key=lambda sized: (len(sized[0]) > 1, sum(c in seen for c in sized[0])))
        cells = [sized for sized in cells if sized is not best]
        order.append(best)
        seen |= set(best[0])
    return order
