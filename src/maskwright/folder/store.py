"""Release folders on disk: built beside their destination, flushed, and renamed into place in one step.

Killed at any point, the destination is the old release, nothing, or the new one; never a part. What a killed run left
behind is cleaned up, or put back, by `recover_destination` at the next start. The pieces, for a destination `d`:

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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from maskwright.errors import DestinationError, InputError
from maskwright.runtime import disk

MARK = "maskwright-"
PUBLIC, PRIVATE, MANIFEST = "public", "private", "manifest.json"
FORMAT, PRODUCT = 1, "maskwright "  # what the manifests of a release say: their layout, and who wrote them
CONTENT = "release"
NAMED = 3  # files of somebody else that a message names


def release_files(folder: Path) -> set[str] | None:
    """The files that the manifests of a release list, and the manifests; None: it is no release of ours."""
    public = read_object(folder / PUBLIC / MANIFEST)
    if public.get("format") != FORMAT or not isinstance(public.get("tables"), list):
        return None
    listed = set[str]()
    for part, manifest in ((PUBLIC, public), (PRIVATE, read_object(folder / PRIVATE / MANIFEST))):
        files = manifest.get("files")
        if isinstance(files, dict) and str(manifest.get("product")).startswith(PRODUCT):
            listed |= {f"{part}/{name}" for name in (MANIFEST, *files)}
        elif part == PUBLIC:
            return None
    return listed


# what reading a value raises that is valid JSON and not what was written
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a release; refused where there is none."""
    try:
        value = disk.read_json(path)
    except OSError as problem:
        raise InputError(f"{str(path)!r} cannot be read ({problem.strerror}); is this a release?") from None
    if not isinstance(value, dict):
        raise InputError(f"{str(path)!r} is not a manifest of ours")
    return value


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty where there is none."""
    try:
        return read_json(path)
    except InputError:
        return {}


@dataclass(frozen=True)
class Kind:
    """What a folder is: its name for people, and the files that one says it has (None: it is not one)."""

    name: str
    files: Callable[[Path], set[str] | None]
    mode: int = 0o777


RELEASE = Kind("Maskwright release", release_files)


def check_destination(
    destination: Path, overwrite: bool, kind: Kind = RELEASE, inputs: Iterable[Path] = ()
) -> None:
    """Refuse, before any work is done, a place where the folder could not be put.

    A folder is replaced only when it is one of the same kind, holds nothing that it does not list, and none of the
    `inputs` lies in it.
    """
    parent = destination.parent
    word, shown = kind.name.split()[-1], repr(str(destination))
    if not parent.is_dir():
        raise DestinationError(f"the folder {str(parent)!r} does not exist; create it first")
    if destination.is_symlink():
        raise DestinationError(f"{shown} is a link to another place; name that place itself with -o")
    if destination.exists():
        listed = kind.files(destination) if destination.is_dir() else None
        if listed is None:
            raise DestinationError(f"{shown} exists and is not a {kind.name}; choose another place with -o")
        check_inputs(destination, inputs)
        foreign = sorted(_present(destination) - listed)
        if foreign:
            names = ", ".join(map(repr, foreign[:NAMED]))
            more = f" and {len(foreign) - NAMED} more" if len(foreign) > NAMED else ""
            raise DestinationError(
                f"{shown} holds files that are not of that {word}: {names}{more}; "
                "move them elsewhere, or choose another place with -o"
            )
        if not overwrite:
            raise DestinationError(f"{shown} exists; use --overwrite to replace that {word}")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise DestinationError(f"the folder {str(parent)!r} is not writable; choose another place with -o")


def check_inputs(destination: Path, inputs: Iterable[Path]) -> None:
    """Refuse to replace a file or folder that is, or holds, something that is read, wherever links and mounts lead."""
    held = _identities(destination)
    for path in inputs:
        real = Path(os.path.realpath(path))
        if _identity(real) in held or any(_same(place, destination) for place in real.parents):
            where = "is" if _same(real, destination) else "lies in"
            raise DestinationError(
                f"the input {str(path)!r} {where} {str(destination)!r}, which would be replaced; "
                "choose another place for what is written"
            )


def _identity(path: Path) -> tuple[int, int] | None:
    """The file itself, by whatever name; None where there is none."""
    try:
        found = path.stat(follow_symlinks=False)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _identities(place: Path) -> set[tuple[int, int] | None]:
    """A file, or a folder with everything in it: a part of it may have a second name elsewhere (links, mounts)."""
    names = (Path(root) / name for root, folders, files in os.walk(place) for name in (*folders, *files))
    return {_identity(path) for path in (Path(os.path.realpath(place)), *names)} - {None}


def _same(one: Path, two: Path) -> bool:
    try:
        return one.samefile(two)
    except OSError:
        return False


def _present(folder: Path) -> set[str]:
    """Everything in a folder that is not itself a folder; of a link it is not asked where it leads.

    What cannot be looked into counts as a file, and so does a link by a name that no list has.
    """
    found, unread = set[str](), list[OSError]()
    for root, folders, files in os.walk(folder, onerror=unread.append):
        here = Path(root).relative_to(folder)
        for name in (*files, *folders):
            link = (folder / here / name).is_symlink()
            if link or name in files:
                found.add((here / name).as_posix() + (" (a link)" if link else ""))
    return found | {Path(problem.filename).relative_to(folder).as_posix() for problem in unread}


def is_readable(file: Path) -> bool:
    """Is a file there, and may it be read? What is in private/ may be read by the owner alone."""
    try:
        return file.is_file() and os.access(file, os.R_OK)
    except PermissionError:
        return False


class Stage:
    """A private folder beside the destination. Use as a context manager: without `commit` nothing remains.

    What is to be put in place is `content`; `folder`, which holds it, may hold other temporary files.
    """

    def __init__(
        self, destination: Path, overwrite: bool = False, kind: Kind = RELEASE, inputs: Iterable[Path] = ()
    ) -> None:
        destination = Path(os.path.abspath(destination))  # noqa: PTH100 - resolve() would follow a symlink
        self.destination, self.overwrite, self.kind, self.inputs = destination, overwrite, kind, tuple(inputs)
        self._check()
        try:
            self._lock, self.token = _acquire(destination)
        except OSError as problem:
            raise self._cannot_write(problem) from None
        self.folder = _piece(destination, self.token, "new")
        self.content = self.folder / CONTENT
        try:
            self.folder.mkdir(mode=0o700)
            self.content.mkdir(mode=kind.mode)
            self.fill()
        except BaseException as problem:
            self.close()
            if isinstance(problem, OSError):
                raise self._cannot_write(problem) from None
            raise

    def _check(self) -> None:
        check_destination(self.destination, self.overwrite, self.kind, self.inputs)

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
                self._check()  # somebody may have put something there meanwhile
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
        """Remove the folder and its lock."""
        if self.folder.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
        disk.remove_locked(_piece(self.destination, self.token, "lock"), self._lock)

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
        """Make the folders inside, private ones for the owner alone."""
        self.public.mkdir()
        self.private.mkdir(mode=0o700)
        self.spill = self.folder / "spill"
        self.spill.mkdir(mode=0o700)

    def protect(self) -> None:
        """Make private files readable by the owner alone, and give public ones the same time."""
        for path in sorted(self.private.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
        _same_time(self.public)

    @property
    def public(self) -> Path:
        """The folder of what is published."""
        return self.content / PUBLIC

    @property
    def private(self) -> Path:
        """The folder of what stays with the publisher."""
        return self.content / PRIVATE


def recover_destination(destination: Path) -> list[str]:
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
        found = [p for p in destination.parent.iterdir() if pattern.fullmatch(p.name) and disk.is_own(p)]
    for token in sorted({p.name.rsplit(".", 2)[1].removeprefix(MARK) for p in found}):
        lock = _piece(destination, token, "lock")
        handle = disk.try_lock(lock, create=True)
        if handle is not None:
            with contextlib.suppress(OSError):
                done += _settle(destination, token)
            disk.remove_locked(lock, handle)
    return done


def _settle(destination: Path, token: str) -> list[str]:
    """What a run that no longer lives left behind: the old release is put back, the rest removed."""
    done = []
    aside, building = _piece(destination, token, "old"), _piece(destination, token, "new")
    if disk.is_own(aside):
        if not destination.exists():
            aside.rename(destination)
            done.append("an earlier run was killed while replacing the release: the old release was put back")
        elif (
            building / CONTENT
        ).exists():  # the new one never came to its place: this one is somebody else's
            kept = destination.with_name(f"{destination.name}-old-{token}")
            aside.rename(kept)
            done.append(
                f"an earlier run was killed while replacing the release: the old one is {str(kept)!r}"
            )
        else:
            shutil.rmtree(aside, ignore_errors=True)
    if disk.is_own(building):
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


def _exchange(a: Path, b: Path) -> bool:
    """Swap two folders atomically, where the system offers it (Linux: renameat2, macOS: renamex_np)."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
    except TypeError:  # Windows, which has no library of the process itself
        return False
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
    disk.fsync_path(path)
