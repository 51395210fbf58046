"""The process of a command: signals stop it in order, and whatever becomes of its streams, its exit code is true.

closed (>&-, 2>&-)     nothing is shown, and all else is as usual
a pipe nobody reads    silence; the exit code is that of the command
a full disk            a line on stderr; 2 where printing was all there was to do, or the verdict had been 0
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, TextIO

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


def open_streams() -> None:
    """Make streams that can be written to: one that was closed leads nowhere, and no character is an error.

    The number of a closed stream would otherwise go to the next file that is opened.
    """
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8")  # noqa: PTH123, SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
        if isinstance(stream, io.TextIOWrapper) and name != "stdin":
            stream.reconfigure(errors="backslashreplace")


class Printed:
    """What a command prints, and why it could not be printed, if it could not."""

    def __init__(self) -> None:
        self.problem: OSError | None = None

    def tell(self, text: str) -> None:
        """Print to stdout: what the command found."""
        try:
            print(text, flush=True)
        except OSError as problem:
            self._lost(problem)

    def complain(self, *lines: str) -> None:
        """Print to stderr: what is wrong."""
        try:
            print(*lines, sep="\n", file=sys.stderr, flush=True)
        except OSError:
            _give_up(sys.stderr)

    def end(self, code: int, in_place: bool) -> int:
        """The exit code, after all is written that can be; `in_place`: what was made is where it belongs."""
        try:
            sys.stdout.flush()
        except OSError as problem:
            self._lost(problem)
        if self.problem is not None:
            rest = "; what was made is in its place" if in_place else ""
            self.complain(f"maskwright: cannot write the output: {self.problem.strerror}{rest}")
        try:
            sys.stderr.flush()
        except OSError:
            _give_up(sys.stderr)
        return 2 if self.problem is not None and code == 0 and not in_place else code

    def _lost(self, problem: OSError) -> None:
        if not isinstance(problem, BrokenPipeError):  # whoever closed the pipe has read enough
            self.problem = problem
        _give_up(sys.stdout)


def _give_up(stream: TextIO) -> None:
    """Nobody reads it any more, or its disk is full: what is left to write must not become an error at the end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
