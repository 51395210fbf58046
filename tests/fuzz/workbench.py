"""Bad requests to the workbench: every address of it, with bodies, names and headers that nobody should send.

Requests go straight to the application (ASGI), behind its guard and with the token. Never an internal error, never a
traceback, never a file from outside, and pages that still open after whatever was accepted. Runs do not become
processes: one in twenty is executed here, by the code that a process would execute.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from maskwright.errors import UsageError
from maskwright.workbench import jobs, worker
from maskwright.workbench.roots import Roots
from maskwright.workbench.security import AccessKeys
from maskwright.workbench.serve import create_app
from maskwright.workbench.workspace import Workspace
from tests.fuzz.harness import LONGEST_MESSAGE, Target
from tests.fuzz.requests import DAY, Request, request
from tests.patients import POLICY, patients, write_csv

MARK = "no answer may hold this"  # a value of a table that is outside
HOST = "127.0.0.1:8765"


class Process:
    """Stands for the process of a run, which is not started."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def wait(self) -> int:
        return 0


class Requests(Target):
    """Every address, most with something wrong."""

    name = "workbench"
    cpu_s = 30.0

    def begin(self) -> None:
        jobs.subprocess = type("subprocess", (), {"Popen": Process, "DEVNULL": -3})  # type: ignore[assignment]
        tables, outside = self.folder / "tables", self.folder / "outside"
        for folder in (tables, outside):
            folder.mkdir()
        write_csv(tables / "patients.csv", patients(24))
        write_csv(outside / "secret.csv", [[MARK, *row[1:]] for row in patients(24)])
        (tables / "link.csv").symlink_to(outside / "secret.csv")
        self.space = Workspace(self.folder / "workspace")
        self.keys = AccessKeys(8765, frozenset(), upload_limit=100_000)
        self.app = create_app(self.space, self.keys, Roots.of([tables]))
        self.loop = asyncio.new_event_loop()
        self.known = {
            "tables": str(tables),
            "outside": str(outside),
            "project": "",
            "release": "",
            "entry": "",
        }
        self.kept: dict[Path, tuple[tuple[int, ...], bytes]] = {}
        self._prepare()
        self._keep()

    def end(self) -> None:
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.space.close()

    def _prepare(self) -> None:
        """A project that was looked at, with a policy, a release, and an entry of the register; and one without."""
        made = self._asked("POST", "/api/projects", {"path": "patients.csv"})
        self.known["project"] = made["id"]
        project = self.space.project(made["id"])
        (project.folder / "hierarchies" / "zip.csv").write_text("13000;1300*\n", encoding="utf-8")
        self._work()
        self._asked("PUT", f"/api/projects/{made['id']}/policy", {"text": POLICY})
        run = self._asked("POST", f"/api/projects/{made['id']}/runs", {"kind": "release"})
        self._work()
        self.known["release"] = run["id"]
        entry = self._asked("POST", f"/api/projects/{made['id']}/releases/{run['id']}/register", DAY)
        self.known["entry"] = entry["id"]
        self.known["other"] = self._asked("POST", "/api/projects", {"path": "patients.csv"})["id"]

    def _asked(self, method: str, path: str, body: Any) -> dict[str, Any]:
        status, _, answer = self._send(
            method, path, json.dumps(body).encode(), {"content-type": "application/json"}
        )
        assert status < 300, answer
        return dict(json.loads(answer))

    def make(self, rng: random.Random) -> Request:
        return request(rng)

    # -- what comes back ----------------------------------------------------------------------------------

    def feed(self, given: Request) -> None:
        try:
            status, kind, answer = self._send(
                given["method"], self._filled(given["path"]), self._filled(given["body"]),
                {k: self._filled(v) for k, v in given["headers"].items()},
            )  # fmt: skip
            text = check(status, kind, answer)
            changed = status < 400 and given["method"] != "GET"
            if changed and given["executed"]:
                self._work()
            for page in given["looks"] if changed else ():
                check(*self._send("GET", f"/p/{self.known['project']}{page}", b"", {}))
            if changed:
                check(*self._send("GET", "/", b"", {}))
                check(*self._send("GET", "/register", b"", {}))
        finally:
            if given["method"] != "GET":
                self._restore()
        if status >= 400:
            raise UsageError(text or "a page that says what is wrong")

    def _filled(self, given: Any) -> Any:
        """`@project` and the like are known only now."""
        known = {**self.known, "revision": self.space.project(self.known["project"]).revision}
        if isinstance(given, bytes):
            return re.sub(rb"@(\w+)", lambda m: known.get(m[1].decode(), m[0].decode()).encode(), given)
        return re.sub(r"@(\w+)", lambda m: known.get(m[1], m[0]), given)

    def _send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str, bytes]:
        return self.loop.run_until_complete(self._call(method, path, body, headers))

    async def _call(
        self, method: str, path: str, body: bytes, more: dict[str, str]
    ) -> tuple[int, str, bytes]:
        headers = {
            "host": HOST,
            "authorization": f"Bearer {self.keys.token}",
            "content-length": str(len(body)),
        }
        raw, _, query = path.partition("?")
        pairs = [(k.encode(), v.encode("latin-1", "replace")) for k, v in (headers | more).items()]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": unquote(raw), "raw_path": raw.encode(), "query_string": query.encode("latin-1", "replace"),
            "root_path": "", "headers": pairs, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8765),
        }  # fmt: skip
        pieces = iter([body[:1000], body[1000:]])
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            piece = next(pieces, None)
            if piece is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": piece, "more_body": len(piece) == 1000}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        assert sent, "no answer"
        kind = dict(sent[0]["headers"]).get(b"content-type", b"").decode()
        return sent[0]["status"], kind, b"".join(m.get("body", b"") for m in sent[1:])

    # -- runs, and how it was before ----------------------------------------------------------------------

    def _work(self) -> None:
        """Execute the runs that were asked for and that nobody executes."""
        for board in [self.space.jobs, *(p.jobs for p in self.space.projects())]:
            for job in board.all():
                if job.state == "interrupted" and job.folder not in self.kept:
                    worker.execute_job(worker.WorkerRun(job.folder))
                    assert "internal error" not in str(job.outcome), job.outcome

    def _keep(self) -> None:
        for path in self._all():
            self.kept[path] = (stamp(path), path.read_bytes() if path.is_file() else b"")

    def _all(self) -> Iterator[Path]:
        return (self.folder / "workspace").rglob("*")

    def _restore(self) -> None:
        now = {path: stamp(path) for path in self._all()}
        for path in sorted(now.keys() - self.kept.keys(), reverse=True):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path, (as_it_was, content) in self.kept.items():
            if path.name in ("lock", "secret") or now.get(path) == as_it_was:
                continue
            if as_it_was == ():
                path.mkdir(exist_ok=True)
            else:
                path.write_bytes(content)
                self.kept[path] = (stamp(path), content)


def stamp(path: Path) -> tuple[int, ...]:
    """Tells versions of a file apart; nothing of a folder but that it is one."""
    seen = path.stat()
    return () if path.is_dir() else (seen.st_ino, seen.st_mtime_ns, seen.st_size)


def check(status: int, kind: str, answer: bytes) -> str:
    """An answer that somebody can use; the sentence of an error."""
    assert status < 500, (status, answer[:600])
    assert MARK.encode() not in answer, "a file from outside"
    assert b"Traceback" not in answer and b"internal error" not in answer, answer[:600]
    if not kind.startswith("application/json") or not answer:
        return ""
    found = json.loads(
        answer, parse_constant=lambda name: (_ for _ in ()).throw(AssertionError(f"{name} is no JSON"))
    )
    if status < 400:
        return ""
    text = str(found["error"])
    assert text.strip() and len(text.splitlines()) == 1 and len(text) <= LONGEST_MESSAGE, text[:300]
    return text
