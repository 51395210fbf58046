"""Where the random choices of a run come from: a key for this input under this policy (docs/decisions/0006).

The same policy on the same input draws the same, so that nothing is learned from a second run, and nobody can try again
until a draw pleases. Who comes into which group depends on what a method sees of the policy and of the input, and on
nothing else: another gate, recoding or file format is no way to draw again. The order of rows and the numbers of groups
depend on all of the policy: two releases must not have their rows in the same order.

The installation key is 32 bytes of the operating system's randomness, made once. It lies in the state folder
(`history.state_folder`) as `installation.key`, readable by its owner only; where `$MASKWRIGHT_KEY_FILE` names a file,
that one is used and never made.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.settings import Registered
from maskwright.domain.summary import Summary
from maskwright.errors import DestinationError, UsageError
from maskwright.kernels.randomness import derived_key, keyed_digest, secret_key
from maskwright.pipeline import history
from maskwright.pipeline.history import private_folder, state_folder
from maskwright.policy.binding import Resolved, flagged_of
from maskwright.policy.policy import Policy
from maskwright.runtime import disk


def content_hash(*summaries: Summary | None) -> str:
    """A hash of the content of some summaries, of which there may be none.

    It is the same for the same people, in whatever order, file or engine they come. Only what a method sees counts: the
    quasi-identifiers with their hierarchies, and the sensitive values. A column that is not published, one that passes
    through, and the names of people change nothing.
    """
    parts = _Parts()
    for summary in summaries:
        parts.texts(["summary" if summary is not None else "none"])
        if summary is not None:
            _add(parts, summary)
    return parts.hash.hexdigest()


class _Parts:
    """A hash of texts and arrays, each with its length, so that no two lists of them look alike."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256(b"maskwright content 1\0")

    def texts(self, texts: Iterable[str | None]) -> None:
        """Add texts to the hash, each with its length."""
        coded = [b"-" if t is None else b"+" + t.encode("utf-8", "surrogatepass") for t in texts]
        self.hash.update(np.array([len(coded), *map(len, coded)], dtype="<i8").tobytes())
        self.hash.update(b"".join(coded))

    def array(self, values: NDArray[Any], kind: str) -> None:
        """Add an array to the hash, with its shape."""
        self.hash.update(np.array([values.ndim, *values.shape], dtype="<i8").tobytes())
        self.hash.update(np.ascontiguousarray(values, dtype=kind).data)


def _add(parts: _Parts, summary: Summary) -> None:
    for hierarchy in summary.attributes:
        _add_hierarchy(parts, hierarchy)
    parts.array(summary.codes, "<i4")
    if summary.weights is not None:
        parts.texts(["weights"])
        parts.array(summary.weights, "<f8")
    for name, guards in (summary.guards or {}).items():
        parts.texts(["guards", name])
        for members in guards.nodes:
            parts.texts(sorted(members))
        parts.array(guards.owner, "<i8")
        parts.array(guards.node, "<i8")
    for name, counts in summary.sensitive.items():
        parts.texts([name, "ordered" if counts.ordered else "", *counts.values])
    if (cells := summary.cells) is not None:  # says everything about the rest
        parts.array(cells.tuples, "<i8")
        parts.array(cells.values, "<i4")
        parts.array(cells.rows, "<i8")
        if cells.people is not None:  # numbered by what they have
            parts.array(cells.people, "<i8")
        return
    parts.array(summary.rows, "<i8")
    parts.array(summary.sizes, "<i8")
    for counts in summary.sensitive.values():
        for values in (counts.start, counts.codes, counts.counts):
            parts.array(values, "<i8")


def _add_hierarchy(parts: _Parts, hierarchy: Hierarchy) -> None:
    parts.texts([hierarchy.attribute, "ordered" if hierarchy.ordered else "", *hierarchy.values])
    for level in hierarchy.levels:
        parts.texts([level.name, *level.labels])
        parts.array(level.blocks, "<i4")


NAME, NAMED = "installation.key", "MASKWRIGHT_KEY_FILE"
_TEXT = re.compile(rb"([0-9a-fA-F]{64})\r?\n?")


@dataclass(frozen=True)
class InstallationKey:
    """The key; `why_not_kept` says why it is not that of other runs (empty: it is)."""

    secret: bytes
    why_not_kept: str = ""


def installation_key() -> InstallationKey:
    """The key of this installation, made at the first run; one that cannot be read or kept is drawn for this run alone.

    Refuses a file that is damaged or that others can read: random choices that somebody could know protect nobody.
    """
    if named := os.environ.get(NAMED):
        try:
            return InstallationKey(_read(Path(named)))
        except OSError as problem:
            raise UsageError(
                f"{NAMED} names {named!r}, which cannot be read ({problem.strerror}); make it with "
                "openssl rand -hex 32, readable by its owner only"
            ) from None
    try:
        path = state_folder() / NAME
        if not path.exists():
            disk.write_once(private_folder(path.parent) / NAME, secret_key().hex() + "\n")
        return InstallationKey(_read(path))
    except OSError as problem:
        return InstallationKey(secret_key(), problem.strerror or type(problem).__name__)
    except DestinationError as problem:
        return InstallationKey(secret_key(), str(problem))


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"the key {str(path)!r} is not a regular file")
        if os.name == "posix" and found.st_mode & 0o077:
            raise UsageError(
                f"the key {str(path)!r} can be read or changed by others; if nobody did, chmod 600 it, else remove it: "
                "the next run makes a new one"
            )
        text = _TEXT.fullmatch(file.read(100))
    if text is None:
        raise UsageError(
            f"the key {str(path)!r} is damaged: it must hold 64 hexadecimal digits; restore it, or remove it: the next "
            "run makes a new one, with other random choices than before"
        )
    return bytes.fromhex(text[1].decode())


@dataclass(frozen=True)
class Keys:
    """The keys of a release: behind its groups (and who of equals is in them), and behind order and numbers."""

    groups: bytes
    order: bytes


@dataclass(frozen=True)
class Chance:
    """The source of a run's keys.

    Attributes:
        secret: the installation key, or what a seed stands for.
        seeded: it is a seed: anybody can work out every choice.
        why_not_kept: why the key is not that of other runs; empty where it is.
    """

    secret: bytes
    seeded: bool = False
    why_not_kept: str = ""

    @staticmethod
    def of(seed: int | None) -> Chance:
        """The key that a seed gives, or that of this installation."""
        if seed is not None:
            return Chance(secret_key(seed), seeded=True)
        key = installation_key()
        return Chance(key.secret, why_not_kept=key.why_not_kept)

    @property
    def repeatable(self) -> bool:
        """Does the same policy on the same input draw the same in the next run?"""
        return not self.why_not_kept

    @cached_property
    def name(self) -> str:
        """Tells sources apart, and nothing about the key."""
        return derived_key(self.secret, "the name of this key").hex()[:16]

    def keys(self, resolved: Resolved, content: str, fingerprint: str) -> Keys:
        """For a policy and an input: `content` is what a method sees of it, `fingerprint` tells tables apart."""
        if self.seeded:
            return Keys(self.secret, self.secret)
        whole = history.policy_hash(resolved.policy)
        return Keys(
            keyed_digest(self.secret, "maskwright groups 1", content, seen_by_method(resolved)),
            keyed_digest(self.secret, "maskwright order 1", fingerprint, content, whole),
        )

    def note(self) -> str:
        """For people: the key was not kept."""
        return (
            f"the installation key could not be kept ({self.why_not_kept}), so this run drew one of its own: the same "
            "policy on the same input will draw something else in the next run"
        )


def seen_by_method(resolved: Resolved) -> str:
    """What a method sees of a policy besides the summary, in one way of writing it."""
    policy: Policy = resolved.policy
    return json.dumps(
        {
            "method": _written(resolved.method),
            "search": sorted(_written(m) for m in resolved.models if m.use == "search"),
            "weights": {name: str(weight) for name, weight in resolved.weights.items()},
            "levels": resolved.levels,
            "flagged": flagged_of(policy, resolved.sets),
        },
        sort_keys=True,
    )


def _written(thing: Registered) -> str:
    return json.dumps([thing.name, thing.options()], sort_keys=True, default=str)
