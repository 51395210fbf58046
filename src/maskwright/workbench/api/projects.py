"""Calls about projects: their tables, the runs on them, and the releases that were made and given out."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from maskwright.domain.adversary import MOST_FACTS
from maskwright.errors import UsageError
from maskwright.methods import METHODS
from maskwright.pipeline.attacking import ADVERSARIES
from maskwright.suggest.advice import QUESTIONS, Answers
from maskwright.verification.verify import file_hash
from maskwright.workbench.api.common import Going, Here, This, start_job
from maskwright.workbench.api.policies import method_from
from maskwright.workbench.jobs import TOO_MANY, Conflict
from maskwright.workbench.project_file import PROJECT_ENDING, exported_files, unpack_project
from maskwright.workbench.workspace import NotFound, Project, Workspace, time_now, write_json

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
    recipient: str | None = Field(
        None, max_length=40, description="with knows and needs: policies are tried on the table"
    )
    knows: str | None = Field(None, max_length=40)
    needs: str | None = Field(None, max_length=40)


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
    if name.endswith(PROJECT_ENDING):
        try:
            await run_in_threadpool(_take_in, made, target, request.app.state.keys.upload_limit)
        except BaseException:
            await run_in_threadpool(here.delete, made)
            raise
        return _described(made)
    _say_where(made, target)
    await run_in_threadpool(profile_again, request, made, ReadingChoice())
    return _described(made)


def _say_where(made: Project, table: Path, **more: Any) -> None:
    meta = made.meta
    meta["source"]["path"], meta["source"]["name"] = str(table), table.name
    write_json(made.folder / "project.json", {**meta, **more})


def _take_in(made: Project, file: Path, limit: int) -> None:
    """Make a project that was exported the content of a new one, and look at its table."""
    found = unpack_project(file, made.folder, limit)
    file.unlink()
    _say_where(made, found.table, name=found.name)
    made.save_policy(found.policy)
    asked = {"source": str(found.table), "name": found.table.name, "preset": None, "reading": found.reading}
    made.jobs.start("profile", {**asked, "answers": {}, "policy": found.policy})


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
    _say_where(made, target)
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
    said = {k: v for k in QUESTIONS if (v := getattr(body, k))}
    if said:
        Answers(**said)  # refuses what is no answer
    return {
        "source": meta["source"]["path"], "name": meta["source"]["name"], "preset": body.preset or None,
        "reading": reading, "answers": said,
    }  # fmt: skip


class Started(BaseModel):
    """A run: `release` publishes, `space` lists the minimal choices, `compare` tries methods, `attack` attacks,

    `predict` trains a model on a release and one on the table.
    """

    kind: str = "release"
    methods: list[dict[str, Any]] = Field(
        default_factory=list, description="of compare; default: every method"
    )
    release: str | None = Field(None, description="of attack and predict: the run that made it")
    target: str | None = Field(None, description="of predict: a sensitive column; default: the first")
    adversary: str = "knows-method"
    facts: int | None = Field(None, ge=0, le=MOST_FACTS)


class Alternative(BaseModel):
    """One of the alternatives of a run, by its number from 1."""

    number: int


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
    elif body.kind == "predict":
        parameters |= {
            "target": body.target,
            "of": body.release,
            "release": str(this.release(body.release or "")),
        }
    elif body.kind not in ("release", "space"):
        raise UsageError(
            f"there is no run of the kind {body.kind!r}; known: release, space, compare, attack, predict"
        )
    return start_job(request, this, body.kind, parameters)


@router.post("/projects/{project_id}/runs/{job_id}/choose", status_code=202)
def choose_alternative(request: Request, this: This, going: Going, body: Alternative) -> dict[str, Any]:
    """Make an alternative that was tried for a run the policy of the project, and run it."""
    found = (going.outcome or {}).get("alternatives", {}).get("found", [])
    if not 1 <= body.number <= len(found):
        raise NotFound("there is no such alternative")
    with this.lock:
        now = this.policy()
        tried = this.parse(this.policy_of(going.id).read_text(encoding="utf-8"))
        if now is None or now.to_dict() not in [tried.to_dict(), *(a["policy"] for a in found)]:
            raise Conflict(
                "the policy was changed since that run; run it again, which tries others for it as it is"
            )
        this.save_policy(found[body.number - 1]["policy"])
        return start_job(request, this, "release", {})


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
        raise Conflict("this run has not ended, or has failed")
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
    files = [(p, p.relative_to(folder).as_posix()) for p in sorted(folder.rglob("*")) if p.is_file()]
    return _zip_response(files, "release.zip")


@router.get("/projects/{project_id}/project.maskwright")
def export_project(this: This) -> Response:
    """A project as one file: its table, policy and hierarchies. Its releases are folders of their own."""
    return _zip_response(exported_files(this), f"{this.id}{PROJECT_ENDING}")


def _zip_response(files: Sequence[tuple[Path | bytes, str]], name: str) -> Response:
    return StreamingResponse(
        _zipped(files), media_type="application/zip",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )  # fmt: skip


def _zipped(files: Sequence[tuple[Path | bytes, str]]) -> Iterator[bytes]:
    """A zip file piece by piece: a release may be larger than the memory."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, name in files:
            entry = zipfile.ZipInfo(name)  # no time stamps: they say nothing useful
            if isinstance(path, bytes):
                archive.writestr(entry, path, zipfile.ZIP_DEFLATED)
                continue
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


class GivenOut(BaseModel):
    """What the register says of a release that was given out."""

    recipient: str = Field(min_length=1, max_length=500)
    purpose: str = Field("", max_length=2000)
    signed_off_by: str = Field(min_length=1, max_length=200)
    given_out: str = Field("", max_length=40, description="the day, as 2026-01-31; default: today")


class FolderGivenOut(GivenOut):
    """A release that the command line made, and what the register says of it."""

    path: str = Field(min_length=1, max_length=2000, description="its folder, with public/ and private/")


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
            **_stated(body), "policy": file_hash(this.policy_of(job_id)),
            "manifest": file_hash(folder / "public" / "manifest.json"),
        }
    )  # fmt: skip


@router.post("/register", status_code=201)
def record_folder(request: Request, here: Here, body: FolderGivenOut) -> dict[str, Any]:
    """Record a release that the command line made. It stays where it is; later ones can be attacked with it."""
    folder = request.app.state.roots.check_release(body.path)
    policy = folder / "private" / "policy.yaml"
    return here.record(
        {
            "project": "", "release": "", "name": folder.name, "table": "", "folder": str(folder), **_stated(body),
            "policy": file_hash(policy) if policy.is_file() else "",
            "manifest": file_hash(folder / "public" / "manifest.json"),
        }
    )  # fmt: skip


def _stated(body: GivenOut) -> dict[str, str]:
    return {
        "recipient": body.recipient.strip(), "purpose": body.purpose.strip(),
        "signed_off_by": body.signed_off_by.strip(), "given_out": body.given_out.strip() or time_now()[:10],
    }  # fmt: skip


def _folder_of(here: Workspace, entry: dict[str, Any]) -> Path:
    """Where the release of an entry is; refused where it is another by now."""
    if not entry.get("folder"):
        return here.project(entry["project"]).release(entry["release"])
    folder = Path(entry["folder"])
    manifest = folder / "public" / "manifest.json"
    if not manifest.is_file() or file_hash(manifest) != entry["manifest"]:
        raise UsageError(
            f"the folder of {entry['name']!r} is gone, or holds another release than was recorded"
        )
    return folder


@router.post("/register/attack", status_code=202)
def attack_together(here: Here, body: Together) -> dict[str, Any]:
    """The intersection attack: what somebody learns who has several of the releases."""
    known = {entry["id"]: entry for entry in here.register()}
    missing = [e for e in body.entries if e not in known]
    if missing:
        raise NotFound("there is no such entry in the register")
    chosen = [known[e] for e in dict.fromkeys(body.entries)]
    places = list(dict.fromkeys(str(_folder_of(here, e)) for e in chosen))
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
