"""The applied mapping: as what every value of a quasi-identifier was published. For documentation.

A full-domain recoding publishes a value as one label everywhere. Where groups have labels of their own (Mondrian,
local recoding …) a value may have several: each is listed with its rows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from maskwright.core.classes import Ints
from maskwright.core.formulas import escaped
from maskwright.core.grouping import Grouping, exact_view
from maskwright.disk import write_whole

Fate = Literal["published", "starred", "dropped"]


@dataclass(frozen=True)
class Mapped:
    """`rows` rows of the input have `value` in `column`, and show `label` there in `table` (None: missing).

    Of rows that were dropped nothing is shown. Where the policy coarsens a column before it is counted (`finest`),
    nobody knows how many rows have each of the values that became one: then `rows` is None.
    """

    table: str
    column: str
    value: str | None
    label: str | None
    rows: int | None
    fate: Fate = "published"


@dataclass(frozen=True)
class AppliedMapping:
    """All quasi-identifiers of a release.

    Attributes:
        entries: by table and column, then in the order of the hierarchy (missing first).
        full_domain: every published value has one label.
    """

    entries: tuple[Mapped, ...]
    full_domain: bool

    def __getitem__(self, column: str) -> dict[str | None, tuple[str | None, ...]]:
        """The labels of each published value of a column, in all tables."""
        found: dict[str | None, tuple[str | None, ...]] = {}
        known = False
        for entry in self.entries:
            known = known or entry.column == column
            if entry.column == column and entry.fate != "dropped":
                found[entry.value] = (*found.get(entry.value, ()), entry.label)
        if not known:
            raise KeyError(column)
        return found

    def __iter__(self) -> Iterator[Mapped]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def reveals(self) -> bool:
        """Does it say of any row what the release does not: a value that is coarsened, starred or dropped?"""
        return any(entry.fate != "published" or entry.label != entry.value for entry in self.entries)

    def write(self, path: Path, rows: bool = True) -> None:
        """As CSV; missing is an empty field. `rows`: also how many rows of the input that are.

        What a spreadsheet would run is escaped, because people open it in one. Where it reveals something only its
        owner can read the file.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["table", "column", "value", "label", *(["rows", "fate"] if rows else [])])
        for e in self.entries:
            row = [e.table, e.column, e.value, e.label, *([e.rows, e.fate] if rows else [])]
            writer.writerow(escaped(row))
        write_whole(path, text.getvalue(), mode=0o600 if self.reveals else None)


def applied_mapping(groupings: Mapping[str, Grouping], exact: bool = False) -> AppliedMapping:
    """What became of every value that occurs, by table.

    Args:
        groupings: of the tables that show quasi-identifiers (several only where a release has several parts).
        exact: the quasi-identifiers were published as they are.
    """
    shown = {table: exact_view(g) if exact else g for table, g in groupings.items()}
    entries = [e for table, g in shown.items() for a in range(len(g.labels)) for e in _column(table, g, a)]
    return AppliedMapping(tuple(entries), all(g.levels is not None for g in shown.values()))


def _column(table: str, grouping: Grouping, a: int) -> list[Mapped]:
    """The distinct (value, label) of one attribute, with their rows."""
    hierarchy, labels, allocation = grouping.summary.attributes[a], grouping.labels[a], grouping.allocation
    radix = len(labels.texts) + 1
    code = grouping.summary.codes[a][allocation.tuples].astype(np.int64)
    shown = np.where(allocation.groups >= 0, labels.of_group[allocation.groups] + 1, 0)  # 0: dropped
    starred = allocation.groups == (-2 if grouping.starred is None else grouping.starred)
    keys, rows = _totals((code * 2 + starred) * radix + shown, allocation.rows)
    result = []
    for key, n in zip(keys.tolist(), rows.tolist(), strict=True):
        rest, label = divmod(key, radix)
        fate: Fate = "dropped" if label == 0 else "starred" if rest % 2 else "published"
        text = labels.texts[label - 1] if label else None
        values = hierarchy.members(rest // 2) or (None,)
        known = n if len(values) == 1 else None
        result += [Mapped(table, hierarchy.attribute, value, text, known, fate) for value in values]
    return result


def _totals(keys: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The distinct keys, ascending, and the sum of rows of each."""
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    first = (
        np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, dtype=np.int64)
    )
    return keys[first], np.add.reduceat(rows, first) if len(first) else rows
