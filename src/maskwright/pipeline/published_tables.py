"""The published tables: made from a grouping, counted as they are, and compared with what was planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Ints
from maskwright.domain.exact import exact_bincount
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Piece
from maskwright.domain.recoding_plan import GroupPlan, Plan
from maskwright.domain.value_sets import SetColumn
from maskwright.engines.base import Engine, Found, Recount, Table, Texts, shared
from maskwright.engines.sql.packed_keys import Packing, number
from maskwright.errors import NotVerified, PolicyError
from maskwright.policy.policy import Recoding
from maskwright.recode.entries import group_column
from maskwright.recode.plans import generalisation_plan, shuffled_plan
from maskwright.verification.verify import recount_tables

Labels = tuple[str | None, ...]
PIECE = (
    1 << 21
)  # entries of a plan that are compared at a time: all of them may be the largest arrays of a run


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
    person: str | None = None,
) -> tuple[Plan | GroupPlan, list[Layout]]:
    """What the engine must do, and what the tables will look like; `columns` name bits in place of sets.

    `person` is the column that tells persons apart, where they may have several rows.
    """
    grouping, sets, prefix = piece.grouping, piece.task.sets, "" if piece.name == "data" else f"{piece.name}-"
    sensitive = tuple(grouping.summary.sensitive)
    if recoding.name == "generalise":
        plan = generalisation_plan(grouping, columns, drop_missing, key, person)
        by = tuple(h.attribute for h in grouping.summary.attributes)
        return plan, [Layout.of(piece.name, columns, by, sensitive, sets)]
    if not sensitive:
        raise PolicyError(f"recoding: {recoding.name} needs a sensitive column, and there is none")
    group = group_column(columns)
    plan = shuffled_plan(
        grouping, columns, drop_missing, key, rng, exact=recoding.quasi_identifiers == "exact",
        together=recoding.blocks(sensitive, sets) or (), group_column=group, person=person,
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


def recounted_classes(engine: Engine, tables: Mapping[str, Table], layouts: Sequence[Layout]) -> Recount:
    """The classes of the tables as they are."""
    there = {x.name: engine.unfold(tables[x.name], x.sets) if x.sets else tables[x.name] for x in layouts}
    return recount_tables(engine, [(there[x.name], x.classes_by, x.sensitive) for x in layouts])


def planned_recount(grouping: Grouping, plan: Plan | GroupPlan, recoding: str) -> Recount:
    """What must be found: rows per class, and (where rows are people) how often each value in each class.

    Groups that share their labels are listed apart, but are one class.
    """
    if recoding != "generalise" and isinstance(plan, GroupPlan):
        return _by_number(plan)
    rows, values = grouping.classes.rows, {}
    if grouping.summary.joint is not None:  # otherwise counts are of people, and the table shows rows
        for name, vc in grouping.published_classes.sensitive.items():
            values[name] = Found((None, *vc.values), vc.owner, vc.codes.astype(np.int64), vc.counts)
    shown = grouping.published_labels
    codes = np.stack([labels.of_group for labels in shown]) if shown else _none(len(rows))
    return Recount(tuple(labels.texts for labels in shown), codes, rows, rows, values)


def require_equal_counts(expected: Recount, found: Recount) -> None:
    """The table must hold exactly the classes that were planned, row for row and value for value."""
    classes, size = _classes(expected, found)
    if not _equal(*(_totals([c], x.rows) for c, x in zip(classes, (expected, found), strict=True))):
        raise NotVerified("the classes of the table that was written are not those that were planned")
    for name, mine in expected.values.items():
        theirs = found.values.get(name)
        if theirs is None:
            raise NotVerified(f"the values of column {name!r} were not written")
        one, two, radix = shared(mine.texts, theirs.texts)
        last = Packing.of([size, radix])
        planned = _totals(last.pack([classes[0][mine.owner], one[mine.codes]]), mine.counts)
        written = _totals(last.pack([classes[1][theirs.owner], two[theirs.codes]]), theirs.counts)
        if not _equal(planned, written):
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
    texts: list[Texts] = [p.texts if p.texts is not None else (None, *p.domain) for p in shown]
    kept = np.flatnonzero(plan.groups > 0)
    numbers = np.arange(len(plan.sizes))

    def pieces() -> Iterator[Recount]:
        """The planned members of the groups, in pieces that fit in memory."""
        for begin in range(0, max(1, len(kept)), PIECE):
            some = kept[begin : begin + PIECE]
            codes, rows = np.stack([plan.groups[some], *(p.shown(some) for p in shown)]), plan.rows[some]
            yield Recount((numbers, *texts), codes, rows, rows)

    columns = (plan.group_column, *(p.name for p in shown))
    if not engine.holds(tables[layouts[0].name], columns, pieces()):
        raise NotVerified("the quasi-identifiers that were written are not those planned for their groups")


def _classes(one: Recount, two: Recount) -> tuple[list[Ints], int]:
    """A key for each class of both, the same for classes with the same labels; and a bound of the keys."""
    both = [shared(mine, theirs) for mine, theirs in zip(one.texts, two.texts, strict=True)]
    radices = [radix for _, _, radix in both]
    packing = Packing.of(radices)
    sides = [([x[0] for x in both], one.codes), ([x[1] for x in both], two.codes)]
    keys = [packing.pack(_Translated(*side)) for side in sides]
    if len(packing.words) == 1:
        return [k[0] for k in keys], prod(radices)
    n, words = len(one.rows), [np.concatenate(pair) for pair in zip(*keys, strict=True)]
    numbers = number(words, n + len(two.rows))[1]
    return [numbers[:n], numbers[n:]], len(numbers) + 1


@dataclass(frozen=True, eq=False)
class _Translated:
    """The digits of classes, one column at a time: all of them together may be larger than everything else."""

    numbers: list[Ints]
    codes: NDArray[np.int32]

    def __getitem__(self, i: int) -> Ints:
        digits: Ints = self.numbers[i][self.codes[i]]
        return digits


def _totals(keys: Sequence[Ints], counts: Ints) -> tuple[list[Ints], Ints]:
    """Distinct keys, ascending, with the sum of their counts; keys without any are left out."""
    if len(keys) > 1 or not (np.diff(keys[0]) > 0).all():
        keys, numbers = number(keys, len(counts))
        counts = exact_bincount(numbers, counts, len(keys[0]))
    there = counts != 0
    return [k[there] for k in keys], counts[there]


def _equal(one: tuple[list[Ints], Ints], two: tuple[list[Ints], Ints]) -> bool:
    return all(map(np.array_equal, [*one[0], one[1]], [*two[0], two[1]]))


def _none(n: int) -> NDArray[np.int32]:
    return np.empty((0, n), dtype=np.int32)


def class_names(grouping: Grouping, plan: Plan | GroupPlan, recoding: str) -> list[Labels]:
    """What each group is told apart by in the release: its number, or its labels, which groups may share."""
    if recoding != "generalise" and isinstance(plan, GroupPlan) and plan.numbers is not None:
        return [(str(number),) for number in plan.numbers.tolist()]
    return [labels_of(grouping, g) for g in range(grouping.classes.n)]


def labels_of(grouping: Grouping, group: int) -> Labels:
    """The labels of one group, as they are published."""
    return tuple(labels.texts[labels.of_group[group]] for labels in grouping.published_labels)


def _by_number(plan: GroupPlan) -> Recount:
    """Classes by their published number."""
    there = np.flatnonzero(plan.sizes[1:]) + 1
    values = {}
    for block in plan.blocks:
        owner = np.searchsorted(there, block.groups)
        for i, name in enumerate(block.names):
            values[name] = Found(
                (None, *block.domains[i]), owner, block.codes[i].astype(np.int64), block.rows
            )
    rows = plan.sizes[there]
    return Recount((there,), np.arange(len(there), dtype=np.int32)[None, :], rows, rows, values)
