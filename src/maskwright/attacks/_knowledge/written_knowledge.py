"""Beliefs of somebody who knows what a user wrote down: formulas, impossible pairs, or a Python predicate.

Exact where the worlds of the people named can be counted; otherwise worlds are drawn independently and the beliefs have
an interval. Knowledge that no world agrees with is reported as such.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from maskwright.attacks._knowledge.known_people import Scene, scene_of
from maskwright.attacks._shared.secrets import Secrets, secrets_of, threshold_of
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.worlds.statements.fact_beliefs import Fact, FactBeliefs, beliefs_given_facts
from maskwright.worlds.statements.language import Statements, Who

Predicate = Callable[[Mapping[str, Mapping[str, str | None]]], bool]
STEPS = 100_000  # of counting before worlds are drawn
CONTRADICTION = (
    "what is said to be known cannot be true of this release: no way to deal the published values agrees"
)


@dataclass(frozen=True)
class KnowledgeFindings:
    """The worst belief of somebody who knows all this, and the figures behind it."""

    worst: Belief
    kind: Literal["exact", "sampled", "bounded"]
    measures: dict[str, Any]


def beliefs_with_knowledge(
    target: Target, statements: Statements, predicate: Predicate | None, draws: int
) -> KnowledgeFindings:
    """Beliefs about everybody whom the knowledge touches."""
    scene = scene_of(target, statements, list(statements.names) if predicate is not None else ())
    facts = [fact for _, fact in scene.facts]
    if predicate is not None:
        facts.append(_asked(scene, predicate, list(statements.names)))
    found = beliefs_given_facts(scene.buckets, scene.kind_of, facts, STEPS, draws)
    measures: dict[str, Any] = {
        "knowing": [*(text for text, _ in scene.facts), *_bans(statements)],
        "consistent": found is not None,
    }
    if found is None:
        measures["contradiction"] = _first_contradiction(scene, facts)
        why = f"{CONTRADICTION} with {measures['contradiction']}"
        return KnowledgeFindings(Belief(Fraction(0), Fraction(0), "nobody", why), "exact", measures)
    if found.kept is not None:
        measures["worlds drawn"], measures["share of them that agrees"] = draws, found.kept
    rows = _rows(target, scene, found)
    measures["people"] = {row.whom: _table(rows, row.whom) for row in rows}
    measures["vulnerable_people"] = _vulnerable(target, scene, rows)
    kind: Literal["exact", "sampled", "bounded"] = "exact" if not found.half else "sampled"
    if found.kept == 0:
        kind = "bounded"
    return KnowledgeFindings(_worst(rows, found, draws), kind, measures)


def _asked(scene: Scene, predicate: Predicate, names: Sequence[str]) -> Fact:
    """A Python predicate as a fact: it is given name → column → value."""
    people = {name: scene.people[Who(name)] for name in names}

    def _holds(world: Mapping[Any, Any]) -> bool:
        values = {n: dict(zip(scene.columns, world[p], strict=True)) for n, p in people.items()}
        return bool(predicate(values))

    return Fact(tuple(people.values()), _holds)


def _bans(statements: Statements) -> list[str]:
    return [
        f"impossible({', '.join(f'{c}={v}' for c, v in conditions)})" for conditions in statements.impossible
    ]


def _first_contradiction(scene: Scene, facts: Sequence[Fact]) -> str:
    """The first statement with which no world is left."""
    texts = [*(f"«{text}»" for text, _ in scene.facts), "the predicate"]
    if beliefs_given_facts(scene.buckets, scene.kind_of, [], STEPS, 1) is None:
        return "what is declared impossible"
    for i in range(len(facts)):
        if beliefs_given_facts(scene.buckets, scene.kind_of, facts[: i + 1], STEPS, 200) is None:
            return texts[i] if i < len(scene.facts) else texts[-1]
    return "all of it together"


@dataclass(frozen=True)
class _PersonBelief:
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


def _rows(target: Target, scene: Scene, found: FactBeliefs) -> list[_PersonBelief]:
    """Every belief in every secret of the columns that the knowledge is about."""
    rows = []
    for s in secrets_of(target):
        if s.attribute not in scene.columns:
            continue
        at = scene.columns.index(s.attribute)
        for who, person in scene.people.items():
            rows += _of(
                s, at, str(who), 1, scene.buckets[person[0]].values, found.named.get(person), found.half
            )
        for (b, k), chances in found.others.items():
            named = sum(p[0] == b and scene.kind_of[p] == k for p in scene.people.values())
            people = scene.buckets[b].kinds[k][0] - named
            if people:
                others = "other " if named else ""
                count = f"the only {others}person" if people == 1 else f"each of the {people} {others}people"
                whom = f"{count} {scene.patterns[b][k]}"
                rows += _of(s, at, whom, people, scene.buckets[b].values, chances, found.half)
    return rows


def _of(
    secrets: Secrets, at: int, whom: str, people: int, values: Mapping[Any, int], chances: Any, half: float
) -> list[_PersonBelief]:
    size = sum(values.values())
    found = []
    for code, members in enumerate(secrets.sets, start=1):
        before = Fraction(sum(n for v, n in values.items() if v[at] in members), size)
        after = (
            before
            if chances is None
            else sum((p for v, p in chances.items() if v[at] in members), Fraction(0))
        )
        if before:
            found.append(
                _PersonBelief(whom, people, secrets.name(code), before, after, half, secrets.attribute)
            )
    return found


def _table(rows: Sequence[_PersonBelief], whom: str) -> dict[str, Any]:
    return {r.secret: {"before": r.before, "after": r.after} for r in rows if r.whom == whom}


def _vulnerable(target: Target, scene: Scene, rows: Sequence[_PersonBelief]) -> int:
    """People about whom some belief exceeds the policy's bound."""
    only = len(target.grouping.published_classes.sensitive) == 1
    bound = {c: threshold_of(target.models, c, only) for c in scene.columns}
    above = {(row.whom, row.people) for row in rows if row.upper() > bound[row.attribute]}
    return sum(people for _, people in above)


def _worst(rows: Sequence[_PersonBelief], found: FactBeliefs, draws: int) -> Belief:
    if not rows:
        return Belief(
            Fraction(0), Fraction(0), "nobody", "the knowledge concerns no sensitive value of the release"
        )
    row = max(rows, key=lambda r: (r.upper(), r.after, -r.before))
    interval = None
    if row.half:
        interval = max(0.0, float(row.after) - row.half), min(1.0, float(row.after) + row.half)
    why = f"{row.secret}: in the class {_percent(row.before)}, but not with what is known"
    if found.kept == 0:
        why += (
            f"; none of {draws} worlds that were drawn agrees with it: it is a contradiction, or too unlikely to be "
            "found by drawing"
        )
    elif found.kept is not None:
        why += f"; {draws} worlds were drawn, {_percent(found.kept)} of them agree with it"
    return Belief(row.before, row.after, row.whom, why, interval)


def _percent(share: Fraction) -> str:
    return f"{float(share):.1%}"
