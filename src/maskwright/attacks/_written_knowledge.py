"""Beliefs of somebody who knows what a user wrote down: formulas, impossible pairs, or a Python predicate.

Exact where the worlds of the people named can be counted; otherwise worlds are drawn independently and the beliefs have
an interval. Knowledge that no world agrees with is reported as such.

Statements are looked up in the release first: which class somebody is in, and what people there cannot have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._shared.original_classes import cells_of
from maskwright.attacks._shared.secrets import Secrets, in_words, secrets_of, threshold_of
from maskwright.domain.adversary import Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.grouping import Grouping
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.settings import did_you_mean
from maskwright.errors import UsageError
from maskwright.worlds.statements.fact_beliefs import (
    Fact,
    FactBeliefs,
    Person,
    RestrictedBucket,
    beliefs_given_facts,
)
from maskwright.worlds.statements.language import Conditions, Statements, Who, columns_of, people_of

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scene:
    """A release as somebody with knowledge sees it.

    Attributes:
        columns: the sensitive columns that the knowledge is about; a value is a tuple of theirs.
        groups: the published group of each bucket.
        buckets: values and kinds of people of those groups.
        patterns: per bucket and kind, the quasi-identifiers that make it (for words).
        people: whom the statements name.
        kind_of: the kind of each of them.
        facts: what is known, with its words.
    """

    columns: list[str]
    groups: list[int]
    buckets: list[RestrictedBucket]
    patterns: list[list[str]]
    people: dict[Who, Person]
    kind_of: dict[Person, int]
    facts: list[tuple[str, Fact]]


def scene_of(target: Target, statements: Statements, more: Sequence[str] = ()) -> Scene:
    """Look everything up; `more` are names that a predicate asks about, all sensitive columns with them."""
    grouping = target.grouping
    if not grouping.summary.rows_are_people:
        raise UsageError("knowledge about people who have several rows is not supported")
    sensitive = list(grouping.published_classes.sensitive)
    columns = list(sensitive) if more else columns_of(statements)
    bans = [_ban(grouping, conditions) for conditions in statements.impossible]
    columns = list(dict.fromkeys([*columns, *(column for _, column, _ in bans)]))
    for column in columns:
        if column not in sensitive:
            raise UsageError(
                f"knowledge: there is no sensitive column {column!r}; {did_you_mean(column, sensitive)}"
            )
    _refuse_unknown_values(grouping, statements)
    named = list(dict.fromkeys([who for _, f in statements.formulas for who in people_of(f)]))
    named += [Who(name) for name in more if Who(name) not in named]
    where = {who: _group_of(grouping, who, statements.names) for who in named}
    groups = sorted(set(where.values()) | set(_touched(grouping, bans)))
    held = _values_of(target, columns)
    found = Scene(columns, groups, [], [], {}, {}, [])
    crowds = _people_of_groups(grouping, groups, bans)
    for group, crowd in zip(groups, crowds, strict=True):
        _add_bucket(found, grouping, group, held(group), crowd, bans)
    for who in named:
        at = groups.index(where[who])
        _place(found, grouping, who, at, crowds[at], statements.names)
    for text, formula in statements.formulas:
        found.facts.append((text, _fact(found, formula)))
    return found


Ban = tuple[Bools, str, str | None]  # tuples, the column, and the value that they cannot have


def _ban(grouping: Grouping, conditions: Conditions) -> Ban:
    """The tuples that cannot have a value, the column and the value, of `impossible(…)`."""
    mine = dict(conditions)
    about = [c for c in mine if c in grouping.published_classes.sensitive]
    if len(about) != 1 or len(mine) < 2:
        raise UsageError(
            f"impossible({', '.join(mine)}): name quasi-identifiers and exactly one sensitive column, as in "
            'impossible(sex=male, disease="ovarian cancer")'
        )
    column, value = about[0], mine.pop(about[0])
    values = grouping.published_classes.sensitive[column].values
    if value is not None and value not in values:
        raise UsageError(f"impossible: {column!r} has no value {value!r}; {did_you_mean(value, values)}")
    return _matching(grouping, tuple(mine.items()), "impossible"), column, value


def _matching(grouping: Grouping, conditions: Conditions, what: str) -> Bools:
    """The tuples with these quasi-identifiers."""
    summary = grouping.summary
    names = [h.attribute for h in summary.attributes]
    found = np.ones(summary.n_tuples, dtype=bool)
    for column, value in conditions:
        if column not in names:
            raise UsageError(
                f"{what}: there is no quasi-identifier {column!r}; {did_you_mean(column, names)}"
            )
        at = names.index(column)
        hierarchy: Hierarchy = summary.attributes[at]
        if value is not None and value not in hierarchy.values:
            found[:] = False
        else:
            code = 0 if value is None else hierarchy.values.index(value) + 1
            found &= summary.codes[at] == code
    return found


def _group_of(grouping: Grouping, who: Who, names: Mapping[str, Conditions]) -> int:
    """The only group that somebody can be in."""
    conditions = names[who.name] if who.name is not None else who.conditions
    tuples = np.flatnonzero(_matching(grouping, conditions, str(who)))
    text = ", ".join(f"{c}={v}" for c, v in conditions)
    allocation = grouping.allocation
    groups = np.unique(allocation.groups[np.isin(allocation.tuples, tuples)])
    if not len(groups):
        raise UsageError(f"{who}: nobody in the table has {text}")
    if len(groups) > 1:
        raise UsageError(
            f"{who}: people with {text} were published in {len(groups)} classes; give more quasi-identifiers"
            if len(tuples) > 1
            else f"{who}: people with {text} were published in {len(groups)} classes, and whose row is where is not "
            "known: the release was recoded locally"
        )
    if groups[0] < 0:
        raise UsageError(f"{who}: people with {text} were dropped; the release says nothing about them")
    return int(groups[0])


def _touched(grouping: Grouping, bans: Sequence[Ban]) -> list[int]:
    """The groups in which a ban excludes anything: somebody cannot have a value that the group holds."""
    allocation, found = grouping.allocation, set[int]()
    for tuples, column, value in bans:
        counts = grouping.published_classes.sensitive[column]
        code = 0 if value is None else counts.values.index(value) + 1
        holding = np.zeros(counts.n_classes + 1, dtype=bool)  # the last: rows that were dropped
        holding[counts.owner[counts.codes == code]] = True
        mine = allocation.groups[tuples[allocation.tuples]]
        found |= set(mine[holding[mine]].tolist())
    return sorted(found - {-1})


def _values_of(target: Target, columns: Sequence[str]) -> Any:
    """The function from a group to its values with their numbers; a value is a tuple, one entry per column."""
    classes = target.grouping.published_classes
    if len(columns) == 1:
        counts = classes.sensitive[columns[0]]
        return lambda group: {(v,): n for v, n in counts.of_class(group).items()}
    cells = cells_of(target)
    if columns and (cells is None or target.grouping.changes is not None):
        raise UsageError(
            "knowledge about several sensitive columns needs to know which values belong to one row"
        )

    def _held(group: int) -> dict[tuple[str | None, ...], int]:
        found: dict[tuple[str | None, ...], int] = {}
        if cells is None:
            return {(): int(classes.sizes[group])}
        for c in np.flatnonzero(cells.groups == group).tolist():
            codes = [int(cells.codes[name][cells.items[c]]) for name in columns]
            pairs = zip(columns, codes, strict=True)
            key = tuple(classes.sensitive[n].values[code - 1] if code else None for n, code in pairs)
            found[key] = found.get(key, 0) + int(cells.rows[c])
        return found

    return _held


Pattern = tuple[bool, ...]  # which bans concern somebody


@dataclass(frozen=True, eq=False)
class _PeopleOfGroup:
    """The people of one group: rows of each tuple in it, and which bans concern them."""

    tuples: list[int]
    rows: list[int]
    patterns: list[Pattern]

    def kinds(self) -> list[Pattern]:
        """The different patterns of bans, in order."""
        return sorted(set(self.patterns))


def _people_of_groups(grouping: Grouping, groups: Sequence[int], bans: Sequence[Ban]) -> list[_PeopleOfGroup]:
    allocation = grouping.allocation
    order = np.argsort(allocation.groups, kind="stable")
    start = np.searchsorted(allocation.groups[order], groups)
    end = np.searchsorted(allocation.groups[order], groups, side="right")
    found = []
    for a, b in zip(start.tolist(), end.tolist(), strict=True):
        tuples = allocation.tuples[order[a:b]].tolist()
        patterns = [tuple(bool(banned[t]) for banned, _, _ in bans) for t in tuples]
        found.append(_PeopleOfGroup(tuples, allocation.rows[order[a:b]].tolist(), patterns))
    return found


def _add_bucket(
    scene: Scene, grouping: Grouping, group: int, values: Any, crowd: _PeopleOfGroup, bans: Sequence[Ban]
) -> None:
    people = dict.fromkeys(crowd.kinds(), 0)
    for pattern, rows in zip(crowd.patterns, crowd.rows, strict=True):
        people[pattern] += rows
    scene.buckets.append(
        RestrictedBucket(values, [(n, _denied(scene, values, key, bans)) for key, n in people.items()])
    )
    scene.patterns.append([_words(grouping, group, key, bans) for key in people])


def _denied(scene: Scene, values: Any, key: Pattern, bans: Sequence[Ban]) -> frozenset[Any]:
    """The values that people of this pattern cannot have."""
    banned = [(scene.columns.index(c), v) for yes, (_, c, v) in zip(key, bans, strict=True) if yes]
    return frozenset(value for value in values if any(value[i] == v for i, v in banned))


def _words(grouping: Grouping, group: int, key: Pattern, bans: Sequence[Ban]) -> str:
    cannot = [f"{c} {v}" for yes, (_, c, v) in zip(key, bans, strict=True) if yes]
    can = [f"{c} {v}" for yes, (_, c, v) in zip(key, bans, strict=True) if not yes]
    extra = f" who cannot have {' or '.join(cannot)}" if cannot else ""
    if can and not cannot:
        extra = f" who can have {' and '.join(can)}"
    return f"with {in_words(grouping, group)}{extra}"


def _place(
    scene: Scene,
    grouping: Grouping,
    who: Who,
    bucket: int,
    crowd: _PeopleOfGroup,
    names: Mapping[str, Conditions],
) -> None:
    """Give somebody a place in the bucket, among people of the right kind."""
    conditions = names[who.name] if who.name is not None else who.conditions
    text = ", ".join(f"{c}={v}" for c, v in conditions)
    matching = _matching(grouping, conditions, str(who))
    mine = [i for i, t in enumerate(crowd.tuples) if matching[t]]
    patterns = {crowd.patterns[i] for i in mine}
    if len(patterns) > 1:
        raise UsageError(
            f"{who}: give more quasi-identifiers: what is impossible differs among people with {text}"
        )
    kind = crowd.kinds().index(patterns.pop())
    same = [w for w in scene.people if dict(names.get(w.name or "", w.conditions)) == dict(conditions)]
    person = bucket, sum(p[0] == bucket for p in scene.people.values())
    alike = sum(p[0] == bucket and k == kind for p, k in scene.kind_of.items())
    if len(same) >= sum(crowd.rows[i] for i in mine) or alike >= scene.buckets[bucket].kinds[kind][0]:
        raise UsageError(f"{who}: more people with {text} are named than there are")
    scene.people[who] = person
    scene.kind_of[person] = kind


def _refuse_unknown_values(grouping: Grouping, statements: Statements) -> None:
    """A misspelt value would be true of nobody, and silently change what is known."""
    for _, formula in statements.formulas:
        for atom in formula.atoms():
            counts = grouping.published_classes.sensitive.get(atom.column)
            for value in atom.values:
                if counts is not None and value is not None and value not in counts.values:
                    raise UsageError(
                        f"knowledge: {atom.column!r} has no value {value!r}; {did_you_mean(value, counts.values)}"
                    )


def _fact(scene: Scene, formula: Any) -> Fact:
    people = {who: scene.people[who] for who in people_of(formula)}
    place = {column: i for i, column in enumerate(scene.columns)}

    def _holds(world: Mapping[Person, Any]) -> bool:
        values = {
            (atom.who, atom.column): _part(world[people[atom.who]], place[atom.column])
            for atom in formula.atoms()
        }
        return bool(formula.true(values))

    mentions = None
    if len(scene.columns) == 1:
        mentions = frozenset((v,) for atom in formula.atoms() for v in atom.values)
    return Fact(tuple(people.values()), _holds, mentions)


class _Unsaid:
    """A value that no statement speaks of."""


UNSAID: Any = _Unsaid()


def _part(value: Any, at: int) -> Any:
    """One column of a value; all values that no statement mentions are one, which is not among those mentioned."""
    return value[at] if isinstance(value, tuple) else UNSAID


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
