"""What is put on disk outside a release folder: whole or not at all, and what a killed run left is removed later.

A process holds a lock (flock) on everything unfinished that it has on disk. Locks end with their process, however it
ends, so that a piece that can be locked belongs to nobody any more; no clock is asked. Only pieces of the same user
are removed, and links are never followed.

    .maskwright-TOKEN.part         a file being written, beside its place
    maskwright-scratch-TOKEN/      what an engine spills, in the system's folder for temporary files
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from maskwright.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:
    msvcrt = None  # type: ignore[assignment]

_TICK_NS = 10_000_000
MOST_JSON = 1 << 30  # bytes of a file that is read at once
_PART = re.compile(r"\.maskwright-[0-9a-f]{16}\.part")
_SCRATCH = re.compile(r"maskwright-scratch-[0-9a-f]{16}")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_LOCKED_BYTE = (
    1 << 30
)  # Windows locks bytes, and keeps others from reading them: one that no file of ours has
_scratch: dict[Path, int | None] = {}  # folders of this process, and what holds their locks


def write_whole(path: Path, text: str, mode: int | None = None) -> None:
    """Write a file in one step: killed at any point, there is the old file, none, or the new one.

    `mode` is who may read it; by default those who could read the old file, else whoever the umask lets.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():  # a terminal or a pipe is written to, not replaced
        path.write_text(text, encoding="utf-8")
        return
    sweep_parts(path.parent)
    if mode is None and path.exists():
        mode = stat.S_IMODE(path.stat().st_mode)
    handle, part = _new_part(path.parent, 0o666 if mode is None else 0o600)
    out = os.fdopen(handle, "w", encoding="utf-8", newline="")
    try:
        out.write(text)
        out.flush()
        if mode is not None:
            part.chmod(mode)
        os.fsync(handle)
        if fcntl is None:
            out.close()  # Windows renames and removes no file that is open
        part.replace(path)
    except BaseException:
        if fcntl is None:
            with contextlib.suppress(OSError):
                out.close()
        part.unlink(missing_ok=True)
        raise
    finally:
        out.close()
    with contextlib.suppress(OSError):  # it is there; the folder reaches the disk a little later
        fsync_path(path.parent)


def write_once(path: Path, text: str) -> None:
    """Write a private file that is never changed, whole or not at all; one that is there already stays as it is.

    Of several processes that do it at once one wins, and all find what that one wrote.
    """
    sweep_parts(path.parent)
    handle, part = _new_part(path.parent, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(handle)
            with contextlib.suppress(FileExistsError):
                os.link(part, path)
    finally:
        part.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it is there; the folder reaches the disk a little later
        fsync_path(path.parent)


def append_json(path: Path, value: Any) -> None:
    """Add a value as a line to a private file, whole or not at all; half a line of a killed process is removed."""
    append_after(path, lambda _: value)


def append_after(path: Path, value_after: Callable[[bytes], Any]) -> None:
    """The same with a value that depends on the line before it (empty: there is none); nobody writes in between."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _NOFOLLOW, 0o600)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            _flock(handle, wait=True)
        end = _end_of_lines(handle)
        os.lseek(handle, end, os.SEEK_SET)
        rest = os.read(handle, 1 << 20)
        begin = b""
        if rest and _is_json(rest):  # only its end is missing
            end, begin = end + len(rest), b"\n"
        value = value_after(_last_line(handle, end))
        # half a character is written as JSON writes it by its code
        line = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")
        data = begin + line + b"\n"
        os.ftruncate(handle, end)
        os.lseek(handle, end, os.SEEK_SET)
        try:
            while data:
                data = data[os.write(handle, data) :]
            os.fsync(handle)
        except BaseException:
            os.ftruncate(handle, end)
            raise
    finally:
        os.close(handle)


def read_json(path: Path) -> Any:
    """The JSON in a file of ours; refuses what is none, or is too large to be one. An OSError is the caller's."""
    if path.stat().st_size > MOST_JSON:
        raise InputError(f"{str(path)!r} has more than {MOST_JSON >> 20} MB; it was not written by us")
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise InputError(f"{str(path)!r} is not valid JSON; it was changed") from None


def json_lines(path: Path) -> tuple[list[Any], bool]:
    """The values of such a file, and whether it ends as it should, not with half a line."""
    *lines, rest = path.read_bytes().split(b"\n")
    whole = not rest or _is_json(rest)
    return [json.loads(line) for line in [*lines, *([rest] if whole else [])] if line.strip()], whole


def scratch_folder() -> Path:
    """A new folder for temporary files that only its owner can read. `remove_scratch` removes it; after a kill the
    next `scratch_folder` or `sweep_scratch` of the same user does."""
    place = Path(tempfile.gettempdir())
    sweep_scratch(place)
    while True:
        folder = place / f"maskwright-scratch-{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        try:
            handle = _lock_of(folder, os.O_RDONLY)
        except OSError as problem:
            if problem.errno in (errno.EWOULDBLOCK, errno.ENOENT):
                continue  # a sweeping process took it for a leftover in the instant before it was locked
            handle = None  # no locks here: then nobody can take it for a leftover
        if handle is None or _same_file(handle, folder):
            _scratch[folder] = handle
            return folder
        os.close(handle)


def remove_scratch(folder: Path) -> None:
    """Remove a folder with all that it holds."""
    shutil.rmtree(folder, ignore_errors=True)
    handle = _scratch.pop(folder, None)
    if handle is not None:
        os.close(handle)


def sweep_scratch(place: Path | None = None) -> int:
    """Remove the scratch folders of processes that no longer live; returns how many there were."""
    return sum(_swept(path) for path in _named(place or Path(tempfile.gettempdir()), _SCRATCH))


def sweep_parts(folder: Path) -> int:
    """Remove unfinished files of processes that no longer live; returns how many there were."""
    return sum(_swept(path) for path in _named(folder, _PART))


def is_own(path: Path) -> bool:
    """Is it a file or folder, itself and not a link, that belongs to this user?"""
    try:
        found = path.lstat()
    except OSError:
        return False
    own = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    return own and (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode))


def lock_new(path: Path, mode: int = 0o600) -> int | None:
    """Create a file and hold its lock; None if a sweeping process removed it in the instant between."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | _NOFOLLOW, mode)
    try:
        _flock(handle)
    except OSError as problem:
        if problem.errno == errno.EWOULDBLOCK:
            os.close(handle)
            return None
    if _same_file(handle, path):
        return handle
    os.close(handle)
    return None


def try_lock(path: Path, create: bool = False) -> int | None:
    """The lock of a piece whose process no longer lives; None when it does, or when nobody can tell."""
    try:
        return _lock_of(path, os.O_RDWR | os.O_CREAT if create else os.O_RDONLY)
    except OSError:
        return None


def remove_locked(path: Path, handle: int) -> None:
    """Remove a file whose lock is held, and give the lock back. Windows removes no file that is open."""
    if fcntl is None:
        os.close(handle)
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
    if fcntl is not None:
        os.close(handle)


def file_identity(path: Path) -> tuple[int, ...]:
    """What changes with a file: whoever rewrites it can set its size and time back, but not the time of that change.

    Clocks of file systems tick a hundred times a second: where the last tick touched the file, the next is awaited.
    """
    found = path.stat()
    for _ in range(3):  # whoever writes to it all the time will be found out later
        if abs(time.time_ns() - found.st_ctime_ns) < _TICK_NS:
            time.sleep(_TICK_NS / 1e9)
            found = path.stat()
    return found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def fsync_path(path: Path) -> None:
    """Flush a file or folder to the disk. Windows flushes files that may be written only, and no folders."""
    folder = path.is_dir()
    try:
        handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    except PermissionError:
        if folder and fcntl is None:
            return
        raise
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock_of(path: Path, flags: int) -> int:
    handle = os.open(path, flags | _NOFOLLOW, 0o600)
    try:
        _flock(handle)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _swept(path: Path) -> bool:
    if path in _scratch or not is_own(path):
        return False
    handle = try_lock(path)
    if handle is None:
        return False
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)
    else:
        remove_locked(path, handle)
    return not path.exists()


def _named(folder: Path, pattern: re.Pattern[str]) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if pattern.fullmatch(entry.name)]
    except OSError:
        return
    yield from (folder / name for name in names)


def _new_part(folder: Path, mode: int) -> tuple[int, Path]:
    while True:
        part = folder / f".maskwright-{secrets.token_hex(8)}.part"
        handle = lock_new(part, mode)
        if handle is not None:
            return handle, part


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _last_line(handle: int, end: int) -> bytes:
    """The line that ends there, without its end."""
    begin = _end_of_lines(handle, max(0, end - 1))
    os.lseek(handle, begin, os.SEEK_SET)
    return os.read(handle, end - begin).rstrip(b"\n")


def _end_of_lines(handle: int, before: int | None = None) -> int:
    """Where the last whole line of a file ends, or the last one before a place."""
    position, block = os.fstat(handle).st_size if before is None else before, 4096
    while position:
        start = max(0, position - block)
        os.lseek(handle, start, os.SEEK_SET)
        found = os.read(handle, position - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return 0


def _flock(handle: int, wait: bool = False) -> None:
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt is not None:
        _lock_byte(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK)
    else:  # then no leftover is ever taken for a dead process's
        raise OSError(errno.ENOTSUP, "no locks")


def _lock_byte(handle: int, mode: int) -> None:
    os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(handle, mode, 1)  # type: ignore[attr-defined]
    except OSError:
        raise BlockingIOError(errno.EWOULDBLOCK, "somebody else holds the lock") from None
    finally:
        os.lseek(handle, 0, os.SEEK_SET)


def _same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False
