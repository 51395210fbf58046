"""Killed with SIGKILL at any moment, there is the old release, none, or a complete verified new one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from patients import POLICY, patients, write_csv

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")


def kill(folder: Path, mode: str, exchange: str, tries: int) -> dict[str, int]:
    source = write_csv(folder / "patients.csv", patients())
    policy = folder / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    place = folder / "place"
    place.mkdir()
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killer.py")), place, source, policy, mode, exchange,
         str(tries)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.parametrize("exchange", ["exchange", "aside"])
def test_at_random_moments_of_a_replacement(tmp_path: Path, exchange: str) -> None:
    found = kill(tmp_path, "random", exchange, 40)
    assert set(found) <= {"old", "new"}, found
    assert found.get("old", 0) >= 8, found


@pytest.mark.slow
def test_at_random_moments_of_a_first_publication(tmp_path: Path) -> None:
    found = kill(tmp_path, "random-fresh", "exchange", 40)
    assert set(found) <= {"absent", "new"}, found
    assert found.get("absent", 0) >= 8, found


@pytest.mark.slow
@pytest.mark.parametrize("exchange", ["exchange", "aside"])
def test_at_every_step_of_a_replacement(tmp_path: Path, exchange: str) -> None:
    found = kill(tmp_path, "step", exchange, 400)
    assert found.pop("finished") > 40, "every step up to the last was tried"
    assert set(found) == {"old", "new"}, found


@pytest.mark.slow
def test_at_every_step_of_a_first_publication(tmp_path: Path) -> None:
    found = kill(tmp_path, "step-fresh", "exchange", 400)
    assert found.pop("finished") > 40
    assert set(found) == {"absent", "new"}, found
