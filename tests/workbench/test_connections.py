"""Connections that ask nothing, or do not read the answer: they give way, and what is logged about them is bounded."""

from __future__ import annotations

import contextlib
import json
import logging
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from maskwright.workbench import serve
from maskwright.workbench.serve import LINES_A_MINUTE, Rationed
from tests.workbench.conftest import Bench


def connect(port: int, text: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), 20)
    made.sendall(text)
    return made


def was_closed(connection: socket.socket, within: float) -> bool:
    connection.settimeout(within)
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


@pytest.fixture
def few(tmp_path: Path) -> Iterator[tuple[int, str, Path]]:
    """A workbench that may open 256 files, as some systems have it: its port, its token, what it prints."""
    log = tmp_path / "log"
    (tmp_path / "tables").mkdir()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "maskwright.cli", "ui", str(tmp_path / "tables"), "--port", "0", "--no-browser",
             "--workspace", str(tmp_path / "workspace"), "--json"],
            stdout=subprocess.PIPE, stderr=out, text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)),
        )  # fmt: skip
    assert process.stdout
    said = json.loads(process.stdout.readline())
    yield int(said["url"].partition("/start")[0].rpartition(":")[2]), said["token"], log
    process.send_signal(signal.SIGINT)
    process.wait(120)
    process.stdout.close()


def test_half_open_connections_keep_nobody_out(few: tuple[int, str, Path]) -> None:
    """More of them than there are files: requests are answered, and next to nothing is logged."""
    port, token, log = few
    with contextlib.ExitStack() as held:
        for _ in range(300):
            held.enter_context(connect(port, b"GET / HTTP/1.1\r\nHost: x"))
        for _ in range(5):
            begun = time.monotonic()
            answer = httpx.get(
                f"http://127.0.0.1:{port}/api/projects",
                headers={"Authorization": f"Bearer {token}"},
                timeout=10,
            )
            assert answer.status_code == 200
            assert time.monotonic() - begun < 10
            time.sleep(0.3)
    assert log.stat().st_size < 20_000


def test_who_asks_nothing_in_time_is_cut_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing, half a head, half a head after an answer, a body that nobody waits for: also drop by drop."""
    monkeypatch.setattr(serve, "REQUEST_S", 1.0)
    port = bench.keys.port
    head = f"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode()
    body = f"POST /api/projects HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 900\r\n\r\n".encode()
    slow = [connect(port, text) for text in (b"", head, head + b"\r\n" + head, body)]
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        for connection in slow[1:]:
            with contextlib.suppress(OSError):
                connection.sendall(b"x")
        time.sleep(0.1)
    assert [was_closed(c, 60) for c in slow] == [True] * 4
    for connection in slow:
        connection.close()


def test_who_does_not_read_is_cut_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand requests at once, and no answer read: the connection is not kept."""
    monkeypatch.setattr(serve, "STALLED_S", 0.5)
    port = bench.keys.port
    request = f"GET /static/style.css HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    with connect(port) as made, pytest.raises(ConnectionError):
        for _ in range(200):
            made.sendall(request * 1000)
            time.sleep(0.05)
    assert bench.get("/api/projects") == []


def test_requests_that_are_answered_are_not_cut_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upload takes as long as it takes, and so does an answer."""
    monkeypatch.setattr(serve, "REQUEST_S", 1.0)

    def slowly() -> Iterator[bytes]:
        yield b"age,sex\n"
        for i in range(6):
            time.sleep(0.4)
            yield f"{i},F\n".encode()

    answer = bench.client.post("/api/uploads", content=slowly(), headers={"X-File-Name": "slow.csv"})
    assert answer.status_code == 201


def test_a_place_is_taken_from_who_waits_longest(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "MOST_CONNECTIONS", 5)
    bench.client.close()
    first, *others = [connect(bench.keys.port) for _ in range(5) if not time.sleep(0.1)]
    new = connect(
        bench.keys.port, b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % bench.keys.port
    )
    assert new.recv(15) == b"HTTP/1.1 200 OK"
    assert was_closed(first, 60)
    assert not any(was_closed(c, 0.1) for c in others)
    for connection in (first, new, *others):
        connection.close()


def test_messages_are_rationed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(serve.time, "monotonic", lambda: now)
    ration = Rationed()
    record = logging.makeLogRecord({"msg": "no %s", "args": ("files",)})
    assert [ration.filter(record) for _ in range(1000)].count(True) == LINES_A_MINUTE
    now += 60
    assert ration.filter(record)
    assert record.getMessage() == f"no files ({1000 - LINES_A_MINUTE} messages were left out)"
