"""Settings for all tests."""

import os
import tempfile

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
