"""Columns of the person (`unit: {own: [...]}`): the same in all rows of a person, and published alike in all of them.

A method that recodes group by group could publish somebody as 30-39 in one row and as 35-39 in another. Whoever sees
that both are one person's knows more than either says: somebody who is 36 cannot be the one with a row under 30-34.
So a label of such a column covers everybody whose rows meet in a group, directly or through others. Methods keep these
circles small by grouping people first, by their own columns alone, and then the rows of each such circle of people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount
from maskwright.domain.grouping import Grouping, Labels
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Task
from maskwright.domain.model import fewest_rows
from maskwright.domain.summary import Summary, summary_of_rows
from maskwright.domain.unmet_requirements import NO_ROWS
from maskwright.errors import PolicyNotMet
from maskwright.methods._rows.group_labels import LabelStyle, label_groups

STEP = 4  # circles of so many times more people are tried in turn


# --- what is published --------------------------------------------------------------------------------


def connected_groups(grouping: Grouping) -> Ints:
    """A number for each group: groups that hold rows of one person share it, and so on through other people.

    Suppressed rows that are published as `*` tell nothing of columns, and connect nobody.
    """
    cells, groups, _ = grouping.cells
    joint, n = grouping.summary.cells, grouping.classes.n
    assert joint is not None and joint.people is not None  # noqa: S101 - rows are told apart by person
    shown = np.ones(len(groups), dtype=bool) if grouping.starred is None else groups != grouping.starred
    person, group = joint.people[cells[shown]], groups[shown]
    root = np.arange(n)
    while True:
        least = np.full(int(person.max(initial=-1)) + 1, n)
        np.minimum.at(least, person, root[group])
        fresh = root.copy()
        np.minimum.at(fresh, root[group], least[person])
        while not np.array_equal(fresh, fresh[fresh]):
            fresh = fresh[fresh]
        if np.array_equal(fresh, root):
            return np.unique(root, return_inverse=True)[1].reshape(-1).astype(np.int64)
        root = fresh


def labels_of_people(
    grouping: Grouping, readable: Summary, levels: Mapping[str, Sequence[int]], own: Sequence[str]
) -> dict[str, Labels]:
    """The labels of the person's own columns, each around all rows of connected groups.

    `readable` has the hierarchies and codes that labels are written with, tuple for tuple.
    """
    places = [a for a, h in enumerate(readable.attributes) if h.attribute in own]
    circle = connected_groups(grouping)
    there = grouping.allocation.groups >= 0
    if grouping.starred is not None:
        there &= grouping.allocation.groups != grouping.starred
    number = circle[grouping.allocation.groups[there]]
    order = np.argsort(number, kind="stable")
    start = np.searchsorted(number[order], np.arange(int(circle.max(initial=-1)) + 2)).astype(np.int64)
    filled = np.flatnonzero(np.diff(start))  # a group of suppressed rows is none
    tuples = grouping.allocation.tuples[there][order].astype(np.int32)
    part = replace(
        readable,
        attributes=tuple(readable.attributes[a] for a in places),
        codes=np.ascontiguousarray(readable.codes[places]),
    )
    style: LabelStyle = "ranges" if grouping.labelling == "ranges" else "hierarchy"
    allowed = dict(levels)
    if grouping.labelling not in ("hierarchy", "ranges"):
        allowed = {h.attribute: range(len(h.levels)) for h in part.attributes} | allowed
    found, _ = label_groups(part, allowed, style, tuples, np.append(start[filled], len(tuples)))
    rank = np.searchsorted(filled, circle)
    result = {}
    for labels, hierarchy in zip(found, part.attributes, strict=True):
        of_group = labels.of_group[np.minimum(rank, len(filled) - 1)]
        if grouping.starred is not None:
            starred = grouping.labels[[h.attribute for h in readable.attributes].index(hierarchy.attribute)]
            text = starred.texts[starred.of_group[grouping.starred]]
            at = labels.texts.index(text) if text in labels.texts else len(labels.texts)
            if at == len(labels.texts):
                labels = replace(
                    labels, texts=(*labels.texts, text), coverage=np.append(labels.coverage, hierarchy.base)
                )
            of_group[grouping.starred] = at
        result[hierarchy.attribute] = replace(labels, of_group=of_group)
    return result


def labelled_alike(grouping: Grouping, levels: Mapping[str, Sequence[int]], own: Sequence[str]) -> Grouping:
    """The grouping with one label for each person in the person's own columns; a level for all is one already."""
    if not own or grouping.levels is not None or not grouping.classes.n:
        return grouping
    found = labels_of_people(grouping, grouping.summary, levels, own)
    labels = tuple(found.get(x.attribute, x) for x in grouping.labels)
    classes = grouping.classes
    if classes.codes is not None:
        classes = replace(classes, codes=np.stack([x.of_group for x in labels]))
    return replace(grouping, labels=labels, classes=classes)


def differing_labels(grouping: Grouping) -> Iterator[tuple[str, bool]]:
    """The columns that are the same in all rows of everybody: is one published in several ways for some person?"""
    cells, groups, _ = grouping.cells
    joint = grouping.summary.cells
    if joint is None or joint.people is None or len(np.unique(joint.people)) == len(joint.rows):
        return
    shown = np.ones(len(groups), dtype=bool) if grouping.starred is None else groups != grouping.starred
    person, group = joint.people[cells[shown]], groups[shown]
    for labels, codes in zip(grouping.published_labels, grouping.summary.codes, strict=True):
        if not _several(joint.people, codes[joint.tuples]):
            yield labels.attribute, _several(person, labels.of_group[group])


def _several(person: Ints, what: Ints) -> bool:
    """Has anybody several of something?"""
    order = np.argsort(person, kind="stable")
    person, what = person[order], what[order]
    return bool(((person[1:] == person[:-1]) & (what[1:] != what[:-1])).any())


# --- people first -------------------------------------------------------------------------------------


def circle_sizes(task: Task) -> Iterator[int]:
    """How many people a circle has at least: as many as a group must have, and ever more, up to everybody."""
    size = max(1, fewest_rows(task.search, task.context))
    while size < task.summary.n_people:
        yield size
        size *= STEP
    yield task.summary.n_people


def people_task(task: Task) -> tuple[Task, Ints]:
    """The task of grouping people by their own columns alone; and the tuple there of each tuple."""
    places = [a for a, h in enumerate(task.summary.attributes) if h.attribute in task.own]
    attributes = tuple(task.summary.attributes[a] for a in places)
    merged, number = _merged(task.summary, attributes, task.summary.codes[places].astype(np.int64))
    return replace(task, summary=merged, own=()), number


def other_columns(summary: Summary, own: Sequence[str]) -> Summary:
    """The summary with the columns of the visits alone; its tuples stay as they are, told apart or not."""
    places = [a for a, h in enumerate(summary.attributes) if h.attribute not in own]
    return replace(
        summary,
        attributes=tuple(summary.attributes[a] for a in places),
        codes=np.ascontiguousarray(summary.codes[places]),
    )


def visits_task(task: Task, circle: Ints) -> tuple[Task, Ints]:
    """The task of grouping rows within circles of people (of each tuple: which); and the tuple there of each tuple."""
    places = [a for a, h in enumerate(task.summary.attributes) if h.attribute not in task.own]
    names = [str(i) for i in range(int(circle.max(initial=0)) + 1)]
    column = Hierarchy.of(f"the person's {', '.join(task.own)}", names, [])
    attributes = (column, *(task.summary.attributes[a] for a in places))
    codes = np.concatenate([circle[None, :] + 1, task.summary.codes[places].astype(np.int64)])
    merged, number = _merged(task.summary, attributes, codes)
    return replace(task, summary=merged, levels={**task.levels, column.attribute: [0]}, own=()), number


def _merged(summary: Summary, attributes: Sequence[Hierarchy], codes: Ints) -> tuple[Summary, Ints]:
    """The same rows under other columns: tuples that these do not tell apart become one."""
    distinct, number = np.unique(codes, axis=1, return_inverse=True)
    number = number.reshape(-1).astype(np.int64)
    joint = summary.personal
    assert joint is not None and joint.people is not None  # noqa: S101 - for the type checker
    rows = exact_bincount(number, summary.rows, distinct.shape[1])
    whole = replace(
        summary,
        attributes=tuple(attributes),
        codes=distinct.astype(np.int32),
        rows=rows,
        weights=None,
        households=None,
    )
    tuples, people = (np.repeat(x, joint.rows) for x in (number[joint.tuples], joint.people))
    return summary_of_rows(whole, tuples, np.repeat(joint.values, joint.rows, axis=1), people), number


def best_of_circles(
    task: Task, group: Callable[[int], Grouping], loss: Callable[[Grouping], Fraction]
) -> Grouping:
    """The grouping that loses least, over sizes of circles; the first refusal where none is possible."""
    best: tuple[Fraction, Grouping] | None = None
    refusal: PolicyNotMet | None = None
    for size in circle_sizes(task):
        try:
            made = labelled_alike(group(size), task.levels, task.own)
        except PolicyNotMet as problem:
            refusal = refusal or problem
            continue
        lost = loss(made)
        if best is None or lost < best[0]:
            best = lost, replace(made, search={**made.search, "people_of_a_circle": size})
    if best is None:
        raise refusal or PolicyNotMet(NO_ROWS)
    return best[1]
