"""Calls about the register: what was given out, to whom, and what several releases tell together."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from maskwright.errors import UsageError
from maskwright.verification.verify import file_hash
from maskwright.workbench.api.common import Here, This
from maskwright.workbench.workspace import NotFound, time_now

router = APIRouter()


class GivenOut(BaseModel):
    """What the register says of a release that was given out."""

    recipient: str = Field(min_length=1, max_length=500)
    purpose: str = Field("", max_length=2000)
    signed_off_by: str = Field(min_length=1, max_length=200)
    given_out: str = Field("", max_length=40, description="the day, as 2026-01-31; default: today")


class Together(BaseModel):
    """Register entries whose releases are attacked together."""

    entries: list[str] = Field(min_length=2, max_length=20)


@router.get("/register")
def list_register(here: Here) -> list[dict[str, Any]]:
    """Releases that were given out, newest first."""
    return here.register()


@router.post("/projects/{project_id}/releases/{job_id}/register", status_code=201)
def record_release(here: Here, this: This, job_id: str, body: GivenOut) -> dict[str, Any]:
    """Record that a release was given out. Entries are never changed or removed."""
    folder = this.release(job_id)
    return here.record(
        {
            "project": this.id, "name": this.meta["name"], "table": this.meta["source"]["name"], "release": job_id,
            "recipient": body.recipient.strip(), "purpose": body.purpose.strip(),
            "signed_off_by": body.signed_off_by.strip(), "given_out": body.given_out.strip() or time_now()[:10],
            "policy": file_hash(this.policy_of(job_id)), "manifest": file_hash(folder / "public" / "manifest.json"),
        }
    )  # fmt: skip


@router.post("/register/attack", status_code=202)
def attack_together(here: Here, body: Together) -> dict[str, Any]:
    """The intersection attack: what somebody learns who has several of the releases."""
    known = {entry["id"]: entry for entry in here.register()}
    missing = [e for e in body.entries if e not in known]
    if missing:
        raise NotFound("there is no such entry in the register")
    chosen = [known[e] for e in dict.fromkeys(body.entries)]
    places = list(dict.fromkeys(str(here.project(e["project"]).release(e["release"])) for e in chosen))
    if len(places) < 2:
        raise UsageError("choose at least two different releases")
    return here.jobs.start(
        "intersection", {"releases": places, "entries": [e["id"] for e in chosen]}
    ).as_dict()


@router.get("/runs/{job_id}")
def show_common_run(here: Here, job_id: str, since: int = 0) -> dict[str, Any]:
    """The state of a run on several releases; with its result when it ended."""
    found = here.jobs.get(job_id)
    if found is None:
        raise NotFound("there is no such run")
    return found.as_dict(max(0, since)) | {"result": found.result}


@router.post("/runs/{job_id}/cancel", status_code=202)
def cancel_common_run(here: Here, job_id: str) -> dict[str, Any]:
    """Ask a run on several releases to stop."""
    found = here.jobs.get(job_id)
    if found is None:
        raise NotFound("there is no such run")
    found.cancel()
    return found.as_dict()
