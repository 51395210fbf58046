"""What pseudonyms link, counted in a published table: who matches known visits, and what is not alike for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.hierarchy import TOP
from maskwright.domain.known_visits import known_visits
from maskwright.domain.model import Model
from maskwright.engines import open_engine
from maskwright.engines.base import Engine, Reading, Recount, Table, Texts, spelled
from maskwright.identifiers.pseudonyms import is_pseudonym
from maskwright.models.k_anonymity import KAnonymity


@dataclass(frozen=True)
class PublishedLinks:
    """What a pseudonym links, as the manifest says.

    Attributes:
        by: the column of pseudonyms.
        events: the visits that somebody may know.
        own: the columns that are the same in all rows of a person.
    """

    by: str
    events: int
    own: tuple[str, ...]


def recounted_links(
    path: Path, reading: Reading, classes_by: Sequence[str], links: PublishedLinks
) -> tuple[int, str]:
    """The fewest people who match known visits in a published table, and which column differs for somebody."""
    engine = open_engine()
    try:
        counted = engine.recount(engine.open(path, reading), [*classes_by, links.by])
    finally:
        engine.close()
    return fewest_matches(counted, links.events), differs_for_somebody(counted, classes_by, links.own)


def differs_for_somebody(counted: Recount, classes_by: Sequence[str], own: Sequence[str]) -> str:
    """Which of the person's own columns is not the same in all rows of somebody; empty: none.

    `counted` by class, and last by person. Rows in which everything is suppressed tell nothing.
    """
    person = counted.codes[-1]
    tops = [_is_top(t)[c] for t, c in zip(counted.texts[:-1], counted.codes[:-1], strict=True)]
    shown = ~np.all(tops, axis=0)
    for name in own:
        pairs = np.stack([person, counted.codes[list(classes_by).index(name)]])[:, shown]
        if np.unique(pairs, axis=1).shape[1] > len(np.unique(pairs[0])):
            return f"column {name!r} is not the same in all rows of a person, though it is the person's own"
    return ""


def _is_top(texts: Texts) -> NDArray[np.bool_]:
    """Which of the texts says nothing."""
    return np.array([text == TOP for text in texts], dtype=bool)


def pseudonym_problems(path: Path, reading: Reading, hidden: Sequence[str], person: str) -> list[str]:
    """What is wrong with the columns of a published table that are to hold pseudonyms; `person` tells persons apart."""
    engine = open_engine()
    try:
        table = engine.open(path, reading)
        found = [unlike_pseudonyms(engine, table, name, name == person) for name in hidden]
    finally:
        engine.close()
    return [problem for problem in found if problem]


def unlike_pseudonyms(engine: Engine, table: Table, column: str, repeats: bool) -> str:
    """Why a column is not one of pseudonyms, in words; empty: it is. Those of people with several rows repeat."""
    counted = engine.recount(table, [column])
    texts = spelled(counted.texts[0], counted.codes[0])
    if not all(map(is_pseudonym, texts)):
        return f"column {column!r} was to hold pseudonyms, and holds something else"
    several = [
        rows for text, rows in zip(texts, counted.rows.tolist(), strict=True) if text is not None and rows > 1
    ]
    return "" if repeats or not several else f"column {column!r} has the same pseudonym in several rows"


def fewest_matches(counted: Recount, events: int) -> int:
    """The fewest people who match up to so many visits of somebody; `counted` by class, and last by person."""
    person, classes = counted.codes[-1].astype(np.int64), counted.codes[:-1].astype(np.int64)
    group = np.unique(classes, axis=1, return_inverse=True)[1].reshape(-1)
    return min(level.fewest for level in known_visits(person, group, counted.rows, events))


def too_few_matches(model: Model, matches: int, events: int) -> str:
    """Why linked visits break a requirement on the size of classes, in words; empty: they do not."""
    if not isinstance(model, KAnonymity) or matches >= model.k:
        return ""
    known = "one known visit" if events == 1 else f"{events} known visits"
    return f"{model.name} fails: the people who match {known} of somebody are {matches}, asked at least {model.k}"
