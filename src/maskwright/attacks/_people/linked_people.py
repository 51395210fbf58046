"""Linked people: what facts, the method and what is learned tell of people whose visits a pseudonym keeps together.

Everybody is known by the published classes of up to m visits, and behind each of the pseudonyms that match with equal
chances (`linked_visits`). A *world* says which person is behind which pseudonym: each behind one with the same visits.

**The method adds nothing to that.** *Why.* Let somebody be any of the people who have certain visits among theirs. In
every world these people are behind the pseudonyms with these visits, one each. So whichever worlds the method leaves,
and however likely it makes each, somebody who is any of them is behind each of these pseudonyms with the same chance;
and so are several people at once, behind different ones. ∎ Who knows more of a person than these classes (the exact
age, every visit) may exclude some of the people who match: that is the assumption which is told.

**Facts.** By the lemma of `worlds.statements.disclosure`, which holds for any events as atoms, k facts bring the
belief in A to at most 1/(1 + R), R the least P(none of A, A_1 … A_k)/P(A). Let the atoms be about the person of A and
j others, known by visits that M_0 … M_j people match, of whom a_i hold one of the values that are denied the i-th, and
h the value of A. Different people are behind different pseudonyms, so that with W for the pairings of both
  W(none) ≥ Π max(0, M_i − a_i − i)   and   W(A) ≤ h · M_1 … M_j.
At most the sum of the d largest numbers of holders hold one of d values. The least over all ways to share k + 1 atoms
among people is found person by person. ∎
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._people.people_worlds import FactFinding
from maskwright.attacks._shared.secrets import Secrets
from maskwright.attacks.homogeneity import OwnedRows
from maskwright.attacks.linked_visits import class_numbers, holders_of, known_levels, worst_match
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Ints
from maskwright.domain.known_visits import KnownVisits
from maskwright.domain.segments import Ratios

BY_VISITS = (
    "nothing is known about a person but the classes of these visits; then those who match have the secret in the same "
    "share of every world"
)
MOST_COUNTS = 50_000_000  # sets of visits × atoms

Floats = NDArray[np.float64]


def visits_known(target: Target) -> int:
    """How many visits of a person may be known; 0: nothing links the rows of a person."""
    return target.design.linked if target.design is not None else 0


def worst_linked_facts(target: Target, secrets: Secrets, k: int, limit: Fraction) -> FactFinding:
    """A bound on the belief that k facts bring about, and the people for whom it is above a limit."""
    levels = [_nothing_known(target), *known_levels(target.grouping, visits_known(target))][:-1]
    by_secret = holders_of(target.grouping, secrets.attribute, secrets.sets)
    shown = max(worst_match(level, by_secret, secrets).after for level in levels)
    values = [(v,) for v in target.grouping.summary.sensitive[secrets.attribute].values]
    held = holders_of(target.grouping, secrets.attribute, values)
    sets = sum(len(level.matches) for level in levels)
    upper, above = Fraction(1), np.ones(0, dtype=bool)
    facts = f"{k} fact{'' if k == 1 else 's'}"
    if sets * min(k + 1, len(held)) <= MOST_COUNTS:
        ratios = _FactRatios.of(levels, held, k)
        upper, above = ratios.belief(), ratios.above(limit)
    why = f"{secrets.attribute}: those who match are people whom {facts} about them and others can exclude one by one"
    why += ": what they reveal could not be narrowed down" if upper == 1 else ", which leaves at most this"
    people = np.concatenate([level.person for level in levels])
    vulnerable = len(np.unique(people if upper == 1 and not len(above) else people[above]))
    visits = visits_known(target)
    known = "one visit is" if visits == 1 else f"up to {visits} visits are"
    whom = f"somebody of whom {known} known, and somebody who knows {facts}"
    return FactFinding(Belief(shown, upper, whom, why), "bounded", vulnerable)


def _nothing_known(target: Target) -> KnownVisits:
    """Everybody who is published, of whom no visit is known."""
    people = OwnedRows.of(target.grouping).person
    everybody = np.unique(people)
    return KnownVisits(0, everybody, np.zeros_like(everybody), np.array([len(everybody)]))


@dataclass(frozen=True, eq=False)
class _FactRatios:
    """What d atoms about one person come to, for every set of visits by which a person may be known.

    Attributes:
        matches: the people who match each set.
        likeliest: of these, the most who hold one value that is known.
        denied: set × d → the most of these who hold one of d values.
        set_of: the set of each pair of a person and a set.
    """

    matches: Ints
    likeliest: Ints
    denied: Ints
    set_of: Ints

    @staticmethod
    def of(levels: Sequence[KnownVisits], held: NDArray[np.bool_], k: int) -> _FactRatios:
        """Everything for k facts; `held`: code (0: missing) × person."""
        found, before = list[tuple[Ints, Ints, Ints, Ints]](), 0
        for level in levels:
            n = len(level.matches)
            top = np.zeros((n, min(k + 1, len(held))), dtype=np.int64)
            best = np.zeros(n, dtype=np.int64)
            for code, people in enumerate(held):
                count = np.bincount(level.known[people[level.person]], minlength=n)
                best = np.maximum(best, count) if code else best
                for place in range(top.shape[1]):
                    larger = np.maximum(top[:, place], count)
                    count, top[:, place] = np.minimum(top[:, place], count), larger
            sums = np.minimum(np.cumsum(top, axis=1), level.matches[:, None])
            more = np.repeat(sums[:, -1:], k + 1 - sums.shape[1], axis=1)
            found.append((level.matches, best, np.concatenate([sums, more], axis=1), level.known + before))
            before += n
        return _FactRatios(*map(np.concatenate, zip(*found, strict=True)))

    def others(self) -> list[Fraction]:
        """By the number of atoms, the least that those about other people leave."""
        most = self.denied.shape[1] - 1
        best = [Fraction(1)] + [Fraction(2)] * most  # with so many people; more than 1: cannot be
        least = list(best)
        for person in range(1, most + 1):
            left = [_smallest(self.matches - self.denied[:, d] - person, self.matches) for d in range(most)]
            best = [
                min((best[c - d - 1] * left[d] for d in range(c)), default=Fraction(2))
                for c in range(most + 1)
            ]
            least = [min(pair) for pair in zip(least, best, strict=True)]
        return list(itertools.accumulate(least, min))

    def belief(self) -> Fraction:
        """The largest belief of all."""
        there, rest = self.likeliest > 0, self.others()[::-1]
        if not there.any():
            return Fraction(0)
        free = np.maximum(self.matches[:, None] - self.denied, 0)[there]
        return 1 / (
            1 + min(_smallest(f, self.likeliest[there]) * r for f, r in zip(free.T, rest, strict=True))
        )

    def above(self, limit: Fraction) -> NDArray[np.bool_]:
        """The pairs of a person and a set of visits by which the person may be believed to hold something."""
        there, free = self.likeliest > 0, np.maximum(self.matches[:, None] - self.denied, 0)
        rest = np.array([float(r) for r in self.others()[::-1]])
        least = (free * rest).min(axis=1)
        over: NDArray[np.bool_] = there & (
            self.likeliest > (self.likeliest + least) * float(limit) * (1 - 1e-12)
        )
        return over[self.set_of]


def _smallest(above: Ints, below: Ints) -> Fraction:
    """The smallest of some ratios, exactly; negative ones count as 0."""
    ratios = Ratios(np.maximum(above, 0), below)
    return ratios[ratios.argmin() or 0]


def most_of_each(target: Target, secrets: Secrets) -> Floats:
    """Person × secret: the most that is believed of each person from known visits; 0 of those who are not published."""
    held = holders_of(target.grouping, secrets.attribute, secrets.sets)
    found = np.zeros(held[1:].shape[::-1])
    for level in list(known_levels(target.grouping, visits_known(target)))[:-1]:
        for code in range(1, len(held)):
            having = np.bincount(level.known[held[code][level.person]], minlength=len(level.matches))
            np.maximum.at(found[:, code - 1], level.person, (having / level.matches)[level.known])
    return found


# --- what is learned ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LearnedRows:
    """What somebody who learns believes of rows: entry × value of its class, and how many rows have the value.

    Attributes:
        entry, code, belief: the pairs.
        rows: the rows of the class with the value of each pair.
        entry_of: the entry of each published cell.
    """

    entry: Ints
    code: Ints
    belief: Floats
    rows: Ints
    entry_of: Ints


@dataclass(frozen=True)
class LinkedBelief:
    """The worst belief in a secret, of whom so many visits are known, and the people of whom more than a bound is."""

    share: float
    code: int
    visits: int
    people: int
    above: int


MOST_MATCHES = 3_000_000  # of known visits with those of people, which are looked at one by one
Visits = tuple[tuple[int, int], ...]  # the class and the entry of each


def worst_learned_match(
    target: Target, attribute: str, held: NDArray[np.bool_], learned: LearnedRows, limit: float
) -> LinkedBelief | None:
    """The worst belief of somebody who knows the quasi-identifiers of some visits, and learns; None: too many sets.

    Each of the people who match is as likely as what was learned says of the values of their visits; visits are taken
    to be independent. `held`: secret (from 1) × person.
    """
    seen, most = _SeenVisits.of(target, attribute, learned), visits_known(target)
    best, above, looked = LinkedBelief(0.0, 0, 0, 0, 0), set[int](), 0
    known = dict[Visits, Floats]()
    for person, visits in seen.visits.items():
        sets = {c for n in range(1, most + 1) for c in itertools.combinations(sorted(visits), n)}
        for chosen in sorted(sets):
            if chosen not in known:
                looked += seen.matches(chosen)
                if looked > MOST_MATCHES:
                    return None
                weights = seen.weights(chosen)
                weight = np.array(list(weights.values()))
                total = weight.sum()
                share = held[1:, list(weights)] @ weight / total if total else held[1:, person].astype(float)
                known[chosen] = share
                if share.max(initial=0) > best.share:
                    best = LinkedBelief(
                        float(share.max()), int(share.argmax()) + 1, len(chosen), len(weights), 0
                    )
            if known[chosen].max(initial=0) > limit:
                above.add(person)
    return replace(best, above=len(above))


@dataclass(frozen=True, eq=False)
class _SeenVisits:
    """The visits of people one by one, and what was learned of each.

    Attributes:
        visits: person → the class and the entry of each visit.
        there: class → person → the values (codes) of the visits there.
        chance: entry → value → how likely a row of the class with that value is this one.
    """

    visits: Mapping[int, list[tuple[int, int]]]
    there: Mapping[int, Mapping[int, list[int]]]
    chance: Mapping[int, Mapping[int, float]]

    @staticmethod
    def of(target: Target, attribute: str, learned: LearnedRows) -> _SeenVisits:
        """The published visits."""
        grouping = target.grouping
        cells, groups, rows = grouping.cells
        personal = grouping.summary.personal
        assert personal is not None and personal.people is not None  # noqa: S101 - for the type checker
        codes = personal.values[list(grouping.summary.sensitive).index(attribute)][cells]
        chance = dict[int, dict[int, float]]()
        pairs = (learned.entry, learned.code, learned.belief / learned.rows)
        for e, v, share in zip(*(x.tolist() for x in pairs), strict=True):
            chance.setdefault(e, {})[v] = share
        visits, there = dict[int, list[tuple[int, int]]](), dict[int, dict[int, list[int]]]()
        entries = (personal.people[cells], class_numbers(grouping)[groups], learned.entry_of, codes, rows)
        for p, g, e, v, n in zip(*(x.tolist() for x in entries), strict=True):
            visits.setdefault(p, []).extend([(g, e)] * n)
            there.setdefault(g, {}).setdefault(p, []).extend([v] * n)
        return _SeenVisits(visits, there, chance)

    def matches(self, chosen: Visits) -> int:
        """How much there is to look at."""
        fewest = min((self.there[g] for g, _ in chosen), key=len)
        return sum(math.perm(max(len(v), len(chosen)), len(chosen)) for v in fewest.values())

    def weights(self, chosen: Visits) -> dict[int, float]:
        """How likely each person who has visits in these classes is the one, by the values of the visits."""
        wanted = dict[int, list[int]]()
        for group, entry in chosen:
            wanted.setdefault(group, []).append(entry)
        fewest = min((self.there[g] for g in wanted), key=len)
        found = dict[int, float]()
        for person in fewest:
            if all(len(self.there[g].get(person, ())) >= len(entries) for g, entries in wanted.items()):
                found[person] = math.prod(
                    sum(
                        math.prod(self.chance[e].get(v, 0.0) for e, v in zip(entries, values, strict=True))
                        for values in itertools.permutations(self.there[g][person], len(entries))
                    )
                    for g, entries in wanted.items()
                )
        return found
