"""Calls about projects: open or upload a table, look at it, delete it."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Header, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from maskwright.errors import UsageError
from maskwright.workbench.api.common import Here, This, start_job
from maskwright.workbench.jobs import TOO_MANY, Conflict
from maskwright.workbench.workspace import Project, Workspace, write_json

router = APIRouter()
NAME_BYTES = 200  # of a file; most file systems take 255


class Opened(BaseModel):
    """A table to open: by its path, or the bundled example."""

    path: str | None = Field(None, description="below a folder that the workbench was started with")
    demo: bool = Field(False, description="the bundled Adult table with its policy")
    name: str | None = Field(None, max_length=200)


class ReadingChoice(BaseModel):
    """How to read the table, and which preset to guess with."""

    preset: str | None = None
    delimiter: str | None = Field(None, max_length=4)
    encoding: str | None = Field(None, max_length=40)
    header: bool = True
    sheet: str | None = Field(None, max_length=200, description="of an Excel workbook that has several")


def _described(this: Project) -> dict[str, Any]:
    meta = this.meta
    running = this.jobs.running()
    return {
        "id": this.id,
        "name": meta["name"],
        "created": meta["created"],
        "source": meta["source"],
        "revision": this.revision,
        "running": running.id if running else None,
        "releases": this.releases(),
    }


@router.get("/projects")
def list_projects(here: Here) -> list[dict[str, Any]]:
    """All projects, newest first."""
    return [_described(p) for p in here.projects()]


@router.post("/projects", status_code=201)
def open_table(request: Request, here: Here, body: Opened) -> dict[str, Any]:
    """Open a table by its path; it stays where it is. Its profile is made at once."""
    if body.demo:
        _check_for_place(here)
        return _described(_demo(here))
    if not body.path:
        raise UsageError("say which file to open")
    path = request.app.state.roots.check(body.path)
    _check_for_place(here)
    made = here.create(body.name or path.stem, path)
    profile_again(request, made, ReadingChoice())
    return _described(made)


@router.post("/uploads", status_code=201)
async def upload(
    request: Request,
    here: Here,
    x_file_name: Annotated[str, Header(description="percent-encoded")] = "table.csv",
) -> dict[str, Any]:
    """Upload a table: the body is the file itself. It is kept in the project, readable by its owner only."""
    name = safe_name(unquote(x_file_name))
    _check_for_place(here)
    made = await run_in_threadpool(here.create, Path(name).stem or "table")
    target = made.folder / "data" / name
    try:
        await _store(request, target)
    except BaseException:
        await run_in_threadpool(here.delete, made)
        raise
    meta = made.meta
    meta["source"]["path"], meta["source"]["name"] = str(target), name
    write_json(made.folder / "project.json", meta)
    await run_in_threadpool(profile_again, request, made, ReadingChoice())
    return _described(made)


def _check_for_place(here: Workspace) -> None:
    """Refuse a table before it is stored, when no run could look at it."""
    if here.jobs.turns.is_full():
        raise Conflict(TOO_MANY)


def safe_name(sent: str) -> str:
    """The last part of a name, without what a file system or a terminal could take for something else."""
    name = "".join(c for c in Path(sent.replace("\\", "/")).name if c.isprintable())[-NAME_BYTES:]
    while len(name.encode()) > NAME_BYTES:  # its end says what kind of file it is
        name = name[1:]
    bare = name.lstrip(".")
    if bare and bare == name:
        return name
    return bare if "." in bare else f"table.{bare or 'csv'}"


async def _store(request: Request, target: Path) -> None:
    with target.open("xb") as out:
        async for chunk in request.stream():
            await run_in_threadpool(out.write, chunk)
    if target.stat().st_size == 0:
        raise UsageError("the file is empty")


def _demo(here: Workspace) -> Project:
    with as_file(files("maskwright").joinpath("data", "adult")) as folder:
        made = here.create("Adult (example)")
        for file in (folder / "hierarchies").iterdir():
            shutil.copyfile(file, made.folder / "hierarchies" / file.name)
        target = made.folder / "data" / "adult.csv"
        shutil.copyfile(folder / "adult.csv", target)
        text = (folder / "policy.yaml").read_text(encoding="utf-8")
    meta = made.meta
    meta["source"]["path"], meta["source"]["name"] = str(target), target.name
    write_json(made.folder / "project.json", meta)
    made.jobs.start("profile", _profile_request(made, ReadingChoice()) | {"policy": text})
    return made


@router.get("/projects/{project_id}")
def show_project(this: This) -> dict[str, Any]:
    """One project, with the profile of its table and its policy."""
    return _described(this) | {"profile": this.profile(), "policy": this.policy_text()}


@router.delete("/projects/{project_id}")
def delete_project(here: Here, this: This) -> dict[str, Any]:
    """Delete a project with its uploaded table and its releases; refused when one of them was given out."""
    here.delete(this)
    return {"ok": True}


@router.post("/projects/{project_id}/profile", status_code=202)
def profile_again(request: Request, this: This, body: ReadingChoice) -> dict[str, Any]:
    """Look at the table again: guesses roles, hierarchies and requirements anew, and replaces the policy."""
    return start_job(request, this, "profile", _profile_request(this, body))


def _profile_request(this: Project, body: ReadingChoice) -> dict[str, Any]:
    meta = this.meta
    reading: dict[str, Any] = {k: getattr(body, k) or None for k in ("delimiter", "encoding", "sheet")}
    reading["header"] = body.header
    return {
        "source": meta["source"]["path"], "name": meta["source"]["name"], "preset": body.preset or None,
        "reading": reading,
    }  # fmt: skip
