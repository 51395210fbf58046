"""A wide table: 200 columns (20 quasi-identifiers, 10 sensitive, 170 that pass through), the whole command.

    python benchmarks/bench_wide.py [rows]

CPU seconds of a process of its own, by method, from the Parquet file to the verified and attacked release.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.targets import Targets

TARGET = 30.0  # seconds, for 100,000 rows or more
METHODS = {"mondrian": "{name: mondrian}", "optimal-lattice": "{name: optimal-lattice, suppression: 5%}"}


def made(folder: Path, rows: int) -> Path:
    """The table: values drawn at random, independent of each other, the same each time."""
    columns = [f"(hash(i * 211 + {c}) % {2 + c % 7})::VARCHAR AS q{c}" for c in range(20)]
    columns += [f"'d' || hash(i * 223 + {c}) % 12 AS s{c}" for c in range(10)]
    columns += [f"'x' || hash(i * 227 + {c}) % 50 AS p{c}" for c in range(170)]
    path = folder / "wide.parquet"
    duckdb.sql(f"SELECT {', '.join(columns)} FROM range({rows}) AS r(i)").write_parquet(str(path))  # noqa: S608
    return path


def policy(folder: Path, method: str) -> Path:
    lines = ["version: 1", "columns:", *(f"  q{c}: quasi-identifier" for c in range(20))]
    lines += [f"  s{c}: sensitive" for c in range(10)]
    lines += [f"  p{c}: {{role: insensitive, near_unique: allow}}" for c in range(170)]
    lines += ["require:", "  - {model: k-anonymity, k: 5}", f"method: {METHODS[method]}"]
    path = folder / f"{method}.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def cpu(source: Path, chosen: Path, out: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "import sys; from maskwright import cli; sys.exit(cli.main(sys.argv[1:]))"
    words = ["anonymize", str(source), "-p", str(chosen), "-o", str(out), "--no-alternatives"]
    subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rows: int) -> int:
    targets = Targets()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = made(folder, rows)
        for method in METHODS:
            seconds = cpu(source, policy(folder, method), folder / method)
            print(
                f"{method:16} {seconds:6.1f} s CPU; {targets.met(method, seconds, TARGET if rows >= 100_000 else None)}"
            )
    return targets.end()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
