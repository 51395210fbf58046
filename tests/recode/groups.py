"""Random small tables and groupings of them, made from rows in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from maskwright.domain.grouping import Allocation, Grouping, Labels, allocated_classes
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.recoding_plan import GroupPlan
from maskwright.domain.summary import Summary
from maskwright.engines.base import Engine, Reading, SensitiveSpec, SummarySpec, Table

A, B, S, T = ("1", "2", "3"), ("b0", "b1"), ("flu", "HIV", "cold"), ("10", "20")
ATTRIBUTES = (Hierarchy.of("a", A, []), Hierarchy.of("b", B, []))
SENSITIVE = (SensitiveSpec("s", S), SensitiveSpec("t", T))
KEY = "00ff" * 16
ALL = ("p", "a", "b", "s", "t")
PLAIN = ("s", "a", "t", "b")  # without a column that passes through
Row = tuple[str | None, str | None, str | None, str | None]


def maybe(values: Sequence[str]) -> st.SearchStrategy[str | None]:
    return st.one_of(st.none(), st.sampled_from(values))


rows = st.lists(st.tuples(maybe(A), maybe(B), maybe(S), maybe(T)), min_size=1, max_size=25)


@dataclass
class Example:
    """A table with columns a, b (quasi-identifiers), s, t (sensitive) and p (the number of the row)."""

    rows: list[Row]
    group_of: list[int]  # as it was asked for; with whole tuples it is that of the first row of the tuple
    table: Table
    summary: Summary
    grouping: Grouping

    def cell(self, row: Row) -> int:
        """The cell of a row in the summary."""
        assert self.summary.joint is not None
        joint = self.summary.joint
        codes = [self.summary.codes[0][joint.tuples], self.summary.codes[1][joint.tuples], *joint.values]
        wanted = [v.index(x) + 1 if x is not None else 0 for v, x in zip((A, B, S, T), row, strict=True)]
        [found] = np.flatnonzero(np.all([c == w for c, w in zip(codes, wanted, strict=True)], axis=0))
        return int(found)

    def kept(self) -> list[tuple[Row, int]]:
        """The rows that are published, with their groups."""
        return [(row, g) for row, g in zip(self.rows, self.group_of, strict=True) if g >= 0]


def frame(rows: list[Row]) -> Any:
    import polars as pl

    whole = [None if a is None else int(a) for a, *_ in rows]
    numbers = [None if row[3] is None else int(row[3]) for row in rows]
    columns = {"a": whole, "b": [r[1] for r in rows], "s": [r[2] for r in rows], "t": numbers}
    schema = {"a": pl.Int16, "b": pl.String, "s": pl.String, "t": pl.Int32, "p": pl.Int64}
    return pl.DataFrame({**columns, "p": list(range(len(rows)))}, schema=schema)


def example(
    engine: Engine, rows: list[Row], group_of: list[int], *, whole: bool = False, star: bool = False,
    source: Any = None, table: Table | None = None,
) -> Example:  # fmt: skip
    """Group rows as told; `star`: the last group holds suppressed rows."""
    if whole:
        first: dict[tuple[str | None, ...], int] = {}
        group_of = [first.setdefault(row[:2], g) for row, g in zip(rows, group_of, strict=True)]
    numbers = {g: i for i, g in enumerate(sorted({g for g in group_of if g >= 0}))} | {-1: -1}
    group_of = [numbers[g] for g in group_of]
    table = table or engine.open(frame(rows) if source is None else source, Reading())
    summary = engine.summarise(table, SummarySpec(ATTRIBUTES, SENSITIVE))
    made = Example(rows, group_of, table, summary, None)  # type: ignore[arg-type]
    n = max(group_of) + 1
    assert summary.joint is not None
    if whole:
        pairs = {int(summary.joint.tuples[made.cell(r)]): g for r, g in zip(rows, group_of, strict=True)}
        tuples = np.array(list(pairs), dtype=np.int64)
        allocation = Allocation(tuples, np.array(list(pairs.values())), summary.rows[tuples])
    else:
        entries = sorted(Counter((made.cell(r), g) for r, g in zip(rows, group_of, strict=True)).items())
        cells = np.array([c for (c, _), _ in entries], dtype=np.int64)
        groups = np.array([g for (_, g), _ in entries], dtype=np.int64)
        counts = np.array([k for _, k in entries], dtype=np.int64)
        allocation = Allocation(summary.joint.tuples[cells], groups, counts, cells)
    texts = [tuple(f"{h.attribute}:{g}" for g in range(n)) for h in ATTRIBUTES]
    if star:
        texts = [(*t[:-1], "*") for t in texts]
    labels = tuple(
        Labels(h.attribute, t, np.ones(n, dtype=np.int64), np.arange(n, dtype=np.int32))
        for h, t in zip(ATTRIBUTES, texts, strict=True)
    )
    classes = allocated_classes(summary, allocation, n)
    made.grouping = Grouping(summary, allocation, labels, classes, starred=n - 1 if star else None)
    return made


def fetch(engine: Engine, table: Table) -> list[dict[str, str | None]]:
    return engine.sample(table, 10**6)


def numbers(example: Example, plan: GroupPlan) -> dict[int, int]:
    """The group behind each published number."""
    allocation = example.grouping.allocation
    order = np.argsort(allocation.tuples, kind="stable")
    if plan.units.codes.shape[0] == 4 and allocation.cells is None:
        group_of = dict(zip(allocation.tuples.tolist(), allocation.groups.tolist(), strict=True))
        assert example.summary.joint is not None
        pairs = zip(
            plan.groups.tolist(), (group_of[t] for t in example.summary.joint.tuples.tolist()), strict=True
        )
    else:
        pairs = zip(plan.groups.tolist(), allocation.groups[order].tolist(), strict=True)
    found = {number: group for number, group in pairs if number}
    assert sorted(found) == list(range(1, len(found) + 1))
    return found


def people(n: int) -> list[Row]:
    """Singleton cells: the sensitive pair of a row follows from its quasi-identifiers."""
    pairs = [(s, t) for s in S for t in T]
    return [(*[(a, b) for a in A for b in B][i % 6], *pairs[i % 6]) for i in range(n)]
