"""A hierarchy that also knows the values of new rows, and publishes the old ones exactly as before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maskwright.domain.grouping import Grouping
from maskwright.domain.hierarchy import Hierarchy, Level
from maskwright.domain.recoding_plan import ColumnMap
from maskwright.errors import HierarchyError
from maskwright.hierarchies.builder import Ladder
from maskwright.pipeline.label_text import published_codes, published_ladder
from maskwright.policy.binding import ladder_of
from maskwright.policy.policy import Policy


@dataclass(frozen=True, eq=False)
class Applied:
    """One quasi-identifier: its hierarchy, and the level that the release has it at."""

    hierarchy: Hierarchy
    level: int

    @property
    def labels(self) -> tuple[str | None, ...]:
        """The labels of the level."""
        return self.hierarchy.levels[self.level].labels

    @property
    def map(self) -> ColumnMap:
        """The label of every value, for the engine."""
        level = self.hierarchy.levels[self.level]
        texts = tuple(level.labels[block] for block in level.blocks.tolist())
        return ColumnMap(self.hierarchy, texts, identity=self.level == 0)


def applied_of(policy: Policy, grouping: Grouping, a: int) -> Applied:
    """The recoding of one quasi-identifier: what the policy says of the published values, if that was published.

    Releases of versions that labelled groups by the values of the whole table are recoded by its hierarchy.
    """
    hierarchy, labels, allocation = (
        grouping.summary.attributes[a],
        grouping.published_labels[a],
        grouping.allocation,
    )
    codes = published_codes(grouping)[a]
    built = _whole(hierarchy.attribute, published_ladder(policy, hierarchy, codes))
    code = {value: i + 1 for i, value in enumerate(built.values)}
    shown = np.full(len(hierarchy.values) + 1, -1, dtype=np.int64)
    there = (
        allocation.groups >= 0
        if grouping.starred is None
        else (allocation.groups >= 0) & (allocation.groups != grouping.starred)
    )
    shown[grouping.summary.codes[a][allocation.tuples[there]]] = labels.of_group[allocation.groups[there]]
    published = [(value, labels.texts[shown[c]]) for c in codes.tolist() for value in hierarchy.members(c)]
    for number, level in enumerate(built.levels):
        if all(_label(level, code[value]) == text for value, text in published):
            return Applied(built, number)
    return Applied(*hierarchy.uncut((grouping.levels or ())[a]))


def _whole(attribute: str, ladder: Ladder) -> Hierarchy:
    """The hierarchy with every level that the policy names."""
    names = [name for name, _ in ladder.levels]
    return Hierarchy.of(
        attribute, ladder.ground, ladder.levels, chain=ladder.chain, ordered=ladder.ordered, kept=names
    )


def extend_recoding(applied: Applied, policy: Policy, values: Sequence[str]) -> Applied:
    """The same recoding for more values: the policy's own builder is asked for them.

    Refuses a value that the builder does not know (it is not in the file, tree or groups), and one that would change
    how other values are published.
    """
    name = applied.hierarchy.attribute
    known = set(applied.hierarchy.values)
    unseen = [value for value in values if value not in known]
    if not unseen:
        return applied
    try:
        built = _whole(name, ladder_of(policy, name, [*applied.hierarchy.values, *unseen]))
    except HierarchyError:
        raise _refused(name, unseen, "the policy does not list it either") from None
    level = _same_level(applied, built)
    if level is None or not set(unseen) <= set(built.values):
        raise _refused(name, unseen, "with it the levels would not be those of the release")
    return Applied(built, level)


def _refused(name: str, unseen: Sequence[str], why: str) -> HierarchyError:
    more = f" and {len(unseen) - 3} more" if len(unseen) > 3 else ""
    return HierarchyError(
        f"column {name!r}: the hierarchy of the release does not know {', '.join(map(repr, unseen[:3]))}{more} "
        f"({why}); leave these rows out, or make a new release of all rows"
    )


def _same_level(applied: Applied, built: Hierarchy) -> int | None:
    """The level of the new hierarchy that publishes all old values under their old labels."""
    old = applied.hierarchy
    if applied.level in (0, old.top):
        return 0 if applied.level == 0 else built.top
    code = {value: i + 1 for i, value in enumerate(built.values)}
    places = [code.get(value, 0) for value in old.values]
    for number, level in enumerate(built.levels):
        if level.name == old.levels[applied.level].name and all(places):
            same = [_label(level, c) for c in places] == [
                _label(old.levels[applied.level], c) for c in range(1, len(old.values) + 1)
            ]
            return number if same else None
    return None


def _label(level: Level, code: int) -> str | None:
    return level.labels[int(level.blocks[code])]
