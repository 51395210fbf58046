"""What an engine does: it summarises rows, recodes them, and recounts what was written. Nothing else sees rows.

Values are compared as *canonical text* on every engine: text without surrounding blanks; whole numbers without
a decimal point ("39", also from a floating column); other numbers as the engine prints them; dates as
2024-01-31; timestamps as 2024-01-31 12:00:00; booleans as true/false. Empty text, NaN, NULL and the policy's
missing tokens are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.recoding_plan import GroupPlan, Plan
from maskwright.domain.spreadsheets import Formulas
from maskwright.domain.summary import Summary
from maskwright.domain.value_sets import SetColumn
from maskwright.identifiers.date_shifts import DateOffsets
from maskwright.identifiers.pseudonyms import Pseudonyms
from maskwright.prepare import Preparation, Repair
from maskwright.runtime.events import Progress

Format = Literal["csv", "parquet"]
Match = Literal["is", "holds", "least", "most", "missing"]
Kind = Literal["text", "integer", "number", "boolean", "date", "timestamp", "other"]


@dataclass(frozen=True)
class Reading:
    """How to read a file, and what counts as missing. None: found out from the file."""

    format: Format | None = None
    delimiter: str | None = None
    quote: str | None = None
    encoding: str = "utf-8"
    header: bool = True
    missing: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()  # columns of a frame that hold lists of values
    sheet: str | None = None
    labels: bool = False
    escaped: bool = False  # a CSV file of ours whose cells were escaped (domain/spreadsheets.py)
    trim: bool = True  # blanks around a text are no part of it; a published table is read as it is
    prepare: tuple[tuple[str, Preparation], ...] = ()  # what is done to messy columns
    names: Literal["refuse", "repair"] = "refuse"  # of a CSV file, where they are empty or occur twice

    @staticmethod
    def back(format: Format | None, escaped: bool) -> Reading:
        """How a table that was written here is read: nothing is guessed."""
        return Reading(format, "," if format == "csv" else None, escaped=escaped, trim=False)


@dataclass(frozen=True)
class ColumnInfo:
    """A column of an opened table; `type` is the engine's own name for its type."""

    name: str
    kind: Kind
    type: str


Row = dict[str, str | None]


@dataclass(frozen=True)
class Wanted:
    """Which rows somebody wants to look at, and in which order.

    Attributes:
        columns: what is read; nothing is read of other columns.
        having: (column, how, text): is, holds (any part, in capitals or not), least, most (of numbers), missing.
        order: the column by which they are sorted, numbers as numbers; None: as they stand in the table.
        descending: the greatest first.
    """

    columns: tuple[str, ...]
    having: tuple[tuple[str, Match, str], ...] = ()
    order: str | None = None
    descending: bool = False


@dataclass(frozen=True)
class Domain:
    """The distinct canonical values of a column, ascending (numbers by value), with their rows."""

    values: tuple[str, ...]
    counts: tuple[int, ...]
    missing: int
    numeric: bool  # every value is a number, and `values` are in numeric order


@dataclass(frozen=True)
class SensitiveSpec:
    """A sensitive column and its domain; `ordered` when the order of the values means something."""

    name: str
    values: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True)
class SummarySpec:
    """What to count. `unit` names the column that tells persons apart, where rows are not persons.

    `named`: rows will be read again by person, so that the names of persons are kept.
    """

    attributes: Sequence[Hierarchy]
    sensitive: Sequence[SensitiveSpec] = ()
    unit: str | None = None
    drop_missing: bool = False
    named: bool = False


Texts = tuple[str | None, ...] | Ints  # an array: the canonical texts of whole numbers, as numbers


@dataclass(frozen=True, eq=False)
class Found:
    """Values of a sensitive column: `counts[i]` people of class `owner[i]` have the value `texts[codes[i]]`."""

    texts: Texts
    owner: Ints
    codes: Ints
    counts: Ints


@dataclass(frozen=True, eq=False)
class Recount:
    """Classes found in a published table, in ascending order of their labels; nothing else about it matters here.

    There may be as many classes as a fraction of the rows, so they are arrays: no object is made for each.

    Attributes:
        texts: per column its labels, each once and ascending, missing (None) last.
        codes: one row per column, one column per class: class c is labelled `texts[i][codes[i, c]]`.
        rows: how many rows each class has.
        people: the same, unless a unit column was counted.
        values: per sensitive column what was found in the classes, by class.
    """

    texts: tuple[Texts, ...]
    codes: NDArray[np.int32]
    rows: Ints
    people: Ints
    values: dict[str, Found] = field(default_factory=dict)

    @cached_property
    def labels(self) -> list[tuple[str | None, ...]]:
        """The labels of each class, spelled out."""
        columns = [spelled(t, c) for t, c in zip(self.texts, self.codes, strict=True)]
        return list(zip(*columns, strict=True)) if columns else [()] * len(self.rows)

    def entries(self, name: str) -> list[tuple[int, str | None, int]]:
        """(class number, value or None, people) of a sensitive column, spelled out."""
        found = self.values[name]
        values = spelled(found.texts, found.codes)
        return list(zip(found.owner.tolist(), values, found.counts.tolist(), strict=True))


def spelled(texts: Texts, codes: NDArray[np.integer]) -> list[str | None]:
    """The texts that codes stand for."""
    if isinstance(texts, np.ndarray):
        return [str(number) for number in texts[codes].tolist()]
    return [texts[code] for code in codes.tolist()]


def shared(one: Texts, two: Texts) -> tuple[Ints, Ints, int]:
    """For each text of either list a number that both share, and how many numbers there are."""
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        known, numbers = np.unique(np.concatenate([one, two]), return_inverse=True)
        return numbers[: len(one)], numbers[len(one) :], len(known)
    code: dict[str | None, int] = {}
    lists = [
        np.array([code.setdefault(t, len(code)) for t in spelled(x, np.arange(len(x)))], dtype=np.int64)
        for x in (one, two)
    ]
    return lists[0], lists[1], max(len(code), 1)


class Table(Protocol):
    """An opened source. `caller` says what was handed in: "path", "pandas", "polars", "pyarrow", "duckdb" …"""

    @property
    def columns(self) -> tuple[ColumnInfo, ...]:
        """The columns, in their order."""

    @property
    def caller(self) -> str:
        """The kind of thing that was handed in."""

    @property
    def format(self) -> Format:
        """The file format to write by default."""

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """What was found in the columns that were prepared."""


class Engine(Protocol):
    """The whole interface; a second engine implements these and touches nothing else."""

    name: str

    def open(self, source: Any, reading: Reading) -> Table:
        """Open a path or a table handed in from Python. Refuses what cannot be read, naming line or column.

        Its columns are prepared as `reading` says.
        """

    def prepare(self, table: Table, steps: Sequence[tuple[str, Preparation]]) -> Table:
        """The table with its messy columns made plain; columns that it does not have are passed over.

        Each cell follows from the cells of its own row. Refuses what does not fit, by form and count.
        """

    def count(self, table: Table) -> int:
        """Rows."""

    def fingerprint(self, table: Table) -> str:
        """What tells inputs apart: the sum of a hash of each row, with their number and the names of the columns.

        It does not depend on the order of the rows, nor on how columns are prepared. The hash is the engine's own,
        quick and not cryptographic: it tells whether this input was seen before, and protects nothing.
        """

    def domain(self, table: Table, column: str, limit: int | None = None) -> Domain:
        """Distinct canonical values. With `limit`, at most that many values (the commonest)."""

    def domains(self, table: Table, columns: Sequence[str], limit: int | None = None) -> Iterator[Domain]:
        """`domain` of each column; many small ones are looked at together."""

    def elements(self, table: Table, column: str, separator: str | None) -> Domain:
        """The distinct canonical values in the sets of a column (texts with a separator, or lists)."""

    def unfold(self, table: Table, columns: Sequence[SetColumn]) -> Table:
        """The table with its columns of sets replaced by one yes-or-no column for each of their values."""

    def fold(self, table: Table, columns: Sequence[SetColumn]) -> Table:
        """A recoded table with sets in place of those columns again."""

    def pseudonymise(self, table: Table, pseudonyms: Mapping[str, Pseudonyms]) -> Table:
        """The table with the pseudonyms of their canonical values in some columns; what is missing stays so."""

    def shift_dates(self, table: Table, columns: Sequence[str], person: str, offsets: DateOffsets) -> Table:
        """The table with the days of some columns moved, all those of a person by the same; missing ones stay so.

        Refuses what is no day (2026-05-31), and days of nobody, by count.
        """

    def row_texts(
        self, table: Table, columns: Sequence[str], hashed: bool = False
    ) -> tuple[dict[str, NDArray[np.object_]], NDArray[np.uint64]]:
        """The canonical texts of some columns row by row, missing as None; and a hash of each whole row, if wanted.

        The hash follows from what a row holds, so that rows can be put into an order that is not the table's.
        """

    def add_columns(self, table: Table, columns: Mapping[str, tuple[str, NDArray[np.object_]]]) -> Table:
        """The table with more columns: by name the column whose type they have, and a text for each row.

        Without such a column they are whole numbers. Where the texts have decimals and that type has none, they are
        numbers of floating point.
        """

    def shown_columns(self, table: Table, columns: Mapping[str, str]) -> Table:
        """A recoded table with these columns only: by its new name the column that each was."""

    def draw_rows(self, table: Table, most: int, person: str, draw: Pseudonyms) -> Table:
        """The table with at most so many rows of each person, every choice of them with the same chance.

        The column `person` tells persons apart; rows where it is missing stay. `draw` is behind the choice: the same
        for the same rows in any order, and a larger number keeps those of a smaller one.
        """

    def coarsen(self, table: Table, hierarchies: Sequence[Hierarchy]) -> Table:
        """The table with columns that show the ground values of cut hierarchies (`Hierarchy.cut_at`).

        No row is copied. Refuses a value that its hierarchy does not know, naming it.
        """

    def sample(
        self, table: Table, rows: int, columns: Sequence[str] | None = None
    ) -> list[dict[str, str | None]]:
        """A few rows as canonical text, for before/after examples; nothing is read of columns that are not named."""

    def look_up(self, table: Table, wanted: Wanted, first: int, rows: int) -> tuple[list[Row], int]:
        """Some rows as canonical text, from number `first` on of those that are wanted; and how many are."""

    def sample_table(self, table: Table, rows: int) -> Any:
        """Rows drawn at random, the same ones each time, as a table that `open` reads like the source."""

    def uniqueness(
        self, table: Table, columns: Sequence[str], person: str | None = None
    ) -> tuple[int, int, int]:
        """(number of distinct combinations, rows whose combination is unique, rows of the rarest combination).

        With the column that tells persons apart, people are counted instead of rows.
        """

    def lone_values(self, table: Table, columns: Sequence[str], beside: Sequence[str] = ()) -> list[int]:
        """For each column, the rows whose value of it nobody else has; or its combination with those `beside` it."""

    def in_order(
        self, table: Table, columns: Sequence[str], domains: Sequence[tuple[str, ...]], limit: int
    ) -> list[Ints]:
        """The first rows in the order of the table: per column the code of each (value i is i + 1, missing 0)."""

    def combinations(
        self, table: Table, spec: SummarySpec, choices: Sequence[Mapping[str, int]]
    ) -> list[int]:
        """About how many cells a summary would have; one number for each choice of coarser levels by column."""

    def summarise(self, table: Table, spec: SummarySpec) -> Summary:
        """The frequency set. Refuses a value that its hierarchy does not know, naming it."""

    def recode(self, table: Table, plan: Plan | GroupPlan) -> Table:
        """The published table, rows in an order that says nothing about the source. Not yet written."""

    def bucketize(self, table: Table, plan: GroupPlan) -> dict[str, Table]:
        """Two tables with the same group numbers, `quasi-identifiers` and `sensitive`. Not yet written."""

    def keep(self, table: Table) -> Table:
        """A recoded table that is to be read more than once: made now, if every reading would make it again."""

    def write(self, table: Table, path: Path, format: Format, formulas: Formulas = "refuse") -> None:
        """Write a recoded table; the container holds nothing but the published values.

        `formulas` says what happens to cells of a CSV file that a spreadsheet would run.
        """

    def forget(self, table: Table) -> None:
        """A recoded table that is written will not be read again: what was stored for it may go."""

    def recount(
        self, table: Table, columns: Sequence[str], sensitive: Sequence[str] = (), unit: str | None = None
    ) -> Recount:
        """Group a table by its columns as they are: what `verify` relies on."""

    def holds(self, table: Table, columns: Sequence[str], rows: Iterable[Recount]) -> bool:
        """Does a table have exactly these rows, in any order? Two sums of 64-bit hashes of the rows may decide it.

        The rows come in pieces, all with the same texts; there is at least one.
        """

    def hand_over(self, table: Table) -> Any:
        """A recoded table as the caller's own kind."""

    def allow(self, memory: int) -> None:
        """The most memory to use from now on, in bytes; what is held beyond that goes to disk."""

    def watch(self, progress: Progress) -> AbstractContextManager[None]:
        """While the context lasts: tell how far a pass over rows is, and stop it when asked to."""

    def close(self) -> None:
        """Give back what the engine holds."""
