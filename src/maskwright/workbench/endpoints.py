"""The JSON API of the workbench: everything that the pages do, for programs as well.

Send the token of the start address as `Authorization: Bearer TOKEN`. An error is `{"error": "one sentence"}`, with
status 401 or 403 (not allowed), 404, 409 (changed elsewhere, or in use), 413 (too large) or 422 (not valid). Changes of
a policy may carry the `revision` that was read before, as `If-Match`; then a change made meanwhile is not overwritten.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from maskwright.attacking import ADVERSARIES
from maskwright.core.policy import Policy
from maskwright.errors import HierarchyError, PolicyError, UsageError
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.workbench import editing, forms, hierarchies
from maskwright.workbench.jobs import Job
from maskwright.workbench.workspace import (
    Conflict,
    NotFound,
    Project,
    Workspace,
    new_id,
    write_json,
    write_text,
)

router = APIRouter(prefix="/api")
IfMatch = Annotated[
    str | None, Header(alias="If-Match", description="the revision that the change is based on")
]


def workspace(request: Request) -> Workspace:
    found: Workspace = request.app.state.workspace
    return found


def project(request: Request, project_id: str) -> Project:
    return workspace(request).project(project_id)


def job(this: Annotated[Project, Depends(project)], job_id: str) -> Job:
    found = this.jobs.get(job_id)
    if found is None:
        raise NotFound("there is no such run")
    return found


Here = Annotated[Workspace, Depends(workspace)]
This = Annotated[Project, Depends(project)]
Going = Annotated[Job, Depends(job)]


class Opened(BaseModel):
    """A table to open: by its path, or the bundled example."""

    path: str | None = Field(None, description="below a folder that the workbench was started with")
    demo: bool = Field(False, description="the bundled Adult table with its policy")
    name: str | None = Field(None, max_length=200)


class Looked(BaseModel):
    """How to read the table, and which preset to guess with."""

    preset: str | None = None
    delimiter: str | None = Field(None, max_length=4)
    encoding: str | None = Field(None, max_length=40)
    header: bool = True


class Roles(BaseModel):
    """Role of each column; "drop" leaves a column out of the policy, which drops it."""

    columns: dict[str, str]
    missing: list[str] | None = None
    rows: str = "keep"
    unit: str | None = None


class Coarsened(BaseModel):
    """A hierarchy: as the policy writes it, as an indented tree, or as a pasted table."""

    spec: Any = None
    tree: str | None = Field(None, max_length=1_000_000)
    csv: str | None = Field(None, max_length=3_000_000)
    groups: str | None = Field(
        None, max_length=1_000_000, description="groups, as the policy file writes them"
    )
    weight: str | None = Field(None, max_length=40)

    def asked(self) -> hierarchies.Asked:
        return hierarchies.Asked(self.spec, self.tree, self.csv, self.groups)


class Required(BaseModel):
    """The requirements, each as `{"model": name, setting: text}`."""

    require: list[dict[str, Any]]


class Chosen(BaseModel):
    """The method as `{"name": name, setting: text}`, and the recoding."""

    method: dict[str, Any]
    recoding: Any = "generalise"


class PolicyText(BaseModel):
    text: str = Field(max_length=1 << 20)


class Started(BaseModel):
    """A run: `release` publishes, `space` lists the minimal choices, `compare` tries methods, `attack` attacks."""

    kind: str = "release"
    methods: list[dict[str, Any]] = Field(
        default_factory=list, description="of compare; default: every method"
    )
    release: str | None = Field(None, description="of attack: the run that made it")
    adversary: str = "knows-method"
    facts: int | None = Field(None, ge=0, le=50)


class Levels(BaseModel):
    """One level for each quasi-identifier, by name; null: any level."""

    levels: dict[str, str] | None


class GivenOut(BaseModel):
    """What the register says of a release that was given out."""

    recipient: str = Field(min_length=1, max_length=500)
    purpose: str = Field("", max_length=2000)
    signed_off_by: str = Field(min_length=1, max_length=200)
    given_out: str = Field("", max_length=40, description="the day, as 2026-01-31; default: today")


class Together(BaseModel):
    """Register entries whose releases are attacked together."""

    entries: list[str] = Field(min_length=2, max_length=20)


# -- projects --------------------------------------------------------------------------------------------------


def described(this: Project) -> dict[str, Any]:
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
    return [described(p) for p in here.projects()]


@router.post("/projects", status_code=201)
def open_table(request: Request, here: Here, body: Opened) -> dict[str, Any]:
    """Open a table by its path; it stays where it is. Its profile is made at once."""
    if body.demo:
        return described(_demo(here))
    if not body.path:
        raise UsageError("say which file to open")
    path = request.app.state.roots.check(body.path)
    made = here.create(body.name or path.stem, path)
    look(request, made, Looked())
    return described(made)


@router.post("/uploads", status_code=201)
async def upload(
    request: Request,
    here: Here,
    x_file_name: Annotated[str, Header(description="percent-encoded")] = "table.csv",
) -> dict[str, Any]:
    """Upload a table: the body is the file itself. It is kept in the project, readable by its owner only."""
    name = safe_name(unquote(x_file_name))
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
    await run_in_threadpool(look, request, made, Looked())
    return described(made)


def safe_name(sent: str) -> str:
    """The last part of a name, without what a file system or a terminal could take for something else."""
    name = "".join(c for c in Path(sent.replace("\\", "/")).name if c.isprintable())[-120:]
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
    made.jobs.start("profile", _profile_request(made, Looked()) | {"policy": text})
    return made


@router.get("/projects/{project_id}")
def show_project(this: This) -> dict[str, Any]:
    """One project, with the profile of its table and its policy."""
    return described(this) | {"profile": this.profile(), "policy": this.policy_text()}


@router.delete("/projects/{project_id}")
def delete_project(here: Here, this: This) -> dict[str, Any]:
    """Delete a project with its uploaded table and its releases; refused when one of them was given out."""
    here.delete(this)
    return {"ok": True}


@router.post("/projects/{project_id}/profile", status_code=202)
def look(request: Request, this: This, body: Looked) -> dict[str, Any]:
    """Look at the table again: guesses roles, hierarchies and requirements anew, and replaces the policy."""
    return start_job(request, this, "profile", _profile_request(this, body))


def _profile_request(this: Project, body: Looked) -> dict[str, Any]:
    meta = this.meta
    reading = {"delimiter": body.delimiter or None, "encoding": body.encoding or None, "header": body.header}
    return {
        "source": meta["source"]["path"], "name": meta["source"]["name"], "preset": body.preset or None,
        "reading": reading,
    }  # fmt: skip


# -- the policy ------------------------------------------------------------------------------------------------


def _values(this: Project) -> dict[str, Any]:
    policy = this.policy()
    if policy is not None:
        return policy.to_dict()
    profile = this.profile()
    if profile is None:
        raise Conflict("the table has not been looked at yet; wait for its profile")
    return editing.start(profile)


def _saved(this: Project, notes: list[str] | None = None) -> dict[str, Any]:
    return {"ok": True, "revision": this.revision, "notes": notes or []}


@router.get("/projects/{project_id}/policy")
def show_policy(this: This) -> dict[str, Any]:
    """The policy as it stands."""
    return {"text": this.policy_text(), "revision": this.revision}


@router.put("/projects/{project_id}/policy")
def write_policy(this: This, body: PolicyText, if_match: IfMatch = None) -> dict[str, Any]:
    """Replace the policy by a text that was written by hand."""
    this.save_policy(body.text, if_match)
    return _saved(this)


@router.put("/projects/{project_id}/roles")
def set_roles(this: This, body: Roles, if_match: IfMatch = None) -> dict[str, Any]:
    """Set the role of every column, and what means missing."""
    values, notes = editing.set_roles(_values(this), body.columns, this.profile() or {"columns": []})
    if body.missing is not None:
        values = editing.set_table(values, body.missing, body.rows, body.unit)
    this.save_policy(values, if_match)
    return _saved(this, notes)


def _column(this: Project, number: int) -> tuple[str, dict[str, Any]]:
    columns = (this.profile() or {"columns": []})["columns"]
    if not 0 <= number < len(columns):
        raise NotFound("there is no such column")
    return str(columns[number]["name"]), this.values(number)


@router.post("/projects/{project_id}/columns/{number}/preview")
def preview(this: This, number: int, body: Coarsened) -> dict[str, Any]:
    """What a hierarchy makes of the values: every level with its labels. Errors name the values concerned."""
    name, seen = _column(this, number)
    policy = this.policy()
    if policy is None:
        raise Conflict("give at least one column the role quasi-identifier first")
    try:
        with tempfile.TemporaryDirectory(dir=this.folder, prefix=".draft-") as draft:
            folder = Path(draft) if body.csv is not None else this.folder
            spec = body.asked().resolved(folder, name)
            hierarchy = hierarchies.built(spec, name, seen["values"], policy, folder)
    except (HierarchyError, PolicyError) as problem:
        return {"ok": False, **hierarchies.refusal(problem, seen["values"], body.csv)}
    counts = dict(zip(seen["values"], seen["counts"], strict=True))
    shown = hierarchies.preview(hierarchy, counts)
    return {"ok": True, "tree": hierarchies.as_tree_text(hierarchy) if hierarchy.is_chain else None, **shown}


@router.put("/projects/{project_id}/columns/{number}/hierarchy")
def set_hierarchy(this: This, number: int, body: Coarsened, if_match: IfMatch = None) -> dict[str, Any]:
    """Set how a column may be coarsened; refused when it does not fit the values that were seen."""
    name, seen = _column(this, number)
    spec = body.asked().resolved(this.folder, name)
    policy = Policy.of(editing.set_hierarchy(_values(this), name, spec, body.weight), "policy")
    hierarchies.built(spec, name, seen["values"], policy, this.folder)
    this.save_policy(policy.to_dict(), if_match)
    return _saved(this)


@router.put("/projects/{project_id}/requirements")
def set_requirements(this: This, body: Required, if_match: IfMatch = None) -> dict[str, Any]:
    """Set what every release must satisfy."""
    require = []
    for i, item in enumerate(body.require):
        name = str(item.get("model"))
        if name not in MODELS:
            raise PolicyError(f"require[{i}].model: there is no model {name!r}")
        settings = {k: v for k, v in item.items() if k != "model"}
        require.append({"model": name, **forms.models()[name].read(settings, f"require[{i}]")})
    if not require:
        raise PolicyError("ask for something: without a requirement nothing is protected")
    this.save_policy(editing.with_(_values(this), require=require), if_match)
    return _saved(this)


@router.put("/projects/{project_id}/method")
def set_method(this: This, body: Chosen, if_match: IfMatch = None) -> dict[str, Any]:
    """Set how the release is found and written."""
    method = _method(body.method)
    this.save_policy(editing.with_(_values(this), method=method, recoding=body.recoding), if_match)
    return _saved(this)


def _method(inputs: dict[str, Any]) -> dict[str, Any]:
    name = str(inputs.get("name"))
    if name not in METHODS:
        raise PolicyError(f"method.name: there is no method {name!r}")
    settings = {k: v for k, v in inputs.items() if k != "name"}
    return {"name": name, **forms.methods()[name].read(settings, "method")}


@router.put("/projects/{project_id}/levels")
def set_levels(this: This, body: Levels, if_match: IfMatch = None) -> dict[str, Any]:
    """Publish at given levels (a point of the solution space), or at whatever levels the method finds."""
    this.save_policy(editing.set_levels(_values(this), body.levels), if_match)
    return _saved(this)


@router.get("/projects/{project_id}/policy.zip")
def download_policy(this: This, run: str | None = None) -> Response:
    """The policy with its hierarchy files; unpacked, it is what `maskwright anonymize -p policy.yaml` takes."""
    text = this.policy_text()
    if run is not None:
        this.release(run)
        text = this.policy_of(run).read_text(encoding="utf-8")
    if text is None:
        raise NotFound("the project has no policy yet")
    policy = this.parse(text)
    named = [getattr(c.hierarchy, "file", None) for c in policy.columns.values()]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("policy.yaml", text)
        for file in sorted({f for f in named if f}):
            archive.write(this.folder / file, file)
    return _attachment(buffer.getvalue(), "policy.zip", "application/zip")


# -- runs ------------------------------------------------------------------------------------------------------


def start_job(request: Request, this: Project, kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Start a run unless one is going on in this project."""
    with this.lock:
        if (running := this.jobs.running()) is not None:
            raise Conflict(f"a run is going on in this project ({running.kind}); wait for it, or cancel it")
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


@router.post("/projects/{project_id}/runs", status_code=202)
def run(request: Request, this: This, body: Started) -> dict[str, Any]:
    """Start a run. It goes on when the page is closed, and when the server stops."""
    parameters: dict[str, Any] = {}
    if body.kind == "compare":
        chosen = body.methods or [{"name": name} for name in METHODS]
        parameters["methods"] = [_method(m) for m in chosen]
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
def cancel(going: Going) -> dict[str, Any]:
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
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _attachment(content: bytes, name: str, kind: str) -> Response:
    return Response(
        content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'}
    )


# -- the register ----------------------------------------------------------------------------------------------


@router.get("/register")
def list_register(here: Here) -> list[dict[str, Any]]:
    """Releases that were given out, newest first."""
    return here.register()


@router.post("/projects/{project_id}/releases/{job_id}/register", status_code=201)
def record(here: Here, this: This, job_id: str, body: GivenOut) -> dict[str, Any]:
    """Record that a release was given out. Entries are never changed or removed."""
    from maskwright.verify import sha256
    from maskwright.workbench.workspace import now

    folder = this.release(job_id)
    return here.record(
        {
            "project": this.id, "name": this.meta["name"], "table": this.meta["source"]["name"], "release": job_id,
            "recipient": body.recipient.strip(), "purpose": body.purpose.strip(),
            "signed_off_by": body.signed_off_by.strip(), "given_out": body.given_out.strip() or now()[:10],
            "policy": sha256(this.policy_of(job_id)), "manifest": sha256(folder / "public" / "manifest.json"),
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
