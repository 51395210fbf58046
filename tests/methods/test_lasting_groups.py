"""Signatures that last (promise/lemmas/lasting_signatures.py): every world, every random choice, three releases."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest

from maskwright.errors import PolicyNotMet
from maskwright.methods._rows.lasting_groups import LastingGroup, Signature, lasting_groups
from maskwright.worlds.sampling.choices import Choices, every_choice

World = tuple[str, ...]
Shown = tuple[frozenset[tuple[frozenset[int], Signature]], ...]  # per release: who is in which group
Group = Callable[[World, Sequence[int], dict[int, Signature], Choices], list[LastingGroup]]


def ours(
    world: World, present: Sequence[int], known: dict[int, Signature], draws: Choices
) -> list[LastingGroup]:
    values, signatures = [world[p] for p in present], [known.get(p) for p in present]
    return lasting_groups(values, signatures, 2, draws)  # type: ignore[arg-type]


def alone(
    world: World, present: Sequence[int], known: dict[int, Signature], draws: Choices
) -> list[LastingGroup]:
    values, signatures = [world[p] for p in present], [known.get(p) for p in present]
    later = "alone" if known else "buckets"
    return lasting_groups(values, signatures, 2, draws, later, "abc")  # type: ignore[arg-type]


def filling_gaps(
    world: World, present: Sequence[int], known: dict[int, Signature], draws: Choices
) -> list[LastingGroup]:
    """What must not be done: a newcomer with the value of a gap takes it."""
    signatures = dict(known)
    for person in present:
        gaps: Counter[tuple[Signature, str]] = Counter()
        for signature in set(known.values()):
            held = Counter(world[p] for p in present if signatures.get(p) == signature)
            gaps.update({(signature, v): max(held.values(), default=0) - held[v] for v in signature})
        if person not in signatures:
            fits = sorted(s for (s, v), n in gaps.items() if n > 0 and v == world[person])
            if fits:
                signatures[person] = fits[0]
    return ours(world, present, signatures, draws)


def published(world: World, plan: Sequence[Sequence[int]], group: Group) -> Iterator[tuple[Shown, Fraction]]:
    """Every sequence of releases, with its probability."""
    for draws in every_choice(200_000):
        known: dict[int, Signature] = {}
        shown = []
        for present in plan:
            made = group(world, present, known, draws)
            for g in made:
                known |= {present[i]: g.signature for i in g.people}
            shown.append(frozenset((frozenset(present[i] for i in g.people), g.signature) for g in made))
        yield tuple(shown), draws.probability


def likelihoods(plan: Sequence[Sequence[int]], group: Group, values: str) -> dict[Shown, Counter[World]]:
    people = 1 + max(p for present in plan for p in present)
    found: dict[Shown, Counter[World]] = defaultdict(Counter)
    for world in itertools.product(values, repeat=people):
        try:
            for shown, chance in published(world, plan, group):
                found[shown][world] += chance  # type: ignore[assignment]
        except PolicyNotMet:  # not published: nobody sees anything
            continue
    return found


def worst(found: dict[Shown, Counter[World]]) -> Fraction:
    highest = Fraction(0)
    for worlds in found.values():
        total, belief = sum(worlds.values(), Fraction(0)), defaultdict[tuple[int, str], Fraction](Fraction)
        for world, chance in worlds.items():
            for person, value in enumerate(world):
                belief[person, value] += Fraction(chance)
        # somebody who is not in the first release may have any value until then
        highest = max(highest, *(b / total for b in belief.values()))
    return highest


PLANS = [
    [[0, 1, 2, 3], [0, 2, 3], [2, 3]],  # deletions alone
    [[0, 1], [0, 2, 3], [0, 1, 3]],  # somebody goes, two come, one of the first comes back
    pytest.param([[0, 1, 2, 3], [1, 2, 4, 5], [2, 4]], marks=pytest.mark.long),
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_three_releases_tell_no_more_than_one(plan: list[list[int]]) -> None:
    found = likelihoods(plan, ours, "abc" if max(map(max, plan)) < 4 else "ab")
    assert len(found) > 1
    assert worst(found) == Fraction(1, 2)


def test_newcomers_alone() -> None:
    plan = [[0, 1], [0, 1, 2], [2, 3]]
    found = likelihoods(plan, alone, "abc")
    assert worst(found) == Fraction(1, 2)
    assert any(len(g) == 1 for shown in found for g, _ in shown[1])


def test_a_gap_that_stays_would_tell() -> None:
    plan = [[0, 1], [0, 2, 3]]
    assert worst(likelihoods(plan, filling_gaps, "abc")) == 1
    assert worst(likelihoods(plan, ours, "abc")) == Fraction(1, 2)


def test_two_that_must_not_meet_are_counterfeits() -> None:
    first = lasting_groups("abab", [None] * 4, 2, np.random.default_rng(0))
    assert [g.counterfeits for g in first] == [0, 0]
    later = lasting_groups("aa", [("a", "b")] * 2, 2, np.random.default_rng(0))
    assert [(len(g.people), g.counterfeits) for g in later] == [(1, 1), (1, 1)]


def test_an_update_that_cannot_be_made() -> None:
    with pytest.raises(PolicyNotMet, match=r"the 2 newcomers cannot .* 2 of them .* newcomers: alone"):
        lasting_groups("abaa", [("a", "b")] * 2 + [None] * 2, 2, np.random.default_rng(0))
    with pytest.raises(PolicyNotMet, match="the 1 newcomer cannot"):
        lasting_groups("abc", [("a", "b")] * 2 + [None], 2, np.random.default_rng(0))
