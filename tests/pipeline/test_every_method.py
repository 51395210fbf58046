"""Every registered method with every recoding through the whole pipeline, recounted from disk and verified."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.errors import PolicyError
from maskwright.methods import METHODS
from maskwright.verify import verify
from patients import write_csv

COLUMNS = ["id", "age", "zip", "disease", "ward"]
DISEASES = ["flu", "asthma", "ulcer", "cough"]
ROWS = [
    [f"P{a:02d}{z}", str(20 + a), f"1{z}", DISEASES[(a + 2 * z) % 4], "AB"[a % 2]]
    for a, z in itertools.product(range(16), range(4))
]
DIVERSE = {"model": "simple-l-diversity", "l": 2}
SIZE = {"model": "k-anonymity", "k": 4}
METHOD: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "optimal-lattice": ({}, [SIZE, DIVERSE]),
    "samarati": ({}, [SIZE, DIVERSE]),
    "incognito": ({}, [SIZE, DIVERSE]),
    "local-recoding": ({}, [SIZE, DIVERSE]),
    "mondrian": ({}, [SIZE, DIVERSE]),
    "greedy-grouping": ({}, [DIVERSE]),
    "symmetric-grouping": ({}, [DIVERSE]),
    "anatomy": ({"l": 2}, [DIVERSE]),
    "alpha-k-local": ({}, [{"model": "alpha-k-anonymity", "alpha": "1/2", "k": 4}]),
    "mask": ({"l": 3, "values": ["ulcer"]}, [SIZE]),
}


def policy(name: str, recoding: str) -> mw.Policy:
    options, require = METHOD[name]
    return mw.Policy.load(
        {
            "columns": {
                "id": "identifier",
                "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4, 8]}},
                "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
                "disease": "sensitive",
                "ward": "insensitive",
            },
            "require": require,
            "method": {"name": name, **options},
            "recoding": recoding,
        }
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "t.csv", ROWS, COLUMNS)


def test_every_method_is_here() -> None:
    assert set(METHOD) == set(METHODS)


@pytest.mark.parametrize("recoding", ["generalise", "bucketize", "permute"])
@pytest.mark.parametrize("name", sorted(METHOD))
def test_published_and_verified(name: str, recoding: str, source: Path, tmp_path: Path) -> None:
    release = mw.anonymize(source, policy(name, recoding), tmp_path / "r")
    assert release.ok
    assert verify(tmp_path / "r").ok
    g = release.grouping
    assert g.published_rows + g.dropped_rows == len(ROWS)
    tables = {n: pd.read_csv(path, dtype=str) for n, path in release.tables.items()}
    assert {len(t) for t in tables.values()} == {g.published_rows}
    values = tables.get("sensitive", tables.get("data"))
    assert values is not None
    shown = g.published_classes.sensitive["disease"].totals.tolist()
    wanted = dict(zip(("", *g.summary.sensitive["disease"].values), shown, strict=True))
    assert Counter(values["disease"]) == {value: n for value, n in wanted.items() if n}
    for path in (tmp_path / "r/public").iterdir():
        assert "P00" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["mondrian", "greedy-grouping", "anatomy"])
def test_seeds_repeat_and_runs_differ(name: str, source: Path, tmp_path: Path) -> None:
    def data(run: str, seed: int | None) -> bytes:
        mw.anonymize(source, policy(name, "generalise"), tmp_path / run, seed=seed)
        return (tmp_path / run / "public/data.csv").read_bytes()

    assert data("a", 1) == data("b", 1)
    assert data("c", None) != data("d", None)


def test_methods_that_split_rows_refuse_a_unit(source: Path) -> None:
    made = policy("mondrian", "generalise").to_dict() | {"unit": "id"}
    with pytest.raises(PolicyError, match="unit"):
        mw.anonymize(source, made)


@pytest.mark.parametrize("name", ["optimal-lattice", "samarati", "incognito", "local-recoding", "mask"])
def test_a_share_of_rows_is_at_most_all_of_them(name: str, source: Path) -> None:
    made = policy(name, "generalise").to_dict()
    made["method"] |= {"suppression": 2}
    with pytest.raises(PolicyError, match="between 0 and 1"):
        mw.anonymize(source, made)
