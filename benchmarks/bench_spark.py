"""The Spark engine on a standalone cluster of this machine, with one worker and with two, beside DuckDB.

    python benchmarks/bench_spark.py                         2 million rows, all recodings
    python benchmarks/bench_spark.py --rows 10000000 --case full-domain --pass-through

Every worker has one core. Each line gives seconds on the clock and of CPU for the passes over rows; the search and the
attacks, which run on the driver as with DuckDB, are left out. CPU is all that the driver, its Java and the executors
used, with planning and compiling queries, which does not depend on the rows. So the CPU time of the tasks alone, as
Spark measures it, is given too, and what they shuffled: that is what a further row costs. Starting Java, the session
and the executors is measured apart, and every cluster is warmed up with a small table first. Two workers on one machine
share its memory and disk: what they show is how the passes divide, not what a cluster does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bench_scale import make, policy
from tests.spark.cluster import cluster

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
def session(workers: int, log: Path) -> Iterator[Any]:
    """A session on a cluster of its own, which writes down what its tasks take."""
    from pyspark.sql import SparkSession

    log.mkdir()
    with cluster(workers, cores=1, memory="2g") as master:
        builder = SparkSession.builder.master(master).appName("benchmark of maskwright")
        settings = {
            "spark.driver.host": "127.0.0.1", "spark.driver.memory": "2g", "spark.executor.memory": "1536m",
            "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "16",
            "spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.dir": log.as_uri(),
        }  # fmt: skip
        spark = builder.config(map=settings).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark
        finally:
            spark.stop()


@dataclass
class Cost:
    """Of a pass: seconds on the clock, of CPU, and of CPU in tasks; bytes that these shuffled."""

    clock: float = 0.0
    cpu: float = 0.0
    tasks: float = 0.0
    shuffled: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def add_tasks(log: Path, times: Sequence[tuple[str, float, float]], steps: dict[str, Cost]) -> None:
    """Add what the tasks took to the steps in which they ended; `times`: when steps began and ended."""
    for file in (f for f in log.rglob("*") if f.is_file()):
        for line in file.read_text().splitlines():
            if '"SparkListenerTaskEnd"' not in line[:60]:
                continue
            task = json.loads(line)
            ended, metrics = task["Task Info"]["Finish Time"] / 1000, task.get("Task Metrics")
            for name, begin, end in times if metrics else ():
                if begin <= ended < end:
                    shuffled = metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                    steps[name] += Cost(tasks=metrics["Executor CPU Time"] / 1e9, shuffled=shuffled)


def measured(source: Path, folder: Path, case: str, passes: bool, log: Path | None) -> dict[str, Cost]:
    """The cost of each step: with DuckDB, or with Spark, which has a log."""
    import maskwright as mw

    steps: dict[str, Cost] = {}
    times: list[tuple[str, float, float]] = []
    running: list[Any] = ["starting", time.time(), cpu_of_cluster()]

    def on_event(event: Any) -> None:
        now, cpu = time.time(), cpu_of_cluster()
        name, begin, before = running
        times.append((name, begin, now))
        steps[name] = steps.get(name, Cost()) + Cost(now - begin, cpu - before)
        running[:] = [event.text if event.kind == "step" else name, now, cpu]

    how: dict[str, Any] = {"engine": "duckdb", "memory": "4GB"} if log is None else {"engine": "spark"}
    target = folder / "release"
    mw.anonymize(source, policy(case, passes), target, on_event=on_event, **how)
    shutil.rmtree(target)
    if log is not None:
        add_tasks(log, times, steps)
    return {name: steps[name] for name in PASSES}


def show(title: str, steps: dict[str, Cost], rows: int) -> None:
    def words(c: Cost) -> str:
        tasks = (
            f", tasks {1e6 * c.tasks / rows:.2f} µs and {c.shuffled / rows:.0f} bytes a row"
            if c.tasks
            else ""
        )
        return (
            f"{c.clock:.1f} s on the clock, {c.cpu:.1f} s of CPU = {1e6 * c.cpu / rows:.2f} µs a row{tasks}"
        )

    print(f"  {title}: {words(sum(steps.values(), Cost()))}")
    for name, cost in steps.items():
        print(f"    {name}: {words(cost)}", flush=True)


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
    print(f"{given.rows:,} rows{', with columns that pass through' * passes}", flush=True)
    os.environ["MASKWRIGHT_STATE"] = tempfile.mkdtemp(prefix="maskwright-bench-state-")
    with tempfile.TemporaryDirectory(prefix="maskwright-bench-") as name:
        folder = Path(name)
        sources = {n: folder / f"{n}.parquet" for n in (SMALL, given.rows)}
        for n, source in sources.items():
            make(n, source, fine=False)
        for case in given.case:
            show(f"DuckDB, {case}", measured(sources[given.rows], folder, case, passes, None), given.rows)
        for workers in given.workers:
            begin, log = time.perf_counter(), folder / f"log{workers}"
            with session(workers, log):
                print(
                    f"Spark, {workers} worker(s), started in {time.perf_counter() - begin:.0f} s", flush=True
                )
                for case in given.case:
                    measured(
                        sources[SMALL], folder, case, passes, log
                    )  # classes are loaded, queries compiled
                    found = measured(sources[given.rows], folder, case, passes, log)
                    show(f"Spark, {workers} worker(s), {case}", found, given.rows)
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
