"""Places: the people of a release, group by group, with what they really have; and the table in another world.

A world assigns the values of each published group to its people. People who were dropped keep theirs. Several sensitive
columns are dealt together, as the rows of the release show them together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maskwright.domain.adversary import Target
from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.summary import Joint, Summary, summary_of_rows


@dataclass(frozen=True, eq=False)
class PublishedPeople:
    """Everybody who was published, by group, then by tuple.

    Attributes:
        target: the release.
        tuples, group: of each place.
        items: what each really has: a number for a combination of values.
        groups: the groups that hold anybody.
        unit: people with equal quasi-identifiers are one unit; `tuples_of_units` says which. Where people have several
            rows, a place is a row, and a unit the rows of one person with equal quasi-identifiers.
        codes: per sensitive column the code that an item stands for.
        dropped: tuples and items of the people who were not published.
        people: whose row each place is, first those that are published, then the dropped ones; None: every row is a
            person.
    """

    target: Target
    tuples: Ints
    group: Ints
    items: Ints
    groups: Ints
    unit: Ints
    tuples_of_units: Ints
    codes: dict[str, Ints]
    dropped: tuple[Ints, Ints]
    people: Ints | None = None

    @staticmethod
    def of(target: Target) -> PublishedPeople:
        """The places of a release."""
        tuples, group, values, people = _people(target)
        names = list(target.grouping.summary.sensitive)
        kinds, items = np.unique(values, axis=1, return_inverse=True)
        items = items.reshape(-1).astype(np.int64)
        gone = group < 0
        order = np.flatnonzero(~gone)
        if people is None:
            order = order[np.lexsort((items[order], tuples[order], group[order]))]
        else:
            order = order[np.lexsort((items[order], people[order], tuples[order], group[order]))]
        unit, units = _units(tuples[order], None if people is None else people[order])
        return PublishedPeople(
            target, tuples[order], group[order], items[order], np.unique(group[order]), unit, units,
            {name: kinds[i].astype(np.int64) for i, name in enumerate(names)}, (tuples[gone], items[gone]),
            None if people is None else np.concatenate([people[order], people[gone]]),
        )  # fmt: skip

    def with_dropped(self) -> PublishedPeople:
        """Everybody of the table, also those who were dropped: in group −1, behind the others."""
        tuples, items = (
            np.concatenate(pair) for pair in zip((self.tuples, self.items), self.dropped, strict=True)
        )
        unit, units = _units(tuples, self.people)
        none = np.zeros(0, dtype=np.int64)
        return replace(
            self, tuples=tuples, items=items, group=np.concatenate([self.group, np.full(len(self.dropped[0]), -1)]),
            unit=unit, tuples_of_units=units, dropped=(none, none),
        )  # fmt: skip

    @property
    def n_units(self) -> int:
        """The number of units."""
        return len(self.tuples_of_units)

    def told_apart_by(self, kinds: Ints) -> tuple[PublishedPeople, Ints]:
        """The places with tuples of one kind (a column of `kinds` each) as units, and the unit of each tuple."""
        inside = np.unique(self.tuples)
        _, number = np.unique(kinds[:, inside], axis=1, return_inverse=True)
        unit_of = np.full(kinds.shape[1], -1, dtype=np.int64)
        unit_of[inside] = number.reshape(-1)
        first = np.zeros(int(unit_of.max(initial=-1)) + 1, dtype=np.int64)
        first[unit_of[inside][::-1]] = inside[::-1]
        return replace(self, unit=unit_of[self.tuples], tuples_of_units=first), unit_of

    def dropped_kinds(self, kinds: Ints) -> tuple[Ints, Ints]:
        """The kind of each dropped person, and the kinds that there are."""
        found, number = np.unique(kinds[:, self.dropped[0]], axis=1, return_inverse=True)
        return number.reshape(-1).astype(np.int64), found

    def summary(self, world: Ints) -> Summary:
        """The table as it would be in one world."""
        whole = self.target.grouping.summary
        tuples = np.concatenate([self.tuples, self.dropped[0]])
        items = np.concatenate([world, self.dropped[1]])
        if self.people is not None:
            values = np.stack([self.codes[name][items] for name in whole.sensitive])
            return summary_of_rows(whole, tuples, values, self.people)
        ones = np.ones(len(tuples), dtype=np.int64)
        sensitive = {
            name: ValueCounts.collect(
                counts.values, whole.n_tuples, tuples, self.codes[name][items], ones, counts.ordered
            )
            for name, counts in whole.sensitive.items()
        }
        joint = None
        if whole.joint is not None:
            radix = int(items.max(initial=0)) + 1  # items are numbered in the order of their values
            cells, rows = np.unique(tuples * radix + items, return_counts=True)
            values = np.stack([self.codes[name][cells % radix] for name in whole.sensitive]).astype(np.int32)
            joint = Joint(cells // radix, values, rows.astype(np.int64))
        return replace(whole, sensitive=sensitive, joint=joint)


def _units(tuples: Ints, people: Ints | None) -> tuple[Ints, Ints]:
    """The unit of each place, and the tuple of each unit: equal tuples, and of one person where rows are no people."""
    radix = 1 if people is None else int(people.max(initial=0)) + 1
    units, unit = np.unique(
        tuples * radix + (0 if people is None else people[: len(tuples)]), return_inverse=True
    )
    return unit.reshape(-1).astype(np.int64), units // radix


def _people(target: Target) -> tuple[Ints, Ints, Ints, Ints | None]:
    """Every row of the table: tuple, group (−1: dropped), the codes of the sensitive values, and whose it is."""
    grouping, summary = target.grouping, target.grouping.summary
    allocation, joint = grouping.allocation, summary.cells
    if allocation.cells is not None and joint is not None:
        entry = np.repeat(np.arange(len(allocation.cells)), allocation.rows)
        cells, group = allocation.cells[entry], allocation.groups[entry]
        people = None if joint.people is None else joint.people[cells]
        return joint.tuples[cells], group, joint.values[:, cells].astype(np.int64), people
    group_of = np.full(summary.n_tuples, -1, dtype=np.int64)
    group_of[allocation.tuples] = allocation.groups
    people = None
    if joint is not None:
        cells = np.repeat(np.arange(len(joint.tuples)), joint.rows)
        tuples, values = joint.tuples[cells], joint.values[:, cells].astype(np.int64)
        people = None if joint.people is None else joint.people[cells]
    else:
        counts = next(iter(summary.sensitive.values()))
        tuples = np.repeat(counts.owner, counts.counts)
        values = np.repeat(counts.codes, counts.counts).astype(np.int64)[None, :]
    return tuples, group_of[tuples], values, people
