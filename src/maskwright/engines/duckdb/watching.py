"""A thread beside a step of the pipeline: it tells how far the engine is, and stops the query when asked to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from maskwright.errors import Cancelled, is_interruption
from maskwright.runtime.events import Progress

EVERY = 0.25  # seconds


class _Watcher(threading.Thread):
    def __init__(self, progress: Progress, share: Callable[[], float], interrupt: Callable[[], None]) -> None:
        super().__init__(name="maskwright-watcher", daemon=True)
        self.progress, self.share, self.interrupt = progress, share, interrupt
        self.end = threading.Event()
        self.stopped = False
        self.problem: BaseException | None = None

    def run(self) -> None:
        """Tell and ask again and again, until the end."""
        last, since = 0.0, time.monotonic()
        while not self.end.wait(EVERY):
            try:
                if self.stopped or self.progress.stopping:
                    self.stopped = True
                    self.interrupt()  # again and again: a step may have many queries
                    continue
                share = self.share()
                if share < last or last <= 0:
                    since = time.monotonic() - EVERY  # another query
                last = share
                self.progress.pulse(share if share > 0 else None, since)
            except BaseException as problem:  # of the caller's own functions: raised where they wait
                self.problem, self.stopped = problem, True


@contextmanager
def watched(progress: Progress, share: Callable[[], float], interrupt: Callable[[], None]) -> Iterator[None]:
    """While the context lasts, `share` (0 to 1, negative: unknown) is told, and `interrupt` called when asked to stop.

    A query that was interrupted raises an error of the engine; here it becomes `Cancelled`.
    """
    watcher = _Watcher(progress, share, interrupt)
    try:
        watcher.start()
    except RuntimeError:  # no room for a thread: the step runs without anybody watching
        yield
        return
    try:
        yield
    except (Exception, KeyboardInterrupt) as problem:
        watcher.end.set()
        watcher.join()
        if watcher.problem is not None:
            raise watcher.problem from None
        if watcher.stopped:
            raise Cancelled("cancelled; nothing was published") from None
        if is_interruption(problem):
            raise KeyboardInterrupt from None
        raise
    finally:
        watcher.end.set()
        watcher.join()
    if watcher.problem is not None:
        raise watcher.problem
