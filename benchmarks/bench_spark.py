"""The Spark engine on a standalone cluster of this machine, with one worker and with two, beside DuckDB.

    python benchmarks/bench_spark.py                         2 million rows, all recodings
    python benchmarks/bench_spark.py --rows 10000000 --case full-domain --pass-through

Every worker has one core. Each line gives seconds on the clock and of CPU (all that the driver, its Java and the
executors used) for the passes over rows, and what a row costs; the search and the attacks, which run on the driver as
with DuckDB, are left out. Starting Java, the session and the executors is measured apart: every cluster is warmed up
with a small table first. Two workers on one machine share its memory and disk: what they show is how the passes
divide, not what a cluster does.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.spark.cluster import cluster

from benchmarks.bench_scale import make, policy

PASSES = ("reading", "summarising", "recoding", "writing", "verifying the bytes on disk")
CASES = ("full-domain", "mondrian", "bucketized")


def cpu_of_cluster() -> float:
    """CPU seconds of this process and of all that it has started (they keep running, so nobody has their sums)."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    tick = os.sysconf("SC_CLK_TCK")
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        pid = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        used[pid] = sum(map(int, fields[11:15])) / tick  # with children that have ended
    total, waiting = 0.0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        total += used.get(pid, 0.0)
        waiting += children.get(pid, [])
    return total


@contextmanager
def session(workers: int) -> Iterator[Any]:
    """A session on a cluster of its own."""
    from pyspark.sql import SparkSession

    with cluster(workers, cores=1, memory="2g") as master:
        builder = SparkSession.builder.master(master).appName("benchmark of maskwright")
        settings = {
            "spark.driver.host": "127.0.0.1", "spark.driver.memory": "2g", "spark.executor.memory": "1536m",
            "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "16",
        }  # fmt: skip
        spark = builder.config(map=settings).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark
        finally:
            spark.stop()


def measured(
    source: Path, target: Path, case: str, passes: bool, engine: str
) -> dict[str, tuple[float, float]]:
    """Seconds on the clock and of CPU for each step."""
    import maskwright as mw

    steps: dict[str, tuple[float, float]] = {}
    running: list[Any] = ["starting", time.perf_counter(), cpu_of_cluster()]

    def on_event(event: Any) -> None:
        now = time.perf_counter(), cpu_of_cluster()
        before = steps.get(running[0], (0.0, 0.0))
        steps[running[0]] = (before[0] + now[0] - running[1], before[1] + now[1] - running[2])
        running[:] = [event.text if event.kind == "step" else running[0], *now]

    memory = "4GB" if engine == "duckdb" else None
    mw.anonymize(source, policy(case, passes), target, engine=engine, memory=memory, on_event=on_event)
    return {name: steps[name] for name in PASSES}


def show(title: str, steps: dict[str, tuple[float, float]], rows: int) -> None:
    clock, cpu = (sum(step[i] for step in steps.values()) for i in (0, 1))
    parts = ", ".join(f"{name.split()[0]} {c:.1f}/{u:.1f}" for name, (c, u) in steps.items())
    print(
        f"  {title}: {clock:.1f} s on the clock, {cpu:.1f} s of CPU, {1e6 * cpu / rows:.1f} µs of CPU a row"
        f"\n    {parts}", flush=True,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--case", choices=CASES, nargs="+", default=list(CASES))
    parser.add_argument("--pass-through", action="store_true")
    given = parser.parse_args()
    print("command:", " ".join(["python", *sys.argv]), flush=True)
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}, cores: {os.cpu_count()}")
    os.environ["MASKWRIGHT_STATE"] = tempfile.mkdtemp(prefix="maskwright-bench-state-")
    with tempfile.TemporaryDirectory(prefix="maskwright-bench-") as name:
        folder = Path(name)
        source, small = folder / "rows.parquet", folder / "small.parquet"
        make(given.rows, source, fine=False)
        make(20_000, small, fine=False)
        for case in given.case:
            print(f"{case}, {given.rows:,} rows{', with columns that pass through' * given.pass_through}")
            show(
                "DuckDB",
                measured(source, folder / f"d-{case}", case, given.pass_through, "duckdb"),
                given.rows,
            )
        for workers in (1, 2):
            begin = time.perf_counter()
            with session(workers):
                print(f"Spark, {workers} worker(s): started in {time.perf_counter() - begin:.0f} s")
                for case in given.case:
                    measured(small, folder / f"w-{workers}-{case}", case, given.pass_through, "spark")
                    found = measured(
                        source, folder / f"s-{workers}-{case}", case, given.pass_through, "spark"
                    )
                    show(f"{case}, {workers} worker(s)", found, given.rows)


if __name__ == "__main__":
    main()
