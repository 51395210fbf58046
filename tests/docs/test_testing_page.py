"""docs/testing.md: the folders and numbers of tests that it names are those that there are."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

from tests.amounts import LONG
from tests.costs import COLLECTED, folder_of
from tests.fuzz.test_fuzz import INPUTS

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "testing.md").read_text(encoding="utf-8")
FOLDERS = {file.relative_to(TESTS).parts[0] for file in TESTS.rglob("test_*.py")}


def rows(heading: str) -> dict[str, list[str]]:
    """The first table below a heading: first cell \u2192 the others."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n|")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()]
    return {first.strip("`"): rest for first, *rest in cells[2:]}


def test_every_folder_has_its_line() -> None:
    assert set(rows("How long")) - {"all"} == FOLDERS


def test_the_sums_are_those_of_the_lines() -> None:
    listed = rows("How long")
    for column in range(3):
        cells = [cells[column] for folder, cells in listed.items() if folder != "all"]
        total = sum(number(cell) for cell in cells if cell != "\u2013")  # a dash: not measured
        assert number(listed["all"][column]) == total


def test_the_numbers_of_tests(request: pytest.FixtureRequest) -> None:
    """Within a twentieth, so that not every new test changes the page."""
    collected = request.config.stash[COLLECTED]
    here = Counter(folder_of(test) for test, long in collected if not long)
    if FOLDERS - here.keys():
        pytest.skip("only where all tests are collected")
    brief, all_of_them = map(number, rows("How many")["tests collected"])
    assert brief == pytest.approx(here.total(), rel=0.05)
    assert all_of_them == pytest.approx(len(collected), rel=0.05)
    assert number(rows("How long")["all"][0]) == pytest.approx(here.total(), rel=0.05)


def test_the_numbers_of_repetitions() -> None:
    listed = rows("How many")
    assert number(listed["inputs (`tests/fuzz/`)"][0]) == sum(brief for brief, _, _ in INPUTS.values())
    assert number(listed["inputs (`tests/fuzz/`)"][1]) == sum(n * pieces for _, n, pieces in INPUTS.values())
    [examples] = [cells for name, cells in listed.items() if "hypothesis" in name]
    assert settings.get_profile("maskwright").max_examples == number(examples[1 if LONG else 0])


def number(cell: str) -> float:
    assert re.fullmatch(r"[\d,]+(\.\d+)?", cell), cell
    return float(cell.replace(",", ""))
