"""The whole command, cold: CPU seconds of `maskwright anonymize` on Adult, beside what no tool can avoid.

The limit is a process that reads the same CSV file and writes it again with the same engine and does nothing else.

    python benchmarks/bench_process.py [repeats]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.targets import Targets

TARGET = 1.0  # seconds; ARX: 7 to 9
CPU = "import resource as r; u = r.getrusage(r.RUSAGE_SELF); print('cpu', u.ru_utime + u.ru_stime)"


def cpu(code: str, compiled: str) -> float:
    """Modules are compiled once, as they are where the package is installed; `compiled` is the folder for it."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{CPU}"], capture_output=True, text=True, check=True,
        env={**kept, "PYTHONPYCACHEPREFIX": compiled},
    )  # fmt: skip
    return float(done.stdout.split("cpu ")[-1])


def main(repeats: int) -> int:
    data = Path(str(files("maskwright"))) / "data" / "adult"
    source, policy = str(data / "adult.csv"), str(data / "arx.yaml")
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/release"
        arguments = ["anonymize", source, "-p", policy, "-o", out, "--overwrite"]
        plain = [*arguments, "--no-alternatives"]
        copy = f"COPY (FROM '{source}') TO '{folder}/copy.csv'"
        cases = {
            "maskwright anonymize": f"from maskwright import cli; assert cli.main({arguments!r}) == 0",
            "without other settings": f"from maskwright import cli; assert cli.main({plain!r}) == 0",
            "maskwright --help": "from maskwright import cli; cli.main(['--help'])",
            "import maskwright": "import maskwright",
            "import and start the engine": "from maskwright.engines import open_engine; open_engine().close()",
            "read and write with DuckDB": f"import duckdb; duckdb.sql({copy!r})",
            "an empty Python process": "pass",
        }
        times = {
            name: min(cpu(code, f"{folder}/compiled") for _ in range(repeats + 1))
            for name, code in cases.items()
        }
    for name, seconds in times.items():
        print(f"{name:30} {seconds:6.2f} s CPU")
    whole, limit = times["maskwright anonymize"], times["read and write with DuckDB"]
    targets = Targets()
    for name in ("maskwright --help", "import maskwright"):
        print(f"{name:30} {targets.met(name, times[name], 0.15)}")
    print(f"{whole / limit:.1f} times the plain copy; {targets.met('maskwright anonymize', whole, TARGET)}")
    return targets.end()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
