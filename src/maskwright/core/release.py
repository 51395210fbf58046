"""A release: the published parts, what was measured on them, and what is needed to attack them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskwright.core.adversary import Target
from maskwright.core.beliefs import Beliefs
from maskwright.core.exact import show
from maskwright.core.grouping import Grouping
from maskwright.core.mapping import AppliedMapping, applied_mapping
from maskwright.core.policy import Policy
from maskwright.core.verdict import Measured, Verdict, plain


@dataclass(frozen=True, eq=False)
class Part:
    """One published table: its grouping, its columns, how it was recoded, and the table itself."""

    name: str
    grouping: Grouping
    columns: tuple[str, ...]
    recoding: str
    table: Any


@dataclass(frozen=True, eq=False)
class Release:
    """What `anonymize` returns. Everything in it was measured on what is published."""

    parts: tuple[Part, ...]
    policy: Policy
    verdicts: tuple[Verdict, ...]
    beliefs: tuple[Beliefs, ...]
    metrics: Mapping[str, Measured]
    notes: tuple[str, ...] = ()
    dropped_columns: tuple[str, ...] = ()
    seeded: bool = False
    timings: Mapping[str, float] = field(default_factory=dict)
    history: Mapping[str, Any] = field(default_factory=dict)  # what was tried on the same input before
    path: Path | None = None
    target: Target | None = field(default=None, repr=False)
    saver: Callable[..., Path] | None = field(default=None, repr=False)

    @property
    def table(self) -> Any:
        """The published table, of the caller's own kind."""
        if len(self.parts) != 1:
            raise ValueError(f"this release has {len(self.parts)} tables; use release.tables")
        return self.parts[0].table

    @property
    def tables(self) -> dict[str, Any]:
        return {part.name: part.table for part in self.parts}

    @property
    def grouping(self) -> Grouping:
        """The grouping of the release; of its first table, where codip made several."""
        return self.parts[0].grouping

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """One for each part of the release; a bucketized part has two tables and one grouping."""
        return tuple({id(part.grouping): part.grouping for part in self.parts}.values())

    @property
    def mapping(self) -> AppliedMapping:
        """As what every value of the quasi-identifiers was published. As sensitive as the input (see `reveals`)."""
        groupings: dict[str, Grouping] = {}
        for part in self.parts:  # the first table of each grouping shows the quasi-identifiers
            if not any(part.grouping is known for known in groupings.values()):
                groupings[part.name] = part.grouping
        return applied_mapping(groupings, self.policy.recoding.exact)

    @property
    def ok(self) -> bool:
        return all(v.ok for v in self.verdicts)

    def save(self, destination: str | Path, **options: Any) -> Path:
        """Write the release (public/ and private/), recount the files, and rename them into place.

        Options: `overwrite`, `keep_private` ("all", "report", "none").
        """
        if self.saver is None:
            raise ValueError("this release was read from disk; copy its folder instead")
        return self.saver(Path(destination), **options)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: what a machine wants to know."""
        grouping = self.grouping
        return {
            "ok": self.ok,
            "path": str(self.path) if self.path else None,
            "rows": {
                "input": grouping.summary.n_rows + grouping.summary.dropped_missing,
                "published": grouping.published_rows,
                "suppressed": grouping.suppressed_rows,
                "dropped_missing": grouping.summary.dropped_missing,
            },
            "people": grouping.summary.n_people,
            "columns": {
                "published": list(dict.fromkeys(c for part in self.parts for c in part.columns)),
                "dropped": list(self.dropped_columns),
            },
            "tables": [
                {"name": p.name, "columns": list(p.columns), "rows": p.grouping.published_rows}
                for p in self.parts
            ],
            "verdicts": [v.as_dict() for v in self.verdicts],
            "beliefs": [b.as_dict() for b in self.beliefs],
            "metrics": {name: plain(value) for name, value in self.metrics.items()},
            "search": jsonable(grouping.search),
            "levels": level_names(grouping),
            "notes": list(self.notes),
            "seeded": self.seeded,
            "history": dict(self.history),
            "timings": dict(self.timings),
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Sequence[str]:
        """The release in a few lines for people."""
        g = self.grouping
        lines = [f"{g.published_rows} of {g.summary.n_rows + g.summary.dropped_missing} rows published"]
        if len(self.groupings) > 1:
            lines += [f"{p.name}: {', '.join(p.columns)}" for p in self.parts]
        lines += [v.sentence() for v in self.verdicts]
        lines += [b.sentence() for b in self.beliefs]
        lines += [f"{name}: {show(value)}" for name, value in self.metrics.items()]
        return lines


def level_names(grouping: Grouping) -> dict[str, str] | None:
    """Which level each attribute was published at, for full-domain releases."""
    if grouping.levels is None:
        return None
    return {
        h.attribute: h.levels[i].name
        for h, i in zip(grouping.summary.attributes, grouping.levels, strict=True)
    }


def jsonable(value: Any) -> Any:
    """Search notes and the like as JSON can hold them."""
    if isinstance(value, Mapping):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(v) for v in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if hasattr(value, "item"):
        return value.item()
    return str(value)
