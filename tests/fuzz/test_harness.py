"""The harness itself: it must notice a traceback, a hang, a crash and a blow-up, or its silence says nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = """
import os, random, sys
from maskwright.errors import InputError
from tests.fuzz import harness
harness.SILENCE = 10
class Faulty(harness.Target):
    name, cpu_s = "faulty", 0.3
    def begin(self):
        if sys.argv[1] == "begin": raise KeyError("x")
    def make(self, rng):
        return sys.argv[1] if rng.random() < 0.2 else "fine"
    def feed(self, given):
        if given == "traceback": raise KeyError("x")
        if given == "assertion": assert False
        if given == "lines": raise type("E", (InputError,), {"__str__": lambda self: "a\\nb"})("x")
        if given == "empty": raise InputError("")
        if given == "slow":
            while True: pass
        if given == "asleep":
            import time; time.sleep(60)
        if given == "crash": os.abort()
        if given == "memory": x = bytearray(400 << 20)
        if given == "refused": raise InputError("one line")
report = harness.run(Faulty(), 12)
print(report.inputs, len(report.findings), sum(report.refused.values()))
"""
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "fault",
    [
        "fine",
        "refused",
        "traceback",
        "assertion",
        "lines",
        "empty",
        "slow",
        "asleep",
        "crash",
        "memory",
        "begin",
    ],
)
def test_it_notices(fault: str) -> None:
    path = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", CHECK, fault], capture_output=True, text=True, env=path, cwd=ROOT, check=True
    )
    inputs, findings, refused = map(int, done.stdout.split())
    assert inputs == 12, "every input is counted, also after a crash"
    if fault in ("fine", "refused"):
        assert findings == 0
        assert (refused > 0) == (fault == "refused")
    else:
        assert findings > 0
