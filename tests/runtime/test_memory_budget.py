"""One memory limit for the whole process: how it is written, and who gets what of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from maskwright.errors import UsageError
from maskwright.runtime import memory_budget
from maskwright.runtime.memory_budget import (
    ENGINE,
    MB,
    OVER,
    PYTHON,
    MemoryBudget,
    held_bytes,
    parsed_size,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "limit"),
    [("4GB", 4 * 10**9), ("4GiB", 4 * 2**30), ("500 mb", 500 * MB), ("1.5gb", 1_500 * MB), ("2TiB", 2**41)],
)
def test_amounts(text: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_budget, "machine_memory", lambda: 2**42)
    assert MemoryBudget.of(text).limit == limit


def test_more_than_there_is_would_be_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_budget, "machine_memory", lambda: 8 * 10**9)
    assert (
        MemoryBudget.of("9TB").limit
        == MemoryBudget.of("100%").limit
        == MemoryBudget.of("9" * 400 + "GB").limit
    )


def test_a_share_of_the_machine_and_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_budget, "machine_memory", lambda: 8 * 10**9)
    assert MemoryBudget.of("50%").limit == 4 * 10**9
    assert MemoryBudget.of(None).limit == 6 * 10**9


@pytest.mark.parametrize("text", ["lots", "-1GB", "4", "", "4 GB or so", "0x4GB"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(UsageError, match="is not an amount; write it as 4GB, 500MB or 50%"):
        MemoryBudget.of(text)


@pytest.mark.parametrize(
    ("text", "n"), [("500MB", 500 * 10**6), ("2GB", 2 * 10**9), ("1.5kb", 1500), ("1.5KiB", 1536)]
)
def test_sizes_mean_the_same_everywhere(text: str, n: int) -> None:
    assert parsed_size(text, "this") == n
    with pytest.raises(UsageError, match="this '50%' is not an amount"):
        parsed_size("50%", "this")


def test_too_little() -> None:
    with pytest.raises(UsageError, match=r"'100MB' is too little: .* whole process.* allow 300 MB or more"):
        MemoryBudget.of("100MB")


def test_the_engine_gets_what_arrays_leave_over() -> None:
    whole = MemoryBudget.of("2GB")
    assert OVER * whole.engine() + PYTHON == pytest.approx(2000 * MB, abs=10)
    assert whole.engine() - whole.engine(500 * MB) == pytest.approx(500 * MB / OVER, abs=2)
    assert whole.engine(5000 * MB) == ENGINE
    assert PYTHON + whole.arrays + OVER * whole.engine(whole.arrays) == pytest.approx(2000 * MB, abs=10)


def test_a_control_group_that_allows_less_counts(tmp_path: Path) -> None:
    for name, text in (("a", "1000000\n"), ("b", "max\n")):
        (tmp_path / name).write_text(text)
    assert memory_budget._limits([tmp_path / "a", tmp_path / "b", tmp_path / "none"]) == [1_000_000]
    assert memory_budget.machine_memory() > 0


def test_sizes_for_people() -> None:
    sizes = [size_text(x) for x in (0, 10, 5_000, 2_500_000, 593_440_000, 4 * 10**9, 1.25e12)]
    assert sizes == ["nothing", "1 kB", "5 kB", "2.5 MB", "593 MB", "4 GB", "1.25 TB"]


def test_every_array_that_is_held_counts_once() -> None:
    @dataclass
    class Thing:
        a: object
        b: object = None

    whole = np.zeros(100, dtype=np.int64)
    rows = np.zeros((2, 10), dtype=np.int32)
    things = Thing({"x": (whole, [whole[3:5]])}, Thing(rows[0], rows[1]))
    assert held_bytes(things, whole, "text", None, 7) == 800 + 80
    assert held_bytes() == 0
