"""Belief given a formula: the worlds of bucketized data in which everything the adversary knows is true.

Knowledge is any predicate of a few people's values; basic implications (all of some atoms → at least one of others)
express every predicate [Martin et al. 2007]. Counting the worlds is #P-complete in general: only people whom the
knowledge names are enumerated, bucket by bucket where no knowledge links them; beyond that, worlds are drawn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from maskwright.core.worlds.dealing import Bucket, Dealer
from maskwright.core.worlds.limits import WORLDS, TooManyWorlds
from maskwright.errors import UsageError

Person = tuple[int, int]  # bucket, position in it
Atom = tuple[Person, Any]  # this person has this value
Known = Mapping[Person, Any]
Chances = dict[Any, Fraction]


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


def implication(if_all: Sequence[Atom], then_any: Sequence[Atom]) -> Fact:
    """If all of the first atoms are true, at least one of the others is."""
    atoms = (*if_all, *then_any)

    def holds(world: Known) -> bool:
        return not all(world[p] == v for p, v in if_all) or any(world[p] == v for p, v in then_any)

    return Fact(tuple(dict.fromkeys(p for p, _ in atoms)), holds, frozenset(v for _, v in atoms))


def negation(atom: Atom) -> Fact:
    """This person does not have this value."""
    person, value = atom
    return Fact((person,), lambda world: world[person] != value, frozenset([value]))


def belief_given(
    buckets: Sequence[Sequence[Any]], knowledge: Sequence[Fact], target: Atom, limit: int = WORLDS
) -> Fraction | None:
    """P(target | all that is known), or None when the knowledge is inconsistent with the buckets.

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
    found = beliefs_given([Bucket.of(values) for values in buckets], {}, knowledge, limit)
    if found is None:
        return None
    return found.named.get((bucket, at), found.others[bucket, 0]).get(value, Fraction(0))


@dataclass(frozen=True)
class Given:
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


def beliefs_given(
    buckets: Sequence[Bucket],
    kind_of: Mapping[Person, int],
    knowledge: Sequence[Fact],
    limit: int = WORLDS,
    draws: int = 0,
    risk: float = 0.01,
) -> Given | None:
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
        part = _Part(buckets, touched, facts, kind_of)
        try:
            found = part.counted(limit)
        except TooManyWorlds:
            if not draws:
                raise
            found = _Part(buckets, touched, facts, kind_of).drawn(draws, risk)
            kept = found.kept if found is not None else Fraction(0)
        if found is None:
            return None
        named |= found.named
        others |= found.others
        half = max(half, found.half)
    return Given(named, others, half, kept)


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


class _Other:
    """Stands for all values that no fact mentions and everybody can have; it equals none of them."""


OTHER = _Other()


@dataclass
class _Part:
    """Buckets that facts link: people are named one after the other, everybody else is counted at once."""

    buckets: Sequence[Bucket]
    touched: list[int]
    facts: list[Fact]
    kind_of: Mapping[Person, int]
    dealers: dict[int, Dealer] = field(init=False)
    people: list[Person] = field(init=False)

    def __post_init__(self) -> None:
        self.people = list(dict.fromkeys(p for fact in self.facts for p in fact.people))
        self.merged = {b: self._told_apart(self.buckets[b]) for b in self.touched}
        self.dealers = {b: Dealer(Bucket(self.merged[b], self.buckets[b].kinds)) for b in self.touched}
        position = {p: i for i, p in enumerate(self.people)}
        self.due: list[list[Fact]] = [[] for _ in range(len(self.people) + 1)]
        for fact in self.facts:
            self.due[max((position[p] + 1 for p in fact.people), default=0)].append(fact)

    def _told_apart(self, bucket: Bucket) -> dict[Any, int]:
        """The values with their number; those that nothing tells apart as one."""
        told: frozenset[Any] | None = frozenset[Any]().union(*(f for _, f in bucket.kinds))
        for fact in self.facts:
            told = None if told is None or fact.mentions is None else told | fact.mentions
        merged: dict[Any, int] = {}
        for value, count in bucket.values.items():
            key = value if told is None or value in told else OTHER
            merged[key] = merged.get(key, 0) + count
        return merged

    def counted(self, limit: int) -> Given | None:
        """All values of the people named, each as often as the others can be dealt."""
        sums = _Sums(self)
        for weight, world in self._worlds(limit):
            sums.add(world, weight)
        return sums.given()

    def _worlds(self, limit: int) -> Iterator[tuple[int, dict[Person, Any]]]:
        world: dict[Person, Any] = {}
        steps = 0

        def deal(i: int) -> Iterator[tuple[int, dict[Person, Any]]]:
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
                yield from deal(i + 1)
                dealer.give(kind, value, -1)
            world.pop(person, None)

        yield from deal(0)

    def drawn(self, draws: int, risk: float) -> Given | None:
        """Draw worlds independently; those in which the facts are false are thrown away."""
        rng = random.Random(0)  # noqa: S311 - the draws are no secret, and a report should be repeatable
        if not all(dealer.worlds() for dealer in self.dealers.values()):
            return None
        sums, kept = _Sums(self), 0
        for _ in range(draws):
            world = self._draw(rng)
            if world is not None:
                sums.add(world, 1)
                kept += 1
            for person, value in (world or {}).items():
                self.dealers[person[0]].give(self.kind_of.get(person, 0), value, -1)
        values = sum(len(m) for m in self.merged.values())
        asked = 2 * values * (len(self.people) + sum(len(self.buckets[b].kinds) for b in self.touched))
        if not kept:  # no world was seen: nothing can be said, not even that there is none
            blind = _Part(self.buckets, self.touched, [], self.kind_of).counted(1)
            assert blind is not None  # noqa: S101 - there are worlds, as was asked above
            someone = {p: blind.others[p[0], self.kind_of.get(p, 0)] for p in self.people}
            return Given(someone, blind.others, 1.0, Fraction(0))
        found = sums.given()
        assert found is not None  # noqa: S101 - something was kept
        half = math.sqrt(math.log(asked / risk) / (2 * kept))  # Hoeffding, for all beliefs at once
        return Given(found.named, found.others, half, Fraction(kept, draws))

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


class _Sums:
    """Adds up weighted worlds: what people named have, and what everybody else has on average."""

    def __init__(self, part: _Part) -> None:
        self.part = part
        self.total = 0
        self.named: dict[Person, dict[Any, int]] = {p: {} for p in part.people}
        self.states: dict[tuple[int, Any], list[Any]] = {}

    def add(self, world: Known, weight: int) -> None:
        self.total += weight
        for person, value in world.items():
            self.named[person][value] = self.named[person].get(value, 0) + weight
        for b, dealer in self.part.dealers.items():
            key = b, dealer.state()
            if key not in self.states:
                self.states[key] = [0, self._expected(dealer)]
            self.states[key][0] += weight

    @staticmethod
    def _expected(dealer: Dealer) -> list[Chances]:
        """Per kind, what those have who are not named."""
        return [
            {v: dealer.chance(k, v) for v in dealer.left} if room else {}
            for k, room in enumerate(dealer.room)
        ]

    def given(self) -> Given | None:
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
        return Given(named, {(b, k): self._apart(b, c) for (b, k), c in others.items()})

    def _apart(self, bucket: int, chances: Chances) -> Chances:
        """What was counted as one value is spread over those that it stands for; zeros are left out."""
        merged, values = self.part.merged[bucket], self.part.buckets[bucket].values
        result = {v: p for v, p in chances.items() if v is not OTHER and p}
        if chances.get(OTHER):
            for v, count in values.items():
                if v not in merged:
                    result[v] = chances[OTHER] * Fraction(count, merged[OTHER])
        return result
