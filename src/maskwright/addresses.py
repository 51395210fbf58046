"""Addresses (scheme://…) where a file was expected: told apart from paths, and shown without their passwords."""

from __future__ import annotations

import os
import re
from pathlib import Path

_ADDRESS = re.compile(r"\s*([a-z][a-z0-9+.-]+):/", re.IGNORECASE)  # two letters or more: C:/ is a drive
_USER = re.compile(r"\b([a-z][a-z0-9+.-]+):/{1,2}([^\s:/@]*):(?:\S*|[^'\"]*)@", re.IGNORECASE)
_SETTING = re.compile(r"\b(password|passwd|pwd)=[^\s&'\"]+", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """A text without the passwords of the addresses in it."""
    if "@" not in text and "=" not in text:
        return text
    return _SETTING.sub(r"\1=…", _USER.sub(r"\1://\2:…@", text))


def scheme_of(source: object) -> str | None:
    """The scheme of an address; None: it is a path. A path that was made of an address has lost a slash."""
    found = _ADDRESS.match(str(source)) if isinstance(source, (str, Path)) else None
    # Path's own test raises where a name is too long
    return found[1].lower() if found and not os.path.exists(str(source)) else None  # noqa: PTH110


def shown_address(source: object) -> str:
    """An address as it was written, without its password."""
    return without_passwords(re.sub(":/+", "://", str(source).strip(), count=1))
