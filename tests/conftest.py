"""Settings for all tests."""

import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.amounts import LONG, amount
from tests.costs import COLLECTED, NAME, STARTED, cost_table, costliest, cpu_seconds, folder_of
from tests.patients import POLICY, Command, Outcome, patients, write_csv

# Nothing is ever written to the home of whoever runs the tests, not even between two of them.
_STATE = os.path.join(tempfile.gettempdir(), f"maskwright-test-state-{os.getpid()}-{os.urandom(6).hex()}")  # noqa: PTH118
os.environ["MASKWRIGHT_STATE"] = _STATE
os.environ.pop("MASKWRIGHT_KEY_FILE", None)

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

    shutil.rmtree(_STATE, ignore_errors=True)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attacks that draw possible worlds take a tenth of their seconds: for tests of releases, whose beliefs are
    tested elsewhere. The long run gives them all their time."""
    from maskwright.attacks._minimality import enumeration
    from maskwright.worlds.sampling import world_sampler

    def spent(clock: world_sampler._SamplingClock) -> float:
        return 10 * (time.thread_time() - clock.started)

    usual = enumeration._Enumeration._too_long
    if not LONG:
        monkeypatch.setattr(world_sampler._SamplingClock, "spent", property(spent))
        monkeypatch.setattr(
            enumeration._Enumeration, "_too_long", lambda self, parts=1: usual(self, 10 * parts)
        )


@pytest.fixture
def listening() -> Iterator[None]:
    """Ctrl-C as in a terminal: a process that was started in the background of a shell may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
