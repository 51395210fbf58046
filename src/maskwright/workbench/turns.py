"""Turns: how many runs go on at a time in a workspace, and how many more may wait for one.

Both are files that a run's process has locked (flock), so that they are free again when it ends, however it ends, and
whether or not a server is there. Where the system has no such locks there is no limit.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from maskwright.errors import Cancelled

AT_ONCE = 4
MOST = 16  # going on or waiting
PAUSE_S = 0.1


@dataclass(frozen=True)
class Turns:
    """The places of a workspace: `MOST` for runs that were admitted, `AT_ONCE` for those that go on."""

    folder: Path

    def place(self) -> int | None:
        """A place for one more run, locked, to be handed to its process; None where all are taken."""
        return self._taken("place", MOST)

    def is_full(self) -> bool:
        """Whether no run can be admitted now."""
        handle = self.place()
        if handle is not None:
            os.close(handle)
        return handle is None

    @contextlib.contextmanager
    def turn(self, cancelled: Callable[[], bool], on_wait: Callable[[], None]) -> Iterator[None]:
        """Wait until fewer than `AT_ONCE` runs go on, and be one of them."""
        handle = self._taken("turn", AT_ONCE)
        if handle is None:
            on_wait()
        while handle is None:
            if cancelled():
                raise Cancelled("cancelled before it began; nothing was published")
            time.sleep(PAUSE_S)
            handle = self._taken("turn", AT_ONCE)
        try:
            yield
        finally:
            os.close(handle)

    def _taken(self, kind: str, number: int) -> int | None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for i in range(number):
            handle = os.open(self.folder / f"{kind}-{i}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                import fcntl

                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except ImportError:
                pass
            except OSError:
                os.close(handle)
                continue
            return handle
        return None
