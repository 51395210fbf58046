"""Intersection: several tables about the same people, put together [CODIP; (X,Y)-linkability, Wang, Fung 2006].

Tables with different sensitive attributes are independent: the belief in a combination is the product, and about one
attribute nothing is gained. The same attribute under two groupings is another matter: each class is a constraint, and
together they can single out everybody's value. Nor are the values of one set in different tables independent.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from maskwright.attacks._joined_tables import (
    JoinedCells,
    JoinedPeople,
    ValueBeliefs,
    joined_beliefs,
    link_rows,
    worst_of_sets,
)
from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
    accompanying_figures,
    dropped_people,
    in_words,
    secrets_of,
    threshold_of,
)
from maskwright.attacks.homogeneity import worst_share
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.errors import UsageError

MOST_PAIRS = 300  # of tables, of which the correspondence of rows is measured


class Intersection(Attack):
    """What several tables about the same people tell together, be they of one release or of several.

    Attributes:
        set_sizes: of a multi-valued column, the least and the most values that somebody's set is known to hold
            (default: as in the input).
    """

    name: ClassVar[str] = "intersection"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset({"releases"})
    by_rows: ClassVar[bool] = True

    set_sizes: Mapping[str, tuple[int, int]] = Field(default_factory=dict)

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
        if len(targets) < 2 or any(t.grouping.summary.joint is None for t in targets):
            return None
        crowd = JoinedPeople.of(targets)
        where: dict[str, list[int]] = {}
        for i, target in enumerate(targets):
            for name in target.grouping.published_classes.sensitive:
                where.setdefault(name, []).append(i)
        found: dict[str, tuple[Belief, Kind]] = {}
        vulnerable: dict[str, Fraction] = {}
        every: list[Secrets] = []
        for name, tables in where.items():
            secrets = next((s for s in secrets_of(targets[tables[0]]) if s.attribute == name), None)
            if secrets is None:  # not asked for
                continue
            every.append(secrets)
            bound = threshold_of(targets[tables[0]].models, name, len(where) == 1)
            if len(tables) == 1:
                found[name] = _alone(targets[tables[0]], secrets), "exact"
                vulnerable[name] = Fraction(_above(secrets, bound))
            else:
                cells = crowd.cells(tables)
                belief, how, vulnerable[name] = _together([targets[t] for t in tables], cells, secrets, bound)
                found[name] = belief, how
        found |= self._sets(targets, crowd, where)
        worst = max((b for b, _ in found.values()), key=lambda b: (b.after, -b.before), default=NOTHING)
        most, people = max(vulnerable.values(), default=Fraction(0)), max(1, int(crowd.sizes.sum()))
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
                "links": _links(targets, crowd),
            },
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
                f"tells about {found.bit}; its own table alone shows {float(found.alone):.4g}",
            )  # fmt: skip
            result[column.name] = belief, "exact" if found.exact else "bounded"
        return result


Kind = Literal["exact", "sampled", "estimated", "bounded"]


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


def _together(
    targets: Sequence[Target], cells: JoinedCells, secrets: Secrets, bound: Fraction
) -> tuple[Belief, Kind, Fraction]:
    """An attribute that several tables have, with different groups: the worst belief, and how many are vulnerable."""
    counts = [t.grouping.published_classes.sensitive[secrets.attribute] for t in targets]
    if any(c.values != counts[0].values for c in counts):
        raise UsageError(
            f"the tables do not have the same values of {secrets.attribute!r}; they cannot be joined"
        )
    shares = joined_beliefs(cells, counts)
    code = {value: i + 1 for i, value in enumerate(counts[0].values)}
    best: tuple[float, int, int] | None = None
    above = np.zeros(len(cells.sizes), dtype=bool)
    for s, members in enumerate(secrets.sets):
        held = shares.of[:, [code[v] for v in members if v in code]].sum(axis=1)
        above |= held > float(bound) + 1e-9
        if len(held) and (best is None or held.max() > best[0] + 1e-12):
            best = float(held.max()), int(np.argmax(held)), s + 1
    if best is None or best[0] <= 0:
        return NOTHING, "exact", Fraction(0)
    cell, number = best[1], best[2]
    after, kind = _value(shares, cell, [code[v] for v in secrets.sets[number - 1] if v in code], best[0])
    places = [(t, int(g)) for t, g in zip(targets, cells.classes[:, cell], strict=True)]
    whom = " and ".join(f"{in_words(t.grouping, g)} in {t.name}" for t, g in places if g >= 0)
    alone = max(
        float(worst_share(t.grouping, s).after)
        for t in targets for s in secrets_of(t) if s.attribute == secrets.attribute
    )  # fmt: skip
    how = "" if kind == "exact" else " (fitted to the values of all classes, which holds for large classes)"
    why = (
        f"each of {len(targets)} tables shows {secrets.attribute} in other groups; together they leave this belief in "
        f"{secrets.name(number)}{how}, and no table alone more than {alone:.4g}"
    )
    people = float(cells.sizes[cell])
    belief = Belief(secrets.before(number), after, f"each of the {people:g} people with {whom}", why)
    return belief, kind, sum((cells.sizes[c] for c in np.flatnonzero(above)), Fraction(0))


def _value(shares: ValueBeliefs, cell: int, codes: Sequence[int], about: float) -> tuple[Fraction, Kind]:
    if shares.exact[cell]:
        exact = shares.fractions[cell]
        return sum((exact[c] for c in codes if c in exact), Fraction(0)), "exact"
    return Fraction(min(1.0, about)).limit_denominator(10**6), "estimated"


def _links(targets: Sequence[Target], crowd: JoinedPeople) -> dict[str, Any]:
    """How much of the correspondence of rows can be restored, for each pair of tables."""
    pairs = list(itertools.combinations(range(len(targets)), 2))[:MOST_PAIRS]
    return {f"{targets[a].name} and {targets[b].name}": link_rows(crowd, a, b) for a, b in pairs}
