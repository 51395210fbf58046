"""The table of patients as files, and the command line as a user has it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from patients import POLICY, Command, Outcome, patients, write_csv


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "patients.csv", patients())


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


@pytest.fixture
def maskwright(tmp_path: Path) -> Command:
    """Run the real command in a process of its own, in the test's folder."""

    def command(*arguments: object) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "maskwright.cli", *map(str, arguments)],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return Outcome(done)

    return command
