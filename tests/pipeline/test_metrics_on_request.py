"""Costly metrics are measured where somebody asks for them, and nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import maskwright as mw
from maskwright.errors import UsageError
from maskwright.metrics import METRICS
from tests.patients import POLICY, Command

COSTLY = [name for name, metric in METRICS.items() if metric.on_request]
CHEAP = [name for name, metric in METRICS.items() if not metric.on_request]


def test_cheap_ones_always_costly_ones_on_request(table: Path, policy: Path) -> None:
    assert COSTLY == ["correlation-change", "two-way-distance", "query-error", "predictive-utility"]
    plain = mw.anonymize(table, policy)
    assert set(plain.metrics) <= set(CHEAP)
    asked = mw.anonymize(table, policy, metrics=COSTLY)
    assert set(asked.metrics) == set(plain.metrics) | {
        "correlation-change",
        "two-way-distance",
        "query-error",
    }
    # the ten rows that are held out are too few: no model is ever right about them
    assert any("predictive-utility was not measured: it is not defined" in note for note in asked.notes)
    assert 0 <= asked.metrics["correlation-change"] <= 1
    assert asked.metrics["query-error"] >= 0


def test_exact_quasi_identifiers_lose_nothing_but_associations(table: Path, tmp_path: Path) -> None:
    path = tmp_path / "bucketized.yaml"
    path.write_text(
        POLICY.split("require:")[0]
        + "require:\n  - {model: simple-l-diversity, l: 2}\nmethod: {name: anatomy, l: 2}\nrecoding: bucketize\n",
        encoding="utf-8",
    )
    release = mw.anonymize(table, path, metrics=["query-error", "correlation-change"])
    assert release.metrics["information-loss"] == 0
    assert release.metrics["non-uniform-entropy"] == 0
    assert release.metrics["distribution-distance"] == 0
    assert release.metrics["correlation-change"] > 0
    assert release.metrics["query-error"] > 0


def test_a_missing_library_is_a_note(table: Path, policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    release = mw.anonymize(table, policy, metrics=["predictive-utility"])
    assert "predictive-utility" not in release.metrics
    assert any("maskwright[predict]" in note for note in release.notes)


def test_people_with_several_rows_have_no_query_error(table: Path, tmp_path: Path) -> None:
    text = POLICY.replace("version: 1\n", "version: 1\nunit: name\n")
    rows = table.read_text(encoding="utf-8")
    second = "P000,21,13000,m,asthma,A\n"
    table.write_text(rows + second, encoding="utf-8")
    path = tmp_path / "unit.yaml"
    path.write_text(text, encoding="utf-8")
    release = mw.anonymize(table, path, metrics=["query-error", "correlation-change"])
    assert "query-error" not in release.metrics
    assert any("query-error was not measured" in note for note in release.notes)


def test_unknown_names_are_refused(table: Path, policy: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'query-error'"):
        mw.anonymize(table, policy, metrics=["query-errors"])


def test_the_command_and_the_report(maskwright: Command, table: Path, policy: Path, tmp_path: Path) -> None:
    done = maskwright("anonymize", table, "-p", policy, "-o", "r", "--metric", "query-error", "--json")
    assert done.code == 0, done.err
    assert "query-error" in done.json["metrics"]
    report = (tmp_path / "r" / "private" / "report.html").read_text(encoding="utf-8")
    for words in ("query-error", "non-uniform-entropy", "bits lost", "total variation", "earth mover"):
        assert words in report
    assert maskwright("anonymize", table, "-p", policy, "-o", "s", "--metric", "beauty").code == 2
    assert not (tmp_path / "s").exists()
