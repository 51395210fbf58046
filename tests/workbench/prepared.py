"""Runs of the workbench in processes that are forked from one which has imported all that a run needs.

Imports take four fifths of a small run. The long run starts each as users do.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from multiprocessing import reduction
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

import pytest

from tests.amounts import hurry

IMPORTED = (
    "maskwright.workbench.worker", "maskwright.api", "maskwright.comparing", "maskwright.engines.duckdb.engine",
    "maskwright.pipeline.alternatives", "maskwright.pipeline.publish", "maskwright.pipeline.what_if",
    "maskwright.report.report", "maskwright.suggest.advice", "maskwright.verification.verify", "duckdb",
    "sqlglot.generators.duckdb",
)  # fmt: skip
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([*IMPORTED, __name__])


@cache
def prepare_runs() -> None:
    """Wait until that process has imported everything: nobody who starts a run has to."""
    first = FORKING.Process(target=int)
    first.start()
    first.join()


class Handed:
    """An open file that a process is handed."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __reduce__(self) -> tuple[Any, ...]:
        return _taken, (reduction.DupFd(self.handle),)  # type: ignore[attr-defined]


def _taken(handed: Any) -> int:
    return int(handed.detach())


class ForkedRun:
    """In place of `subprocess.Popen` where a run of the workbench is started."""

    def __init__(
        self, command: Sequence[str], *, stdin: int, stdout: IO[bytes], stderr: IO[bytes],
        start_new_session: bool, pass_fds: Iterable[int],
    ) -> None:  # fmt: skip
        assert command[:3] == [sys.executable, "-m", "maskwright.workbench.worker"], command
        assert (stderr, start_new_session) == (stdout, True)
        handed = [Handed(handle) for handle in (stdout.fileno(), *pass_fds)]
        self.process: BaseProcess = FORKING.Process(
            target=_work, args=(command[3], Path.cwd(), dict(os.environ), handed), daemon=False
        )
        self.process.start()

    def wait(self) -> None:
        """Wait until it has ended."""
        self.process.join()


def _work(folder: str, here: Path, environment: Mapping[str, str], handed: Sequence[int]) -> None:
    """Be the process of a run; what it was handed stays open as long as it lives."""
    from maskwright.workbench.worker import main

    os.setsid()
    os.chdir(here)
    os.environ.clear()
    os.environ.update(environment)
    for stream in (1, 2):
        os.dup2(handed[0], stream)
    hurry(pytest.MonkeyPatch())  # as in the tests' own process
    sys.exit(main(Path(folder)))
