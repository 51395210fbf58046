"""Nothing of a table is ever run: hostile names and values through every kind of source, recoding and engine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from maskwright.engines import open_engine
from maskwright.engines.base import Reading
from maskwright.errors import InputError
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from maskwright.policy.policy import Policy
from maskwright.verification.verify import verify_folder
from tests.amounts import LONG
from tests.hostile import CANARY, NAMES, REFUSED, SOURCES, VALUES, Source, groups, policy, table

RECODINGS = ["generalise", "bucketize", "permute"]


def released(source: Any, asked: dict[str, Any], folder: Path, engine: str) -> tuple[list[str], Counter[Any]]:
    """Publish to a folder and verify it; the columns and, for each, how often each value was published."""
    out = folder / "release"
    publish_release(Job(source, Policy.load(asked), out, overwrite=out.exists(), engine=engine))
    assert verify_folder(out).ok
    assert not list(folder.rglob(CANARY)), "something of the table was run"
    opened = open_engine()  # whatever wrote it
    try:
        names, cells = [], Counter[Any]()
        for path in sorted(
            p for p in (out / "public").iterdir() if p.stem != "mapping" and p.suffix in (".csv", ".parquet")
        ):
            found = opened.open(path, Reading())
            names += [c.name for c in found.columns]
            for column in found.columns:
                domain = opened.domain(found, column.name)
                cells.update({(column.name, v): n for v, n in zip(domain.values, domain.counts, strict=True)})
        return names, cells
    finally:
        opened.close()


def check_names_and_values(
    kind: str, make: Source, engine: str, folder: Path, shift: int, size: int = 11, step: int = 1
) -> None:
    """Each name plays a role, each value is published; names, values and their numbers come out as they went in.

    `step`: a group of names of so many, another one for each kind of source.
    """
    for i, names in enumerate(groups(size)):
        if (i - shift) % step:
            continue
        if kind == "csv":
            names = [n.strip() or "a" for n in names]
        names = names[shift:] + names[:shift]  # another role and another recoding for each kind of source
        rows = table(names)
        recoding = RECODINGS[(i + shift) % 3]
        asked = policy(names, recoding)
        found, cells = released(make(names, rows, folder), asked, folder, engine)
        group = set() if recoding == "generalise" else {"group"}
        assert set(names[1:]) <= set(found), found
        assert len(set(found) - set(names[1:])) == len(group)
        for j in (3, 4):
            for value, n in Counter(row[j] for row in rows).items():
                assert cells[names[j], value] == n, (names[j], value)


@pytest.mark.parametrize("kind", SOURCES)
def test_every_name_and_value(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With DuckDB; tests/spark does the same on a cluster. Together the sources have each name."""
    monkeypatch.chdir(tmp_path)
    step = 1 if LONG else len(SOURCES)
    check_names_and_values(kind, SOURCES[kind], "duckdb", tmp_path, list(SOURCES).index(kind), step=step)


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("why", REFUSED)
def test_names_that_cannot_be_told_apart_are_refused(kind: str, why: str, tmp_path: Path) -> None:
    names = REFUSED[why]
    if kind == "polars" and why == "twice":
        pytest.skip("polars has no such tables")
    source = SOURCES[kind](names, [("x", "y")] * 6, tmp_path)
    engine = open_engine()
    try:
        with pytest.raises(InputError, match="NUL" if kind == "csv" and "NUL" in why else why):
            engine.open(source, Reading())
    finally:
        engine.close()


def test_the_lists_are_what_they_claim() -> None:
    assert len(NAMES) == len(set(NAMES)) == len({n.lower() for n in NAMES})
    assert len(VALUES) == len(set(VALUES))
    assert {n for names in groups() for n in names} == set(NAMES)
    assert all(len(set(names)) == len(names) for names in groups())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_ten_thousand_columns(kind: str, tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(10_000)]
    source = SOURCES[kind](names, [tuple(str(i % 2) for _ in names) for i in range(4)], tmp_path)
    engine = open_engine()
    try:
        found = engine.open(source, Reading())
        assert [c.name for c in found.columns] == names
        assert engine.domain(found, "c9999").counts == (2, 2)
    finally:
        engine.close()
