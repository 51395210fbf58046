"""What column names mean, in English, German, French and Spanish: a topic for each kind of column.

The words are in `topics.yaml`, which says how they are matched.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal

import yaml

from maskwright.policy.policy import Role

Section = Literal["identifiers", "free text", "topics"]
UNIT_KEYS = frozenset({"person-number", "record-number"})
OF_ONE_PERSON = frozenset(
    {"official-number", "insurance-number", "email"}
)  # names, telephones and accounts are shared


@dataclass(frozen=True)
class Topic:
    """What a column is about.

    Attributes:
        key: a short name.
        role: the role such a column gets.
        what: the topic in words, for reasons ("looks like …").
        words: what to look for in a column's name.
    """

    key: str
    role: Role
    what: str
    words: str

    @cached_property
    def _pieces(self) -> list[tuple[str, ...]]:
        """The words that are matched against whole parts, each in its own parts."""
        return [tuple(word.split("_")) for word in self.words.split() if not word.startswith("~")]

    @cached_property
    def _compact(self) -> frozenset[str]:
        return frozenset(map("".join, self._pieces))

    @cached_property
    def _single(self) -> frozenset[str]:
        """Parts that are a word by themselves, or its plural."""
        words = {pieces[0] for pieces in self._pieces if len(pieces) == 1}
        return frozenset(words | {word + "s" for word in words if len(word) > 3})

    @cached_property
    def _inside(self) -> list[str]:
        return [word[1:] for word in self.words.split() if word.startswith("~")]

    def matches(self, parts: tuple[str, ...]) -> bool:
        """Whether the words of a column's name belong to the topic."""
        compact = "".join(parts)
        if compact in self._compact or compact.rstrip("0123456789") in self._compact:
            return True
        if any(part in self._single for part in parts) or any(word in compact for word in self._inside):
            return True
        return any(_in_a_row(pieces, parts) for pieces in self._pieces if len(pieces) > 1)


def name_parts(column: str) -> tuple[str, ...]:
    """The words of a column name, lower case, without accents: "GeburtsDatum_2" → geburts, datum, 2."""
    text = re.sub(r"(?<=[a-zà-ÿ0-9])(?=[A-ZÀ-Þ])", " ", column)
    text = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return tuple(re.findall(r"[^\W\d_]+|\d+", text))


def _in_a_row(pieces: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    starts = range(len(parts) - len(pieces) + 1)
    return any(all(_same(p, q) for p, q in zip(pieces, parts[i:], strict=False)) for i in starts)


def _same(word: str, part: str) -> bool:
    return part == word or (len(word) > 3 and part == word + "s")


@cache
def _data() -> dict[str, Any]:
    text = (files(__package__) / "topics.yaml").read_text(encoding="utf-8")
    return dict(yaml.load(text, yaml.BaseLoader))  # noqa: S506 - texts and mappings only


@cache
def _words(kind: Literal["person", "name", "number"]) -> frozenset[str]:
    return frozenset(_data()[kind].split())


@cache
def _topics(section: Section) -> tuple[Topic, ...]:
    """The topics of a section; where it names no role, they are direct identifiers."""
    listed = _data()[section].items()
    return tuple(Topic(key, t.get("role", "identifier"), t["what"], t["words"]) for key, t in listed)


def name_topic(column: str, section: Section = "topics") -> Topic | None:
    """The first topic of a section that a column's name speaks of."""
    parts = name_parts(column)
    return next((topic for topic in _topics(section) if parts and topic.matches(parts)), None)


def identifier_topic(column: str) -> Topic | None:
    """The identifier that a column's name speaks of, "name" and "patient number" included."""
    parts = name_parts(column)
    words = [p for p in parts if not p.isdigit()]
    rest, names = set(words) - _words("person"), _words("name")
    if set(words) & names and not rest - names:
        return next(topic for topic in _topics("identifiers") if topic.key == "name")
    found = name_topic(column, "identifiers")
    if found is not None:
        return found
    if _number_of_a_person(words, rest):
        return Topic("person-number", "identifier", "the number of a person", "")
    return None


def _number_of_a_person(words: list[str], rest: set[str]) -> bool:
    numbers = _words("number")
    if set(words) & numbers and not rest - numbers and "of" not in words:
        return True
    ending = re.fullmatch(r"(.+?)(?:en|n|s)?(?:nummer|nr|id)", "".join(words))
    return bool(ending and ending[1] in _words("person"))


def is_numbering(column: str) -> bool:
    """Does the name end or begin like a number that is given to things ("order_id", "Rechnungsnr")?"""
    words = [p for p in name_parts(column) if not p.isdigit()]
    if not words or "of" in words:
        return False
    return (
        words[-1] in _words("number")
        or words[0] in {"id", "uuid"}
        or bool(re.search(r"(nummer|nr)$", words[-1]))
    )
