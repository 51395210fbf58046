"""The Spark engine on a standalone cluster of this machine, with one worker and with two, beside DuckDB.

    python benchmarks/bench_spark.py                         2 million rows, all recodings
    python benchmarks/bench_spark.py --rows 10000000 --case full-domain --pass-through

Every worker has one core. Each line gives seconds on the clock and of CPU (all that the driver, its Java and the
executors used) for the passes over rows, and what was shuffled between tasks; the search and the attacks, which run on
the driver as with DuckDB, are left out. A run has costs that do not depend on the rows: planning queries and starting
tasks. So a table of 100,000 rows is measured, too: what a further row costs is the difference, divided by the further
rows. Starting Java, the session and the executors is measured apart, and every cluster is warmed up with the small
table first. Two workers on one machine share its memory and disk: what they show is how the passes divide, not what a
cluster does.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.spark.cluster import cluster

from benchmarks.bench_scale import make, policy

PASSES = ("reading", "summarising", "recoding", "writing", "verifying the bytes on disk")
CASES = ("full-domain", "mondrian", "bucketized")
SMALL = 100_000


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


@dataclass
class Cost:
    """Seconds on the clock, seconds of CPU, bytes that were shuffled."""

    clock: float = 0.0
    cpu: float = 0.0
    shuffled: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.clock + other.clock, self.cpu + other.cpu, self.shuffled + other.shuffled)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.clock - other.clock, self.cpu - other.cpu, self.shuffled - other.shuffled)


def until_now(spark: Any) -> Cost:
    shuffled = 0
    if spark is not None:
        executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
        shuffled = sum(executors.apply(i).totalShuffleWrite() for i in range(executors.size()))
    return Cost(time.perf_counter(), cpu_of_cluster(), shuffled)


def measured(source: Path, folder: Path, case: str, passes: bool, spark: Any) -> dict[str, Cost]:
    """The cost of each step, with DuckDB or with Spark."""
    import maskwright as mw

    steps: dict[str, Cost] = {}
    running: list[Any] = ["starting", until_now(spark)]

    def on_event(event: Any) -> None:
        now = until_now(spark)
        steps[running[0]] = steps.get(running[0], Cost()) + (now - running[1])
        running[:] = [event.text if event.kind == "step" else running[0], now]

    how: dict[str, Any] = {"engine": "duckdb", "memory": "4GB"} if spark is None else {"engine": "spark"}
    target = folder / "release"
    release = mw.anonymize(source, policy(case, passes), target, on_event=on_event, **how)
    joint = release.grouping.summary.joint
    cells = 0 if joint is None else len(joint.rows)
    print(f"    {source.stem}: {cells:,} combinations", flush=True)
    shutil.rmtree(target)
    return {name: steps[name] for name in PASSES}


def compared(title: str, sources: dict[int, Path], folder: Path, case: str, passes: bool, spark: Any) -> None:
    """Print what the passes cost, and each further row."""
    small, rows = sorted(sources)
    if spark is not None:
        measured(sources[small], folder, case, passes, spark)  # classes are loaded, queries compiled
    steps = measured(sources[rows], folder, case, passes, spark)
    less = measured(sources[small], folder, case, passes, spark)
    whole, base = sum(steps.values(), Cost()), sum(less.values(), Cost())

    def each(cost: Cost, other: Cost) -> str:
        further = cost - other
        return f"{1e6 * further.cpu / (rows - small):.2f} µs, {further.shuffled / (rows - small):.0f} bytes"

    parts = "".join(
        f"\n    {name}: {c.clock:.1f} / {c.cpu:.1f} s, each further row {each(c, less[name])}"
        for name, c in steps.items()
    )
    print(
        f"  {title}: {whole.clock:.1f} s on the clock, {whole.cpu:.1f} s CPU, {whole.shuffled / 1e6:.0f} MB shuffled"
        f"; {base.cpu:.1f} s of CPU for {small:,} rows; each further row {each(whole, base)}{parts}", flush=True,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--case", choices=CASES, nargs="+", default=list(CASES))
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--pass-through", action="store_true")
    given = parser.parse_args()
    if given.rows <= SMALL:
        parser.error(f"--rows: more than {SMALL}")
    print("command:", " ".join(["python", *sys.argv]))
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}, cores: {os.cpu_count()}")
    passes = given.pass_through
    print(
        f"{given.rows:,} rows{', with columns that pass through' * passes}; seconds on the clock / of CPU",
        flush=True,
    )
    os.environ["MASKWRIGHT_STATE"] = tempfile.mkdtemp(prefix="maskwright-bench-state-")
    with tempfile.TemporaryDirectory(prefix="maskwright-bench-") as name:
        folder = Path(name)
        sources = {n: folder / f"{n}.parquet" for n in (SMALL, given.rows)}
        for n, source in sources.items():
            make(n, source, fine=False)
        for case in given.case:
            compared(f"DuckDB, {case}", sources, folder, case, passes, None)
        for workers in given.workers:
            begin = time.perf_counter()
            with session(workers) as spark:
                print(
                    f"Spark, {workers} worker(s), started in {time.perf_counter() - begin:.0f} s", flush=True
                )
                for case in given.case:
                    compared(f"Spark, {workers} worker(s), {case}", sources, folder, case, passes, spark)
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
