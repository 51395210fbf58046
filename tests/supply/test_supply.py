"""What Maskwright is made of: locked with hashes, under known licences, with lower bounds that can be tested."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply import lock, minimum, parts

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def locked() -> dict[str, list[str]]:
    """Every package of the lock, with its versions (several where platforms differ)."""
    found: dict[str, list[str]] = {}
    for name, number in re.findall(
        r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==([^ ;\\]+)", lock.LOCK.read_text(), re.MULTILINE
    ):
        found.setdefault(canonicalize_name(name), []).append(number)
    return found


def asked() -> list[Requirement]:
    texts = [
        *PROJECT["dependencies"],
        *(r for extra in PROJECT["optional-dependencies"].values() for r in extra),
    ]
    return [r for r in map(Requirement, texts) if r.name != "maskwright"]


def test_the_lock_covers_everything_that_is_asked_for() -> None:
    there = locked()
    assert [r.name for r in asked() if canonicalize_name(r.name) not in there] == [], "run `make lock`"
    assert [
        str(r) for r in asked() if not all(map(r.specifier.contains, there[canonicalize_name(r.name)]))
    ] == []


def test_the_lock_is_complete_and_names_no_server() -> None:
    text = lock.LOCK.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--index" not in text and "--find-links" not in text
    entries = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 50
    assert [e.split("==")[0] for e in entries if "--hash=sha256:" not in e] == []


def test_licences_are_known_and_listed() -> None:
    page = parts.PAGE.read_text(encoding="utf-8")
    table = page.split("| --- | --- | --- |")[1]
    rows = dict(re.findall(r"^\| ([a-z0-9-]+) \| ([^|]+) \|", table, re.MULTILINE))
    here = parts.parts()
    assert len(here) > 25
    assert [p.name for p in here if p.name not in rows] == [], "run `make docs`"
    assert {n: found for n, text in rows.items() if (found := parts.licences_in(text) - parts.ALLOWED)} == {}
    assert {p.name: p.licence for p in here if parts.licences_in(p.licence) - parts.ALLOWED} == {}


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        ("MIT", set()), ("BSD-3-Clause AND 0BSD AND MIT", set()), ("(MIT OR Apache-2.0) AND Zlib", set()),
        ("Apache-2.0 WITH LLVM-exception", set()), ("GPL-3.0-only", {"GPL-3.0-only"}), ("unknown", {"unknown"}),
        ("MIT AND AGPL-3.0-only", {"AGPL-3.0-only"}),
    ],
)  # fmt: skip
def test_a_licence_can_be_refused(expression: str, refused: set[str]) -> None:
    assert parts.licences_in(expression) - parts.ALLOWED == refused


def test_the_bill_of_materials() -> None:
    made = parts.bill()
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    references = {c["bom-ref"] for c in made["components"]}
    assert {c["name"] for c in made["components"]} == {p.name for p in parts.parts()}
    assert set(made["dependencies"][0]["dependsOn"]) <= references
    assert len(made["dependencies"][0]["dependsOn"]) >= len(PROJECT["dependencies"])


def test_every_dependency_has_a_lower_bound() -> None:
    pins = minimum.least()
    assert len(pins) >= 15
    assert "duckdb==2.0" in pins
    assert "psycopg[binary]==3.2.1" in pins
    with pytest.raises(ValueError, match="no lower bound"):
        minimum.pinned(Requirement("numpy"))
    assert [t for t in minimum.TESTS if not (ROOT / t).exists()] == []
