"""docs/security.md: what it counts is still as many."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.differential.test_differential import BRIEF, LONG, SUBJECTS
from tests.faults.outputs import EXAMPLES, OUTPUTS
from tests.faults.table import FAULTS
from tests.hostile import NAMES
from tests.supply.test_supply import locked
from tests.verification.releases import KINDS

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs" / "security.md").read_text(encoding="utf-8").split())
WORDS = {5: "five", 8: "eight", 10: "ten"}
KERNELS = set(re.findall(r'"maskwright\.kernels\.(_\w+)"', (ROOT / "setup.py").read_text(encoding="utf-8")))


def words(number: int) -> str:
    return WORDS.get(number, str(number))


@pytest.mark.parametrize(
    "counted",
    [
        f"{len(SUBJECTS)} subjects",
        f"about {round(BRIEF * len(SUBJECTS), -2):,} tables",
        f"{sum(int(LONG * subject.weight) for subject in SUBJECTS.values()):,}",
        f"releases of {words(len(KINDS))} kinds",
        f"{len(FAULTS)} faults, {words(len(OUTPUTS) - len(EXAMPLES))} outputs",
        f"{len(NAMES)} hostile",
        f"{len(locked())} packages",
        f"{words(len(KERNELS))} compiled kernels",
    ],
)
def test_what_is_counted(counted: str) -> None:
    assert re.search(rf"\b{counted}\b", PAGE)


def test_the_tests_that_are_named_are_there() -> None:
    """The table of findings names one test or file for each."""
    table = PAGE.partition("### What a red team found")[2].partition("## Not promised")[0]
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", table)
    assert len(named) > 20
    for file, test in named:
        assert not test or f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), (file, test)
