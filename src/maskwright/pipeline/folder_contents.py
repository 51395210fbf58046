"""The words of a release folder: manifests, data dictionary, data card, report, and what later attacks need."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.domain.classes import ValueCounts
from maskwright.domain.grouping import exact_view
from maskwright.domain.method import Part
from maskwright.domain.recoding_plan import Layout
from maskwright.domain.release import Release, level_names
from maskwright.domain.value_sets import PRESENT
from maskwright.engines.base import Format
from maskwright.folder import store
from maskwright.folder.saved_state import part_folder, save_census, save_grouping
from maskwright.identifiers.pseudonyms import Pseudonyms
from maskwright.pipeline.job import KeepPrivate
from maskwright.pipeline.marginal_counts import marginals_as_json
from maskwright.pipeline.revealing import KEYS, keys_as_json
from maskwright.pipeline.sequence import REGISTER, Sequel
from maskwright.policy.policy import Policy, Unit
from maskwright.report import write_data_card, write_report
from maskwright.report.card import BY_CLASS
from maskwright.report.plan_section import frontier_csv, frontier_of
from maskwright.report.report import Examples
from maskwright.report.search import NearbySettings
from maskwright.verification.marginal_recount import MARGINALS
from maskwright.verification.verify import CLASSES, REFERENCE, file_hash
from maskwright.version import __version__

MAPPING = "mapping.csv"
HIERARCHIES = "hierarchies"


@dataclass(frozen=True)
class Contents:
    """What a folder is filled with, besides the tables.

    `reference` is what `verify` needs to know of the input; `source` names and fingerprints it; `around` is what other
    settings would have given.
    """

    release: Release
    parts: Sequence[Part]
    files: Mapping[str, str]  # table → file name
    format: Format
    examples: Examples
    reference: Mapping[str, Any]
    source: Mapping[str, Any]
    around: NearbySettings | None = None
    hidden: Mapping[str, Pseudonyms] = field(default_factory=dict)  # what made the pseudonyms
    sequel: Sequel | None = None  # its place in a sequence of releases

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
    if contents.sequel is not None:
        dictionary["counterfeits"] = contents.sequel.counterfeits
    privacy = next((p.differential for p in release.promises if p.differential is not None), None)
    if privacy is not None and release.promises[0].status == "guaranteed":
        dictionary["differential_privacy"] = privacy.as_dict()
    if release.policy.publish.marginals:
        dictionary["marginals"] = MARGINALS
        write_json(stage.public / MARGINALS, marginals_as_json(parts[0].grouping))
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
        if part.recorded is not None:
            write_json(folder / CLASSES, part.recorded, indent=None)  # large: this is ten times as fast
        if keep_private == "all":
            save_grouping(part.grouping, folder)
    found = frontier_of(release)
    if found is not None:
        write_json(private / "plans.json", found)
        (private / "plans.csv").write_text(frontier_csv(found), encoding="utf-8")
    if keep_private == "all" and contents.sequel is not None:
        write_json(private / REGISTER, contents.sequel.as_dict(), indent=None)
    if keep_private == "all" and contents.hidden:
        write_json(private / KEYS, keys_as_json(contents.hidden, contents.parts[0].collisions))
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


def for_readers(parts: Sequence[Part]) -> tuple[list[Part], set[str]]:
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
    release, people = contents.release, contents.release.policy.people
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
            **(
                {"perturbed": {n: release.policy.perturbed[n].options() for n in layout.perturbed}}
                if layout.perturbed
                else {}
            ),
            "sets": [replace(s, sizes=None).as_dict() for s in layout.sets],
            **_known_items(release.policy, layout),
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
        **({"linked": _links(people)} if people and people.publish else {}),
        **({"known_visits": people.events} if people and people.events > 1 and not people.publish else {}),
        **({"pseudonyms": release.policy.pseudonyms} if release.policy.pseudonyms else {}),
        "seeded": release.seeded,
        **({"counterfeits": contents.sequel.counterfeits} if contents.sequel is not None else {}),
        "files": _file_hashes(folder),
    }


def _known_items(policy: Policy, layout: Layout) -> dict[str, Any]:
    """How many people hold any few values of a set, as a later `verify` must know it."""
    there = {s.name for s in layout.sets} & policy.known_items.keys()
    asked = {n: {"k": policy.known_items[n].k, "m": policy.known_items[n].m} for n in sorted(there)}
    return {"known_items": asked} if asked else {}


def _links(people: Unit) -> dict[str, Any]:
    """What a pseudonym links, as a later `verify` must know it."""
    return {"by": people.column, "events": people.events, **({"own": list(people.own)} if people.own else {})}


def data_dictionary(policy: Policy, parts: Sequence[Part]) -> dict[str, Any]:
    """What each published column means now. Public: holds labels that occur in the release, nothing else."""
    columns = [column for part in parts for column in _columns(policy, part)]
    rows = [part.grouping.published_rows for part in parts]
    found: dict[str, Any] = {"columns": columns, "rows": rows[0], "recoding": policy.recoding.name}
    if policy.about is not None and policy.about.for_readers:
        found["about"] = policy.about.for_readers
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


def _columns(policy: Policy, part: Part) -> list[dict[str, Any]]:
    shown = exact_view(part.grouping) if policy.recoding.exact else part.grouping
    names = level_names(shown) or {}
    published = {labels.attribute: labels for labels in shown.published_labels}
    columns = []
    for layout in part.layouts:
        sets = {s.name: s for s in layout.sets}
        for name in layout.columns:
            column: dict[str, Any] = {"name": name, "table": layout.name}
            if name in policy.pseudonyms:
                kind = {"stable": True} if name in policy.columns and policy.columns[name].stable else {}
                kind |= {"one_row_each": True} if name != policy.person_column else {}
                columns.append(column | {"role": "pseudonym", "recoded": True} | kind)
                continue
            if name not in policy.columns:
                column |= {"role": "group", "recoded": False}
                columns.append(column)
                continue
            column["role"] = policy.columns[name].role
            if name in sets:
                column |= {"set_of": list(sets[name].values), "separator": sets[name].separator}
                asked = policy.columns[name].known_items
                if asked is not None:
                    column["known_items"] = {"k": asked.k, "m": asked.m, "rare": asked.rare}
            if policy.shift_dates is not None and name in policy.shift_dates.columns:
                column["moved"] = {
                    "within": policy.shift_dates.within,
                    "weekdays": policy.shift_dates.weekdays,
                }
            if name in policy.prepare and policy.prepare[name].redact is not None:
                column["redacted"] = True
            if name in layout.perturbed:  # a reader must know what the values are
                column["perturbed"] = policy.perturbed[name].in_words()
            changes = part.grouping.changes
            if changes is not None and changes.attribute == name:
                column["distorted"] = True  # a reader must know that some values are wrong
            if name in published:
                labels = published[name]
                texts = {labels.texts[i] for i in np.unique(labels.of_group).tolist()}
                column["published_as"] = names.get(name, BY_CLASS)
                column["recoded"] = names.get(name) != "exact"
                column["labels"] = sorted(t for t in texts if t is not None)
                column["missing"] = None in texts
            columns.append(column)
    return columns


def _file_hashes(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): file_hash(p) for p in sorted(folder.rglob("*")) if p.is_file()}


def write_json(path: Path, value: Any, indent: int | None = 1) -> None:
    """Write a value as JSON."""
    path.write_text(json.dumps(value, indent=indent, ensure_ascii=False, default=str), encoding="utf-8")
