"""Reveal: whose is a pseudonym? For the custodian, who has the key of a release and the table that it was made from.

A pseudonym is a keyed hash, so nothing is decrypted: the values of the table are hashed again and looked up. What is
asked is written down first, with the reason (`private/reveals.jsonl`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskwright.domain.settings import did_you_mean
from maskwright.engines import open_engine
from maskwright.errors import InputError, UsageError
from maskwright.folder.later_files import log_reveal
from maskwright.folder.store import MALFORMED, MANIFEST, PRIVATE, read_json
from maskwright.identifiers.pseudonyms import Pseudonyms, is_pseudonym
from maskwright.policy.binding import reading_options
from maskwright.policy.policy import Policy
from maskwright.verification.verify import file_hash

KEYS = "pseudonyms.json"


def keys_as_json(hidden: Mapping[str, Pseudonyms], collisions: Mapping[str, int]) -> dict[str, Any]:
    """What `private/` keeps of the pseudonyms of a release: whoever has it can tell whose they are."""
    return {
        "columns": {
            name: {"key": p.key.hex(), "domain": p.domain, "group": p.group, "collisions": collisions.get(name, 0)}
            for name, p in hidden.items()
        }
    }  # fmt: skip


def kept_pseudonyms(release: Path) -> dict[str, Pseudonyms]:
    """The pseudonyms of a release by column, with the keys that its `private/` keeps."""
    path = release / PRIVATE / KEYS
    if not path.exists():
        raise InputError(
            f"{str(release)!r} has no {PRIVATE}/{KEYS}: it has no pseudonyms, or was made with --keep-private report "
            "or none, and then nobody can tell whose they are"
        )
    listed = read_json(release / PRIVATE / MANIFEST).get("files")
    if not isinstance(listed, dict) or listed.get(KEYS) != file_hash(
        path
    ):  # it would find nobody, or somebody else
        raise InputError(f"{str(path)!r} was changed since the release was made: restore it from a copy")
    try:
        return {
            str(name): Pseudonyms(bytes.fromhex(kept["key"]), str(kept["domain"]), str(kept["group"]))
            for name, kept in read_json(path)["columns"].items()
        }
    except MALFORMED:
        raise InputError(f"{str(path)!r} is not what was written") from None


@dataclass(frozen=True)
class Revealed:
    """The values behind pseudonyms of one column.

    Attributes:
        column: its name.
        values: by pseudonym; several where pseudonyms collide.
        unknown: the pseudonyms that no value of the table has.
    """

    column: str
    values: Mapping[str, tuple[str, ...]]
    unknown: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Was every pseudonym found?"""
        return not self.unknown

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "ok": self.ok,
            "column": self.column,
            "values": {token: list(values) for token, values in self.values.items()},
            "unknown": list(self.unknown),
        }

    def __str__(self) -> str:
        lines = [f"{token}  {self.column} {' or '.join(values)}" for token, values in self.values.items()]
        lines += [f"{token}  no value of this table has it" for token in self.unknown]
        return "\n".join(lines)


def reveal_people(
    release: str | Path, source: Any, tokens: Sequence[str], reason: str, column: str | None = None
) -> Revealed:
    """The values of the source whose pseudonyms these are; who asks, and why, is written down first."""
    folder = Path(release)
    kept = kept_pseudonyms(folder)
    if column is None and len(kept) > 1:
        raise UsageError(f"the release has several columns of pseudonyms; name one of {', '.join(kept)}")
    column = column or next(iter(kept))
    if column not in kept:
        raise UsageError(
            f"the release has no pseudonyms in a column {column!r}; {did_you_mean(column, kept)}"
        )
    asked = list(dict.fromkeys(token.strip().upper() for token in tokens))
    if not asked:
        raise UsageError("name the pseudonyms that are to be revealed, as the release shows them")
    for number, token in enumerate(asked, 1):
        if not is_pseudonym(token):
            raise UsageError(
                f"number {number} of what is to be revealed is no pseudonym: sixteen letters and digits 2 to 7"
            )
    if not reason.strip():
        raise UsageError("say why: the reason is written into the log of the release")
    policy = Policy.load(folder / PRIVATE / "policy.yaml")
    engine = open_engine()
    try:
        table = engine.open(source, reading_options(policy))
        names = [c.name for c in table.columns]
        if column not in names:
            raise InputError(f"the table has no column {column!r}; {did_you_mean(column, names)}")
        values = engine.domain(table, column).values
    finally:
        engine.close()
    log_reveal(folder / PRIVATE, column, asked, reason.strip())
    wanted, found = set(asked), dict[str, list[str]]()
    for value in values:
        if (token := kept[column].token(value)) in wanted:
            found.setdefault(token, []).append(value)
    known = {token: tuple(found[token]) for token in asked if token in found}
    return Revealed(column, known, tuple(token for token in asked if token not in found))
