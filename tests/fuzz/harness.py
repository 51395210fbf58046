"""Feed bad inputs to the product and accept nothing but success or one of its own errors, in one line.

A target makes its inputs from a number, so that a finding is repeated by that number alone. Inputs run in a child
process: one that crashes or hangs takes only the child with it. Watched are, for every input:

- the exception: only `MaskwrightError`, whose message is one line of sensible length;
- processor time, by a timer in the child, and wall time, by the parent (a hang in C code hears no timer);
- memory: how much one input raises the peak, and how much all of them together.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskwright.errors import MaskwrightError

LONGEST_MESSAGE = 2_000
STEP = 256  # MiB that a single input may add to the peak
TOTAL = 1_024  # MiB that a child may grow by, over all its inputs
CHILD = 3_000  # inputs after which a fresh child takes over
SILENCE = 600  # seconds without an answer after which a child is killed


class Target:
    """One way in: makes inputs and feeds them. `folder` is a place for files, there in the child only."""

    name: str
    cpu_s: float = 5.0  # processor seconds that one input may take

    def __init__(self) -> None:
        self.folder = Path()

    def begin(self) -> None:
        """Called once in each child."""

    def end(self) -> None:
        """Called before a child ends."""

    def make(self, rng: random.Random) -> Any:
        raise NotImplementedError

    def feed(self, given: Any) -> None:
        """Raises `MaskwrightError` for what is refused; anything else that it raises is a finding."""
        raise NotImplementedError

    def input(self, seed: int, number: int) -> Any:
        return self.make(random.Random(f"{self.name} {seed} {number}"))  # noqa: S311 - must be repeatable


class Slow(BaseException):
    """An input took too long (not an `Exception`, so that nobody mistakes it for trouble with a file)."""


@dataclass
class Report:
    """What came of the inputs of a target."""

    target: str
    inputs: int = 0
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)
    cpu_s: float = 0.0
    peak_mib: int = 0

    def add(self, other: dict[str, Any]) -> None:
        self.inputs += other["inputs"]
        self.accepted += other["accepted"]
        self.refused.update(other["refused"])
        self.findings += other["findings"]
        self.peak_mib = max(self.peak_mib, other["peak_mib"])

    def line(self) -> str:
        refused = sum(self.refused.values())
        return (
            f"{self.target}: {self.inputs:,} inputs, {self.accepted:,} accepted, {refused:,} refused, "
            f"{len(self.findings)} findings, {self.cpu_s:.0f} s of processor time, peak {self.peak_mib} MiB"
        )


def run(
    target: Target, count: int, seed: int = 0, first: int = 0, told: Callable[[Report], None] | None = None
) -> Report:
    """Feed the inputs first … first + count - 1 of a target."""
    report = Report(target.name)
    number, stop = first, first + count
    while number < stop:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        part, number = _child(target, seed, number, min(stop, number + CHILD))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        report.cpu_s += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        report.add(part)
        if told is not None:
            told(report)
    return report


def _child(target: Target, seed: int, first: int, stop: int) -> tuple[dict[str, Any], int]:
    """Run a child; what it tells, and the next number to go on with."""
    shared = mmap.mmap(-1, 8)
    shared[:] = struct.pack("q", first)
    folder = Path(tempfile.mkdtemp(prefix="maskwright-fuzz-"))
    place = folder / "result.json"
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _work(target, seed, first, stop, shared, folder)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    try:
        status = _wait(child, shared)
        last = struct.unpack("q", shared[:])[0]
        part = json.loads(place.read_text("utf-8")) if place.exists() else _nothing(last - first)
        if status == 0:
            return part, stop
        how = "killed after a long silence" if status is None else f"the child died (status {status})"
        part["findings"].append({"target": target.name, "seed": seed, "number": last, "what": how})
        part["inputs"] = last - first + 1
        return part, last + 1
    finally:
        shared.close()
        shutil.rmtree(folder, ignore_errors=True)


def _nothing(inputs: int) -> dict[str, Any]:
    return {"inputs": inputs, "accepted": 0, "refused": {}, "findings": [], "peak_mib": 0}


def _wait(child: int, shared: mmap.mmap) -> int | None:
    """The status of the child, None when it was killed because it no longer moved."""
    last, since = b"", time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        now = shared[:]
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > SILENCE:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.02)


def _work(target: Target, seed: int, first: int, stop: int, shared: mmap.mmap, folder: Path) -> None:
    os.environ["MASKWRIGHT_STATE"] = str(folder / "state")
    target.folder = folder / "files"
    target.folder.mkdir()
    os.chdir(target.folder)
    signal.signal(signal.SIGPROF, _too_slow)
    target.begin()
    result = _nothing(0)
    start = peak = _peak()
    parent = os.getppid()
    for number in range(first, stop):
        if os.getppid() != parent:  # nobody is waiting any more
            return
        shared[:] = struct.pack("q", number)
        given = target.input(seed, number)
        what = attempt(target, given)
        if what is None:
            result["accepted"] += 1
        elif what.startswith("refused: "):
            result["refused"][what[9:]] = result["refused"].get(what[9:], 0) + 1
        else:
            result["findings"].append({"target": target.name, "seed": seed, "number": number, "what": what})
        now = _peak()
        if now - peak > STEP:
            what = f"the peak of memory rose by {now - peak} MiB"
            result["findings"].append({"target": target.name, "seed": seed, "number": number, "what": what})
        peak = max(peak, now)
        result["inputs"] += 1
    target.end()
    if peak - start > TOTAL:
        what = f"memory grew by {peak - start} MiB over all inputs of a child"
        result["findings"].append({"target": target.name, "seed": seed, "number": stop - 1, "what": what})
    result["peak_mib"] = peak
    (folder / "result.json").write_text(json.dumps(result), "utf-8")


def attempt(target: Target, given: Any) -> str | None:
    """None when the input was taken, 'refused: class', or what is wrong."""
    signal.setitimer(signal.ITIMER_PROF, target.cpu_s)
    try:
        target.feed(given)
    except MaskwrightError as refused:
        return check_message(refused)
    except Slow:
        return f"took more than {target.cpu_s} s of processor time\n{traceback.format_exc(limit=-6)}"
    except BaseException:
        return traceback.format_exc(limit=-8)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def check_message(refused: MaskwrightError) -> str:
    """A refusal is one printable line of a length that somebody reads."""
    text = str(refused)
    if not text.strip():
        return f"{type(refused).__name__} without a message"
    if len(text.splitlines()) > 1 or "\n" in text:
        return f"{type(refused).__name__} with several lines: {text!r}"
    if len(text) > LONGEST_MESSAGE:
        return f"{type(refused).__name__} with {len(text)} characters: {text[:300]!r}"
    if "Traceback" in text:
        return f"{type(refused).__name__} with a traceback: {text!r}"
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{type(refused).__name__} with half a surrogate pair: {text!r}"
    return f"refused: {type(refused).__name__}"


def _too_slow(signum: int, frame: Any) -> None:
    raise Slow


def _peak() -> int:
    """The most memory that this process had so far, in MiB (`ru_maxrss` counts what its parent held, too)."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) // 1024
