"""The workspace: a private folder that holds projects and the register of releases. All state is in files.

workspace.json, lock               what it is, held while a server runs
register.jsonl                     releases that were given out; lines are only ever added
jobs/                              runs that concern several projects
turns/                             locked by runs that go on or wait
projects/ID/project.json           name, where the table is
           policy.yaml             the policy as it stands: what the command line would take
           policy-JOB.yaml         the policy that a run used
           profile.json            what was counted in each column
           values/                 values of quasi-identifiers and sensitive columns, at most 5,000 each
           data/, hierarchies/     an uploaded table, hierarchy files
           jobs/ID/                see jobs.py
           releases/JOB/           public/ and private/, as the command line writes them
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskwright.errors import MaskwrightError, PolicyError, UsageError
from maskwright.policy.binding import method_of, models_of
from maskwright.policy.policy import Policy
from maskwright.policy.yaml_text import load_yaml
from maskwright.runtime import disk
from maskwright.workbench.columns import is_coarsened, read_facts
from maskwright.workbench.hierarchy_editor import check_inside
from maskwright.workbench.jobs import Board, Conflict
from maskwright.workbench.turns import Turns

ID = re.compile(r"[0-9a-f]{12}")
DRAFT = ".draft-"  # how the name of a folder begins that is there as long as one call


class NotFound(MaskwrightError):  # noqa: N818 - named like the tree in errors.py
    """There is no such project, run or release."""


def new_id() -> str:
    """A random name for a project, a run or an entry."""
    return secrets.token_hex(6)


def time_now() -> str:
    """The time in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def read_json(path: Path, default: Any = None) -> Any:
    """The JSON in a file; the default where there is no file."""
    try:
        return disk.read_json(path)
    except FileNotFoundError:
        return default


def write_text(path: Path, text: str) -> None:
    """In one step, readable by its owner only: a reader sees the old text or the new one."""
    disk.write_whole(path, text, mode=0o600)


def write_json(path: Path, value: Any) -> None:
    """Write JSON to a file in one step."""
    write_text(path, json.dumps(value, ensure_ascii=False, default=str))


@dataclass(frozen=True)
class Project:
    """One table, its policy, its runs and releases."""

    folder: Path
    lock: threading.RLock = field(default_factory=threading.RLock, compare=False)

    @property
    def id(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def meta(self) -> dict[str, Any]:
        """Its name, its source and when it was made."""
        return dict(read_json(self.folder / "project.json", {}))

    @property
    def jobs(self) -> Board:
        """Its runs."""
        return Board(self.folder / "jobs", Turns(self.folder.parents[1] / "turns"))

    @property
    def source(self) -> Path:
        """The path of its table."""
        return Path(self.meta["source"]["path"])

    # -- the policy ---------------------------------------------------------------------------------------

    def policy_text(self) -> str | None:
        """The text of its policy; None: there is none yet."""
        try:
            return (self.folder / "policy.yaml").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    @property
    def revision(self) -> str:
        """Tells versions of the policy apart, so that two tabs do not overwrite each other unknowingly."""
        return hashlib.sha256((self.policy_text() or "").encode()).hexdigest()[:16]

    def policy(self) -> Policy | None:
        """Its policy; None: there is none yet."""
        text = self.policy_text()
        return None if text is None else self.parse(text)

    def parse(self, text: str) -> Policy:
        """A policy from its text; relative files are looked up in the project folder, and nowhere else."""
        policy = Policy.of(load_yaml(text.encode(), "policy"), "policy")
        policy._folder = self.folder
        self._stay_inside(policy)
        models_of(policy)
        method_of(policy)
        return policy

    def _stay_inside(self, policy: Policy) -> None:
        for where, file in policy.files.items():
            below = "data" if where == "population" else "hierarchies"
            check_inside(self.folder, below, file, where)
        for column, step in policy.prepare.items():
            if step.redact is not None and Path(step.redact.model).is_absolute():
                raise PolicyError(
                    f"prepare.{column}.redact: the workbench reads no folder outside the project; name an installed "
                    "package"
                )

    def save_policy(self, policy: Mapping[str, Any] | str, revision: str | None = None) -> Policy:
        """Check a policy and make it the project's; refused when it changed since `revision` was seen."""
        with self.lock:
            if revision is not None and revision != self.revision:
                raise Conflict("the policy was changed elsewhere, perhaps in another tab; reload the page")
            if isinstance(policy, str):
                parsed, text = self.parse(policy), policy
            else:
                text = Policy.of(policy, "policy").to_yaml()
                parsed = self.parse(text)
            write_text(self.folder / "policy.yaml", text)
            self.forget_values(parsed)
            return parsed

    def policy_of(self, job: str) -> Path:
        """The policy with which a run was started."""
        return self.folder / f"policy-{job}.yaml"

    # -- what was seen ------------------------------------------------------------------------------------

    def profile(self) -> dict[str, Any] | None:
        """What was seen of its columns; None: not yet known."""
        found: dict[str, Any] | None = read_json(self.folder / "profile.json")
        return found

    def values(self, column: int) -> dict[str, Any]:
        """The values of a column that is coarsened, the commonest if there are very many, with their rows."""
        profile, policy, path = self.profile(), self.policy(), self.folder / "values" / f"{column}.json"
        if profile is None or policy is None or not is_coarsened(policy, profile["columns"][column]["name"]):
            return {"values": [], "counts": [], "complete": True}
        with self.lock:
            if not path.exists():  # it was something else when the table was looked at
                path.parent.mkdir(exist_ok=True, mode=0o700)
                write_json(path, read_facts(str(self.source), profile, column, policy))
            return dict(read_json(path))

    def forget_values(self, policy: Policy) -> None:
        """Remove the values of columns that the policy does not coarsen: identifiers, and what is left out."""
        for number, column in enumerate((self.profile() or {"columns": []})["columns"]):
            if not is_coarsened(policy, column["name"]):
                (self.folder / "values" / f"{number}.json").unlink(missing_ok=True)

    # -- what was made ------------------------------------------------------------------------------------

    def release(self, job: str) -> Path:
        """The folder of a release; refused where there is none."""
        if not ID.fullmatch(job) or not (self.folder / "releases" / job / "public").is_dir():
            raise NotFound("there is no such release")
        return self.folder / "releases" / job

    def releases(self) -> list[str]:
        """The runs whose releases are there."""
        made = [j.id for j in self.jobs.all() if j.kind == "release"]
        return [id_ for id_ in made if (self.folder / "releases" / id_).is_dir()]


class Workspace:
    """All projects. One server at a time uses a workspace."""

    def __init__(self, root: Path) -> None:
        self.root = _prepared(root)
        self._lock = _hold(self.root / "lock")
        self._projects: dict[str, Project] = {}
        self._register_lock = threading.Lock()
        self._settle()

    def _settle(self) -> None:
        """Clean up after a server or a run that was killed: uploads that did not end, and unfinished files."""
        for project in self.projects():
            source = project.meta.get("source", {})
            if source.get("uploaded") and not source.get("path"):
                shutil.rmtree(project.folder, ignore_errors=True)
                continue
            project.jobs.settle()
            with contextlib.suppress(MaskwrightError):  # a policy edited by hand; its page says what is wrong
                if (policy := project.policy()) is not None:
                    project.forget_values(policy)
            for draft in project.folder.glob(f"{DRAFT}*"):
                shutil.rmtree(draft, ignore_errors=True)
        for folder, _, _ in os.walk(self.root):
            disk.sweep_parts(Path(folder))

    def close(self) -> None:
        """Let another server use the workspace."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def jobs(self) -> Board:
        """The runs that belong to no single project."""
        return Board(self.root / "jobs", Turns(self.root / "turns"))

    def projects(self) -> list[Project]:
        """Newest first."""
        folders = [p for p in (self.root / "projects").iterdir() if (p / "project.json").is_file()]
        found = [self._project(p.name) for p in folders if ID.fullmatch(p.name)]
        return sorted(found, key=lambda p: str(p.meta.get("created")), reverse=True)

    def _project(self, id_: str) -> Project:
        return self._projects.setdefault(id_, Project(self.root / "projects" / id_))

    def project(self, id_: str) -> Project:
        """A project by its name; refused where there is none."""
        if not ID.fullmatch(id_) or not (self.root / "projects" / id_ / "project.json").is_file():
            raise NotFound("there is no such project; it may have been deleted")
        return self._project(id_)

    def create(self, name: str, path: Path | None = None) -> Project:
        """A project on a table that stays where it is (`path`), or on one that is put into data/ first."""
        project = self._project(new_id())
        for part in ("jobs", "releases", "data", "hierarchies", "values"):
            (project.folder / part).mkdir(parents=True, mode=0o700)
        source = {
            "path": str(path) if path else "",
            "name": path.name if path else name,
            "uploaded": path is None,
        }
        write_json(project.folder / "project.json", {"name": name, "created": time_now(), "source": source})
        return project

    def delete(self, project: Project) -> None:
        """Everything of a project, unless one of its releases was given out: attacks on later ones need it."""
        if any(j.state == "running" for j in project.jobs.all()):
            raise Conflict("a run is in progress in this project; cancel it first")
        if any(entry["project"] == project.id for entry in self.register()):
            raise Conflict(
                "a release of this project was given out; it is kept so that later ones can be checked"
            )
        here = Path(os.path.realpath(project.folder))
        for other in self.projects():
            table = other.meta.get("source", {}).get("path")
            if other.id != project.id and table and Path(os.path.realpath(table)).is_relative_to(here):
                raise Conflict(
                    f"the project {other.meta['name']!r} reads a table of this one; delete that first"
                )
        shutil.rmtree(project.folder)
        self._projects.pop(project.id, None)

    # -- the register -------------------------------------------------------------------------------------

    def register(self) -> list[dict[str, Any]]:
        """Releases that were given out, newest first."""
        try:
            entries, _ = disk.json_lines(self.root / "register.jsonl")
        except FileNotFoundError:
            return []
        return entries[::-1]

    def record(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Add an entry to the register of releases that were given out."""
        full = {"id": new_id(), "recorded": time_now(), **entry}
        with self._register_lock:
            disk.append_json(self.root / "register.jsonl", full)
        return full


def _prepared(root: Path) -> Path:
    """The folder, readable by its owner only; a folder that holds something else is refused."""
    root = Path(os.path.abspath(root.expanduser()))  # noqa: PTH100
    mark = root / "workspace.json"
    try:
        if root.is_dir() and not mark.exists():
            disk.sweep_parts(root)  # of a start that was killed
        if root.exists() and not mark.exists() and (not root.is_dir() or any(root.iterdir())):
            raise UsageError(
                f"{str(root)!r} exists and is not a Maskwright workspace; choose another with --workspace"
            )
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        root.chmod(0o700)
        if not mark.exists():  # first, so that a workspace that is half made is known for one
            write_json(mark, {"format": 1})
        (root / "projects").mkdir(exist_ok=True, mode=0o700)
        (root / "jobs").mkdir(exist_ok=True, mode=0o700)
    except OSError as problem:
        raise UsageError(f"cannot use the workspace {str(root)!r}: {problem.strerror or problem}") from None
    return root


def _hold(path: Path) -> int | None:
    """Keep other servers out of the workspace, where the system can."""
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise UsageError(
            f"another workbench uses {str(path.parent)!r}; use that one, or choose another folder with --workspace"
        ) from None
    return handle
