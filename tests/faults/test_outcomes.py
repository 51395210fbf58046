"""Single faults that were found once, each with what must come of it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import maskwright as mw
from maskwright.cli.process import Stopping
from maskwright.errors import InputError, UsageError
from maskwright.runtime.events import Event
from maskwright.workbench import workspace
from tests.amounts import cases, crossed
from tests.patients import POLICY, Command, leftovers, patients, write_csv
from tests.support import unavailable

COMMAND = [sys.executable, "-m", "maskwright.cli"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    return write_csv(tmp_path / "p.csv", patients())


def anonymize(folder: Path, *more: str) -> list[str]:
    return [*COMMAND, "anonymize", str(folder / "p.csv"), "-p", str(folder / "policy.yaml"), "-o", "r", *more]


# --- the input changes --------------------------------------------------------------------------------


def rewriting(source: Path, other: bytes) -> Callable[[Event], None]:
    """Write other content of the same size, and set the time back, when the search begins."""

    def changed(event: Event) -> None:
        if event.text == "searching":
            times = source.stat()
            source.write_bytes(other)
            os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
            assert source.stat().st_size == times.st_size

    return changed


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("where", ["folder", "memory"])
def test_an_input_that_is_rewritten_with_the_same_size_and_time(
    table: Path, tmp_path: Path, kind: str, where: str
) -> None:
    source, other = table, table.read_bytes().replace(b",A\r", b",X\r")
    if kind == "parquet":
        import duckdb

        (tmp_path / "q.csv").write_bytes(other)
        for name in ("p", "q"):
            rows = duckdb.read_csv(str(tmp_path / f"{name}.csv"), all_varchar=True)
            rows.write_parquet(str(tmp_path / f"{name}.parquet"), compression="uncompressed")
        source, other = tmp_path / "p.parquet", (tmp_path / "q.parquet").read_bytes()
    assert other != source.read_bytes()
    destination = tmp_path / "r" if where == "folder" else None
    with pytest.raises(InputError, match="changed while"):
        mw.anonymize(source, tmp_path / "policy.yaml", destination, on_event=rewriting(source, other))
    assert not (tmp_path / "r").exists()
    assert not leftovers(tmp_path)


def test_an_engine_that_does_not_start_leaves_nothing(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    with pytest.raises(UsageError, match="not an amount"):
        mw.anonymize(table, tmp_path / "policy.yaml", memory="lots")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_half_a_record_of_what_was_tried_is_no_all_clear(table: Path, tmp_path: Path) -> None:
    """Whoever was killed while noting it may have tried something: nothing is guaranteed, once."""
    first = mw.anonymize(table, tmp_path / "policy.yaml")
    assert first.history["chosen_by_looking"] is False
    [record] = Path(os.environ["MASKWRIGHT_STATE"]).rglob("*.jsonl")
    record.write_bytes(record.read_bytes() + b'{"day": "20')
    assert mw.anonymize(table, tmp_path / "policy.yaml").history["damaged"] is True
    assert mw.anonymize(table, tmp_path / "policy.yaml").history["damaged"] is False


def test_a_workspace_that_was_half_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed, or without space, when it is made: the next start goes on."""

    def full(path: Path, value: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(workspace, "write_json", full)
        with pytest.raises(UsageError, match="No space left"):
            workspace.Workspace(tmp_path / "space")
    workspace.Workspace(tmp_path / "space").close()


# --- stopping -----------------------------------------------------------------------------------------


def test_who_asks_to_stop_too_late_is_told_the_truth(table: Path, tmp_path: Path) -> None:
    place = tmp_path / "r"
    made = mw.anonymize(table, tmp_path / "policy.yaml", place, cancelled=place.exists)
    assert made.path == place, "it was published, so nobody may say that nothing was"


@pytest.mark.parametrize("text", ["Query interrupted", "Traceback …\nKeyboardInterrupt: \n"])
def test_what_the_engine_makes_of_a_ctrl_c(table: Path, tmp_path: Path, text: str) -> None:
    def stopped(event: Event) -> None:
        if event.text == "recoding":
            raise RuntimeError(text)

    with pytest.raises(KeyboardInterrupt):
        mw.anonymize(table, tmp_path / "policy.yaml", tmp_path / "r", on_event=stopped)
    assert not (tmp_path / "r").exists()


def test_signals_that_were_ignored_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Stopping(ends_here=False):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)  # the second one does not disturb the cleaning up
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_ctrl_c_in_a_finalizer_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    class Thing:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    with Stopping(ends_here=False) as stopping:
        thing = Thing()
        del thing
        assert stopping.is_set(), "so that the next step of the run stops"
    assert "Exception ignored" not in capfd.readouterr().err


@pytest.mark.parametrize("asked", [True, False])
def test_what_a_ctrl_c_left_ends_quietly(asked: bool) -> None:
    """A context that the signal left open is closed as Python ends, after what it needs; other errors are shown."""
    program = f"""
import contextlib, os, signal
from maskwright.cli.process import Stopping

@contextlib.contextmanager
def context():
    try:
        yield
    finally:
        raise RuntimeError("closed already")

left = context()
left.__enter__()
signal.signal(signal.SIGINT, signal.default_int_handler)
with Stopping(ends_here=True), contextlib.suppress(KeyboardInterrupt):
    if {asked}:
        os.kill(os.getpid(), signal.SIGINT)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ("closed already" in done.stderr) != asked, done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_command(table: Path, tmp_path: Path, number: signal.Signals) -> None:
    command = anonymize(tmp_path, "--verbose")

    def usual() -> None:  # whoever runs the tests may ignore it
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)

    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=usual
    ) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline()]  # it has begun
        process.send_signal(number)
        lines += process.stderr.readlines()
    assert process.returncode == 130, lines
    assert [x for x in lines if x.startswith("maskwright: ")] == [
        "maskwright: cancelled; nothing was published\n"
    ]
    assert "Traceback" not in "".join(lines)
    assert not (tmp_path / "r").exists()
    assert not leftovers(tmp_path)


@pytest.mark.parametrize(
    ("number", "published"), crossed([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], [True, False])
)
def test_a_signal_after_the_command(
    table: Path, tmp_path: Path, number: signal.Signals, published: bool
) -> None:
    """As Python ends: a second Ctrl-C, say, which must not change what was said, nor add to it."""
    program = (
        "import atexit, os, signal, sys\n"
        "from maskwright.cli import main\n"
        f"signal.signal({number}, signal.default_int_handler if {number} == 2 else signal.SIG_DFL)\n"
        f"atexit.register(lambda: [os.kill(os.getpid(), {number}), sum(range(1000))])\n"
        "sys.exit(main())"
    )
    arguments = anonymize(tmp_path, *([] if published else ["--seed", "many"]))[len(COMMAND) :]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0 if published else 2, False), done.stderr
    assert (tmp_path / "r").exists() == published


# --- nobody reads what is printed ---------------------------------------------------------------------


def unread(command: list[str], folder: Path) -> tuple[int, str]:
    """Run a command whose output is a pipe that nobody reads."""
    out, into = os.pipe()
    os.close(out)
    done = subprocess.run(command, cwd=folder, stdout=into, stderr=subprocess.PIPE, text=True, check=False)
    os.close(into)
    return done.returncode, done.stderr


def test_a_verdict_that_cannot_be_told_is_no_success(table: Path, tmp_path: Path) -> None:
    code, text = unread(anonymize(tmp_path), tmp_path)
    assert (code, "Traceback" in text) == (0, False), "published, and verified"
    with (tmp_path / "r/public/data-card.html").open("a") as file:
        file.write("changed")
    assert unread([*COMMAND, "verify", "r"], tmp_path) == (1, ""), "0 would say that it is verified"


def shell(command: list[str], streams: str, folder: Path) -> tuple[int, str, str]:
    """Run a command in a shell that does something to its streams: exit code, stdout and stderr."""
    done = subprocess.run(
        ["sh", "-c", f'"$@" {streams}', "sh", *command], cwd=folder, capture_output=True, text=True, check=False
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


STREAMS = [">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", ">/dev/full 2>/dev/full"]


@pytest.mark.parametrize("streams", cases(STREAMS, brief=["<&- >&- 2>&-", ">/dev/full"]))
def test_the_exit_code_is_true_whatever_happens_to_the_streams(
    table: Path, tmp_path: Path, streams: str
) -> None:
    code, _, text = shell(anonymize(tmp_path), streams, tmp_path)
    assert (code, "Traceback" in text) == (0, False), text
    assert (tmp_path / "r/public/manifest.json").exists()
    if streams == ">/dev/full":
        assert text.endswith(
            "maskwright: cannot write the output: No space left on device; what was made is in its place\n"
        )
    code, _, text = shell(anonymize(tmp_path), streams, tmp_path)
    assert (code, "Traceback" in text) == (2, False), "it exists"
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy.read_text().replace("l: 2", "l: 5"))
    refused = [*anonymize(tmp_path)[:-1], "new"]
    code, _, text = shell(refused, streams, tmp_path)
    assert (code, "Traceback" in text) == (1, False), "not met"
    assert not leftovers(tmp_path)
    told = 2 if ">/dev/full" in streams.split() else 0
    for command in (["verify", "r"], ["models"]):
        code, _, text = shell([*COMMAND, *command], streams, tmp_path)
        assert (code, "Traceback" in text, "Exception" in text) == (told, False, False), command
    with (tmp_path / "r/public/data-card.html").open("a") as file:
        file.write("changed")
    assert shell([*COMMAND, "verify", "r"], streams, tmp_path)[0] == 1


@pytest.mark.parametrize("command", [["schema"], ["models"], ["--help"]])
def test_a_reader_that_has_read_enough_is_no_error(command: list[str], tmp_path: Path) -> None:
    assert unread([*COMMAND, *command], tmp_path) == (0, "")


def test_a_terminal_that_knows_few_characters(table: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [*anonymize(tmp_path)[:-1], "Erklärung"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert (done.returncode, "internal error" in done.stderr) == (0, False)
    assert "Erkl\\xe4rung/public" in done.stdout


# --- places that cannot be written to -----------------------------------------------------------------


@pytest.fixture
def protected(tmp_path: Path) -> Iterator[Path]:
    """A file system that is read-only, with a release and a leftover of a killed run in it."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=False).returncode:
        unavailable("a file system cannot be mounted (needs root)")
    try:
        mw.anonymize(
            write_csv(tmp_path / "p.csv", patients()), mw.Policy.load(_policy(tmp_path)), place / "r"
        )
        (place / ".r.maskwright-0123456789abcdef.new").mkdir()
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def _policy(folder: Path) -> Path:
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    return folder / "policy.yaml"


def test_a_read_only_disk(protected: Path, tmp_path: Path, maskwright: Command) -> None:
    for name, more in (("r", ["--overwrite"]), ("new", [])):
        command = anonymize(tmp_path, *more)[len(COMMAND) :]
        command[command.index("-o") + 1] = str(protected / name)
        done = maskwright(*command)
        assert done.code == 2
        assert [x for x in done.err.splitlines() if not x.startswith("note: ")] == [
            f"maskwright: the folder {str(protected)!r} is not writable; choose another place with -o"
        ]
    verified = maskwright("verify", protected / "r")
    assert (verified.code, verified.err) == (0, "")
    for command in (["init", str(tmp_path / "p.csv"), "-o", str(protected / "policy.yaml")],
                    ["audit", str(tmp_path / "p.csv"), "--qi", "sex", "--html", str(protected / "a.html")],
                    ["compare", str(tmp_path / "p.csv"), "-p", str(tmp_path / "policy.yaml"), "-o",
                     str(protected / "c")]):  # fmt: skip
        done = maskwright(*command)
        assert (done.code, done.err.count("maskwright: "), "Traceback" in done.err) == (2, 1, False)


# --- too little memory for data -----------------------------------------------------------------------


@pytest.mark.parametrize("megabytes", cases([120, 180, 240], brief=[180]))
def test_what_a_limit_of_data_leaves_is_gone_after_the_next_run(
    table: Path, tmp_path: Path, megabytes: int
) -> None:
    """A library may end the process by itself, which no code of ours can follow: then it was as good as killed."""
    resource = pytest.importorskip("resource", reason="limits of processes are those of Unix")
    limit = megabytes << 20
    first = subprocess.run(
        anonymize(tmp_path), cwd=tmp_path, capture_output=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
    )  # fmt: skip
    assert first.returncode == 0 or not (tmp_path / "r").exists()
    again = subprocess.run(anonymize(tmp_path, "--overwrite"), cwd=tmp_path, capture_output=True, check=False)
    assert again.returncode == 0, again.stderr
    assert leftovers(tmp_path) == []
