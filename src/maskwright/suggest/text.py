"""The suggested policy as commented YAML. Whatever a column is called, the text parses back to the same policy."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from maskwright.suggest.profile import ColumnProfile

WIDTH = 108
# YAML readers stop looking for the colon of a one-line key after 1024 characters.
LONGEST_KEY = 1000
_WORD = re.compile(r"[^\W\d_][\w./]*(?:[ -][\w./]+)*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_RESOLVER = yaml.SafeLoader("")


def yaml_scalar(text: str, *, numbers: bool = False) -> str:
    """A text as YAML: bare where every YAML reader takes it for that text, quoted otherwise."""
    if numbers and _NUMBER.fullmatch(text):
        return text
    if text.isprintable() and _WORD.fullmatch(text) and text.casefold() not in ("y", "n"):
        tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        if tag == "tag:yaml.org,2002:str":
            return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _on_one_line(text: str) -> str:
    """A text that stays on its line of a comment."""
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def yaml_flow(value: Any, *, numbers: bool = True, indent: int = 6) -> str:
    """A value on one line; a long list breaks after its commas."""
    if isinstance(value, Mapping):
        pairs = [
            f"{yaml_scalar(str(k))}: {yaml_flow(v, numbers=numbers and k != 'values', indent=indent)}"
            for k, v in value.items()
        ]
        return "{" + _broken(pairs, indent) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + _broken([yaml_flow(v, numbers=numbers, indent=indent) for v in value], indent) + "]"
    return yaml_scalar(str(value), numbers=numbers)


def _broken(items: list[str], indent: int) -> str:
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) > WIDTH - indent:
            lines.append(line + ",")
            line = item
        else:
            line = f"{line}, {item}" if line else item
    return ("\n" + " " * indent).join([*lines, line])


def comment_lines(text: str, indent: int = 0, hanging: str = "") -> list[str]:
    """Comment lines of a paragraph; further lines begin with `hanging`."""
    start = " " * indent + "# "
    return textwrap.wrap(
        _on_one_line(text), WIDTH, initial_indent=start, subsequent_indent=start + hanging,
        break_long_words=True, break_on_hyphens=False,
    ) or [start.rstrip()]  # fmt: skip


def column_lines(profile: ColumnProfile, entry: str | Mapping[str, Any]) -> list[str]:
    """One column: the reason above it, then its role."""
    lines = comment_lines(f"{_counts(profile)}; {profile.reason}", indent=2, hanging="  ")
    for note in profile.notes:
        lines += comment_lines(f"! {note}", indent=2, hanging="  ")
    key, value = yaml_scalar(profile.name), yaml_flow(entry)
    if len(key) > LONGEST_KEY:
        return [*lines, f"  ? {key}", f"  : {value}"]
    return [*lines, f"  {key}: {value}"]


def _counts(profile: ColumnProfile) -> str:
    """Distinct values, range and missing rows in a few words."""
    text = f"{profile.distinct:,} value{'' if profile.distinct == 1 else 's'}"
    if profile.minimum is not None:
        text += f" from {profile.minimum} to {profile.maximum}"
    return text + (f", {profile.missing:,} missing" if profile.missing else "")


def as_percent(part: int, whole: int) -> str:
    """A share for people; never rounded to nothing or to everything."""
    if part in (0, whole):
        return "0 %" if part == 0 else "100 %"
    if part * 1000 < whole:
        return "less than 0.1 %"
    return f"{min(99.9, round(100 * part / whole, 1)):g} %"


def anonymize_command(name: str) -> str:
    """The command that publishes the table with this policy."""
    return f"maskwright anonymize {shlex.quote(_on_one_line(name))} -p policy.yaml -o release/"


def joined_sections(paragraphs: Sequence[Sequence[str]]) -> str:
    """Sections, with an empty line between them."""
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines) + "\n"
