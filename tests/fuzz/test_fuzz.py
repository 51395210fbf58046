"""Bad input of every kind, in numbers: a few thousand here, more than a million with `make test-long`."""

from __future__ import annotations

import os
import platform
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI

from maskwright.workbench import api
from tests.amounts import amount, cases
from tests.fuzz.custody import ELSEWHERE, PAIRS, USUAL, Commands, every_command
from tests.fuzz.frames import MAKERS, WAYS, Frames, made
from tests.fuzz.requests import addresses
from tests.fuzz.run import TARGETS
from tests.support import needs

# Inputs of a target: in `make test`, in one piece of the long run, and how many pieces that has. Each piece is a
# test of its own, so that they run side by side.
INPUTS = {"policy": (100, 5_000, 6), "settings": (600, 42_000, 10), "hierarchy": (600, 26_000, 10),
          "csv": (80, 3_000, 10), "parquet": (60, 3_000, 10), "statements": (600, 26_000, 10),
          "first-look": (10, 100, 10), "identifiers": (200, 10_000, 3), "release": (10, 200, 10),
          "frames": (40, 1_000, 10), "damaged": (20, 1_000, 10), "custody": (40, 2_000, 6),
          "command": (40, 1_500, 6), "workbench": (80, 5_000, 6),
          "workload": (600, 10_000, 3)}  # fmt: skip
PIECES = [(target, piece) for target, (_, _, pieces) in INPUTS.items() for piece in range(pieces)]
GUIDED = {"policy": (200, 8_000), "hierarchy": (1_500, 60_000), "statements": (1_500, 60_000)}
ROOT = Path(__file__).parents[2]
SMALL_PARENT = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: the harness forks, which a process with threads must not do."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )


def feed(target: str, inputs: int, seed: int) -> None:
    done = python("-m", "tests.fuzz.run", target, "--inputs", str(inputs), "--seed", str(seed))
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    assert f"{target}: {inputs:,} inputs" in done.stdout
    assert " 0 accepted" not in done.stdout and " 0 refused" not in done.stdout, "a target that tells nothing"


def test_every_target_has_its_numbers() -> None:
    assert set(INPUTS) == set(TARGETS)
    assert sum(inputs * pieces for _, inputs, pieces in INPUTS.values()) >= 1_000_000


def test_every_function_gets_every_kind_of_frame() -> None:
    """Each function and each kind in `make test`; each function with each kind in one piece of the long run."""
    target = Frames()
    inputs = (target.input(0, number) for number in range(amount(*INPUTS["frames"][:2])))
    fed = {(way, made(random.Random(seed))[0]) for seed, way, _ in inputs}  # noqa: S311
    kinds = {maker.__name__ for maker in MAKERS}
    assert {way for way, _ in fed} == set(range(WAYS))
    assert {kind for _, kind in fed} == kinds
    assert len(fed) >= amount(WAYS, WAYS * len(kinds))


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


def test_every_command_is_fuzzed() -> None:
    there = every_command()
    assert set(USUAL) | ELSEWHERE == there
    assert set(PAIRS) <= set(USUAL)
    named = {words[0] for words in (Commands().input(0, number) for number in range(300))}
    assert named == set(USUAL)


@pytest.mark.parametrize(("target", "piece"), cases(PIECES, brief=[(target, 0) for target in INPUTS]))
def test_no_input_breaks_it(target: str, piece: int, record_property: Callable[[str, object], None]) -> None:
    inputs = amount(*INPUTS[target][:2])
    feed(target, inputs, piece)
    record_property("inputs", inputs)


@pytest.fixture
def atheris() -> None:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("atheris is for Linux on x86-64")
    needs("atheris")


@pytest.mark.usefixtures("atheris")
@pytest.mark.parametrize(
    "target", cases(GUIDED, brief=["policy"])
)  # watching the code takes ten seconds each
def test_guided_by_coverage(target: str, tmp_path: Path) -> None:
    """libFuzzer limits `ru_maxrss`, which counts what the parent held when the process began: a small parent."""
    runs = amount(*GUIDED[target])
    done = python(
        "-c", SMALL_PARENT, "-m", "tests.fuzz.guided", target, str(runs), "1", str(tmp_path / "fuzz")
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    assert f"Done {runs} runs" in done.stderr
