"""Files are written whole or not at all; leftovers of dead processes are removed, and nothing else is."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from maskwright.runtime import disk

PART = ".maskwright-0123456789abcdef.part"
SCRATCH = "maskwright-scratch-0123456789abcdef"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_file_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    disk.write_whole(path, "one\n")
    path.chmod(0o640)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            disk.write_whole(path, "two\n")
    assert path.read_text() == "one\n"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    disk.write_whole(path, "two\n")
    assert (path.read_text(), mode(path)) == ("two\n", 0o640)
    disk.write_whole(path, "three\n", mode=0o600)
    assert mode(path) == 0o600


def test_who_may_read_a_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        disk.write_whole(tmp_path / "usual", "x")
        disk.write_whole(tmp_path / "private", "x", mode=0o600)
    finally:
        os.umask(before)
    assert (mode(tmp_path / "usual"), mode(tmp_path / "private")) == (0o640, 0o600)


def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    disk.write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    disk.write_whole(Path(os.devnull), "gone")
    assert not Path(os.devnull).is_file()


def test_unfinished_files_of_the_dead_are_removed(tmp_path: Path) -> None:
    (tmp_path / PART).write_text("half")
    (tmp_path / ".maskwright-mine.part").write_text("not ours")
    handle = disk.lock_new(tmp_path / PART.replace("0", "f"))
    assert handle is not None
    disk.write_whole(tmp_path / "a", "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        ".maskwright-f123456789abcdef.part", ".maskwright-mine.part", "a",
    ]  # fmt: skip
    os.close(handle)


def test_half_a_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    disk.append_json(path, ["one"])
    with path.open("ab") as file:
        file.write(b'["tw')
    assert disk.json_lines(path) == ([["one"]], False)
    disk.append_json(path, "three " * 2000)
    assert disk.json_lines(path) == ([["one"], "three " * 2000], True)
    assert mode(path) == 0o600
    with path.open("wb") as file:
        file.write(b"x" * 9000)
    disk.append_json(path, 1)
    assert path.read_bytes() == b"1\n"


def test_a_line_whose_end_is_missing_counts(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b'"one"\n"two"')
    assert disk.json_lines(path) == (["one", "two"], True)
    disk.append_json(path, "three")
    assert path.read_bytes() == b'"one"\n"two"\n"three"\n'


def test_a_line_that_does_not_fit_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines"
    disk.append_json(path, "one")
    write = os.write

    def short(handle: int, data: bytes) -> int:
        if len(data) < 4:
            raise OSError(28, "No space left on device")
        return write(handle, data[: len(data) // 2])

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", short)
        with pytest.raises(OSError, match="No space"):
            disk.append_json(path, "a long line")
    assert path.read_bytes() == b'"one"\n'


def test_scratch_of_a_killed_process_is_removed_at_the_next_start(temp: Path) -> None:
    code = (
        "import os, tempfile; from maskwright.runtime import disk; f = disk.scratch_folder(); "
        "(f / 'raw').write_text('x'); print(f, flush=True); {}"
    )
    command = [sys.executable, "-c", code.format("os.kill(os.getpid(), 9)")]
    environment = {**os.environ, "TMPDIR": str(temp)}
    killed = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    left = Path(killed.stdout.strip())
    assert (left / "raw").exists()
    assert mode(left) == 0o700
    command = [sys.executable, "-c", code.format("input()")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as other:
        assert other.stdout is not None
        living = Path(other.stdout.readline().strip())
        mine = disk.scratch_folder()
        assert not left.exists()
        assert living.exists(), "the folder of a process that lives"
        assert disk.sweep_scratch() == 0
        assert mine.exists()
        disk.remove_scratch(mine)
        assert not mine.exists()
        other.kill()
    assert disk.sweep_scratch() == 1
    assert not living.exists()


def test_what_is_not_ours_is_not_touched(temp: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    victim = tmp_path_factory.mktemp("victim")
    (victim / "file").write_text("precious")
    (temp / SCRATCH).symlink_to(victim)
    (temp / "maskwright-scratch-of-mine").mkdir()
    disk.remove_scratch(disk.scratch_folder())
    assert (victim / "file").exists()
    assert sorted(p.name for p in temp.iterdir()) == [SCRATCH, "maskwright-scratch-of-mine"]
    (temp / SCRATCH).unlink()
    (temp / SCRATCH).mkdir()
    if os.geteuid() == 0:
        os.chown(temp / SCRATCH, 65534, 65534)
        assert disk.sweep_scratch() == 0, "somebody else's"
        os.chown(temp / SCRATCH, 0, 0)
    assert disk.sweep_scratch() == 1


def test_a_file_that_is_rewritten_is_another(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("one")
    before, times = disk.file_identity(path), path.stat()
    assert disk.file_identity(path) == before
    path.write_text("two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_mtime_ns == times.st_mtime_ns
    assert disk.file_identity(path) != before
