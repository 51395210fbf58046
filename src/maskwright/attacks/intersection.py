"""Intersection: several tables about the same people, put together [CODIP; (X,Y)-linkability, Wang, Fung 2006].

Tables with different sensitive attributes are independent: the belief in a combination is the product, and about one
attribute nothing is gained. The same attribute under two groupings is another matter: each class is a constraint, and
together they can single out everybody's value. Nor are the values of one set in different tables independent.

Releases may be about *overlapping* people [Ganta et al. 2008]: who is in which is known by a list, or people with
the same quasi-identifiers are taken for the same, as many as there can be. What a class holds besides goes to its other
people.

Quasi-identifiers are known, so people with the same ones are alike. Where a method split them over several groups, it
is only known how many went where, table by table; whoever is in one group here and another there is still one person.
What is believed of such people is the mean over all ways to pair them (`_joins`).

*The values of one set in different tables.* How many values a set holds can be enough to put the tables together.
Beliefs about attributes of different tables are independent, but the bits of a multi-valued column are not when it is
known that nobody's set is empty, or that none holds more than so many values (docs/attacks/intersection.md, D-2).

*Restoring the correspondence of rows*: which row of one table is about the same person as which row of another? For
whoever knows all quasi-identifiers, a row of class c is equally likely about each of its n(c) people, so two rows of
classes c and d are about the same person with probability N(c, d) / (n(c)·n(d)), where N(c, d) people are in both.

*One sensitive attribute in several tables with different groups*: every class narrows down what is possible. People in
the same class of every table are a *cell*. Classes that share people form *components*, which say nothing about each
other. A component that is small enough is counted exactly; in a large one the beliefs are fitted to all margins at once
(iterative proportional fitting), which is exact in the limit of large classes.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from maskwright.attacks._joins.joined_pairings import paired_beliefs
from maskwright.attacks._joins.joined_rows import ListedRows, OwnersOfTable, rows_for_people
from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
    accompanying_figures,
    dropped_people,
    in_words,
    secrets_of,
    threshold_of,
)
from maskwright.attacks.homogeneity import worst_person, worst_share
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import NOT_COMPUTED, Belief, Beliefs
from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.exact import percent_text
from maskwright.domain.grouping import Grouping
from maskwright.domain.sequence_place import one_sequence
from maskwright.domain.summary import Summary
from maskwright.domain.value_sets import BIT_VALUES, PRESENT, SetColumn
from maskwright.errors import UsageError
from maskwright.worlds.counting.counting_limits import TooManyWorlds

ALMOST = 0.99  # a belief that is called almost certain
MOST_OF_ROWS = 4_000_000  # kinds of rows times values, where people have several: some ten seconds
MOST_PAIRS = 300  # of tables, of which the correspondence of rows is measured


class Intersection(Attack):
    """What several tables about the same or overlapping people tell together, of one release or of several.

    Attributes:
        set_sizes: of a multi-valued column, the least and the most values that somebody's set is known to hold
            (default: as in the input).
        people: who is in which release: rows with `person`, the quasi-identifiers, and the number of the `release`
            where they differ from release to release. Without it people with equal quasi-identifiers are the same.
    """

    name: ClassVar[str] = "intersection"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"releases"})

    set_sizes: Mapping[str, tuple[int, int]] = Field(default_factory=dict)
    people: Sequence[Mapping[str, Any]] | None = None

    def applies(self, target: Target) -> bool:
        """Whether there are other tables about the same people."""
        return bool(target.beside)

    def unable(self, target: Target) -> str:
        """Why the attack cannot run though there are several tables; otherwise nothing."""
        return super().unable(target) if target.beside else ""

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst belief from all tables of a release."""
        found = self.over(target.tables, adversary)
        if found is None:
            raise UsageError("intersection needs several tables about the same people")
        return found

    def over(self, targets: Sequence[Target], adversary: Adversary) -> Beliefs | None:
        """The worst belief from these tables together; None: fewer than two, or without joint values."""
        if len(targets) > 1 and not all(t.grouping.summary.rows_are_people for t in targets):
            return None if any(self.unable(t) for t in targets) else self._people(targets, adversary)
        if len(targets) < 2 or any(t.grouping.summary.joint is None for t in targets):
            return None
        known = None if self.people else _known_people(targets)
        crowd = JoinedPeople.of(targets, self.people or known, everybody=known is not None)
        lasting = adversary.knows_method and one_sequence([t.place for t in targets if t.place is not None])
        lasting &= all(t.place is not None for t in targets)
        where: dict[str, list[int]] = {}
        for i, target in enumerate(targets):
            for name in target.grouping.published_classes.sensitive:
                where.setdefault(name, []).append(i)
        found: dict[str, tuple[Belief, Kind]] = {}
        vulnerable: dict[str, Fraction] = {}
        every: list[Secrets] = []
        open_ = Openness()
        for name, tables in where.items():
            secrets = [s for t in tables for s in secrets_of(targets[t]) if s.attribute == name]
            if not secrets:  # not asked for
                continue
            every.append(secrets[0])
            bound = min(threshold_of(targets[t].models, name, len(where) == 1) for t in tables)
            if len(tables) == 1:
                found[name] = _alone(targets[tables[0]], secrets[0]), "exact"
                vulnerable[name] = Fraction(_above(secrets[0], bound))
                continue
            try:
                cells = crowd.cells(tables)
                if lasting:
                    cells = cells.within(_signatures([targets[t] for t in tables], name))
                found[name], vulnerable[name] = _together(
                    [targets[t] for t in tables], cells, secrets, bound, open_, lasting
                )
            except TooManyWorlds as why:
                return self._not_put_together(adversary, str(why))
        found |= self._sets(targets, crowd, where)
        worst = max((b for b, _ in found.values()), key=lambda b: (b.after, -b.before), default=NOTHING)
        most, people = max(vulnerable.values(), default=Fraction(0)), max(1, crowd.everybody)
        kinds = {kind for _, kind in found.values()}
        kind: Kind = "estimated" if "estimated" in kinds else "bounded" if "bounded" in kinds else "exact"
        return Beliefs(
            self.name, adversary.name, kind, worst,
            {
                **accompanying_figures(targets[0], every),
                "dropped_people": max(dropped_people(t.grouping) for t in targets),
                "vulnerable_people": int(most),
                "vulnerable_share": most / people,
                "attributes": {
                    name: {"worst": b, "kind": kind} | _share(vulnerable.get(name), people)
                    for name, (b, kind) in found.items()
                },
                "in_several_tables": [name for name, tables in where.items() if len(tables) > 1],
                "people": {"known": crowd.how, "in_several_tables": crowd.common, "in_any": crowd.everybody},
                **open_.figures(),
                "links": _links(targets, crowd),
            },
        )  # fmt: skip

    def _not_put_together(self, adversary: Adversary, why: str) -> Beliefs:
        return Beliefs(
            self.name, adversary.name, NOT_COMPUTED, Belief(Fraction(0), Fraction(1), "anybody", why)
        )

    def _people(self, targets: Sequence[Target], adversary: Adversary) -> Beliefs:
        """People with several rows: an attribute that is in several tables is put together row by row."""
        names = [n for t in targets for n in t.grouping.published_classes.sensitive]
        bits = [{i for i, t in enumerate(targets) if set(c.bits) & set(t.grouping.published_classes.sensitive)}
                for c in targets[0].context.sets]  # fmt: skip
        several = sorted({n for n in names if names.count(n) > 1})
        found: dict[str, dict[str, Any]] = {}
        people = max(1, *(t.grouping.summary.n_people - dropped_people(t.grouping) for t in targets))
        only = len(set(names)) == 1
        why = "people have several rows, and sets whose values are in several tables are not combined"
        if any(len(tables) > 1 for tables in bits):
            return self._not_put_together(adversary, why)
        if several and self.people is not None:
            raise UsageError(
                "people have several rows, and a list with one line for each person does not say which of them are "
                "meant; attack without `people` (--people): rows with the same quasi-identifiers are then taken to be "
                "the same person's"
            )
        if several and not set.intersection(
            *({h.attribute for h in t.grouping.summary.attributes} for t in targets)
        ):
            why = "people have several rows, and the tables have no quasi-identifier in common to combine them by"
            return self._not_put_together(adversary, why)
        try:
            crowd = JoinedPeople.of([rows_for_people(t) for t in targets], self.people) if several else None
            for name in several:
                assert crowd is not None  # noqa: S101 - for the type checker
                tables = [i for i, t in enumerate(targets) if name in t.grouping.published_classes.sensitive]
                bound = min(threshold_of(targets[i].models, name, only) for i in tables)
                belief, kind, vulnerable = worst_joined_person(targets, crowd, tables, name, bound)
                found[name] = {"worst": belief, "kind": kind} | _share(Fraction(vulnerable), people)
        except TooManyWorlds as problem:
            return self._not_put_together(adversary, str(problem))
        for target in targets:
            for s in secrets_of(target):
                if s.attribute not in several:
                    bound = threshold_of(target.models, s.attribute, only)
                    belief, vulnerable = worst_person(target.grouping, s, bound)
                    found[s.attribute] = {"worst": belief, "kind": "exact"} | _share(
                        Fraction(vulnerable), people
                    )
        worst = max((m["worst"] for m in found.values()), key=lambda b: (b.after, -b.before), default=NOTHING)
        kinds = {m["kind"] for m in found.values()}
        return Beliefs(
            self.name, adversary.name, next((k for k in _WEAKEST if k in kinds), "exact"), worst,
            {"dropped_people": max(dropped_people(t.grouping) for t in targets), "attributes": found,
             "in_several_tables": several},
        )  # fmt: skip

    def _sets(
        self, targets: Sequence[Target], crowd: JoinedPeople, where: Mapping[str, Sequence[int]]
    ) -> dict[str, tuple[Belief, Kind]]:
        """Multi-valued columns whose values are in several tables, each in one of them."""
        result: dict[str, tuple[Belief, Kind]] = {}
        for column in targets[0].context.sets:
            tables = sorted({t for b in column.bits for t in where.get(b, ())})
            if len(tables) < 2 or any(len(where.get(b, ())) > 1 for b in column.bits):
                continue
            least, most = self.set_sizes.get(column.name, column.sizes or (0, len(column.bits)))
            found = worst_of_sets(targets, crowd, column, least, most)
            if found is None:
                continue
            groups = " and ".join(
                f"{in_words(targets[t].grouping, g)} in {targets[t].name}"
                for t, g in zip(tables, found.classes, strict=True)
            )
            table = targets[where[found.bit][0]]
            secrets = next(s for s in secrets_of(replace(table, secrets=None)) if s.attribute == found.bit)
            belief = Belief(
                secrets.before(1), found.share, f"everybody with {groups}",
                f"their sets hold between {least} and {most} values, so what the tables show of the other values "
                f"tells about {found.bit}; its own table alone shows {percent_text(found.alone)}",
            )  # fmt: skip
            result[column.name] = belief, "exact" if found.exact else "bounded"
        return result


def _known_people(targets: Sequence[Target]) -> list[Mapping[str, Any]] | None:
    """Who is in which release, where all of them know their people."""
    places = [t.place for t in targets if t.place is not None]
    if len(places) < len(targets):
        return None
    return [row for number, place in enumerate(places, start=1) for row in place.listed(number)]


Kind = Literal["exact", "sampled", "estimated", "bounded"]
_WEAKEST: tuple[Kind, ...] = ("estimated", "bounded", "exact")


def worst_joined_person(
    targets: Sequence[Target], crowd: JoinedPeople, tables: Sequence[int], name: str, bound: Fraction
) -> tuple[Belief, Kind, int]:
    """The worst belief about some row of a person in an attribute of several tables, and the people above a bound."""
    every = [s for t in tables for s in secrets_of(targets[t]) if s.attribute == name]
    cells = crowd.cells(tables)
    counts = _of_one_domain([targets[t].grouping.row_counts(name) for t in tables])
    code = {value: i + 1 for i, value in enumerate(counts[0].values)}
    if len(cells.sizes) * len(code) > MOST_OF_ROWS:
        raise TooManyWorlds(
            f"people have several rows, of {len(cells.sizes):,} kinds with {len(code):,} values, which are too many "
            "to combine"
        )
    owners = {t: OwnersOfTable.of(targets[t]) for t in tables}
    listed = _listed_rows(crowd, tables, owners[tables[0]], counts, cells)
    shares = joined_beliefs(cells, counts) if listed is None else None
    kind: Kind = "exact" if shares is None else "bounded" if shares.exact.all() else "estimated"
    how = "in every world of the rows" if shares is None else "at most the sum over the rows of the person"
    worst, above, most = NOTHING, 0, 0.0
    for t in tables[:1] if shares is None else tables:  # worlds are of the rows of all of them
        over = np.zeros(len(owners[t].first), dtype=bool)
        for members, (secrets, number) in {
            m: (s, i + 1) for s in reversed(every) for i, m in enumerate(s.sets)
        }.items():
            codes = [code[v] for v in members if v in code]
            if shares is None:
                assert listed is not None  # noqa: S101 - one of them
                exact = listed.beliefs(codes)
                over[[belief > bound for belief in exact]] = True
                which = max(range(len(exact)), key=lambda i: (exact[i], -i))
                after = exact[which]
            else:
                at_most = crowd.of_tuples(t, cells, shares.at_most(codes))
                most = max(most, float(owners[t].at_most(at_most).max(initial=0.0)))
                of_rows = crowd.of_tuples(t, cells, shares.of[:, codes].sum(axis=1))
                rounded = owners[t].at_most(of_rows)
                over |= rounded > float(bound) + 1e-9
                which = int(rounded.argmax())
                after = Fraction(float(rounded[which])).limit_denominator(10**6)
            if after > worst.after:
                rows = owners[t].rows_of(which)
                whom = f"somebody with {rows} row{'' if rows == 1 else 's'} in {targets[t].name}"
                why = (
                    f"{len(tables)} tables show {name} in other groups; together they leave this belief that some row "
                    f"has {secrets.name(number)}, {how}"
                )
                worst = Belief(secrets.before(number), after, whom, why)
        above = max(above, int(over.sum()))
    if kind == "estimated":
        worst, kind = _counted_as(worst, most)
    return worst, kind, above


def _counted_as(fitted: Belief, most: float) -> tuple[Belief, Kind]:
    """A belief that was fitted, with what is certain: that none is larger than `most`, which counts."""
    most = min(1.0, most)
    if most <= float(fitted.after) + 1e-9:
        return replace(fitted, after=max(fitted.after, Fraction(most).limit_denominator(10**6))), "bounded"
    why = (
        f"{fitted.why}; fitted numbers can be too small: it is only certain that nobody believes more than "
        f"{percent_text(most)}, which is what counts"
    )
    return replace(fitted, why=why, interval=(0.0, most)), "estimated"


def _listed_rows(
    crowd: JoinedPeople,
    tables: Sequence[int],
    owners: OwnersOfTable,
    counts: Sequence[ValueCounts],
    cells: JoinedCells,
) -> ListedRows | None:
    """Every world, where all tables are about the same few rows and it is certain who is in which class."""
    if crowd.how != "same" or not cells.whole.all() or len(np.unique(cells.kinds)) < len(cells.kinds):
        return None
    first = tables[0]
    classes = np.full((len(tables), int(crowd.tuples[first].max(initial=-1)) + 1), -1, dtype=np.int64)
    classes[:, crowd.tuples[first][cells.kinds]] = cells.classes[:, cells.of_kind]
    return ListedRows.of(owners, classes[:, crowd.numbers[first]] if crowd.numbers else classes, counts)


def _share(vulnerable: Fraction | None, people: int) -> dict[str, Any]:
    """How many are vulnerable, where that was counted."""
    if vulnerable is None:
        return {}
    return {"vulnerable_people": int(vulnerable), "vulnerable_share": vulnerable / people}


def _alone(target: Target, secrets: Secrets) -> Belief:
    """An attribute that one table has: the others add nothing about it."""
    belief = worst_share(target.grouping, secrets)
    if belief is NOTHING:
        return belief
    why = f"{belief.why}; no other table has {secrets.attribute}, so joining them adds nothing"
    return Belief(belief.before, belief.after, f"{belief.whom} in {target.name}", why)


def _above(secrets: Secrets, bound: Fraction) -> int:
    """People in a class where some secret has a larger share than the policy allows."""
    above = np.unique(secrets.counts.owner[~secrets.shares().at_most(bound)])
    return int(secrets.sizes[above].sum())


@dataclass
class Openness:
    """How much several tables leave open about the attributes that are in several of them, for the worst of them.

    Attributes:
        certain: the largest number of people of whose values one is left, by their own classes or by exact counts.
        own: the mean belief in the truth by somebody who looks at the classes of the person alone, and
        expected: by somebody who looks at everybody's: that of the sum of squared beliefs, worlds being equally likely.
        almost: people of whom one value is believed with ALMOST or more.
        contradicted: people whose tables contradict each other, so that they cannot be the same people.
    """

    certain: float = 0.0
    own: float = 0.0
    expected: float | None = None
    almost: float = 0.0
    contradicted: float = 0.0

    def add(self, cells: JoinedCells, counts: Sequence[ValueCounts], beliefs: ValueBeliefs) -> None:
        """Count an attribute."""
        sizes, people = cells.people, max(1.0, float(cells.people.sum()))
        alone = np.ones_like(beliefs.of)
        for classes, count in zip(cells.classes, counts, strict=True):
            dense, inside = _dense(count, alone.shape[1]), classes >= 0
            alone[inside] *= dense[classes[inside]]
            alone[inside] /= np.maximum(1, dense[classes[inside]].sum(axis=1))[:, None]
        alone = cells.averaged(alone)
        total = alone.sum(axis=1, keepdims=True)
        alone = np.divide(alone, total, out=np.zeros_like(alone), where=total > 0)
        surest = beliefs.of.max(axis=1, initial=0.0)
        certain = ((alone > 0).sum(axis=1) == 1) | (beliefs.exact & (surest > 1 - 1e-12))
        self.certain = max(self.certain, float(sizes[certain].sum()))
        self.almost = max(self.almost, float(sizes[surest >= ALMOST].sum()))
        self.own = max(self.own, float((sizes * (alone**2).sum(axis=1)).sum() / people))
        self.expected = max(self.expected or 0.0, float((sizes * (beliefs.of**2).sum(axis=1)).sum() / people))
        self.contradicted = max(self.contradicted, float(sizes[beliefs.contradicted].sum()))

    def figures(self) -> dict[str, Any]:
        """For the results; nothing where no attribute is in several tables."""
        if self.expected is None:
            return {}
        found: dict[str, Any] = {
            "certain_people": round(self.certain), "almost_certain_people": round(self.almost),
            "expected_belief": {"by the person's classes alone": self.own, "by everybody's": self.expected},
        }  # fmt: skip
        return found | ({"contradicted_people": round(self.contradicted)} if self.contradicted else {})


def _together(
    targets: Sequence[Target],
    cells: JoinedCells,
    every: Sequence[Secrets],
    bound: Fraction,
    left_open: Openness,
    lasting: bool,
) -> tuple[tuple[Belief, Kind], Fraction]:
    """An attribute that several tables have, with different groups: the worst belief, and how many are vulnerable."""
    name = every[0].attribute
    counts = _of_one_domain([t.grouping.published_classes.sensitive[name] for t in targets])
    shares = joined_beliefs(cells, counts, lasting)
    left_open.add(cells, counts, shares)
    code = {value: i + 1 for i, value in enumerate(counts[0].values)}
    best: tuple[float, int, tuple[str, ...]] | None = None
    above, most, whose = np.zeros(len(cells.sizes), dtype=bool), 0.0, np.flatnonzero(cells.people > 0)
    named = {members: (s, i + 1) for s in reversed(every) for i, members in enumerate(s.sets)}
    for members in named:
        codes = [code[v] for v in members if v in code]
        held = shares.of[:, codes].sum(axis=1)
        above |= held > float(bound) + 1e-9
        most = max(most, float(shares.at_most(codes)[whose].max(initial=0.0)))
        if len(whose) and (best is None or held[whose].max() > best[0] + 1e-12):
            best = float(held[whose].max()), int(whose[np.argmax(held[whose])]), members
    if best is None or best[0] <= 0:
        return (NOTHING, "exact"), Fraction(0)
    cell, (secrets, number) = best[1], named[best[2]]
    after, kind = _value(shares, cell, [code[v] for v in best[2] if v in code], best[0])
    places = [(t, int(g)) for t, g in zip(targets, cells.classes[:, cell], strict=True)]
    whom = " and ".join(f"{in_words(t.grouping, g)} in {t.name}" for t, g in places if g >= 0)
    people = float(cells.people[cells.holders == cells.holders[cell]].sum())
    if not cells.whole[cell]:
        whom = f"the same quasi-identifiers, who are in several classes (as {whom})"
    alone = max(
        float(worst_share(t.grouping, s).after)
        for t in targets for s in secrets_of(t) if s.attribute == name
    )  # fmt: skip
    who = "the only person" if people == 1 else f"each of the {people:.6g} people"
    how = "" if kind == "exact" else " (fitted to the values of all classes, which holds for large classes)"
    why = (
        f"each of {len(targets)} tables shows {name} in other groups; together they leave this belief in "
        f"{secrets.name(number)}{how}, and no table alone more than {percent_text(alone)}"
    )
    belief = Belief(secrets.before(number), after, f"{who} with {whom}", why)
    vulnerable = Fraction(round(float(cells.people[above].sum())))
    if kind == "exact" and most <= float(after) + 1e-9:
        return (belief, kind), vulnerable
    belief, kind = _counted_as(belief, most)
    return (belief, "estimated" if shares.contradicted.any() else kind), vulnerable


def _of_one_domain(counts: Sequence[ValueCounts]) -> list[ValueCounts]:
    """Counts of several tables in codes that mean the same in all of them."""
    if all(c.values == counts[0].values for c in counts):
        return list(counts)
    code: dict[str, int] = {}
    for value in (v for c in counts for v in c.values):
        code.setdefault(value, len(code) + 1)
    translated = [np.array([0, *(code[v] for v in c.values)], dtype=np.int64) for c in counts]
    return [
        ValueCounts.collect(tuple(code), c.n_classes, c.owner, new[c.codes], c.counts, c.ordered)
        for c, new in zip(counts, translated, strict=True)
    ]


def _signatures(targets: Sequence[Target], name: str) -> list[Ints]:
    """Table × class → the number of the set of values that the class shows; in a sequence nobody's changes."""
    counts = _of_one_domain([t.grouping.published_classes.sensitive[name] for t in targets])
    number: dict[bytes, int] = {}
    return [
        np.array([number.setdefault(row.tobytes(), len(number)) for row in _dense(c, len(c.values) + 1) > 0])
        for c in counts
    ]


def _value(shares: ValueBeliefs, cell: int, codes: Sequence[int], about: float) -> tuple[Fraction, Kind]:
    if shares.exact[cell]:
        exact = shares.fractions[cell]
        return sum((exact[c] for c in codes if c in exact), Fraction(0)), "exact"
    return Fraction(min(1.0, about)).limit_denominator(10**6), "estimated"


def _links(targets: Sequence[Target], crowd: JoinedPeople) -> dict[str, Any]:
    """How much of the correspondence of rows can be restored, for each pair of tables."""
    pairs = list(itertools.combinations(range(len(targets)), 2))[:MOST_PAIRS]
    return {f"{targets[a].name} and {targets[b].name}": link_rows(crowd, a, b) for a, b in pairs}


MOST_CELLS = 2_000_000
MOST_BELIEFS = 30_000_000  # of cells and values

Floats = NDArray[np.float64]
How = Literal["same", "matched", "listed"]


@dataclass(frozen=True, eq=False)
class JoinedPeople:
    """Kinds of people: those of a kind have the same quasi-identifiers in every table that they are in.

    Attributes:
        sizes: people of each kind.
        tuples: per table the tuple of each kind; -1: people of that kind are not in it.
        entries: per table (tuple, group, rows), sorted by tuple; group -1: not published.
        how: how it is known who is in which table: all tables are about the same people, people with the same
            quasi-identifiers are taken for the same (as many as there can be), or there is a list.
        numbers: per table the number that `tuples` and `entries` have for each of its own tuples; without it the same.
        nobody: kinds of rows that are counterfeits; None: there are none.
    """

    sizes: Ints
    tuples: tuple[Ints, ...]
    entries: tuple[tuple[Ints, Ints, Ints], ...]
    how: How = "same"
    numbers: tuple[Ints, ...] = ()
    nobody: NDArray[np.bool_] | None = None

    @staticmethod
    def of(
        targets: Sequence[Target], people: Sequence[Mapping[str, Any]] | None = None, everybody: bool = False
    ) -> JoinedPeople:
        """The people behind tables; refused where nobody can be in two of them.

        `everybody`: the list names all of them, so that other rows are counterfeits.
        """
        summaries = [t.grouping.summary for t in targets]
        entries = tuple(_added_up(t.grouping) for t in targets)
        if people is not None:
            return _listed(targets, entries, people, everybody)
        if all(s is summaries[0] for s in summaries):
            every = np.arange(summaries[0].n_tuples)
            return JoinedPeople(summaries[0].rows, tuple(every for _ in targets), entries)
        return _matched(targets, entries)

    @property
    def everybody(self) -> int:
        """People in any of the tables."""
        return int(self.sizes.sum() if self.nobody is None else self.sizes[~self.nobody].sum())

    @property
    def common(self) -> int:
        """People in several of the tables."""
        there = sum((t >= 0).astype(np.int64) for t in self.tuples)
        return int(self.sizes[np.asarray(there) > 1].sum())

    def shares(self, table: int, kinds: Ints) -> tuple[Ints, Ints, Floats]:
        """For each of some kinds the groups of a table that its people are in: (place, group, share of them)."""
        tuples, groups, rows = self.entries[table]
        mine = self.tuples[table][kinds]
        start, end = np.searchsorted(tuples, mine, "left"), np.searchsorted(tuples, mine, "right")
        many = np.where(mine < 0, 1, end - start)
        place = np.repeat(np.arange(len(kinds)), many)
        at = np.repeat(start, many) + np.arange(len(place)) - np.repeat(np.cumsum(many) - many, many)
        there = mine[place] >= 0
        at = np.where(there, at, 0)
        total = np.bincount(tuples, weights=rows, minlength=int(tuples.max(initial=0)) + 1)
        share = np.where(there, rows[at] / total[tuples[at]], 1.0) if len(tuples) else np.ones(len(place))
        return place, np.where(there, groups[at], -1) if len(tuples) else np.full(len(place), -1), share

    def cells(self, tables: Sequence[int]) -> JoinedCells:
        """The people by their classes in these tables; those who are published in none of them are left out."""
        kinds, share = np.arange(len(self.sizes)), np.ones(len(self.sizes))
        classes = np.empty((0, len(kinds)), dtype=np.int64)
        for table in tables:
            place, group, part = self.shares(table, kinds)
            if len(place) > MOST_CELLS:
                raise TooManyWorlds(
                    "people with equal quasi-identifiers are in too many groups to combine the tables"
                )
            kinds, share = kinds[place], share[place] * part
            classes = np.vstack([classes[:, place], group])
        there = (classes >= 0).any(axis=0)
        apart = np.where(share != 1, kinds, -1)
        lost = np.unique(apart[~there])
        kinds, share, classes, apart = kinds[there], share[there], classes[:, there], apart[there]
        found, inverse = np.unique(np.vstack([apart, classes]), axis=1, return_inverse=True)
        inverse, n = inverse.reshape(-1), found.shape[1]
        sizes = np.bincount(inverse, weights=self.sizes[kinds] * share, minlength=n).astype(np.float64)
        false = (
            np.zeros(len(kinds)) if self.nobody is None else self.nobody[kinds] * self.sizes[kinds] * share
        )
        people = sizes - np.bincount(inverse, weights=false, minlength=n)
        kind, classes = found[0], found[1:]
        margins = [self._rows_there(table, kind, line) for table, line in zip(tables, classes, strict=True)]
        return JoinedCells(
            classes, sizes, people, kind < 0, kinds, inverse, kind, np.array([m[0] for m in margins], dtype=np.int64),
            np.array([m[1] for m in margins], dtype=np.int64), np.isin(kind, lost) & (kind >= 0),
        )  # fmt: skip

    def _rows_there(self, table: int, kind: Ints, classes: Ints) -> tuple[Ints, Ints]:
        """For cells of kinds that are apart: their tuple in a table where that is in several classes (otherwise -1),
        and how many rows of it are in the class of the cell."""
        tuples, groups, rows = self.entries[table]
        mine = np.where(kind >= 0, self.tuples[table][kind], -1)
        if not len(tuples):
            return np.full(len(kind), -1), np.zeros(len(kind), dtype=np.int64)
        several = np.bincount(tuples, minlength=int(max(tuples.max(), mine.max(initial=0))) + 1) > 1
        mine = np.where((mine >= 0) & several[mine], mine, -1)
        width = int(groups.max()) + 2
        at = np.minimum(
            np.searchsorted(tuples * width + groups + 1, mine * width + classes + 1), len(tuples) - 1
        )
        return mine, np.where(mine >= 0, rows[at], 0)

    def of_tuples(self, table: int, cells: JoinedCells, belief: Floats) -> Floats:
        """For each tuple of a table, as the table numbers them, the largest of the beliefs about cells of its rows."""
        mine = self.tuples[table][cells.kinds]
        found = np.zeros(1 + max(int(x.max(initial=-1)) for x in (self.tuples[table], *self.numbers)))
        np.maximum.at(found, mine[mine >= 0], belief[cells.of_kind[mine >= 0]])
        return found[self.numbers[table]] if self.numbers else found


@dataclass(frozen=True, eq=False)
class JoinedCells:
    """People who are in the same class of every table.

    People of one kind that a table has in several classes are *apart*: each of them may be in any cell of the kind, and
    how many are in which is known class by class, of each table alone.

    Attributes:
        classes: one row per table, one column per cell; -1: not in it, or not published there.
        sizes: rows in each cell, of people or counterfeit; expected numbers where `whole` is false.
        people: how many of them are people.
        whole: is it certain who is in the cell?
        kinds, of_kind: kinds of people, and a cell that those of the kind may be in.
        kind: of the people of each cell, where they are apart; otherwise -1.
        tuples: table × cell → the tuple that is in several classes of the table; -1: none.
        rows: table × cell → how many rows of that tuple are in the class.
        lost: somebody of the kind may be published in none of the tables.
    """

    classes: Ints
    sizes: Floats
    people: Floats
    whole: NDArray[np.bool_]
    kinds: Ints
    of_kind: Ints
    kind: Ints
    tuples: Ints
    rows: Ints
    lost: NDArray[np.bool_]

    @property
    def holders(self) -> Ints:
        """For each cell the number of those about whom one thing is believed: of a cell, or of a kind that is apart."""
        own = np.where(self.whole, np.arange(len(self.kind)), len(self.kind) + self.kind)
        return np.unique(own, return_inverse=True)[1].reshape(-1)

    def averaged(self, of_cells: Floats) -> Floats:
        """Of people who are apart, what is believed of each: the mean over the cells of the kind."""
        if self.whole.all():
            return of_cells
        order = np.argsort(self.holders, kind="stable")
        start = np.flatnonzero(np.diff(self.holders[order], prepend=-1))
        sums = np.add.reduceat((of_cells * self.sizes[:, None])[order], start, axis=0)
        total = np.add.reduceat(self.sizes[order], start)
        found = (sums / np.maximum(total, 1e-300)[:, None])[self.holders]
        return np.where(self.whole[:, None], of_cells, found)

    def within(self, signatures: Sequence[Ints]) -> JoinedCells:
        """Without the cells in which somebody's classes have different signatures (table × class → signature)."""
        names = np.array([
            np.where(line >= 0, signature[line], -1)
            for line, signature in zip(self.classes, signatures, strict=True)
        ])  # fmt: skip
        first = names.max(axis=0)
        keep = self.whole | ((names == first) | (names < 0)).all(axis=0)
        number = np.cumsum(keep) - 1
        mine = keep[self.of_kind]
        before = np.bincount(self.holders, weights=self.sizes)
        after = np.bincount(self.holders, weights=self.sizes * keep)
        ratio = (before / np.maximum(after, 1e-300))[self.holders]
        return JoinedCells(
            self.classes[:, keep], (self.sizes * ratio)[keep], (self.people * ratio)[keep], self.whole[keep],
            self.kinds[mine], number[self.of_kind[mine]], self.kind[keep], self.tuples[:, keep], self.rows[:, keep],
            self.lost[keep],
        )  # fmt: skip


def _added_up(grouping: Grouping) -> tuple[Ints, Ints, Ints]:
    """(tuple, group, rows) of an allocation, each pair once."""
    a = grouping.allocation
    n = grouping.classes.n + 1
    keys, inverse = np.unique(a.tuples * n + a.groups + 1, return_inverse=True)
    rows = np.bincount(inverse, weights=a.rows).astype(np.int64)
    return keys // n, keys % n - 1, rows


def _matched(targets: Sequence[Target], entries: Sequence[tuple[Ints, Ints, Ints]]) -> JoinedPeople:
    """People with the same quasi-identifiers are taken for the same, as many of them as there can be."""
    summaries = [t.grouping.summary for t in targets]
    columns = [{h.attribute for h in s.attributes} for s in summaries]
    common = set.intersection(*columns)
    if not common:
        raise UsageError(
            f"{targets[-1].name}: it has no quasi-identifier in common with the other tables, so nobody can be "
            "found in both; name the people who are in several of them (--people)"
        )
    number: dict[tuple[str | None, ...], int] = {}
    places = []
    for target, summary in zip(targets, summaries, strict=True):
        texts = _texts(summary, common)
        if texts is None:
            raise UsageError(f"{target.name}: people have several rows, so they cannot be matched")
        places.append(np.array([number.setdefault(t, len(number)) for t in texts], dtype=np.int64))
    rows = np.array(
        [
            np.bincount(p, weights=s.rows, minlength=len(number))
            for p, s in zip(places, summaries, strict=True)
        ]
    ).astype(np.int64)
    keyed = []
    own = []  # per table the tuple for each number: itself, where nothing else is known of people
    for place, names, entry in zip(places, columns, entries, strict=True):
        own.append(np.arange(len(number)))
        if names == common:
            own[-1] = np.full(len(number), -1)
            own[-1][place] = np.arange(len(place))
            keyed.append(entry)
            continue
        tuples, groups, many = entry
        n = int(groups.max(initial=-1)) + 2
        keys, inverse = np.unique(place[tuples] * n + groups + 1, return_inverse=True)
        keyed.append((keys // n, keys % n - 1, np.bincount(inverse, weights=many).astype(np.int64)))
    sizes, members = [], []
    below = np.zeros(len(number), dtype=np.int64)
    for level in np.sort(
        rows, axis=0
    ):  # the i-th person with these values is in every table with at least i of them
        some = level > below
        sizes.append((level - below)[some])
        members.append(np.where(rows[:, some] >= level[some], np.array(own)[:, some], -1))
        below = level
    crowd = JoinedPeople(
        np.concatenate(sizes), tuple(np.concatenate(members, axis=1)), tuple(keyed),
        "same" if all(c == common for c in columns) and (rows == rows[0]).all() else "matched", tuple(places),
    )  # fmt: skip
    if not crowd.common:
        raise UsageError(
            f"{targets[-1].name}: nobody in it has the same quasi-identifiers as somebody in the other tables; they "
            "are not about the same people, as far as can be seen"
        )
    return crowd


def _listed(
    targets: Sequence[Target],
    entries: tuple[tuple[Ints, Ints, Ints], ...],
    people: Sequence[Mapping[str, Any]],
    everybody: bool,
) -> JoinedPeople:
    """The people of a list: a row for each person and table, with the quasi-identifiers that the person has there."""
    known: dict[str, list[int]] = {}
    places = []
    for target in targets:
        if target.grouping.summary.shared is not None:
            raise UsageError(f"{target.name}: people have several rows, so they cannot be listed")
        places.append({t: i for i, t in enumerate(_texts(target.grouping.summary) or ())})
    releases = list(dict.fromkeys(t.name.partition(":")[0] for t in targets))
    for line, row in enumerate(people, start=1):
        said = _release_of(row, line, len(releases))
        for i, target in enumerate(targets):
            if said and target.name.partition(":")[0] != releases[said - 1]:
                continue
            names = sorted(h.attribute for h in target.grouping.summary.attributes)
            if missing := [n for n in names if n not in row]:
                raise UsageError(
                    f"people: line {line} does not say {missing[0]!r}, which {target.name} is about"
                )
            at = places[i].get(tuple(None if row[n] in (None, "") else str(row[n]) for n in names))
            if at is None:
                raise UsageError(
                    f"people: line {line} has values of {', '.join(names)} that nobody in {target.name} has; write "
                    "them as they are in its input, and name in `release` the only one that the line is about"
                )
            mine = known.setdefault(str(row["person"]), [-1] * len(targets))
            if mine[i] >= 0:
                raise UsageError(f"people: line {line} names somebody whom an earlier line already names")
            mine[i] = at
    kinds = Counter(map(tuple, known.values()))
    false: list[tuple[tuple[int, ...], int]] = []
    apart = list(entries)
    for i, target in enumerate(targets):
        listed: Counter[int] = Counter()
        for kind, many in kinds.items():
            listed[kind[i]] += many
        for at, rows in enumerate(target.grouping.summary.rows.tolist()):
            if listed[at] > rows:
                raise UsageError(f"people: {listed[at]} people are said to be in {target.name} with the same "
                                 f"quasi-identifiers, of whom it has {rows}")  # fmt: skip
            if listed[at] == rows:
                continue
            alone, left = tuple(at if j == i else -1 for j in range(len(targets))), rows - listed[at]
            if not everybody:  # people in no other table
                kinds[alone] += left
            elif listed[at]:
                false.append((alone, left))
            else:  # in which groups they are is published
                apart[i], counterfeits = _one_by_one(apart[i], at)
                false += [
                    (tuple(c if j == i else -1 for j in range(len(targets))), n) for c, n in counterfeits
                ]
    every = [*kinds.items(), *false]
    members = np.array([kind for kind, _ in every], dtype=np.int64).reshape(len(every), len(targets)).T
    sizes = np.array([rows for _, rows in every], dtype=np.int64)
    nobody = np.arange(len(every)) >= len(kinds) if everybody else None
    return JoinedPeople(sizes, tuple(members), tuple(apart), "listed", nobody=nobody)


def _one_by_one(
    entries: tuple[Ints, Ints, Ints], at: int
) -> tuple[tuple[Ints, Ints, Ints], list[tuple[int, int]]]:
    """The entries of a table with a tuple for each group of the tuple `at`, and each of these with its rows."""
    tuples, groups, rows = entries
    mine = tuples == at
    fresh = int(tuples.max()) + 1 + np.arange(int(mine.sum()))
    order = np.concatenate([np.flatnonzero(~mine), np.flatnonzero(mine)])
    changed = np.concatenate([tuples[~mine], fresh])
    return (changed, groups[order], rows[order]), list(zip(fresh.tolist(), rows[mine].tolist(), strict=True))


def _release_of(row: Mapping[str, Any], line: int, releases: int) -> int:
    """The number of the release that a row of a list is about; 0: every one."""
    if "person" not in row:
        raise UsageError(
            "people: there is no column 'person', which says who is the same in several releases"
        )
    said = str(row.get("release") or "0").strip()
    if not (said.isascii() and said.isdigit() and int(said) <= releases):
        raise UsageError(
            f"people: line {line} names release {said!r}; there are 1 to {releases}, in the order given"
        )
    return int(said)


def _texts(summary: Summary, names: set[str] | None = None) -> list[tuple[str | None, ...]] | None:
    """Every tuple as its values, by the names of the quasi-identifiers (of some of them)."""
    if summary.shared is not None:
        return None
    order = sorted(
        (a for a, h in enumerate(summary.attributes) if names is None or h.attribute in names),
        key=lambda a: summary.attributes[a].attribute,
    )
    columns = []
    for a in order:
        values = (None, *summary.attributes[a].values)
        columns.append([values[code] for code in summary.codes[a].tolist()])
    return list(zip(*columns, strict=True))


@dataclass(frozen=True)
class SetBelief:
    """The largest belief that somebody's set holds a value, and for whom."""

    share: Fraction
    alone: Fraction  # what the one table that has the value shows by itself
    bit: str
    classes: tuple[int, ...]
    exact: bool  # otherwise nobody's classes are certain, and it is an upper bound


def worst_of_sets(
    targets: Sequence[Target], crowd: JoinedPeople, column: SetColumn, least: int, most: int
) -> SetBelief | None:
    """The worst belief about a value of a column whose bits are in several of the tables.

    Beliefs are about a person whose set is known to hold at least `least` and at most `most` values; what is known of
    the sets of others is not used. None: too many kinds of people, or nothing to gain.
    """
    tables = [i for i, t in enumerate(targets) if any(b in t.grouping.summary.sensitive for b in column.bits)]
    if len(tables) < 2:
        return None
    try:
        cells = crowd.cells(tables)
    except TooManyWorlds:
        return None
    counted = [_sizes_by_class(targets[t], column) for t in tables]
    best: SetBelief | None = None
    for c in range(len(cells.sizes)):
        classes = tuple(cells.classes[:, c].tolist())
        if -1 in classes:
            continue
        parts = [counts[g] for counts, g in zip(counted, classes, strict=True)]
        for bit, share, alone in _beliefs(parts, least, most):
            if best is None or share > best.share:
                best = SetBelief(share, alone, bit, classes, bool(cells.whole.all()))
    return best


def _sizes_by_class(target: Target, column: SetColumn) -> list[dict[str | None, Counter[int]]]:
    """Per class: how many rows hold how many values of the column (None), and of those with a certain value."""
    grouping = target.grouping
    names = list(grouping.summary.sensitive)
    bits = [b for b in column.bits if b in names]
    cells, groups, rows = grouping.cells
    joint = grouping.summary.joint
    assert joint is not None  # noqa: S101 - there are cells
    present = BIT_VALUES.index(PRESENT) + 1
    held = np.array([joint.values[names.index(b)][cells] == present for b in bits])
    sizes = held.sum(axis=0)
    width, n = len(bits) + 1, grouping.classes.n
    key = groups * width + sizes
    found: list[dict[str | None, Counter[int]]] = [{} for _ in range(n)]
    for name, inside in ((None, np.ones(len(key), dtype=bool)), *zip(bits, held, strict=True)):
        counts = np.bincount(key[inside], weights=rows[inside], minlength=n * width).astype(np.int64)
        for g, line in enumerate(counts.reshape(n, width).tolist()):
            found[g][name] = Counter({size: count for size, count in enumerate(line) if count})
    return found


def _beliefs(
    parts: Sequence[dict[str | None, Counter[int]]], least: int, most: int
) -> list[tuple[str, Fraction, Fraction]]:
    """For each value: the belief given the size of the whole set, and what its table shows alone."""
    result = []
    everything = _ways([p[None] for p in parts], least, most)
    for i, part in enumerate(parts):
        for bit, counts in part.items():
            if bit is None or not counts:
                continue
            with_it = _ways([counts if j == i else p[None] for j, p in enumerate(parts)], least, most)
            alone = Fraction(counts.total(), part[None].total())
            result.append((bit, Fraction(with_it, everything) if everything else alone, alone))
    return result


def _ways(parts: Sequence[Counter[int]], least: int, most: int) -> int:
    """In how many ways one row of each table can be chosen so that the sizes add up to something allowed."""
    total: Counter[int] = Counter({0: 1})
    for part in parts:
        total = Counter({s: n for s, n in _added(total, part).items() if s <= most})
    return sum(n for s, n in total.items() if s >= least)


def _added(left: Counter[int], right: Counter[int]) -> Counter[int]:
    result: Counter[int] = Counter()
    for a, n in left.items():
        for b, m in right.items():
            result[a + b] += n * m
    return result


def link_rows(crowd: JoinedPeople, a: int, b: int) -> dict[str, Any]:
    """The best that can be restored between two tables.

    `best_guess` is the largest probability that two rows are about the same person, `expected_share` the share of rows
    (of the table where it is larger) that are matched correctly when the likeliest partner of each is guessed.
    """
    groups_a, groups_b, people = _shared(crowd, a, b)
    size_a, size_b = _sizes(crowd, a), _sizes(crowd, b)
    chance = people / size_a[groups_a] / size_b[groups_b]  # their product may have more than 63 bits
    return {
        "best_guess": float(chance.max(initial=0.0)),
        "expected_share": max(_expected(groups_a, chance, size_a), _expected(groups_b, chance, size_b)),
        "by_chance": 1.0 / max(1, crowd.everybody),
    }


def _shared(crowd: JoinedPeople, a: int, b: int) -> tuple[Ints, Ints, Floats]:
    """Pairs of classes with the (expected) number of people who are in both."""
    cells = crowd.cells([a, b])
    both = (cells.classes >= 0).all(axis=0)
    pairs, number = np.unique(cells.classes[:, both], axis=1, return_inverse=True)
    people = np.bincount(number.reshape(-1), weights=cells.sizes[both], minlength=pairs.shape[1])
    return pairs[0], pairs[1], people.astype(np.float64)


def _sizes(crowd: JoinedPeople, table: int) -> Ints:
    """People of each class of a table."""
    _, groups, rows = crowd.entries[table]
    return np.bincount(groups[groups >= 0], weights=rows[groups >= 0]).astype(np.int64)


def _expected(groups: Ints, chance: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any]) -> float:
    best = np.zeros(len(sizes))
    np.maximum.at(best, groups, chance)
    return float((best * sizes).sum() / sizes.sum()) if sizes.sum() else 0.0


STEPS = 20_000  # of the exact count, for one component
ALL_STEPS = 400_000  # and for all of them
MOST_PEOPLE = 60
ROUNDS, FEWEST_ROUNDS, CLOSE = 2000, 30, 1e-10
WORK = 400_000_000  # cells × values × tables × rounds of fitting


@dataclass(frozen=True, eq=False)
class ValueBeliefs:
    """`of[cell, code]`: the belief that somebody in a cell has a value; `exact` says of which cells it is exact.

    Where the tables contradict each other about a cell, its people cannot be the same: the first table counts alone.
    """

    of: Floats
    exact: NDArray[np.bool_]
    contradicted: NDArray[np.bool_]
    fractions: dict[int, dict[int, Fraction]]  # cell → code → the belief as a fraction, where it is exact
    most: Floats | None = None  # what no belief is larger than, cell by cell; None: they are all exact

    def at_most(self, codes: Sequence[int]) -> Floats:
        """For each cell what the belief in one of these values is not larger than."""
        bound = self.of if self.most is None else self.most
        found: Floats = np.minimum(1.0, bound[:, codes].sum(axis=1))
        return found


def joined_beliefs(cells: JoinedCells, counts: Sequence[ValueCounts], lasting: bool = False) -> ValueBeliefs:
    """The beliefs about everybody, from the published values of each class of each table.

    `lasting`: they are of one sequence, of which it is proven that nobody believes more than one over the values of a
    class (`promise/lemmas/lasting_signatures.py`).
    """
    n, width = len(cells.sizes), len(counts[0].values) + 1
    if n * width > MOST_BELIEFS:
        raise TooManyWorlds("there are too many kinds of people and values to combine the tables")
    dense = [_dense(c, width) for c in counts]
    of = np.zeros((n, width))
    exact, contradicted = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    fractions: dict[int, dict[int, Fraction]] = {}
    left = ALL_STEPS
    tied = [np.where(cells.tuples >= 0, cells.tuples, -1), cells.kind[None]]
    for members in _components(np.vstack([cells.classes, *tied])):
        found = _counted(cells, dense, members, min(STEPS, left)) if left > 0 else None
        if found is None:
            left -= STEPS if len(members) > 1 else 0
            continue
        for cell, shares in found.items():
            exact[cell] = True
            fractions[cell] = dict(shares)
            for code, share in shares.items():
                of[cell, code] = float(share)
    rest = np.flatnonzero(~exact)
    if len(rest):
        of[rest] = _fitted(cells, rest, dense)
        contradicted[rest] = of[rest].sum(axis=1) < 0.5
        for held, classes in reversed(list(zip(dense, cells.classes, strict=True))):
            alone = np.flatnonzero(contradicted & (classes >= 0))
            of[alone] = held[classes[alone]] / np.maximum(1, held[classes[alone]].sum(axis=1))[:, None]
        of = np.where(contradicted[:, None], cells.averaged(of), of)
    most = _most_of_each(cells, dense, lasting) if len(rest) else None
    if most is not None:
        most = np.where(exact[:, None], of, np.where(contradicted[:, None], 1.0, most))
    return ValueBeliefs(of, exact, contradicted, fractions, most)


def _most_of_each(cells: JoinedCells, dense: Sequence[Ints], lasting: bool) -> Floats:
    """Cell × code → what the belief is not larger than: alike people share what their classes show of the value.

    Of n people who are alike, so many rows of whom are in each class of a table, no more than the smaller of these rows
    and those with the value can hold it; the mean belief in it is at most the sum of these, over n, in every table.
    """
    holders = cells.holders
    people = np.bincount(holders, weights=cells.sizes)
    most = np.ones((len(people), dense[0].shape[1]))
    for held, classes, tuples, rows in zip(dense, cells.classes, cells.tuples, cells.rows, strict=True):
        free = np.bincount(holders, (classes < 0) | cells.lost) > 0  # some of them may not be in this table
        inside = np.flatnonzero(classes >= 0)
        pairs, first = np.unique(np.stack([holders[inside], classes[inside]]), axis=1, return_index=True)
        there = np.where(tuples[inside] >= 0, rows[inside], np.inf)[first]
        there = np.minimum(there, people[pairs[0]])
        total = np.zeros_like(most)
        np.add.at(total, pairs[0], np.minimum(held[pairs[1]], there[:, None]))
        share = np.where(free[:, None], 1.0, total / np.maximum(people, 1e-300)[:, None])
        if lasting:
            shown = np.full(len(people), np.inf)
            np.minimum.at(shown, pairs[0], (held[pairs[1]] > 0).sum(axis=1))
            share = np.minimum(share, np.where(np.isfinite(shown), 1 / shown, 1.0)[:, None])
        most = np.minimum(most, share)
    found: Floats = most[holders]
    return found


def _dense(counts: ValueCounts, width: int) -> Ints:
    table = np.zeros((counts.n_classes, width), dtype=np.int64)
    table[counts.owner, counts.codes] = counts.counts
    return table


def _components(classes: Ints) -> list[list[int]]:
    """Cells that hang together through classes that they share."""
    owner: dict[tuple[int, int], int] = {}
    parent = list(range(classes.shape[1]))

    def _root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for cell in range(classes.shape[1]):
        for table, group in enumerate(classes[:, cell].tolist()):
            if group >= 0:
                other = owner.setdefault((table, group), cell)
                parent[_root(cell)] = _root(other)
    found: dict[int, list[int]] = {}
    for cell in range(classes.shape[1]):
        found.setdefault(_root(cell), []).append(cell)
    return list(found.values())


def _counted(
    cells: JoinedCells, dense: Sequence[Ints], members: list[int], limit: int
) -> dict[int, dict[int, Fraction]] | None:
    """The exact beliefs in one component; None where it is too large, or it is not certain who is in which cell."""
    classes = cells.classes[:, members]
    if cells.lost[members].any():
        return None
    seen = [(t, int(g)) for t in range(len(dense)) for g in np.unique(classes[t]) if g >= 0]
    if len(seen) == 1:  # nobody in it is in another table
        held = dense[seen[0][0]][seen[0][1]]
        shares = {c: Fraction(int(held[c]), int(held.sum())) for c in np.flatnonzero(held).tolist()}
        return dict.fromkeys(members, shares)
    if cells.sizes[members].sum() > MOST_PEOPLE:
        return None
    try:
        return paired_beliefs(cells, dense, members, limit)
    except TooManyWorlds:
        return None


def _fitted(cells: JoinedCells, rest: Ints, dense: Sequence[Ints]) -> Floats:
    """Beliefs that agree with the values of every class, and are otherwise as even as can be; 0 where none do.

    So do the numbers of people who are apart with the rows that each class has of them.
    """
    sizes, classes = cells.sizes[rest], cells.classes[:, rest]
    table = np.ones((dense[0].shape[1], len(sizes))) * sizes
    tables = []
    for counts, groups in zip(dense, classes, strict=True):
        inside = np.flatnonzero(groups >= 0)
        tables.append((counts.T.astype(np.float64), inside, groups[inside]))
        table[:, inside] *= counts.T[:, groups[inside]] > 0
    holders = np.unique(cells.holders[rest], return_inverse=True)[1].reshape(-1)
    people = np.bincount(holders, weights=sizes)
    margins_apart = list(_rows_of_tuples(cells, rest))
    for _ in range(max(FEWEST_ROUNDS, min(ROUNDS, WORK // max(1, table.size * len(dense))))):
        before = table.copy()
        for margins, inside, at in tables:
            for code, line in enumerate(margins):
                total = np.bincount(at, weights=table[code, inside], minlength=len(line))
                ratio = np.divide(line, total, out=np.zeros_like(line), where=total > 0)
                table[code, inside] *= ratio[at]
        for inside, at, wanted in margins_apart:
            total = np.bincount(at, weights=table[:, inside].sum(axis=0), minlength=len(wanted))
            table[:, inside] *= np.divide(wanted, total, out=np.zeros_like(wanted), where=total > 0)[at]
        column = np.bincount(holders, weights=table.sum(axis=0))
        ratio = np.divide(people, column, out=np.zeros_like(people), where=column > 1e-9 * people)
        table *= np.where(cells.lost[rest], 1.0, ratio[holders])
        if np.abs(table - before).max(initial=0.0) <= CLOSE * max(1.0, float(sizes.max(initial=1.0))):
            break
    whole = np.where(
        cells.lost[rest], np.bincount(holders, weights=table.sum(axis=0))[holders], people[holders]
    )
    held = np.array([np.bincount(holders, weights=line)[holders] for line in table])
    found: Floats = np.divide(held, whole, out=np.zeros_like(held), where=whole > 0).T
    return found


def _rows_of_tuples(cells: JoinedCells, rest: Ints) -> Iterator[tuple[Ints, Ints, Floats]]:
    """For each table that has a tuple in several classes: cells, and for each the number of a sum that is known."""
    for tuples, classes, rows in zip(
        cells.tuples[:, rest], cells.classes[:, rest], cells.rows[:, rest], strict=True
    ):
        inside = np.flatnonzero((tuples >= 0) & (classes >= 0))
        if len(inside):
            pairs = np.stack([tuples[inside], classes[inside]])
            _, first, at = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
            yield inside, at.reshape(-1), rows[inside][first].astype(np.float64)
