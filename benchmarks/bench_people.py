"""What it costs to count people: the whole command on a million visits, with `unit` and with every row a person.

Each run is a process of its own; CPU seconds, and the memory that it had at most. python benchmarks/bench_people.py
[--rows 1000000] [--method optimal-lattice]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.targets import Targets
from tests.hospital import hospital_visits

LIMIT = 2.0  # times what it takes where every row is a person
MEMORY = "2GB"


def main() -> int:
    """Run both, and compare."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--rows", type=int, default=1_000_000)
    asked.add_argument("--method", default="optimal-lattice")
    options = asked.parse_args()
    targets, taken = Targets(), {}
    with tempfile.TemporaryDirectory() as place:
        table = Path(place, "visits.parquet")
        visits = hospital_visits(options.rows, options.rows * 10_510 // 20_000)
        visits.to_parquet(table, index=False)
        people = visits["patient_id"].nunique()
        print(
            f"{options.rows:,} visits of {people:,} people, {options.method}, k = 5, --memory {MEMORY}",
            flush=True,
        )
        for unit in ("none", "patient_id"):
            policy = Path(place, f"{unit}.json")
            policy.write_text(json.dumps(policy_with(unit, options.method)))
            taken[unit], most = cpu_of(table, policy, Path(place, unit))
            print(f"  unit: {unit:12}{taken[unit]:8.2f} s of CPU, at most {most / 2**20:,.0f} MB", flush=True)
            print(f"    {targets.met(f'memory, unit: {unit}', most, 2e9, 'bytes')}", flush=True)
    ratio = taken["patient_id"] / taken["none"]
    print(f"  {ratio:.2f} times: {targets.met('people', ratio, LIMIT, 'times')}")
    return targets.end()


def policy_with(unit: str, method: str) -> dict[str, object]:
    """The policy of the benchmark, as JSON, which is YAML."""
    columns: dict[str, object] = {
        "patient_id": "identifier", "sex": "quasi-identifier", "zip": "quasi-identifier", "disease": "sensitive",
        "birth_year": {"role": "quasi-identifier", "hierarchy": {"intervals": ["5", "10", "30"]}},
        "month": {"role": "quasi-identifier", "hierarchy": {"intervals": ["3", "6"]}},
    }  # fmt: skip
    chosen: dict[str, object] = {"name": method}
    if method == "optimal-lattice":
        chosen["suppression"] = "5%"
    return {
        "unit": unit,
        "columns": columns,
        "require": [{"model": "k-anonymity", "k": "5"}],
        "method": chosen,
    }


def cpu_of(table: Path, policy: Path, out: Path) -> tuple[float, int]:
    """CPU seconds of the command, and the bytes that it had at most, where it knows of no earlier release to attack."""
    command = [sys.executable, "-c", "import sys; from maskwright.cli.commands import main; sys.exit(main())"]
    command += ["anonymize", str(table), "--policy", str(policy), "--out", str(out), "--memory", MEMORY]
    alone = {**os.environ, "MASKWRIGHT_STATE": f"{out}-state"}
    process = subprocess.Popen(command, env=alone, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"the command failed: {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
