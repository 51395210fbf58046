"""Whatever goes wrong, and whenever: there is the old release, none, or a complete verified new one.

Also: an exit code that fits what is there, one clear line, nothing left behind after the next start, and no file that
others can read, although the umask protects nothing. `make test` tries some moments of some faults with each output,
`make test-long` hundreds of all of them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.amounts import cases
from tests.faults.conftest import FINE, Harness, moments, only
from tests.support import unavailable

SIGNALS = {"killed": 2, "Ctrl-C": 3, "Ctrl-C twice": 2, "SIGTERM": 2, "SIGHUP": 2}
STEPS = {"killed at a step": 4, "Ctrl-C at a step": 3, "Ctrl-C twice at a step": 2}
DISK = {
    "disk full from a step on": 3,
    "quota reached at a step": 2,
    "read-only from a step on": 2,
    "disk error at a step": 3,
}
INPUT = {
    "input appended to": 2,
    "input truncated": 2,
    "input replaced": 2,
    "input rewritten, same size and time": 2,
}
CLOCK = {"clock set back": 2}
ANY = {**SIGNALS, **STEPS, **DISK, **CLOCK}


def test_a_csv_file(harness: Harness) -> None:
    total = only(harness("csv", moments({**ANY, **INPUT})))
    assert all(total[outcome] >= total.total() / 10 for outcome in FINE), total


def test_a_parquet_file(harness: Harness) -> None:
    faults = {"killed at a step": 4, "Ctrl-C": 3, "disk full from a step on": 3, **INPUT}
    total = only(harness("parquet", moments(faults, also=ANY), seed=2))
    assert all(total[outcome] >= 2 for outcome in FINE), total


def test_where_folders_cannot_be_exchanged(harness: Harness) -> None:
    faults = {
        "killed at a step": 8,
        "disk error at a step": 4,
        "disk full from a step on": 4,
        "Ctrl-C at a step": 3,
    }
    total = only(harness("csv", moments(faults, also={**STEPS, **DISK}), seed=3, aside=True))
    assert all(total[outcome] >= 2 for outcome in FINE), total


def test_a_table_in_python(harness: Harness) -> None:
    faults = {"killed": 3, "killed at a step": 5, "Ctrl-C": 4, "disk full from a step on": 3}
    total = only(harness("memory", moments(faults, also=ANY), seed=4))
    assert total["nothing"] >= 5, total


def test_a_table_that_is_saved(harness: Harness) -> None:
    faults = {"killed at a step": 6, "Ctrl-C": 4, "disk full from a step on": 4, "disk error at a step": 3}
    total = only(harness("save", moments(faults, also=ANY), seed=5))
    assert all(total[outcome] >= 2 for outcome in FINE), total


@pytest.mark.parametrize("output", cases(["csv", "memory"], brief=["csv"]))
def test_little_memory(harness: Harness, output: str) -> None:
    """Where a library cannot go on without memory it ends the process, like the system's out-of-memory killer."""
    total = only(harness(output, moments({"little memory": 10}), seed=6))
    assert total["old"] + total["nothing"] >= 3


@pytest.mark.parametrize("output", cases(["csv", "memory"], brief=["csv"]))
def test_out_of_memory(harness: Harness, output: str) -> None:
    """Killed where it uses most, not where it writes: a run that has read much and put nothing in its place yet."""
    total = only(harness(output, moments({"out of memory": 9}), seed=16))
    assert total["nothing"] >= 2, total
    assert total["old"] >= 3 or output == "memory", total  # which leaves nothing behind


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


@pytest.mark.usefixtures("small_disk")
@pytest.mark.parametrize("output", cases(["csv", "parquet", "save"], brief=["csv"]))
def test_a_disk_that_is_really_full(harness: Harness, output: str) -> None:
    total = only(harness(output, moments({"small disk": 9}), seed=7))
    assert all(total[outcome] >= 1 for outcome in FINE), total


WRITING = dict.fromkeys(("init", "audit", "compare", "mapping", "register"), 6)


@pytest.mark.parametrize("output", cases(WRITING, brief=[name for name in WRITING if name != "audit"]))
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
    total = only(harness(output, moments(faults, also={**STEPS, **DISK, **CLOCK}), seed=8))
    assert total["old"] >= 2, total
    assert total["new"] >= 1, total
