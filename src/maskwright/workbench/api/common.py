"""What all calls share: the project or run that an address names, and how a run is started."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Header, Request

from maskwright.workbench.jobs import BackgroundJob, Conflict
from maskwright.workbench.workspace import NotFound, Project, Workspace, new_id, write_text

IfMatch = Annotated[
    str | None, Header(alias="If-Match", description="the revision that the change is based on")
]


def _workspace_of(request: Request) -> Workspace:
    found: Workspace = request.app.state.workspace
    return found


def _project_of(request: Request, project_id: str) -> Project:
    return _workspace_of(request).project(project_id)


def _job_of(this: Annotated[Project, Depends(_project_of)], job_id: str) -> BackgroundJob:
    found = this.jobs.get(job_id)
    if found is None:
        raise NotFound("there is no such run")
    return found


Here = Annotated[Workspace, Depends(_workspace_of)]
This = Annotated[Project, Depends(_project_of)]
Going = Annotated[BackgroundJob, Depends(_job_of)]


def start_job(request: Request, this: Project, kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Start a run unless one is going on in this project."""
    with this.lock:
        if (running := this.jobs.running()) is not None:
            raise Conflict(
                f"a run is in progress in this project ({running.kind}); wait for it, or cancel it"
            )
        this.jobs.settle()
        id_ = new_id()
        if kind != "profile":
            text = this.policy_text()
            if text is None:
                raise Conflict("the project has no policy yet; set the roles of its columns first")
            this.parse(text)
            write_text(this.policy_of(id_), text)
            parameters = {**parameters, "policy": str(this.policy_of(id_)), "source": str(this.source)}
        if kind == "release":
            parameters["destination"] = str(this.folder / "releases" / id_)
        return this.jobs.start(kind, {**parameters, "memory": request.app.state.memory}, id_).as_dict()
