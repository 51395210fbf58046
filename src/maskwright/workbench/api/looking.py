"""Calls that look at rows: of the table, and of a release beside it. Addresses never say what was asked for."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from maskwright.engines.base import Match, Wanted
from maskwright.errors import UsageError
from maskwright.workbench import before_after
from maskwright.workbench.api.common import This
from maskwright.workbench.columns import hidden_columns, read_facts, read_rows, spread_of
from maskwright.workbench.jobs import Conflict
from maskwright.workbench.two_columns import crossed_columns
from maskwright.workbench.workspace import NotFound, Project

router = APIRouter()
ROWS = 50


class Having(BaseModel):
    """A condition on one column."""

    column: str
    how: Match = "holds"
    text: str = Field("", max_length=400)


class RowsAsked(BaseModel):
    """Rows of the table: which, in which order, from which on."""

    having: list[Having] = Field(default_factory=list, max_length=20)
    order: str | None = None
    descending: bool = False
    first: int = Field(0, ge=0)


class ClassesAsked(BaseModel):
    """Classes of a release: those whose labels hold the texts; sorted by a column, or by their rows."""

    table: int = Field(0, ge=0, description="of a release of several tables")
    having: dict[str, str] = Field(default_factory=dict)
    order: str | None = None
    descending: bool = False
    first: int = Field(0, ge=0)


class Crossed(BaseModel):
    """Two columns of a release."""

    table: int = Field(0, ge=0)
    columns: tuple[str, str]


class ClassChosen(BaseModel):
    """One class of a release by its number; -1: the rows that were left out."""

    table: int = Field(0, ge=0)
    number: int


def _profile(this: Project) -> dict[str, Any]:
    found = this.profile()
    if found is None:
        raise Conflict("the table has not been profiled yet; wait until it has")
    return found


@router.post("/projects/{project_id}/rows")
def show_rows(this: This, body: RowsAsked) -> dict[str, Any]:
    """Rows of the table; columns of identifiers, and those that are left out, are hidden."""
    profile, policy = _profile(this), this.policy()
    names, hidden = [c["name"] for c in profile["columns"]], hidden_columns(profile, policy)
    for name in [*(h.column for h in body.having), *([body.order] if body.order is not None else [])]:
        if name not in names or name in hidden:
            raise UsageError(f"column {name!r} is not shown, so rows cannot be chosen by it")
    having = tuple((h.column, h.how, h.text) for h in body.having)
    shown = tuple(name for name in names if name not in hidden)
    wanted = Wanted(shown, having, body.order, body.descending)
    rows, number = read_rows(str(this.source), profile, policy, wanted, body.first, ROWS)
    return {
        "columns": names, "hidden": sorted(hidden), "number": number, "first": body.first,
        "rows": [[row.get(name) for name in names] for row in rows],
    }  # fmt: skip


@router.post("/projects/{project_id}/columns/{number}/profile")
def show_column(this: This, number: int) -> dict[str, Any]:
    """How one column is spread: in bars, with its commonest values; nothing of a column that is hidden."""
    profile, policy = _profile(this), this.policy()
    if not 0 <= number < len(profile["columns"]):
        raise NotFound("there is no such column")
    about = profile["columns"][number]
    if about["name"] in hidden_columns(profile, policy):
        raise UsageError(f"column {about['name']!r} is hidden: its role is one that is not published")
    kept = this.values(number)
    seen = kept if kept["values"] else read_facts(str(this.source), profile, number, policy)
    spread = spread_of(seen, about["kind"] in ("integer", "number") or about["minimum"] is not None)
    return {
        "name": about["name"], "bars": spread, "distinct": about["distinct"], "missing": about["missing"],
        "examples": [v for _, v in sorted(zip(seen["counts"], seen["values"], strict=True), reverse=True)[:3]],
    }  # fmt: skip


def _part(this: Project, job_id: str, table: int) -> Any:
    found = before_after.parts_beside(this.release(job_id))
    if table >= len(found):
        raise NotFound("the release has no such table")
    return found[table]


@router.post("/projects/{project_id}/releases/{job_id}/classes")
def show_classes(this: This, job_id: str, body: ClassesAsked) -> dict[str, Any]:
    """The classes of a release, as its reader sees them."""
    part = _part(this, job_id, body.table)
    return before_after.listed_classes(part, body.having, body.order, body.descending, body.first)


@router.post("/projects/{project_id}/releases/{job_id}/members")
def show_members(this: This, job_id: str, body: ClassChosen) -> dict[str, Any]:
    """Everybody of one class as the table has them (private)."""
    return before_after.class_members(_part(this, job_id, body.table), body.number)


@router.post("/projects/{project_id}/releases/{job_id}/crossed")
def show_crossed(this: This, job_id: str, body: Crossed) -> dict[str, Any]:
    """Two columns against each other, before and after."""
    return crossed_columns(_part(this, job_id, body.table), *body.columns, str(this.source))
