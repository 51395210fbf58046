"""Bucketized and permuted releases through the pipeline: what is published, and that it verifies."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import maskwright as mw
from maskwright.errors import NotVerified, PolicyError
from maskwright.verification.verify import verify_folder
from tests.amounts import crossed
from tests.patients import POLICY, forget, linkage, patients, write_csv


def policy(recoding: Any, **changes: Any) -> mw.Policy:
    import yaml

    values = yaml.safe_load(POLICY)
    values["recoding"] = recoding
    return mw.Policy.load(values | changes)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "patients.csv", patients())


def groups_of(release: mw.Release) -> list[Counter[str | None]]:
    counts = release.grouping.classes.sensitive["disease"]
    return sorted((Counter(counts.of_class(c)) for c in range(counts.n_classes)), key=str)


@pytest.mark.parametrize("method", ["optimal-lattice", "local-recoding"])
def test_bucketize(source: Path, tmp_path: Path, method: str) -> None:
    made = policy("bucketize", method={"name": method})
    release = mw.anonymize(source, made, tmp_path / "r")
    people = pd.read_csv(tmp_path / "r/public/quasi-identifiers.csv", dtype=str)
    values = pd.read_csv(tmp_path / "r/public/sensitive.csv", dtype=str)
    assert list(people.columns) == ["group", "age", "zip", "sex", "ward"]
    assert list(values.columns) == ["group", "disease"]
    assert sorted(people["age"]) == [str(20 + i) for i in range(40)], "quasi-identifiers are exact"
    assert people["group"].value_counts().to_dict() == values["group"].value_counts().to_dict()
    found = [Counter(part["disease"]) for _, part in values.groupby("group")]
    assert sorted(found, key=str) == groups_of(release)
    assert verify_folder(tmp_path / "r").ok
    assert linkage(release).measures["after"]["unique"] == 40, (
        "exact values single everybody out, and it says so"
    )
    card = (tmp_path / "r/public/data-card.html").read_text()
    assert "two tables" in card
    assert set(release.tables) == {"quasi-identifiers", "sensitive"}


def test_bucketize_with_generalised_quasi_identifiers(source: Path, tmp_path: Path) -> None:
    release = mw.anonymize(
        source, policy({"name": "bucketize", "quasi_identifiers": "generalised"}), tmp_path / "r"
    )
    people = pd.read_csv(tmp_path / "r/public/quasi-identifiers.csv", dtype=str)
    assert people.groupby(["age", "zip", "sex"]).size().min() >= 4
    assert linkage(release).measures["after"]["unique"] == 0


def test_permute_shuffles_inside_groups(source: Path, tmp_path: Path) -> None:
    true = {(row[1], row[2]): row[4] for row in patients()}
    orders = set()
    for seed, name in enumerate("abc"):
        release = mw.anonymize(source, policy("permute"), tmp_path / name, seed=seed)
        data = pd.read_csv(tmp_path / name / "public/data.csv", dtype=str).sort_values(["age", "zip"])
        orders.add(tuple(data["disease"]))
        found = [Counter(part["disease"]) for _, part in data.groupby("group")]
        assert sorted(found, key=str) == groups_of(release)
        same = sum(true[a, z] == d for a, z, d in zip(data["age"], data["zip"], data["disease"], strict=True))
        assert same < 40
        assert verify_folder(tmp_path / name).ok
    assert len(orders) > 1


def test_a_frame_in_gives_frames_out() -> None:
    frame = pd.DataFrame(patients(), columns=["name", "age", "zip", "sex", "disease", "ward"])
    tables = mw.anonymize(frame, policy("bucketize")).tables
    assert all(isinstance(t, pd.DataFrame) for t in tables.values())


def test_tampering_is_found(source: Path, tmp_path: Path) -> None:
    mw.anonymize(source, policy("bucketize"), tmp_path / "r")
    path = tmp_path / "r/public/sensitive.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    assert any("changed" in p for p in _problems(tmp_path / "r"))
    with pytest.raises(NotVerified, match="same groups"):
        verify_folder(tmp_path / "r", recount_only=True)


def _problems(path: Path) -> list[str]:
    try:
        return list(verify_folder(path).problems)
    except NotVerified as problem:
        return [f"changed: {problem}"]


def test_what_makes_no_sense_is_refused(source: Path) -> None:
    with pytest.raises(PolicyError, match="belong to bucketize"):
        policy({"name": "generalise", "together": [["disease"]]})
    with pytest.raises(PolicyError, match="not a sensitive column"):
        mw.anonymize(source, policy({"name": "permute", "together": [["age"]]}))
    with pytest.raises(PolicyError, match="recoding"):
        policy("shuffle")


def test_the_manifest_says_how_classes_are_counted(source: Path, tmp_path: Path) -> None:
    mw.anonymize(source, policy("bucketize"), tmp_path / "r")
    manifest = json.loads((tmp_path / "r/public/manifest.json").read_text())
    assert [t["classes_by"] for t in manifest["tables"]] == [["group"], ["group"]]
    assert manifest["recoding"] == "bucketize"


def test_rows_in_the_wrong_group_are_found(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.engines.duckdb.engine import DuckDBEngine

    honest = DuckDBEngine.bucketize

    def swapped(self: DuckDBEngine, table: Any, plan: Any) -> Any:
        groups = plan.groups.copy()
        first, second = (int(g) for g in sorted(set(groups[groups > 0].tolist()))[:2])
        a, b = (groups == first).argmax(), (groups == second).argmax()
        groups[a], groups[b] = second, first
        return honest(self, table, dataclasses.replace(plan, groups=groups))

    monkeypatch.setattr(DuckDBEngine, "bucketize", swapped)
    with pytest.raises(NotVerified, match="quasi-identifiers"):
        mw.anonymize(source, policy("bucketize"))


@pytest.mark.parametrize(
    ("method", "recoding"),
    crossed(
        ["mondrian", "greedy-grouping", "symmetric-grouping", "anatomy"],
        ["generalise", "bucketize", "permute"],
    ),
)
def test_runs_repeat_and_other_seeds_and_installations_differ(
    source: Path, method: str, recoding: str
) -> None:
    """Forty rows: two uniform orders are the same once in 40! runs."""
    made = policy(recoding, method={"name": method} | ({"l": 4} if method == "anatomy" else {}))

    def tables(**options: Any) -> dict[str, str]:
        found = mw.anonymize(pd.read_csv(source, dtype=str), made, **options).tables
        return {name: table.to_csv(index=False) for name, table in found.items()}

    assert tables(seed=1) == tables(seed=1)
    assert tables(seed=1) != tables(seed=2)
    first = tables()
    assert tables() == first
    forget()  # the installation key, too
    assert tables() != first
