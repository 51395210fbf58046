"""Two columns of a release against each other, before and after.

Quasi-identifiers and sensitive columns are counted in what `private/` keeps. Columns that are published as they are,
changed on purpose or in sets are in no class, so both files are read: the table, and what was published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.value_sets import PRESENT
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Recount, Table, spelled
from maskwright.errors import UsageError
from maskwright.policy.binding import reading_options, set_columns
from maskwright.policy.policy import Policy
from maskwright.runtime.memory_budget import MemoryBudget
from maskwright.workbench.before_after import (
    MISSING,
    ShownEntries,
    ShownPart,
    Spelled,
    attribute_position,
    every_entry,
    original_texts,
    published_entries,
    released_texts,
    texts_at_level,
)

SHOWN = 12  # values of a column in a table of two columns; the others share one line
RANGES = 10  # of a number of which there are more values than that
NOTHING = "no value"  # what a set holds that is empty
Sides = tuple[dict[str, Any], dict[str, Any], str]  # before, after, and what they mean


def shown_columns(part: ShownPart) -> list[str]:
    """The columns that can be seen on both sides: all of the published file but pseudonyms; where values are
    published apart from their rows, those whose classes are known as well."""
    summary, columns = part.grouping.summary, part.policy.columns
    counted = [*(h.attribute for h in summary.attributes), *(n for n in summary.sensitive if n in columns)]
    roles = ("sensitive", "insensitive")
    others = [n for n in part.columns if n in columns and columns[n].role in roles and n not in counted]
    return [*counted, *others]


def crossed_columns(part: ShownPart, a: str, b: str, source: str) -> dict[str, Any]:
    """Two columns against each other, before and after: tables of rows, and what they mean."""
    shown = shown_columns(part)
    for name in (a, b):
        if name not in shown:
            raise UsageError(f"the release has no column {name!r} that can be seen on both sides")
    if any(_is_read(part, name) for name in (a, b)):
        before, after, note = _read_sides(part, (a, b), source)
    else:
        before, after, note = _counted_sides(part, (a, b))
    return {"columns": [a, b], "before": before, "after": after, "note": note}


def _is_read(part: ShownPart, name: str) -> bool:
    """Whether the classes of the release do not tell how a column is published."""
    summary = part.grouping.summary
    counted = name in summary.sensitive or name in (h.attribute for h in summary.attributes)
    return not counted or name in part.policy.perturbed


# -- counted in what was kept ------------------------------------------------------------------------------------


def _few(spelled: Spelled, rows: Ints) -> Spelled:
    """The commonest texts in their order, and one line for all others."""
    texts, codes = spelled
    total = np.bincount(codes, weights=rows, minlength=len(texts))
    there = np.flatnonzero(total)
    if len(there) > SHOWN:
        kept = np.sort(there[np.argsort(-total[there], kind="stable")[: SHOWN - 1]])
        names = [*(texts[t] for t in kept), f"{len(there) - len(kept):,} others"]
    else:
        kept, names = there, [texts[t] for t in there]
    short = np.full(len(texts), len(kept))
    short[kept] = np.arange(len(kept))
    return names, short[codes]


def _cross_table(rows: Spelled, across: Spelled, weights: Ints) -> dict[str, Any]:
    (down, a), (right, b) = _few(rows, weights), _few(across, weights)
    counts = np.bincount(a * len(right) + b, weights=weights, minlength=len(down) * len(right))
    return {"down": down, "across": right, "counts": counts.reshape(len(down), len(right)).tolist()}


def _expected(part: ShownPart, a: str, b: str, of: ShownEntries) -> dict[str, Any]:
    """A table of two columns of which a group tells only how often each value occurs: what a reader expects."""
    (down, one), (right, two) = (_few(released_texts(part, n, of), of.rows) for n in (a, b))
    n = int(of.groups.max(initial=-1)) + 1
    first, second = (
        np.bincount(of.groups * len(texts) + codes, weights=of.rows, minlength=n * len(texts)).reshape(n, -1)
        for texts, codes in ((down, one), (right, two))
    )
    size = np.maximum(first.sum(axis=1, keepdims=True), 1)
    return {"down": down, "across": right, "counts": ((first / size).T @ second).round(1).tolist()}


def _counted_sides(part: ShownPart, names: tuple[str, str]) -> Sides:
    a, b = names
    levels = _has_levels(part)
    old, new = every_entry(part), published_entries(part)
    apart = part.apart and (attribute_position(part, a) is None) != (attribute_position(part, b) is None)
    was = [_comparable(part, name, old) for name in names]
    if apart:
        after = _expected(part, a, b, new)
    else:
        shown, of = _as_published(part, names, new)
        after = _cross_table(shown[0], shown[1], of.rows)
    return _cross_table(was[0], was[1], old.rows), after, _meaning(levels, apart)


def _has_levels(part: ShownPart) -> bool:
    """Whether one level of each hierarchy was published."""
    return part.grouping.levels is not None and not part.exact


def _comparable(part: ShownPart, name: str, of: ShownEntries) -> Spelled:
    """A column as it was, at the level of the release; where it has none, at the finest that a small table can show."""
    texts, codes = original_texts(part, name, of)
    i = attribute_position(part, name)
    if i is None or part.exact:
        return texts, codes
    return texts_at_level(part, i, _shown_level(part, i), codes)


def _shown_level(part: ShownPart, i: int) -> int:
    if part.grouping.levels is not None:
        return part.grouping.levels[i]
    offered = part.grouping.summary.attributes[i].levels
    return next(n for n, level in enumerate(offered) if len(level.labels) <= SHOWN or n == len(offered) - 1)


def _as_published(
    part: ShownPart, names: Sequence[str], of: ShownEntries
) -> tuple[list[Spelled], ShownEntries]:
    """Columns over the rows as they are published; a method may have changed values of one of them on purpose."""
    changed = part.grouping.changes
    if changed is None or changed.attribute not in names:
        return [released_texts(part, name, of) for name in names], of
    cells, groups, codes, rows = part.grouping.shown_cells(changed.attribute)
    of = ShownEntries(cells, groups, rows)
    return [
        (original_texts(part, n, of)[0], codes) if n == changed.attribute else released_texts(part, n, of)
        for n in names
    ], of


def _meaning(levels: bool, apart: bool) -> str:
    if apart:
        return "The release does not say which value belongs to whom: after is what a reader expects from the buckets."
    if levels:
        return "Before is shown under the labels of the release, so that both tables have the same lines."
    return (
        "After has the labels of the release, which differ from class to class; before, the values of the table, at a "
        "level of their hierarchy where there are many."
    )


# -- read from both files ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountedTexts:
    """Combinations of two columns in a file: the texts of each, which of them, and how many rows."""

    sides: tuple[Spelled, Spelled]
    rows: Ints


def _read_sides(part: ShownPart, names: tuple[str, str], source: str) -> Sides:
    for name, other in (names, names[::-1]):
        if name not in part.columns:
            raise UsageError(f"{name!r} is published in another file than {other!r}, and no row shows both")
    engine = open_engine()
    try:
        engine.allow(MemoryBudget.of(None).engine())
        files = ((source, reading_options(part.policy)), (part.file, part.reading))
        before, after = (_combinations(engine, engine.open(*file), part.policy, names) for file in files)
    finally:
        engine.close()
    sides = [_alike(part, name, before.sides[i], after.sides[i]) for i, name in enumerate(names)]
    old, new = zip(*sides, strict=True)
    attributes = {h.attribute for h in part.grouping.summary.attributes}
    note = _meaning(_has_levels(part), False) if attributes.intersection(names) else ""
    if any(part.policy.columns[name].multivalued for name in names):
        note += " A row whose column holds several values is counted at each of them."
    return _cross_table(old[0], old[1], before.rows), _cross_table(new[0], new[1], after.rows), note


def _combinations(engine: Engine, table: Table, policy: Policy, names: tuple[str, str]) -> CountedTexts:
    """The combinations of two columns in a file; a column of sets has one entry for each of its values."""
    sets = {s.name: s for s in set_columns(policy, engine, table) if s.name in names}
    if sets:
        table = engine.unfold(table, list(sets.values()))
    bits = [sets[n].bits if n in sets else (n,) for n in names]
    counted = engine.recount(table, list(dict.fromkeys([*bits[0], *bits[1]])))
    at = {bit: i for i, bit in enumerate(dict.fromkeys([*bits[0], *bits[1]]))}
    sides, entries = [], np.arange(len(counted.rows))
    for name, mine in zip(names, bits, strict=True):
        if name not in sets:
            texts = spelled(counted.texts[at[name]], np.arange(len(counted.texts[at[name]])))
            codes = counted.codes[at[name]].astype(np.int64)[entries]
            sides.append(([MISSING if t is None else t for t in texts], codes))
            continue
        held = np.stack([_is_present(counted, at[bit]) for bit in mine], axis=1)[entries]
        held = np.column_stack([held, ~held.any(axis=1)])
        of, codes = np.nonzero(held)
        entries, sides = entries[of], [(texts, old[of]) for texts, old in sides]
        sides.append(([*sets[name].values, NOTHING], codes.astype(np.int64)))
    return CountedTexts((sides[0], sides[1]), counted.rows[entries])


def _is_present(counted: Recount, column: int) -> NDArray[np.bool_]:
    texts = spelled(counted.texts[column], np.arange(len(counted.texts[column])))
    present = np.array([t == PRESENT for t in texts], dtype=bool)
    found: NDArray[np.bool_] = present[counted.codes[column]]
    return found


def _alike(part: ShownPart, name: str, before: Spelled, after: Spelled) -> tuple[Spelled, Spelled]:
    """Both sides of a column under texts that can be compared."""
    found = [(i, h) for i, h in enumerate(part.grouping.summary.attributes) if h.attribute == name]
    if not found:
        return _in_ranges(before, after)
    if part.exact:
        return before, after
    [(i, hierarchy)] = found
    code = {MISSING: 0, **_codes(hierarchy)}
    texts, codes = before
    known = np.array([code.get(text, 0) for text in texts], dtype=np.int64)
    return texts_at_level(part, i, _shown_level(part, i), known[codes]), after


def _codes(hierarchy: Hierarchy) -> dict[str, int]:
    """The code of every text that the table may hold."""
    own = {value: i + 1 for i, value in enumerate(hierarchy.values)}
    if hierarchy.origin is None:
        return own
    whole, cut = hierarchy.origin
    ground = whole.levels[cut]
    return {value: own[str(ground.labels[ground.blocks[i + 1]])] for i, value in enumerate(whole.values)}


def _in_ranges(before: Spelled, after: Spelled) -> tuple[Spelled, Spelled]:
    """Many different numbers as ranges, the same before and after."""
    numbers = [_numbers(texts) for texts, _ in (before, after)]
    if any(n is None for n in numbers):
        return before, after
    known = np.concatenate([n for n in numbers if n is not None])
    known = known[~np.isnan(known)]
    if len(np.unique(known)) <= SHOWN:
        return before, after
    edges = np.linspace(known.min(), known.max(), RANGES + 1)
    texts = [f"{low:,.4g} to {high:,.4g}" for low, high in pairwise(edges)]
    found = []
    for side, values in zip((before, after), numbers, strict=True):
        assert values is not None  # noqa: S101 - for the type checker
        rank = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, RANGES - 1)
        rank[np.isnan(values)] = RANGES
        found.append(([*texts, MISSING], rank[side[1]]))
    return found[0], found[1]


def _numbers(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """Texts as numbers, missing as nan; None where one is no number."""
    try:
        return np.array([math.nan if t == MISSING else float(t) for t in texts], dtype=np.float64)
    except ValueError:
        return None
