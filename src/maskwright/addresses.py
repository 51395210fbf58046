"""Addresses (scheme://…) where a file was expected: told apart from paths, and shown without their passwords."""

from __future__ import annotations

import os
import re
from pathlib import Path

_ADDRESS = re.compile(r"\s*([a-z][a-z0-9+.-]+):/", re.IGNORECASE)  # two letters or more: C:/ is a drive
_USER = re.compile(r"(\b[a-z][a-z0-9+.-]+:/{1,2}|//)([^\s:/@]*):(?:\S*|[^'\"]*)@", re.IGNORECASE)
_SETTING = re.compile(r"(?:\b|(?<=%3B)|(?<=%26))(password|passwd|pwd)(=|%3D)[^\s&'\"]+", re.IGNORECASE)
_SIGNED = re.compile(r"([?&][\w.-]*(?:token|sig|secret|key|credential)[\w.-]*=)[^\s&'\"]+", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """A text without the passwords, and the keys and signatures, of the addresses in it."""
    if not any(mark in text for mark in "@=%"):
        return text
    return _SIGNED.sub(r"\1…", _SETTING.sub(r"\1\2…", _USER.sub(_hidden, text)))


def _hidden(found: re.Match[str]) -> str:
    return f"{found[1].rstrip('/')}//{found[2]}:…@"


def scheme_of(source: object) -> str | None:
    """The scheme of an address; None: it is a path. A path that was made of an address has lost a slash."""
    found = _ADDRESS.match(str(source)) if isinstance(source, (str, Path)) else None
    # Path's own test raises where a name is too long
    return found[1].lower() if found and not os.path.exists(str(source)) else None  # noqa: PTH110


def shown_address(source: object) -> str:
    """An address as it was written, without its password."""
    return without_passwords(re.sub(":/+", "://", str(source).strip(), count=1))
