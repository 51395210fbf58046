"""A small table of patients, a policy for it, and what a command leaves behind."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from maskwright.domain.beliefs import Beliefs
from maskwright.domain.release import Release

HEADER = ["name", "age", "zip", "sex", "disease", "ward"]
DISEASES = ["flu", "asthma", "cancer", "ulcer"]


def patients(n: int = 40) -> list[list[str]]:
    """n people: ages 20..59 in steps, two postcodes, and diseases that go round."""
    return [
        [f"P{i:03d}", str(20 + i), f"130{i % 2}{i % 5}", "mf"[i % 2], DISEASES[i // 2 % 4], "ABC"[i % 3]]
        for i in range(n)
    ]


POLICY = """\
version: 1
columns:
  name: identifier
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 10, 20]}}
  zip: {role: quasi-identifier, hierarchy: {mask: right}}
  sex: {role: quasi-identifier, hierarchy: suppress}
  disease: sensitive
  ward: {role: insensitive, near_unique: allow}
require:
  - {model: k-anonymity, k: 4}
  - {model: simple-l-diversity, l: 2, use: gate}
method: {name: optimal-lattice, suppression: 5%}
"""


def write_csv(path: Path, rows: Sequence[Sequence[str]], header: Sequence[str] = HEADER) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


class Outcome:
    """Exit code, output and error lines of one command."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def error(self) -> str:
        """The one line that says what is wrong."""
        lines = [line for line in self.err.splitlines() if line.startswith("maskwright: ")]
        assert len(lines) == 1, self.err
        return lines[0]

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Outcome]


def forget() -> None:
    """Nothing was tried on any table before: for a test that runs several settings, each as if it were the first."""
    shutil.rmtree(os.environ["MASKWRIGHT_STATE"], ignore_errors=True)


def leftovers(folder: Path) -> list[str]:
    """Anything that a run should not have left behind."""
    return sorted(p.name for p in folder.iterdir() if "maskwright-" in p.name)


def linkage(release: Release) -> Beliefs:
    """What the linkage attack found."""
    return next(b for b in release.beliefs if b.attack == "linkage")
