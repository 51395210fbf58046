"""The harness itself: what it must find in a broken product, and faults that never came."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.conftest import Harness, only
from tests.faults.table import CLEANED, DIED, GAVE_UP

DEFECTS = {
    "in place": ("killed at a step", "half a page"),
    "open to others": ("killed at a step", "readable by others"),
    "silent": ("disk full from a step on", "exit 0, but"),
    "untidy": ("killed at a step", "started again: .* left behind"),
    "unguarded": ("SIGTERM", DIED),
}


def test_a_sound_product(harness: Harness) -> None:
    total = only(
        harness("sound", {"killed at a step": 8, "disk full from a step on": 8, "clock set back": 8})
    )
    assert total["old"] >= 5 and total["new"] >= 5 and total[CLEANED] >= 1, total


@pytest.mark.parametrize("output", DEFECTS)
def test_a_broken_product_is_found_out(harness: Harness, output: str) -> None:
    fault, finding = DEFECTS[output]
    found = harness(output, {fault: 8})
    with pytest.raises(AssertionError, match=finding):
        only(found)


def test_a_fault_that_never_comes_is_found_out(harness: Harness) -> None:
    found = harness("sound", {"connection cut": 8})
    assert found[0]["moments"] == 0
    with pytest.raises(AssertionError, match="connection cut"):
        only(found)


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("killed", {"new": 16}),
        ("connection cut", {"new": 16}),
        ("clock set back", {"old": 16}),
        ("clock set back", {"new": 15, "old": 1}),
        ("SIGHUP", {"old": 16, DIED: 2}),
        ("little memory", {"old": 16, GAVE_UP: 12}),
        ("killed at a step", {"old": 16}),
    ],
)
def test_a_fault_without_its_effect_is_found_out(fault: str, found: dict[str, int]) -> None:
    one: dict[str, Any] = {
        "output": "csv",
        "fault": fault,
        "asked": 16,
        "moments": 16,
        "steps": 99,
        "found": found,
    }
    with pytest.raises(AssertionError, match=fault):
        only([one])
