"""Every registered method with every recoding through the whole pipeline, recounted from disk and verified."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.errors import PolicyError
from maskwright.methods import METHODS
from maskwright.verification.verify import verify_folder
from tests.amounts import crossed
from tests.patients import forget, write_csv

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
    "local-suppression": ({}, [SIZE, DIVERSE]),
}
# which need several sensitive columns (test_codip.py), or levels that are fixed in advance (test_dp_sample.py)
ELSEWHERE = {"codip", "dp-sample"}


def policy(name: str, recoding: str) -> mw.Policy:
    options, require = METHOD[name]
    return mw.Policy.load(
        {
            "columns": {
                "id": "identifier",
                "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [2, 4, 8]}},
                "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
                "disease": "sensitive",
                "ward": {"role": "insensitive", "near_unique": "allow"},
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
    assert set(METHOD) | ELSEWHERE == set(METHODS)


@pytest.mark.parametrize(
    ("name", "recoding"), crossed(sorted(METHOD), ["generalise", "bucketize", "permute"])
)
def test_published_and_verified(name: str, recoding: str, source: Path, tmp_path: Path) -> None:
    release = mw.anonymize(source, policy(name, recoding), tmp_path / "r")
    assert release.ok
    assert verify_folder(tmp_path / "r").ok
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


@pytest.mark.parametrize("name", sorted(name for name in METHOD if "anatomize" in METHODS[name].model_fields))
def test_the_groups_of_any_method_can_be_anatomized(name: str, source: Path, tmp_path: Path) -> None:
    """Buckets of four different diseases, inside the groups of the method, recounted and verified."""
    made = policy(name, "bucketize").to_dict()
    made["method"] |= {"anatomize": 4}
    release = mw.anonymize(source, made, tmp_path / "r")
    assert verify_folder(tmp_path / "r").ok
    g = release.grouping
    assert g.search["anatomized"] == 4
    assert g.published_rows + g.dropped_rows == len(ROWS)
    shares = next(b for b in release.beliefs if b.attack == "homogeneity").worst.after
    assert g.search["groups_left_whole"] or shares == Fraction(1, 4)
    assert "the method's bound does not hold" in g.search["note"]
    if "suppressed_rows" in METHODS[name].model_fields:
        made["method"] |= {"suppressed_rows": "star"}
        with pytest.raises(PolicyError, match="cannot be combined with suppressed_rows"):
            mw.anonymize(source, made)


@pytest.mark.parametrize("recoding", ["generalise", "bucketize", "permute"])
def test_ranges_of_a_numeric_sensitive_column_alone(recoding: str, source: Path, tmp_path: Path) -> None:
    """Groups of neighbouring ages, whatever the quasi-identifiers: each spans at least two years and four people."""
    made = {
        "columns": {"zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}}, "age": "sensitive"},
        "require": [{"model": "ke-anonymity", "k": 4, "e": 2}],
        "method": {"name": "anatomy", "by": "ranges"},
        "recoding": {"name": "bucketize"} if recoding == "bucketize" else recoding,
    }
    release = mw.anonymize(source, made, tmp_path / "r")
    assert verify_folder(tmp_path / "r").ok
    counts = release.grouping.classes.sensitive["age"]
    ranges = sorted(
        (min(map(int, held)), max(map(int, held))) for held in map(counts.of_class, range(counts.n_classes))
    )
    assert len(ranges) > 5
    assert all(high - low >= 2 for low, high in ranges)
    assert all(high <= low for (_, high), (low, _) in itertools.pairwise(ranges))


@pytest.mark.parametrize("options", [{"cut": "strict"}, {"cut": "relaxed", "dimensions": "fallback"}])
def test_cuts_without_a_guarantee_say_so(options: dict[str, Any], source: Path) -> None:
    made = policy("mondrian", "generalise").to_dict()
    made["method"] |= options
    assert mw.anonymize(source, made).grouping.search["note"].startswith("no guarantee")
    made["require"] = [SIZE]  # nothing looks at values: nothing can leak
    assert "note" not in mw.anonymize(source, made).grouping.search


@pytest.mark.parametrize("name", ["mondrian", "greedy-grouping", "anatomy"])
def test_runs_repeat_and_installations_differ(name: str, source: Path, tmp_path: Path) -> None:
    def data(run: str, seed: int | None) -> bytes:
        mw.anonymize(source, policy(name, "generalise"), tmp_path / run, seed=seed)
        return (tmp_path / run / "public/data.csv").read_bytes()

    assert data("a", 1) == data("b", 1)
    first = data("c", None)
    assert data("d", None) == first
    forget()  # the installation key, too
    assert data("e", None) != first


@pytest.mark.parametrize("name", ["optimal-lattice", "samarati", "incognito", "local-recoding", "mask"])
def test_a_share_of_rows_is_at_most_all_of_them(name: str, source: Path) -> None:
    made = policy(name, "generalise").to_dict()
    made["method"] |= {"suppression": 2}
    with pytest.raises(PolicyError, match="between 0 and 1"):
        mw.anonymize(source, made)
