"""A project as one file: a zip file with its table, policy and hierarchies, as sensitive as the table.

project.json     its name, the name of its table, how that is read
policy.yaml      the policy
data/TABLE       the table
hierarchies/     hierarchy files that the policy names
"""

from __future__ import annotations

import json
import shutil
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskwright.errors import InputError
from maskwright.workbench.jobs import Conflict
from maskwright.workbench.roots import TABLES
from maskwright.workbench.workspace import Project

PROJECT_ENDING = ".maskwright"
FOLDERS = ("data", "hierarchies")
MOST = 200  # files
MOST_TEXT = 1 << 24  # bytes of project.json, and of policy.yaml
MOST_NAME = 255  # bytes, as most file systems have it


@dataclass(frozen=True)
class UnpackedProject:
    """What was in such a file; the table and the hierarchies lie in the folder of the new project."""

    name: str
    table: Path
    policy: str
    reading: dict[str, Any]


def exported_files(project: Project) -> list[tuple[Path | bytes, str]]:
    """What a project is exported with: files, or contents, and their names in the zip file."""
    text, profile, source = project.policy_text(), project.profile(), project.source
    if text is None or profile is None:
        raise Conflict("the project has no policy yet; set the roles of its columns first")
    if not source.is_file():
        raise Conflict(f"the table of this project is gone: {source.name!r}")
    about = {
        "format": 1,
        "name": project.meta["name"],
        "table": source.name,
        "reading": profile.get("reading") or {},
    }
    named = {f for where, f in project.parse(text).files.items() if where != "population"}
    return [
        (json.dumps(about, ensure_ascii=False).encode(), "project.json"),
        (text.encode(), "policy.yaml"),
        (source, f"data/{source.name}"),
        *((project.folder / file, file) for file in sorted(named)),
    ]


def unpack_project(file: Path, folder: Path, limit: int) -> UnpackedProject:
    """Unpack an exported project into the folder of a new one; refuses whatever is not one."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = _checked(archive, limit)
            about = json.loads(archive.read("project.json"))
            policy = archive.read("policy.yaml").decode()
            for name in members:
                if "/" in name:
                    _copied(archive, name, folder / name, limit)
        [member] = [name for name in members if name.startswith("data/") and name.lower().endswith(TABLES)]
        reading = {k: _text_or_none(about["reading"].get(k)) for k in ("delimiter", "encoding", "sheet")}
        shown = _text_or_none(about["name"]) or "project"
        made = {**reading, "header": bool(about["reading"].get("header", True))}
        return UnpackedProject(shown[:200], folder / member, policy, made)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        RecursionError,
        KeyError,
        TypeError,
        AttributeError,
        ValueError,
        NotImplementedError,
        RuntimeError,
    ):
        raise InputError(
            f"{file.name!r} is not a project that the workbench exported, or it is damaged"
        ) from None


def _text_or_none(value: Any) -> str | None:
    """A text that can be written, or None; a TypeError or ValueError for anything else."""
    return None if value is None else str.encode(value).decode()


def _checked(archive: zipfile.ZipFile, limit: int) -> list[str]:
    """The names in the file: plain ones, in the two folders that a project has, and not too large unpacked."""
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if len(names) > MOST or len(set(names)) < len(names) or sum(info.file_size for info in infos) > limit:
        raise ValueError("too much")
    for info in infos:
        if info.header_offset < 0 or ("/" not in info.filename and info.file_size > MOST_TEXT):
            raise ValueError("too much")
    for name in names:
        folder, _, rest = name.rpartition("/")
        plain = rest not in ("", ".", "..") and not any(c in "\\:" or c < " " or c == "\x7f" for c in rest)
        plain = plain and len(rest.encode()) <= MOST_NAME and not rest.endswith(PROJECT_ENDING)
        if not plain or folder not in ("", *FOLDERS):
            raise ValueError("no plain name")
    return names


def _copied(archive: zipfile.ZipFile, name: str, target: Path, limit: int) -> None:
    with archive.open(name) as source, target.open("wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)
    if target.stat().st_size > limit:  # a file that lies about its size
        raise ValueError("too much")
