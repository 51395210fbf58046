"""What was tried on an input before: choosing settings by their outcomes turns *guaranteed* into *measured*.

One file per input, named by its fingerprint, one line per run: the day, whether it was a comparison or a release, a
hash of the settings, and the name of the key behind its random choices. No row, no value, no name of a file or column.
A second file names the folders of the releases that were written: later ones are attacked together with them. A third
has what differentially private releases of the input have spent.
The folder is `$MASKWRIGHT_STATE`, else `$XDG_STATE_HOME/maskwright`, else `~/.local/state/maskwright`, readable by its
owner only (docs/decisions/0004).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from maskwright.domain.exact import text_of
from maskwright.domain.promise import DifferentialPrivacy
from maskwright.errors import DestinationError
from maskwright.policy.policy import Policy
from maskwright.runtime import disk

Kind = Literal["compared", "run"]


@dataclass(frozen=True)
class EarlierLooks:
    """Other settings, and other draws of the same ones, whose outcome on the same input could be seen before this run.

    Attributes:
        compared: how many of them were compared (`maskwright compare`).
        runs: how many of them were run (`maskwright anonymize`), whether or not anything was published.
        draws: with how many other keys (or seeds) the same settings were run: each is a release of its own.
        since: the day of the first of all these.
        damaged: the record cannot be read, so that anything may have been tried.
    """

    compared: int = 0
    runs: int = 0
    since: str | None = None
    damaged: bool = False
    draws: int = 0

    @property
    def chosen_by_looking(self) -> bool:
        """Could these settings, or this draw, have been chosen by outcome? Nobody can tell, so the answer is yes."""
        return self.damaged or self.compared + self.runs + self.draws > 0

    def sentence(self) -> str:
        """For people: why nothing is guaranteed; empty when these settings are the first."""
        if self.damaged:
            tried = "the record of what was tried on this input before cannot be read"
        elif self.chosen_by_looking:
            parts = [
                (self.compared, "compared"), (self.runs, "run"), (self.draws, "with these settings and another key")
            ]  # fmt: skip
            counted = " and ".join(f"{n} {what}" for n, what in parts if n)
            other = "settings" if self.compared + self.runs else "random choices"
            tried = f"other {other} were tried on this input since {self.since} ({counted})"
        else:
            return ""
        return f"{tried}: a bound that holds for settings fixed in advance is only measured here"

    def as_dict(self) -> dict[str, Any]:
        """The history as JSON."""
        return {
            "compared": self.compared,
            "run": self.runs,
            "draws": self.draws,
            "since": self.since,
            "damaged": self.damaged,
            "chosen_by_looking": self.chosen_by_looking,
            "why": self.sentence(),
        }


def state_folder() -> Path:
    """Where Maskwright remembers what was tried."""
    own = os.environ.get("MASKWRIGHT_STATE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_STATE_HOME")
    try:
        return (Path(shared) if shared else Path.home() / ".local" / "state") / "maskwright"
    except RuntimeError:
        raise DestinationError(
            "there is no home folder to remember runs in; name one in MASKWRIGHT_STATE"
        ) from None


def private_folder(folder: Path) -> Path:
    """Make a folder that only its owner can read."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as problem:
        raise DestinationError(
            f"cannot write to {str(folder)!r}: {problem.strerror}; name another folder in MASKWRIGHT_STATE"
        ) from None
    return folder


OUTCOME_FREE = ("output", "about", "preset")  # sections of a policy that decide no outcome


def policy_hash(policy: Policy) -> str:
    """A hash of everything in a policy that decides the outcome; files count by their content, wherever they are."""

    def content(file: str) -> str:
        """The hash of a file that the policy names."""
        try:
            return hashlib.sha256((policy.folder / file).read_bytes()).hexdigest()
        except OSError:
            return file  # the run itself will refuse it

    values = policy.with_files(content).to_dict()
    decisive = {k: v for k, v in values.items() if k not in OUTCOME_FREE}
    return hashlib.sha256(json.dumps(_as_text(decisive), sort_keys=True).encode()).hexdigest()


def _as_text(values: Any) -> Any:
    """Numbers as they are written: a policy file has them as text, Python as numbers."""
    if isinstance(values, dict):
        return {k: _as_text(v) for k, v in values.items()}
    return [_as_text(v) for v in values] if isinstance(values, list) else str(values)


NOTHING_DRAWN = ""
RELEASES, SPENT = ".releases.jsonl", ".spent.jsonl"


def looked_at(
    fingerprint: str, policy: str, key: str = NOTHING_DRAWN, counted: Collection[str] = ()
) -> EarlierLooks:
    """What was tried on this input with settings other than `policy` (a hash), or with a key other than that named.

    Settings that are `counted` elsewhere are no looks.
    """
    try:
        found, whole = disk.json_lines(_path(fingerprint))
        lines = [(str(r["kind"]), str(r["policy"]), str(r["day"]), str(r.get("key"))) for r in found]
    except (FileNotFoundError, NotADirectoryError, DestinationError):
        return EarlierLooks()
    except (OSError, ValueError, KeyError, TypeError):
        return EarlierLooks(damaged=True)
    if not whole:  # somebody was killed while noting that something was tried
        return EarlierLooks(damaged=True)
    others = [line for line in lines if line[1] != policy and line[1] not in counted]
    # runs of earlier versions name no key: each drew one of its own
    again = [line for line in lines if line[:2] == ("run", policy) and line[3] not in (key, NOTHING_DRAWN)]
    compared = {p for kind, p, *_ in others if kind == "compared"}
    runs = {p for _, p, *_ in others} - compared
    since = min((day for _, _, day, _ in (*others, *again)), default=None)
    return EarlierLooks(len(compared), len(runs), since, draws=len({name for *_, name in again}))


def record_outcome(fingerprint: str, policy: str, kind: Kind, key: str = NOTHING_DRAWN) -> None:
    """Remember that the outcome of these settings on this input could be seen, drawn with the key of that name."""
    path = _path(fingerprint)
    private_folder(path.parent.parent)
    private_folder(path.parent)
    try:
        day = datetime.now(UTC).date().isoformat()
        disk.append_json(path, {"day": day, "kind": kind, "policy": policy, "key": key})
    except OSError as problem:
        raise DestinationError(
            f"cannot remember this run in {str(path)!r}: {problem.strerror}; name another folder in MASKWRIGHT_STATE"
        ) from None


def record_release(fingerprint: str, policy: str, key: str, folder: Path) -> None:
    """Remember where a release of this input was written."""
    path = _path(fingerprint).with_suffix(RELEASES)
    private_folder(path.parent.parent)
    private_folder(path.parent)
    try:
        disk.append_json(path, {"policy": policy, "key": key, "folder": str(folder.absolute())})
    except OSError as problem:
        raise DestinationError(
            f"cannot remember this release in {str(path)!r}: {problem.strerror}; name another folder in "
            "MASKWRIGHT_STATE"
        ) from None


def earlier_releases(fingerprint: str, policy: str, key: str) -> tuple[list[Path], int]:
    """The folders of releases of this input under other settings or with another key, the latest first, and how many
    more there were: each was replaced by a later one, or what was noted of it cannot be read."""
    try:
        found, whole = disk.json_lines(_path(fingerprint).with_suffix(RELEASES))
        lines = [((str(r["policy"]), str(r["key"])), str(r["folder"])) for r in found]
    except (FileNotFoundError, NotADirectoryError, DestinationError):
        return [], 0
    except (OSError, ValueError, KeyError, TypeError):
        return [], 1
    last = {folder: made for made, folder in lines}
    there = [Path(folder) for folder, made in last.items() if made != (policy, key)]
    # the same settings with the same key are the same release, wherever it lies
    kept = {*last.values(), (policy, key)}
    gone = {made for made, _ in lines if made not in kept}
    return there[::-1], len(gone) + (not whole)


@dataclass(frozen=True)
class Spending:
    """What a differentially private release of an input has spent: its day, policy (a hash), key, epsilon, delta."""

    day: str
    policy: str
    key: str
    epsilon: Fraction
    delta: float


def spent_before(fingerprint: str) -> list[Spending]:
    """What was spent on this input, each release once. Refused where that cannot be read: it might be any amount."""
    path = _path(fingerprint).with_suffix(SPENT)
    try:
        found, whole = disk.json_lines(path)
        lines = [
            Spending(
                str(r["day"]), str(r["policy"]), str(r["key"]), Fraction(r["epsilon"]), float(r["delta"])
            )
            for r in found
        ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        lines, whole = [], False
    if not whole or not all(one.epsilon > 0 and 0 <= one.delta < 1 for one in lines):
        raise DestinationError(
            f"what differentially private releases of this table have spent cannot be read from {str(path)!r}, and may "
            "be any amount; restore the file"
        )
    return list({(one.policy, one.key): one for one in lines}.values())


def record_spending(
    fingerprint: str, policy: str, key: str, privacy: DifferentialPrivacy, check: Callable[[], None]
) -> None:
    """Remember what a release spends, before anybody can have it; not if the `check`, while nobody writes, refuses."""
    path = _path(fingerprint).with_suffix(SPENT)
    private_folder(path.parent.parent)
    private_folder(path.parent)
    day, epsilon = datetime.now(UTC).date().isoformat(), text_of(privacy.epsilon)
    line = {"day": day, "policy": policy, "key": key, "epsilon": epsilon, "delta": privacy.delta}
    try:
        disk.append_after(path, lambda _: check() or line)  # type: ignore[func-returns-value]
    except OSError as problem:
        raise DestinationError(
            f"what this release spends cannot be remembered in {str(path)!r}: {problem.strerror}; name another folder "
            "in MASKWRIGHT_STATE; nothing was published"
        ) from None


def _path(fingerprint: str) -> Path:
    return state_folder() / "inputs" / f"{fingerprint}.jsonl"
