"""Releases that were written by version 0.1.0: they still verify, and attacks on them find what was found then."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from maskwright.attacks import ATTACKS
from maskwright.pipeline.attacking import ADVERSARIES, attack_target, target_of
from maskwright.pipeline.gates import verify_release

STORED = Path(__file__).parent.parent / "data" / "earlier_releases.zip"
NAMES = [
    "greedy-grouping-bucketize",
    "local-recoding-generalise",
    "mondrian-generalise",
    "optimal-lattice-bucketize",
]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stored releases."""
    folder = tmp_path_factory.mktemp("earlier")
    with zipfile.ZipFile(STORED) as stored:
        stored.extractall(folder)
    return folder


def test_all_are_looked_at(earlier: Path) -> None:
    assert sorted(p.name for p in earlier.iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_verifies(earlier: Path, name: str) -> None:
    found = verify_release(earlier / name)
    assert (found.ok, list(found.problems)) == (True, [])
    assert [v.model for v in found.verdicts] == ["k-anonymity", "simple-l-diversity"]


@pytest.mark.parametrize("name", NAMES)
def test_attacks_find_what_was_found_then(earlier: Path, name: str) -> None:
    """Exact beliefs are the same numbers; the others may have been narrowed down since."""
    stored = json.loads((earlier / name / "private" / "manifest.json").read_text())["beliefs"]
    then = {b["attack"]: str(b["worst"]["after"]) for b in stored if b["kind"] == "exact"}
    found = attack_target(target_of(earlier / name), list(ATTACKS), ADVERSARIES["knows-method"])
    now = {b.attack: str(b.as_dict()["worst"]["after"]) for b in found if b.attack in then}
    assert len(then) >= 3
    assert now == then
