"""Whatever goes wrong, and whenever: there is the old release, none, or a complete verified new one.

Also: an exit code that fits what is there, one clear line, nothing left behind after the next start, and no file that
others can read, although the umask protects nothing. `make test` tries some moments, `make test-long` thousands.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import unavailable
from tests.faults.conftest import FINE, Harness, only

SIGNALS = {"killed": 8, "Ctrl-C": 12, "Ctrl-C twice": 8, "SIGTERM": 5, "SIGHUP": 4}
STEPS = {"killed at a step": 16, "Ctrl-C at a step": 8, "Ctrl-C twice at a step": 6}
DISK = {
    "disk full from a step on": 12,
    "quota reached at a step": 3,
    "read-only from a step on": 6,
    "disk error at a step": 10,
}
INPUT = {
    "input appended to": 4,
    "input truncated": 4,
    "input replaced": 6,
    "input rewritten, same size and time": 8,
}
LONG = int(
    os.environ.get("MASKWRIGHT_MOMENTS", "400")
)  # moments of each fault; all steps where there are fewer


@pytest.mark.slow
def test_a_csv_file(harness: Harness) -> None:
    total = only(harness("csv", {**SIGNALS, **STEPS, **DISK, "clock set back": 5, **INPUT}))
    assert all(total[outcome] >= 10 for outcome in FINE), total


@pytest.mark.slow
def test_a_parquet_file(harness: Harness) -> None:
    faults = {"killed at a step": 8, "Ctrl-C": 6, "disk full from a step on": 6, **INPUT}
    total = only(harness("parquet", faults, seed=2))
    assert all(total[outcome] >= 3 for outcome in FINE), total


@pytest.mark.slow
def test_where_folders_cannot_be_exchanged(harness: Harness) -> None:
    faults = {
        "killed at a step": 16,
        "disk error at a step": 8,
        "disk full from a step on": 6,
        "Ctrl-C at a step": 4,
    }
    total = only(harness("csv", faults, seed=3, aside=True))
    assert all(total[outcome] >= 3 for outcome in FINE), total


@pytest.mark.slow
def test_a_table_in_python(harness: Harness) -> None:
    faults = {"killed": 6, "killed at a step": 12, "Ctrl-C": 8, "disk full from a step on": 5}
    total = only(harness("memory", faults, seed=4))
    assert total["nothing"] >= 10


@pytest.mark.slow
def test_a_table_that_is_saved(harness: Harness) -> None:
    faults = {"killed at a step": 8, "Ctrl-C": 6, "disk full from a step on": 6, "disk error at a step": 4}
    total = only(harness("save", faults, seed=5))
    assert all(total[outcome] >= 2 for outcome in FINE), total


@pytest.mark.slow
def test_little_memory(harness: Harness) -> None:
    """Where a library cannot go on without memory it ends the process, like the system's out-of-memory killer."""
    total = only(harness("csv", {"little memory": 16}, seed=6))
    assert total["old"] + total["nothing"] >= 5


@pytest.mark.slow
def test_out_of_memory(harness: Harness) -> None:
    """Killed where it uses most, not where it writes: a run that has read much and put nothing in its place yet."""
    total = only(harness("csv", {"out of memory": 14}, seed=16))
    assert total["old"] >= 5 and total["nothing"] >= 2, total


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[None]:
    """A file system of 4 MB of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        unavailable("a small file system cannot be mounted (needs root)")
    yield
    subprocess.run(["umount", place], check=True)


@pytest.mark.slow
@pytest.mark.usefixtures("small_disk")
def test_a_disk_that_is_really_full(harness: Harness) -> None:
    total = only(harness("csv", {"small disk": 14}, seed=7))
    assert all(total[outcome] >= 1 for outcome in FINE), total


WRITING = {"init": 30, "audit": 30, "compare": 16, "mapping": 20, "register": 30}


@pytest.mark.slow
@pytest.mark.parametrize("output", WRITING)
def test_other_commands_that_write(harness: Harness, output: str) -> None:
    """A file is the old one or the new one, never half of one."""
    number = WRITING[output]
    faults = {
        "killed at a step": number,
        "disk full from a step on": number // 3,
        "disk error at a step": number // 3,
    }
    if output in ("init", "audit", "compare"):  # commands: what they say of a Ctrl-C must be true, too
        faults["Ctrl-C at a step"] = number // 3
    total = only(harness(output, faults, seed=8))
    assert total["old"] >= 3, total
    assert total["new"] >= 2, total


# --- make test-long -----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("output", ["csv", "parquet", "memory", "save"])
def test_thousands_of_moments(harness: Harness, output: str) -> None:
    faults = dict.fromkeys([*SIGNALS, *STEPS, *DISK, "clock set back"], LONG)
    if output in ("csv", "parquet"):
        faults |= dict.fromkeys(INPUT, LONG)
    only(harness(output, faults, seed=11))


@pytest.mark.long
def test_thousands_of_moments_without_exchange(harness: Harness) -> None:
    only(harness("csv", dict.fromkeys([*STEPS, *DISK], LONG), seed=12, aside=True))


@pytest.mark.long
@pytest.mark.parametrize("output", ["csv", "memory"])
def test_hundreds_of_limits_of_memory(harness: Harness, output: str) -> None:
    faults = {"little memory": LONG, "out of memory": LONG}
    only(harness(output, faults, seed=13))


@pytest.mark.long
@pytest.mark.usefixtures("small_disk")
@pytest.mark.parametrize("output", ["csv", "parquet", "save"])
def test_hundreds_of_small_disks(harness: Harness, output: str) -> None:
    only(harness(output, {"small disk": LONG}, seed=14))


@pytest.mark.long
@pytest.mark.parametrize("output", WRITING)
def test_every_step_of_other_commands(harness: Harness, output: str) -> None:
    only(harness(output, dict.fromkeys([*STEPS, *DISK, "clock set back"], LONG), seed=15))
