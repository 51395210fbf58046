"""The harness, ready to run: the shim compiled, and tables to publish."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.amounts import LONG, amount
from tests.faults.table import CLEANED, CLOCK_BACK, DIED, FAULTS, FINE, GAVE_UP
from tests.patients import POLICY, patients, write_csv
from tests.support import unavailable

HERE = Path(__file__).parent
MOMENTS = 400
Harness = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        unavailable("faults need Linux and a C compiler (cc)")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, HERE / "shim.c", "-lrt"], check=True)
    return library


def moments(brief: Mapping[str, int], also: Iterable[str] = ()) -> dict[str, int]:
    """How often each fault comes; the long run has `also` others, and each at hundreds of moments, or at all steps."""
    return {
        name: amount(brief.get(name, 0), MOMENTS) for name in dict.fromkeys((*brief, *(also if LONG else ())))
    }


@pytest.fixture
def harness(shim: Path, tmp_path: Path, record_property: Callable[[str, object], None]) -> Harness:
    """Run an output with faults, each at so many moments; returns what was found for each fault."""
    rows = patients()
    write_csv(tmp_path / "patients.csv", rows)
    write_csv(tmp_path / "others.csv", [[*row[:5], "XYZ"["ABC".index(row[5])]] for row in rows])
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    tmp_path.chmod(0o755)

    def run(output: str, faults: Mapping[str, int], seed: int = 1, **more: Any) -> list[dict[str, Any]]:
        if output == "parquet":
            _as_parquet(tmp_path)
        settings = {"folder": str(tmp_path), "output": output, "faults": dict(faults), "seed": seed, **more}
        environment = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, str(HERE / "harness.py"), json.dumps(settings)],
            capture_output=True, text=True, timeout=7200, check=False, env=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert [one["fault"] for one in found] == list(faults)
        record_property("moments", sum(one["moments"] for one in found))
        if report := os.environ.get("FAULTS_REPORT"):
            with Path(report).open("a", encoding="utf-8") as file:
                file.write(done.stdout)
        return found

    return run


def _as_parquet(folder: Path) -> None:
    import duckdb

    for name in ("patients", "others"):
        rows = duckdb.read_csv(str(folder / f"{name}.csv"), all_varchar=True)
        rows.write_parquet(str(folder / f"{name}.parquet"), compression="uncompressed")
    sizes = {(folder / f"{name}.parquet").stat().st_size for name in ("patients", "others")}
    assert len(sizes) == 1, "to be rewritten with the same size"


def only(found: list[dict[str, Any]]) -> Counter[str]:
    """Nothing but outcomes that are allowed, and every fault came and did what it must; returns how often each
    outcome came, over all faults."""
    total: Counter[str] = Counter()
    for one in found:
        fault, shown = FAULTS[one["fault"]], json.dumps(one, indent=1)
        outcomes, moments, asked = one["found"], one["moments"], one["asked"]
        assert moments == (asked if fault.timed or fault.limit else min(asked, one["steps"])) > 0, shown
        assert set(outcomes) <= {*FINE, GAVE_UP, DIED, CLEANED}, shown
        if fault.kind == CLOCK_BACK:
            assert set(outcomes) == {"new"}, shown
        else:
            assert not {"old", "nothing"}.isdisjoint(outcomes), f"nothing went wrong: {shown}"
        if one["fault"] == "killed at a step" and one["output"] != "register":  # which leaves nothing
            assert CLEANED in outcomes, shown
        if one["output"] != "memory":  # there the program that calls gives up first
            assert outcomes.get(GAVE_UP, 0) <= moments * 11 / 16, shown
        assert outcomes.get(DIED, 0) <= max(1, moments // 50), shown
        total.update(outcomes)
    return total
