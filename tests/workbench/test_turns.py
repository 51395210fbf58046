"""Runs of a whole workspace take turns: a few go on, some wait, more are refused."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from maskwright.errors import Cancelled
from maskwright.workbench import turns
from maskwright.workbench.turns import Turns
from tests.workbench.conftest import Bench, people


def states(bench: Bench, made: dict[str, str]) -> list[tuple[str, bool]]:
    """Of each run its state, and whether it waits."""
    found = [bench.get(f"/api/projects/{project}/runs/{run}") for project, run in made.items()]
    return [(f["state"], [e["text"] for e in f["events"]][-1:] == [WAITS]) for f in found]


WAITS = "waiting for other runs of this workbench"


def workers(workspace: Path) -> list[int]:
    """The processes of runs of this workspace; those of a test before may still be about to end."""
    found = [
        int(pid) for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()
    ]
    called = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in found}
    return [
        pid for pid, words in called.items() if b"workbench.worker" in words and bytes(workspace) in words
    ]


@pytest.mark.usefixtures("started_alone")
def test_a_few_runs_go_on_and_the_others_wait(bench: Bench) -> None:
    """Ten uploads: never more than four at a time, and all of them end."""
    taken = [
        Turns(bench.workspace.root / "turns")._taken("turn", turns.AT_ONCE) for _ in range(turns.AT_ONCE)
    ]
    made: dict[str, str] = {}
    for i in range(5):
        answer = bench.client.post(
            "/api/uploads", content=people(30).encode(), headers={"X-File-Name": f"{i}.csv"}
        )
        assert answer.status_code == 201, answer.text
        made[answer.json()["id"]] = answer.json()["running"]
    until = time.monotonic() + 600
    while states(bench, made) != [("running", True)] * 5:
        assert time.monotonic() < until
        time.sleep(0.1)
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    lower = [os.getpriority(os.PRIO_PROCESS, pid) > mine for pid in workers(bench.workspace.root)]
    assert lower == [True] * (5 if Path("/proc/self").exists() else 0)
    first, *others = made
    bench.client.post(f"/api/projects/{first}/runs/{made[first]}/cancel")
    assert bench.wait(first, made[first])["state"] == "cancelled"
    for handle in taken:
        assert handle is not None
        os.close(handle)
    assert {bench.wait(project, made[project])["state"] for project in others} == {"done"}


def test_more_runs_than_may_wait_are_refused(bench: Bench) -> None:
    project = bench.opened()
    runs = bench.get(f"/api/projects/{project}/runs")
    places = Turns(bench.workspace.root / "turns")
    taken: list[int] = []
    until = time.monotonic() + 600
    while len(taken) < turns.MOST:  # the process of a run that ended may take a moment to go
        assert time.monotonic() < until
        taken += iter(places.place, None)
        time.sleep(0.05)
    assert places.is_full()
    for answer in (
        bench.client.post(f"/api/projects/{project}/runs", json={"kind": "release"}),
        bench.client.post("/api/uploads", content=b"age,sex\n1,F\n"),
        bench.client.post("/api/projects", json={"path": "people.csv"}),
        bench.client.post("/api/projects", json={"demo": True}),
    ):
        assert answer.status_code == 409
        assert "wait until one ends, or cancel one" in answer.json()["error"]
    assert len(bench.workspace.projects()) == 1  # nothing was stored
    assert bench.get(f"/api/projects/{project}/runs") == runs
    for handle in taken:
        os.close(handle)
    assert bench.client.post(f"/api/projects/{project}/runs", json={"kind": "release"}).status_code == 202


def test_a_turn_is_given_back(tmp_path: Path) -> None:
    places = Turns(tmp_path)
    waited = []
    for _ in range(turns.AT_ONCE + 1):
        with places.turn(lambda: False, lambda: waited.append(1)):
            pass
    assert waited == []
    held = [places._taken("turn", turns.AT_ONCE) for _ in range(turns.AT_ONCE)]
    with pytest.raises(Cancelled), places.turn(lambda: True, lambda: waited.append(1)):
        pass
    assert waited == [1]
    for handle in held:
        assert handle is not None
        os.close(handle)
