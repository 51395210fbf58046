"""Background knowledge: the most that anybody can believe who knows k facts besides the release [Martin et al. 2007].

A fact is an implication between the values of people: "if Hannah has flu, then Charlie has flu". "Ed has not mumps" is
one, too. Which facts somebody knows cannot be foreseen; how *many* can be limited. So the attack looks for the k facts
that reveal most, exactly, and says which they are.

Or it takes what a user wrote down: formulas, impossible pairs, or a Python predicate. Statements are looked up in the
release first: which class somebody is in, and what people there cannot have. Beliefs are exact where the worlds of the
people named can be counted; otherwise worlds are drawn independently and the beliefs have an interval. Knowledge that
no world agrees with is reported as such.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from maskwright.attacks._people.linked_people import visits_known, worst_linked_facts
from maskwright.attacks._people.people_knowledge import (
    PeopleInBuckets,
    PersonBelief,
    Place,
    rows_of_somebody,
    values_of_rows,
)
from maskwright.attacks._people.people_worlds import dealt_worlds, worst_people_facts
from maskwright.attacks._shared.original_classes import cells_of
from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
    accompanying_figures,
    columns_of,
    dropped_people,
    in_words,
    people_in_words,
    secrets_of,
    threshold_of,
)
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Classes
from maskwright.domain.grouping import Grouping
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.segments import class_sums
from maskwright.domain.settings import did_you_mean
from maskwright.domain.value_sets import BIT_VALUES
from maskwright.errors import UsageError
from maskwright.kernels.max_disclosure import max_disclosure, measure_disclosure
from maskwright.worlds.statements.disclosure import Disclosure, Witness
from maskwright.worlds.statements.fact_beliefs import (
    Fact,
    FactBeliefs,
    Person,
    RestrictedBucket,
    beliefs_given_facts,
)
from maskwright.worlds.statements.language import Conditions, Statements, Who, parse_statements, people_of
from maskwright.worlds.statements.language import columns_of as named_columns

TAUTOLOGY = "the same facts reveal as much about the whole table without the release"
NOT_PROTECTED = "it is about a value that the policy does not protect"


def is_bit(target: Target, attribute: str) -> bool:
    """Whether it is a bit of a multi-valued column: one fact settles it, and facts about others add nothing."""
    return (
        target.grouping.summary.sensitive[attribute].values == BIT_VALUES
        and attribute in target.context.flagged
    )


class BackgroundKnowledge(Attack):
    """The largest belief that k facts about other people's values can bring about, with the worst facts in words.

    With `knowing` (and `predicate`) it is the belief given exactly that.

    Attributes:
        most: how far the curve goes, in facts; further when the adversary knows more.
        knowing: statements about people that somebody knows to be true (see the page of this attack).
        predicate: a Python function of name → column → value for the people that `knowing` declares; True where the
            values agree with what is known.
        draws: how many worlds are drawn where they cannot be counted.
    """

    name: ClassVar[str] = "background-knowledge"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"facts"})

    most: int = Field(default=5, ge=0, le=100)
    knowing: tuple[str, ...] = ()
    predicate: Predicate | None = Field(default=None, exclude=True)
    draws: int = Field(default=20_000, ge=100, le=10_000_000)

    def applies(self, target: Target) -> bool:
        """Whether everybody has one value of some column that is not a bit of a set."""
        if not target.grouping.summary.rows_are_people:
            return bool(_columns_of_people(target)) and not self.unable(target)
        classes = target.grouping.published_classes
        return any(one_value_each(classes, n) and not is_bit(target, n) for n in columns_of(target))

    def unable(self, target: Target) -> str:
        """Why written knowledge cannot be weighed: values of people with several rows were changed."""
        written = bool(self.knowing or self.predicate)
        if written and not target.grouping.summary.rows_are_people and target.grouping.changes is not None:
            return "people have several rows, and values were changed: it is not known which value is whose"
        return super().unable(target)

    def sees_links(self, target: Target) -> bool:
        """Whether it is about k facts, and not about what is written."""
        return not (self.knowing or self.predicate)

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief given the written knowledge, or given the worst k facts."""
        secrets = secrets_of(target)
        if not (self.knowing or self.predicate or target.grouping.summary.rows_are_people):
            return self._people_curve(target, adversary, secrets)
        if self.knowing or self.predicate is not None:
            found = beliefs_with_knowledge(
                target, parse_statements("\n".join(self.knowing)), self.predicate, self.draws
            )
            return Beliefs(
                self.name,
                adversary.name,
                found.kind,
                found.worst,
                found.measures | accompanying_figures(target, secrets),
            )
        return self._curve(target, adversary, secrets)

    def _curve(self, target: Target, adversary: Adversary, secrets: Sequence[Secrets]) -> Beliefs:
        k = adversary.facts or 1
        attacked = [s for s in secrets if not s.several and not is_bit(target, s.attribute)]
        columns = {s.attribute: self._column(target, s, k, len(secrets) == 1) for s in attacked}
        first = max(columns.values(), key=lambda m: (not m["idle"], m["worst"].after, -m["worst"].before))
        worst = first["worst"]
        return Beliefs(
            self.name, adversary.name, "exact", worst,
            {
                "facts": k,
                **({"idle": first["idle"]} if first["idle"] else {}),
                "attributes": columns,
                "not_attacked": [s.attribute for s in secrets if s not in attacked],
                **accompanying_figures(target, secrets),
            },
        )  # fmt: skip

    def _people_curve(self, target: Target, adversary: Adversary, secrets: Sequence[Secrets]) -> Beliefs:
        """Facts about people who have several rows: exactly where worlds are few, otherwise bounded."""
        k, linked = adversary.facts or 1, visits_known(target)
        listed = None if linked else dealt_worlds(target)
        columns: dict[str, dict[str, Any]] = {}
        kinds = set()
        for s in secrets:
            if is_bit(target, s.attribute):
                continue
            threshold = threshold_of(target.models, s.attribute, len(secrets) == 1)
            found = (
                worst_linked_facts(target, s, k, threshold)
                if linked
                else worst_people_facts(target, s, k, threshold, listed)
            )
            kinds.add(found.kind)
            published = max(1, target.grouping.summary.n_people - dropped_people(target.grouping))
            columns[s.attribute] = {
                "worst": found.belief, "kind": found.kind, "threshold": threshold,
                "vulnerable_people": found.vulnerable, "vulnerable_share": Fraction(found.vulnerable, published),
            }  # fmt: skip
        worst = max((m["worst"] for m in columns.values()), key=lambda b: (b.after, -b.before))
        return Beliefs(
            self.name, adversary.name, "exact" if kinds == {"exact"} else "bounded", worst,
            {
                "facts": k,
                "attributes": columns,
                "not_attacked": [s.attribute for s in secrets if s.attribute not in columns],
                **accompanying_figures(target, secrets),
            },
        )  # fmt: skip

    def _column(self, target: Target, secrets: Secrets, k: int, only: bool) -> dict[str, Any]:
        """The curve of one sensitive column, and the worst case for k facts."""
        grouping = target.grouping
        counts = grouping.published_classes.sensitive[secrets.attribute]
        threshold = threshold_of(target.models, secrets.attribute, only)
        disclosure = max_disclosure(counts, max(self.most, k))
        _, _, reached = measure_disclosure(counts, k, threshold)
        vulnerable, published = int(secrets.sizes[reached].sum()), int(secrets.sizes.sum())
        curve, witness = disclosure.implications, disclosure.witness(k)
        flagged = {value for members in secrets.sets for value in members}
        told = witness is not None and witness.target.value in flagged
        alone = max_disclosure(grouping.summary.totals().sensitive[secrets.attribute], k).implications[k]
        return {
            "idle": TAUTOLOGY if alone >= curve[k] else "" if told else NOT_PROTECTED,
            "worst": worst_case(grouping, secrets.attribute, disclosure, k),
            "implications": list(curve),
            "negations": list(disclosure.negations),
            "certain_from": next((n for n, belief in enumerate(curve) if belief == 1), None),
            "threshold": threshold,
            "whole_table": alone,
            "vulnerable_people": vulnerable,
            "vulnerable_share": Fraction(vulnerable, published) if published else Fraction(0),
            "classes": {} if witness is None else {b + 1: in_words(grouping, b) for b in witness.buckets},
            "flagged": told,
            "values_not_flagged": secrets.values_not_flagged,
        }


def _columns_of_people(target: Target) -> list[str]:
    """The columns of which a row has one value, where people have several rows."""
    return [n for n in columns_of(target) if not is_bit(target, n)]


def one_value_each(classes: Classes, attribute: str) -> bool:
    """Whether everybody has one value of this column, or a missing one; facts about sets are another matter."""
    counts = classes.sensitive[attribute]
    return bool((class_sums(counts.counts, counts.start) == classes.sizes).all())


def worst_case(grouping: Grouping, attribute: str, disclosure: Disclosure, k: int) -> Belief:
    """The largest belief with k facts; before them, the largest with none."""
    witness = disclosure.witness(k)
    if witness is None:
        return NOTHING
    bucket = witness.target.bucket
    facts = f"who knows {k} fact{'' if k == 1 else 's'}"
    return Belief(
        before=disclosure.implications[0],
        after=disclosure.implications[k],
        whom=f"{people_in_words(grouping, bucket)} (class {bucket + 1}) and somebody {facts}",
        why=f"{attribute}: {witness.in_words(_witness_names(witness))}",
    )


def _witness_names(witness: Witness) -> dict[tuple[int, int], str]:
    """The people of a witness in words: "a person of class 3"; further ones of a class are numbered."""
    result = {}
    for atom in (witness.target, *witness.antecedents):
        who = "a person" if atom.person == 0 else f"person no. {atom.person + 1}"
        result[atom.bucket, atom.person] = f"{who} of class {atom.bucket + 1}"
    return result


Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scene:
    """A release as somebody with knowledge sees it.

    Attributes:
        columns: the sensitive columns that the knowledge is about; a value is a tuple of theirs.
        groups: the published group of each bucket.
        buckets: values and kinds of people of those groups.
        patterns: per bucket and kind, the quasi-identifiers that make it (for words).
        people: whom the statements name, with the place of each of their rows.
        kind_of: the kind of each place.
        numbers: the numbers of people with several rows in the summary.
        facts: what is known, with its words.
    """

    columns: list[str]
    groups: list[int]
    buckets: list[RestrictedBucket]
    patterns: list[list[str]]
    people: dict[Who, tuple[Person, ...]]
    kind_of: dict[Person, int]
    facts: list[tuple[str, Fact]]
    numbers: dict[Who, int]


def scene_of(target: Target, statements: Statements, more: Sequence[str] = ()) -> Scene:
    """Look everything up; `more` are names that a predicate asks about, all sensitive columns with them."""
    grouping = target.grouping
    sensitive = list(grouping.published_classes.sensitive)
    columns = list(sensitive) if more else named_columns(statements)
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
    alone = grouping.summary.rows_are_people
    where = {who: _whereabouts(grouping, who, statements.names, bans) for who in named}
    groups = sorted({g for places, _ in where.values() for g, _ in places} | set(_touched(grouping, bans)))
    held = _values_of(target, columns) if alone else values_of_rows(target, columns)
    found = Scene(columns, groups, [], [], {}, {}, [], {})
    crowds = _people_of_groups(grouping, groups, bans)
    for group, crowd in zip(groups, crowds, strict=True):
        _add_bucket(found, grouping, group, held(group), crowd, bans)
    for who in named:
        if alone:
            at = groups.index(where[who][0][0][0])
            _place(found, grouping, who, at, crowds[at], statements.names)
        else:
            _place_rows(found, who, where[who], crowds, statements.names)
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


def _whereabouts(
    grouping: Grouping, who: Who, names: Mapping[str, Conditions], bans: Sequence[Ban]
) -> tuple[list[Place], list[int]]:
    """The group of somebody's row, or the groups of all of them; then also the people who may be meant."""
    if grouping.summary.rows_are_people:
        return [(_group_of(grouping, who, names), None)], []
    conditions = names[who.name] if who.name is not None else who.conditions
    text = ", ".join(f"{c}={v}" for c, v in conditions)
    matching = _matching(grouping, conditions, str(who))
    return rows_of_somebody(
        grouping, matching, str(who), text, lambda t: tuple(bool(banned[t]) for banned, _, _ in bans)
    )


def _place_rows(
    scene: Scene,
    who: Who,
    whereabouts: tuple[list[Place], list[int]],
    crowds: Sequence[_PeopleOfGroup],
    names: Mapping[str, Conditions],
) -> None:
    """Give each row of somebody a place in its bucket."""
    places, meant = whereabouts
    left = [number for number in meant if number not in scene.numbers.values()]
    if not left:
        conditions = names[who.name] if who.name is not None else who.conditions
        text = ", ".join(f"{c}={v}" for c, v in conditions)
        raise UsageError(f"{who}: more people with {text} are named than there are")
    scene.numbers[who] = left[0]
    mine = list[Person]()
    for group, pattern in places:
        bucket = scene.groups.index(group)
        mine.append((bucket, sum(p[0] == bucket for p in scene.kind_of)))
        scene.kind_of[mine[-1]] = crowds[bucket].kinds().index(pattern)
    scene.people[who] = tuple(mine)


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
            else f"{who}: people with {text} were published in {len(groups)} classes, and which row is whose is not "
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
    person = bucket, sum(p[0] == bucket for p in scene.kind_of)
    alike = sum(p[0] == bucket and k == kind for p, k in scene.kind_of.items())
    if len(same) >= sum(crowd.rows[i] for i in mine) or alike >= scene.buckets[bucket].kinds[kind][0]:
        raise UsageError(f"{who}: more people with {text} are named than there are")
    scene.people[who] = (person,)
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
            (atom.who, atom.column): [_part(world[row], place[atom.column]) for row in people[atom.who]]
            for atom in formula.atoms()
        }
        return bool(formula.true(values))

    mentions = None
    if len(scene.columns) == 1:
        mentions = frozenset((v,) for atom in formula.atoms() for v in atom.values)
    return Fact(tuple(row for rows in people.values() for row in rows), _holds, mentions)


class _Unsaid:
    """A value that no statement speaks of."""


UNSAID: Any = _Unsaid()


def _part(value: Any, at: int) -> Any:
    """One column of a value; all values that no statement mentions are one, which is not among those mentioned."""
    return value[at] if isinstance(value, tuple) else UNSAID


Predicate = Callable[[Mapping[str, Mapping[str, str | None]]], bool]
STEPS = 100_000  # of counting before worlds are drawn
CONTRADICTION = (
    "the stated knowledge cannot be true of this release: no assignment of its values agrees with it"
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
    alone = target.grouping.summary.rows_are_people
    if predicate is not None:
        facts.append(_asked(scene, predicate, list(statements.names), alone))
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
    rows, vulnerable, counted = _rows(target, scene, found), 0, True
    if alone:
        vulnerable = _vulnerable(target, scene, rows)
    else:
        bounds = _bounds(target, scene)
        rows, vulnerable, counted = _with_several_rows(target, scene, statements, facts, draws).beliefs(
            found, bounds
        )
    measures["people"] = {row.whom: _table(rows, row.whom) for row in rows}
    measures["vulnerable_people"] = vulnerable
    kind: Literal["exact", "sampled", "bounded"] = "sampled" if any(row.half for row in rows) else "exact"
    if found.kept == 0 or not counted:
        kind = "bounded"
    return KnowledgeFindings(_worst(rows, found, draws), kind, measures)


def _with_several_rows(
    target: Target, scene: Scene, statements: Statements, facts: Sequence[Fact], draws: int
) -> PeopleInBuckets:
    """The scene for beliefs about some row of a person."""
    bans = [_ban(target.grouping, conditions) for conditions in statements.impossible]
    kinds = [crowd.kinds() for crowd in _people_of_groups(target.grouping, scene.groups, bans)]
    named = {str(who): (scene.numbers[who], rows) for who, rows in scene.people.items()}
    return PeopleInBuckets(
        target, scene.columns, scene.groups, scene.buckets, named, scene.kind_of,
        lambda bucket, t: kinds[bucket].index(tuple(bool(banned[t]) for banned, _, _ in bans)), facts, draws,
    )  # fmt: skip


def _asked(scene: Scene, predicate: Predicate, names: Sequence[str], alone: bool) -> Fact:
    """A Python predicate as a fact: it is given name → column → value, or the values of all rows of a person."""
    people = {name: scene.people[Who(name)] for name in names}

    def _holds(world: Mapping[Any, Any]) -> bool:
        values: dict[str, dict[str, Any]] = {}
        for n, rows in people.items():
            by_column = dict(zip(scene.columns, zip(*(world[row] for row in rows), strict=True), strict=True))
            values[n] = {c: held[0] if alone else held for c, held in by_column.items()}
        return bool(predicate(values))

    return Fact(tuple(row for rows in people.values() for row in rows), _holds)


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


def _rows(target: Target, scene: Scene, found: FactBeliefs) -> list[PersonBelief]:
    """Every belief in every secret of the columns that the knowledge is about."""
    rows = []
    for s in secrets_of(target):
        if s.attribute not in scene.columns:
            continue
        at = scene.columns.index(s.attribute)
        for who, (person, *_) in scene.people.items():
            rows += _of(
                s, at, str(who), 1, scene.buckets[person[0]].values, found.named.get(person), found.half
            )
        for (b, k), chances in found.others.items():
            named = sum(p[0] == b and kind == k for p, kind in scene.kind_of.items())
            people = scene.buckets[b].kinds[k][0] - named
            if people:
                others = "other " if named else ""
                count = f"the only {others}person" if people == 1 else f"each of the {people} {others}people"
                whom = f"{count} {scene.patterns[b][k]}"
                rows += _of(s, at, whom, people, scene.buckets[b].values, chances, found.half)
    return rows


def _of(
    secrets: Secrets, at: int, whom: str, people: int, values: Mapping[Any, int], chances: Any, half: float
) -> list[PersonBelief]:
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
                PersonBelief(whom, people, secrets.name(code), before, after, half, secrets.attribute)
            )
    return found


def _table(rows: Sequence[PersonBelief], whom: str) -> dict[str, Any]:
    return {r.secret: {"before": r.before, "after": r.after} for r in rows if r.whom == whom}


def _bounds(target: Target, scene: Scene) -> dict[str, Fraction]:
    """The belief that the policy allows about each column."""
    only = len(target.grouping.published_classes.sensitive) == 1
    return {c: threshold_of(target.models, c, only) for c in scene.columns}


def _vulnerable(target: Target, scene: Scene, rows: Sequence[PersonBelief]) -> int:
    """People about whom some belief exceeds the policy's bound."""
    bound = _bounds(target, scene)
    above = {(row.whom, row.people) for row in rows if row.upper() > bound[row.attribute]}
    return sum(people for _, people in above)


def _worst(rows: Sequence[PersonBelief], found: FactBeliefs, draws: int) -> Belief:
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
