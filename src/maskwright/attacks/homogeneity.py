"""Homogeneity: what the class alone tells about its people [Machanavajjhala et al. 2006].

Nobody has to find a person's row to learn the person's value: it is enough that the class shows it. After the release
the belief in a secret is its share in the class, before it the share in the whole table.

Several rows per person: the belief that somebody has a secret in *some* row of theirs.

Which rows of a class are whose is not published, only how many. Under random worlds a person with r of the N rows of a
class, c of which hold the secret, has it in none of them with probability C(N−c, r)/C(N, r), and classes are
independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
    Sets,
    accompanying_figures,
    dropped_people,
    gather_counts,
    in_words,
    people_in_words,
    reference_of,
    secrets_of,
    threshold_of,
)
from maskwright.domain.adversary import About, Adversary, Attack, Knowledge, Target
from maskwright.domain.beliefs import Belief, Beliefs
from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.distances import class_distances
from maskwright.domain.exact import exact_bincount, numbered_values
from maskwright.domain.grouping import Grouping
from maskwright.domain.segments import known_counts


class Homogeneity(Attack):
    """The belief in a sensitive value from the person's class alone: its share in the class."""

    name: ClassVar[str] = "homogeneity"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()
    within_links: ClassVar[bool] = True
    many_values: ClassVar[bool] = True

    def applies(self, target: Target) -> bool:
        """Whether sensitive values are published, and it is known whose rows they are."""
        return bool(target.grouping.published_classes.sensitive) and not self.unable(target)

    def run(self, target: Target, adversary: Adversary) -> Beliefs:
        """The worst share of a secret in a class, or the worst belief about a person with several rows."""
        found = secrets_of(target)
        only = len(found) == 1
        measures = {s.attribute: _column_measures(target, s, only) for s in found}
        worst = max((m["worst"] for m in measures.values()), key=lambda b: (b.after, -b.before))
        people = target.grouping.summary.owned is not None
        bounded = not people and any(s.several and any(len(members) > 1 for members in s.sets) for s in found)
        return Beliefs(
            self.name, adversary.name, "bounded" if bounded else "exact", worst,
            {"attributes": measures, **accompanying_figures(target, found)},
        )  # fmt: skip


def _column_measures(target: Target, secrets: Secrets, only: bool) -> dict[str, Any]:
    """Everything that is reported about one sensitive column."""
    grouping, shares, owner = target.grouping, secrets.shares(), secrets.counts.owner
    threshold = threshold_of(target.models, secrets.attribute, only)
    alike, above = (
        np.unique(owner[secrets.counts.counts == secrets.sizes[owner]]),
        owner[~shares.at_most(threshold)],
    )
    whole, _ = reference_of(target, secrets.attribute)
    worst, vulnerable = worst_share(grouping, secrets), int(secrets.sizes[np.unique(above)].sum())
    published = int(secrets.sizes.sum())
    if grouping.summary.owned is not None:
        worst, vulnerable = worst_person(grouping, secrets, threshold)
        published = grouping.summary.n_people - dropped_people(grouping)
    distance = class_distances(grouping.published_classes.sensitive[secrets.attribute], whole, "equal")
    farthest = distance.argmax()
    return {
        "worst": worst,
        "homogeneous_classes": len(alike),
        "people_in_homogeneous_classes": int(secrets.sizes[alike].sum()),
        "share_in_homogeneous_classes": _of(int(secrets.sizes[alike].sum()), secrets),
        "threshold": threshold,
        "vulnerable_people": vulnerable,
        "vulnerable_share": Fraction(vulnerable, published) if published else Fraction(0),
        "largest_distance": Fraction(0) if farthest is None else distance[farthest],
        "values_not_flagged": secrets.values_not_flagged,
        "worst_share_of_a_value_not_flagged": secrets.worst_not_flagged(),
    }


def _of(people: int, secrets: Secrets) -> Fraction:
    """A number of people as a share of those published, class by class."""
    published = int(secrets.sizes.sum())
    return Fraction(people, published) if published else Fraction(0)


def worst_share(grouping: Grouping, secrets: Secrets) -> Belief:
    """The largest share of a secret in a class."""
    worst = secrets.shares().argmax()
    return NOTHING if worst is None else shown_belief(grouping, secrets, worst)


def shown_belief(grouping: Grouping, secrets: Secrets, entry: int) -> Belief:
    """The belief that one entry of the counts shows, in words."""
    group, code = int(secrets.counts.owner[entry]), int(secrets.counts.codes[entry])
    held, size = int(secrets.counts.counts[entry]), int(secrets.sizes[group])
    return Belief(
        before=secrets.before(code),
        after=Fraction(held, size),
        whom=people_in_words(grouping, group),
        why=f"{'all' if held == size else held} of them have {secrets.name(code)}, and the class shows it"
        if size > 1
        else f"that person has {secrets.name(code)}, and the class shows it",
    )


MANY = 20  # one entry in so many
KEPT = 5_000_000  # entries, or beliefs, that several attacks use and that are computed once for a release


@dataclass(frozen=True, eq=False)
class OwnedRows:
    """How many rows of each published class belong to whom: one entry per (person, class), by person."""

    person: Ints
    group: Ints
    rows: Ints
    sizes: Ints  # rows of each class

    @staticmethod
    def of(grouping: Grouping) -> OwnedRows:
        """The rows of a grouping."""
        if (known := _OWNED.get(grouping)) is not None:
            return known
        cells, groups, rows = grouping.cells
        people, n = _people_of_cells(grouping), grouping.classes.n
        keys, number = numbered_values(people[cells] * n + groups)
        mine = exact_bincount(number, rows, len(keys))
        found = OwnedRows(keys // n, keys % n, mine, grouping.classes.rows)
        if len(keys) <= KEPT:
            _OWNED[grouping] = found
        return found

    @cached_property
    def first(self) -> Ints:
        """The first entry of each person."""
        return np.flatnonzero(np.diff(self.person, prepend=-1))

    def entries_of(self, people: Ints) -> tuple[Ints, Ints]:
        """The entries of some people, by their numbers from 0, and where each person begins among them."""
        return _ranges(self.first[people], np.append(self.first[1:], len(self.person))[people])

    @cached_property
    def _number(self) -> Ints:
        """The number of the person of each entry."""
        return np.asarray(np.cumsum(np.diff(self.person, prepend=-1) != 0) - 1)

    @cached_property
    def _by_class(self) -> tuple[Ints, Ints]:
        """The number of the person of each entry, in the order of the classes, and where each class begins."""
        order = np.argsort(self.group, kind="stable")
        return self._number[order], np.searchsorted(self.group[order], np.arange(len(self.sizes) + 1))

    def people_of(self, classes: Ints) -> Ints:
        """The numbers of the people who have rows in some classes, from 0 in the order of the entries."""
        people, start = self._by_class
        if MANY * int((start[classes + 1] - start[classes]).sum()) < len(people):
            return np.unique(people[_ranges(start[classes], start[classes + 1])[0]])
        # of many entries it is quicker to mark their people than to sort them
        chosen, there = np.zeros(len(self.sizes), dtype=bool), np.zeros(len(self.first), dtype=bool)
        chosen[classes] = True
        there[self._number[chosen[self.group]]] = True
        return np.flatnonzero(there)


_OWNED: WeakKeyDictionary[Grouping, OwnedRows] = WeakKeyDictionary()
_BELIEFS: WeakKeyDictionary[Grouping, dict[tuple[Any, ...], dict[int, NDArray[np.float64]]]] = (
    WeakKeyDictionary()
)


def _people_of_cells(grouping: Grouping) -> Ints:
    """Whose rows the cells are."""
    cells = grouping.summary.personal
    if cells is None or cells.people is None:
        raise ValueError("this summary does not say whose rows they are")
    return cells.people


@dataclass(frozen=True, eq=False)
class RowBeliefs:
    """What the classes show of people with several rows: the belief that some row of theirs holds a set of values.

    Attributes:
        grouping, owned: the classes, and whose rows they hold.
        first: the first entry of each person in `owned`.
        held: the rows of each class with a value of each set.
        known: beliefs that were computed before, by the number of the set.
    """

    grouping: Grouping
    owned: OwnedRows
    first: Ints
    held: ValueCounts
    known: dict[int, NDArray[np.float64]]

    @staticmethod
    def of(grouping: Grouping, attribute: str, sets: Sets) -> RowBeliefs:
        """Beliefs in sets of values of one attribute."""
        owned = OwnedRows.of(grouping)
        held = gather_counts(known_counts(grouping.row_counts(attribute)), sets)
        key = attribute, tuple(map(tuple, sets))
        known = _BELIEFS.setdefault(grouping, {}).setdefault(key, {})
        return RowBeliefs(grouping, owned, owned.first, held, known)

    @property
    def codes(self) -> list[int]:
        """The numbers of the sets, from 1, that some class shows; none where nobody is published."""
        return np.unique(self.held.codes).tolist() if len(self.owned.person) else []

    @cached_property
    def _by_code(self) -> tuple[Ints, Ints]:
        """The entries of `held` in the order of their sets, and where each set begins among them."""
        order = np.argsort(self.held.codes, kind="stable")
        return order, np.searchsorted(self.held.codes[order], np.arange(len(self.held.values) + 2))

    def _with(self, code: int) -> Ints:
        """The entries of `held` that are of a set."""
        order, start = self._by_code
        return order[start[code] : start[code + 1]]

    def counts(self, code: int) -> Ints:
        """The rows of each class that hold a value of the set."""
        result, mine = np.zeros(len(self.owned.sizes), dtype=np.int64), self._with(code)
        result[self.held.owner[mine]] = self.held.counts[mine]
        return result

    def beliefs(self, code: int) -> NDArray[np.float64]:
        """The belief about each person, rounded. Only those with rows in a class that shows the set are looked at."""
        if code in self.known:
            return self.known[code]
        result = np.zeros(len(self.first))
        concerned = self.owned.people_of(np.unique(self.held.owner[self._with(code)]))
        result[concerned] = self.beliefs_of(concerned, self.counts(code))
        if len(self.first) * len(self.held.values) <= KEPT:
            self.known[code] = result
        return result

    def beliefs_of(self, people: Ints, counts: Ints) -> NDArray[np.float64]:
        """The belief about some people, rounded, with so many rows of each class."""
        if not len(people):
            return np.zeros(0)
        entries, start = self.owned.entries_of(people)
        return np.asarray(1 - np.multiply.reduceat(_spared(self.owned, counts, entries), start))

    def exact(self, code: int, which: int) -> Fraction:
        """The belief about one person as a fraction."""
        return self.exactly(self.counts(code), which)

    def exactly_outside(self, counts: Ints, inside: NDArray[np.bool_]) -> Callable[[int], Fraction]:
        """The function from a person to the chance that no row holds the value; entries `inside` are left out."""

        def _none(which: int) -> Fraction:
            kept = [e for e in _entries(self.owned, self.first, which) if not inside[e]]
            return _none_of(self.owned, counts, kept)

        return _none

    def exactly(self, counts: Ints, which: int) -> Fraction:
        """The belief about one person as a fraction, with so many rows of each class."""
        return _exactly(self.owned, counts, self.first, which)

    def above(
        self, code: int, bound: Fraction, belief: NDArray[np.float64] | None = None
    ) -> NDArray[np.bool_]:
        """The people of whom more than a bound is believed, exactly; `belief` as `beliefs` has it."""
        belief = self.beliefs(code) if belief is None else belief
        result = belief > float(bound) + 1e-9
        near = np.flatnonzero(abs(belief - float(bound)) <= 1e-9)
        if len(near):
            count, owned = self.counts(code), self.owned
            # what is believed follows from the rows of each class, those of the person and those with the value there:
            # there are few kinds of that, and many people of each
            kind = self.kinds * (int(count.max()) + 1) + count[owned.group]
            last = np.append(self.first[1:], len(kind))[near]
            one = last - self.first[near] == 1
            _, example, number = np.unique(
                kind[self.first[near[one]]], return_index=True, return_inverse=True
            )
            over = [_exactly(owned, count, self.first, int(i)) > bound for i in near[one][example]]
            result[near[one]] = np.array(over, dtype=bool)[number]
            known: dict[tuple[int, ...], bool] = {}
            for i, end in zip(near[~one].tolist(), last[~one].tolist(), strict=True):
                key = tuple(sorted(kind[self.first[i] : end].tolist()))
                if key not in known:
                    known[key] = _exactly(owned, count, self.first, i) > bound
                result[i] = known[key]
        return result

    def exceeding(
        self, belief: NDArray[np.float64], bound: Fraction, exactly: Callable[[int], Fraction]
    ) -> NDArray[np.bool_]:
        """Which rounded beliefs are above a bound; those close to it are computed exactly, by their number."""
        result = belief > float(bound) + 1e-9
        near = np.flatnonzero(abs(belief - float(bound)) <= 1e-9)
        result[near] = [exactly(int(i)) > bound for i in near]
        return np.asarray(result)

    @cached_property
    def kinds(self) -> Ints:
        """A number for the rows of the class and those of the person, for each entry."""
        owned = self.owned
        most = int(owned.rows.max(initial=0)) + 1
        return numbered_values(owned.sizes[owned.group] * most + owned.rows)[1].astype(np.int64)

    def whom(self, which: int) -> str:
        """One person in words."""
        return person_in_words(self.grouping, self.owned, _entries(self.owned, self.first, which))

    def shown(self, code: int, which: int, what: str) -> str:
        """What the class with most rows of the person shows, in words."""
        most = max(_entries(self.owned, self.first, which), key=lambda e: (int(self.owned.rows[e]), -e))
        group = int(self.owned.group[most])
        c, n = int(self.counts(code)[group]), int(self.owned.sizes[group])
        return f"{c} of these {n} rows have {what}, and some row of the person is one of them this often"


_FOUND: WeakKeyDictionary[Grouping, dict[tuple[Any, ...], tuple[Belief, int]]] = WeakKeyDictionary()


def worst_person(grouping: Grouping, secrets: Secrets, bound: Fraction) -> tuple[Belief, int]:
    """The largest belief in a secret of anybody, and how many people it exceeds a bound for.

    Several attacks begin with it: it is computed once for each grouping.
    """
    asked = (
        secrets.attribute,
        tuple(map(tuple, secrets.sets)),
        bound,
        secrets.people,
        *secrets.reference.tolist(),
    )
    known = _FOUND.setdefault(grouping, {})
    if asked not in known:
        known[asked] = _worst_person(grouping, secrets, bound)
    return known[asked]


def _worst_person(grouping: Grouping, secrets: Secrets, bound: Fraction) -> tuple[Belief, int]:
    people = RowBeliefs.of(grouping, secrets.attribute, secrets.sets)
    worst, best, above = NOTHING, -1.0, np.zeros(len(people.first), dtype=bool)
    for code in people.codes:
        belief = people.beliefs(code)
        above |= people.above(code, bound, belief)
        top = int(belief.argmax())
        if belief[top] > best + 1e-12:
            best, why = float(belief[top]), people.shown(code, top, secrets.name(code))
            worst = Belief(secrets.before(code), people.exact(code, top), people.whom(top), why)
    return worst, int(above.sum())


def _ranges(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The numbers from each beginning to before its end, one after the other, and where each of these runs starts."""
    lengths = end - begin
    start = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) + np.repeat(begin - start, lengths), start


def _spared(owned: OwnedRows, count: Ints, entries: Ints) -> NDArray[np.float64]:
    """For some entries the chance that none of their rows holds the secret: ∏ (N−c−i)/(N−i)."""
    group, rows = owned.group[entries], owned.rows[entries]
    sizes, free = owned.sizes[group], (owned.sizes - count)[group]
    result = free / sizes
    more, i = np.flatnonzero(rows > 1), 1  # most people have one row of a class
    while len(more):
        result[more] *= np.maximum(free[more] - i, 0) / (sizes[more] - i)
        i += 1
        more = more[rows[more] > i]
    return result


def _exactly(owned: OwnedRows, count: Ints, first: Ints, which: int) -> Fraction:
    """The belief about one person as a fraction."""
    return 1 - _none_of(owned, count, _entries(owned, first, which))


def _none_of(owned: OwnedRows, count: Ints, entries: Iterable[int]) -> Fraction:
    """The chance that no row of some entries holds the secret, as a fraction."""
    none = Fraction(1)
    for e in entries:
        n, r, c = int(owned.sizes[owned.group[e]]), int(owned.rows[e]), int(count[owned.group[e]])
        for i in range(r):
            none *= Fraction(max(0, n - c - i), n - i)
    return none


def _entries(owned: OwnedRows, first: Ints, which: int) -> range:
    end = int(first[which + 1]) if which + 1 < len(first) else len(owned.person)
    return range(int(first[which]), end)


def person_in_words(grouping: Grouping, owned: OwnedRows, entries: Sequence[int]) -> str:
    """Somebody, by the entries of the person: how many rows of which class are theirs."""
    if not entries:
        return "somebody of whom no row is published"
    most = max(entries, key=lambda e: (int(owned.rows[e]), -e))
    group = int(owned.group[most])
    more = f", and rows in {len(entries) - 1} other classes" if len(entries) > 1 else ""
    size = int(owned.sizes[group])
    return f"somebody with {int(owned.rows[most])} of the {size} rows with {in_words(grouping, group)}{more}"
