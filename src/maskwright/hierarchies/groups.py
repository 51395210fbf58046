"""Groups of values, listed level by level; with a declared order, runs of that order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from maskwright.domain.exact import short_repr
from maskwright.domain.missing_values import missing_texts
from maskwright.domain.value_labels import group_label
from maskwright.domain.values import arrange_values, canonical_text, check_covered
from maskwright.errors import HierarchyError
from maskwright.hierarchies.builder import Builder, Ladder

MAX_LEVELS = 30
_OTHERS = -1  # the number of the group of values that no group lists

GroupLevel = dict[str, list[str]] | list[list[str]]  # groups by name, or without names


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _members(value: Any) -> list[str]:
    members = [canonical_text(item) for item in (value if _is_list(value) else [value])]
    if not members:
        raise ValueError("a group is empty; list its values, or remove it")
    return members


def _level(value: Any) -> GroupLevel:
    if isinstance(value, Mapping):
        named = {canonical_text(name): _members(members) for name, members in value.items()}
        if len(named) != len(value):
            raise ValueError(f"two groups have the same name in {short_repr(value)}")
    if not value or not (isinstance(value, Mapping) or _is_list(value)):
        raise ValueError(f"{short_repr(value)} is no list of groups; write [[a, b], [c]] or {{name: [a, b]}}")
    return named if isinstance(value, Mapping) else [_members(group) for group in value]


def _levels(value: Any) -> list[GroupLevel]:
    """One level (a mapping, or a list of groups), or a list of levels. Stored as the latter."""
    if isinstance(value, Mapping) or not _is_list(value):
        return [_level(value)]
    nested = [isinstance(v, Mapping) or (_is_list(v) and any(_is_list(w) for w in v)) for v in value]
    if not any(nested):
        return [_level(value)]
    if not all(nested):
        odd = short_repr(value[nested.index(False)])
        raise ValueError(
            f"{odd} stands among whole levels; write each level as [[a, b], [c]] or {{name: [a, b]}}"
        )
    if len(value) > MAX_LEVELS:
        raise ValueError(f"{len(value)} levels of groups; give at most {MAX_LEVELS}")
    return [_level(item) for item in value]


Levels = Annotated[
    list[GroupLevel], PlainValidator(_levels), WithJsonSchema({"type": ["array", "object"]})
]  # fmt: skip


class Groups(Builder):
    """Groups of values, one list of groups per level."""

    groups: Levels = Field(description="[[a, b], [c]], or {name: [a, b]}, or a list of such levels")
    others: str | None = Field(
        None, min_length=1, description="the label of every value that no group of a level lists"
    )

    def ladder(
        self,
        attribute: str,
        values: Sequence[str],
        folder: Path,
        missing: Collection[str],
        order: Sequence[str] | None = None,
    ) -> Ladder:
        """Label every value by its group at each level."""
        owners = [self._owners(attribute, i, missing) for i in range(len(self.groups))]
        if self.others is not None:
            if order is not None:
                raise HierarchyError(
                    f"column {attribute!r}: `others` gathers values from anywhere in the order; list them in groups, "
                    "or remove `order`"
                )
            listed = dict.fromkeys(value for owner in owners for value in owner)
            absent = missing_texts(missing)
            rest = dict.fromkeys(value for value in values if value not in absent)
            owners = [{v: owner.get(v, _OTHERS) for v in listed | rest} for owner in owners]
        for i, owner in enumerate(owners):
            for other in owners:
                remedy = "add them to a group of that level"
                check_covered(attribute, other, owner, f"level {i + 1} of the groups", remedy)
        remedy = "add them to a group, or declare them as missing"
        check_covered(attribute, values, owners[0], "the hierarchy", remedy)
        ground, ordered = arrange_values(attribute, owners[0], order)
        levels = [
            (f"groups {i + 1}", _labels(attribute, ground, owner, self._named(i), runs=order is not None))
            for i, owner in enumerate(owners)
        ]
        return Ladder(ground, levels, ordered)

    def _named(self, i: int) -> dict[int, str]:
        level = self.groups[i]
        names = dict(enumerate(level)) if isinstance(level, dict) else {}
        return names if self.others is None else {**names, _OTHERS: self.others}

    def _owners(self, attribute: str, i: int, missing: Collection[str]) -> dict[str, int]:
        """The group number of every listed value."""
        owner: dict[str, int] = {}
        for number, value in _pairs(self.groups[i]):
            if owner.setdefault(value, number) != number:
                raise HierarchyError(
                    f"column {attribute!r}: level {i + 1} of the groups lists {short_repr(value)} in two groups; "
                    "leave it in one"
                )
        absent = missing_texts(missing)
        return {value: number for value, number in owner.items() if value not in absent}


def _pairs(level: GroupLevel) -> Iterator[tuple[int, str]]:
    groups = level.values() if isinstance(level, dict) else level
    return ((number, value) for number, group in enumerate(groups) for value in group)


def _labels(
    attribute: str, ground: Sequence[str], owner: Mapping[str, int], names: Mapping[int, str], *, runs: bool
) -> list[str]:
    members: dict[int, list[int]] = {}
    for position, value in enumerate(ground):
        members.setdefault(owner[value], []).append(position)
    labels: dict[int, str] = {}
    for number, positions in members.items():
        if runs:
            _check_run(attribute, ground, positions)
        labels[number] = names.get(number) or group_label([ground[p] for p in positions], run=runs)
    refuse_twins(attribute, labels)
    return [labels[owner[value]] for value in ground]


def _check_run(attribute: str, ground: Sequence[str], positions: Sequence[int]) -> None:
    for a, b in pairwise(positions):
        if b != a + 1:
            raise HierarchyError(
                f"column {attribute!r}: a group holds {short_repr(ground[a])} and {short_repr(ground[b])} but not "
                f"{short_repr(ground[a + 1])}, which the order puts between them; groups must be runs of the order"
            )


def refuse_twins(attribute: str, labels: Mapping[int, str]) -> None:
    """Two different groups under one label would be published as one."""
    seen: set[str] = set()
    for label in labels.values():
        if label in seen:
            raise HierarchyError(
                f"column {attribute!r}: two groups of one level are called {short_repr(label)}; "
                "give them different names"
            )
        seen.add(label)
