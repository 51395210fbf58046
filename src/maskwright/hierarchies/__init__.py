"""The ways to write a hierarchy in a policy, told apart by their first key: one file each.

suppress   exact, or `*`                          {dates: [...]}   weeks, months, years …
{intervals: [5, 10]}   ranges of numbers          {tree: {...}}    categories within categories
{groups: [[a, b], [c]]}   listed sets             {file: x.csv}    a table of labels
{mask: right}   1234*, 123**                     {library: icd-10}   a ready hierarchy
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from maskwright.domain.exact import short_repr
from maskwright.domain.settings import TAG, did_you_mean
from maskwright.hierarchies.builder import Builder
from maskwright.hierarchies.dates import Dates
from maskwright.hierarchies.files import File
from maskwright.hierarchies.groups import Groups
from maskwright.hierarchies.intervals import Intervals
from maskwright.hierarchies.library import Library
from maskwright.hierarchies.masking import Masking
from maskwright.hierarchies.suppression import Suppress
from maskwright.hierarchies.trees import Tree

WAYS: dict[str, type[Builder]] = {
    "intervals": Intervals,
    "groups": Groups,
    "mask": Masking,
    "dates": Dates,
    "tree": Tree,
    "file": File,
    "library": Library,
    "suppress": Suppress,
}
_OPTIONS = {name for way in WAYS.values() for name in way.model_fields} - set(WAYS)


def _recognise(value: Any) -> Any:
    """Find out which way a hierarchy is written, or say which there are."""
    if isinstance(value, Builder):
        return value
    if isinstance(value, str):
        if value.strip() == "suppress":
            return Suppress()
        if value.endswith((".csv", ".txt", ".tsv")):
            raise ValueError(f"to read the hierarchy from a file, write {{file: {short_repr(value)}}}")
        if value in WAYS:
            raise ValueError(f"{value!r} needs a setting; write {{{value}: ...}}")
        raise _unknown(value)
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            f"expected 'suppress' or a mapping such as {{intervals: [5, 10]}}, got {short_repr(value)}"
        )
    keys = [str(key) for key in value]
    ways = [key for key in keys if key in WAYS]
    if len(ways) > 1:
        raise ValueError(f"{ways[0]!r} and {ways[1]!r} are two ways to build a hierarchy; keep one")
    if ways == ["suppress"]:
        raise ValueError("write the bare word: hierarchy: suppress")
    if not ways:
        raise _unknown(next((key for key in keys if key not in _OPTIONS), keys[0]))
    return dict(value)


def _unknown(word: str) -> ValueError:
    return ValueError(f"unknown way to build a hierarchy {short_repr(word)}; {did_you_mean(word, WAYS)}")


def _tag(value: Any) -> str:
    way = type(value) if isinstance(value, Builder) else next(WAYS[key] for key in WAYS if key in value)
    return TAG + way.__name__


HierarchySpec = Annotated[
    Annotated[Intervals, Tag(TAG + "Intervals")]
    | Annotated[Groups, Tag(TAG + "Groups")]
    | Annotated[Masking, Tag(TAG + "Masking")]
    | Annotated[Dates, Tag(TAG + "Dates")]
    | Annotated[Tree, Tag(TAG + "Tree")]
    | Annotated[File, Tag(TAG + "File")]
    | Annotated[Library, Tag(TAG + "Library")]
    | Annotated[Suppress, Tag(TAG + "Suppress")],
    Discriminator(_tag),
    BeforeValidator(_recognise),
]


def intervals(*levels: Any, **settings: Any) -> Intervals:
    """Ranges of numbers: for each level a width, or a list of cut points; `origin`, `below`, `above`, `domain`."""
    return Intervals(intervals=levels, **settings)


def mask(end: str = "right", **settings: Any) -> Masking:
    """Characters hidden from one end: "right" or "left"; `by` how many at each level, `char` what replaces them."""
    return Masking(mask=end, **settings)


def dates(*units: str, **settings: Any) -> Dates:
    """Coarser dates: "week", "month", "quarter", "year", "decade"; `format` says how they are written."""
    return Dates(dates=units, **settings)


def tree(categories: Any, **settings: Any) -> Tree:
    """Categories within categories: `{"Europe": ["France", "Italy"], "Asia": ["Japan"]}`."""
    return Tree(tree=categories, **settings)


def groups(*levels: Any, **settings: Any) -> Groups:
    """Listed sets of values: `groups([["a", "b"], ["c"]])`, or `groups({"vowel": ["a", "e"]})`."""
    return Groups(groups=levels[0] if len(levels) == 1 else levels, **settings)


def file(path: str, **settings: Any) -> File:
    """A hierarchy in a CSV file: a line for each value, from the value itself to its coarsest label."""
    return File(file=path, **settings)


def library(name: str, **settings: Any) -> Library:
    """A ready hierarchy: "icd-10", "countries", "zip-us", "age-groups" … (docs/hierarchies.md lists them)."""
    return Library(library=name, **settings)


def suppress() -> Suppress:
    """Exact, or `*`."""
    return Suppress()
