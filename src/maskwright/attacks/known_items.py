"""Known items: who knows a few values of a person's set looks for the rest [k^m-anonymity: Terrovitis et al. 2008].

A basket, a list of diagnoses or of visited pages is found by two or three of its values where these go together in few
sets. A release is k^m-anonymous when every set of at most m values that somebody holds is held by at least k people.
That is about the sets alone; whoever knows the quasi-identifiers of the person, too, looks inside the person's class.

Where a person has several rows, values of one of them are known: people are counted who have a row that holds all of
these. Where a pseudonym links the rows, values of all of them are.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from maskwright.attacks._people.linked_people import visits_known
from maskwright.attacks._shared.secrets import accompanying_figures, in_words, secrets_of
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping
from maskwright.domain.known_visits import known_visits
from maskwright.domain.value_sets import BIT_VALUES, PRESENT, SetColumn

USUAL = 5  # people who should hold what is known, where the policy asks for no k
NOBODY = Belief(Fraction(0), Fraction(0), "nobody", "no published set holds a value")


class KnownItems(Attack):
    """The chance to find somebody by a few values of a column of sets, inside the person's class.

    Attributes:
        items: how many values of the set are known, at most.
    """

    name: ClassVar[str] = "known-items"
    about: ClassVar[About] = "rows"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()

    items: int = Field(default=2, ge=1, le=5)

    def applies(self, target: Target) -> bool:
        """Whether there is a column of sets."""
        return bool(_columns(target)) and not self.unable(target)

    def unable(self, target: Target) -> str:
        """Why the sets of people are not known."""
        summary = target.grouping.summary
        if not _columns(target):
            return ""
        if summary.cells is None or target.grouping.changes is not None:
            return "the release does not say which values are held together"
        return ""

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst chance over all columns of sets."""
        least = max(target.least_people, USUAL if target.least_people < 2 else 2)
        found = {column.name: self._of_column(target, column, least) for column in _columns(target)}
        worst = max((m["worst"] for m in found.values()), key=lambda b: (b.after, -b.before), default=NOBODY)
        figures = accompanying_figures(target, secrets_of(target))
        return Beliefs(self.name, adversary.name, "exact", worst, {**figures, "k": least, "sets": found})

    def _of_column(self, target: Target, column: SetColumn, least: int) -> dict[str, Any]:
        holder, item, group, owner = held_items(target.grouping, column, linked=visits_known(target) > 0)
        if not len(holder):
            return {"worst": NOBODY, "vulnerable_people": 0, "vulnerable_share": Fraction(0)}
        everybody, width = target.grouping.classes.n_people, len(column.values)
        inside = rare_sets(holder, group[holder] * width + item, self.items, least, owner)
        whole = rare_sets(holder, item, self.items, least, owner)
        classes = target.grouping.classes.sizes
        home = int(group[inside.witness])
        why = (
            f"{inside.fewest} of the {int(classes[home])} people in the class hold all of that; "
            f"without the class, what is rarest in the whole release is held by {whole.fewest}"
        )
        known = "1 value" if inside.size == 1 else f"{inside.size} values"
        whom = (
            f"somebody with {in_words(target.grouping, home)} of whom {known} of {column.name} can be known"
        )
        return {
            "worst": Belief(Fraction(1, int(classes[home])), Fraction(1, inside.fewest), whom, why),
            "vulnerable_people": inside.people, "vulnerable_share": Fraction(inside.people, max(1, everybody)),
            "by_sets_alone": {"fewest": whole.fewest, "people": whole.people},
        }  # fmt: skip


@dataclass(frozen=True)
class RareSets:
    """Sets of values that few people hold.

    Attributes:
        fewest: the people who hold the rarest, of `size` values, in the row `witness` among others.
        people: who holds some set that fewer than k people hold.
    """

    fewest: int
    size: int
    witness: int
    people: int


def rare_sets(holder: Ints, item: Ints, most: int, k: int, owner: Ints | None = None) -> RareSets:
    """What is rare among the sets of at most so many values; entry i: a row holds a value, each pair once.

    `owner`: whose row each is; None: every row is a person.
    """
    owner = np.arange(int(holder.max(initial=-1)) + 1) if owner is None else owner
    n = int(owner.max(initial=-1)) + 1
    best, exposed = (np.iinfo(np.int64).max, 0, 0), np.zeros(n, dtype=bool)
    for level in known_visits(holder, item, np.ones(len(holder), dtype=np.int64), most):
        pairs = np.unique(level.known * n + owner[level.person])  # people, however many of their rows hold it
        matches = np.bincount(pairs // n, minlength=len(level.matches))
        exposed[pairs[matches[pairs // n] < k] % n] = True
        if matches.min() < best[0]:
            best = int(matches.min()), level.visits, int(level.person[int(matches[level.known].argmin())])
    return RareSets(int(best[0]), best[1], best[2], int(exposed.sum()))


def _owners(grouping: Grouping) -> Ints | None:
    """Whose each published row is, in the order of `held_items`; None: every row is a person."""
    joint = grouping.summary.cells
    if joint is None or joint.people is None:
        return None
    cells, _, rows = grouping.cells
    return np.repeat(joint.people[cells], rows)


def _joined_sets(holder: Ints, item: Ints, group: Ints, owner: Ints | None) -> tuple[Ints, Ints, Ints, Ints]:
    """Everything that a pseudonym links to a person, in place of the rows: once for each class of the person."""
    assert owner is not None  # noqa: S101 - visits are linked
    places = np.unique(np.stack([owner, group]), axis=1)
    everything = np.unique(np.stack([owner[holder], item]), axis=1)
    first, last = (np.searchsorted(everything[0], places[0], side) for side in ("left", "right"))
    many = last - first
    entry = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many) + np.repeat(first, many)
    return np.repeat(np.arange(len(many)), many), everything[1][entry], places[1], places[0]


def held_items(grouping: Grouping, column: SetColumn, linked: bool) -> tuple[Ints, Ints, Ints, Ints | None]:
    """Which published row holds which value (by numbers), each pair once; the class of each row, and whose it is.

    `linked`: in place of the rows of a person all that a pseudonym links, as `_joined_sets` has it. Nobody is named
    (None) where every row is a person.
    """
    cells, groups, rows = grouping.cells
    joint, names = grouping.summary.cells, list(grouping.summary.sensitive)
    assert joint is not None  # noqa: S101 - there are cells
    of_person = np.repeat(np.arange(len(cells))[groups >= 0], rows[groups >= 0])
    present = BIT_VALUES.index(PRESENT) + 1
    held = [joint.values[names.index(bit)][cells][of_person] == present for bit in column.bits]
    people = [np.flatnonzero(h) for h in held]
    items = np.repeat(np.arange(len(people)), [len(p) for p in people])
    person = np.concatenate([np.empty(0, np.int64), *people]).astype(np.int64)
    found = person, items.astype(np.int64), groups[of_person].astype(np.int64), _owners(grouping)
    return _joined_sets(*found) if linked and len(person) else found


def _columns(target: Target) -> list[SetColumn]:
    """The columns of sets, as far as this table has their values."""
    here = set(target.grouping.summary.sensitive)
    found = [column.only([b for b in column.bits if b in here]) for column in target.context.sets]
    return [column for column in found if column.values]
