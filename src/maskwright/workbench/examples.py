"""A few rows before and after, for the eye of the publisher: the same people where the recoding allows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maskwright.domain.hierarchy import TOP
from maskwright.domain.release import Release
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.policy.binding import reading_options

ROWS = 12


def rows_before_and_after(source: str, release: Release) -> dict[str, Any]:
    """Rows of the table with what became of them; of releases that are not full-domain, rows of either side."""
    columns = [c for part in release.parts for c in part.columns if c in release.policy.columns]
    columns = list(dict.fromkeys(columns))
    engine = open_engine()
    try:
        before = [
            {c: row[c] for c in columns}
            for row in engine.sample(engine.open(source, reading_options(release.policy)), ROWS, columns)
        ]
        after = {
            part.name: engine.sample(engine.open(part.table, Reading(format=_format(part.table))), ROWS)
            for part in release.parts
        }
    finally:
        engine.close()
    pairs = _paired(before, release) if len(release.parts) == 1 else None
    return {"columns": columns, "before": before, "after": after, "pairs": pairs}


def _format(path: Path) -> Any:
    return path.suffix.lstrip(".")


def _paired(before: list[dict[str, str | None]], release: Release) -> list[dict[str, Any]] | None:
    """What each row became: its labels at the published levels, or None where its class was suppressed."""
    grouping = release.grouping
    if grouping.levels is None or release.policy.recoding.name != "generalise":
        return None
    published = {
        tuple(labels.texts[labels.of_group[g]] for labels in grouping.published_labels)
        for g in range(grouping.classes.n)
        if g != grouping.starred
    }
    maps = {}
    for hierarchy, level in zip(grouping.summary.attributes, grouping.levels, strict=True):
        chosen = hierarchy.levels[level]
        texts: dict[str | None, str | None] = {None: chosen.labels[chosen.blocks[0]]}
        texts |= {v: chosen.labels[chosen.blocks[i + 1]] for i, v in enumerate(hierarchy.values)}
        maps[hierarchy.attribute] = texts
    result = []
    for row in before:
        labels = {name: values.get(row[name], TOP) for name, values in maps.items()}
        kept = tuple(labels.values()) in published
        result.append({"before": row, "after": {**row, **labels} if kept else None})
    return result
