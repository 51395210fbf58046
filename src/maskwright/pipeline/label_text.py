"""Rendering: the text under which a group is published, from the policy and the values of published rows alone.

A method works with the hierarchies of the whole table. What is written must not tell of people who are not in the
release: a value that only they have can change how intervals are written, whether a level is told apart from `*`, and
what a label covers. So the labels are made once more, from the hierarchies that the policy describes for the values
that are published (and those of the population table, which anybody may have).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.exact import sorted_distinct
from maskwright.domain.grouping import Grouping, Labels, Rendering, groups_as_read
from maskwright.domain.hierarchy import TOP, Hierarchy, Level
from maskwright.domain.method import Part
from maskwright.domain.summary import Summary
from maskwright.hierarchies.builder import Ladder
from maskwright.methods._rows.group_labels import LabelStyle, label_groups
from maskwright.methods._rows.own_columns import labelled_alike, labels_of_people
from maskwright.policy.binding import ladder_of
from maskwright.policy.policy import Policy

Int32s = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Readable:
    """A quasi-identifier as readers know it: its hierarchy by the published values.

    Attributes:
        hierarchy: what the policy describes for the published values.
        of_code: the code there of each code in the whole table; 0: missing, or a value that is not published.
        codes: the codes (of the whole table) that are published; 0 is among them where missing is.
    """

    hierarchy: Hierarchy
    of_code: Int32s
    codes: Ints

    @property
    def ground(self) -> tuple[str | None, ...]:
        """The text of each code of the whole table at the finest level."""
        return tuple(self.hierarchy.levels[0].labels[code] for code in self.of_code.tolist())


def rendered_part(part: Part, policy: Policy) -> Part:
    """The part with its labels as they are written in the release."""
    if part.grouping.labelling == "given":  # by each value alone: nobody else's values have a part in it
        return part
    grouping, task = labelled_alike(part.grouping, part.task.levels, part.task.own), part.task
    allowed = {
        h.attribute: [h.levels[j].name for j in task.levels[h.attribute]]
        for h in grouping.summary.attributes
        if h.attribute in task.levels
    }
    rendered = _rendered_grouping(grouping, policy, allowed, task.census, task.own)
    return replace(
        part, grouping=groups_as_read(rendered) if policy.recoding.name == "generalise" else rendered
    )


def _rendered_grouping(
    grouping: Grouping,
    policy: Policy,
    allowed: Mapping[str, Sequence[str]],
    census: Summary | None = None,
    own: Sequence[str] = (),
) -> Grouping:
    """The grouping with its labels as they are written in the release.

    Args:
        grouping: as the method made it.
        policy: describes the hierarchies.
        allowed: the names of the levels that a column may be published at, where the policy restricts them.
        census: the population table.
        own: the columns with one label for all rows of a person.
    """
    summary = grouping.summary
    held = published_codes(grouping)
    if census is not None:
        held = [np.union1d(codes, more) for codes, more in zip(held, census.codes, strict=True)]
    if all(len(codes[codes > 0]) == len(h.values) for codes, h in zip(held, summary.attributes, strict=True)):
        return grouping  # every value of the table is published
    columns = [
        _readable(policy, h, codes, allowed.get(h.attribute, ()))
        for h, codes in zip(summary.attributes, held, strict=True)
    ]
    if grouping.labelling == "fixed":
        made = [_by_cuts(grouping, a, column, allowed) for a, column in enumerate(columns)]
    elif grouping.labelling in ("levels", "reached"):
        made = [_by_level(grouping, a, column, allowed) for a, column in enumerate(columns)]
    else:
        made = _by_group(grouping, columns, allowed)
    if own and grouping.levels is None:
        made = _by_person(grouping, made, columns, allowed, own)
    return replace(grouping, renderings=tuple(made))


def published_codes(grouping: Grouping) -> list[Ints]:
    """Per quasi-identifier the codes in the rows that are published with a label of their own, ascending."""
    tuples = sorted_distinct(grouping.allocation.tuples[_shown(grouping)])
    return [sorted_distinct(codes[tuples]).astype(np.int64) for codes in grouping.summary.codes]


def _shown(grouping: Grouping) -> NDArray[np.bool_]:
    groups = grouping.allocation.groups
    there: NDArray[np.bool_] = groups >= 0
    return there if grouping.starred is None else there & (groups != grouping.starred)


def published_ladder(policy: Policy, hierarchy: Hierarchy, codes: Ints) -> Ladder:
    """What the policy says of the values that these codes stand for."""
    whole, level = hierarchy.origin or (hierarchy, 0)
    inside = np.isin(whole.levels[level].blocks[1:], codes[codes > 0])
    values = [whole.values[i] for i in np.flatnonzero(inside).tolist()]
    return ladder_of(policy, hierarchy.attribute, values)


def _readable(policy: Policy, hierarchy: Hierarchy, codes: Ints, kept: Collection[str]) -> Readable:
    ladder = published_ladder(policy, hierarchy, codes)
    whole, finest = hierarchy.origin or (hierarchy, 0)
    ground = dict(zip(ladder.ground, ladder.ground, strict=True))
    name = "exact"
    if hierarchy.origin is not None:
        name = whole.levels[finest].name
        ladder, ground = _cut(ladder, name)
    made = Hierarchy.of(
        hierarchy.attribute,
        ladder.ground,
        ladder.levels,
        chain=ladder.chain,
        ordered=ladder.ordered,
        kept=kept,
    )
    first = Level(name, made.levels[0].labels, made.levels[0].blocks)
    made = replace(made, levels=(first, *made.levels[1:]))
    number = {text: i + 1 for i, text in enumerate(made.values)}
    of_code = np.zeros(len(hierarchy.values) + 1, dtype=np.int32)
    member = np.zeros(len(hierarchy.values) + 1, dtype=np.int64)  # of each code one of its values
    member[whole.levels[finest].blocks[1:]] = np.arange(len(whole.values))
    for code in codes[codes > 0].tolist():
        of_code[code] = number[ground[whole.values[member[code]]]]
    return Readable(made, of_code, codes)


def _cut(ladder: Ladder, name: str) -> tuple[Ladder, dict[str, str]]:
    """The ladder from a level on, whose labels become ground values; and the label of each value there."""
    at = [level for level, _ in ladder.levels].index(name)
    labels = ladder.levels[at][1]
    first = {label: i for i, label in reversed(list(enumerate(labels)))}
    units = list(dict.fromkeys(labels))
    levels = []
    for level, texts in ladder.levels[at + 1 :]:
        if all(texts[first[label]] == text for label, text in zip(labels, texts, strict=True)):
            levels.append((level, [texts[first[label]] for label in units]))
    runs = 1 + sum(a != b for a, b in pairwise(labels))
    ordered = ladder.ordered and runs <= max(1, len(units))
    return Ladder(units, levels, ordered, ladder.chain), dict(zip(ladder.ground, labels, strict=True))


def _by_level(
    grouping: Grouping, a: int, column: Readable, allowed: Mapping[str, Sequence[str]]
) -> Rendering:
    """The labels of groups that have the block of a level, which the method chose for the column or for the group."""
    summary, old = grouping.summary, grouping.labels[a]
    hierarchy = summary.attributes[a]
    first = _first_tuple(grouping)
    names = allowed.get(hierarchy.attribute)
    if grouping.levels is not None:
        numbers = np.full(len(first), grouping.levels[a], dtype=np.int64)
    elif old.levels is not None:
        numbers = np.array(old.levels, dtype=np.int64)[old.of_group]
    else:
        raise ValueError("labels by level need the levels that the method chose")
    if grouping.starred is not None:
        numbers[grouping.starred] = -1
    texts: dict[str | None, int] = {}
    of_group = np.empty(len(first), dtype=np.int32)
    coverage: list[int] = []
    level_name: str | None = None
    for number in np.unique(numbers[numbers >= 0]).tolist():
        groups = np.flatnonzero(numbers == number)
        level = _same_partition(hierarchy, number, column, names)
        block = level.blocks[column.of_code[summary.codes[a][first[groups]]]]
        level_name = level.name
        for b in np.unique(block).tolist():
            at = texts.setdefault(level.labels[b], len(texts))
            coverage += [int(level.leaves[b])] * (at == len(coverage))
            of_group[groups[block == b]] = at
    if grouping.starred is not None:
        at = texts.setdefault(TOP, len(texts))
        coverage += [column.hierarchy.base] * (at == len(coverage))
        of_group[grouping.starred] = at
    labels = Labels(hierarchy.attribute, tuple(texts), np.array(coverage, dtype=np.int64), of_group)
    return Rendering(labels, level_name if grouping.levels is not None else None, column.ground)


def _first_tuple(grouping: Grouping) -> Ints:
    """A tuple of each group."""
    there = np.flatnonzero(grouping.allocation.groups >= 0)
    first = np.zeros(grouping.classes.n, dtype=np.int64)
    first[grouping.allocation.groups[there]] = grouping.allocation.tuples[there]
    return first


def _same_partition(
    hierarchy: Hierarchy, number: int, column: Readable, names: Sequence[str] | None
) -> Level:
    """The finest allowed level that tells the same published values apart as the one that was chosen."""
    shown = column.hierarchy
    if number == hierarchy.top:
        return shown.levels[-1]
    chosen = hierarchy.levels[number].blocks[column.codes]
    for level in shown.levels:
        if names is not None and level.name not in names:
            continue
        blocks = level.blocks[column.of_code[column.codes]]
        pairs = len(np.unique(np.stack([chosen, blocks]), axis=1).T)
        if pairs == len(np.unique(chosen)) == len(np.unique(blocks)):
            return level
    return _translated(hierarchy.levels[number], column)


def _translated(level: Level, column: Readable) -> Level:
    """A level of the whole table for the codes of the published values: where no other says the same."""
    blocks = np.zeros(len(column.hierarchy.values) + 1, dtype=np.int32)
    blocks[column.of_code[column.codes]] = level.blocks[column.codes]
    return Level(level.name, level.labels, blocks)


def _by_cuts(grouping: Grouping, a: int, column: Readable, allowed: Mapping[str, Sequence[str]]) -> Rendering:
    """The labels of groups that have the smallest block around what the cuts left, by the published values in it."""
    old, shown, levels = grouping.labels[a], column.hierarchy, {}
    if (names := allowed.get(shown.attribute)) is not None:
        levels[shown.attribute] = [j for j, level in enumerate(shown.levels) if level.name in names]
    covered = [
        np.unique(column.of_code[np.intersect1d(grouping.summary.attributes[a].codes_of(text, int(n)), column.codes)])
        for text, n in zip(old.texts, old.coverage, strict=True)
    ]  # fmt: skip
    every = replace(
        grouping.summary, attributes=(shown,), codes=np.arange(len(shown.values) + 1, dtype=np.int32)[None, :]
    )
    start = np.concatenate([[0], np.cumsum([len(codes) for codes in covered])]).astype(np.int64)
    inside = np.concatenate(covered).astype(np.int32)
    labels = label_groups(every, levels, "hierarchy", inside, start)[0][0]
    return Rendering(replace(labels, of_group=labels.of_group[old.of_group]), None, column.ground)


def _by_person(
    grouping: Grouping,
    made: Sequence[Rendering],
    columns: Sequence[Readable],
    allowed: Mapping[str, Sequence[str]],
    own: Sequence[str],
) -> list[Rendering]:
    """The person's own columns with one label for all groups that people connect, the others as they are."""
    codes = np.stack([c.of_code[x] for c, x in zip(columns, grouping.summary.codes, strict=True)])
    readable = replace(grouping.summary, attributes=tuple(c.hierarchy for c in columns), codes=codes)
    levels = {
        c.hierarchy.attribute: [
            j for j, level in enumerate(c.hierarchy.levels) if level.name in allowed[c.hierarchy.attribute]
        ]
        for c in columns
        if c.hierarchy.attribute in allowed
    }
    found = labels_of_people(grouping, readable, levels, own)
    return [replace(r, labels=found.get(r.labels.attribute, r.labels)) for r in made]


def _by_group(
    grouping: Grouping, columns: Sequence[Readable], allowed: Mapping[str, Sequence[str]]
) -> list[Rendering]:
    """The labels of groups that have the smallest label that covers them."""
    summary, there = grouping.summary, np.flatnonzero(_shown(grouping))
    groups = grouping.allocation.groups[there]
    order = np.argsort(groups, kind="stable")
    n = grouping.classes.n - (grouping.starred is not None)
    start = np.searchsorted(groups[order], np.arange(n + 1)).astype(np.int64)
    tuples = grouping.allocation.tuples[there[order]].astype(np.int32)
    codes = np.stack([c.of_code[x] for c, x in zip(columns, summary.codes, strict=True)])
    readable = replace(summary, attributes=tuple(c.hierarchy for c in columns), codes=codes)
    levels = {
        c.hierarchy.attribute: [
            j for j, level in enumerate(c.hierarchy.levels) if names is None or level.name in names
        ]
        for c in columns
        if (names := allowed.get(c.hierarchy.attribute)) is not None or grouping.labelling == "blocks"
    }
    style: LabelStyle = "ranges" if grouping.labelling == "ranges" else "hierarchy"
    found, _ = label_groups(readable, levels, style, tuples, start)
    made = []
    for column, labels in zip(columns, found, strict=True):
        if grouping.starred is not None:
            at = labels.texts.index(TOP) if TOP in labels.texts else len(labels.texts)
            texts = (*labels.texts, TOP)[: max(len(labels.texts), at + 1)]
            coverage = np.append(labels.coverage, column.hierarchy.base)[: len(texts)]
            of_group = np.append(labels.of_group, np.int32(at))
            labels = Labels(labels.attribute, texts, coverage, of_group)
        made.append(Rendering(labels, None, column.ground))
    return made
