"""Runs as processes of their own: they go on when the tab is closed, and when the server stops.

request.json   kind and parameters, written before the process starts
events.jsonl   one line per event of the pipeline
result.json    what was found; may be large
outcome.json   how it ended, written last; without it and without a living process the run was interrupted
lock           held (flock) by the process while it lives
cancel         asks the run to stop
log            what the process printed; only its kind of error, never data
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from maskwright.errors import InputError, MaskwrightError
from maskwright.folder.store import recover_destination
from maskwright.runtime import disk
from maskwright.workbench.turns import AT_ONCE, MOST, Turns


class Conflict(MaskwrightError):  # noqa: N818 - named like the tree in errors.py
    """Somebody else, or another tab, changed it meanwhile; or it is in use."""


TOO_MANY = (
    f"{MOST} runs are in progress or waiting in this workbench ({AT_ONCE} at a time); wait until one ends, or cancel "
    "one, and try again"
)


@dataclass(frozen=True)
class BackgroundJob:
    """One run, as its folder tells it."""

    folder: Path

    @property
    def id(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @cached_property
    def request(self) -> dict[str, Any]:
        """What was asked for."""
        return dict(_read(self.folder / "request.json") or {})

    @property
    def kind(self) -> str:
        """The kind of work."""
        return str(self.request.get("kind"))

    @property
    def outcome(self) -> dict[str, Any] | None:
        """How it ended (ok, error, cancelled); None while it has not."""
        return _read(self.folder / "outcome.json")

    @property
    def result(self) -> dict[str, Any] | None:
        """What a run that succeeded found."""
        return _read(self.folder / "result.json") if (self.outcome or {}).get("ok") else None

    @property
    def state(self) -> str:
        """running, done, failed, cancelled or interrupted."""
        outcome = self.outcome
        if outcome is None:
            if self.alive():
                return "running"
            outcome = self.outcome  # it may have ended between the two looks
        if outcome is None:
            return "interrupted"
        return "done" if outcome["ok"] else "cancelled" if outcome.get("cancelled") else "failed"

    def alive(self) -> bool:
        """Does its process still run?"""
        try:
            import fcntl
        except ImportError:
            return True  # not known; then only the result tells
        try:
            handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(
                handle, fcntl.LOCK_SH | fcntl.LOCK_NB
            )  # shared: two who look do not mislead each other
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    def events(self, since: int = 0) -> list[dict[str, Any]]:
        """The events from number `since` on."""
        try:
            lines = (self.folder / "events.jsonl").read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        return [
            event for line in lines[since:-1] if (event := _event(line))
        ]  # the last piece is not yet whole

    def cancel(self) -> None:
        """Ask it to stop."""
        (self.folder / "cancel").touch(mode=0o600)

    def as_dict(self, since: int = 0) -> dict[str, Any]:
        """The job as JSON, with its events from number `since` on."""
        request, outcome = self.request, self.outcome or {}
        return {
            "id": self.id,
            "kind": request.get("kind"),
            "state": self.state,
            "started": request.get("started"),
            "seconds": max(
                0.0, round(outcome.get("ended", time.time()) - request.get("began", time.time()), 1)
            ),
            "events": self.events(since),
            "error": outcome.get("error"),
            "stopping": (self.folder / "cancel").exists(),
        }


@dataclass(frozen=True)
class Board:
    """The runs of a project, or of the workspace; all of a workspace take turns."""

    folder: Path
    turns: Turns

    def all(self) -> list[BackgroundJob]:
        """Newest first."""
        with contextlib.suppress(FileNotFoundError):
            jobs = [BackgroundJob(p) for p in self.folder.iterdir() if (p / "request.json").is_file()]
            return sorted(jobs, key=lambda j: j.request.get("began", 0), reverse=True)
        return []

    def get(self, id_: str) -> BackgroundJob | None:
        """The job with this name; None: there is none."""
        found = [job for job in self.all() if job.id == id_]
        return found[0] if found else None

    def latest(self, kind: str, state: str | None = None) -> BackgroundJob | None:
        """The latest job of a kind (and in a state); None: there is none."""
        return next((j for j in self.all() if j.kind == kind and state in (None, j.state)), None)

    def running(self) -> BackgroundJob | None:
        """The job that runs; None: none does."""
        return next((job for job in self.all() if job.state == "running"), None)

    def settle(self) -> None:
        """Clean up after runs that were killed: the unfinished files of a release hold raw data."""
        for job in self.all():
            destination = job.request.get("destination")
            if (
                destination
                and job.state in ("interrupted", "cancelled")
                and not (job.folder / "settled").exists()
            ):
                recover_destination(Path(destination))
                (job.folder / "settled").touch(mode=0o600)

    def start(self, kind: str, parameters: Mapping[str, Any], id_: str | None = None) -> BackgroundJob:
        """Begin a run in a process that outlives this one; refused when very many go on or wait."""
        self.settle()
        place = self.turns.place()
        if place is None:
            raise Conflict(TOO_MANY)
        try:
            return self._started(kind, parameters, id_ or secrets.token_hex(6), place)
        finally:
            os.close(place)  # the process holds it now

    def _started(self, kind: str, parameters: Mapping[str, Any], id_: str, place: int) -> BackgroundJob:
        job = BackgroundJob(self.folder / id_)
        job.folder.mkdir(parents=True, mode=0o700)
        lock = _locked(job.folder / "lock")
        # later than all runs before it, also when the clock was set back
        began = max([time.time(), *(j.request.get("began", 0) + 0.001 for j in self.all()[:1])])
        request = {
            "kind": kind, "began": began, "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
            "turns": str(self.turns.folder), **parameters,
        }  # fmt: skip
        disk.write_whole(job.folder / "request.json", json.dumps(request), mode=0o600)
        try:
            with (job.folder / "log").open("wb") as log:
                process = subprocess.Popen(  # noqa: S603 - our own module
                    [sys.executable, "-m", "maskwright.workbench.worker", str(job.folder)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                    pass_fds=() if lock is None else (lock, place),
                )  # fmt: skip
        finally:
            if lock is not None:
                os.close(lock)  # the process holds it now
        threading.Thread(target=process.wait, daemon=True, name=f"reap {job.id}").start()
        return job


def _locked(path: Path) -> int | None:
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        import fcntl
    except ImportError:
        os.close(handle)
        return None
    fcntl.flock(handle, fcntl.LOCK_EX)
    os.set_inheritable(handle, True)
    return handle


def _event(line: bytes) -> dict[str, Any]:
    """One event; where the disk was full there may be half a line."""
    try:
        return dict(json.loads(line))
    except ValueError:
        return {"kind": "note", "text": "", "share": None, "at": 0}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = disk.read_json(path)
    except (FileNotFoundError, InputError):
        return None
    return found
