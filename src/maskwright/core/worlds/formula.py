"""Belief given a formula: the worlds of bucketized data in which everything the adversary knows is true.

Knowledge is any predicate of a few people's values; basic implications (all of some atoms → at least one of others)
express every predicate [Martin et al. 2007]. Counting the worlds is #P-complete in general: only people whom the
knowledge or the target names are enumerated, and buckets that no knowledge links to the target are only asked
whether they are consistent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from maskwright.core.worlds.limits import WORLDS, TooManyWorlds
from maskwright.errors import UsageError

Person = tuple[int, int]  # bucket, position in it
Atom = tuple[Person, Any]  # this person has this value
Known = Mapping[Person, Any]


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
    person, value = target
    for who in (person, *(p for fact in knowledge for p in fact.people)):
        if not (0 <= who[0] < len(buckets) and 0 <= who[1] < len(buckets[who[0]])):
            raise UsageError(f"there is no person {who[1]} in bucket {who[0]}")
    here, *elsewhere = _components(knowledge, person[0])
    for facts in elsewhere:
        if next(_worlds(buckets, facts, [], limit), None) is None:
            return None
    true = total = 0
    for world, weight in _worlds(buckets, here, [target], limit):
        total += weight
        true += weight * bool(world[person] == value)
    return Fraction(true, total) if total else None


def _components(knowledge: Sequence[Fact], bucket: int) -> list[list[Fact]]:
    """Facts linked through buckets, those that concern this bucket first (perhaps none); a fact about nobody too."""
    found: list[tuple[set[int], list[Fact]]] = [({bucket}, [])]
    for fact in knowledge:
        touched = {p[0] for p in fact.people}
        linked = [c for c in found if c[0] & touched]
        rest = [c for c in found if not c[0] & touched]
        merged = (touched.union(*(c[0] for c in linked)), [*(f for c in linked for f in c[1]), fact])
        found = [merged, *rest] if bucket in merged[0] else [*rest, merged]
    return [facts for _, facts in found]


def _worlds(
    buckets: Sequence[Sequence[Any]], facts: Sequence[Fact], targets: Sequence[Atom], limit: int
) -> Iterator[tuple[dict[Person, Any], int]]:
    """Values of all people named, such that the facts hold, and in how many ways they can be dealt."""
    people = list(dict.fromkeys([p for fact in facts for p in fact.people] + [p for p, _ in targets]))
    position = {p: i for i, p in enumerate(people)}
    due: list[list[Fact]] = [[] for _ in range(len(people) + 1)]
    for fact in facts:
        due[max((position[p] + 1 for p in fact.people), default=0)].append(fact)
    left = {b: Counter(_told_apart(buckets[b], facts, targets)) for b in {p[0] for p in people}}
    world: dict[Person, Any] = {}
    steps = 0

    def deal(i: int, ways: int) -> Iterator[tuple[dict[Person, Any], int]]:
        nonlocal steps
        steps += 1
        if steps > limit:
            raise TooManyWorlds(f"the formula needs more than {limit} steps to count; sample")
        if not all(fact.holds(world) for fact in due[i]):
            return
        if i == len(people):
            yield world, ways
            return
        counts = left[people[i][0]]
        for value in [v for v, c in counts.items() if c]:
            world[people[i]] = value
            counts[value] -= 1
            yield from deal(i + 1, ways * (counts[value] + 1))
            counts[value] += 1
        del world[people[i]]

    yield from deal(0, 1)


class _Other:
    """Stands for all values that no fact mentions; it equals none of them."""


OTHER = _Other()


def _told_apart(values: Sequence[Any], facts: Sequence[Fact], targets: Sequence[Atom]) -> list[Any]:
    told = {value for _, value in targets}
    for fact in facts:
        if fact.mentions is None:
            return list(values)
        told |= fact.mentions
    return [value if value in told else OTHER for value in values]
