"""The pages: server-rendered, and only looked at. Whatever changes something goes through the JSON API."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.templating import Jinja2Templates
from markupsafe import Markup, escape

from maskwright.domain.exact import belief_text, number_text, percent_text
from maskwright.domain.metric import PERCENTAGES, metric_text
from maskwright.errors import MaskwrightError
from maskwright.hierarchies import WAYS
from maskwright.metrics import METRICS
from maskwright.pipeline.attacking import ADVERSARIES, adversary_named
from maskwright.pipeline.history import EarlierLooks, policy_hash
from maskwright.policy.policy import Policy
from maskwright.report.glossary import GLOSSARY
from maskwright.suggest.advice import QUESTIONS, Answers
from maskwright.suggest.presets import PRESETS
from maskwright.version import __version__
from maskwright.workbench import forms, hierarchy_editor
from maskwright.workbench.api.common import This
from maskwright.workbench.columns import hidden_columns
from maskwright.workbench.jobs import BackgroundJob
from maskwright.workbench.project_file import PROJECT_ENDING
from maskwright.workbench.roots import TABLES
from maskwright.workbench.security import Refused
from maskwright.workbench.workspace import NotFound, Project, Workspace, read_json


def shown_number(value: Any) -> str:
    """A measured value for people: thousands with commas, shares as percentages or as one in so many."""
    if isinstance(value, str) and "/" in value:
        return number_text(Fraction(value))
    if isinstance(value, float):
        return number_text(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def as_share(value: Any) -> float:
    """Any measured value as a float, for bars and charts."""
    try:
        return float(Fraction(value)) if isinstance(value, str) else float(value)
    except (ValueError, ZeroDivisionError):
        return 0.0


def embedded_json(value: Any) -> str:
    """Data for a script, as a block of JSON that no browser executes and nothing inside can end."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("&", "\\u0026")


def docstring_markup(text: str) -> Markup:
    """A docstring's `code` and *words* as HTML."""
    escaped = str(escape(text))
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    return Markup(re.sub(r"(?<!\w)\*(\w[^*]*)\*(?!\w)", r"<em>\1</em>", escaped))  # noqa: S704 - escaped above


router = APIRouter(include_in_schema=False)
templates = Jinja2Templates(Path(__file__).parent / "templates")
ROLES = {
    "identifier": ("Identifier", "names a person directly: never published"),
    "quasi-identifier": ("Quasi-identifier", "others may know it: published in coarser form"),
    "sensitive": ("Sensitive", "nobody may infer it: published, and protected by requirements"),
    "insensitive": ("Insensitive", "harmless: published as it is, refused where it singles people out"),
    "drop": ("Leave out", "not in the policy: not published"),
}
STEPS = (
    ("advice", "Advice"), ("rows", "Table"), ("columns", "Columns"), ("requirements", "Requirements"),
    ("method", "Method"), ("run", "Run"), ("explore", "Explore"), ("policy", "Policy"),
)  # fmt: skip


def result_page(job: BackgroundJob) -> str:
    """The page of a project that shows what a run found."""
    release = job.request.get("of", job.id)
    places = {"profile": "table", "attack": f"releases/{release}", "predict": f"releases/{release}/beside"}
    return {"release": f"releases/{job.id}", **places}.get(job.kind, "explore")


templates.env.filters |= {
    "result_page": result_page,
    "number": shown_number,
    "belief": lambda value: belief_text(Fraction(value)),
    "metric": lambda value, name: metric_text(name, as_share(value)),
    "percent": lambda value: percent_text(Fraction(value)),
    "share": as_share,
    "embedded": embedded_json,
    "marked": docstring_markup,
}
templates.env.globals |= {"version": __version__, "steps": STEPS, "roles": ROLES}


def _rendered(request: Request, name: str, status: int = 200, **context: Any) -> HTMLResponse:
    session = request.scope.get("session")
    shared = {"csrf": session.csrf if session else "", "session": session, "here": request.url.path}
    return templates.TemplateResponse(request, name, {**shared, **context}, status_code=status)


def error_page(request: Request, status: int, text: str) -> Response:
    """The page that says what went wrong."""
    return _rendered(request, "error.html", status, text=text)


def _workspace_of(request: Request) -> Workspace:
    found: Workspace = request.app.state.workspace
    return found


def _context(this: Project, step: str, **context: Any) -> dict[str, Any]:
    """What every page of a project shows."""
    running = this.jobs.running()
    return {
        "project": this, "meta": this.meta, "step": step, "running": running, "revision": this.revision,
        "profile": this.profile(), "policy_text": this.policy_text(), **context,
    }  # fmt: skip


def policy_or_none(this: Project) -> tuple[Policy | None, str | None]:
    """The policy, or why it cannot be read: somebody may have edited the file by hand."""
    try:
        return this.policy(), None
    except MaskwrightError as problem:
        return None, str(problem)


@router.get("/start")
def start_page(request: Request, token: str = "") -> Response:
    """The page that a start address opens: it sets the cookie and moves on."""
    keys = request.app.state.keys
    if not keys.is_token(token):
        raise Refused(401, "this token is not valid: open the address that `maskwright ui` printed last")
    # A page that moves on by itself: unlike a redirect it also works when the address was a link on another site,
    # whose requests carry no strict cookies.
    response = _rendered(request, "start.html")
    response.headers["set-cookie"] = keys.set_cookie(keys.open_session())
    return response


@router.get("/")
def home_page(request: Request) -> Response:
    """The page with all projects."""
    here, roots = _workspace_of(request), request.app.state.roots
    base = roots.folders[0] if roots.folders else None
    tables = [
        {"path": str(p), "shown": str(p.relative_to(base)) if base and p.is_relative_to(base) else str(p),
         "size": p.stat().st_size}
        for p in roots.tables() if p.is_file()
    ]  # fmt: skip
    projects = [
        {"project": p, "meta": p.meta, "running": p.jobs.running(), "releases": len(p.releases())}
        for p in here.projects()
    ]
    limit = request.app.state.keys.upload_limit
    return _rendered(
        request, "home.html", tables=tables, projects=projects, limit=limit, base=base,
        endings=(*TABLES, PROJECT_ENDING), active="projects",
    )  # fmt: skip


@router.get("/p/{project_id}")
def project_page(this: This) -> Response:
    """The page on which work on a project goes on."""
    step = "advice" if this.profile() else "table"
    return RedirectResponse(f"/p/{this.id}/{step}", 303)


@router.get("/p/{project_id}/table")
def table_page(request: Request, this: This) -> Response:
    """While the table is looked at, and when that failed."""
    return _rendered(
        request,
        "table.html",
        **_context(this, "columns"),
        job=this.jobs.latest("profile"),
        presets=PRESETS,
    )


@router.get("/p/{project_id}/advice")
def advice_page(request: Request, this: This) -> Response:
    """The page with the three questions, and what was advised."""
    if this.profile() is None:
        return RedirectResponse(f"/p/{this.id}/table", 303)
    policy, problem = policy_or_none(this)
    return _rendered(
        request, "advice.html", **_context(this, "advice"), questions=QUESTIONS, usual=asdict(Answers()),
        glossary=GLOSSARY, problem=problem, policy=policy,
    )  # fmt: skip


@router.get("/p/{project_id}/rows")
def rows_page(request: Request, this: This) -> Response:
    """The page with the table: what is in each column, and rows to look at."""
    profile = this.profile()
    if profile is None:
        return RedirectResponse(f"/p/{this.id}/table", 303)
    policy, problem = policy_or_none(this)
    hidden = hidden_columns(profile, policy)
    columns = [
        {
            **c,
            "number": i,
            "hidden": c["name"] in hidden,
            "now": _role_in(policy, c["name"]) if policy else c["role"],
        }
        for i, c in enumerate(profile["columns"])
    ]
    return _rendered(request, "rows.html", **_context(this, "rows"), columns=columns, problem=problem)


@router.get("/p/{project_id}/columns")
def columns_page(request: Request, this: This) -> Response:
    """The page with the roles of the columns."""
    profile = this.profile()
    if profile is None:
        return RedirectResponse(f"/p/{this.id}/table", 303)
    policy, problem = policy_or_none(this)
    rows = []
    for i, column in enumerate(profile["columns"]):
        name = column["name"]
        role = (
            policy.columns[name].role
            if policy and name in policy.columns
            else "drop"
            if policy
            else column["role"]
        )
        spec = policy.to_dict()["columns"].get(name) if policy else None
        kept = policy.keep.get(name, "") if policy else ""
        messy = profile.get("mess", {}).get(name)
        rows.append(
            {**column, "number": i, "now": role, "spec": _short(spec), "kept": kept, "mess": messy,
             "prepared": bool(policy and name in policy.prepare), "separator": _separator(policy, name)}
        )  # fmt: skip
    return _rendered(
        request,
        "columns.html",
        **_context(this, "columns"),
        columns=rows,
        policy=policy,
        problem=problem,
        presets=PRESETS,
    )


def _separator(policy: Policy | None, name: str) -> str:
    """What separates the values of a column that holds several."""
    found = policy.columns[name].multivalued if policy and name in policy.columns else False
    return found if isinstance(found, str) else ""


def _short(entry: Any) -> str:
    """How a column is coarsened, in a few words."""
    spec = entry.get("hierarchy") if isinstance(entry, dict) else None
    if spec is None:
        return ""
    if isinstance(spec, str):
        return spec
    way = hierarchy_editor.way_of(spec)
    value = spec.get(way)
    if way in ("intervals", "dates"):
        return f"{way}: {', '.join(str(v) if not isinstance(v, list) else 'cuts' for v in value)}"
    return {"file": "a table of labels", "tree": "a tree", "groups": "groups"}.get(way) or f"{way}: {value}"


@router.get("/p/{project_id}/columns/{index}")
def hierarchy_page(request: Request, this: This, index: int) -> Response:
    """The page with the hierarchy of one column."""
    profile = this.profile()
    policy, _ = policy_or_none(this)
    if profile is None or policy is None or not 0 <= index < len(profile["columns"]):
        raise NotFound("there is no such column")
    column = profile["columns"][index]
    entry = policy.to_dict()["columns"].get(column["name"])
    spec: Any = entry.get("hierarchy", "suppress") if isinstance(entry, dict) else "suppress"
    role = policy.columns[column["name"]].role if column["name"] in policy.columns else "drop"
    seen = this.values(index)
    way = hierarchy_editor.way_of(spec)
    texts = {
        "tree": hierarchy_editor.text_of_tree(spec["tree"]) if way == "tree" else "\n".join(seen["values"]),
        "csv": _file_text(this, spec) if way == "file" else "",
    }
    others = [
        i for i, c in enumerate(profile["columns"]) if _role_in(policy, c["name"]) == "quasi-identifier"
    ]
    return _rendered(
        request, "hierarchy.html", **_context(this, "columns"), column=column, index=index, spec=spec, way=way,
        ways=list(WAYS), texts=texts, seen=seen, role=role, others=others,
        weight=str(entry.get("weight", "1")) if isinstance(entry, dict) else "1",
    )  # fmt: skip


def _role_in(policy: Policy, name: str) -> str:
    return policy.columns[name].role if name in policy.columns else "drop"


def _file_text(this: Project, spec: dict[str, Any]) -> str:
    hierarchy_editor.check_inside(this.folder, "hierarchies", spec["file"], "hierarchy")
    text: str = (this.folder / spec["file"]).read_text(encoding="utf-8-sig", errors="replace")
    return text


@router.get("/p/{project_id}/requirements")
def requirements_page(request: Request, this: This) -> Response:
    """The page with the requirements."""
    policy, problem = policy_or_none(this)
    current = []
    for item in policy.require if policy else ():
        form = forms.model_forms()[item.name]
        current.append({"form": form, "values": form.shown(item.parameters)})
    return _rendered(
        request, "requirements.html", **_context(this, "requirements"), current=current, catalogue=forms.model_forms(),
        sensitive=policy.sensitive if policy else [], presets=PRESETS, problem=problem,
        preset=policy.preset if policy else None,
    )  # fmt: skip


@router.get("/p/{project_id}/method")
def method_page(request: Request, this: This) -> Response:
    """The page with the method and the recoding."""
    policy, problem = policy_or_none(this)
    catalogue = forms.method_forms()
    chosen = policy.method.name if policy else "optimal-lattice"
    values = catalogue[chosen].shown(policy.method.parameters) if policy else {}
    recoding = policy.recoding if policy else None
    compared = this.jobs.latest("compare")
    return _rendered(
        request, "method.html", **_context(this, "method"), catalogue=catalogue, chosen=chosen, values=values,
        recodings=forms.recoding_summaries(), recoding=recoding, problem=problem, compared=compared,
    )  # fmt: skip


@router.get("/p/{project_id}/run")
def run_page(request: Request, this: This) -> Response:
    """The page with the runs of a project."""
    this.jobs.settle()
    policy, problem = policy_or_none(this)
    jobs = [j for j in this.jobs.all() if j.kind != "profile"]
    latest = next((j for j in jobs if j.kind == "release"), None)
    shown = this.jobs.running() or latest
    return _rendered(
        request, "run.html", **_context(this, "run"), policy=policy, problem=problem, jobs=jobs, shown=shown,
        made=set(this.releases()), levels=_fixed(policy), promised=_promised(this, policy),
    )  # fmt: skip


def _promised(this: Project, policy: Policy | None) -> list[dict[str, Any]]:
    """What a policy promises before it is run; nothing where it cannot be run."""
    from maskwright.domain.promise import promise_labels
    from maskwright.models.belief import BeliefAtMost
    from maskwright.policy.binding import models_of, promises_before

    if policy is None:
        return []
    try:
        asked = {(m.adversary, m.facts) for m in models_of(policy) if isinstance(m, BeliefAtMost)}
        who = [adversary_named(*named) for named in sorted(asked, key=str)] or [ADVERSARIES["knows-method"]]
        looked = _looked(this, policy).sentence()
        found = [p for adversary in who for p in promises_before(policy, adversary, looked)]
    except MaskwrightError:  # the run says why
        return []
    return promise_labels([p.as_dict() for p in found], ())


def _looked(this: Project, policy: Policy) -> EarlierLooks:
    """What was tried on the table in this project with other settings; the run itself knows of others, too."""
    compared, runs, days, mine = 0, set[str](), [], policy_hash(policy)
    for job in this.jobs.all():
        if job.kind not in ("release", "space", "compare"):
            continue
        try:
            settings = policy_hash(Policy.load(this.policy_of(job.id)))
        except MaskwrightError:
            settings = job.id  # nobody knows: it counts as other settings
        if job.kind == "compare" or settings != mine:
            days.append(str(job.request.get("started", ""))[:10])
            compared += job.kind == "compare"
            runs |= {settings} if job.kind != "compare" else set()
    return EarlierLooks(compared, len(runs), min(days, default=None))


def _fixed(policy: Policy | None) -> dict[str, str]:
    """Columns that are held at one level."""
    if policy is None:
        return {}
    return {
        name: c.levels[0] for name, c in policy.columns.items() if c.levels is not None and len(c.levels) == 1
    }


def _without_method(this: Project, job: BackgroundJob | None) -> dict[str, Any] | None:
    """The settings that methods are compared under: those of a run, or of the policy as it is now (None)."""
    try:
        policy = this.policy() if job is None else Policy.load(this.policy_of(job.id))
    except MaskwrightError:
        return None
    return None if policy is None else {k: v for k, v in policy.to_dict().items() if k != "method"}


@router.get("/p/{project_id}/explore")
def explore_page(request: Request, this: This) -> Response:
    """The page with other choices and other methods."""
    policy, problem = policy_or_none(this)
    job, compared = this.jobs.latest("space"), this.jobs.latest("compare")
    outdated = compared is not None and _without_method(this, compared) != _without_method(this, None)
    return _rendered(
        request, "explore.html", **_context(this, "explore"), policy=policy, problem=problem, job=job,
        compared=compared, methods=forms.method_forms(), metrics=METRICS, levels=_fixed(policy), outdated=outdated,
        percentages=PERCENTAGES, result=job.result if job and job.state == "done" else None,
        comparison=compared.result if compared and compared.state == "done" else None,
    )  # fmt: skip


@router.get("/p/{project_id}/policy")
def policy_page(request: Request, this: This) -> Response:
    """The page with the policy as text."""
    _, problem = policy_or_none(this)
    meta = this.meta
    command = f"maskwright anonymize {shlex.quote(meta['source']['path'])} -p policy.yaml -o release/"
    return _rendered(request, "policy.html", **_context(this, "policy"), problem=problem, command=command)


def _about(this: Project, kind: str, release: str) -> list[BackgroundJob]:
    """The runs of a kind on a release, newest first."""
    return [j for j in this.jobs.all() if j.kind == kind and j.request.get("of") == release]


def _not_done(jobs: list[BackgroundJob]) -> BackgroundJob | None:
    """The newest run where it goes on, or ended without a result; None: there is none, or it is done."""
    return jobs[0] if jobs and jobs[0].state != "done" else None


@router.get("/p/{project_id}/releases/{job_id}")
def release_page(request: Request, this: This, job_id: str) -> Response:
    """The page with a release and what it risks."""
    from maskwright.report.html import joined_markup
    from maskwright.report.risk_and_usefulness import gauge_parts

    folder = this.release(job_id)
    record = read_json(folder / "private" / "manifest.json", {})
    found = this.jobs.get(job_id)
    result = (found.result if found else None) or {}
    attacks = _about(this, "attack", job_id)
    attacked = next((j for j in attacks if j.state == "done"), None)
    linkage = next((b for b in record.get("beliefs", []) if b["attack"] == "linkage"), None)
    gauges = Markup(joined_markup(gauge_parts(linkage["measures"]) if linkage else ()))  # noqa: S704 - escaped there
    entries = [
        e for e in _workspace_of(request).register() if e["project"] == this.id and e["release"] == job_id
    ]
    files = sorted(p for p in (folder / "public").rglob("*") if p.is_file())
    return _rendered(
        request, "release.html", **_context(this, "run"), record=record, examples=result.get("examples"), job=found,
        words=result.get("words", []), linkage=linkage, gauges=gauges, entries=entries, adversaries=ADVERSARIES,
        metrics=METRICS, going=_not_done(attacks), attacked=attacked.result if attacked else None,
        attack_request=attacked.request if attacked else None,
        dictionary=read_json(folder / "public" / "data-dictionary.json", {}),
        files=[{"name": p.relative_to(folder / "public").as_posix(), "size": p.stat().st_size} for p in files],
    )  # fmt: skip


@router.get("/p/{project_id}/releases/{job_id}/beside")
def beside_page(request: Request, this: This, job_id: str) -> Response:
    """The page with a release beside its table."""
    from maskwright.workbench.before_after import parts_beside
    from maskwright.workbench.two_columns import shown_columns

    found, problem, tables = this.jobs.get(job_id), None, []
    try:
        tables = [{"name": p.name, "columns": shown_columns(p)} for p in parts_beside(this.release(job_id))]
    except MaskwrightError as refused:
        problem = str(refused)
    predicted = _about(this, "predict", job_id)
    policy = Policy.load(this.policy_of(job_id))
    return _rendered(
        request, "beside.html", **_context(this, "run"), job=found, tables=tables, problem=problem, predicted=predicted,
        targets=policy.sensitive, release=job_id, going=_not_done(predicted),
    )  # fmt: skip


@router.get("/words")
def words_page(request: Request) -> Response:
    """The page that explains the words of all others."""
    return _rendered(request, "words.html", glossary=GLOSSARY, active="words")


# they may run nothing
PAGE_OF_A_RELEASE = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
)


@router.get("/p/{project_id}/releases/{job_id}/report")
def report_page(this: This, job_id: str) -> Response:
    """The private report as it is; it has a content security policy of its own, and may run nothing."""
    path = this.release(job_id) / "private" / "report.html"
    return HTMLResponse(path.read_bytes(), headers={"content-security-policy": PAGE_OF_A_RELEASE})


@router.get("/p/{project_id}/releases/{job_id}/evidence")
def evidence_of_release(request: Request, this: This, job_id: str) -> Response:
    """The evidence page of a release as it is now, with its last entry in the register; nothing is written."""
    from maskwright.auditing.evidence_page import evidence_html, verified_content

    entries = [
        e for e in _workspace_of(request).register() if e["project"] == this.id and e["release"] == job_id
    ]
    last = entries[-1] if entries else {}
    stated = {"recipient": "recipient", "purpose": "purpose", "approved_by": "signed_off_by"}
    found = verified_content(this.release(job_id), {k: last[v] for k, v in stated.items() if last.get(v)})
    return HTMLResponse(evidence_html(found), headers={"content-security-policy": PAGE_OF_A_RELEASE})


@router.get("/register")
def register_page(request: Request) -> Response:
    """The page with all releases that were given out."""
    here = _workspace_of(request)
    jobs = [
        {"job": j, "result": j.result, "entries": j.request.get("entries", [])}
        for j in here.jobs.all() if j.kind == "intersection"
    ]  # fmt: skip
    return _rendered(
        request, "register.html", entries=here.register(), jobs=jobs, active="register"
    )  # fmt: skip
