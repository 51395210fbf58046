"""Gauges of the report: exact where there is a table of the population, estimated where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.domain.beliefs import Beliefs
from maskwright.report.risk_and_usefulness import gauge_parts
from tests.patients import write_csv

ROWS = [["30", "m"], ["31", "m"], ["32", "m"], ["30", "f"], ["31", "f"], ["35", ""]]
TOWN = [["30", "m"], ["30", "m"], ["31", "m"], ["32", "m"], ["30", "f"], ["31", "f"], ["32", "f"], ["35", ""]]


def shown(tmp_path: Path, **more: Any) -> str:
    """The parts of the report for a release at the level of ten years."""
    table = write_csv(tmp_path / "t.csv", ROWS, ["age", "sex"])
    write_csv(tmp_path / "town.csv", TOWN, ["age", "sex"])
    columns = {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}, "levels": [1]},
        "sex": {"role": "quasi-identifier", "levels": [0]},
    }
    policy = {"columns": columns, "require": [{"model": "k-anonymity", "k": 1}]} | more
    found = mw.attack(mw.anonymize(table, mw.Policy.load(policy)), "linkage")
    assert isinstance(found, Beliefs)
    page = "".join(gauge_parts(found.measures))
    assert page == "".join(gauge_parts(json.loads(json.dumps(found.as_dict()))["measures"])), "of a manifest"
    return page


def row(page: str, name: str) -> list[str]:
    """The cells of the row of a table that begins with this name."""
    cells = page.split(f'<th scope="row">{name}</th>')[1].split("</tr>")[0]
    return [cell.split("</td>")[0].split(">", 1)[1] for cell in cells.split("<td")[1:]]


def test_without_a_population(tmp_path: Path) -> None:
    page = shown(tmp_path)
    assert row(page, "prosecutor, highest") == ["100 %", "100 %", "exact"]
    assert row(page, "marketer, average") == ["100 %", "50 %", "exact"], "three classes of six people"
    assert "journalist, highest" not in page
    assert "stimated" not in page


def test_with_a_table_of_the_population(tmp_path: Path) -> None:
    page = shown(tmp_path, population={"file": str(tmp_path / "town.csv")})
    assert row(page, "journalist, highest") == ["100 %", "100 %", "exact"]
    assert row(page, "marketer, average")[1:] == ["40.3 %", "exact"]
    assert "Estimated for the population" in page


def test_with_the_size_of_the_population(tmp_path: Path) -> None:
    page = shown(tmp_path, population={"size": 60})
    journalist = row(page, "journalist, highest")
    assert journalist[2] == "estimated"
    assert journalist[1] == row(page, "highest individual risk")[1] == "25.6 %", (
        "one person of ten: −ln(0.1)/9"
    )
    assert row(page, "unique in the sample") == ["100%", "16.7%", ""]
    assert "pitman" not in page, "estimators have names for people"
    for name in ("Zayatz", "SNB (shifted negative binomial)"):
        assert len(row(page, name)) == 3
    assert "no guarantee" in page


def test_households_and_wildcards(tmp_path: Path) -> None:
    page = shown(tmp_path, population={"size": 60}, missing={"wildcard": True})
    assert "A missing value is counted as matching every value" in page
    assert "household" not in page


@pytest.mark.parametrize("measures", [{}, {"before": 1, "after": 2}, {"before": {}, "after": {}}])
def test_other_attacks_have_none(measures: dict[str, Any]) -> None:
    assert gauge_parts(measures) == []
