"""The frequency set: distinct quasi-identifier tuples, and how often each sensitive value occurs with each.

Lattice searches, partitioning methods, models, attacks and most metrics need nothing else; the rows stay
where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, Ints, ValueCounts
from maskwright.domain.exact import exact_bincount, numbered_values, sorted_distinct
from maskwright.domain.guards import Guards
from maskwright.domain.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class Shared:
    """People whose rows lie in more than one tuple, so that class sizes do not simply add up.

    One entry per (tuple, person), and per sensitive attribute one per (tuple, person, value). Persons are
    numbered 0..n_people-1; who they are is not kept.
    """

    tuples: Ints
    people: Ints
    n_people: int
    values: Mapping[str, tuple[Ints, Ints, Ints]] = field(default_factory=dict)  # tuple, person, code


@dataclass(frozen=True, eq=False)
class Owned:
    """Whose rows they are, where a person may have several: one entry per (tuple, person).

    Persons are numbered 0..n_people-1; who they are is not kept. `values` counts the rows, not the people, of each
    tuple by sensitive value.
    """

    tuples: Ints
    people: Ints
    rows: Ints
    n_people: int
    values: Mapping[str, ValueCounts] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Joint:
    """Cells: the rows that share their quasi-identifiers and all their sensitive values.

    Methods that split the rows of one tuple need it. Cells are in ascending order of tuple, then of values.
    `values` has one row per sensitive attribute, in the order of `Summary.sensitive`. `people`: whose rows they are,
    where cells are told apart by person, too, and then ascending last; None: every row is a person.
    """

    tuples: Ints
    values: NDArray[np.int32]
    rows: Ints
    people: Ints | None = None


@dataclass(frozen=True, eq=False)
class Summary:
    """Distinct QI tuples as codes (see `Hierarchy`), with their rows, people and sensitive values.

    Attributes:
        attributes: the hierarchy of each quasi-identifier, in policy order.
        codes: one row per attribute, one column per tuple.
        rows: rows of each tuple.
        sizes: people found in this tuple and in no other (equal to `rows` when every row is a person).
        sensitive: per sensitive attribute the counts by tuple, of the people in `sizes`.
        shared: the remaining people, where the policy names a unit and somebody has rows in several tuples.
        dropped_missing: rows left out because the policy drops rows with missing values.
        joint: joint counts of the sensitive attributes; None where rows are not people.
        owned: whose rows they are, where the policy names a unit; None: every row is a person.
        weights: the sum of the survey weights of the rows of each tuple, where the policy names them.
        households: whose household each row belongs to, where the policy says so; only risks are counted by it.
        personal: cells by person, where the policy names a unit. Persons are numbered by what they have.
        names: the names of these persons, where rows must be read again to be told apart by them.
        dropped_per_person: rows left out at random of people who have more than the policy keeps of anybody.
        guards: per sensitive attribute the nodes that guard somebody of each tuple, where a requirement names them.
    """

    attributes: tuple[Hierarchy, ...]
    codes: NDArray[np.int32]
    rows: Ints
    sizes: Ints
    sensitive: Mapping[str, ValueCounts]
    shared: Shared | None = None
    dropped_missing: int = 0
    joint: Joint | None = None
    owned: Owned | None = None
    weights: NDArray[np.float64] | None = None
    households: Owned | None = None
    personal: Joint | None = None
    names: tuple[str, ...] | None = None
    dropped_per_person: int = 0
    guards: Mapping[str, Guards] | None = None

    @property
    def n_input(self) -> int:
        """Rows of the input: those that were counted, and those that were left out before."""
        return self.n_rows + self.dropped_missing + self.dropped_per_person

    @property
    def cells(self) -> Joint | None:
        """The finest cells there are: by person, where the policy names a unit."""
        return self.joint if self.joint is not None else self.personal

    @property
    def n_tuples(self) -> int:
        """The number of distinct tuples."""
        return len(self.rows)

    @property
    def n_cells(self) -> int:
        """Distinct combinations with their sensitive values (of people who are in several tuples: one each)."""
        shared = len(self.shared.tuples) if self.shared is not None else 0
        if self.cells is not None:
            return len(self.cells.rows)
        return shared + max([self.n_tuples, *(len(vc.owner) for vc in self.sensitive.values())])

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.rows.sum())

    @property
    def n_people(self) -> int:
        """The number of people."""
        return int(self.sizes.sum()) + (self.shared.n_people if self.shared else 0)

    @property
    def rows_are_people(self) -> bool:
        """Is every row a person of its own? What an attack counts by rows is about people only then."""
        return self.owned is None and self.shared is None and bool(np.array_equal(self.rows, self.sizes))

    @property
    def whole_tuples_are_people(self) -> bool:
        """Do class sizes add up over tuples? Fast paths of the searches need it."""
        return self.shared is None

    def classes(self, group_of: Ints, n_groups: int) -> Classes:
        """Sizes and sensitive counts when tuple i goes to group `group_of[i]` (negative: to none)."""
        kept = group_of >= 0
        rows = exact_bincount(group_of[kept], self.rows[kept], n_groups)
        sizes = exact_bincount(group_of[kept], self.sizes[kept], n_groups)
        several = None
        if self.shared is not None:
            several = _pairs(group_of[self.shared.tuples], self.shared.people)
            sizes = sizes + np.bincount(several[0], minlength=n_groups)
        sensitive = {name: self._values(name, group_of, n_groups) for name in self.sensitive}
        return Classes(sizes, rows, sensitive, several=several)

    def cell_classes(self, cells: Ints, groups: Ints, rows: Ints, n_groups: int) -> Classes:
        """Sizes and sensitive counts when `rows[i]` rows of cell `cells[i]` of `cells` go to `groups[i]`."""
        joint = self.cells
        if joint is None:
            raise ValueError("this summary has no joint counts")
        kept = groups >= 0
        cells, groups, rows = cells[kept], groups[kept], rows[kept]
        total = exact_bincount(groups, rows, n_groups)
        sizes, sensitive, several = total, {}, None
        if joint.people is not None:
            several = _pairs(groups, joint.people[cells])
            sizes = np.bincount(several[0], minlength=n_groups)
        for i, name in enumerate(self.sensitive):
            codes = joint.values[i][cells].astype(np.int64)
            sensitive[name] = self.personal_counts(name, cells, groups, codes, rows, n_groups)
        return Classes(sizes, total, sensitive, several=several)

    def personal_counts(
        self, name: str, cells: Ints, groups: Ints, codes: Ints, rows: Ints, n_groups: int
    ) -> ValueCounts:
        """Who holds each code in each group, when `rows[i]` rows of cell `cells[i]` are in `groups[i]` with `codes[i]`.

        A value counts once for each person of a group, however many rows of the person carry it.
        """
        vc, people = self.sensitive[name], None if self.cells is None else self.cells.people
        if people is not None:
            groups, codes = _once_per_person(groups, people[cells], codes, len(vc.values) + 1)
            rows = np.ones(len(codes), dtype=np.int64)
        return ValueCounts.collect(vc.values, n_groups, groups, codes, rows, vc.ordered)

    def totals(self) -> Classes:
        """The whole table as one class."""
        return self.classes(np.zeros(self.n_tuples, dtype=np.int64), 1)

    def row_totals(self, name: str) -> Ints:
        """The rows with each code of a sensitive attribute in the whole table, whosever they are."""
        vc, cells = self.sensitive[name], self.personal
        if cells is None:
            return vc.totals
        codes = cells.values[list(self.sensitive).index(name)].astype(np.int64)
        return exact_bincount(codes, cells.rows, len(vc.values) + 1)

    @property
    def tuple_sizes(self) -> Ints:
        """The people of every distinct tuple."""
        if self.shared is None:
            return self.sizes
        return self.sizes + np.bincount(
            _pairs(self.shared.tuples, self.shared.people)[0], minlength=self.n_tuples
        )

    def tuple_classes(self) -> Classes:
        """The raw table: every distinct tuple a class of its own."""
        return self.classes(np.arange(self.n_tuples, dtype=np.int64), self.n_tuples)

    def _values(self, name: str, group_of: Ints, n_groups: int) -> ValueCounts:
        vc = self.sensitive[name]
        owner = group_of[vc.owner]
        keep = owner >= 0
        owners, codes, counts = [owner[keep]], [vc.codes[keep].astype(np.int64)], [vc.counts[keep]]
        if self.shared is not None:
            t, person, code = self.shared.values[name]
            group = group_of[t]
            inside = group >= 0
            # a value counts once per person and class, however many of the person's rows carry it
            found, held = _once_per_person(group[inside], person[inside], code[inside], len(vc.values) + 1)
            owners.append(found)
            codes.append(held)
            counts.append(np.ones(len(found), dtype=np.int64))
        return ValueCounts.collect(
            vc.values,
            n_groups,
            np.concatenate(owners),
            np.concatenate(codes),
            np.concatenate(counts),
            vc.ordered,
        )


def _pairs(group: Ints, person: Ints) -> tuple[Ints, Ints]:
    """The groups and people of rows, each pair once; a negative group is none."""
    inside = group >= 0
    n = int(person.max(initial=0)) + 1
    pairs = sorted_distinct(group[inside] * n + person[inside])
    return pairs // n, pairs % n


def _once_per_person(group: Ints, person: Ints, code: Ints, radix: int) -> tuple[Ints, Ints]:
    """Groups and codes, each code once for each person of a group, however many rows carry it."""
    n = int(person.max(initial=0)) + 1
    if (int(group.max(initial=0)) + 1) * n * radix < 2**62:
        triples = sorted_distinct((group * n + person) * radix + code)
        return triples // (n * radix), triples % radix
    keys, number = numbered_values(group * n + person)
    triples = sorted_distinct(number * radix + code)
    return keys[triples // radix] // n, triples % radix


def personal_cells(tuples: Ints, values: NDArray[np.int32], rows: Ints, people: Ints) -> tuple[Joint, Ints]:
    """Cells told apart by person, sorted, and the new number of each person.

    Persons are numbered by what they have: other names for the same people change nothing.
    """
    has = np.zeros(int(people.max(initial=-1)) + 1, dtype=np.uint64)
    mixed = _mixed_words(tuples)
    for column in (*values, rows):
        mixed = _mixed_words(mixed + column.astype(np.uint64))
    np.add.at(has, people, mixed)
    rank = np.empty(len(has), dtype=np.int64)
    rank[np.argsort(has, kind="stable")] = np.arange(len(has))
    people = rank[people]
    order = _cell_order(tuples, values, people)
    return Joint(tuples[order], np.ascontiguousarray(values[:, order]), rows[order], people[order]), rank


def _cell_order(tuples: Ints, values: NDArray[np.int32], people: Ints) -> Ints:
    """The order of cells by tuple, values and person: by one key of all of them, where it fits into 62 bits."""
    columns = (tuples, *values, people)
    radices = [int(column.max(initial=0)) + 1 for column in columns]
    if prod(radices) >= 2**62:
        return np.lexsort(tuple(reversed(columns)))
    key = np.zeros(len(tuples), dtype=np.int64)
    for column, radix in zip(columns, radices, strict=True):
        key = key * radix + column
    return np.argsort(key)  # every cell once: no two keys are equal


def summary_of_rows(whole: Summary, tuples: Ints, values: Ints, people: Ints) -> Summary:
    """The summary of rows with these tuples, values (one row per sensitive attribute) and owners.

    The tuples, and the number of rows of each, are those of another summary that counts people: only whose row holds
    which value differs.
    """
    cells, rows = np.unique(np.stack([tuples, people, *values]), axis=1, return_counts=True)
    personal, _ = personal_cells(cells[0], cells[2:].astype(np.int32), rows.astype(np.int64), cells[1])
    assert personal.people is not None  # noqa: S101 - for the type checker
    radix, n = int(personal.people.max(initial=0)) + 1, whole.n_tuples
    pairs, at = np.unique(personal.tuples * radix + personal.people, return_inverse=True)
    pair_tuples, pair_people = np.divmod(pairs, radix)
    wanders = np.bincount(pair_people, minlength=radix) > 1
    number = np.cumsum(wanders) - 1  # among those who are in several tuples
    sensitive, shared, by_rows = {}, {}, {}
    for (name, vc), codes in zip(whole.sensitive.items(), personal.values.astype(np.int64), strict=True):
        held, code = np.divmod(np.unique(at.reshape(-1) * (len(vc.values) + 1) + codes), len(vc.values) + 1)
        owner, there = pair_tuples[held], wanders[pair_people[held]]
        ones = np.ones(int((~there).sum()), dtype=np.int64)
        sensitive[name] = ValueCounts.collect(vc.values, n, owner[~there], code[~there], ones, vc.ordered)
        shared[name] = (owner[there], number[pair_people[held[there]]], code[there])
        by_rows[name] = ValueCounts.collect(vc.values, n, personal.tuples, codes, personal.rows, vc.ordered)
    apart = wanders[pair_people]
    return replace(
        whole,
        sizes=np.bincount(pair_tuples[~apart], minlength=n).astype(np.int64),
        sensitive=sensitive,
        shared=Shared(pair_tuples[apart], number[pair_people[apart]], int(wanders.sum()), shared)
        if apart.any()
        else None,
        owned=Owned(
            pair_tuples,
            pair_people,
            exact_bincount(at.reshape(-1), personal.rows, len(pairs)),
            radix,
            by_rows,
        ),
        personal=personal,
        names=None,
    )


def _mixed_words(values: NDArray[np.integer]) -> NDArray[np.uint64]:
    """splitmix64: numbers that are near become numbers that are not."""
    x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
