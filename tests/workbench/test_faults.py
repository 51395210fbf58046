"""What is left of a workbench that was killed, and what a clock that is set back does to it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from maskwright.folder import store
from maskwright.workbench.jobs import Board
from maskwright.workbench.turns import Turns
from maskwright.workbench.workspace import Workspace


def finished(board: Board, name: str, began: float, **more: object) -> None:
    folder = board.folder / name
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps({"kind": "release", "began": began, **more}))


def test_an_upload_that_did_not_end_is_removed_at_the_next_start(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "w")
    whole, half = space.create("whole", tmp_path / "p.csv"), space.create("half")
    (half.folder / "data" / "people.csv").write_text("name,age\nAda,3")
    (whole.folder / ".draft-x1").mkdir()
    (whole.folder / ".draft-x1" / "h.csv").write_text("raw")
    (whole.folder / "values" / ".maskwright-0123456789abcdef.part").write_text("raw")
    space.close()
    space = Workspace(tmp_path / "w")
    assert [p.id for p in space.projects()] == [whole.id]
    assert not half.folder.exists()
    assert not [p for p in (tmp_path / "w").rglob("*") if p.name.startswith((".draft", ".maskwright"))]
    space.close()


def test_half_a_line_of_the_register_is_no_entry(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "w")
    space.record({"project": "a", "note": "one"})
    with (tmp_path / "w/register.jsonl").open("ab") as file:
        file.write(b'{"id": "half')
    assert [entry["note"] for entry in space.register()] == ["one"]
    space.record({"project": "a", "note": "two"})
    assert [entry["note"] for entry in space.register()] == ["two", "one"]
    space.close()


def test_the_next_run_cleans_up_after_one_that_was_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that does not stop when asked is ended where it is: its unfinished files hold raw data."""
    board = Board(tmp_path / "jobs", Turns(tmp_path / "turns"))
    destination = tmp_path / "releases" / "one"
    destination.parent.mkdir()
    finished(board, "one", 1.0, destination=str(destination))
    left = store._piece(destination, "0123456789abcdef", "new")
    left.mkdir()
    (left / "raw").write_text("raw")
    monkeypatch.setattr("maskwright.workbench.jobs.subprocess.Popen", lambda *a, **k: _Done())
    board.start("profile", {})
    assert not left.exists()


class _Done:
    def wait(self) -> int:
        return 0


def test_the_latest_run_is_the_latest_also_when_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Board(tmp_path / "jobs", Turns(tmp_path / "turns"))
    finished(board, "first", time.time() + 86400)
    monkeypatch.setattr("maskwright.workbench.jobs.subprocess.Popen", lambda *a, **k: _Done())
    second = board.start("release", {}, "second")
    assert [job.id for job in board.all()] == ["second", "first"]
    assert second.as_dict()["seconds"] >= 0


def test_nobody_else_can_read_a_workspace(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        space = Workspace(tmp_path / "w")
        space.create("half")
        space.record({"project": "a"})
        space.close()
    finally:
        os.umask(before)
    assert (tmp_path / "w").stat().st_mode & 0o077 == 0
