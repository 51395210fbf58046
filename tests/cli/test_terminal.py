"""What a terminal shows while a run goes on."""

from __future__ import annotations

import os
import pty
import sys

import pytest

from maskwright.cli.terminal import Display
from maskwright.runtime.events import Event

EVENTS = [
    Event("step", "summarising"),
    Event("progress", "about 1 min left", 0.42, {"left": 63.0}),
    Event("note", "a column was dropped"),
]


def test_one_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(slave, "w") as screen:
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((80, 24)))
        with Display() as display:
            for event in EVENTS:
                display.show(event)
        print("END", end="", file=screen, flush=True)
        read = b""
        while not read.endswith(b"END"):  # a terminal hands over what it has, which may be a part
            read += os.read(master, 10_000)
    os.close(master)
    shown = read.decode()
    assert "\r\x1b[Ksummarising … 42 % · about 1 min left (0 s)" in shown
    assert shown.count("\n") == 1  # the note


def test_a_pipe_gets_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with Display() as display:
        for event in EVENTS:
            display.show(event)
    assert capsys.readouterr().err == "note: a column was dropped\n"
