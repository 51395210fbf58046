"""The workbench under load, on loopback: 500 connections of which half ask nothing, and 20 users of a million rows.

    python benchmarks/bench_workbench.py

A server as `maskwright ui` starts it, in a process of its own. 250 connections stay silent while 250 others ask for
small answers; then 20 browsers, each with a session of its own, ask for the pages and the API of a project with a
million rows, first in peace, then while its release is made; at last each of the 20 opens a table of a million rows as
a project of its own and asks for its pages meanwhile: runs take turns, and who comes when all places are taken tries
again. Response times are wall times as a client sees them; memory is the largest of the server's process (VmHWM), and
in the last case the largest sum of the server and its runs as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import httpx

PAGES = ("/p/{}/columns", "/p/{}/columns/1", "/p/{}/requirements", "/p/{}/run", "/api/projects/{}", "/")
EARLY = ("/p/{}/columns", "/api/projects/{}", "/")  # there is something to see before the table was looked at


@dataclass(frozen=True)
class Load:
    """How much is asked for; `tests/benchmarks/test_workbench.py` asks for less."""

    connections: int = 500
    asks: int = 4
    users: int = 20
    requests: int = 15
    rows: int = 1_000_000


@dataclass
class Measured:
    """One kind of load: how long each answer took, what was not answered well, and the memory in MiB."""

    load: str
    times: list[float] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    memory: int = 0
    with_runs: int = 0
    seconds: float = 0.0

    def quantile(self, share: float) -> float:
        """Seconds below which this share of the answers came."""
        return statistics.quantiles(self.times, n=100)[round(100 * share) - 1]

    def __str__(self) -> str:
        answered = f"{len(self.times) - len(self.bad)} of {len(self.times)} answered" if self.times else ""
        times = [f"{name} {1000 * t:.0f} ms" for name, t in (
            ("median", self.quantile(0.5)), ("95 in 100 below", self.quantile(0.95)), ("longest", max(self.times)),
        )] if self.times else []  # fmt: skip
        more = [f"with its runs {self.with_runs} MiB, {self.seconds:.0f} s in all"] if self.with_runs else []
        return f"{self.load}: " + "; ".join(
            filter(None, [answered, ", ".join(times), f"{self.memory} MiB", *more])
        )


class Bench:
    """A running server, and how to ask it."""

    def __init__(self, folder: Path, load: Load) -> None:
        self.load = load
        (folder / "tables").mkdir()
        self._make_table(folder / "tables" / "million.csv")
        command = [sys.executable, "-m", "maskwright.cli", "ui", str(folder / "tables"), "--workspace",
                   str(folder / "workspace"), "--port", "0", "--no-browser", "--json"]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        said = json.loads(self.process.stdout.readline())
        self.api, self.token = said["api"], said["token"]
        self.host = said["url"].removeprefix("http://").partition("/")[0]
        self.port = int(self.host.rpartition(":")[2])
        self.program = httpx.Client(
            base_url=self.api, headers={"Authorization": f"Bearer {self.token}"}, timeout=300
        )

    def _make_table(self, path: Path) -> None:
        query = f"""COPY (SELECT i AS id, 18 + i * 7919 % 70 AS age, 'FM'[1 + i % 2] AS sex,
                                 10000 + i * 31 % 900 AS zip, i * 13 % 40 AS town,
                                 i * 101 % 12 AS diagnosis FROM range({self.load.rows}) t(i))
                    TO '{path}' (HEADER)"""  # noqa: S608 - a number and a path of our own
        with duckdb.connect() as connection:
            connection.execute(query)

    def memory(self) -> int:
        """The most that the server ever had, in MiB."""
        return _memory(self.process.pid, "VmHWM")

    def with_runs(self) -> int:
        """What the server and its runs have now, in MiB."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        runs = {pid for task in tasks for pid in _text(task).split()}
        return sum(_memory(pid, "VmRSS") for pid in (self.process.pid, *runs))

    def wait(self, project: str, run: str) -> str:
        while True:
            state = self.program.get(f"/api/projects/{project}/runs/{run}").json()["state"]
            if state != "running":
                return str(state)
            time.sleep(0.2)

    def stop(self) -> None:
        self.program.close()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        assert self.process.stdout
        self.process.stdout.close()


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):  # it ended
        return path.read_text(encoding="ascii")
    return ""


def _memory(pid: int | str, name: str) -> int:
    fields = dict(line.split(":", 1) for line in _text(Path(f"/proc/{pid}/status")).splitlines())
    return int(fields[name].split()[0]) // 1024 if name in fields else 0


async def crowd(bench: Bench) -> Measured:
    """Half of the connections silent, the other half asking at once, each several times on its connection."""
    half = bench.load.connections // 2
    found = Measured(f"{bench.load.connections} connections, half silent")
    silent = [await asyncio.open_connection("127.0.0.1", bench.port) for _ in range(half)]
    request = (
        f"GET /api/projects HTTP/1.1\r\nHost: 127.0.0.1:{bench.port}\r\nAuthorization: Bearer {bench.token}\r\n\r\n"
    ).encode()

    async def asks() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
        for _ in range(bench.load.asks):
            before = time.perf_counter()
            writer.write(request)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 120)
            length = next(
                int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
            )
            await reader.readexactly(length)
            found.times.append(time.perf_counter() - before)
            found.bad += [] if head.startswith(b"HTTP/1.1 200") else [head.decode("latin-1")]
        writer.close()

    await asyncio.gather(*(asks() for _ in range(half)))
    for _, writer in silent:
        writer.close()
    found.memory = bench.memory()
    return found


@contextlib.asynccontextmanager
async def _session(bench: Bench) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that opened the start address, and its CSRF token."""
    headers = {"Host": bench.host}
    async with httpx.AsyncClient(
        base_url=bench.api, headers=headers, timeout=300, follow_redirects=True
    ) as client:
        (await client.get("/start", params={"token": bench.token})).raise_for_status()
        page = (await client.get("/")).text
        client.headers["X-CSRF-Token"] = page.partition('name="csrf" content="')[2].partition('"')[0]
        yield client


async def _visits(client: httpx.AsyncClient, path: str, found: Measured) -> None:
    before = time.perf_counter()
    answer = await client.get(path)
    found.times.append(time.perf_counter() - before)
    found.bad += [] if answer.status_code == 200 else [f"{answer.status_code} {answer.url}"]


async def users(bench: Bench, project: str, what: str) -> Measured:
    """Everybody asks for the pages of one project."""
    found = Measured(f"{bench.load.users} users, {bench.load.rows:,} rows, {what}")

    async def one(number: int) -> None:
        async with _session(bench) as client:
            for i in range(bench.load.requests):
                await _visits(client, PAGES[(number + i) % len(PAGES)].format(project), found)

    await asyncio.gather(*(one(i) for i in range(bench.load.users)))
    found.memory = bench.memory()
    return found


async def own_projects(bench: Bench) -> Measured:
    """Everybody opens a table as a project of their own, and asks for its first page until it was looked at."""
    found = Measured(f"{bench.load.users} users, each with {bench.load.rows:,} rows of their own")
    begun, done = time.perf_counter(), 0

    async def one(number: int) -> None:
        nonlocal done
        async with _session(bench) as client:
            while (
                made := await client.post("/api/projects", json={"path": "million.csv"})
            ).status_code == 409:
                await asyncio.sleep(0.5)  # all places are taken: the answer says so at once
            project, run = made.json()["id"], made.json()["running"]
            state = "running"
            while state == "running":
                await _visits(client, EARLY[number % len(EARLY)].format(project), found)
                await asyncio.sleep(0.3)
                state = (await client.get(f"/api/projects/{project}/runs/{run}")).json()["state"]
            found.bad += [] if state == "done" else [state]
            done += 1

    async def watch() -> None:
        while done < bench.load.users:
            found.with_runs = max(found.with_runs, bench.with_runs())
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(one(i) for i in range(bench.load.users)))
    await watching
    found.memory, found.seconds = bench.memory(), time.perf_counter() - begun
    return found


def measured(load: Load) -> Iterator[Measured]:
    """Every kind of load, one after the other, on one server."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), load)
        try:
            yield Measured("begin", memory=bench.memory())
            yield asyncio.run(crowd(bench))
            opened = bench.program.post("/api/projects", json={"path": "million.csv"}).json()
            project = str(opened["id"])
            assert bench.wait(project, opened["running"]) == "done"
            require = {"require": [{"model": "k-anonymity", "k": "5"}]}
            bench.program.put(f"/api/projects/{project}/requirements", json=require).raise_for_status()
            yield asyncio.run(users(bench, project, "in peace"))
            run = bench.program.post(f"/api/projects/{project}/runs", json={"kind": "release"}).json()["id"]
            yield asyncio.run(users(bench, project, "while a release is made"))
            assert bench.wait(project, run) == "done"
            yield asyncio.run(own_projects(bench))
        finally:
            bench.stop()


def main() -> None:
    for found in measured(Load()):
        print(found, flush=True)


if __name__ == "__main__":
    main()
