"""The faults: what goes wrong, and when. Numbers are those of shim.c."""

from __future__ import annotations

import errno
import signal
from dataclasses import dataclass

COUNT, KILL, FAIL_ONCE, FAIL_ON, SIGNAL, SIGNAL_TWICE, CLOCK_BACK, PAUSE = range(8)
WRITE, REMOVE, READ, NET = 1, 2, 4, 8
YEARS = 10 * 365 * 86400

FINE = {"old", "nothing", "new"}
GAVE_UP, DIED, CLEANED = "a library gave up", "died of the signal", "cleaned up when started again"


@dataclass(frozen=True)
class Fault:
    """What happens at the n-th step of some classes (writing, removing, reading, sending and receiving).

    Attributes:
        kind: COUNT means that nothing happens at a step.
        argument: a signal, an error, or seconds.
        classes: which steps count.
        timed: a signal after some time of the processor, wherever the run is then; `twice`: and again a little later.
        action: what somebody else does at that step, while the run waits.
        limit: what the whole run has too little of: address space ("memory"), space on its disk, or memory that it
            really uses ("resident": who takes more is killed at once, as the system does when there is none left).
    """

    kind: int
    argument: int = 0
    classes: int = WRITE | REMOVE
    timed: bool = False
    twice: bool = False
    action: str = ""
    limit: str = ""


FAULTS = {
    "killed at a step": Fault(KILL, signal.SIGKILL),
    "killed": Fault(SIGNAL, signal.SIGKILL, timed=True),
    "Ctrl-C at a step": Fault(SIGNAL, signal.SIGINT),
    "Ctrl-C twice at a step": Fault(SIGNAL_TWICE, signal.SIGINT),
    "Ctrl-C": Fault(SIGNAL, signal.SIGINT, timed=True),
    "Ctrl-C twice": Fault(SIGNAL, signal.SIGINT, timed=True, twice=True),
    "SIGTERM": Fault(SIGNAL, signal.SIGTERM, timed=True),
    "SIGHUP": Fault(SIGNAL, signal.SIGHUP, timed=True),
    "disk full from a step on": Fault(FAIL_ON, errno.ENOSPC, WRITE),
    "quota reached at a step": Fault(FAIL_ON, errno.EDQUOT, WRITE),
    "read-only from a step on": Fault(FAIL_ON, errno.EROFS, WRITE),
    "disk error at a step": Fault(FAIL_ONCE, errno.EIO),
    "small disk": Fault(COUNT, limit="disk"),
    "little memory": Fault(COUNT, limit="memory"),
    "out of memory": Fault(COUNT, signal.SIGKILL, limit="resident"),
    "clock set back": Fault(CLOCK_BACK, YEARS),
    "input appended to": Fault(PAUSE, classes=READ, action="append"),
    "input truncated": Fault(PAUSE, classes=READ, action="truncate"),
    "input replaced": Fault(PAUSE, classes=READ, action="replace"),
    "input rewritten, same size and time": Fault(PAUSE, classes=READ, action="rewrite"),
    "connection cut": Fault(FAIL_ONCE, errno.ECONNRESET, NET),
    "backend terminated": Fault(PAUSE, classes=NET, action="terminate"),
    "server crashed": Fault(PAUSE, classes=NET, action="crash"),
}
