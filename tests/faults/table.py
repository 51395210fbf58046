"""The faults: what goes wrong, and what may be there afterwards. Numbers are those of shim.c."""

from __future__ import annotations

import errno
import signal
from dataclasses import dataclass

COUNT, KILL, KILL_AFTER, FAIL_ONCE, FAIL_ON, SIGNAL, SIGNAL_TWICE, CLOCK_BACK, PAUSE = range(9)
WRITE, REMOVE, READ, NET = 1, 2, 4, 8
WRITES = WRITE | REMOVE
YEARS = 10 * 365 * 86400


@dataclass(frozen=True)
class Fault:
    """What happens at a step that changes the disk; or, `timed`, which signal comes at any moment."""

    kind: int
    argument: int = 0
    classes: int = WRITES
    timed: bool = False
    twice: bool = False


FAULTS = {
    "killed at a step": Fault(KILL, signal.SIGKILL),
    "killed": Fault(SIGNAL, signal.SIGKILL, timed=True),
    "disk full": Fault(FAIL_ON, errno.ENOSPC, WRITE),
    "quota": Fault(FAIL_ON, errno.EDQUOT, WRITE),
    "read-only": Fault(FAIL_ON, errno.EROFS, WRITE),
    "disk error": Fault(FAIL_ONCE, errno.EIO),
    "Ctrl-C at a step": Fault(SIGNAL, signal.SIGINT),
    "Ctrl-C twice at a step": Fault(SIGNAL_TWICE, signal.SIGINT),
    "Ctrl-C": Fault(SIGNAL, signal.SIGINT, timed=True),
    "Ctrl-C twice": Fault(SIGNAL_TWICE, signal.SIGINT, timed=True, twice=True),
    "SIGTERM": Fault(SIGNAL, signal.SIGTERM, timed=True),
    "SIGHUP": Fault(SIGNAL, signal.SIGHUP, timed=True),
    "clock set back": Fault(CLOCK_BACK, YEARS),
}
