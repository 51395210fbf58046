"""The whole command, cold: CPU seconds of `maskwright anonymize` on Adult, beside what no tool can avoid.

The limit is a process that reads the same CSV file and writes it again with the same engine and does nothing else.

    python benchmarks/bench_process.py [repeats]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.targets import Targets

TARGET = 1.5  # seconds; ARX: 7 to 9
CPU = "import resource as r; u = r.getrusage(r.RUSAGE_SELF); print('cpu', u.ru_utime + u.ru_stime)"


def cpu(code: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{CPU}"], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split("cpu ")[-1])


def main(repeats: int) -> int:
    data = Path(str(files("maskwright"))) / "data" / "adult"
    source, policy = str(data / "adult.csv"), str(data / "policy.yaml")
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/release"
        arguments = ["anonymize", source, "-p", policy, "-o", out, "--overwrite"]
        copy = f"COPY (FROM '{source}') TO '{folder}/copy.csv'"
        cases = {
            "maskwright anonymize": f"from maskwright import cli; assert cli.main({arguments!r}) == 0",
            "import and start the engine": "from maskwright.engines import open_engine; open_engine().close()",
            "read and write with DuckDB": f"import duckdb; duckdb.sql({copy!r})",
            "an empty Python process": "pass",
        }
        times = {name: min(cpu(code) for _ in range(repeats)) for name, code in cases.items()}
    for name, seconds in times.items():
        print(f"{name:30} {seconds:6.2f} s CPU")
    whole, limit = times["maskwright anonymize"], times["read and write with DuckDB"]
    targets = Targets()
    print(f"{whole / limit:.1f} times the plain copy; {targets.met('maskwright anonymize', whole, TARGET)}")
    return targets.end()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
