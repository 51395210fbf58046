"""A release beside its table: its classes, of any method, with everybody who is in them.

Read from what `private/` keeps: no row of the table is read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.domain.classes import Ints, ValueCounts
from maskwright.domain.grouping import Grouping
from maskwright.engines.base import Reading
from maskwright.errors import UsageError
from maskwright.folder.store import read_json
from maskwright.pipeline.attacking import published_parts
from maskwright.policy.policy import Policy

MISSING = "missing"
PAGE = 50  # classes, or combinations inside one, that are shown at once
LARGEST = 200 << 20  # bytes of the state of a release that a page may load
SUPPRESSED = -1
Spelled = tuple[list[str], Ints]  # texts, and which of them each entry has


@dataclass(frozen=True, eq=False)
class ShownPart:
    """One table of a release.

    Attributes:
        name: the name of its file.
        grouping: who is in which class.
        exact: quasi-identifiers are published as they are.
        apart: the release does not say which sensitive value belongs to whom.
        file: where it was published, and how that file is read.
        columns: those of that file.
        policy: under which it was made.
    """

    name: str
    grouping: Grouping
    exact: bool
    apart: bool
    file: Path
    reading: Reading
    columns: tuple[str, ...]
    policy: Policy


@lru_cache(maxsize=1)
def parts_beside(folder: Path) -> tuple[ShownPart, ...]:
    """The tables of a release with everybody's class; a release never changes, so the last one is kept."""
    private = folder / "private"
    if sum(p.stat().st_size for p in private.rglob("state.npz")) > LARGEST:
        raise UsageError("this release is too large to be shown beside its table; the report has its figures")
    policy = Policy.load(private / "policy.yaml")
    written = read_json(folder / "public" / "manifest.json")["tables"]
    return tuple(
        ShownPart(
            part.name, part.grouping, policy.recoding.exact, policy.recoding.name != "generalise", part.table,
            Reading.back(as_written["format"], bool(as_written.get("escaped"))), part.columns, policy,
        )
        for part, as_written in zip(published_parts(folder), written, strict=True)
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ShownEntries:
    """Rows of one side: of each entry the cell, the group, and how many rows it has."""

    cells: Ints
    groups: Ints
    rows: Ints


def counted_columns(part: ShownPart) -> list[str]:
    """The columns that classes are counted in: quasi-identifiers and sensitive ones."""
    summary = part.grouping.summary
    return [*(h.attribute for h in summary.attributes), *summary.sensitive]


def _cells(part: ShownPart) -> Any:
    cells = part.grouping.summary.cells
    if cells is None:
        raise UsageError("what belongs together was not kept for this release; the report has its figures")
    return cells


def attribute_position(part: ShownPart, name: str) -> int | None:
    """Which quasi-identifier a column is; None: a sensitive one. Refused where it is neither."""
    names = [h.attribute for h in part.grouping.summary.attributes]
    if name in names:
        return names.index(name)
    if name not in part.grouping.summary.sensitive:
        raise UsageError(f"the release has no quasi-identifier or sensitive column {name!r}")
    return None


def every_entry(part: ShownPart) -> ShownEntries:
    """Everybody of the table."""
    cells = _cells(part)
    return ShownEntries(
        np.arange(len(cells.rows)), np.full(len(cells.rows), SUPPRESSED), cells.rows.astype(np.int64)
    )


def published_entries(part: ShownPart) -> ShownEntries:
    """Everybody who was published, with their group."""
    return ShownEntries(*part.grouping.cells)


def original_texts(part: ShownPart, name: str, of: ShownEntries) -> Spelled:
    """The texts of a column as it was, and the text of each entry."""
    summary, cells = part.grouping.summary, _cells(part)
    i = attribute_position(part, name)
    if i is not None:
        values, codes = summary.attributes[i].values, summary.codes[i][cells.tuples[of.cells]]
    else:
        values = summary.sensitive[name].values
        codes = cells.values[list(summary.sensitive).index(name)][of.cells]
    return [MISSING, *map(str, values)], codes.astype(np.int64)


def texts_at_level(part: ShownPart, i: int, number: int, codes: Ints) -> Spelled:
    """Original values of a quasi-identifier under the labels of one of its levels."""
    level = part.grouping.summary.attributes[i].levels[number]
    texts = [MISSING if t is None else str(t) for t in level.labels]
    return texts, np.asarray(level.blocks, dtype=np.int64)[codes]


def released_texts(part: ShownPart, name: str, of: ShownEntries) -> Spelled:
    """The texts of a column as it is published, and the text of each published entry."""
    i = attribute_position(part, name)
    if i is None or part.exact:
        return original_texts(part, name, of)
    labels = part.grouping.published_labels[i]
    texts = [MISSING if t is None else t for t in labels.texts]
    return texts, labels.of_group[of.groups].astype(np.int64)


# -- classes ---------------------------------------------------------------------------------------------------------


def listed_classes(
    part: ShownPart, having: Mapping[str, str], order: str | None, descending: bool, first: int
) -> dict[str, Any]:
    """Classes with their labels, rows and commonest sensitive value; those whose labels hold the given texts."""
    grouping, released = part.grouping, part.grouping.published_classes
    names = [h.attribute for h in grouping.summary.attributes]
    class_of, firsts = _read_alike(part)
    rows = np.zeros(released.n, dtype=np.int64)
    np.add.at(rows, firsts[class_of], released.rows)
    keep = rows > 0
    labels = {name: _class_texts(part, i) for i, name in enumerate(names)}
    for name, text in having.items():
        if name not in labels:
            raise UsageError(f"the release has no quasi-identifier {name!r}")
        texts, of_group = labels[name]
        keep &= np.array([text.casefold() in t.casefold() for t in texts], dtype=bool)[of_group]
    chosen = np.flatnonzero(keep)
    if order in labels:
        texts, of_group = labels[order]
        rank = np.argsort(np.argsort(np.array(texts, dtype=object), kind="stable"), kind="stable")
        by = rank[of_group][chosen]
    else:
        by = rows[chosen]
    chosen = chosen[np.argsort(-by if descending else by, kind="stable")]
    page = chosen[first : first + PAGE].tolist()
    return {
        "columns": names, "number": len(chosen), "first": first, "suppressed": grouping.dropped_rows,
        "exact": part.exact,
        "classes": [
            {"number": g, "rows": int(rows[g]), "labels": [labels[n][0][labels[n][1][g]] for n in names],
             "commonest": {name: _commonest(counts, np.flatnonzero(class_of == class_of[g]))
                           for name, counts in released.sensitive.items() if name not in part.policy.perturbed}}
            for g in page
        ],
    }  # fmt: skip


def _read_alike(part: ShownPart) -> tuple[Ints, Ints]:
    """The class of each group as a reader sees it, and its first group: groups whose labels read alike are one."""
    n = part.grouping.published_classes.n
    if part.exact or part.apart:
        return np.arange(n), np.arange(n)
    columns = []
    for i in range(len(part.grouping.summary.attributes)):
        texts, of_group = _class_texts(part, i)
        first = {text: j for j, text in reversed(list(enumerate(texts)))}
        columns.append(np.array([first[t] for t in texts], dtype=np.int64)[of_group])
    _, firsts, class_of = np.unique(np.stack(columns), axis=1, return_index=True, return_inverse=True)
    return class_of.reshape(-1), firsts


def _class_texts(part: ShownPart, i: int) -> Spelled:
    labels = part.grouping.published_labels[i]
    return [MISSING if t is None else t for t in labels.texts], labels.of_group.astype(np.int64)


def _commonest(counts: ValueCounts, groups: Ints) -> dict[str, Any] | None:
    total: Counter[str | None] = Counter()
    for g in groups.tolist():
        total.update(counts.of_class(g))
    if not total:
        return None
    [(value, n)] = total.most_common(1)
    return {"value": MISSING if value is None else value, "share": n / total.total()}


def class_members(part: ShownPart, number: int) -> dict[str, Any]:
    """Everybody of one class as the table has them, alike ones together; SUPPRESSED: those who are in none."""
    grouping, cells = part.grouping, _cells(part)
    if number == SUPPRESSED:
        everybody = np.bincount(np.arange(len(cells.rows)), weights=cells.rows).astype(np.int64)
        kept = np.bincount(grouping.cells[0], weights=grouping.cells[2], minlength=len(cells.rows))
        rest = everybody - kept.astype(np.int64)
        chosen = np.flatnonzero(rest)
        of = ShownEntries(chosen, np.full(len(chosen), SUPPRESSED), rest[chosen])
    else:
        published = published_entries(part)
        class_of, _ = _read_alike(part)
        if not 0 <= number < len(class_of):
            raise UsageError("the release has no such class")
        mine = (class_of == class_of[number])[published.groups]
        of = ShownEntries(published.cells[mine], published.groups[mine], published.rows[mine])
    columns = counted_columns(part)
    sides = [original_texts(part, name, of) for name in columns]
    alike: dict[tuple[str, ...], int] = {}
    for i, n in enumerate(of.rows.tolist()):
        key = tuple(texts[codes[i]] for texts, codes in sides)
        alike[key] = alike.get(key, 0) + n
    found = sorted(alike.items(), key=lambda item: (-item[1], item[0]))
    return {
        "columns": columns, "rows": int(of.rows.sum()), "more": max(0, len(found) - 4 * PAGE),
        "people": [[*key, n] for key, n in found[: 4 * PAGE]],
    }  # fmt: skip
