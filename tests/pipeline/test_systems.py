"""Systems that lack what Linux has: Windows, played by taking away its missing calls, and refusing what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from maskwright.cli.commands import command_parser
from tests.patients import POLICY, patients, write_csv

# What Windows does otherwise, before anything of ours is imported. No file that is open is removed or renamed; folders
# are not opened; what was opened for reading is not flushed; bytes are locked by msvcrt.
WINDOWS = """
import ctypes, errno, os, shutil, signal, stat, sys, types
import numpy, duckdb, subprocess  # theirs, for this system
for name in ("fcntl", "resource"):
    sys.modules[name] = None
for name in ("pread", "geteuid", "getuid", "sysconf", "O_NOFOLLOW", "O_CLOEXEC", "fchmod"):
    if hasattr(os, name):
        delattr(os, name)
del signal.SIGHUP
shutil._use_fd_functions = False
opened, taken = {}, set()
plain = {name: getattr(os, name) for name in ("open", "close", "fsync", "unlink", "rename", "replace", "fdopen")}

def open_(path, flags, mode=0o777, **more):
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    handle = plain["open"](path, flags, mode, **more)
    opened[handle] = (os.path.realpath(path), flags)
    return handle

def close(handle):
    plain["close"](handle)
    name, _ = opened.pop(handle, (None, 0))
    taken.discard(name)

def fsync(handle):
    if handle in opened and not opened[handle][1] & (os.O_RDWR | os.O_WRONLY):
        raise OSError(errno.EBADF, "Bad file descriptor")
    plain["fsync"](handle)

def still_open():
    for handle in list(opened):
        try:
            os.fstat(handle)
        except OSError:  # closed by a file object
            taken.discard(opened.pop(handle)[0])
    return {name for name, _ in opened.values()}

def refusing(name):
    def call(path, *rest, **more):
        if not more.get("dir_fd") and os.path.realpath(path) in still_open():
            raise PermissionError(errno.EACCES, "The process cannot access the file", str(path))
        return plain[name](path, *rest, **more)
    return call

def locking(handle, mode, count):
    if os.lseek(handle, 0, os.SEEK_CUR) < 1 << 20:
        raise AssertionError("a byte is locked that others read")
    still_open()
    if opened[handle][0] in taken:
        raise PermissionError(errno.EACCES, "Permission denied")
    taken.add(opened[handle][0])

os.open, os.close, os.fsync = open_, close, fsync
for name in ("unlink", "rename", "replace"):
    setattr(os, name, refusing(name))
os.remove = os.unlink
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_LOCK=1, LK_NBLCK=2, LK_UNLCK=0)
found = ctypes.CDLL

def library(name, *rest, **more):
    if name is None:
        raise TypeError("expected str")
    return found(name, *rest, **more)

ctypes.CDLL = library
ctypes.windll = types.SimpleNamespace(
    kernel32=types.SimpleNamespace(GetPhysicallyInstalledSystemMemory=lambda kilobytes: 0)
)
"""
RUN = """
import maskwright.cli
try:
    code = maskwright.cli.main(sys.argv[1:])
except SystemExit as end:
    code = end.code
assert not still_open(), still_open()
sys.exit(code)
"""


def windows(folder: Path, *arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WINDOWS + before + RUN, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MASKWRIGHT_STATE", str(tmp_path / "state"))
    # its own: its locks are played, and real processes would take its temporary files for leftovers
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    work = tmp_path / "work"
    work.mkdir()
    write_csv(work / "patients.csv", patients(40))
    (work / "policy.yaml").write_text(POLICY, encoding="utf-8")
    return work


def test_windows_publishes_replaces_and_verifies(folder: Path) -> None:
    publish = ("anonymize", "patients.csv", "-p", "policy.yaml", "-o", "release")
    for arguments in (publish, (*publish, "--overwrite"), ("verify", "release"), ("attack", "release")):
        done = windows(folder, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(p.name for p in folder.iterdir()) == ["patients.csv", "policy.yaml", "release"], (
        "nothing is left"
    )
    assert json.loads((folder / "release/public/manifest.json").read_text("utf-8"))["format"] == 1


def test_windows_cleans_up_after_a_kill(folder: Path) -> None:
    publish = ("anonymize", "patients.csv", "-p", "policy.yaml", "-o", "release")
    killed = windows(
        folder,
        *publish,
        before="import maskwright.folder.store as s\ns.Stage.commit = lambda self: os._exit(9)\n",
    )
    assert killed.returncode == 9
    assert [p for p in folder.iterdir() if p.name.endswith(".new")], "the kill left something"
    done = windows(folder, *publish)
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in folder.iterdir()) == ["patients.csv", "policy.yaml", "release"]


def test_windows_first_policy_and_audit(folder: Path) -> None:
    assert windows(folder, "init", "patients.csv", "-o", "first.yaml").returncode == 0
    done = windows(
        folder, "audit", "patients.csv", "--qi", "age,zip", "--sensitive", "disease", "--html", "audit.html"
    )
    assert done.returncode in (0, 1), done.stderr
    assert (folder / "first.yaml").exists() and (folder / "audit.html").exists()


def test_what_runs_elsewhere_is_there() -> None:
    """The workflow for other systems names tests, files and commands that exist: nothing else would notice here."""
    root = Path(__file__).parents[2]
    workflow = yaml.safe_load((root / ".github/workflows/systems.yml").read_text("utf-8"))
    parts = workflow["jobs"]["parts"]
    assert {"windows-latest", "macos-latest"} <= set(parts["strategy"]["matrix"]["os"])
    lines = [line.split() for step in parts["steps"] for line in step.get("run", "").splitlines()]
    named = [word for line in lines for word in line if word.startswith(("tests/", "requirements"))]
    assert "tests/engines" in named
    assert [name for name in named if not (root / name).exists()] == []
    used = [line[1:] for line in lines if line[0] == "maskwright"]
    assert {words[0] for words in used} >= {"demo", "verify", "attack"}
    for words in used:
        command_parser().parse_args(words)  # ends the process where a command or an option is unknown
    assert not any("--no-build-isolation" in line for line in lines), (
        "setuptools is not among what is installed"
    )
    assert (root / workflow["jobs"]["whole"]["steps"][-1]["run"]).exists()
