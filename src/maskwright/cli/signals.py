"""Ctrl-C, SIGTERM and SIGHUP: a command stops in order, and says truly whether something was published."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from maskwright.runtime.events import Event

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopping:
    """While a command runs, the first signal stops it; the next ones are ignored, so that it can clean up.

    Once the release is being put in place (an event with `final`) it is too late: the command ends as if nobody had
    asked. A signal that was ignored when the process began (nohup) stays ignored.
    """

    def __init__(self, ends_here: bool) -> None:
        """`ends_here`: the process ends with the command, so that signals are ignored from then on."""
        self.asked = self.final = self._finishing = False
        self._ends_here = ends_here
        self._before: dict[int, Any] = {}

    def is_set(self) -> bool:
        """For `cancelled`: where a library swallowed the exception, the next step of the pipeline stops."""
        return self.asked

    def watching(self, show: Callable[[Event], None]) -> Callable[[Event], None]:
        """Show events, and notice when it is too late to stop."""

        def watched(event: Event) -> None:
            """Show the event, and note when the final step begins."""
            self.final = self.final or bool(event.data.get("final"))
            show(event)

        return watched

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """While the last thing is put in place it is too late to stop, and afterwards it is published."""
        self._finishing = True
        try:
            yield
            self.final = True
        finally:
            self._finishing = False

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if not self.asked:
            self.asked = True
            if not self.final and not self._finishing:
                raise KeyboardInterrupt

    def _unraisable(self, what: Any) -> None:
        """What Python cannot raise (in a finalizer) it prints as a traceback: not once the command was asked to stop.

        It is the signal itself, so that the next step of the run stops, or the end of something that was left where
        the signal came, such as a context whose connection is closed by now.
        """
        if not self.asked:
            self._hook(what)

    def __enter__(self) -> Stopping:
        self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finishing = True  # nothing is left to stop
        if not self._ends_here:
            sys.unraisablehook = self._hook
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if self._ends_here else handler)
