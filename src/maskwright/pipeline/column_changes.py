"""Columns that are published with changes: drawn before anything is recoded, measured on what is published.

What is drawn follows from the installation's key, the input and the settings of these columns alone: another method or
requirement on the same input publishes the same numbers, so that nothing averages out over several releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.engines.base import Engine, Recount, Table
from maskwright.kernels.randomness import keyed_digest, random_generator
from maskwright.models.belief import BeliefAtMost
from maskwright.perturb.near_truth import near_truth
from maskwright.perturb.publication import (
    PerturbedFamily,
    changed_statistics,
    families_of,
    linkage_figures,
    perturbed_family,
)
from maskwright.pipeline.random_keys import Chance
from maskwright.policy.binding import Resolved

Ints = NDArray[np.int64]
ROW = "\x1frow"  # the place of a row in the input
_SHOWN = "\x1fpublished "


def shadow_of(name: str) -> str:
    """The column that holds what is published of a column, while both are there."""
    return _SHOWN + name


@dataclass(frozen=True, eq=False)
class PerturbedRows:
    """The published rows of columns that are published with changes.

    Attributes:
        names: these columns.
        counted: the classes with their true sensitive values, which no published table shows.
        shown: the classes with what is published, as it must be found again.
        findings: what attacks and statistics say of them.
        passing: the true sensitive values by class and insensitive columns as published; None: there are none.
    """

    names: tuple[str, ...]
    counted: Recount
    shown: Recount
    findings: Mapping[str, Any]
    passing: Recount | None = None


def drawn_families(
    engine: Engine, resolved: Resolved, chance: Chance, fingerprint: str
) -> tuple[Resolved, tuple[PerturbedFamily, ...]]:
    """Draw what is published of such columns; the source has it beside the true values then."""
    perturbed = resolved.policy.perturbed
    if not perturbed:
        return resolved, ()
    texts, hashes = engine.row_texts(resolved.source, list(perturbed), hashed=True)
    order = np.argsort(hashes, kind="stable")  # rows that are equal as a whole are interchangeable
    families, more = [], dict[str, tuple[str, NDArray[Any]]]()
    for names, publishing in families_of(perturbed):
        settings = publishing.model_dump_json()
        key = keyed_digest(chance.secret, "maskwright published columns 1", fingerprint, settings, *names)
        drawn = perturbed_family(
            names,
            publishing,
            {n: texts[n][order] for n in names},
            random_generator(key, "published columns"),
        )
        family = _in_order(drawn, order)
        families.append(family)
        more |= {shadow_of(n): (n, family.texts[n]) for n in names}
    more[ROW] = ("", np.arange(len(order), dtype=np.int64))
    return replace(resolved, source=engine.add_columns(resolved.source, more)), tuple(families)


def _in_order(family: PerturbedFamily, order: Ints) -> PerturbedFamily:
    """A family of rows in the order of the table again."""
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    texts = {name: found[back] for name, found in family.texts.items()}
    return replace(
        family, true=family.true[back], coded=family.coded[back], shown=family.shown[back], texts=texts
    )


def measured_rows(
    engine: Engine, behind: Table, resolved: Resolved, families: Sequence[PerturbedFamily], by: Sequence[str]
) -> PerturbedRows:
    """What linkage and statistics say of the published rows; `behind` has true and published values."""
    names = tuple(resolved.policy.perturbed)
    sensitive = [s.name for s in resolved.spec.sensitive]
    numeric = _other_numbers(engine, behind, resolved)
    texts, _ = engine.row_texts(behind, [*by, ROW, *numeric])
    rows = texts[ROW].astype(np.int64)
    labels = [_coded(texts[name]) for name in by]
    classes = np.unique(np.stack([codes for _, codes in labels]), axis=1, return_inverse=True)[1].reshape(-1)
    published = {n: _coded(f.texts[n][rows]) for f in families for n in f.names}
    columns = [*labels, *(published[n] for n in names)]
    keys, counts = np.unique(np.stack([codes for _, codes in columns]), axis=1, return_counts=True)
    shown = Recount(tuple(t for t, _ in columns), keys.astype(np.int32), counts, counts)
    every, rng = np.zeros(len(rows), dtype=np.int64), np.random.default_rng(1)  # whom to look for: no secret
    findings: dict[str, Any] = {"columns": {}, "linkage": []}
    for chosen in [*([f] for f in families), *([list(families)] if len(families) > 1 else [])]:
        findings["linkage"].append(
            {
                "columns": [n for f in chosen for n in f.names],
                "way": " and ".join(f.publishing.way for f in chosen),
                "in_class": linkage_figures(chosen, rows, classes, rng).as_dict(),
                "alone": linkage_figures(chosen, rows, every, rng).as_dict(),
            }
        )
    others = {n: _floats(texts[n]) for n in numeric}
    findings["columns"] = changed_statistics(families, rows, others)
    findings["near_truth"] = [
        near_truth(family, name, share, rows, classes).as_dict()
        for family in families
        for name in family.names
        for share in _shares_asked(resolved, name)
    ]
    beside = [shadow_of(n) if n in names else n for n in resolved.policy.with_role("insensitive")]
    passing = engine.recount(behind, [*by, *beside], sensitive) if beside else None
    return PerturbedRows(names, engine.recount(behind, by, sensitive), shown, findings, passing)


def _shares_asked(resolved: Resolved, column: str) -> list[Fraction]:
    """How near to the numbers of a column nobody may come, by the requirements."""
    asked = [m for m in resolved.models if isinstance(m, BeliefAtMost) and m.attribute == column]
    return sorted({m.within for m in asked if m.within is not None})


def _coded(texts: NDArray[Any]) -> tuple[tuple[str | None, ...], NDArray[np.int32]]:
    """The distinct texts ascending, missing last, and the code of each row."""
    missing = np.array([t is None for t in texts], dtype=bool)
    known, codes = np.unique(texts[~missing].astype(str), return_inverse=True)
    found = np.full(len(texts), len(known), dtype=np.int32)
    found[~missing] = codes
    return (*known.tolist(), *((None,) if missing.any() else ())), found


def _floats(texts: NDArray[Any]) -> NDArray[np.float64]:
    return np.array([np.nan if t is None else float(t) for t in texts])


def _other_numbers(engine: Engine, behind: Table, resolved: Resolved) -> list[str]:
    """Published columns that are numbers and are published as they are: for correlations and regressions."""
    policy = resolved.policy
    there = {c.name for c in behind.columns}
    asked = [
        n for n, c in policy.columns.items() if c.role in ("sensitive", "insensitive") and not c.multivalued
    ]
    asked = [n for n in asked if n in there and n not in policy.perturbed]
    return [n for n, d in zip(asked, engine.domains(behind, asked), strict=True) if d.numeric and d.values]


def in_a_note(resolved: Resolved) -> str:
    """What a publisher must know of requirements on such columns."""
    said = "; ".join(f"{n} {p.in_words()}" for n, p in resolved.policy.perturbed.items())
    return (
        f"published with changes: {said}. Requirements and beliefs about them are counted on the true "
        "values, as if these were published"
    )
