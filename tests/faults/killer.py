"""Kills `anonymize` at many moments and says what is left. Run by test_kill.py in a process of its own.

One process imports everything, then forks a child per attempt, so that hundreds of kills take seconds. Two ways
to choose the moment: at a random time, and at every single step that changes the disk (before and after it).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import maskwright.engines.duck  # noqa: F401 - imported once here, not in every child; no connection is opened
from maskwright import api, store, verify

STEPS = ["_fsync", "_exchange", "_release"]  # of maskwright.store
PATH_STEPS = ["rename", "mkdir", "write_text", "chmod"]  # of pathlib.Path


def run_once(source: Path, policy: Path, destination: Path, before: Callable[[], None]) -> int:
    """Fork a child that publishes; returns its process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        before()
        api.anonymize(source, policy, destination, overwrite=True)
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(code)
    return 0


def count_down(number: int, after: bool) -> None:
    """Kill this process at the `number`-th step that changes the disk."""
    left = [number]

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0 and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(*arguments, **options)
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return stepped

    for name in STEPS:
        setattr(store, name, wrap(getattr(store, name)))
    for name in PATH_STEPS:
        setattr(Path, name, wrap(getattr(Path, name)))
    shutil.rmtree = wrap(shutil.rmtree)


def state(destination: Path, old: str | None) -> str:
    """What is left. Looked at in a child too: the parent must never start the engine's threads, and then fork."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.write(into, look(destination, old).encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def look(destination: Path, old: str | None) -> str:
    """absent, old, new, or what is wrong; as the next start of the program would find it."""
    store.recover(destination)
    rest = [p.name for p in destination.parent.iterdir() if "maskwright-" in p.name]
    if rest:
        return f"left behind: {rest}"
    if not destination.exists():
        return "absent"
    try:
        result = verify.verify(destination)
    except Exception as problem:
        return f"broken: {problem}"
    if not result.ok:
        return f"not verified: {result.problems}"
    return "old" if identity(destination) == old else "new"


def identity(destination: Path) -> str:
    return verify.sha256(destination / "private" / "manifest.json")


def main(folder: Path, source: Path, policy: Path, mode: str, exchange: bool, tries: int) -> None:
    if not exchange:
        store._exchange = lambda a, b: False
    destination = folder / "release"
    chance = random.Random(tries)  # noqa: S311 - moments of a test, not secrets
    begin = time.perf_counter()
    _, status = os.waitpid(run_once(source, policy, destination, lambda: None), 0)
    if status:
        sys.exit("the run fails even when nobody kills it")
    usual = time.perf_counter() - begin
    if "fresh" in mode:
        shutil.rmtree(destination)
    found: dict[str, int] = {}
    for i in range(tries):
        old = identity(destination) if destination.exists() else None
        if "step" in mode:
            child = run_once(source, policy, destination, lambda i=i: count_down(i // 2, bool(i % 2)))
        else:
            child = run_once(source, policy, destination, lambda: None)
            time.sleep(chance.uniform(0, 1.1 * usual))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        outcome = "failed by itself" if os.WIFEXITED(status) and status else state(destination, old)
        found[outcome] = found.get(outcome, 0) + 1
        if "fresh" in mode and destination.exists():
            shutil.rmtree(destination)
        if "step" in mode and not os.WIFSIGNALED(status):
            found["finished"] = i
            break
    print(json.dumps(found))


if __name__ == "__main__":
    main(
        Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], sys.argv[5] == "exchange",
        int(sys.argv[6]),
    )  # fmt: skip
