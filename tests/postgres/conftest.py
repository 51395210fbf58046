"""A real PostgreSQL server of our own, on a free port of the loopback, as long as the tests run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import needs, unavailable

PASSWORD = "correct horse/battery:staple"  # noqa: S105 - of a server that lives for seconds
QUOTED = "correct%20horse%2Fbattery%3Astaple"


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name), reverse=True
    )
    return next((p for p in places if (p / "initdb").exists() and (p / "postgres").exists()), None)


@dataclass
class Server:
    port: int

    def url(self, password: str = QUOTED, user: str = "owner") -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/postgres"

    def run(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.url()) as connection, connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return cursor.fetchall() if cursor.description else []


@dataclass
class Cluster:
    """A server that is ready to be started."""

    folder: Path
    binaries: Path
    port: int
    user: dict[str, Any]  # the server refuses to run as root

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def options(self) -> list[str]:
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off",
                    "port": self.port, "timezone": "Asia/Tokyo", "datestyle": "german"}  # fmt: skip
        return [x for k, v in settings.items() for x in ("-c", f"{k}={v}")]


@contextmanager
def initialised() -> Iterator[Cluster]:
    binaries = _binaries()
    if binaries is None:
        unavailable("no PostgreSQL server is installed (apt-get install postgresql)")
    needs("psycopg")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="maskwright-test-pg-"))
    user: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    password = folder / "password"
    password.write_text(PASSWORD, encoding="utf-8")
    if user:
        shutil.chown(folder, "postgres", "postgres")
        shutil.chown(password, "postgres", "postgres")
    made = Cluster(folder, binaries, port, user)
    initdb = [binaries / "initdb", "-D", made.data, "-U", "owner", "--auth=scram-sha-256", f"--pwfile={password}",
              "--encoding=UTF8", "--locale=C", "--no-sync"]  # fmt: skip
    try:
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **user)
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with initialised() as made:
        command = [made.binaries / "postgres", "-D", made.data, *made.options]
        with (made.folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=made.folder, **made.user)
        try:
            _wait(Server(made.port), process, made.folder / "log")
            yield Server(made.port)
        finally:
            process.terminate()
            process.wait(60)


def _wait(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    for _ in range(600):
        if process.poll() is not None:
            pytest.fail(f"the server does not start: {log.read_text(encoding='utf-8')}")
        try:
            server.run("SELECT 1")
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("the server does not answer")


@pytest.fixture
def schema(server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """A schema of its own for each test, whose name needs quotes."""
    name = f"S {abs(hash(request.node.nodeid)) % 10**9}"
    server.run(f'CREATE SCHEMA "{name}"')
    yield f'"{name}"'
    server.run(f'DROP SCHEMA "{name}" CASCADE')
