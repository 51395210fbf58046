"""Calls about the policy: roles, hierarchies, requirements, method; each checks the whole policy before it is saved."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from maskwright.errors import HierarchyError, PolicyError
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.policy.policy import Policy
from maskwright.workbench import forms, hierarchy_editor
from maskwright.workbench.api.common import IfMatch, This
from maskwright.workbench.jobs import Conflict
from maskwright.workbench.workspace import DRAFT, NotFound, Project

router = APIRouter()


class SampleSettings(BaseModel):
    """Whom the table was drawn from."""

    size: str = Field("", max_length=20)
    weight: str = Field("", max_length=400)
    household: str = Field("", max_length=400)


class Roles(BaseModel):
    """Role of each column; "drop" leaves a column out of the policy, which drops it."""

    columns: dict[str, str]
    missing: list[str] | None = None
    rows: str = "keep"
    unit: str | dict[str, Any] | None = None
    keep: dict[str, str] | None = Field(
        None, description="what must stay of quasi-identifiers: exact, or a level"
    )
    prepare: dict[str, bool] | None = Field(None, description="messy columns: whether they are cleaned first")
    sample: SampleSettings | None = Field(None, description="the population, survey weights and households")
    multivalued: dict[str, str] | None = Field(
        None, description="sensitive columns of several values: what separates them"
    )


class Coarsened(BaseModel):
    """A hierarchy: as the policy writes it, as an indented tree, or as a pasted table."""

    spec: Any = None
    tree: str | None = Field(None, max_length=1_000_000)
    csv: str | None = Field(None, max_length=3_000_000)
    groups: str | None = Field(
        None, max_length=1_000_000, description="groups, as the policy file writes them"
    )
    weight: str | None = Field(None, max_length=40)

    def asked(self) -> hierarchy_editor.Asked:
        """The hierarchy that is asked for."""
        return hierarchy_editor.Asked(self.spec, self.tree, self.csv, self.groups)


class Required(BaseModel):
    """The requirements, each as `{"model": name, setting: text}`."""

    require: list[dict[str, Any]]


class Chosen(BaseModel):
    """The method as `{"name": name, setting: text}`, and the recoding."""

    method: dict[str, Any]
    recoding: Any = "generalise"


class PolicyText(BaseModel):
    text: str = Field(max_length=1 << 20)


class Levels(BaseModel):
    """One level for each quasi-identifier, by name; null: any level."""

    levels: dict[str, str] | None


def _values(this: Project) -> dict[str, Any]:
    policy = this.policy()
    if policy is not None:
        return policy.to_dict()
    profile = this.profile()
    if profile is None:
        raise Conflict("the table has not been profiled yet; wait until it has")
    return forms.empty_policy(profile)


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
    values, notes = forms.set_roles(_values(this), body.columns, this.profile() or {"columns": []})
    if body.missing is not None:
        values = forms.set_table(values, body.missing, body.rows, body.unit)
    if body.keep is not None:
        values = forms.set_keep(values, body.keep)
    if body.prepare is not None:
        values = forms.set_prepare(values, body.prepare, (this.profile() or {}).get("mess", {}))
    if body.sample is not None:
        values = forms.set_sample(values, body.sample.size, body.sample.weight, body.sample.household)
    if body.multivalued is not None:
        values = forms.set_multivalued(values, body.multivalued)
    this.save_policy(values, if_match)
    return _saved(this, notes)


def _column(this: Project, number: int) -> tuple[str, dict[str, Any]]:
    columns = (this.profile() or {"columns": []})["columns"]
    if not 0 <= number < len(columns):
        raise NotFound("there is no such column")
    return str(columns[number]["name"]), this.values(number)


@router.post("/projects/{project_id}/columns/{number}/preview")
def preview_hierarchy(this: This, number: int, body: Coarsened) -> dict[str, Any]:
    """What a hierarchy makes of the values: every level with its labels. Errors name the values concerned."""
    name, seen = _column(this, number)
    policy = this.policy()
    if policy is None:
        raise Conflict("give at least one column the role quasi-identifier first")
    try:
        with tempfile.TemporaryDirectory(dir=this.folder, prefix=DRAFT) as draft:
            folder = Path(draft) if body.csv is not None else this.folder
            spec = body.asked().resolved(folder, name)
            hierarchy = hierarchy_editor.built_hierarchy(spec, name, seen["values"], policy, folder)
    except (HierarchyError, PolicyError) as problem:
        return {"ok": False, **hierarchy_editor.editor_refusal(problem, seen["values"], body.csv)}
    counts = dict(zip(seen["values"], seen["counts"], strict=True))
    shown = hierarchy_editor.hierarchy_preview(hierarchy, counts)
    return {
        "ok": True,
        "tree": hierarchy_editor.as_tree_text(hierarchy) if hierarchy.is_chain else None,
        **shown,
    }


@router.put("/projects/{project_id}/columns/{number}/hierarchy")
def set_hierarchy(this: This, number: int, body: Coarsened, if_match: IfMatch = None) -> dict[str, Any]:
    """Set how a column may be coarsened; refused when it does not fit the values that were seen."""
    name, seen = _column(this, number)
    spec = body.asked().resolved(this.folder, name)
    policy = Policy.of(forms.set_hierarchy(_values(this), name, spec, body.weight), "policy")
    hierarchy_editor.built_hierarchy(spec, name, seen["values"], policy, this.folder)
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
        require.append({"model": name, **forms.model_forms()[name].read(settings, f"require[{i}]")})
    if not require:
        raise PolicyError("ask for something: without a requirement nothing is protected")
    this.save_policy(forms.with_sections(_values(this), require=require), if_match)
    return _saved(this)


@router.put("/projects/{project_id}/method")
def setmethod_from(this: This, body: Chosen, if_match: IfMatch = None) -> dict[str, Any]:
    """Set how the release is found and written."""
    method = method_from(body.method)
    this.save_policy(forms.with_sections(_values(this), method=method, recoding=body.recoding), if_match)
    return _saved(this)


def method_from(inputs: dict[str, Any]) -> dict[str, Any]:
    """The method of a policy, from the inputs of its form."""
    name = str(inputs.get("name"))
    if name not in METHODS:
        raise PolicyError(f"method.name: there is no method {name!r}")
    settings = {k: v for k, v in inputs.items() if k != "name"}
    return {"name": name, **forms.method_forms()[name].read(settings, "method")}


@router.put("/projects/{project_id}/levels")
def set_levels(this: This, body: Levels, if_match: IfMatch = None) -> dict[str, Any]:
    """Publish at given levels (a point of the solution space), or at whatever levels the method finds."""
    this.save_policy(forms.set_levels(_values(this), body.levels), if_match)
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
    headers = {"content-disposition": 'attachment; filename="policy.zip"'}
    return Response(buffer.getvalue(), media_type="application/zip", headers=headers)
