"""A real standalone Spark cluster on the loopback: one master and its workers, as long as somebody needs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STARTUP_SECONDS = 600
# Tables of a few hundred rows: compiling their queries well would take longer than running them.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SMALL = {
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# The daemons end with whoever started them, however that ends: they watch the pipe that is their input.
_WATCH = """
import os, signal, subprocess, sys
daemon = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
sys.stdin.buffer.read()
os.killpg(daemon.pid, signal.SIGKILL)
"""


@contextmanager
def cluster(workers: int, cores: int, memory: str, options: str = "") -> Iterator[str]:
    """The address of a cluster; each worker has so many cores and so much memory for its executors."""
    import pyspark

    from maskwright.engines.spark.spark_session import java_home

    folder = Path(tempfile.mkdtemp(prefix="maskwright-test-spark-"))
    spark = Path(pyspark.__file__).parent
    environment = os.environ | {
        "SPARK_HOME": str(spark), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": options,
        "SPARK_LOCAL_DIRS": str(folder / "local"), "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    if (home := java_home()) is not None:
        environment["JAVA_HOME"] = str(home)
    watchers: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = folder / f"{name}.log"
        command = [str(spark / "bin" / "spark-class"), *arguments]
        with log.open("wb") as out:
            watchers.append(
                subprocess.Popen(
                    [sys.executable, "-c", _WATCH, *command], stdin=subprocess.PIPE, stdout=out, stderr=out,
                    env=environment, cwd=folder, start_new_session=True,
                )
            )  # fmt: skip
        return log

    try:
        loopback = ("--host", "127.0.0.1", "--webui-port", "0")
        log = start("master", "org.apache.spark.deploy.master.Master", *loopback, "--port", "0")
        address = _wait_for(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)", watchers[-1])
        for i in range(workers):
            work = folder / f"work{i}"
            arguments = ("--cores", str(cores), "--memory", memory, "--work-dir", str(work), address)
            log = start(f"worker{i}", "org.apache.spark.deploy.worker.Worker", *loopback, *arguments)
            _wait_for(log, r"(Successfully registered with master)", watchers[-1])
        yield address
    finally:
        for watcher in watchers:
            assert watcher.stdin is not None
            watcher.stdin.close()
        for watcher in watchers:
            watcher.wait(timeout=120)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < end:
        text = log.read_text(errors="replace")
        if found := re.search(pattern, text):
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError(f"a daemon of the Spark cluster did not start:\n{log.read_text(errors='replace')}")
