"""The published tables: made from a grouping, counted as they are, and compared with what was planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from maskwright.core.classes import ValueCounts
from maskwright.core.grouping import Grouping
from maskwright.core.method import Piece
from maskwright.core.multivalued import SetColumn
from maskwright.core.plan import GroupPlan, Plan
from maskwright.core.policy import Recoding
from maskwright.engines.base import Engine, Recount, Table
from maskwright.errors import NotVerified, PolicyError
from maskwright.recode import bucketize, generalise, permute
from maskwright.recode.entries import group_column
from maskwright.verify import recount_tables

Labels = tuple[str | None, ...]


@dataclass(frozen=True)
class Layout:
    """One published table: its columns, those that tell classes apart, and its sensitive attributes.

    `sets` are its columns of sets, as far as this table tells of them; their bits are among `sensitive`.
    """

    name: str
    columns: tuple[str, ...]
    classes_by: tuple[str, ...]
    sensitive: tuple[str, ...]
    sets: tuple[SetColumn, ...] = ()

    @staticmethod
    def of(
        name: str,
        columns: Sequence[str],
        classes_by: Sequence[str],
        sensitive: Sequence[str],
        sets: Sequence[SetColumn],
    ) -> Layout:
        """The layout of a table with these columns once its bits are sets again."""
        owner = {bit: s.name for s in sets for bit in s.bits}
        shown = tuple(dict.fromkeys(owner.get(c, c) for c in columns))
        here = tuple(s for s in sets if s.name in shown)
        return Layout(name, shown, tuple(classes_by), tuple(sensitive), here)


def plan_tables(
    piece: Piece,
    recoding: Recoding,
    columns: Sequence[str],
    drop_missing: Sequence[str],
    key: str,
    rng: np.random.Generator,
) -> tuple[Plan | GroupPlan, list[Layout]]:
    """What the engine must do, and what the tables will look like; `columns` name bits in place of sets."""
    grouping, sets, prefix = piece.grouping, piece.task.sets, "" if piece.name == "data" else f"{piece.name}-"
    sensitive = tuple(grouping.summary.sensitive)
    if recoding.name == "generalise":
        plan = generalise.plan(grouping, columns, drop_missing, key)
        by = tuple(h.attribute for h in grouping.summary.attributes)
        return plan, [Layout.of(piece.name, columns, by, sensitive, sets)]
    if not sensitive:
        raise PolicyError(f"recoding: {recoding.name} needs a sensitive column, and there is none")
    make = permute.plan if recoding.name == "permute" else bucketize.plan
    group = group_column(columns)
    plan = make(
        grouping, columns, drop_missing, key, rng, exact=recoding.quasi_identifiers == "exact",
        together=recoding.blocks(sensitive, sets) or (), group_column=group,
    )  # fmt: skip
    if recoding.name == "permute":
        return plan, [Layout.of(piece.name, (group, *columns), (group,), sensitive, sets)]
    others = tuple(c for c in columns if c not in sensitive)
    inside = tuple(c for c in columns if c in sensitive)
    return plan, [
        Layout.of(f"{prefix}quasi-identifiers", (group, *others), (group,), (), ()),
        Layout.of(f"{prefix}sensitive", (group, *inside), (group,), sensitive, sets),
    ]


def make_tables(
    engine: Engine, source: Table, plan: Plan | GroupPlan, layouts: Sequence[Layout]
) -> dict[str, Table]:
    """The recoded tables by name, not yet written."""
    if len(layouts) == 1:
        made: Sequence[Table] = [engine.recode(source, plan)]
    elif isinstance(plan, GroupPlan):
        made = list(engine.bucketize(source, plan).values())
    else:
        raise TypeError("two tables need a plan by groups")
    return {
        layout.name: engine.fold(table, layout.sets) if layout.sets else table
        for layout, table in zip(layouts, made, strict=True)
    }


def recounted(engine: Engine, tables: Mapping[str, Table], layouts: Sequence[Layout]) -> Recount:
    """The classes of the tables as they are."""
    there = {x.name: engine.unfold(tables[x.name], x.sets) if x.sets else tables[x.name] for x in layouts}
    return recount_tables(engine, [(there[x.name], x.classes_by, x.sensitive) for x in layouts])


@dataclass(frozen=True)
class Expected:
    """What must be found: rows per class, and (where rows are people) how often each value in each class."""

    rows: Mapping[Labels, int]
    values: Mapping[str, Counter[tuple[Labels, str | None]]]

    @staticmethod
    def of(grouping: Grouping, plan: Plan | GroupPlan, recoding: str) -> Expected:
        if recoding != "generalise" and isinstance(plan, GroupPlan):
            return _by_number(plan)
        names = [labels_of(grouping, g) for g in range(grouping.classes.n)]
        rows: Counter[Labels] = Counter()
        for labels, count in zip(names, grouping.classes.rows.tolist(), strict=True):
            rows[labels] += count
        values = {}
        if grouping.summary.joint is not None:  # otherwise counts are of people, and the table shows rows
            shown = grouping.published_classes.sensitive
            values = {name: _counted(vc, names) for name, vc in shown.items()}
        return Expected(rows, values)

    def compare(self, found: Recount) -> None:
        """The table must hold exactly the classes that were planned, row for row and value for value."""
        written = dict(zip(found.labels, found.rows, strict=True))
        if written != self.rows:
            wrong = sum(self.rows.get(c) != written.get(c) for c in self.rows.keys() | written.keys())
            raise NotVerified(f"the table that was written differs from the plan in {wrong} classes")
        for name, expected in self.values.items():
            there: Counter[tuple[Labels, str | None]] = Counter()
            for c, value, count in found.values.get(name, []):
                there[found.labels[c], value] += count
            if there != expected:
                raise NotVerified(f"the values of column {name!r} that were written differ from the plan")


def check_members(
    engine: Engine, tables: Mapping[str, Table], layouts: Sequence[Layout], plan: Plan | GroupPlan
) -> None:
    """Where classes go by number: each group must hold the quasi-identifiers that were planned for it."""
    if not isinstance(plan, GroupPlan) or plan.group_column is None:
        return
    shown = [
        p for p in plan.published if p.name in layouts[0].columns and p.name not in layouts[-1].sensitive
    ]
    texts = [p.texts if p.texts is not None else (None, *p.domain) for p in shown]
    expected: Counter[Labels] = Counter()
    for e in np.flatnonzero(plan.groups > 0).tolist():
        labels = (t[int(p.index[e])] for t, p in zip(texts, shown, strict=True))
        expected[(str(plan.groups[e]), *labels)] += int(plan.rows[e])
    found = engine.recount(tables[layouts[0].name], (plan.group_column, *(p.name for p in shown)))
    if Counter(dict(zip(found.labels, found.rows, strict=True))) != expected:
        raise NotVerified("the quasi-identifiers that were written are not those planned for their groups")


def class_names(grouping: Grouping, plan: Plan | GroupPlan, recoding: str) -> list[Labels]:
    """What each group is told apart by in the release: its number, or its labels, which groups may share."""
    if recoding != "generalise" and isinstance(plan, GroupPlan) and plan.numbers is not None:
        return [(str(number),) for number in plan.numbers.tolist()]
    return [labels_of(grouping, g) for g in range(grouping.classes.n)]


def labels_of(grouping: Grouping, group: int) -> Labels:
    return tuple(labels.texts[labels.of_group[group]] for labels in grouping.labels)


def _counted(counts: ValueCounts, names: Sequence[Labels]) -> Counter[tuple[Labels, str | None]]:
    result: Counter[tuple[Labels, str | None]] = Counter()
    texts = (None, *counts.values)
    for c, code, n in zip(counts.owner.tolist(), counts.codes.tolist(), counts.counts.tolist(), strict=True):
        result[names[c], texts[code]] += n
    return result


def _by_number(plan: GroupPlan) -> Expected:
    """Classes by their published number."""
    rows: dict[Labels, int] = {(str(g),): int(n) for g, n in enumerate(plan.sizes.tolist()) if g and n}
    values = {}
    for block in plan.blocks:
        for i, name in enumerate(block.names):
            counter: Counter[tuple[Labels, str | None]] = Counter()
            texts = (None, *block.domains[i])
            for g, code, n in zip(
                block.groups.tolist(), block.codes[i].tolist(), block.rows.tolist(), strict=True
            ):
                counter[(str(g),), texts[code]] += n
            values[name] = counter
    return Expected(rows, values)
