"""Settings for all tests."""

import os
import signal
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Machines are shared and noisy: how long one example takes says nothing.
settings.register_profile("default", deadline=None)
settings.load_profile("default")


def pytest_runtest_setup() -> None:
    """Each test has a memory of its own: what was tried on a table in another test does not count here."""
    os.environ["MASKWRIGHT_STATE"] = os.path.join(  # noqa: PTH118 - made only when somebody writes to it
        tempfile.gettempdir(), f"maskwright-test-state-{os.getpid()}-{os.urandom(6).hex()}"
    )


def pytest_runtest_teardown() -> None:
    import shutil

    if folder := os.environ.pop("MASKWRIGHT_STATE", None):  # a test that was skipped has none
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def listening() -> Iterator[None]:
    """Ctrl-C as in a terminal: a process that was started in the background of a shell may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many random tables and mutated releases were looked at."""
    reports = [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]
    for kind, words in (("tables", "random tables compared"), ("mutations", "mutated releases verified")):
        n = sum(value for report in reports for name, value in report.user_properties if name == kind)
        if n:
            terminalreporter.write_line(f"{n:,} {words}")
