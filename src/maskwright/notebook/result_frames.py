"""Results and published releases as data frames: figures as rows, and a release as its readers get it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.auditing.result import Audit
from maskwright.comparing import Comparison
from maskwright.domain.beliefs import NOT_COMPUTED, Beliefs
from maskwright.domain.marginals import ReadColumn
from maskwright.domain.release import Release
from maskwright.domain.settings import did_you_mean
from maskwright.domain.shown import FrameKind
from maskwright.domain.verdict import Measured, Verdict, plain_number
from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.errors import InputError, UsageError
from maskwright.folder.store import MANIFEST, PUBLIC, read_json
from maskwright.metrics import METRICS
from maskwright.pipeline.attacking import DAMAGED
from maskwright.runtime import disk
from maskwright.suggest import Suggestion
from maskwright.verification.marginal_recount import MARGINALS

Row = dict[str, Any]
KINDS: tuple[FrameKind, ...] = ("pandas", "polars")


def frame_of(result: object, what: str | None, kind: FrameKind | None) -> Any:
    """The figures of a result as a data frame; see `Shown.to_frame`."""
    tables = frame_rows(result)
    name = what or next(iter(tables))
    if name not in tables:
        raise UsageError(f"to_frame: there is no {name!r} here; {did_you_mean(str(name), tables)}")
    rows = list(tables[name]())
    return data_frame({key: [row[key] for row in rows] for key in (rows[0] if rows else {})}, kind)


def frame_rows(result: object) -> dict[str, Callable[[], Iterator[Row]]]:
    """What a result can be asked for, by name; the first is what is meant without a name."""
    if isinstance(result, Release):
        return {
            "verdicts": lambda: verdict_rows(result.verdicts),
            "beliefs": lambda: belief_rows(result.beliefs),
            "metrics": lambda: metric_rows(result.metrics),
            "classes": lambda: class_rows(result),
        }
    if isinstance(result, Audit):
        return {
            "findings": lambda: ({"severity": s, "finding": text} for s, text in result.sentences()),
            "verdicts": lambda: verdict_rows(result.verdicts),
            "beliefs": lambda: belief_rows(result.beliefs),
        }
    if isinstance(result, Comparison):
        return {"points": lambda: point_rows(result)}
    if isinstance(result, Suggestion):
        return {"columns": lambda: (dict(row) for row in result.as_dict()["columns"])}
    if isinstance(result, Beliefs):
        return {"beliefs": lambda: belief_rows([result])}
    raise UsageError(f"to_frame: a {type(result).__name__} has no figures to put into a table")


def exact_cells(name: str, value: Measured | None) -> Row:
    """A number twice: as a float to compute with, and exactly, as text. What was computed with floats stays one."""
    if value is None:
        return {name: None, f"{name}_exact": None}
    if (
        isinstance(value, Fraction)
        and value.denominator.bit_length() > 40
        and Fraction(float(value)) == value
    ):
        value = float(value)
    return {name: float(value), f"{name}_exact": str(plain_number(value))}


def verdict_rows(verdicts: Any) -> Iterator[Row]:
    """Each requirement and what was measured."""
    for v in verdicts:
        assert isinstance(v, Verdict)  # noqa: S101 - for the type checker
        yield {
            "model": v.model, "attribute": v.attribute, "table": v.part, "holds": v.ok, **exact_cells("worst", v.worst),
            "asked": v.bound, "quantity": v.quantity, "use": v.use, "status": v.status,
            "classes": len(v.passes), "failing_classes": len(v.failing),
        }  # fmt: skip


def belief_rows(beliefs: Any) -> Iterator[Row]:
    """Each attack and its worst belief; what was not computed counts as 1."""
    for b in beliefs:
        low, high = b.worst.interval or (None, None)
        yield {
            "attack": b.attack, "adversary": b.adversary, "kind": b.kind, **exact_cells("before", b.worst.before),
            **exact_cells("after", Fraction(1) if b.kind == NOT_COMPUTED else b.worst.after), "low": low, "high": high,
            "whom": b.worst.whom, "why": b.worst.why,
        }  # fmt: skip


def metric_rows(metrics: Mapping[str, Measured]) -> Iterator[Row]:
    """Each metric with the meaning of its scale."""
    for name, value in metrics.items():
        known = METRICS.get(name)
        yield {
            "metric": name, **exact_cells("value", value), "scale": known.meaning if known else None,
            "better": known.better if known else None,
        }  # fmt: skip


def class_rows(release: Release) -> Iterator[Row]:
    """Each published class: its labels, rows and people, and its commonest sensitive values."""
    for part in release.parts:
        grouping = part.grouping
        labels = {shown.attribute: shown for shown in grouping.published_labels}
        classes = grouping.published_classes
        for g in range(classes.n):
            row: Row = {"table": part.name} if len(release.parts) > 1 else {}
            row |= {name: shown.texts[int(shown.of_group[g])] for name, shown in labels.items()}
            row |= {"rows": int(classes.rows[g]), "people": int(classes.sizes[g])}
            for name, counts in classes.sensitive.items():
                held = slice(int(counts.start[g]), int(counts.start[g + 1]))
                most = int(counts.counts[held].max(initial=0))
                row[f"{name}: values"] = int(counts.counts[held].size)
                row |= exact_cells(f"{name}: largest share", Fraction(most, max(1, int(classes.sizes[g]))))
            yield row


def point_rows(comparison: Comparison) -> Iterator[Row]:
    """Each policy of a comparison, with its risk, its metrics, and whether no other beats it."""
    front = {point.name for point in comparison.front}
    names = list(dict.fromkeys(name for point in comparison.points for name in point.metrics))
    for point in comparison.points:
        row: Row = {"policy": point.name, "status": point.status, "front": point.name in front}
        row |= exact_cells("worst_belief", point.worst)
        for name in names:
            row |= exact_cells(name, point.metrics.get(name))
        yield row | {"reason": point.reason}


def data_frame(columns: Mapping[str, list[Any]], kind: FrameKind | None) -> Any:
    """Columns as a pandas or polars frame: the kind that is asked for, else the one that is in use."""
    if kind is not None and kind not in KINDS:
        raise UsageError(f"to_frame: kind {kind!r} is not known; write 'pandas' or 'polars'")
    wanted = [kind] if kind else sorted(KINDS, key=lambda name: name not in sys.modules)
    for name in wanted:
        if find_spec(name) is not None:
            return import_module(name).DataFrame(columns)
    raise UsageError(f"to_frame needs {' or '.join(wanted)}; install it: pip install {wanted[0]}")


Column = list[str | None]


@dataclass(frozen=True, eq=False)
class ReadRelease:
    """The public part of a release.

    Attributes:
        columns: the published table, column by column, as texts.
        marginals: of each quasi-identifier the counts of its values; empty: they were not published.
    """

    columns: dict[str, Column]
    marginals: dict[str, ReadColumn]

    def table(self, kind: FrameKind | None = None) -> Any:
        """The published table as a pandas or polars frame."""
        return data_frame(self.columns, kind)

    def shares(self, column: str) -> dict[str, dict[str | None, float]]:
        """Of each label of a column, the probability of each value that it stands for: they fit the marginals."""
        return self._marginal(column).shares(Counter(v for v in self.columns[column] if v is not None))

    def probabilities(self, column: str, kind: FrameKind | None = None) -> Any:
        """`shares` as a frame: label, value, probability."""
        rows = [
            (label, value, p) for label, found in self.shares(column).items() for value, p in found.items()
        ]
        names = ("label", "value", "probability")
        return data_frame({name: [row[i] for row in rows] for i, name in enumerate(names)}, kind)

    def draws(self, seed: int = 0, kind: FrameKind | None = None) -> Any:
        """The table with a value drawn in place of each label: one of the tables that may lie behind it."""
        rng, found = np.random.default_rng(seed), dict(self.columns)
        if not self.marginals:
            raise UsageError("values can be drawn where a release has marginals: publish: {marginals: true}")
        for name in self.marginals:
            found[name] = _drawn(rng, self.columns[name], self.shares(name))
        return data_frame(found, kind)

    def _marginal(self, column: str) -> ReadColumn:
        if column not in self.marginals:
            known = (
                ", ".join(self.marginals)
                or "none, because the policy does not say publish: {marginals: true}"
            )
            raise UsageError(f"there are no marginals of a column {column!r} here; there are: {known}")
        return self.marginals[column]


def _drawn(rng: np.random.Generator, labels: Column, shares: dict[str, dict[str | None, float]]) -> Column:
    """A value for each label, drawn with its probability; missing stays missing."""
    drawn: Column = [None] * len(labels)
    places: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        if label is not None:
            places.setdefault(label, []).append(row)
    for label, rows in places.items():
        values = list(shares[label])
        chances = np.array([shares[label][v] for v in values])
        for row, i in zip(
            rows, rng.choice(len(values), len(rows), p=chances / chances.sum()).tolist(), strict=True
        ):
            drawn[row] = values[i]
    return drawn


def read_release_folder(folder: str | Path) -> ReadRelease:
    """The public part of a release folder, or of a copy of its public/ alone."""
    path = Path(folder)
    public = path / PUBLIC if (path / PUBLIC / MANIFEST).exists() else path
    tables = read_json(public / MANIFEST).get("tables", [])
    if isinstance(tables, list) and len(tables) != 1:
        raise UsageError(f"{str(folder)!r} has {len(tables)} tables; read each from its file")
    try:
        columns = _published_columns(public, tables[0])
        stored = read_json(public / MARGINALS)["columns"] if (public / MARGINALS).exists() else {}
        marginals = {name: _stored_marginal(found, columns[name]) for name, found in stored.items()}
    except DAMAGED:
        raise InputError(f"{str(folder)!r} does not hold the public files of a release") from None
    return ReadRelease(columns, marginals)


def _stored_marginal(found: Mapping[str, Any], column: Column) -> ReadColumn:
    """The counts of a column as they were written; a ValueError or its like where they do not fit the table."""
    labels = {label: _stored_texts(values) for label, values in found["labels"].items()}
    cells = [(_stored_texts(cell["values"]), int(cell["rows"])) for cell in found["cells"]]
    if not {label for label in column if label is not None} <= set(labels) or not all(
        [*labels.values(), *(values and 0 <= rows < 1 << 53 for values, rows in cells)]
    ):
        raise ValueError("no counts of this column")
    return ReadColumn(labels, cells)


def _stored_texts(values: Any) -> Column:
    """Values as texts, or missing; half a character is no text."""
    if not isinstance(values, list):
        raise TypeError("no list")
    return [None if value is None else str.encode(value).decode() for value in values]


def _published_columns(public: Path, table: Mapping[str, Any]) -> dict[str, Column]:
    """The published table, column by column, as texts."""
    spill = disk.scratch_folder()
    engine = open_engine("duckdb", temp=spill)
    try:
        file = public / Path(table["file"]).name
        opened = engine.open(file, Reading.back(table["format"], bool(table["escaped"])))
        rows = engine.sample(opened, engine.count(opened))
    finally:
        engine.close()
        disk.remove_scratch(spill)
    return {name: [row[name] for row in rows] for name in table["columns"]}
