"""Another user of the same machine, who listens on ports of loopback, and the browser of who uses the workbench."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.amounts import cases
from tests.browser.conftest import Server, User
from tests.support import unavailable
from tests.workbench.conftest import people

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

NOBODY = 65534
# first of all the imports, because the libraries may lie in somebody's home
BECOME = """
import json, os, socket, sys, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
if os.getuid() == 0:
    nobody = int(sys.argv[1]); os.setgroups([]); os.setgid(nobody); os.setuid(nobody)
"""
# Becomes nobody where it may; tries to listen on each port that it reads, on both loopback addresses; says where it
# did, and from then on what it is sent: one JSON line each. Its pages leave cookies for every name that they can.
STRANGER = (
    BECOME
    + """
class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        print(json.dumps({"path": self.path, **{k.lower(): v for k, v in self.headers.items()}}), flush=True)
        self.send_response(200); self.send_header("content-type", "text/html")
        name = self.path.partition("?")[2]
        for where in ("", "; Domain=localhost", "; Domain=.localhost; Path=/p") if name else ():
            self.send_header("set-cookie", f"{name}=tossed{where}")
        self.end_headers()
        self.wfile.write(b'<a href="/again">again</a>')
    do_POST = do_GET
    def log_message(self, *_): pass
def taken(family, address, reuse):
    server = HTTPServer((address, port), Page, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(family, socket.SOCK_STREAM)
    for option in reuse:
        server.socket.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        server.socket.bind((address, port)); server.socket.listen(16)
    except OSError:
        return False
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return True
held, KINDS = [], ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, "0.0.0.0"),
                   (socket.AF_INET6, "::"))
for line in sys.stdin:
    port, where = int(line), []
    if port < 0:  # bound before anybody else, so that nothing but to listen is left to do
        for family, address in KINDS:
            server = HTTPServer((address, -port), Page, bind_and_activate=False)
            server.socket.close()
            server.socket = socket.socket(family, socket.SOCK_STREAM)
            server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                server.socket.bind((address, -port))
            except OSError:  # one that has the others in it
                continue
            held.append(server)
        print(json.dumps([]), flush=True)
        continue
    for server in held:
        try:
            server.socket.listen(16)
        except OSError:
            continue
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where.append("held before")
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, "0.0.0.0")):
        for reuse in ((socket.SO_REUSEADDR,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)):
            if address not in where and taken(family, address, reuse):
                where.append(address)
    print(json.dumps(where), flush=True)
"""
)


@dataclass
class Stranger:
    """The other user: where they listen, and what they were sent."""

    process: subprocess.Popen[str]

    def listen(self, port: int) -> list[str]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{port}\n")
        self.process.stdin.flush()
        return list(json.loads(self.process.stdout.readline()))

    def was_sent(self) -> list[dict[str, Any]]:
        """All requests; after that the stranger is gone."""
        self.process.terminate()
        return [json.loads(line) for line in self.process.communicate()[0].splitlines()]


def as_another_user() -> None:
    if os.getuid() != 0:
        unavailable("only root can become another user")


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    """Somebody on another port, and another user where these tests may become one."""
    process = subprocess.Popen(
        [sys.executable, "-c", STRANGER, str(NOBODY)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield Stranger(process)
    process.kill()
    with contextlib.suppress(ValueError):  # closed by `was_sent`
        process.communicate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def test_a_link_to_another_port_gives_nothing_away(
    user: User, server: Server, tables: Path, stranger: Stranger
) -> None:
    """Clicked in the workbench, followed within the stranger's page, typed: no cookie, no referrer, no name."""
    (tables / "people.csv").write_text(people(), encoding="utf-8")
    page, port = user.page, free_port()
    assert "127.0.0.1" in stranger.listen(port)
    page.reload()
    page.get_by_role("button", name="people.csv").click()
    page.wait_for_url("**/advice")
    for host in ("127.0.0.1", "localhost"):
        user.go("/")
        page.evaluate(
            """address => { const link = document.createElement("a"); link.href = address; link.text = "a paper";
                            document.querySelector("main").append(link); }""",
            f"http://{host}:{port}/",
        )
        page.get_by_role("link", name="a paper").click()
        page.get_by_role("link", name="again").click()
        page.wait_for_url("**/again")
        page.goto(f"http://{host}:{port}/typed")
    sent = stranger.was_sent()
    assert {r["path"] for r in sent} >= {"/", "/again", "/typed"}
    answers = _with_cookies([r["cookie"] for r in sent if "cookie" in r], server)
    assert not any("Person " in answer.text or answer.status_code == 200 for answer in answers)
    name = server.home.removeprefix("http://").partition(":")[0]
    for request in sent:
        assert "cookie" not in request
        assert name not in json.dumps(request)
        assert str(server.port) not in request.get("referer", "")


def _with_cookies(cookies: list[str], server: Server) -> list[httpx.Response]:
    """What a thief does: all that the workbench knows of its projects, with whatever cookies came."""
    headers = [{"Cookie": cookie, "Host": host} for cookie in cookies for host in
               (server.home.removeprefix("http://"), f"127.0.0.1:{server.port}")]  # fmt: skip
    answers = [httpx.get(f"{server.programs}/api/projects", headers=h, timeout=120) for h in headers]
    found = [p["id"] for a in answers if a.status_code == 200 for p in a.json()]
    paths = [f"/p/{project}/columns/{i}" for project in found for i in range(5)]
    return answers + [
        httpx.get(server.programs + path, headers=h, timeout=120) for path in paths for h in headers
    ]


# The command, but as soon as it has said something it waits for a file: whoever hears it has all the time of the world.
WAITING = """
import os, sys, time
class Waiting:
    def __getattr__(self, name):
        return getattr(sys.__stdout__, name)
    def flush(self):
        sys.__stdout__.flush()
        while not os.path.exists({file!r}):
            time.sleep(0.01)
from maskwright.cli.commands import main
sys.stdout = Waiting()
sys.exit(main())
"""


def test_nobody_can_take_the_port_of_an_address_that_was_told(
    context: BrowserContext, tmp_path: Path, tables: Path, stranger: Stranger
) -> None:
    """As soon as the address is told, the stranger tries to listen there, on every address of loopback.

    The port is bound by the stranger before, which the system allows (SO_REUSEADDR): who listens first has it. And the
    workbench does nothing more until the stranger has tried, so that this is no matter of who is quicker.
    """
    as_another_user()
    port = free_port()
    stranger.listen(-port)
    go = tmp_path / "go"
    waiting = ("-c", WAITING.format(file=str(go)))
    server = Server(tmp_path / "workspace", tables, port=port, program=waiting)
    server.start()
    try:
        took = stranger.listen(server.port)
        go.touch()
        page = context.new_page()
        page.goto(server.url, wait_until="commit")
        sent = stranger.was_sent()
        assert sent == []
        assert took == []
        page.wait_for_url(f"{server.home}/")
        page.get_by_role("button", name="Log out").wait_for()
    finally:
        server.stop()


# What a page can try against an address with the cookies of its browser; gives what it could read.
TRIES = """async address => {
    const read = [];
    for (const mode of ["cors", "no-cors", "same-origin"])
        for (const [method, path] of [["GET", "/api/projects"], ["GET", "/"], ["POST", "/api/projects"],
                                      ["POST", "/api/uploads"], ["DELETE", "/api/session"]])
            try {
                const answer = await fetch(address + path, {method, mode, credentials: "include",
                    ...(method === "POST" ? {body: '{"demo": true}'} : {})});
                const text = await answer.text();
                if (text) read.push(method + " " + path + ": " + text);
            } catch (problem) { }
    const gone = element => new Promise(done => {
        element.onload = element.onerror = done; document.body.append(element); setTimeout(done, 2000); });
    for (const [kind, fields] of [["iframe", {src: address + "/"}], ["img", {src: address + "/static/icon.svg"}],
                                  ["script", {src: address + "/static/js/app.js"}],
                                  ["object", {data: address + "/"}]]) {
        const element = Object.assign(document.createElement(kind), fields);
        await gone(element);
        try {
            const text = element.contentDocument && element.contentDocument.body.textContent;
            if (text) read.push(kind + ": " + text);
        } catch (problem) { }
    }
    const frame = Object.assign(document.createElement("iframe"), {name: "target"});
    await gone(frame);
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
        const form = Object.assign(document.createElement("form"),
            {method: "POST", action: address + "/api/projects", target: "target", enctype: type});
        form.append(Object.assign(document.createElement("input"), {name: '{"demo": true, "x": "', value: '"}'}));
        document.body.append(form);
        form.submit();
        await new Promise(done => setTimeout(done, 300));
    }
    const opened = window.open(address + "/");
    await new Promise(done => setTimeout(done, 500));
    try { read.push("window: " + opened.document.body.textContent); } catch (problem) { }
    if (opened) opened.close();
    return read;
}"""


@pytest.mark.parametrize("host", cases(["127.0.0.1", "localhost", "other.localhost"], brief=["localhost"]))
def test_a_page_on_another_port_cannot_act(user: User, server: Server, stranger: Stranger, host: str) -> None:
    """It knows the port, even the name, and has the browser: it reads nothing, changes nothing, ends no session."""
    port = free_port()
    assert "127.0.0.1" in stranger.listen(port)
    cookie = user.page.context.cookies()[0]
    page = user.page.context.new_page()
    for address in (server.home, server.programs, f"http://localhost:{server.port}"):
        page.goto(f"http://{host}:{port}/?{cookie['name']}")  # tosses cookies of that name
        assert [text for text in page.evaluate(TRIES, address) if text.partition(": ")[2].strip()] == []
    page.close()
    assert server.api("/api/projects") == []
    user.page.reload()
    user.page.get_by_role("button", name="Log out").wait_for()  # the session goes on
    there = [c for c in user.page.context.cookies(server.home) if c["name"] == cookie["name"]]
    assert there == [cookie]
    sent = json.dumps(stranger.was_sent())
    assert cookie["value"] not in sent
    assert server.token not in sent


# Becomes nobody, and prints whatever it can read below the folders and of the processes that it is told.
READER = (
    BECOME
    + """
for root in sys.argv[2:]:
    for folder, _, files in os.walk(root):
        if "/task/" in folder + "/" or folder.rpartition("/")[2] in ("attr", "net"):
            continue
        for name in files:
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    os.write(1, file.read(1 << 22))
            except OSError:
                pass
"""
)


def test_another_user_cannot_read_the_session(context: BrowserContext, tables: Path) -> None:
    """Neither from the processes of the workbench nor from its files, before and during a run."""
    as_another_user()
    if not Path("/proc/self").exists():
        unavailable("what processes tell is not in /proc")
    (tables / "people.csv").write_text(people(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        above = Path(name)
        above.chmod(0o755)  # others can come this far
        (above / "theirs.txt").write_text("can be read", encoding="utf-8")
        (above / "theirs.txt").chmod(0o644)
        server = Server(above / "workspace", tables)
        server.start()
        try:
            assert server.process
            page = context.new_page()
            page.goto(server.url)
            page.wait_for_url(f"{server.home}/")
            page.get_by_role("button", name="people.csv").click()
            page.wait_for_url("**/advice")
            csrf = page.locator("meta[name=csrf]").get_attribute("content")
            below = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
            processes = [f"/proc/{pid}" for pid in (str(server.process.pid), *below)]
            read = subprocess.run(
                [sys.executable, "-c", READER, str(NOBODY), str(above), *processes],
                stdout=subprocess.PIPE, check=True,
            ).stdout  # fmt: skip
            assert b"can be read" in read
            assert b"maskwright.cli" in read  # the arguments of every process
            host = server.home.removeprefix("http://").partition(":")[0]
            for secret in (server.token, context.cookies()[0]["value"], host, csrf, "Person 1"):
                assert secret
                assert secret.encode() not in read
        finally:
            server.stop()


def test_a_session_ends_with_log_out_and_with_the_server(
    context: BrowserContext, tmp_path: Path, tables: Path
) -> None:
    """The cookie of before, put back into the browser, opens nothing: under its name, or under the next one."""
    server = Server(tmp_path / "workspace", tables)
    server.start()
    try:
        page = context.new_page()
        page.goto(server.url)
        page.wait_for_url(f"{server.home}/")
        [first] = context.cookies()
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("heading", name="Not logged in").wait_for()
        assert context.cookies() == []
        context.add_cookies([first])  # type: ignore[list-item]
        assert _status(page, server.home) == 401
        context.clear_cookies()
        page.goto(server.url)
        page.wait_for_url(f"{server.home}/")
        [second] = context.cookies()
        assert second["value"] != first["value"]
        old, port = server.url, server.port
        server.stop()
        server.start()
        assert (server.port, server.url.partition("?")[0]) != (port, old.partition("?")[0])
        assert server.port == port  # the same port, and another name
        assert _status(page, old) == 421
        name = server.home.removeprefix("http://").partition(":")[0]
        context.add_cookies([{**second, "domain": name}])  # type: ignore[list-item]
        assert _status(page, server.home) == 401
        assert _status(page, f"{server.home}/start?{old.partition('?')[2]}") == 401
    finally:
        server.stop()


def _status(page: Page, address: str) -> int:
    answer = page.goto(address)
    assert answer
    return answer.status
