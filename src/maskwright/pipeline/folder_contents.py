"""The words of a release folder: manifests, data dictionary, data card, report, and what later attacks need."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.domain.classes import ValueCounts
from maskwright.domain.grouping import Grouping, exact_view
from maskwright.domain.release import Release, level_names
from maskwright.domain.value_sets import PRESENT
from maskwright.engines.base import Format
from maskwright.folder import store
from maskwright.folder.saved_state import part_folder, save_census, save_grouping
from maskwright.pipeline.job import KeepPrivate
from maskwright.pipeline.published_tables import Layout
from maskwright.policy.policy import Policy
from maskwright.report import write_data_card, write_report
from maskwright.report.plan_section import frontier_csv, frontier_of
from maskwright.report.report import Examples
from maskwright.report.search import NearbySettings
from maskwright.verification.verify import CLASSES, REFERENCE, file_hash
from maskwright.version import __version__

MAPPING = "mapping.csv"
HIERARCHIES = "hierarchies"


@dataclass(frozen=True, eq=False)
class Written:
    """A part of a release as it was written; `classes` is what nobody can count in its tables."""

    name: str
    grouping: Grouping
    layouts: Sequence[Layout]
    classes: Mapping[str, Any] | None


@dataclass(frozen=True)
class Contents:
    """What a folder is filled with, besides the tables.

    `reference` is what `verify` needs to know of the input; `source` names and fingerprints it; `around` is what other
    settings would have given.
    """

    release: Release
    parts: Sequence[Written]
    files: Mapping[str, str]  # table → file name
    format: Format
    examples: Examples
    reference: Mapping[str, Any]
    source: Mapping[str, Any]
    around: NearbySettings | None = None

    @property
    def escaped(self) -> bool:
        """Do cells that a spreadsheet would run begin with an apostrophe?"""
        return self.format == "csv" and self.release.policy.output.formulas == "escape"


def write_words(stage: store.Staging, contents: Contents, keep_private: KeepPrivate) -> None:
    """Everything in public/ and private/ but the tables themselves."""
    release = contents.release
    parts, unheld = for_readers(contents.parts)
    promised = [
        {"model": v.model, "parameters": v.parameters, "attribute": v.attribute}
        | ({"part": v.part} if v.part else {})
        | ({"status": v.status} if v.status else {})
        | ({"use": "gate"} if v.use == "gate" else {})  # then it compares with the release itself
        for v in release.verdicts
        if v.attribute not in unheld
    ]
    dictionary = data_dictionary(release.policy, parts) | ({"escaped": True} if contents.escaped else {})
    write_json(stage.public / "data-dictionary.json", dictionary)
    write_data_card(stage.public / "data-card.html", dictionary, promised, release.seeded)
    mapping = release.mapping
    if not mapping.of_published.reveals:
        mapping.of_published.write(stage.public / MAPPING, rows=False)
    shown = replace(contents, parts=parts)
    write_json(stage.public / store.MANIFEST, _public_manifest(stage.public, shown, promised))
    if keep_private == "none":
        shutil.rmtree(stage.private)
        return
    private = stage.private
    _write_policy(release.policy, private)
    if mapping.reveals:
        mapping.write(private / MAPPING)
    write_report(private / "report.html", release, contents.examples, contents.source, contents.around)
    write_json(private / REFERENCE, {**contents.reference, "parts": [part.name for part in contents.parts]})
    for part in contents.parts:
        folder = part_folder(private, part.name, len(contents.parts))
        folder.mkdir(exist_ok=True)
        if part.classes is not None:
            write_json(folder / CLASSES, part.classes)
        if keep_private == "all":
            save_grouping(part.grouping, folder)
    found = frontier_of(release)
    if found is not None:
        write_json(private / "plans.json", found)
        (private / "plans.csv").write_text(frontier_csv(found), encoding="utf-8")
    if keep_private == "all" and release.target is not None and release.target.census is not None:
        save_census(release.target.census, private)
    record = release.as_dict() | {
        "product": f"{store.PRODUCT}{__version__}",
        "path": None,
        "input": contents.source,
        "public_manifest": file_hash(stage.public / store.MANIFEST),
        "files": _file_hashes(private),
    }
    write_json(private / store.MANIFEST, record)


def _write_policy(policy: Policy, private: Path) -> None:
    """The policy as it can be run again from here: its hierarchy files are copied, a population stays where it is."""
    population = policy.population.file if policy.population is not None else None
    copies: dict[str, str] = {}

    def kept(file: str) -> str:
        """The path of a policy's file as the release knows it: of a copy where there is one."""
        place = policy.folder / file
        if file != population and file not in copies:
            copy = f"{HIERARCHIES}/{len(copies) + 1:02}-{place.name[-100:]}"
            try:
                content = place.read_bytes()
            except OSError:  # gone since it was read
                return str(place.resolve())
            (private / HIERARCHIES).mkdir(exist_ok=True)
            (private / copy).write_bytes(content)
            copies[file] = copy
        return copies.get(file) or str(place.resolve())

    (private / "policy.yaml").write_text(policy.with_files(kept).to_yaml(), encoding="utf-8")


def for_readers(parts: Sequence[Written]) -> tuple[list[Written], set[str]]:
    """The parts as public files may describe them, and the bits (see `SetColumn`) that they must not name.

    A value that only dropped people have in a column of sets would otherwise be named as one that could occur.
    """
    bits = {bit for part in parts for layout in part.layouts for s in layout.sets for bit in s.bits}
    held = set[str]()
    for part in parts:
        counts = part.grouping.published_classes.sensitive
        held |= {bit for bit in bits & counts.keys() if PRESENT in _occurring(counts[bit])}
    return [
        replace(p, layouts=[_only(layout, bits - held) for layout in p.layouts]) for p in parts
    ], bits - held


def _occurring(counts: ValueCounts) -> set[str]:
    return {value for value, n in zip(counts.values, counts.totals[1:].tolist(), strict=True) if n}


def _only(layout: Layout, unheld: set[str]) -> Layout:
    sets = [s.only(set(s.bits) - unheld) for s in layout.sets]
    named = tuple(name for name in layout.sensitive if name not in unheld)
    return replace(layout, sets=tuple(s for s in sets if s.values), sensitive=named)


def _public_manifest(
    folder: Path, contents: Contents, promised: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    release = contents.release
    tables = [
        {
            "file": contents.files[layout.name],
            "part": part.name,
            "format": contents.format,
            "escaped": contents.escaped,
            "rows": part.grouping.published_rows,
            "columns": list(layout.columns),
            "classes_by": list(layout.classes_by),
            "sensitive": list(layout.sensitive),
            "sets": [replace(s, sizes=None).as_dict() for s in layout.sets],
        }
        for part in contents.parts
        for layout in part.layouts
    ]
    return {
        "format": store.FORMAT,
        "product": f"{store.PRODUCT}{__version__}",
        "recoding": release.policy.recoding.name,
        "tables": tables,
        "promised": promised,
        "unit": release.policy.person_column is not None,
        "seeded": release.seeded,
        "files": _file_hashes(folder),
    }


def data_dictionary(policy: Policy, parts: Sequence[Written]) -> dict[str, Any]:
    """What each published column means now. Public: holds labels that occur in the release, nothing else."""
    columns = [column for part in parts for column in _columns(policy, part)]
    rows = [part.grouping.published_rows for part in parts]
    found: dict[str, Any] = {"columns": columns, "rows": rows[0], "recoding": policy.recoding.name}
    if len(parts) > 1:
        found["parts"] = [
            {"name": p.name, "rows": n, "sensitive": sorted({c for x in p.layouts for c in _shown(x)})}
            for p, n in zip(parts, rows, strict=True)
        ]
    return found


def _shown(layout: Layout) -> list[str]:
    """The sensitive columns of a table as they are published."""
    owner = {bit: s.name for s in layout.sets for bit in s.bits}
    return [owner.get(name, name) for name in layout.sensitive]


def _columns(policy: Policy, part: Written) -> list[dict[str, Any]]:
    shown = exact_view(part.grouping) if policy.recoding.exact else part.grouping
    names = level_names(shown) or {}
    published = {labels.attribute: labels for labels in shown.published_labels}
    columns = []
    for layout in part.layouts:
        sets = {s.name: s for s in layout.sets}
        for name in layout.columns:
            column: dict[str, Any] = {"name": name, "table": layout.name}
            if name not in policy.columns:
                column |= {"role": "group", "recoded": False}
                columns.append(column)
                continue
            column["role"] = policy.columns[name].role
            if name in sets:
                column |= {"set_of": list(sets[name].values), "separator": sets[name].separator}
            changes = part.grouping.changes
            if changes is not None and changes.attribute == name:
                column["distorted"] = True  # a reader must know that some values are wrong
            if name in published:
                labels = published[name]
                texts = {labels.texts[i] for i in np.unique(labels.of_group).tolist()}
                column["published_as"] = names.get(name, "the label of its group")
                column["recoded"] = names.get(name) != "exact"
                column["labels"] = sorted(t for t in texts if t is not None)
                column["missing"] = None in texts
            columns.append(column)
    return columns


def _file_hashes(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): file_hash(p) for p in sorted(folder.rglob("*")) if p.is_file()}


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, default=str), encoding="utf-8")
