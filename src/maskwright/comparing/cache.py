"""Results of earlier comparisons, found again by content: input, policy, seed, metrics and version.

Only numbers are kept, beliefs and metrics of policies that hold: no row, no label, no witness. A policy that does not
hold is run again, because the reason may name values. The folder is readable by its owner only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maskwright.pipeline.history import policy_hash, private_folder, state_folder
from maskwright.policy.policy import Policy
from maskwright.runtime import disk
from maskwright.version import __version__

FORMAT = 1  # counts up when the meaning of a stored result changes


class Cache:
    """A folder of results. `Cache(None)` remembers nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = private_folder(folder) if folder is not None else None

    @staticmethod
    def usual() -> Path:
        """The folder in which comparisons are kept."""
        return private_folder(state_folder()) / "comparisons"

    def key(self, fingerprint: str, policy: Policy, seed: int | None, metrics: Sequence[str]) -> str:
        """The name under which a run is kept: a hash of all that decides its outcome."""
        parts = [FORMAT, __version__, fingerprint, policy_hash(policy), seed, sorted(metrics)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def get(self, key: str) -> dict[str, Any] | None:
        """A stored result; a file that is damaged counts as none."""
        if self.folder is None:
            return None
        try:
            found = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and found.get("key") == key else None

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Store a result; a kill in the middle leaves no half of it."""
        if self.folder is None:
            return
        disk.write_whole(self.folder / f"{key}.json", json.dumps({"key": key, **result}), mode=0o600)
