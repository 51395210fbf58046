"""Release folders on disk: built beside their destination, flushed, and renamed into place in one step.

Killed at any point, the destination is the old release, nothing, or the new one; never a part. What a killed
run left behind is cleaned up, or put back, by `recover` at the next start. The pieces, for a destination `d`:

    .d.maskwright-TOKEN.lock   held (flock) while the run lives
    .d.maskwright-TOKEN.new    the release being built, and the engine's spill files; readable by its owner only
    .d.maskwright-TOKEN.old    the old release while it is being replaced, where no atomic exchange exists

A comparison (or whatever else is a folder) is put in place by the same steps.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from maskwright import disk
from maskwright.errors import DestinationError

MARK = "maskwright-"
PUBLIC, PRIVATE, MANIFEST = "public", "private", "manifest.json"


def is_release(path: Path) -> bool:
    """Does this folder hold a release of ours?"""
    return (path / PUBLIC / MANIFEST).is_file()


@dataclass(frozen=True)
class Kind:
    """What a folder is: its name for people, and how to tell whether a folder is one."""

    name: str
    is_one: Callable[[Path], bool]
    mode: int = 0o777


RELEASE = Kind("Maskwright release", is_release)


def check_destination(destination: Path, overwrite: bool, kind: Kind = RELEASE) -> None:
    """Refuse, before any work is done, a place where the folder could not be put."""
    parent = destination.parent
    word = kind.name.split()[-1]
    if not parent.is_dir():
        raise DestinationError(f"the folder {str(parent)!r} does not exist; create it first")
    if destination.exists() or destination.is_symlink():
        if not destination.is_dir() or not kind.is_one(destination):
            raise DestinationError(
                f"{str(destination)!r} exists and is not a {kind.name}; choose another place with -o"
            )
        if not overwrite:
            raise DestinationError(f"{str(destination)!r} exists; use --overwrite to replace that {word}")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise DestinationError(f"the folder {str(parent)!r} is not writable; choose another place with -o")


def readable(file: Path) -> bool:
    """Is a file there, and may it be read? What is in private/ may be read by the owner alone."""
    try:
        return file.is_file() and os.access(file, os.R_OK)
    except PermissionError:
        return False


class Stage:
    """A private folder beside the destination. Use as a context manager: without `commit` nothing remains.

    What is to be put in place is `content`; `folder`, which holds it, may hold other temporary files.
    """

    def __init__(self, destination: Path, overwrite: bool = False, kind: Kind = RELEASE) -> None:
        destination = Path(os.path.abspath(destination))  # noqa: PTH100 - resolve() would follow a symlink
        check_destination(destination, overwrite, kind)
        self.destination, self.overwrite, self.kind = destination, overwrite, kind
        try:
            self._lock, self.token = _acquire(destination)
        except OSError as problem:
            raise self._cannot_write(problem) from None
        self.folder = _piece(destination, self.token, "new")
        self.content = self.folder / "release"
        try:
            self.folder.mkdir(mode=0o700)
            self.content.mkdir(mode=kind.mode)
            self.fill()
        except BaseException as problem:
            self.close()
            if isinstance(problem, OSError):
                raise self._cannot_write(problem) from None
            raise

    def fill(self) -> None:
        """Make the folders that are always there."""

    def protect(self) -> None:
        """Say who may read what, before it is put in place."""

    def commit(self) -> None:
        """Flush everything to disk and put it in place."""
        try:
            self.protect()
            _flush(self.content)
            if self.destination.exists():
                if not self.overwrite:
                    raise DestinationError(
                        f"{str(self.destination)!r} appeared meanwhile; nothing was published"
                    )
                self._replace()
            else:
                self.content.rename(self.destination)
        except OSError as problem:
            raise self._cannot_write(problem) from None
        with contextlib.suppress(OSError):  # it is there; the folder reaches the disk a little later
            _fsync(self.destination.parent)

    def _replace(self) -> None:
        if _exchange(self.content, self.destination):
            return
        aside = _piece(self.destination, self.token, "old")
        self.destination.rename(aside)
        try:
            self.content.rename(self.destination)
        except BaseException:
            aside.rename(self.destination)
            raise
        with contextlib.suppress(OSError):
            _fsync(self.destination.parent)
        shutil.rmtree(aside, ignore_errors=True)

    def close(self) -> None:
        if self.folder.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
        _release(self._lock, _piece(self.destination, self.token, "lock"))

    def _cannot_write(self, problem: OSError) -> DestinationError:
        word, reason = self.kind.name.split()[-1], problem.strerror or problem
        return DestinationError(f"cannot write the {word} to {str(self.destination)!r}: {reason}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Staging(Stage):
    """The release being built, public/ and private/, and the engine's spill files beside it."""

    def fill(self) -> None:
        self.public.mkdir()
        self.private.mkdir(mode=0o700)
        self.spill = self.folder / "spill"
        self.spill.mkdir(mode=0o700)

    def protect(self) -> None:
        for path in sorted(self.private.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
        _same_time(self.public)

    @property
    def public(self) -> Path:
        return self.content / PUBLIC

    @property
    def private(self) -> Path:
        return self.content / PRIVATE


def recover(destination: Path) -> list[str]:
    """Clean up after runs that were killed: put back what was moved aside, remove what was half built.

    Runs that are still alive hold their lock and are left alone; so is what belongs to another user, and what cannot
    be changed. Returns what was done, in words.
    """
    destination = Path(os.path.abspath(destination))  # noqa: PTH100
    done: list[str] = []
    disk.sweep_scratch()
    pattern = re.compile(re.escape(f".{destination.name}.{MARK}") + r"([0-9a-f]{16})\.(new|old|lock)")
    found = []
    with contextlib.suppress(OSError):
        found = [p for p in destination.parent.iterdir() if pattern.fullmatch(p.name) and disk.mine(p)]
    for token in sorted({p.name.rsplit(".", 2)[1].removeprefix(MARK) for p in found}):
        lock = _piece(destination, token, "lock")
        handle = disk.try_lock(lock, create=True)
        if handle is not None:
            with contextlib.suppress(OSError):
                done += _settle(destination, token)
            _release(handle, lock)
    return done


def _settle(destination: Path, token: str) -> list[str]:
    """What a run that no longer lives left behind: the old release is put back, the rest removed."""
    done = []
    aside, building = _piece(destination, token, "old"), _piece(destination, token, "new")
    if disk.mine(aside):
        if not destination.exists():
            aside.rename(destination)
            done.append("an earlier run was killed while replacing the release: the old release was put back")
        else:
            shutil.rmtree(aside, ignore_errors=True)
    if disk.mine(building):
        shutil.rmtree(building, ignore_errors=True)
        if not building.exists():
            done.append("the unfinished files of an earlier run that was killed were removed")
    return done


def _piece(destination: Path, token: str, what: str) -> Path:
    return destination.parent / f".{destination.name}.{MARK}{token}.{what}"


def _acquire(destination: Path) -> tuple[int, str]:
    while True:
        token = secrets.token_hex(8)
        handle = disk.lock_new(_piece(destination, token, "lock"))
        if handle is not None:
            return handle, token


def _release(handle: int, path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
    os.close(handle)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two folders atomically, where the system offers it (Linux: renameat2, macOS: renamex_np)."""
    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(a), os.fsencode(b)
    at_cwd, exchange_flag, swap_flag = -100, 2, 2
    if sys.platform.startswith("linux") and hasattr(libc, "renameat2"):
        result = libc.renameat2(at_cwd, first, at_cwd, second, exchange_flag)
    elif sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        result = libc.renamex_np(first, second, swap_flag)
    else:
        return False
    if result == 0:
        return True
    if ctypes.get_errno() in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False  # a file system without it
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _same_time(folder: Path) -> None:
    """One time, in whole seconds, for everything that is handed over: how long each step took depends on the data."""
    now = int(time.time())
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (now, now))


def _flush(folder: Path) -> None:
    for path in folder.rglob("*"):
        _fsync(path)
    _fsync(folder)


def _fsync(path: Path) -> None:
    disk.fsync(path)
