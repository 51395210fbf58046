"""Settings for all tests."""

import gc
import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.amounts import LONG, amount, hurry
from tests.costs import COLLECTED, NAME, STARTED, cost_table, costliest, cpu_seconds, folder_of
from tests.patients import POLICY, Command, Outcome, patients, write_csv

# Nothing is ever written to the home of whoever runs the tests, not even between two of them.
_STATE = os.path.join(tempfile.gettempdir(), f"maskwright-test-state-{os.getpid()}-{os.urandom(6).hex()}")  # noqa: PTH118
os.environ["MASKWRIGHT_STATE"] = _STATE
os.environ.pop("MASKWRIGHT_KEY_FILE", None)

# Signals as in a terminal, also for the processes that tests start: in the background of a shell, or under nohup, they
# are ignored, and a process hands that on to those that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

# The number of examples is that of all properties. Machines are shared and noisy: how long one takes says nothing.
settings.register_profile("maskwright", deadline=None, max_examples=amount(20, 1_000))
settings.load_profile("maskwright")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Each test has a memory and a key of its own: what was tried on a table in another test does not count here."""
    os.environ["MASKWRIGHT_STATE"] = f"{_STATE}-{os.urandom(6).hex()}"  # made only when somebody writes to it
    item.stash[STARTED] = cpu_seconds()


def pytest_runtest_teardown() -> None:
    import shutil

    shutil.rmtree(os.environ.get("MASKWRIGHT_STATE", _STATE), ignore_errors=True)
    os.environ["MASKWRIGHT_STATE"] = _STATE


def pytest_unconfigure() -> None:
    import shutil

    gc.unfreeze()
    shutil.rmtree(_STATE, ignore_errors=True)


gc.disable()  # while the tests are collected


def pytest_collection_finish() -> None:
    """Thousands of tests and all modules stay until the end: looking through them again and again for what is not
    needed took a fifth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()


@pytest.fixture(autouse=True)
def _short_searches() -> Iterator[pytest.MonkeyPatch]:
    """A search of a lattice too large to be listed uses its time: no test waits for that, unless it says `budget_s`."""
    with (
        pytest.MonkeyPatch.context() as patched
    ):  # a test's own `monkeypatch` is undone before its other fixtures
        if module := sys.modules.get("maskwright.methods.optimal_lattice"):
            patched.setattr(module, "BUDGET_S", 3.0)
        yield patched


# Folders whose tests are about what is believed, and how sure that is
PATIENT = ("attacks", "differential", "experiments", "golden", "promise", "worlds")


@pytest.fixture
def unhurried() -> None:
    """Attacks take all their seconds: for a test, elsewhere, of what they find."""


@pytest.fixture(autouse=True)
def hasty(request: pytest.FixtureRequest) -> Iterator[None]:
    """Attacks on possible worlds take a tenth of their seconds where others test what they find."""
    wanted = "unhurried" in request.fixturenames
    # not `monkeypatch`: what a test patches would then stay until its other fixtures have ended
    with pytest.MonkeyPatch.context() as patched:
        if not LONG and not wanted and folder_of(request.node.nodeid) not in PATIENT:
            hurry(patched)
        yield


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "patients.csv", patients())


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


@pytest.fixture
def command_process(tmp_path: Path) -> Command:
    """Run the real command in a process of its own, in the test's folder."""

    def command(*arguments: object) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "maskwright.cli", *map(str, arguments)],
            cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        return Outcome(done)

    return command


@pytest.fixture
def maskwright(tmp_path: Path, command_process: Command) -> Command:
    """Run the command in the test's folder; in this process, which has imported all that it needs. The long run
    gives each a process of its own."""
    from maskwright.cli import main

    def command(*arguments: object) -> Outcome:
        out, err = io.StringIO(), io.StringIO()
        listed = list(map(str, arguments))
        with chdir(tmp_path), redirect_stdout(out), redirect_stderr(err):
            code = main(listed)
        return Outcome(subprocess.CompletedProcess(listed, code, out.getvalue(), err.getvalue()))

    return command_process if LONG else command


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: some tests wait for a browser, a server or a disk."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return usable + 1


TOGETHER = ("spark", "postgres", "browser")  # folders whose tests share a server, a cluster or a browser


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of such a folder run in one process, which starts what they share once; all others run anywhere.

    (Not by marks: xdist 3.8 writes groups into `_nodeid`, where pytest 9 does not look.)
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFolder(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            folder = folder_of(nodeid)
            return folder if folder in TOGETHER else nodeid

    return ByFolder(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long begins first, so that no process has it left over when the others have ended."""
    config.stash[COLLECTED] = [(item.nodeid, item.get_closest_marker("long") is not None) for item in items]
    first = ("spark", "faults", "experiments", "browser")
    order = {folder: i for i, folder in enumerate(first)}
    items.sort(key=lambda item: order.get(folder_of(item.nodeid), len(first)))


COUNTED = {
    "tables": "random tables compared",
    "mutations": "mutated releases verified",
    "inputs": "inputs fed",
    "moments": "moments at which something went wrong",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", action="store_true", help="end with the seconds of CPU of folders and tests")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    """Write what a test cost into the report on its end (the first one pays for fixtures that it shares)."""
    report: pytest.TestReport = yield
    if report.when == "teardown":
        report.user_properties.append((NAME, cpu_seconds() - item.stash[STARTED]))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """How much was looked at; with --costs also the tests, failures and seconds of each folder, and the slowest."""
    stats = terminalreporter.stats
    listed = [report for kind in ("passed", "failed", "error", "") for report in stats.get(kind, ())]
    reports = [report for report in listed if isinstance(report, pytest.TestReport)]  # not of collecting
    for kind, words in COUNTED.items():
        n = sum(
            value for r in reports if r.when == "call" for name, value in r.user_properties if name == kind
        )
        if n:
            terminalreporter.write_line(f"{n:,} {words}")
    if config.getoption("--costs"):
        for line in ("", *cost_table(reports), "", "the slowest:", *costliest(reports, 20)):
            terminalreporter.write_line(line)
