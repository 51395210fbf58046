"""Recount a written release and hold it against what was promised. Shares no code with the search.

The classes are counted by the engine from the bytes on disk, by the published text of the quasi-identifiers;
the models measure those classes. Nothing that the method believed about its result is used.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ancestors, Classes, Originals, ValueCounts, kept_pairs
from maskwright.domain.guards import Guards, merged_guards
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.known_visits import known_visits
from maskwright.domain.model import Context, Model, Need
from maskwright.domain.projection import context_for
from maskwright.domain.references import References
from maskwright.domain.sample import Sample
from maskwright.domain.settings import build_registered, parse_settings
from maskwright.domain.value_sets import PRESENT, SetColumn
from maskwright.domain.verdict import Verdict
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Found, Reading, Recount, SensitiveSpec, Table, Texts, spelled
from maskwright.errors import InputError, NotVerified, PolicyError
from maskwright.folder.later_files import LATER, later_problems
from maskwright.folder.saved_state import part_folder
from maskwright.folder.store import MALFORMED, MANIFEST, PRIVATE, PUBLIC, is_readable, read_json
from maskwright.models import MODELS
from maskwright.policy.published_column import Publishing
from maskwright.verification.marginal_recount import marginal_problems
from maskwright.verification.pseudonym_links import (
    PublishedLinks,
    pseudonym_problems,
    recounted_links,
    too_few_matches,
)

REFERENCE = "reference.json"
CLASSES = "classes.json"


def classes_from(recount: Recount, columns: Sequence[str], sensitive: Sequence[SensitiveSpec]) -> Classes:
    """The recounted classes in the form that models measure."""
    n = len(recount.rows)
    parts = {}
    for spec in sensitive:
        code = {value: i + 1 for i, value in enumerate(spec.values)}
        found = recount.values[spec.name]
        used, codes = np.unique(
            found.codes, return_inverse=True
        )  # numbers that nobody has may be listed, too
        texts = spelled(found.texts, used)
        if any(text is not None and text not in code for text in texts):
            raise NotVerified(f"column {spec.name!r} holds a value that the input did not have")
        known = np.array([code[text] if text is not None else 0 for text in texts], dtype=np.int64)
        parts[spec.name] = ValueCounts.collect(
            spec.values, n, found.owner, known[codes], found.counts, spec.ordered
        )
    return Classes(recount.people, recount.rows, parts, tuple(columns), recount.codes)


def measure_models(classes: Classes, models: Sequence[Model], references: References) -> tuple[Verdict, ...]:
    """What every model says about the recounted classes."""
    if classes.n == 0:
        raise NotVerified("the written table has no rows")
    return tuple(references.check(model, classes) for model in models)


def file_hash(path: Path) -> str:
    """The SHA-256 hash of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Verification:
    """The outcome for a release that was written earlier."""

    path: Path
    verdicts: tuple[Verdict, ...]
    problems: tuple[str, ...]
    rows: int
    classes: int
    notes: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Were all promises kept, and nothing else found?"""
        return not self.problems and all(v.ok for v in self.verdicts)

    def as_dict(self) -> dict[str, Any]:
        """The outcome as JSON."""
        return {
            "ok": self.ok,
            "path": str(self.path),
            "rows": self.rows,
            "classes": self.classes,
            "verdicts": [v.as_dict() for v in self.verdicts],
            "problems": list(self.problems),
            "notes": list(self.notes),
        }


def verify_folder(folder: str | Path, recount_only: bool = False) -> Verification:
    """Check a release folder: its files against the manifest, and its table against the promises.

    With `recount_only` the hashes of the tables are not compared, so that a release rewritten in another order or
    container can be checked for what it promises. What it promises must still be what was written.
    """
    path = Path(folder)
    for part in (PUBLIC, PRIVATE):
        if (path / part).is_symlink():
            raise NotVerified(f"{part}/ is a link to another place, whose content may change; copy it here")
    manifest = read_json(path / PUBLIC / MANIFEST)
    problems = _compare_manifests(path) if recount_only else _compare_files(path, manifest)
    try:
        listed = [_listed(path / PUBLIC, table, recount_only) for table in manifest["tables"]]
        promised = [
            (
                p.get("part"),
                build_registered(MODELS, "model", p["model"], _parameters(p), "promised"),
            )  # what is claimed
            for p in manifest["promised"]
        ]
        names = list(dict.fromkeys(item.part for item in (listed[0], *listed)))
        unit = bool(manifest.get("unit"))
        hidden = [str(name) for name in manifest.get("pseudonyms", [])]
        linked = manifest.get("linked")
        if linked is not None:
            linked = PublishedLinks(
                str(linked["by"]), int(linked["events"]), tuple(map(str, linked.get("own", ())))
            )
    except MALFORMED:
        raise InputError(f"{str(path / PUBLIC / MANIFEST)!r} is not a manifest of ours") from None
    listed = [replace(item, person=linked.by if linked is not None else "") for item in listed]
    notes: list[str] = []
    if unit and linked is None and any(item.known_items for item in listed):
        notes.append(
            "how many people hold the values of a set together is recounted in rows, of which people have several: "
            "which rows are whose is not published"
        )
    if (path / PRIVATE).is_dir() and not os.access(path / PRIVATE, os.R_OK | os.X_OK):
        notes.append(
            "private/ belongs to somebody else and cannot be read; what follows is about public/ alone"
        )
    if manifest.get("known_visits"):
        notes.append(
            "how many people match several known visits is not counted again: which rows are whose is not published"
        )
    verdicts: list[Verdict] = []
    rows = classes = 0
    for name in names:
        models = [model for part, model in promised if part in (None, name)]
        tables = [item for item in listed if item.part == name]
        counted = _verify_part(path, name, len(names), tables, models, unit, problems, notes)
        if linked is not None:
            matches, problem = recounted_links(
                path / PUBLIC / tables[0].file, tables[0].reading, tables[0].classes_by, linked
            )
            problems += [problem] if problem else []
            problems += [p for model in models if (p := too_few_matches(model, matches, linked.events))]
        if hidden:
            first, person = tables[0], linked.by if linked else ""
            named = [name for name in hidden if name in first.columns]
            problems += pseudonym_problems(path / PUBLIC / first.file, first.reading, named, person)
        verdicts += [replace(v, part=name) for v in counted[0]] if len(names) > 1 else counted[0]
        rows, classes = rows + counted[1], classes + counted[2]
    notes = list(dict.fromkeys(notes))
    return Verification(path, tuple(verdicts), tuple(problems), rows, classes, tuple(notes))


def _verify_part(
    path: Path, name: str, parts: int, listed: Sequence[_ListedTable], models: Sequence[Model], unit: bool,
    problems: list[str], notes: list[str],
) -> tuple[tuple[Verdict, ...], int, int]:  # fmt: skip
    """Recount the tables of one part of a release: its verdicts, rows and classes."""
    recount = _recount(path, listed, problems)
    problems += marginal_problems(path / PUBLIC, recount, listed[0].classes_by, models)
    needs = frozenset[Need]().union(*(model.needs() for model in models)) - {"labels"}
    recorded: dict[str, Any] = {}
    folder = part_folder(path / PRIVATE, name, parts)
    if needs == {"ancestors"} and not unit and not is_readable(folder / CLASSES):
        needs = frozenset()
        notes.append(
            f"without private/{CLASSES} the whole table is the only group that classes are compared with"
        )
    perturbed = {name for item in listed for name in item.perturbed}
    hidden = perturbed & {m.attribute_name() for m in models}
    _of_perturbed(listed, notes)
    if unit or needs or hidden:
        recount, recorded, more = _recorded(folder, unit, recount, notes)
        problems += more
    expected = {item.rows for item in listed}
    rows = int(recount.rows.sum())
    if {rows} != expected:
        problems.append(f"the table has {rows} rows, the manifest says {sorted(expected)}")
    sensitive = [name for item in listed for name in item.sensitive if name in recount.values]
    specs, context, gates = _reference(path, name, sensitive, recount, notes)
    classes = classes_from(recount, listed[0].classes_by, specs)
    references = References(context, context) if gates is None else gates
    verdicts = measure_models(replace(classes, **recorded), models, references)
    return verdicts, rows, len(recount.rows)


def recount_tables(engine: Engine, tables: Sequence[tuple[Table, Sequence[str], Sequence[str]]]) -> Recount:
    """The classes of tables together: each is counted by some columns, with its sensitive ones.

    Refuses tables that do not have the same classes with the same numbers of rows.
    """
    found, *others = [engine.recount(table, by, sensitive) for table, by, sensitive in tables]
    for other in others:  # classes are listed in the same order, so the same classes have the same numbers
        same = all(map(_same, found.texts, other.texts))
        if not (same and np.array_equal(found.codes, other.codes) and np.array_equal(found.rows, other.rows)):
            raise NotVerified("the tables of the release do not have the same groups")
        found.values.update(other.values)
    return found


def _same(one: Texts, two: Texts) -> bool:
    if isinstance(one, tuple) or isinstance(two, tuple):
        return isinstance(one, tuple) and isinstance(two, tuple) and one == two
    return np.array_equal(one, two)


@dataclass(frozen=True)
class _ListedTable:
    """A table as the manifest describes it."""

    file: str
    reading: Reading
    part: str
    columns: list[str]
    classes_by: list[str]
    sensitive: list[str]
    rows: int
    sets: list[SetColumn]
    perturbed: dict[str, Publishing]
    known_items: dict[str, tuple[int, int]] = field(default_factory=dict)  # k and m of columns of sets
    person: str = ""  # the column of pseudonyms that links the rows of a person

    @property
    def counted(self) -> list[str]:
        """The sensitive attributes that can be counted in it."""
        return [name for name in self.sensitive if name not in self.perturbed]


def _recount(path: Path, listed: Sequence[_ListedTable], problems: list[str]) -> Recount:
    """Count the classes of the tables as they are on disk; what they are grouped by is in the manifest."""
    engine = open_engine()
    try:
        tables = []
        for item in listed:
            data = path / PUBLIC / item.file
            linked = any(p.is_symlink() for p in (data, *data.rglob("*")))
            if not data.exists() or linked or data.parent.resolve() != (path / PUBLIC).resolve():
                raise NotVerified(f"the table {item.file!r} that the manifest names is missing")
            table = engine.open(data, item.reading)
            there = [c.name for c in table.columns]
            if sorted(there) != sorted(item.columns):
                problems.append(f"the columns of {item.file} are {there}, the manifest says {item.columns}")
            if item.sets:
                table = engine.unfold(table, item.sets)
                problems += rare_item_problems(engine, table, item.sets, item.known_items, item.person)
            problems += _broken_settings(engine, table, item)
            tables.append((table, item.classes_by, item.counted))
        return recount_tables(engine, tables)
    finally:
        engine.close()


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
        raise TypeError
    return value


def _parameters(promise: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(promise["parameters"])
    if promise.get("attribute"):
        values["attribute"] = promise["attribute"]
    if "use" in promise:
        values["use"] = promise["use"]
    return values


def _listed(folder: Path, table: Mapping[str, Any], rewritten: bool) -> _ListedTable:
    """A table as the manifest describes it; of one that was rewritten the delimiter may be another."""
    file, format = _file_of(folder, str(table["file"]), table.get("format"), rewritten)
    if format not in ("csv", "parquet", None):
        raise ValueError
    reading = Reading.back(format, bool(table.get("escaped")))
    columns, classes_by, sensitive = (_texts(table[key]) for key in ("columns", "classes_by", "sensitive"))
    return _ListedTable(
        file, replace(reading, delimiter=None) if rewritten else reading, table.get("part", "data"), columns,
        classes_by, sensitive, int(table["rows"]), [SetColumn.from_dict(s) for s in table.get("sets", ())],
        {n: parse_settings(Publishing, s, "perturbed") for n, s in table.get("perturbed", {}).items()},
        {str(n): (int(s["k"]), int(s["m"])) for n, s in table.get("known_items", {}).items()},
    )  # fmt: skip


def rare_item_problems(
    engine: Engine,
    table: Table,
    sets: Sequence[SetColumn],
    asked: Mapping[str, tuple[int, int]],
    person: str = "",
) -> list[str]:
    """Sets of which m values are held by fewer than k people, by column `asked`, counted in the table as it is.

    `person`: the column of pseudonyms by which the sets of a person are put together; empty: every row is a person.
    """
    by = [person] if person else []
    found = []
    for column in sets:
        if column.name not in asked:
            continue
        k, m = asked[column.name]
        counted = engine.recount(table, [*column.bits, *by])
        bits = len(column.bits)
        held = np.array(
            [[text == PRESENT for text in labels[:bits]] for labels in counted.labels], dtype=bool
        )
        if person:
            names = {labels[-1]: i for i, labels in enumerate(counted.labels)}
            kind, whose = np.arange(len(held)), np.array([names[labels[-1]] for labels in counted.labels])
        else:
            kind = np.repeat(np.arange(len(held)), counted.rows)
            whose = np.arange(len(kind))
        row, item = np.nonzero(held[kind])
        holder, item = np.unique(np.stack([whose[row], item]), axis=1)
        fewest = [level.fewest for level in known_visits(holder, item, np.ones(len(holder), np.int64), m)]
        if len(holder) and min(fewest) < k:
            found.append(
                f"column {column.name!r}: at most {m} values are held together by {min(fewest)} people, "
                f"promised were {k}"
            )
    return found


def _broken_settings(engine: Engine, table: Table, listed: _ListedTable) -> list[str]:
    """Perturbed columns that show what their settings exclude: values beyond a limit, or between multiples."""
    found = []
    for name, publishing in listed.perturbed.items():
        if publishing.pram is not None or name not in {c.name for c in table.columns}:
            continue
        values = [Fraction(text) for text in engine.domain(table, name).values if _is_number(text)]
        if publishing.round is not None and any(v % publishing.round for v in values):
            found.append(f"column {name!r} holds numbers that are no multiples of {publishing.round}")
        if publishing.way not in ("extremes", "round"):
            continue  # errors and means may lie beyond
        for extreme, beyond in ((publishing.top_code, max), (publishing.bottom_code, min)):
            if extreme is None or extreme.shows != "limit" or not values:
                continue
            if publishing.round is not None and extreme.limit % publishing.round:
                continue  # it was rounded itself
            if beyond(beyond(values), extreme.limit) != extreme.limit:
                found.append(f"column {name!r} holds numbers beyond its limit {extreme.limit}")
    return found


def _is_number(text: str) -> bool:
    try:
        Fraction(text)
    except ValueError:
        return False
    return True


def _of_perturbed(listed: Sequence[_ListedTable], notes: list[str]) -> None:
    """Say what cannot be counted in a table whose columns are published with changes."""
    named = {name: p for item in listed for name, p in item.perturbed.items()}
    if named:
        said = "; ".join(f"{name} {p.in_words()}" for name, p in named.items())
        notes.append(
            "the true values of perturbed columns cannot be counted in the table, nor can the random draws be "
            f"repeated: {said}"
        )


CONTAINERS = (".csv", ".tsv", ".parquet", ".pq")


def _file_of(folder: Path, name: str, format: Any, rewritten: bool) -> tuple[str, Any]:
    """The file of a table and its format; one that was rewritten may be in another container of the same name."""
    if not rewritten or (folder / name).exists():
        return name, format
    stem = Path(name).stem
    others = [s for s in CONTAINERS if (folder / f"{stem}{s}").is_file()]
    return (f"{stem}{others[0]}", None) if len(others) == 1 else (name, format)


def _compare_manifests(path: Path) -> list[str]:
    """Is the public manifest the one that private/ knows, where that is kept?"""
    if not is_readable(path / PRIVATE / MANIFEST):
        return []
    known = read_json(path / PRIVATE / MANIFEST).get("public_manifest")
    return (
        []
        if known == file_hash(path / PUBLIC / MANIFEST)
        else [f"{PUBLIC}/{MANIFEST} is not the one that was written"]
    )


def _compare_files(path: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Files that are missing, changed or extra, in public/ and (where it is kept) private/."""
    problems = _compare_manifests(path)
    listed = [(PUBLIC, manifest)]
    if is_readable(path / PRIVATE / MANIFEST):
        listed.append((PRIVATE, read_json(path / PRIVATE / MANIFEST)))
    for part, record in listed:
        files = record.get("files")
        if not isinstance(files, dict):
            raise InputError(f"{str(path / part / MANIFEST)!r} is not a manifest of ours")
        every = [(p.relative_to(path / part).as_posix(), p) for p in sorted((path / part).rglob("*"))]
        present = {name for name, p in every if p.is_file()}
        problems += [f"{part}/{name} is a link to another place" for name, p in every if p.is_symlink()]
        present -= {MANIFEST, *(LATER if part == PRIVATE else ())}
        problems += [f"{part}/{name} is missing" for name in sorted(set(files) - present)]
        problems += [f"{part}/{name} is not in the manifest" for name in sorted(present - set(files))]
        problems += [
            f"{part}/{name} was changed" for name in sorted(set(files) & present)
            if file_hash(path / part / name) != files[name]
        ]  # fmt: skip
    if is_readable(path / PRIVATE / MANIFEST):
        problems += later_problems(path)
    return problems


def _recorded(
    folder: Path, unit: bool, recount: Recount, notes: list[str]
) -> tuple[Recount, dict[str, Any], list[str]]:
    """What nobody can count in the public table (people, population): as it was when the release was made."""
    file = folder / CLASSES
    if not is_readable(file):
        what = "several rows per person" if unit else "requirements about more than its own rows"
        raise NotVerified(f"this release has {what}, which cannot be recounted without private/{CLASSES}")
    stored = read_json(file)
    try:
        place = {tuple(labels): i for i, labels in enumerate(stored["labels"])}
        order = [place.get(labels, -1) for labels in recount.labels]
        same = len(place) == len(order) and all(
            i >= 0 and stored["rows"][i] == rows for i, rows in zip(order, recount.rows.tolist(), strict=True)
        )
        if not same:
            return recount, {}, [f"the classes of the table are not those of private/{CLASSES}"]
        notes.append(f"what the public table does not show is taken from private/{CLASSES}")
        new = {old: i for i, old in enumerate(order)}
        if unit:
            people = np.array([stored["people"][i] for i in order], dtype=np.int64)
            recount = replace(recount, people=people, values={})
        values = {name: _found(entries, new) for name, entries in stored["values"].items()}
        recount = replace(recount, values=recount.values | values)
        extra: dict[str, Any] = {}
        if "population" in stored:
            extra["population"] = np.array([stored["population"][i] for i in order], dtype=np.int64)
        if "weights" in stored:
            extra["weights"] = np.array([stored["weights"][i] for i in order], dtype=np.float64)
        if "guards" in stored:
            number = np.array([new[i] for i in range(len(order))], dtype=np.int64)
            guards = {name: Guards.from_dict(one) for name, one in stored["guards"].items()}
            extra["guards"] = merged_guards(guards, number)
        if "several" in stored:
            owner, person = (np.array(x, dtype=np.int64) for x in stored["several"])
            extra["several"] = kept_pairs((owner, person), np.array([new[i] for i in range(len(order))]))
        if "originals" in stored:
            start, sizes = stored["originals"]
            class_of = np.repeat([new[i] for i in range(len(order))], np.diff(start))
            extra["originals"] = Originals.of(class_of, np.array(sizes, dtype=np.int64), len(order))
        if "ancestors" in stored:
            recorded = Ancestors(len(order), np.array(stored["ancestors"], dtype=np.int64))
            extra["ancestors"] = recorded.merged(np.array([new[i] for i in range(len(order))]), len(order))
    except MALFORMED:
        raise InputError(f"private/{CLASSES} is not what was written") from None
    return recount, extra, []


def _found(entries: Sequence[tuple[int, str | None, int]], number: Mapping[int, int]) -> Found:
    """Recorded entries with the classes as they are numbered now."""
    texts: dict[str | None, int] = {}
    codes = [texts.setdefault(value, len(texts)) for _, value, _ in entries]
    owner = [number[c] for c, _, _ in entries]
    counts = [n for _, _, n in entries]
    arrays = (np.array(x, dtype=np.int64) for x in (owner, codes, counts))
    return Found(tuple(texts), *arrays)


def _reference(
    path: Path, part: str, sensitive: Sequence[str], recount: Recount, notes: list[str]
) -> tuple[list[SensitiveSpec], Context, References | None]:
    """The input's distributions, kept in private/; without them those of the release itself.

    And what a part was compared with, where that is another: None otherwise, as in releases of earlier versions.
    """
    file = path / PRIVATE / REFERENCE
    if is_readable(file):
        stored = read_json(file)
        specs, context = reference_from(stored)
        mine = context_for(context, sensitive)
        return [s for s in specs if s.name in sensitive], mine, _released_from(stored, part, mine)
    if sensitive:
        notes.append("private/ was not kept: distributions are compared with that of the release itself")
    specs, reference = [], {}
    for name in sensitive:
        totals: dict[str, int] = {}
        missing = 0
        for _, value, count in recount.entries(name):
            if value is None:
                missing += count
            else:
                totals[value] = totals.get(value, 0) + count
        values = tuple(sorted(totals))
        specs.append(SensitiveSpec(name, values))
        reference[name] = np.array([missing, *(totals[v] for v in values)], dtype=np.int64)
    return (
        specs,
        Context(
            reference=reference,
            n_people=int(recount.people.sum()),
            published=True,
            domains={s.name: s.values for s in specs},
        ),
        None,
    )


def _released_from(stored: Mapping[str, Any], part: str, context: Context) -> References | None:
    """What `released_to` wrote about one part of a release."""
    try:
        found = stored.get("released", {}).get(part)
        if found is None:
            return None
        counts = {s["name"]: _one_for_each(s["values"], s["counts"]) for s in found["sensitive"]}
        domains = {s["name"]: tuple(s["values"]) for s in found["sensitive"]}
        gates = replace(
            context, reference={**context.reference, **counts}, domains={**context.domains, **domains},
            n_people=int(found["people"]), published=True,
        )  # fmt: skip
        return References(gates if found["search"] else context, gates)
    except MALFORMED:
        raise InputError(f"private/{REFERENCE} is not what was written") from None


def released_to(references: References) -> dict[str, Any] | None:
    """The distributions of those who are published as JSON; None: they are those of the whole table."""
    gates = references.gates
    if not gates.published:
        return None
    return {
        "people": gates.n_people,
        "search": references.search is gates,
        "sensitive": [
            {"name": name, "values": list(gates.domains[name]), "counts": counts.tolist()}
            for name, counts in gates.reference.items()
        ],
    }


def _one_for_each(values: Sequence[str], counts: Sequence[int]) -> NDArray[np.int64]:
    """The counts as an array; there must be one for the missing value, and one for each other."""
    found = np.array(counts, dtype=np.int64)
    if found.shape != (1 + len(values),):
        raise ValueError("one count for each value")
    return found


def reference_from(stored: Mapping[str, Any]) -> tuple[list[SensitiveSpec], Context]:
    """What `reference_to` wrote."""
    try:
        specs = [SensitiveSpec(s["name"], tuple(s["values"]), s["ordered"]) for s in stored["sensitive"]]
        reference = {s["name"]: _one_for_each(s["values"], s["counts"]) for s in stored["sensitive"]}
        hierarchies = {h["attribute"]: Hierarchy.from_dict(h) for h in stored["hierarchies"]}
        domains = {s.name: s.values for s in specs}
        sets = tuple(map(SetColumn.from_dict, stored.get("sets", ())))
        sample = Sample.of(stored["sample"]) if "sample" in stored else None
        people = int(stored["people"])
        return specs, Context(reference, people, hierarchies, domains=domains, sets=sets, sample=sample)
    except (*MALFORMED, PolicyError):
        raise InputError(f"private/{REFERENCE} is not what was written") from None


def reference_to(
    specs: Sequence[SensitiveSpec],
    context: Context,
    hierarchies: Mapping[str, Hierarchy],
) -> dict[str, Any]:
    """The reference distributions as JSON, so that a release can be verified later."""
    return {
        "sets": [s.as_dict() for s in context.sets],
        "people": context.n_people,
        "sensitive": [
            {
                "name": s.name,
                "values": list(s.values),
                "ordered": s.ordered,
                "counts": context.reference[s.name].tolist(),
            }
            for s in specs
        ],
        "hierarchies": [hierarchies[s.name].to_dict() for s in specs if s.name in hierarchies],
        **({"sample": context.sample.as_dict()} if context.sample is not None else {}),
    }
