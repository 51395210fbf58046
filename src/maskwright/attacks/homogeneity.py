"""Homogeneity: what the class alone tells about its people [Machanavajjhala et al. 2006].

Nobody has to find a person's row to learn the person's value: it is enough that the class shows it. After the release
the belief in a secret is its share in the class, before it the share in the whole table.

Several rows per person: the belief that somebody has a secret in *some* row of theirs.

Which rows of a class are whose is not published, only how many. Under random worlds a person with r of the N rows of a
class, c of which hold the secret, has it in none of them with probability C(N−c, r)/C(N, r), and classes are
independent of each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maskwright.attacks._shared.secrets import (
    NOTHING,
    Secrets,
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
from maskwright.domain.exact import exact_bincount
from maskwright.domain.grouping import Grouping
from maskwright.domain.segments import known_counts


class Homogeneity(Attack):
    """The belief in a sensitive value from the person's class alone: its share in the class."""

    name: ClassVar[str] = "homogeneity"
    about: ClassVar[About] = "values"
    takes: ClassVar[frozenset[Knowledge]] = frozenset()

    def applies(self, target: Target) -> bool:
        """Whether sensitive values are published, and it is known whose rows they are."""
        return bool(target.grouping.published_classes.sensitive) and not self.unable(target)

    def unable(self, target: Target) -> str:
        """Why the attack cannot run: people have several rows, and it is not known how many."""
        summary = target.grouping.summary
        if summary.sensitive and summary.owned is None and not summary.rows_are_people:
            return (
                "people have several rows, and the release does not say how many; anonymize the table again"
            )
        return ""

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
        cells, groups, rows = grouping.cells
        people, n = _people_of_cells(grouping), grouping.classes.n
        keys, number = np.unique(people[cells] * n + groups, return_inverse=True)
        mine = exact_bincount(number.reshape(-1), rows, len(keys))
        return OwnedRows(keys // n, keys % n, mine, grouping.classes.rows)


def _people_of_cells(grouping: Grouping) -> Ints:
    """Whose rows the cells are."""
    cells = grouping.summary.personal
    if cells is None or cells.people is None:
        raise ValueError("this summary does not say whose rows they are")
    return cells.people


def rows_with_secrets(grouping: Grouping, secrets: Secrets) -> ValueCounts:
    """The rows of each class that hold each secret."""
    return gather_counts(known_counts(grouping.row_counts(secrets.attribute)), secrets.sets)


def worst_person(grouping: Grouping, secrets: Secrets, bound: Fraction) -> tuple[Belief, int]:
    """The largest belief in a secret of anybody, and how many people it exceeds a bound for."""
    owned, held = OwnedRows.of(grouping), rows_with_secrets(grouping, secrets)
    if not len(owned.person) or not len(held.counts):
        return NOTHING, 0
    first = np.flatnonzero(np.diff(owned.person, prepend=-1))
    worst, best = NOTHING, -1.0
    above = np.zeros(len(first), dtype=bool)
    for code in np.unique(held.codes).tolist():
        count = np.zeros(len(owned.sizes), dtype=np.int64)
        mine = held.codes == code
        count[held.owner[mine]] = held.counts[mine]
        belief = 1 - np.multiply.reduceat(_spared(owned, count), first)
        above |= belief > float(bound) + 1e-9
        near = np.flatnonzero(abs(belief - float(bound)) <= 1e-9)
        above[near] = [_exactly(owned, count, first, int(i)) > bound for i in near]
        top = int(belief.argmax())
        if belief[top] > best + 1e-12:
            best = float(belief[top])
            worst = _in_words(grouping, secrets, owned, count, first, top, code)
    return worst, int(above.sum())


def _spared(owned: OwnedRows, count: Ints) -> NDArray[np.float64]:
    """Per entry the chance that none of its rows holds the secret: ∏ (N−c−i)/(N−i)."""
    sizes, free = owned.sizes[owned.group], (owned.sizes - count)[owned.group]
    result = np.ones(len(owned.rows))
    for i in range(int(owned.rows.max(initial=0))):
        more = owned.rows > i
        result[more] *= np.maximum(free[more] - i, 0) / (sizes[more] - i)
    return result


def _exactly(owned: OwnedRows, count: Ints, first: Ints, which: int) -> Fraction:
    """The belief about one person as a fraction."""
    none = Fraction(1)
    for e in _entries(owned, first, which):
        n, r, c = int(owned.sizes[owned.group[e]]), int(owned.rows[e]), int(count[owned.group[e]])
        for i in range(r):
            none *= Fraction(max(0, n - c - i), n - i)
    return 1 - none


def _entries(owned: OwnedRows, first: Ints, which: int) -> range:
    end = int(first[which + 1]) if which + 1 < len(first) else len(owned.person)
    return range(int(first[which]), end)


def _in_words(
    grouping: Grouping, secrets: Secrets, owned: OwnedRows, count: Ints, first: Ints, which: int, code: int
) -> Belief:
    entries = _entries(owned, first, which)
    most = max(entries, key=lambda e: (int(owned.rows[e]), -e))
    group = int(owned.group[most])
    r, n, c = int(owned.rows[most]), int(owned.sizes[group]), int(count[group])
    more = f", and rows in {len(entries) - 1} other classes" if len(entries) > 1 else ""
    return Belief(
        secrets.before(code), _exactly(owned, count, first, which),
        f"somebody with {r} of the {n} rows with {in_words(grouping, group)}{more}",
        f"{c} of these {n} rows have {secrets.name(code)}, and some row of the person is one of them this often",
    )  # fmt: skip
