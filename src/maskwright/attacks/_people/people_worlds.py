"""Several rows per person: worlds deal values to rows, and what is believed is that some row of a person holds one.

Which rows are whose is known from quasi-identifiers. Small releases are gone through world by world, with the method
run on each of them where it is known; larger ones are drawn from, or bounded:

**Facts.** Let nobody have more than r rows. Then k facts about people bring the belief that somebody has a value to at
most 1/(1 + R/r), where R is the least ratio of maximum disclosure for (k + 1)·r atoms about *rows*.
*Why.* By the lemma of `worlds.statements.disclosure`, which holds for any events as atoms, the belief is 1/(1 + R'),
R' the least P(none of A, A_1 … A_k)/P(A). "No row of p has s" says of each row of p that it has not s: none of the
k + 1 atoms is true exactly where none of at most (k + 1)·r atoms about rows is. And P(A) is at most the sum over the
rows of A's person, so at most r times the likeliest of these atoms, which is one of them. ∎ A fact about a *row* is
weaker than the same about the person: "the person has not s" rules out more worlds than "this row has not s".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.attacks._minimality.enumeration import (
    World,
    dealt_rows,
    every_world_of_rows,
    holds_for,
    labels_repeat,
)
from maskwright.attacks._minimality.fingerprints import group_fingerprints
from maskwright.attacks._minimality.replay import Again, can_replay, known_only_in_part
from maskwright.attacks._minimality.world_tables import PublishedPeople
from maskwright.attacks._shared.findings import Finding, Kind, belief_limit
from maskwright.attacks._shared.secrets import NOTHING, Secrets, dropped_people
from maskwright.attacks.homogeneity import OwnedRows, person_in_words, worst_person
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.exact import number_text
from maskwright.domain.grouping import Grouping, groups_as_read
from maskwright.kernels.max_disclosure import max_disclosure
from maskwright.worlds.sampling.belief_intervals import FEW, RISK, binomial_lower, exact_interval
from maskwright.worlds.sampling.world_sampler import ENOUGH, Bools, WorldBudget
from maskwright.worlds.statements.disclosure import (
    SETS,
    Atom,
    Witness,
    WorldBlock,
    bound_when_left,
    sets_of_atoms,
    worst_facts,
)

MOST_MARKS = 20_000_000  # items × secrets: of more, worlds are not drawn

WORLDS = 20_000  # that are listed without a run of the method
LARGE = 10 * WORLDS  # rows; whether there are few worlds is not looked for among more
MOST_ATOMS = 200  # about rows, for a bound
KNOWN_GROUP = "it is known which group each row is in"


@dataclass(frozen=True, eq=False)
class PeopleWorlds:
    """Worlds, and who has what in them.

    Attributes:
        places: the rows.
        people: the number of each person that is asked about.
        has: world × person × item: has some row of the person the item?
        weight: how likely each world is, in whole numbers.
        exactly: are all rows of a person with equal quasi-identifiers published, or none? Otherwise all of them count.
    """

    places: PublishedPeople
    people: Ints
    has: Bools
    weight: Ints
    exactly: bool

    @staticmethod
    def of(
        target: Target, found: tuple[PublishedPeople, list[tuple[World, int]]], asked: str
    ) -> PeopleWorlds:
        """What listed worlds say of everybody with a published row, or with a dropped one (`asked`).

        Rows that are not published count where they were dropped because of values: then their absence tells.
        """
        places, worlds = found
        assert places.people is not None  # noqa: S101 - for the type checker
        shown = places.group >= 0
        every = asked == "dropped" or known_only_in_part(target) is not None
        people = np.unique(places.people[: len(shown)][~shown if asked == "dropped" else shown])
        counted = np.ones(len(shown), dtype=bool) if every else shown
        n_items = int(places.items.max(initial=-1)) + 1
        has = np.zeros((len(worlds), len(people), n_items), dtype=bool)
        owner = places.people[: len(shown)]
        exactly = True
        for u in range(places.n_units):
            mine = places.unit == u
            exactly &= bool(counted[mine].all() or not counted[mine].any())
            person = np.searchsorted(people, owner[mine][0])
            if person < len(people) and people[person] == owner[mine][0] and counted[mine].any():
                counts = np.array([world[u] for world, _ in worlds]).reshape(len(worlds), n_items)
                has[:, person, :] |= counts > 0
        return PeopleWorlds(
            places, people, has, np.array([weight for _, weight in worlds], dtype=np.int64), exactly
        )

    def beliefs(self, inside: Bools) -> list[list[Fraction]]:
        """Person × secret: the share of worlds in which some row holds an item of the secret (item × secret)."""
        total = int(self.weight.sum())
        held = (self.has.astype(np.int64) @ inside.astype(np.int64)) > 0
        sums = np.tensordot(self.weight, held, axes=(0, 0))
        return [[Fraction(int(n), total) for n in row] for row in sums]


def dealt_worlds(target: Target) -> PeopleWorlds | None:
    """Every world that fits what is published, to somebody who does not know the method; None: too many."""
    if target.grouping.summary.n_rows > LARGE:
        return None
    found = dealt_rows(target, WORLDS)
    return None if found is None else PeopleWorlds.of(target, found, "published")


def explained_worlds(target: Target, budget: WorldBudget, asked: str = "published") -> PeopleWorlds | None:
    """Every world in which the same is published, to somebody who knows the method; None: too many."""
    found = every_world_of_rows(target, budget)
    return None if found is None else PeopleWorlds.of(target, found, asked)


@dataclass(frozen=True, eq=False)
class DrawnWorlds:
    """Worlds drawn at random, those kept in which the same is published, and how often each person has each secret.

    Attributes:
        people: the number of each person.
        held: per column of secrets, person × secret, over the kept worlds.
        looked, kept: how many worlds.
        seconds: that it took.
    """

    people: Ints
    held: list[Ints]
    looked: int
    kept: int
    seconds: float

    @property
    def least(self) -> float:
        """The least share of all worlds that is kept, with the stated confidence."""
        return float(binomial_lower(np.array([float(self.kept)]), float(max(1, self.looked)), RISK / 2)[0])


def drawn_worlds(target: Target, secrets: Sequence[Secrets], budget: WorldBudget) -> DrawnWorlds | None:
    """Worlds on which the method is run again; None: it cannot be."""
    grouping = target.grouping
    several = len(grouping.summary.sensitive) > 1
    if (
        grouping.changes is not None
        or not can_replay(target)
        or (several and (target.exact or target.joined))
    ):
        return None
    places, again = PublishedPeople.of(target), Again(target)
    assert places.people is not None  # noqa: S101 - for the type checker
    search = [m for m in target.models if m.use == "search"]
    wanted = np.sort(group_fingerprints(grouping))
    owner = places.people[: len(places.items)]
    order = np.argsort(owner, kind="stable")
    people, first = np.unique(owner[order], return_index=True)
    asked = sum(len(s.sets) for s in secrets)
    inside, held = list[Bools](), [np.zeros((len(people), 0), dtype=np.int64) for _ in secrets]
    rng, looked, kept, clock = np.random.default_rng(0), 0, 0, budget.time()
    draws = budget.draws if asked * len(places.items) <= MOST_MARKS else 0  # else nothing is narrowed down
    while looked < draws and kept < ENOUGH and not clock.is_over:
        looked += 1
        world = places.items[np.lexsort((rng.random(len(places.items)), places.group))]
        made = again.run(places.summary(world), search)
        if made is None or made.levels != grouping.levels:
            continue
        made = made if target.exact else groups_as_read(made)
        if np.array_equal(np.sort(group_fingerprints(made)), wanted) and holds_for(target, made):
            kept += 1
            if not inside:  # in a large table no world is kept, and this is not needed
                inside = [items_inside(target, s, places) for s in secrets]
                held = [np.zeros((len(people), marks.shape[1]), dtype=np.int64) for marks in inside]
            for sums, marks in zip(held, inside, strict=True):
                sums += np.logical_or.reduceat(marks[world[order]], first, axis=0)
    return DrawnWorlds(people, held, looked, kept, clock.spent)


def items_inside(target: Target, secrets: Secrets, places: PublishedPeople) -> Bools:
    """Whether an item makes a secret true, item × secret."""
    values = target.grouping.summary.sensitive[secrets.attribute].values
    number = {value: i + 1 for i, value in enumerate(values)}
    codes = places.codes[secrets.attribute]
    columns = [np.isin(codes, [number[v] for v in members if v in number]) for members in secrets.sets]
    return np.stack(columns, axis=1) if columns else np.zeros((len(codes), 0), dtype=bool)


# --- what the method tells ----------------------------------------------------------------------------


def people_findings(
    target: Target, secrets: Sequence[Secrets], budget: WorldBudget
) -> tuple[list[Finding], dict[str, Any]]:
    """The worst belief in each column of somebody who knows the method."""
    if target.worlds_alike:
        known: dict[str, Any] = {"assumption": KNOWN_GROUP} if labels_repeat(target) else {}
        return [_as_owned(target, s) for s in secrets], known
    listed = explained_worlds(target, budget)
    if listed is not None:
        return [listed_finding(target, s, listed) for s in secrets], {"worlds": len(listed.weight)}
    drawn = drawn_worlds(target, secrets, budget)
    if drawn is None:
        raise ValueError("the method cannot be run again on other assignments of the values to people")
    more: dict[str, Any] = {
        "looked at": {
            "runs of the method": drawn.looked,
            "worlds kept": drawn.kept,
            "seconds": round(drawn.seconds, 2),
        }
    }
    if (assumption := known_only_in_part(target)) or labels_repeat(target):
        more["assumption"] = assumption or KNOWN_GROUP
    questions = sum(held.size for held in drawn.held)
    return [_drawn_finding(target, s, drawn, i, questions) for i, s in enumerate(secrets)], more


def _as_owned(target: Target, secrets: Secrets) -> Finding:
    """What the classes show of people with several rows: the method adds nothing."""
    belief, vulnerable = worst_person(target.grouping, secrets, belief_limit(target, secrets))
    return Finding(belief, "exact", vulnerable)


def listed_finding(target: Target, secrets: Secrets, listed: PeopleWorlds) -> Finding:
    """The worst belief in one column over listed worlds."""
    beliefs = listed.beliefs(items_inside(target, secrets, listed.places)[: listed.has.shape[2]])
    limit = belief_limit(target, secrets)
    found = [(b, p, s) for p, row in enumerate(beliefs) for s, b in enumerate(row)]
    if not found or not max(found)[0]:
        return Finding(NOTHING, "exact", 0)
    top, p, s = max(found, key=lambda x: (x[0], -x[1], -x[2]))
    why = (
        f"of the {len(listed.weight)} kinds of worlds in which the same is published, by their weight, this share has "
        f"{secrets.name(s + 1)} in some row of the person"
    )
    whom = somebody(target.grouping, int(listed.people[p]))
    vulnerable = sum(max(row, default=Fraction(0)) > limit for row in beliefs)
    kind: Kind = "exact" if listed.exactly else "bounded"
    return Finding(Belief(secrets.before(s + 1), top, whom, why), kind, vulnerable)


def _drawn_finding(
    target: Target, secrets: Secrets, drawn: DrawnWorlds, which: int, questions: int
) -> Finding:
    """The worst belief among kept worlds, with ends that hold for everybody at once; too few of them narrow nothing."""
    held, limit = drawn.held[which], belief_limit(target, secrets)
    before = max((secrets.before(s + 1) for s in range(len(secrets.sets))), default=Fraction(0))
    everybody = target.grouping.summary.n_people - dropped_people(target.grouping)
    if drawn.kept < FEW or not held.size:
        too_many = f"{len(secrets.sets):,} values of {everybody:,} people are too many to draw worlds of, and"
        why = (
            f"{secrets.attribute}: {too_many} nothing was narrowed down"
            if not drawn.looked
            else f"{secrets.attribute}: the method published the same in {drawn.kept} of {drawn.looked} worlds, too "
            "few to narrow down what it reveals about people with several rows"
        )
        return Finding(Belief(before, Fraction(1), "anybody", why), "bounded", everybody)
    share = held / drawn.kept
    trials = np.full(held.shape, float(drawn.kept))
    low, high = exact_interval(held.astype(np.float64), trials, RISK / max(1, questions))
    p, s = np.unravel_index(int(share.argmax()), share.shape)
    why = (
        f"of {drawn.kept} worlds in which the method publishes the same, {int(held[p, s])} have "
        f"{secrets.name(int(s) + 1)} in some row of the person"
    )
    belief = Belief(
        secrets.before(int(s) + 1), Fraction(int(held[p, s]), drawn.kept),
        somebody(target.grouping, int(drawn.people[p])), why, (float(low.max()), float(high.max())),
    )  # fmt: skip
    return Finding(belief, "sampled", int((high > float(limit)).any(axis=1).sum()))


def somebody(grouping: Grouping, person: int) -> str:
    """A person in words, by the number that the summary gives: how many rows of which class are theirs."""
    owned = OwnedRows.of(grouping)
    return person_in_words(grouping, owned, np.flatnonzero(owned.person == person).tolist())


# --- what facts tell ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FactFinding:
    """The worst belief with k facts about people: the belief, `exact` or `bounded`, the people above a bound, and the
    worst from facts of the form "p has not s", where it is known."""

    belief: Belief
    kind: str
    vulnerable: int
    negations: Fraction | None = None


def worst_people_facts(
    target: Target,
    secrets: Secrets,
    k: int,
    limit: Fraction,
    listed: PeopleWorlds | None,
    least: Fraction = Fraction(1),
) -> FactFinding:
    """The largest belief that k facts about people bring about: exactly in listed worlds, otherwise bounded.

    Args:
        target, secrets: the release and the column.
        k: how many facts.
        limit: above which people are counted.
        listed: the worlds; None: they are too many.
        least: the least share of all worlds that the method leaves.
    """
    if listed is not None:
        found = _exact_facts(target, secrets, k, limit, listed)
        if found is not None:
            return found
    return _bounded_facts(target, secrets, k, limit, least)


def _exact_facts(
    target: Target, secrets: Secrets, k: int, limit: Fraction, listed: PeopleWorlds
) -> FactFinding | None:
    values = target.grouping.summary.sensitive[secrets.attribute].values
    codes = listed.places.codes[secrets.attribute][: listed.has.shape[2]]
    held = np.stack([listed.has[:, :, codes == c].any(axis=2) for c in range(len(values) + 1)], axis=2)
    if sets_of_atoms(int(held.any(axis=0).sum()), k) > SETS:
        return None
    block = WorldBlock.of_people(held, listed.weight, 0, k)
    best = worst_facts([block], k)
    if best is None:
        return FactFinding(NOTHING, "exact", 0)
    atoms = [Atom(0, p, values[code - 1] if code else None) for p, code in best.atoms]
    named = list(dict.fromkeys(p for p, _ in best.atoms))
    words = [somebody(target.grouping, int(listed.people[p])) for p in named]
    names = {(0, p): f"person {i + 1} ({who})" for i, (p, who) in enumerate(zip(named, words, strict=True))}
    witness = Witness(atoms[0], tuple(atoms[1:]), best.belief, several=True)
    facts = f"somebody who knows {k} fact{'' if k == 1 else 's'}"
    belief = Belief(
        _before_facts(listed, held), best.belief, f"{names[0, atoms[0].person]}, and {facts}",
        f"{secrets.attribute}: {witness.in_words(names)}",
    )  # fmt: skip
    vulnerable = sum(1 / (1 + ratio) > limit for ratio in block.of_place.values())
    return FactFinding(belief, "exact" if listed.exactly else "bounded", vulnerable, block.negated[k])


def _before_facts(listed: PeopleWorlds, held: Bools) -> Fraction:
    """The largest belief in a value, missing left out, before any fact."""
    sums = np.tensordot(listed.weight, held[:, :, 1:].astype(np.int64), axes=(0, 0))
    return Fraction(int(sums.max(initial=0)), int(listed.weight.sum()))


def _bounded_facts(target: Target, secrets: Secrets, k: int, limit: Fraction, least: Fraction) -> FactFinding:
    """The bound by atoms about rows, for everybody."""
    grouping = target.grouping
    owned = OwnedRows.of(grouping)
    everybody = len(owned.first)
    most = int(np.bincount(owned.person, owned.rows).max(initial=1))
    shown, _ = worst_person(grouping, secrets, limit)
    atoms, upper = (k + 1) * most, Fraction(1)
    counts = grouping.row_counts(secrets.attribute)
    if (
        MOST_ATOMS >= atoms < _fewest_values(counts)
    ):  # otherwise all values of some class but one can be denied
        ratio = max_disclosure(counts, atoms - 1).ratios[atoms - 1]
        if ratio is None:
            return FactFinding(NOTHING, "exact", 0)
        upper = bound_when_left(ratio / most, least, k)
    facts = f"{k} fact{'' if k == 1 else 's'}"
    rows = "one row" if most == 1 else f"up to {most} rows"
    why = f"{secrets.attribute}: people have {rows}; {facts} about them amount to at most {atoms} about rows"
    if upper < 1:
        why += f", which bring the belief to at most {number_text(upper)}"
    else:
        why += ": what they reveal could not be narrowed down"
    belief = Belief(shown.after, upper, f"anybody, and somebody who knows {facts}", why)
    return FactFinding(belief, "bounded", everybody if upper > limit else 0)


def _fewest_values(counts: ValueCounts) -> int:
    """The fewest different values of a class in which none is missing; beyond MOST_ATOMS if there is none."""
    known = np.setdiff1d(np.unique(counts.owner), counts.owner[counts.codes == 0])
    different = np.bincount(counts.owner, minlength=counts.n_classes)[known]
    return int(different.min(initial=MOST_ATOMS + 1))
