"""Spellings of one value: F, f, Female and "female " mean the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from maskwright.domain.exact import short_repr
from maskwright.domain.values import canonical_text

MOST_VALUES = 500  # of a column that is looked at for spellings
# What short forms mean where a column holds the long ones too, or only these.
WORDS: tuple[tuple[str, str], ...] = (
    ("female", "f female w woman weiblich frau femme femenino mujer"),
    ("male", "m male man mannlich mann homme masculin masculino hombre"),
    ("yes", "y yes true t ja oui si"),
    ("no", "n no false f nein non"),
)


def _read(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError(  # noqa: TRY004 - pydantic wants a ValueError
            f"{short_repr(value)} names no spellings; write {{Female: [F, f, female]}}"
        )
    owner: dict[str, str] = {}
    result: dict[str, tuple[str, ...]] = {}
    for name, others in value.items():
        listed = others if isinstance(others, (list, tuple)) else [others]
        meant = canonical_text(name)
        result[meant] = tuple(dict.fromkeys(canonical_text(other) for other in listed))
        for other in result[meant]:
            if owner.setdefault(other, meant) != meant:
                raise ValueError(f"{short_repr(other)} is listed for two values; leave it at one")
    for meant in result:
        if owner.get(meant, meant) != meant:
            raise ValueError(
                f"{short_repr(meant)} is a value, and listed as a spelling of another one; remove it there"
            )
        if not meant:
            raise ValueError("an empty text is no value; list its spellings as `missing`")
    return result


Spellings = Annotated[
    dict[str, tuple[str, ...]], BeforeValidator(_read),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}),
]  # fmt: skip


def _folded(text: str) -> str:
    """A text without case, accents, repeated blanks, and marks at its end."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return re.sub(r"[\s_]+", " ", plain).strip(" .,;:")


def spellings_found(values: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """For each value that is written in several ways, one way and the others.

    The commonest way; of a word and its initial the word; several values in the same case, where each is written in it.

    Two texts are the same value when they differ in nothing but case, accents, blanks or marks at the end; and short
    forms of sex and of yes and no, where every value of the column is one of those words.
    """
    if len(values) > MOST_VALUES or any(len(v) > 60 for v in values):
        return {}
    groups: dict[str, list[str]] = {}
    for value in values:
        groups.setdefault(_folded(value) or value, []).append(value)
    for one, two in ((WORDS[0], WORDS[1]), (WORDS[2], WORDS[3])):
        owner = {word: name for name, words in (one, two) for word in words.split()}
        if len(groups) > 2 and all(key in owner for key in groups):
            merged: dict[str, list[str]] = {}
            for key, members in groups.items():
                merged.setdefault(owner[key], []).extend(members)
            groups = merged
            break
    several = [members for members in groups.values() if len(members) > 1]
    case = _common_case(several, values)
    found = {}
    for members in several:
        # of words and their initials a word, which says more
        best = max(members, key=lambda v: (len(v) > 1, case(v), values[v], v))
        found[best] = tuple(sorted(set(members) - {best}))
    return found


def _common_case(groups: Sequence[Sequence[str]], values: Mapping[str, int]) -> Callable[[str], bool]:
    """Whether a text is written in the case in which each of the values is written, the commonest such."""
    cases: tuple[Callable[[str], bool], ...] = (str.istitle, str.islower, str.isupper)
    shared = [
        c
        for c in cases
        if len(groups) > 1 and all(any(len(v) > 1 and c(v) for v in members) for members in groups)
    ]
    rows = {c: sum(values[v] for members in groups for v in members if len(v) > 1 and c(v)) for c in shared}
    return max(shared, key=lambda c: rows[c]) if shared else lambda _: False
