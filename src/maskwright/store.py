"""Release folders on disk: built beside their destination, flushed, and renamed into place in one step.

Killed at any point, the destination is the old release, nothing, or the new one; never a part. What a killed
run left behind is cleaned up, or put back, by `recover` at the next start. The pieces, for a destination `d`:

    .d.maskwright-TOKEN.lock   held (flock) while the run lives
    .d.maskwright-TOKEN.new    the release being built, and the engine's spill files; readable by its owner only
    .d.maskwright-TOKEN.old    the old release while it is being replaced, where no atomic exchange exists
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
import sys
import time
from pathlib import Path
from types import TracebackType

from maskwright.errors import DestinationError

MARK = "maskwright-"
PUBLIC, PRIVATE, MANIFEST = "public", "private", "manifest.json"


def is_release(path: Path) -> bool:
    """Does this folder hold a release of ours?"""
    return (path / PUBLIC / MANIFEST).is_file()


def check_destination(destination: Path, overwrite: bool) -> None:
    """Refuse, before any work is done, a place where the release could not be put."""
    parent = destination.parent
    if not parent.is_dir():
        raise DestinationError(f"the folder {str(parent)!r} does not exist; create it first")
    if destination.exists() or destination.is_symlink():
        if not destination.is_dir() or not is_release(destination):
            raise DestinationError(
                f"{str(destination)!r} exists and is not a Maskwright release; choose another place with -o"
            )
        if not overwrite:
            raise DestinationError(f"{str(destination)!r} exists; use --overwrite to replace that release")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise DestinationError(f"the folder {str(parent)!r} is not writable; choose another place with -o")


class Staging:
    """A private folder beside the destination. Use as a context manager: without `commit` nothing remains."""

    def __init__(self, destination: Path, overwrite: bool = False) -> None:
        destination = Path(os.path.abspath(destination))  # noqa: PTH100 - resolve() would follow a symlink
        check_destination(destination, overwrite)
        self.destination = destination
        self.overwrite = overwrite
        try:
            self._lock, self.token = _acquire(destination)
            self.folder = _piece(destination, self.token, "new")
            self.folder.mkdir(mode=0o700)
            self.release = self.folder / "release"
            (self.release / PUBLIC).mkdir(parents=True)
            (self.release / PRIVATE).mkdir(mode=0o700)
            self.spill = self.folder / "spill"
            self.spill.mkdir(mode=0o700)
        except OSError as problem:
            raise _cannot_write(destination, problem) from None

    @property
    def public(self) -> Path:
        return self.release / PUBLIC

    @property
    def private(self) -> Path:
        return self.release / PRIVATE

    def commit(self) -> None:
        """Flush everything to disk and put the release in place."""
        try:
            for path in sorted(self.private.rglob("*")):
                path.chmod(0o700 if path.is_dir() else 0o600)
            _same_time(self.public)
            _flush(self.release)
            if self.destination.exists():
                if not self.overwrite:
                    raise DestinationError(
                        f"{str(self.destination)!r} appeared meanwhile; nothing was published"
                    )
                self._replace()
            else:
                self.release.rename(self.destination)
            _fsync(self.destination.parent)
        except OSError as problem:
            raise _cannot_write(self.destination, problem) from None

    def _replace(self) -> None:
        if _exchange(self.release, self.destination):
            return
        aside = _piece(self.destination, self.token, "old")
        self.destination.rename(aside)
        self.release.rename(self.destination)
        _fsync(self.destination.parent)
        shutil.rmtree(aside, ignore_errors=True)

    def close(self) -> None:
        if self.folder.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
        _release(self._lock, _piece(self.destination, self.token, "lock"))

    def __enter__(self) -> Staging:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def recover(destination: Path) -> list[str]:
    """Clean up after runs that were killed: put back what was moved aside, remove what was half built.

    Runs that are still alive hold their lock and are left alone. Returns what was done, in words.
    """
    destination = Path(os.path.abspath(destination))  # noqa: PTH100
    done: list[str] = []
    tokens = set()
    with contextlib.suppress(OSError):
        for path in destination.parent.iterdir():
            prefix = f".{destination.name}.{MARK}"
            if path.name.startswith(prefix):
                tokens.add(path.name.removeprefix(prefix).split(".")[0])
    for token in sorted(tokens):
        lock = _piece(destination, token, "lock")
        handle = _try_lock(lock)
        if handle is None:
            continue
        aside, building = _piece(destination, token, "old"), _piece(destination, token, "new")
        if aside.exists():
            if not destination.exists():
                aside.rename(destination)
                done.append(
                    "an earlier run was killed while replacing the release: the old release was put back"
                )
            else:
                shutil.rmtree(aside, ignore_errors=True)
        if building.exists():
            shutil.rmtree(building, ignore_errors=True)
            done.append("the unfinished files of an earlier run that was killed were removed")
        _release(handle, lock)
    return done


def _piece(destination: Path, token: str, what: str) -> Path:
    return destination.parent / f".{destination.name}.{MARK}{token}.{what}"


def _acquire(destination: Path) -> tuple[int, str]:
    while True:
        token = secrets.token_hex(8)
        path = _piece(destination, token, "lock")
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        if _flock(handle) and _same_file(handle, path):
            return handle, token
        os.close(handle)  # a recovering process took it for a leftover in the instant before it was locked


def _try_lock(path: Path) -> int | None:
    """The lock of a run that no longer lives, or None when the run does."""
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    if _flock(handle):
        return handle
    os.close(handle)
    return None


def _release(handle: int, path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
    os.close(handle)


def _flock(handle: int) -> bool:
    try:
        import fcntl  # not on every system: there, no leftover is ever taken for a dead run's
    except ImportError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False


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
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _cannot_write(destination: Path, problem: OSError) -> DestinationError:
    return DestinationError(
        f"cannot write the release to {str(destination)!r}: {problem.strerror or problem}"
    )
