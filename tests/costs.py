"""What the tests cost: seconds of CPU of each test with the processes that it started, by folder."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

NAME = "seconds of CPU"
STARTED = pytest.StashKey[float]()  # of a test: what had been used before it
COLLECTED = pytest.StashKey[list[tuple[str, bool]]]()  # of a run: every test, and whether it is marked `long`


def cpu_seconds() -> float:
    """The seconds of CPU of this process so far, and of those it started, whether they have ended or not."""
    mine = os.times()
    return mine[0] + mine[1] + mine[2] + mine[3] + sum(map(_used_by, started_by("self")))


def started_by(process: str) -> list[str]:
    """The processes that a process started and that still run; on Linux only."""
    found: list[str] = []
    with contextlib.suppress(OSError):  # the process has ended meanwhile
        for thread in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208 - a listing at once, not one by one
            with contextlib.suppress(OSError):  # or the thread has
                text = Path(f"/proc/{process}/task/{thread}/children").read_text(encoding="ascii")
                found += text.split()
    return found


def _used_by(process: str) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    ticks = sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(_used_by, started_by(process)))


def folder_of(test: str) -> str:
    """The folder of tests that a test is in."""
    return test.partition("::")[0].split("/")[1]


def cost_table(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Lines of a table in Markdown: of each folder the tests, those that failed, and the seconds of CPU."""
    tests, failed, seconds = (
        defaultdict[str, set[str]](set),
        defaultdict[str, int](int),
        defaultdict[str, float](float),
    )
    for report in reports:
        folder = folder_of(report.nodeid)
        tests[folder].add(report.nodeid)
        failed[folder] += report.failed
        seconds[folder] += cost_of(report)
    ordered = sorted(tests, key=lambda folder: -seconds[folder])
    rows = [(folder, len(tests[folder]), failed[folder], seconds[folder]) for folder in ordered]
    total = ("all", sum(r[1] for r in rows), sum(r[2] for r in rows), sum(r[3] for r in rows))
    lines = [f"| {name} | {number:,} | {bad} | {used:,.1f} |" for name, number, bad, used in (*rows, total)]
    return ["| folder | tests | failed | seconds of CPU |", "| --- | --- | --- | --- |", *lines]


def costliest(reports: Sequence[pytest.TestReport], number: int) -> list[str]:
    """Lines that name the tests that took most."""
    ended = [report for report in reports if report.when == "teardown"]
    listed = sorted(ended, key=lambda report: -cost_of(report))[:number]
    return [f"{cost_of(report):8.1f} {report.nodeid}" for report in listed]


def cost_of(report: pytest.TestReport) -> float:
    """The seconds of CPU of a test; they are in the report on its end.

    What a process used that ends in the test, and nobody waits for, is gone: never less than nothing is told.
    """
    return sum(
        max(0.0, float(value))
        for name, value in report.user_properties
        if name == NAME and report.when == "teardown"
    )
