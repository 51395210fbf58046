"""Files that come into `private/` after a release was made: the log of what was revealed, and the evidence page.

The manifest cannot list them. The log is a chain: each line holds the hash of the one before, so that a line which was
changed, or taken out of the middle, is noticed. The evidence holds hashes of the release, of itself and of its page.
"""

from __future__ import annotations

import getpass
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from maskwright.errors import DestinationError, InputError
from maskwright.folder.store import MANIFEST, PRIVATE, PUBLIC, read_json
from maskwright.runtime.disk import append_after, write_whole

REVEALS, EVIDENCE, EVIDENCE_PAGE = "reveals.jsonl", "evidence.json", "evidence.html"
LATER = frozenset({REVEALS, EVIDENCE, EVIDENCE_PAGE})
_BEGIN = "0" * 64  # before the first line


def log_reveal(private: Path, column: str, tokens: Sequence[str], reason: str) -> None:
    """Write down who reveals which pseudonyms, when and why; nothing may be told when this fails."""
    path = private / REVEALS
    entry = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"), "user": _user_name(), "column": column,
        "pseudonyms": list(tokens), "reason": reason,
    }  # fmt: skip
    try:
        append_after(
            path, lambda line: entry | {"before": hashlib.sha256(line).hexdigest() if line else _BEGIN}
        )
    except OSError as problem:
        raise DestinationError(
            f"the log {str(path)!r} cannot be written ({problem.strerror}), so nothing is revealed"
        ) from None


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def release_hash(release: Path) -> str:
    """One hash of everything that was handed over: that of the public manifest, which holds those of its files."""
    return hashlib.sha256((release / PUBLIC / MANIFEST).read_bytes()).hexdigest()


def content_seal(content: Mapping[str, Any]) -> str:
    """A hash of an evidence page's content, in one way of writing it."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(
        text.encode("utf-8", "surrogatepass")
    ).hexdigest()  # what was damaged has a seal, too


def write_evidence(folder: Path, content: Mapping[str, Any], page: str) -> None:
    """Write an evidence page and its JSON, sealed."""
    try:
        sealed = {**content, "seal": content_seal(content), "page": hashlib.sha256(page.encode()).hexdigest()}
        write_whole(folder / EVIDENCE_PAGE, page, mode=0o600)
        write_whole(folder / EVIDENCE, json.dumps(sealed, indent=1, ensure_ascii=False) + "\n", mode=0o600)
    except OSError as problem:
        raise DestinationError(
            f"the evidence cannot be written to {str(folder)!r}: {problem.strerror}"
        ) from None


def later_problems(release: Path) -> Iterator[str]:
    """What is wrong with the files that came later, in words."""
    private = release / PRIVATE
    if (private / REVEALS).is_file():
        yield from _log_problems(private / REVEALS)
    if (private / EVIDENCE).is_file():
        yield from _evidence_problems(release)
    elif (private / EVIDENCE_PAGE).is_file():
        yield f"{PRIVATE}/{EVIDENCE_PAGE} has no {EVIDENCE} to be compared with"


def _log_problems(path: Path) -> Iterator[str]:
    before = _BEGIN
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            follows = json.loads(line)["before"] == before
        except (ValueError, KeyError, TypeError, RecursionError):
            follows = False
        if not follows:
            yield f"{PRIVATE}/{REVEALS} was changed: line {number} does not follow from the one before it"
            return
        before = hashlib.sha256(line).hexdigest()


def _evidence_problems(release: Path) -> Iterator[str]:
    try:
        stored = read_json(release / PRIVATE / EVIDENCE)
    except InputError:
        yield f"{PRIVATE}/{EVIDENCE} was changed: it is not what was written"
        return
    seal, page = stored.pop("seal", None), stored.pop("page", None)
    if seal != content_seal(stored):
        yield f"{PRIVATE}/{EVIDENCE} was changed: its seal does not fit"
    if stored.get("release") != release_hash(release):
        yield f"{PRIVATE}/{EVIDENCE} is about another release: make it again with `maskwright evidence`"
    shown = release / PRIVATE / EVIDENCE_PAGE
    if not shown.is_file() or hashlib.sha256(shown.read_bytes()).hexdigest() != page:
        yield f"{PRIVATE}/{EVIDENCE_PAGE} is missing, or was changed"
