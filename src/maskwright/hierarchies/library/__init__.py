"""Ready hierarchies: a data file for each, with its source and licence; a label follows from a value alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, field_validator

from maskwright.domain.exact import short_repr
from maskwright.domain.missing_values import missing_texts
from maskwright.domain.settings import did_you_mean
from maskwright.domain.value_labels import table_interval_label
from maskwright.domain.values import arrange_values, number_of_text
from maskwright.errors import HierarchyError
from maskwright.hierarchies.builder import Builder, Ladder, refuse_order

Labels = tuple[str, ...]  # of one value, finest first


@dataclass(frozen=True)
class LibraryEntry:
    """A ready hierarchy: what it is, where it comes from, and how a value gets its labels."""

    name: str
    title: str
    source: str
    licence: str
    kind: str
    levels: tuple[str, ...]
    data: Mapping[str, Any]

    def labels_of(self, value: str) -> Labels | None:
        """The labels of a value, finest first; None where the hierarchy does not know it."""
        if self.kind == "cuts":
            return self._by_cuts(value)
        return self._by_ranges(value) if self.kind == "ranges" else _tree_of(self.name).get(_key(value))

    def _by_cuts(self, value: str) -> Labels | None:
        number = number_of_text(value)
        if number is None:
            return None
        return tuple(_between(number, cuts, "whole" in self.data) for cuts in self.data["cuts"])

    def _by_ranges(self, value: str) -> Labels | None:
        found = re.fullmatch(self.data["pattern"], value.upper())
        if found is None:
            return None
        code = found[1]
        for span, label in self.data["ranges"].items():
            first, _, last = span.partition("-")
            if first <= code <= (last or first):
                block = (_block_of(self.name, code),) if "blocks" in self.data else ()
                finer = (code + found[2],) if found.re.groups > 1 else ()
                above = _tree_of(self.data["above"])[_key(label)] if "above" in self.data else ()
                return (*finer, code, *block, label, *above)
        return None


def library_names() -> list[str]:
    """The names of the ready hierarchies."""
    return sorted(
        p.name.removesuffix(".yaml") for p in files(__package__).iterdir() if p.name.endswith(".yaml")
    )


@cache
def library_entry(name: str) -> LibraryEntry:
    """A ready hierarchy by its name."""
    text = (files(__package__) / f"{name}.yaml").read_text(encoding="utf-8")
    data = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - texts, lists and mappings only
    levels = tuple(data["levels"])
    if "above" in data:
        levels += library_entry(data["above"]).levels
    return LibraryEntry(name, data["title"], data["source"], data["licence"], data["kind"], levels, data)


def _key(text: str) -> str:
    """A text without case and marks, as names are compared."""
    return re.sub(r"[^\w]+", " ", text.casefold()).strip()


@cache
def _tree_of(name: str) -> dict[str, Labels]:
    """For each name and code of a tree the labels above it."""
    data = library_entry(name).data
    codes = int(data.get("codes", 0))
    found: dict[str, Labels] = {}
    for top, groups in data["tree"].items():
        for group, members in groups.items():
            for member in members:
                words = member.split(" ", codes)
                found |= {_key(text): (group, top) for text in words}
    return found | {_key(text): found[_key(code)] for text, code in data.get("also", {}).items()}


@cache
def _blocks_of(name: str) -> list[tuple[str, str]]:
    """The blocks of codes, as first and last code, in order."""
    spans = [span.partition("-") for listed in library_entry(name).data["blocks"].values() for span in listed]
    return sorted((first, last or first) for first, _, last in spans)


def _block_of(name: str, code: str) -> str:
    """The block that a code lies in; a code of none is a block of its own."""
    elsewhere = library_entry(name).data.get("also", {}).get(code)
    if elsewhere is not None:
        return str(elsewhere)
    first, last = max(((a, b) for a, b in _blocks_of(name) if a <= code), default=("", ""))
    if not first or code > last:
        return code
    return first if first == last else f"{first}-{last}"


def _between(number: int | Fraction, cuts: Sequence[str], whole: bool) -> str:
    """The label of the interval between two cuts that a number lies in."""
    below = sum(Fraction(cut) <= number for cut in cuts)
    ends = [None, *cuts, None]
    return table_interval_label(ends[below], ends[below + 1], whole)


class Library(Builder):
    """A ready hierarchy of the library, by its name."""

    library: str = Field(description="countries, icd-10, us-states, zip-us, isced, age-groups …")

    @field_validator("library")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in library_names():
            raise ValueError(f"there is no ready hierarchy {value!r}; {did_you_mean(value, library_names())}")
        return value

    def ladder(
        self,
        attribute: str,
        values: Sequence[str],
        folder: Path,
        missing: Collection[str],
        order: Sequence[str] | None = None,
    ) -> Ladder:
        """Label every value by what the library says of it; refuses values that it does not know."""
        entry = library_entry(self.library)
        if entry.kind == "cuts":
            refuse_order(attribute, order, "numbers")
        absent = missing_texts(missing)
        labels = {value: entry.labels_of(value) for value in values if value not in absent}
        unknown = [value for value, found in labels.items() if found is None]
        if unknown:
            shown = ", ".join(map(short_repr, unknown[:3])) + (" …" if len(unknown) > 3 else "")
            raise HierarchyError(
                f"column {attribute!r}: the ready hierarchy {self.library!r} does not know {shown} ({len(unknown)} of "
                f"{len(labels)} values); say what they mean with `spellings` under prepare.{attribute}, declare them "
                "as missing, or write a tree"
            )
        ground, ordered = arrange_values(attribute, labels, order)
        rows = [labels[value] or () for value in ground]
        return Ladder(
            ground, [(name, [row[i] for row in rows]) for i, name in enumerate(entry.levels)], ordered
        )
