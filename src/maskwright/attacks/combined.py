"""Combined: the most that anybody can believe who knows the method *and* k facts about other people.

What the method gives away leaves some of the possible worlds out; the facts are then the k that reveal most in those
that are left. Where worlds are few that is computed exactly (`worst_facts`); otherwise bounded, by how many of all
worlds are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from maskwright.attacks._minimality.refusals import part_in_words, raw_classes
from maskwright.attacks._minimality.replay import (
    Replayed,
    can_draw,
    can_replay,
    replay_assumption,
    replay_method,
    same_without_values,
)
from maskwright.attacks._people.linked_people import BY_VISITS, visits_known, worst_linked_facts
from maskwright.attacks._people.people_worlds import (
    dealt_worlds,
    drawn_worlds,
    explained_worlds,
    worst_people_facts,
)
from maskwright.attacks._shared.findings import belief_limit
from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
    accompanying_figures,
    dropped_people,
    people_in_words,
    secrets_of,
)
from maskwright.attacks._shared.timed import Timed
from maskwright.attacks.background_knowledge import is_bit, one_value_each, worst_case
from maskwright.attacks.minimality import searched_a_lattice
from maskwright.domain.adversary import About, Adversary, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.exact import number_text
from maskwright.kernels.max_disclosure import max_disclosure, measure_disclosure
from maskwright.worlds.sampling.belief_intervals import RISK, belief_intervals
from maskwright.worlds.sampling.world_sampler import Bools, WorldBudget
from maskwright.worlds.statements.disclosure import (
    SETS,
    Atom,
    Witness,
    WorldBlock,
    bound_when_left,
    worst_facts,
)

CELLS = 4_000_000  # people times worlds that are kept in memory


class Combined(Timed):
    """The largest belief of somebody who knows the method and k facts, with the worst facts in words."""

    name: ClassVar[str] = "combined"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"method", "facts"})

    def applies(self, target: Target) -> bool:
        """Whether the method is known, rows are people, and everybody has one value of each column."""
        grouping = target.grouping
        if target.method is None or grouping.changes is not None:
            return False
        classes = grouping.published_classes
        if not grouping.summary.rows_are_people:
            return bool(classes.sensitive) and not self.unable(target)
        return bool(classes.sensitive) and all(one_value_each(classes, name) for name in classes.sensitive)

    def unable(self, target: Target) -> str:
        """Why the attack cannot run on people who have several rows; otherwise nothing."""
        summary = target.grouping.summary
        if target.grouping.changes is not None and summary.sensitive and not summary.rows_are_people:
            return "people have several rows, and values were changed: facts about whose they are are not combined"
        if not summary.rows_are_people and any(is_bit(target, n) for n in summary.sensitive):
            return "people have several rows with sets of values, and facts about a value of a set are not combined"
        return super().unable(target)

    def sees_links(self, target: Target) -> bool:
        """It does: of people who are known by the classes of visits the method tells nothing more."""
        return True

    def suits(self, adversary: Adversary) -> bool:
        """Whether the adversary knows the method and some facts."""
        return adversary.knows_method and adversary.facts > 0

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief of somebody who knows the method and the worst k facts."""
        secrets, k = secrets_of(target), max(1, adversary.facts)
        measures: dict[str, Any] = {"facts": k, **accompanying_figures(target, secrets)}
        if visits_known(target):
            facts = {s.attribute: worst_linked_facts(target, s, k, belief_limit(target, s)) for s in secrets}
            found = {n: _ColumnFinding(f.belief, f.kind, f.vulnerable) for n, f in facts.items()}
            kind, knowing = "bounded", ADDS_NOTHING if target.worlds_alike else TWO
            if not target.worlds_alike:
                kind, measures["assumption"] = "estimated", BY_VISITS
        elif not target.grouping.summary.rows_are_people:
            found, kind, knowing = self._people(target, secrets, k)
        elif target.worlds_alike or (
            can_replay(target) and searched_a_lattice(target) and same_without_values(target)
        ):
            found = {s.attribute: _facts_alone(target, s, k) for s in secrets}
            kind, knowing = "exact", ADDS_NOTHING
        elif can_replay(target) and can_draw(target):
            kept = _KeptWorlds()
            replayed = replay_method(target, WorldBudget(self.draws, self.seconds), kept)
            found = {s.attribute: _on_top(target, s, replayed, kept, k) for s in secrets}
            exact = all(f.kind == "exact" for f in found.values())
            kind, knowing = "exact" if exact else "bounded", TWO
            assumption = replay_assumption(target)
            if assumption:
                kind, measures["assumption"] = "estimated", assumption
            measures["looked at"] = replayed.tally.report()
        else:
            found = {
                s.attribute: _ColumnFinding(
                    _anything(target, s, k, WHY_UNKNOWN), "bounded", int(s.sizes.sum())
                )
                for s in secrets
            }
            kind, knowing = "bounded", "the facts; what the method adds is not known"
        worst = max((f.belief for f in found.values()), key=lambda b: (b.after, -b.before))
        vulnerable = max(f.vulnerable for f in found.values())
        published = target.grouping.summary.n_people - dropped_people(target.grouping)
        measures |= {
            "knowing": knowing,
            "attributes": {name: f.as_measure() for name, f in found.items()},
            "vulnerable_people": vulnerable,
            "vulnerable_share": Fraction(vulnerable, published) if published else Fraction(0),
        }
        return Beliefs(self.name, adversary.name, kind, worst, measures)  # type: ignore[arg-type]

    def _people(
        self, target: Target, secrets: Sequence[Secrets], k: int
    ) -> tuple[dict[str, _ColumnFinding], str, str]:
        """Facts about people who have several rows, on top of what the method tells."""
        budget, least, knowing = WorldBudget(self.draws, self.seconds), Fraction(1), TWO
        if target.worlds_alike:
            listed, knowing = dealt_worlds(target), ADDS_NOTHING
        else:
            listed = explained_worlds(target, budget)
            drawn = None if listed is not None else drawn_worlds(target, secrets, budget)
            if listed is None:
                least = Fraction(0) if drawn is None else Fraction(drawn.least)
        found = {}
        for s in secrets:
            facts = worst_people_facts(target, s, k, belief_limit(target, s), listed, least)
            found[s.attribute] = _ColumnFinding(facts.belief, facts.kind, facts.vulnerable, facts.negations)
        exact = all(f.kind == "exact" for f in found.values())
        return found, "exact" if exact else "bounded", knowing


TWO = "the method and its parameters, and the facts"
ADDS_NOTHING = "no decision depended on values, so the method adds nothing to the facts"
WHY_UNKNOWN = "the method cannot be run again, so what it gives away is not known"


@dataclass(frozen=True)
class _ColumnFinding:
    """The worst belief about one column, and how many people are above the bound."""

    belief: Belief
    kind: str
    vulnerable: int
    negations: Fraction | None = None

    def as_measure(self) -> dict[str, Any]:
        """The finding as a figure of a report."""
        more = {} if self.negations is None else {"negations": self.negations}
        return {"worst": self.belief, "kind": self.kind, "vulnerable_people": self.vulnerable, **more}


class _KeptWorlds:
    """Collects the worlds that are kept, as long as they fit."""

    def __init__(self) -> None:
        self.worlds: list[Ints] = []
        self.good: list[Bools] = []

    def __call__(self, world: Ints, good: Bools) -> None:
        if good.any() and (len(self.worlds) + 1) * len(world) <= CELLS:
            self.worlds.append(world.copy())
            self.good.append(good.copy())


def _facts_alone(target: Target, secrets: Secrets, k: int) -> _ColumnFinding:
    """The method told nothing: maximum disclosure."""
    counts = target.grouping.published_classes.sensitive[secrets.attribute]
    disclosure = max_disclosure(counts, k)
    _, _, reached = measure_disclosure(counts, k, belief_limit(target, secrets))
    belief = worst_case(target.grouping, secrets.attribute, disclosure, k)
    return _ColumnFinding(belief, "exact", int(secrets.sizes[reached].sum()), disclosure.negations[k])


def _on_top(
    target: Target, secrets: Secrets, replayed: Replayed, kept: _KeptWorlds, k: int
) -> _ColumnFinding:
    """The worst facts in the worlds that are left: exactly where they were listed, otherwise bounded."""
    tally = replayed.tally
    if tally.listed.all() and len(kept.worlds) * len(tally.unit) < CELLS:
        found = _exactly(target, secrets, replayed, kept, k)
        if found is not None:
            return found
    return _bounded(target, secrets, replayed, k)


def _exactly(
    target: Target, secrets: Secrets, replayed: Replayed, kept: _KeptWorlds, k: int
) -> _ColumnFinding | None:
    _tally, space = replayed.tally, replayed.tally.space
    codes = replayed.places.codes[secrets.attribute]
    worlds, good = codes[np.array(kept.worlds)], np.array(kept.good)
    block_of_place = space.block[space.group]
    blocks, parts = [], []
    for b in range(space.n_blocks):
        places = np.flatnonzero(block_of_place == b)
        parts.append((worlds[good[:, b]][:, places], places))
    if sum(WorldBlock.sets(w, k) for w, _ in parts) > SETS:
        return None
    blocks = [WorldBlock(w, places, 0, k) for w, places in parts]
    best = worst_facts(blocks, k)
    counts = target.grouping.published_classes.sensitive[secrets.attribute]
    if best is None:
        return _ColumnFinding(NOTHING, "exact", 0)
    bound = belief_limit(target, secrets)
    vulnerable = sum(
        1 / (1 + ratio) > bound for block in blocks for ratio in block.of_place.values()
    )  # places are people
    before = max_disclosure(counts, 0).implications[0]
    witness, names = _in_words(replayed, counts, best.atoms, best.belief, target)
    first = best.atoms[0][0]
    whom = f"{names[int(replayed.places.group[first]), first]}, and somebody who knows the method and {_facts(k)}"
    belief = Belief(before, best.belief, whom, f"{secrets.attribute}: {witness.in_words(names)}")
    negations = max((block.negated[k] for block in blocks), default=Fraction(0))
    return _ColumnFinding(belief, "exact", vulnerable, negations)


def _in_words(
    replayed: Replayed,
    counts: ValueCounts,
    atoms: tuple[tuple[int, int], ...],
    belief: Fraction,
    target: Target,
) -> tuple[Witness, dict[tuple[int, int], str]]:
    """The facts, about people who are named by their quasi-identifiers."""
    raw, places = raw_classes(target.grouping, starred=True), replayed.places
    named, names = [], {}
    for place, code in atoms:
        group = int(places.group[place])
        named.append(Atom(group, place, counts.values[code - 1] if code else None))
        part = int(raw.class_of[places.tuples[place]])
        alike = np.flatnonzero(places.tuples == places.tuples[place]).tolist()
        who = part_in_words(target, raw, part)
        if len(alike) > 1:
            who = f"no. {alike.index(place) + 1} of {who.removeprefix('each of ')}"
        names[group, place] = who
    return Witness(named[0], tuple(named[1:]), belief), names


def _bounded(target: Target, secrets: Secrets, replayed: Replayed, k: int) -> _ColumnFinding:
    """At most what facts can do when no more than the share of worlds that are not kept is left out."""
    tally = replayed.tally
    least = np.sort(belief_intervals(tally, np.zeros((tally.space.n_items, 0), dtype=bool)).least)[: k + 1]
    chance = Fraction(float(np.prod(least)))  # atoms are about at most k + 1 blocks
    counts = _missing_as_a_value(target.grouping.published_classes.sensitive[secrets.attribute])
    ratio = max_disclosure(counts, k).ratios[k]
    if ratio is None:
        return _ColumnFinding(NOTHING, "exact", 0)
    upper = bound_when_left(ratio, chance, k)
    sure = "" if tally.listed.all() else f" ({1 - RISK:.0%} confidence)"
    why = (
        f"with {_facts(k)} alone the belief is {number_text(1 / (1 + ratio))}; the method leaves at least "
        f"{float(chance):.1%} of all worlds{sure}, which cannot raise it beyond this"
    )
    belief = _anything(target, secrets, k, why, upper)
    return _ColumnFinding(
        belief, "bounded", int(secrets.sizes.sum()) if upper > belief_limit(target, secrets) else 0
    )


def _missing_as_a_value(counts: ValueCounts) -> ValueCounts:
    """For a bound: as if "missing" could be learned like any value; what can be learned is then no less."""
    if not (counts.codes == 0).any():
        return counts
    return ValueCounts(
        ("missing", *counts.values), counts.start, counts.codes + 1, counts.counts, counts.ordered
    )


def _anything(target: Target, secrets: Secrets, k: int, why: str, upper: Fraction = Fraction(1)) -> Belief:
    """A bound for everybody; where it is 1 nothing was narrowed down."""
    counts = target.grouping.published_classes.sensitive[secrets.attribute]
    disclosure = max_disclosure(counts, k)
    witness = disclosure.witness(k)
    whom = "anybody"
    if witness is not None and upper < 1:
        whom = f"anybody, most likely {people_in_words(target.grouping, witness.target.bucket)}"
    if upper == 1:
        why += ": what the two reveal together could not be narrowed down"
    return Belief(disclosure.implications[0], upper, whom, f"{secrets.attribute}: {why}")


def _facts(k: int) -> str:
    return f"{k} fact{'' if k == 1 else 's'}"
