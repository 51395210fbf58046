"""A workbench served from a thread, on a workspace of its own; its runs are processes."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from maskwright.workbench import jobs
from maskwright.workbench.roots import Roots
from maskwright.workbench.security import AccessKeys
from maskwright.workbench.serve import create_app, server_of
from maskwright.workbench.workspace import Workspace
from tests.amounts import LONG
from tests.workbench.prepared import ForkedRun, prepare_runs

NAME = "0123456789abcdef.localhost"  # under which browsers call; tests need not resolve it


@dataclass
class Bench:
    """What a test needs: a client that has the token, and where things are."""

    client: httpx.Client
    url: str
    keys: AccessKeys
    workspace: Workspace
    tables: Path
    kept: Path  # a project of `people()` that was looked at, when there was one

    def get(self, path: str) -> Any:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait(self, project: str, job: str) -> dict[str, Any]:
        """A run that ended."""
        until = time.monotonic() + 600
        while time.monotonic() < until:
            state = self.get(f"/api/projects/{project}/runs/{job}")
            if state["state"] != "running":
                return dict(state)
            time.sleep(0.05)
        raise AssertionError("the run does not end")

    def opened(self, name: str = "people.csv") -> str:
        """A project whose table was looked at; that of `people()` once, after that it is copied."""
        usual = name == "people.csv" and (self.tables / name).read_text(encoding="utf-8") == people()
        if usual and self.kept.exists():
            return self._copied(secrets.token_hex(6))
        answer = self.client.post("/api/projects", json={"path": name})
        assert answer.status_code == 201, answer.text
        project = str(answer.json()["id"])
        assert self.wait(project, answer.json()["running"] or self.last(project))["state"] == "done"
        if usual:
            shutil.copytree(self.workspace.project(project).folder, self.kept)
        return project

    def _copied(self, project: str) -> str:
        folder = self.workspace.root / "projects" / project
        shutil.copytree(self.kept, folder)
        about = folder / "project.json"
        told = json.loads(about.read_text(encoding="utf-8"))
        told["source"]["path"] = str(self.tables / "people.csv")
        about.write_text(json.dumps(told), encoding="utf-8")
        return project

    def last(self, project: str) -> str:
        return str(self.get(f"/api/projects/{project}/runs")[0]["id"])

    def run(self, project: str, **body: Any) -> dict[str, Any]:
        answer = self.client.post(f"/api/projects/{project}/runs", json=body)
        assert answer.status_code == 202, answer.text
        return self.wait(project, answer.json()["id"])


def people(rows: int = 240) -> str:
    """A small table in which a release is possible: name, age, sex, town, diagnosis."""
    towns, sick = ["Aveiro", "Braga", "Coimbra", "Porto"], ["flu", "asthma", "gout", "cancer", "none"]
    lines = (
        f"Person {i:03},{20 + i * 7 % 50},{'FM'[i % 2]},{towns[i // 3 % 4]},{sick[i * 3 % 5]}\n"
        for i in range(rows)
    )
    return "name,age,sex,town,diagnosis\n" + "".join(lines)


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a project is kept that was looked at."""
    return tmp_path_factory.mktemp("kept") / "project"


@pytest.fixture
def started_alone() -> None:
    """Every run starts a Python of its own: for a test that looks for its process."""


@pytest.fixture(autouse=True)
def prepared_runs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Elsewhere runs are forked from a process that has imported all they need; not in the long run."""
    with pytest.MonkeyPatch.context() as patched:
        if not LONG and "started_alone" not in request.fixturenames:
            if "bench" in request.fixturenames:
                prepare_runs()
            patched.setattr(jobs, "subprocess", SimpleNamespace(Popen=ForkedRun, DEVNULL=subprocess.DEVNULL))
        yield


@pytest.fixture
def bench(tmp_path: Path, kept: Path) -> Iterator[Bench]:
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "people.csv").write_text(people(), encoding="utf-8")
    workspace = Workspace(tmp_path / "workspace")
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    keys = AccessKeys(port, frozenset({NAME}), upload_limit=200_000)
    app = create_app(workspace, keys, Roots.of([tables]))
    server = server_of(app)
    # a process ends although it goes on, should the test's end fail before it is told to stop
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {keys.token}"}, timeout=120) as client:
        yield Bench(client, url, keys, workspace, tables, kept)
    for project in workspace.projects():
        for job in project.jobs.all():
            job.cancel()
    server.should_exit = True
    thread.join()
    listener.close()
    workspace.close()
