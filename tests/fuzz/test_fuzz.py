"""Bad input of every kind, in numbers: a few thousand here, more than a million with `make test-long`."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi import FastAPI

from maskwright.workbench import api
from tests.fuzz.requests import addresses
from tests.fuzz.run import TARGETS
from tests.support import needs

QUICK = {"policy": 250, "settings": 2_000, "hierarchy": 2_000, "csv": 500, "parquet": 400,
"statements": 2_000, "first-look": 25,
         "release": 30, "workbench": 500, "workload": 2_000}  # fmt: skip
# (inputs of one piece, pieces): each piece is a test of its own, so that they run side by side
LONG = {"policy": (5_000, 6), "settings": (42_000, 10), "hierarchy": (26_000, 10), "csv": (3_000, 10),
"parquet": (3_000, 10),
        "statements": (26_000, 10), "first-look": (100, 10), "release": (200, 10),
        "workbench": (5_000, 6), "workload": (10_000, 3)}  # fmt: skip
GUIDED = {"policy": 400, "hierarchy": 3_000, "statements": 3_000}
ROOT = Path(__file__).parents[2]
SMALL_PARENT = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: the harness forks, which a process with threads must not do."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests"), str(ROOT)])
    }
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )


def feed(target: str, inputs: int, seed: int) -> None:
    done = python("-m", "tests.fuzz.run", target, "--inputs", str(inputs), "--seed", str(seed))
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    assert f"{target}: {inputs:,} inputs" in done.stdout
    assert " 0 accepted" not in done.stdout and " 0 refused" not in done.stdout, "a target that tells nothing"


def test_every_target_has_its_numbers() -> None:
    assert set(QUICK) == set(LONG) == set(TARGETS)
    assert sum(inputs * pieces for inputs, pieces in LONG.values()) >= 1_000_000


def test_every_address_of_the_workbench_is_fuzzed() -> None:
    document = FastAPI()
    document.include_router(api.router)
    known = {
        (method.upper(), path) for path, methods in document.openapi()["paths"].items() for method in methods
    }
    fed = {
        (method, f"/api{path}")
        for method, path in addresses()
        if not path.startswith("/p/") and "@" not in path
    }
    assert fed == known


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_breaks_it(target: str) -> None:
    feed(target, QUICK[target], 0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "piece"), [(t, p) for t, (_, pieces) in LONG.items() for p in range(pieces)]
)
def test_a_million_inputs(target: str, piece: int) -> None:
    feed(target, LONG[target][0], 100 + piece)


@pytest.fixture
def atheris() -> None:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("atheris is for Linux on x86-64")
    needs("atheris")


@pytest.mark.usefixtures("atheris")
@pytest.mark.parametrize("target", GUIDED)
def test_guided_by_coverage(target: str, tmp_path: Path) -> None:
    guided(target, GUIDED[target], tmp_path)


@pytest.mark.usefixtures("atheris")
@pytest.mark.long
@pytest.mark.parametrize("target", GUIDED)
def test_guided_by_coverage_for_long(target: str, tmp_path: Path) -> None:
    guided(target, GUIDED[target] * 20, tmp_path)


def guided(target: str, runs: int, folder: Path) -> None:
    """libFuzzer limits `ru_maxrss`, which counts what the parent held when the process began: a small parent."""
    done = python("-c", SMALL_PARENT, "-m", "tests.fuzz.guided", target, str(runs), "1", str(folder / "fuzz"))
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    assert f"Done {runs} runs" in done.stderr
