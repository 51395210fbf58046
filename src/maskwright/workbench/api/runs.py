"""Calls about runs and what they made: start, watch, cancel, download."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from maskwright.domain.adversary import MOST_FACTS
from maskwright.errors import UsageError
from maskwright.methods import METHODS
from maskwright.pipeline.attacking import ADVERSARIES
from maskwright.workbench.api.common import Going, This, start_job
from maskwright.workbench.api.policies import method_from
from maskwright.workbench.jobs import Conflict

router = APIRouter()


class Started(BaseModel):
    """A run: `release` publishes, `space` lists the minimal choices, `compare` tries methods, `attack` attacks."""

    kind: str = "release"
    methods: list[dict[str, Any]] = Field(
        default_factory=list, description="of compare; default: every method"
    )
    release: str | None = Field(None, description="of attack: the run that made it")
    adversary: str = "knows-method"
    facts: int | None = Field(None, ge=0, le=MOST_FACTS)


@router.post("/projects/{project_id}/runs", status_code=202)
def start_run(request: Request, this: This, body: Started) -> dict[str, Any]:
    """Start a run. It goes on when the page is closed, and when the server stops."""
    parameters: dict[str, Any] = {}
    if body.kind == "compare":
        chosen = body.methods or [{"name": name} for name in METHODS]
        parameters["methods"] = [method_from(m) for m in chosen]
    elif body.kind == "attack":
        if body.adversary not in ADVERSARIES:
            raise UsageError(f"there is no adversary {body.adversary!r}")
        parameters |= {"adversary": body.adversary, "facts": body.facts, "of": body.release}
        parameters["release"] = str(this.release(body.release or ""))
    elif body.kind not in ("release", "space"):
        raise UsageError(f"there is no run of the kind {body.kind!r}; known: release, space, compare, attack")
    return start_job(request, this, body.kind, parameters)


@router.get("/projects/{project_id}/runs")
def list_runs(this: This) -> list[dict[str, Any]]:
    """The runs of a project, newest first."""
    return [{**j.as_dict(), "events": []} for j in this.jobs.all()]


@router.get("/projects/{project_id}/runs/{job_id}")
def show_run(this: This, going: Going, since: int = 0) -> dict[str, Any]:
    """The state of a run, and its events from number `since` on."""
    this.jobs.settle()
    return going.as_dict(max(0, since))


@router.get("/projects/{project_id}/runs/{job_id}/result")
def show_result(going: Going) -> dict[str, Any]:
    """What a run that ended found: private, like everything about the original table."""
    result = going.result
    if result is None:
        raise Conflict("this run has not ended, or not well")
    return result


@router.post("/projects/{project_id}/runs/{job_id}/cancel", status_code=202)
def cancel_run(going: Going) -> dict[str, Any]:
    """Ask a run to stop; nothing is published."""
    if going.state == "running":
        going.cancel()
    return going.as_dict()


@router.get("/projects/{project_id}/releases/{job_id}/public.zip")
def download_release(this: This, job_id: str) -> Response:
    """What can be handed over: the files of public/."""
    folder = this.release(job_id) / "public"
    return StreamingResponse(
        _zipped(folder), media_type="application/zip",
        headers={"content-disposition": 'attachment; filename="release.zip"'},
    )  # fmt: skip


def _zipped(folder: Path) -> Iterator[bytes]:
    """A zip file piece by piece: a release may be larger than the memory."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if not path.is_file():
                continue
            entry = zipfile.ZipInfo(
                path.relative_to(folder).as_posix()
            )  # no time stamps: they say nothing useful
            entry.compress_type = zipfile.ZIP_DEFLATED
            with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as out:
                while piece := source.read(1 << 20):
                    out.write(piece)
                    yield sink.taken()
    yield sink.taken()


class _Sink(io.RawIOBase):
    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        """Yes: it can be written to."""
        return True

    def write(self, data: Any) -> int:
        """Keep bytes until they are taken."""
        self._pieces.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        """The bytes since the last call."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
