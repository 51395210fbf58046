"""Recount published files against a policy alone: no manifest, no hashes, nothing that was recorded beside them.

The files may have been rewritten by anybody, in another order or container. What counts is what they say now: which
columns there are, which rows share their quasi-identifiers (or their group number), and whether the classes satisfy
the requirements of the policy. What a file cannot show (people behind several rows, a population, the classes before
recoding) is refused, not assumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from maskwright.domain.model import Context
from maskwright.domain.projection import models_about
from maskwright.domain.references import References
from maskwright.domain.value_sets import BIT_VALUES
from maskwright.domain.verdict import Verdict
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Reading, Recount, SensitiveSpec, Table
from maskwright.errors import InputError, NotVerified
from maskwright.folder.store import MANIFEST, PUBLIC
from maskwright.policy.binding import flagged_of, hierarchy_of, models_of, set_columns
from maskwright.policy.policy import Policy
from maskwright.recode.plans import group_column
from maskwright.verification.pseudonym_links import unlike_pseudonyms
from maskwright.verification.verify import (
    Verification,
    classes_from,
    measure_models,
    rare_item_problems,
    recount_tables,
)

WORDS = {MANIFEST, "mapping.csv", "data-dictionary.json"}  # what lies beside the tables of a release
TABLES = (".csv", ".tsv", ".parquet", ".pq", ".csv.gz", ".csv.zst")


@dataclass(frozen=True, eq=False)
class _PublishedFile:
    """A published file: its columns by what the policy makes of them; `strangers` the policy does not know."""

    path: Path
    table: Table
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    insensitive: tuple[str, ...]
    strangers: tuple[str, ...]
    hidden: tuple[str, ...]  # identifiers, and others that are never published


def check_against_policy(published: Sequence[str | Path], policy: Policy) -> Verification:
    """Do these files satisfy the policy? A folder stands for the tables in it (of a release: in its public part)."""
    paths = _tables_in([Path(p) for p in published])
    if policy.person_column:
        raise NotVerified(
            "the policy counts people with several rows (`unit`), which the published files do not show; verify the "
            "folder of the release without a policy: its private/ part holds how many people each class has"
        )
    engine = open_engine()
    try:
        files = [_opened(engine, path, policy) for path in paths]
        problems = [p for file in files for p in _not_published(file)]
        for file in files:
            there = [n for n in policy.pseudonyms if n in {c.name for c in file.table.columns}]
            problems += [
                p for name in there if (p := unlike_pseudonyms(engine, file.table, name, repeats=False))
            ]
        parts = _parts(files, policy)
        problems += _together(files, policy)
        verdicts: list[Verdict] = []
        notes: list[str] = []
        rows = classes = 0
        held = Counter[str]()
        for part in parts:
            found, counted = _measure(engine, part, policy, notes, problems)
            held.update(counted.values.keys())
            verdicts += [replace(v, part=part[0].path.name) for v in found] if len(parts) > 1 else found
            rows, classes = rows + int(counted.rows.sum()), classes + len(counted.rows)
        problems += [f"{name!r} is in {n} files, which can be put together" for name, n in held.items()
                     if n > 1 and name not in policy.columns]  # fmt: skip
    finally:
        engine.close()
    whole = paths[0] if len(paths) == 1 else paths[0].parent
    return Verification(whole, tuple(verdicts), tuple(problems), rows, classes, tuple(dict.fromkeys(notes)))


def _tables_in(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            if not path.is_file():
                raise InputError(f"{str(path)!r} does not exist; name a release or its tables")
            found.append(path)
            continue
        folder = path / PUBLIC if (path / PUBLIC).is_dir() else path
        inside = sorted(
            p for p in folder.rglob("*") if p.name.lower().endswith(TABLES) and p.name not in WORDS
        )
        for table in inside:
            if table.is_symlink() or not table.is_file():
                raise NotVerified(f"{table.name!r} is not a file of the folder itself")
        if not inside:
            raise InputError(f"{str(folder)!r} holds no table (CSV or Parquet)")
        found += inside
    return found


def _opened(engine: Engine, path: Path, policy: Policy) -> _PublishedFile:
    table = engine.open(path, Reading(trim=False))
    names = [c.name for c in table.columns]

    def of_role(role: str) -> tuple[str, ...]:
        """The columns of the file to which the policy gives a role."""
        return tuple(n for n in names if n in policy.columns and policy.columns[n].role == role)

    shown = of_role("quasi-identifier"), of_role("sensitive"), of_role("insensitive")
    strangers = tuple(n for n in names if n not in policy.columns)
    known = {n for names in shown for n in names} | set(strangers) | set(policy.pseudonyms)
    return _PublishedFile(path, table, *shown, strangers, tuple(n for n in names if n not in known))


def _not_published(file: _PublishedFile) -> list[str]:
    return [f"{file.path.name} has the column {name!r}, which is not to be published" for name in file.hidden]


def _together(files: Sequence[_PublishedFile], policy: Policy) -> list[str]:
    """What concerns all files: every sensitive column is there once, insensitive ones in one file at most."""
    problems = []
    for name in policy.sensitive:
        n = sum(name in file.sensitive for file in files)
        if n == 0 or (n > 1 and not policy.columns[name].multivalued):
            where = "is in no file" if not n else f"is in {n} files, which can be put together"
            problems.append(f"column {name!r} {where}")
    if sum(bool(file.insensitive) for file in files) > 1:
        problems.append("insensitive columns are in several files, which can be put together")
    return problems


def _parts(files: Sequence[_PublishedFile], policy: Policy) -> list[list[_PublishedFile]]:
    """The files that belong together: one each, or the two tables of a bucketized release."""
    published = [name for name, column in policy.columns.items() if column.role != "identifier"]
    group: tuple[str, ...] = (group_column(published),) if policy.recoding.name != "generalise" else ()
    for file in files:
        if file.strangers != group:
            odd = [s for s in file.strangers if s not in group]
            what = (
                f"the column {odd[0]!r}, which the policy does not know" if odd else f"no column {group[0]!r}"
            )
            raise NotVerified(f"{file.path.name} has {what}")
    if policy.recoding.name == "bucketize":
        return _pairs(files, policy)
    for file in files:
        if missing := [q for q in policy.quasi_identifiers if q not in file.quasi_identifiers]:
            raise NotVerified(f"{file.path.name} lacks the quasi-identifier {missing[0]!r}")
    return [[file] for file in files]


def _pairs(files: Sequence[_PublishedFile], policy: Policy) -> list[list[_PublishedFile]]:
    """Each table of quasi-identifiers with the table of sensitive values whose name begins alike."""
    known = [f for f in files if f.quasi_identifiers and not f.sensitive]
    secret = [f for f in files if f.sensitive and not f.quasi_identifiers]
    pairs = []
    for first in known:
        begin = first.path.name.split("quasi-identifiers")[0]
        mates = (
            [f for f in secret if f.path.name.split("sensitive")[0] == begin] if len(known) > 1 else secret
        )
        if len(mates) != 1 or first.strangers != mates[0].strangers:
            raise NotVerified(f"{first.path.name} has no table of sensitive values that it goes with")
        if missing := [q for q in policy.quasi_identifiers if q not in first.quasi_identifiers]:
            raise NotVerified(f"{first.path.name} lacks the quasi-identifier {missing[0]!r}")
        pairs.append([first, mates[0]])
    if len(pairs) != len(secret) or len(known) + len(secret) != len(files):
        raise NotVerified(
            "the files are not tables of quasi-identifiers and of sensitive values, side by side"
        )
    return pairs


def _measure(
    engine: Engine, part: Sequence[_PublishedFile], policy: Policy, notes: list[str], problems: list[str]
) -> tuple[list[Verdict], Recount]:
    """Count the classes of one part, and ask the requirements that concern it."""
    grouped = policy.recoding.name != "generalise"
    by = part[0].strangers if grouped else tuple(policy.quasi_identifiers)
    tables, every, sets = [], list[str](), []
    for file in part:
        here = [s for s in set_columns(policy, engine, file.table) if s.name in file.sensitive]
        bits = {s.name: s.bits for s in here}
        table = engine.unfold(file.table, here) if here else file.table
        asked = {name: (items.k, items.m) for name, items in policy.known_items.items()}
        problems += rare_item_problems(engine, table, here, asked)
        sensitive = [b for name in file.sensitive for b in bits.get(name, (name,))]
        tables.append((table, by, sensitive))
        every += sensitive
        sets += here
    models = models_about(models_of(policy, sets), every)
    for model in models:
        if model.needs() - {"labels"}:
            raise NotVerified(f"{model.name} cannot be recounted from the published files alone")
    found = recount_tables(engine, tables)
    specs, context = _reference(engine, tables, found, policy)
    if any(m.about == "sensitive" for m in models):
        notes.append("distributions are compared with that of the published files themselves")
    context = replace(context, flagged=flagged_of(policy, sets), sets=tuple(sets))
    return list(measure_models(classes_from(found, by, specs), models, References(context, context))), found


def _reference(
    engine: Engine,
    tables: Sequence[tuple[Table, Sequence[str], Sequence[str]]],
    found: Recount,
    policy: Policy,
) -> tuple[list[SensitiveSpec], Context]:
    """The values of the sensitive attributes in their order, and the distributions of the files themselves."""
    specs, reference, hierarchies = [], {}, {}
    for table, _, sensitive in tables:
        for name in sensitive:
            column = policy.columns.get(name)
            if column is None:  # a bit of a set
                specs.append(SensitiveSpec(name, BIT_VALUES))
            elif column.hierarchy is not None or column.order is not None:
                hierarchies[name] = hierarchy_of(policy, name, engine.domain(table, name).values)
                specs.append(SensitiveSpec(name, hierarchies[name].values, hierarchies[name].ordered))
            else:
                domain = engine.domain(table, name)
                specs.append(SensitiveSpec(name, domain.values, domain.numeric))
    for spec in specs:
        totals = Counter[str | None]()
        for _, value, count in found.entries(spec.name):
            totals[value] += count
        reference[spec.name] = np.array([totals[None], *(totals[v] for v in spec.values)], dtype=np.int64)
    domains = {s.name: s.values for s in specs}
    people = int(found.people.sum())
    return specs, Context(reference, people, hierarchies, published=True, domains=domains)
