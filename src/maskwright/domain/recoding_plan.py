"""A plan: what the engine must write. Made from a grouping by `maskwright/recode`, carried out by an engine.

Full-domain recodings are a `Plan`, all others a `GroupPlan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.value_sets import SetColumn


@dataclass(frozen=True, eq=False)
class ColumnMap:
    """How one quasi-identifier is published: the text for each code of its hierarchy.

    `identity`: the column is not recoded, so it keeps the type it had in the source. `used`: the codes in the rows
    that are published, where these are known; None: any.
    """

    hierarchy: Hierarchy
    texts: tuple[str | None, ...]
    identity: bool
    used: NDArray[np.int32] | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """Full-domain recoding: one map per quasi-identifier, and the tuples that are suppressed.

    Attributes:
        columns: the published columns in order; those without a map are passed through.
        maps: one per quasi-identifier, in the order of the summary's attributes.
        suppressed: codes of the suppressed tuples, one row per attribute, one column per tuple.
        star: publish suppressed rows with every quasi-identifier `*`; otherwise they are dropped.
        drop_missing: rows with a missing value in one of these columns are left out.
        key: the secret that orders the published rows (256 bits, hexadecimal); empty: they stay in order.
        n_rows: how many rows will be published, where that is known.
    """

    columns: Sequence[str]
    maps: Sequence[ColumnMap]
    suppressed: NDArray[np.int32]
    star: bool
    drop_missing: Sequence[str]
    key: str
    n_rows: int | None = None

    @property
    def suppresses(self) -> bool:
        """Whether any tuple is suppressed."""
        return bool(self.suppressed.shape[1])

    @property
    def stars(self) -> bool:
        """Are there rows that are published as `*`?"""
        return self.suppresses and self.star

    @property
    def by_name(self) -> dict[str, ColumnMap]:
        """The map of each quasi-identifier by its name."""
        return {m.hierarchy.attribute: m for m in self.maps}


@dataclass(frozen=True, eq=False)
class Units:
    """The rows that an allocation does not tell apart, by the codes of some columns.

    Attributes:
        names: the columns: the quasi-identifiers, and all sensitive columns where units are cells.
        domains: the values of each column; value i has code i + 1, missing is 0.
        codes: one row per column, one column per unit.
    """

    names: tuple[str, ...]
    domains: tuple[tuple[str, ...], ...]
    codes: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class PublishedColumn:
    """A column that is published by what is known of each entry, not by what its rows hold.

    Attributes:
        name: the column.
        domain: its values.
        texts: what index i is published as; None: it is the code of a value, which is published in the type that
            the column has in the source.
        index: entry e is published as `index[of[e]]`: what a tuple or a group shows is listed once, not once for
            each of its entries.
        of: the tuple or the group of each entry; None: `index` has one number per entry.
    """

    name: str
    domain: tuple[str, ...]
    texts: tuple[str | None, ...] | None
    index: NDArray[np.int32]
    of: NDArray[np.integer] | None = None

    def shown(self, entries: NDArray[np.integer] | slice) -> NDArray[np.int32]:
        """The index of some entries that are not left out."""
        return self.index[entries if self.of is None else self.of[entries]]


@dataclass(frozen=True, eq=False)
class ShuffledBlock:
    """Sensitive columns that are shuffled together: their values in each group, as a multiset.

    `rows[i]` rows of group `groups[i]` have the values with codes `codes[:, i]`. Sorted by group.
    """

    names: tuple[str, ...]
    domains: tuple[tuple[str, ...], ...]
    codes: NDArray[np.int32]
    groups: NDArray[np.int32]
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupPlan:
    """Recoding by groups: `rows[e]` rows of unit `unit[e]` go to group `groups[e]`, for each entry e.

    Which rows of a unit go to which of its entries is drawn with a key.

    Attributes:
        columns: the published columns in order; those without `published` or `blocks` are passed through.
        units: how rows are told apart.
        unit: the unit of each entry, ascending.
        groups: the published number of its group, from 1; 0: the rows are left out.
        rows: how many rows of the unit it takes; the entries of a unit take all of them.
        published: what is known of entries.
        blocks: what is shuffled inside the groups; none: every row keeps its values.
        group_column: the name under which group numbers are published, before the other columns.
        drop_missing: rows with a missing value in one of these columns are left out.
        key: the secret behind the order of the rows, and behind what is shuffled (256 bits, hexadecimal).
        numbers: the published number of each group of the grouping (0: none), where classes go by number.
        members_key: the secret by which the rows of a unit are dealt to its entries; by default the other one.
    """

    columns: Sequence[str]
    units: Units
    unit: NDArray[np.int64]
    groups: NDArray[np.int32]
    rows: NDArray[np.int64]
    published: Sequence[PublishedColumn]
    blocks: Sequence[ShuffledBlock]
    group_column: str | None
    drop_missing: Sequence[str]
    key: str
    numbers: NDArray[np.int32] | None = None
    members_key: str = ""

    @property
    def dealing_key(self) -> str:
        """The secret behind which rows of a unit are in which entry."""
        return self.members_key or self.key

    def split_columns(self) -> tuple[list[str], list[str]]:
        """The columns of the two tables of a bucketized release: of the rows, and of the shuffled values."""
        if not self.blocks:
            raise ValueError("there is nothing to put into the table of sensitive values")
        apart = {name for block in self.blocks for name in block.names}
        return [n for n in self.columns if n not in apart], [n for n in self.columns if n in apart]

    @property
    def splits_units(self) -> bool:
        """Are the rows of some unit in several entries?"""
        return not bool((np.diff(self.unit) > 0).all())

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Rows by published group number (index 0: left out)."""
        result = np.zeros(int(self.groups.max(initial=0)) + 1, dtype=np.int64)
        np.add.at(result, self.groups, self.rows)
        return result

    @property
    def n_rows(self) -> int:
        """Rows that are published."""
        return int(self.sizes[1:].sum())

    @property
    def passed(self) -> tuple[str, ...]:
        """The columns that only the rows themselves can tell."""
        known = {p.name for p in self.published} | {name for b in self.blocks for name in b.names}
        return tuple(name for name in self.columns if name not in known)


@dataclass(frozen=True)
class Layout:
    """One published table: its columns, those that tell classes apart, and its sensitive attributes.

    `sets` are its columns of sets, as far as this table tells of them; their bits are among `sensitive`. `perturbed`
    are the columns that it shows otherwise than the input had them.
    """

    name: str
    columns: tuple[str, ...]
    classes_by: tuple[str, ...]
    sensitive: tuple[str, ...]
    sets: tuple[SetColumn, ...] = ()
    perturbed: tuple[str, ...] = ()

    @property
    def counted(self) -> tuple[str, ...]:
        """The sensitive attributes that can be counted in it."""
        return tuple(name for name in self.sensitive if name not in self.perturbed)

    @staticmethod
    def of(
        name: str,
        columns: Sequence[str],
        classes_by: Sequence[str],
        sensitive: Sequence[str],
        sets: Sequence[SetColumn],
    ) -> Layout:
        """The layout of a table with these columns once its bits are sets again."""
        owner = {bit: s.name for s in sets for bit in s.bits}
        shown = tuple(dict.fromkeys(owner.get(c, c) for c in columns))
        here = tuple(s for s in sets if s.name in shown)
        return Layout(name, shown, tuple(classes_by), tuple(sensitive), here)
