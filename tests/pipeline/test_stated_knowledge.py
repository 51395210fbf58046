"""What somebody knows, from the command line; and credibility of releases that the pipeline makes."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import maskwright as mw
from tests.patients import POLICY, Command


def release(table: Path, folder: Path, require: str, method: str) -> mw.Release:
    text = POLICY.split("require:")[0] + f"require:\n{require}\nmethod: {method}\n"
    policy = folder / "other.yaml"
    policy.write_text(text, encoding="utf-8")
    return mw.anonymize(table, policy, seed=1)


@pytest.fixture
def folder(table: Path, policy: Path, tmp_path: Path) -> Path:
    mw.anonymize(table, policy, tmp_path / "release", seed=1)
    return tmp_path / "release"


def test_statements_on_the_command_line(maskwright: Command, folder: Path, tmp_path: Path) -> None:
    facts = tmp_path / "facts.txt"
    facts.write_text("Ed is person(age=34)  # a neighbour\nnot Ed.disease = cancer\n", encoding="utf-8")
    for options in (
        ["--knowing", "Ed is person(age=34)", "--knowing", "not Ed.disease = cancer"],
        ["--knowing", f"@{facts}"],
    ):
        done = maskwright("attack", folder, "--attack", "homogeneity", *options, "--json")
        assert done.code == 0
        found = next(b for b in done.json["beliefs"] if b["attack"] == "background-knowledge")
        assert found["kind"] == "exact"
        assert found["measures"]["knowing"] == ["not Ed.disease = cancer"]
        assert found["measures"]["people"]["Ed"]["disease cancer"]["after"] in (0, "0")
    bounded = maskwright(
        "attack", folder, "--attack", "homogeneity", "--knowing", "person(age=34).disease = cancer",
        "--max-belief", "0.9",
    )  # fmt: skip
    assert bounded.code == 1
    assert "ABOVE THE BOUND" in bounded.out


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("person(age=34).disease = canser", "did you mean 'cancer'"),
        ("person(age=34).disease", "line 1, column 23"),
        ("person(age=99).disease = flu", "nobody in the table has age=99"),
        ("@nowhere.txt", "cannot be read"),
    ],
)
def test_errors_are_one_line(maskwright: Command, folder: Path, text: str, word: str) -> None:
    done = maskwright("attack", folder, "--knowing", text)
    assert done.code == 2
    assert word in done.error


def test_the_python_surface(table: Path, policy: Path) -> None:
    made = mw.anonymize(table, policy, seed=1)
    known = mw.attacks.BackgroundKnowledge(knowing=["not person(age=34).disease = cancer"])
    found = mw.attack(made, known)
    assert not isinstance(found, list)
    assert found.worst.after > found.worst.before


def test_local_recoding_is_attacked_when_it_is_made(table: Path, tmp_path: Path) -> None:
    require = "  - {model: alpha-k-anonymity, alpha: 1/2, k: 1, values: [cancer], attribute: disease}"
    made = release(table, tmp_path, require, "alpha-k-local")
    found = next(b for b in made.beliefs if b.attack == "minimality")
    assert found.kind == "sampled"  # forty people: the method is run again on drawn worlds
    assert found.measures["looked at"]["worlds kept"] > 50
    assert found.measures["credibility (paper)"]
    assert found.worst.after >= Fraction(1, 2)


def test_mask_is_attacked_when_it_is_made(table: Path, tmp_path: Path) -> None:
    require = (
        "  - {model: k-anonymity, k: 4}\n"
        "  - {model: simple-l-diversity, l: 3, values: [cancer], attribute: disease}"
    )
    made = release(table, tmp_path, require, "mask")
    found = next(b for b in made.beliefs if b.attack == "minimality")
    assert found.measures["knowing"] == "MASK and its parameters"
    assert found.measures["prior"] == Fraction(1, 4)
    assert found.worst.after > Fraction(1, 5)  # no class shows more: it may be a disguised one
