"""The applied mapping: against the rows themselves, and public only when it says nothing new."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest
import yaml

import maskwright as mw
from maskwright.domain.release import AppliedMapping
from maskwright.errors import UsageError
from maskwright.verification.verify import verify_folder
from tests.patients import HEADER, POLICY, patients


def policy(**changes: object) -> mw.Policy:
    return mw.Policy.load(yaml.safe_load(POLICY) | changes)


def totals(mapping: AppliedMapping, column: str, *fates: str) -> Counter[str | None]:
    found: Counter[str | None] = Counter()
    for entry in mapping:
        if entry.column == column and (not fates or entry.fate in fates):
            found[entry.value] += entry.rows
    return found


def shown(mapping: AppliedMapping, column: str) -> Counter[str | None]:
    found: Counter[str | None] = Counter()
    for entry in mapping:
        if entry.column == column and entry.fate != "dropped":
            found[entry.label] += entry.rows
    return found


METHODS = [
    {"name": "optimal-lattice", "suppression": "20%"},
    {"name": "optimal-lattice", "suppression": "20%", "suppressed_rows": "star"},
    {"name": "mondrian"},
    {"name": "local-recoding"},
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: "-".join(map(str, m.values())))
@pytest.mark.parametrize(
    "recoding", ["generalise", {"name": "permute", "quasi_identifiers": "exact"}], ids=str
)
def test_it_adds_up(table: Path, method: dict[str, str], recoding: object, tmp_path: Path) -> None:
    rows = [*patients(), ["P999", "90", "13099", "m", "flu", "A"]]  # somebody to suppress
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, *rows])
    models = [{"model": "k-anonymity", "k": 4}]
    release = mw.anonymize(
        table, policy(method=method, recoding=recoding, require=models), tmp_path / "r", seed=1
    )
    mapping = release.mapping
    with (tmp_path / "r/public/data.csv").open(newline="", encoding="utf-8") as file:
        published = list(csv.DictReader(file))
    for i, column in enumerate(HEADER[1:4], 1):
        assert totals(mapping, column) == Counter(row[i] for row in rows)
        assert shown(mapping, column) == Counter(row[column] for row in published)
        one_each = all(len(set(labels)) == 1 for labels in mapping[column].values())
        assert one_each or method["name"] != "optimal-lattice" or "suppressed_rows" in method
    lost = sum(totals(mapping, "age", "dropped", "starred").values())
    assert lost == release.grouping.suppressed_rows
    assert mapping.full_domain == (method["name"] == "optimal-lattice" or recoding != "generalise")
    place = tmp_path / "r" / ("private" if mapping.reveals else "public") / "mapping.csv"
    with place.open(newline="", encoding="utf-8") as file:
        stored = list(csv.DictReader(file))
    assert [(e["column"], e["value"], e["label"] or None) for e in stored] == [
        (e.column, e.value, e.label) for e in mapping
    ]
    assert (tmp_path / "r/private/mapping.csv").exists() == mapping.reveals
    assert (tmp_path / "r/public/mapping.csv").exists() != mapping.of_published.reveals
    assert verify_folder(tmp_path / "r").ok


def test_public_only_when_every_value_is_published(table: Path, tmp_path: Path) -> None:
    models = [{"model": "k-anonymity", "k": 4}]
    exact = {"name": "permute", "quasi_identifiers": "exact"}
    release = mw.anonymize(table, policy(method="mondrian", recoding=exact, require=models), tmp_path / "r")
    assert not release.mapping.reveals
    lines = (tmp_path / "r/public/mapping.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "table,column,value,label"
    assert "data,age,34,34" in lines
    coarse = mw.anonymize(table, policy(), tmp_path / "s")
    assert coarse.mapping.reveals
    assert not (tmp_path / "s/public/mapping.csv").exists()
    hidden = {e.value for e in coarse.mapping if e.column == "age"} - set(shown(coarse.mapping, "age"))
    public = b"".join(p.read_bytes() for p in (tmp_path / "s/public").iterdir() if p.name != "data-card.html")
    assert hidden
    assert not any(f'"{value}"'.encode() in public for value in hidden)


def test_nothing_private_is_kept_when_asked(table: Path, tmp_path: Path) -> None:
    mw.anonymize(table, policy(), tmp_path / "r", keep_private="none")
    assert not list((tmp_path / "r").rglob("mapping.csv"))


def test_an_unknown_column(table: Path) -> None:
    mapping = mw.anonymize(table, policy()).mapping
    with pytest.raises(KeyError):
        mapping["disease"]
    assert len(mapping) == len(list(mapping))


def test_a_release_of_several_parts(table: Path, tmp_path: Path) -> None:
    """Every part groups the same people anew: each is listed under its table, and new rows fit into none of them."""
    columns = yaml.safe_load(POLICY)["columns"] | {"ward": "sensitive"}
    codip = {"name": "codip", "base": {"name": "mondrian"}, "plan": [["disease"], ["ward"]]}
    models = [{"model": "k-anonymity", "k": 4}, {"model": "distinct-l-diversity", "l": 2}]
    release = mw.anonymize(
        table, policy(columns=columns, method=codip, require=models), tmp_path / "r", seed=1
    )
    tables = {entry.table for entry in release.mapping}
    assert len(tables) == 2
    for name in tables:
        with (tmp_path / f"r/public/{name}.csv").open(newline="", encoding="utf-8") as file:
            published = list(csv.DictReader(file))
        part = AppliedMapping(tuple(e for e in release.mapping if e.table == name), False)
        assert totals(part, "age") == Counter(row[1] for row in patients())
        assert shown(part, "age") == Counter(row["age"] for row in published)
    with pytest.raises(UsageError, match="full-domain"):
        mw.Recoder.from_release(release)
