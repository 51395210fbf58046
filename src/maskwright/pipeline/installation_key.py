"""The installation key: 32 bytes of the operating system's randomness, made once, behind all random choices here.

It lies in the state folder (`history.state_folder`) as `installation.key`, readable by its owner only; where
`$MASKWRIGHT_KEY_FILE` names a file, that one is used and never made (docs/decisions/0006).
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from maskwright.errors import DestinationError, UsageError
from maskwright.kernels.randomness import secret_key
from maskwright.pipeline.history import private_folder, state_folder
from maskwright.runtime import disk

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
