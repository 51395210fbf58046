"""The command where nothing is installed but what it needs: neither pyarrow nor a dataframe library."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from maskwright.cli import main
from tests.patients import patients, write_csv


def test_a_policy_is_guessed_and_settings_that_would_publish_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both draw rows of the table: to find values that are alike, and to try settings on."""
    for library in ("pyarrow", "pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    source, policy = write_csv(tmp_path / "p.csv", patients(400)), tmp_path / "policy.yaml"
    assert main(["init", str(source), "-o", str(policy)]) == 0, capsys.readouterr().err
    assert "values whose people are alike" in capsys.readouterr().out
    assert main(["advise", str(source), "-o", str(tmp_path / "advised.yaml")]) == 0, capsys.readouterr().err
