"""What a command prints. Whatever becomes of its streams, the exit code says what happened to the release.

closed (>&-, 2>&-)     nothing is shown, and all else is as usual
a pipe nobody reads    silence; the exit code is that of the command
a full disk            a line on stderr; 2 where printing was all there was to do, or the verdict had been 0
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO


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
