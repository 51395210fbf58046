"""Small tables for the methods that partition rows: built row by row, so that ties can go by row number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwright.domain.classes import Classes, ValueCounts
from maskwright.domain.grouping import Grouping, allocated_classes
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Method, Task
from maskwright.domain.model import Context, Model
from maskwright.domain.references import References
from maskwright.domain.summary import Joint, Summary
from maskwright.methods._rows.group_requirement import GroupRequirement
from maskwright.methods._rows.rows import Partition, Rows
from maskwright.models import MODELS
from maskwright.worlds.counting.multisets import Test, memoised_test
from tests.support import adult, context_of

Qi = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Table:
    """Rows as given: quasi-identifiers (numbers, or text with a hierarchy) and sensitive columns."""

    summary: Summary
    rows: Rows  # row i of the table is row i here

    @property
    def numbers(self) -> NDArray[np.int32]:
        """Every row, by its number."""
        return np.arange(self.rows.n, dtype=np.int32)

    def task(self, models: Sequence[Model], seed: int = 0, **more: Any) -> Task:
        return Task(self.summary, list(models), context_of(self.summary), np.random.default_rng(seed), **more)

    def requirement(self, models: Sequence[Model]) -> GroupRequirement:
        return GroupRequirement(self.task(models), self.rows, "test")

    def test(self, models: Sequence[Model]) -> Test:
        """The models as a test on the counts of one group."""
        return as_test(models, self.task([]).context, self.summary.sensitive["s"].values)

    def promises(self, method: Method, models: Sequence[Model]) -> Grouping:
        """Group with one seed, see what every grouping promises, and that the seed reproduces it."""
        task = self.task(models)
        grouping = method.group(task)
        holds(grouping, task)
        again = method.group(self.task(models))
        assert np.array_equal(grouping.allocation.groups, again.allocation.groups)
        assert np.array_equal(grouping.allocation.cells, again.allocation.cells)
        return grouping


def build(
    qi: Qi,
    sensitive: Mapping[str, Sequence[str | None]],
    hierarchies: Sequence[Hierarchy] | None = None,
    domains: Mapping[str, Sequence[str]] | None = None,
    ordered: bool = False,
) -> Table:
    """A table; without hierarchies the quasi-identifiers are numbers."""
    width = len(qi[0])
    columns = [[row[a] for row in qi] for a in range(width)]
    if hierarchies is None:
        hierarchies = [
            Hierarchy.of(f"q{a}", [str(v) for v in sorted(set(column))], [], ordered=True)
            for a, column in enumerate(columns)
        ]
    codes = [
        [0 if v is None else h.values.index(str(v)) + 1 for v in column]
        for h, column in zip(hierarchies, columns, strict=True)
    ]
    domain = {
        name: tuple((domains or {}).get(name) or sorted({v for v in column if v is not None}))
        for name, column in sensitive.items()
    }
    held = [
        [0 if v is None else domain[name].index(v) + 1 for v in column] for name, column in sensitive.items()
    ]
    every = np.array([*codes, *held], dtype=np.int32).reshape(width + len(held), len(qi))
    cells, cell_of, counts = np.unique(every, axis=1, return_inverse=True, return_counts=True)
    tuples, owner = np.unique(cells[:width], axis=1, return_inverse=True)
    owner = owner.reshape(-1).astype(np.int64)
    rows = np.bincount(owner, weights=counts).astype(np.int64)
    values = {
        name: ValueCounts.collect(
            domain[name],
            len(rows),
            owner,
            cells[width + i].astype(np.int64),
            counts.astype(np.int64),
            ordered,
        )
        for i, name in enumerate(sensitive)
    }
    joint = Joint(owner, np.ascontiguousarray(cells[width:]), counts.astype(np.int64))
    summary = Summary(tuple(hierarchies), np.ascontiguousarray(tuples), rows, rows, values, joint=joint)
    return Table(summary, Rows(summary, cell_of.reshape(-1).astype(np.int32)))


def as_test(models: Sequence[Model], context: Context, domain: tuple[str, ...]) -> Test:
    """The models as a test on the counts of one group of one sensitive attribute `s`."""

    def passes(counts: Mapping[Any, int]) -> bool:
        known = sorted((domain.index(v) + 1, c) for v, c in counts.items() if c)
        n = sum(counts.values())
        one = ValueCounts(
            domain, np.array([0, len(known)]), np.array([v for v, _ in known], dtype=np.int32),
            np.array([c for _, c in known], dtype=np.int64),
        )  # fmt: skip
        classes = Classes(np.array([n]), np.array([n]), {"s": one})
        return all(bool(m.passing(classes, context)[0]) for m in models)

    return memoised_test(passes)


def groups_of(parts: Partition) -> set[frozenset[int]]:
    ends = zip(parts.start[:-1].tolist(), parts.start[1:].tolist(), strict=True)
    return {frozenset(parts.order[a:b].tolist()) for a, b in ends}


def as_sets(groups: Iterable[Iterable[int]]) -> set[frozenset[int]]:
    return {frozenset(group) for group in groups}


def random_models(rng: np.random.Generator) -> list[Model]:
    """One or two models about `s` (values a, b, c, P)."""
    choices: list[Model] = [
        MODELS["k-anonymity"](k=int(rng.integers(1, 4))),
        MODELS["simple-l-diversity"](l=["3/2", "2", "5/2", "3"][int(rng.integers(0, 4))], attribute="s"),
        MODELS["simple-l-diversity"](l=int(rng.integers(2, 4)), values=["P"], attribute="s"),
        MODELS["simple-l-diversity"](l=2, sets=[["P", "a"], ["a", "b"]], attribute="s"),
        MODELS["distinct-l-diversity"](l=int(rng.integers(1, 4)), attribute="s"),
        MODELS["entropy-l-diversity"](l=["3/2", "2"][int(rng.integers(0, 2))], attribute="s"),
        MODELS["recursive-cl-diversity"](c=2, l=2, attribute="s"),
        MODELS["t-closeness"](t=["1/4", "1/2"][int(rng.integers(0, 2))], attribute="s"),
        MODELS["alpha-k-anonymity"](alpha="1/2", k=2, attribute="s"),
    ]
    count = 1 if rng.random() < 0.7 else 2
    return [choices[int(i)] for i in rng.choice(len(choices), count, replace=False)]


def random_table(rng: np.random.Generator, most: int = 16) -> tuple[list[list[int]], list[str], Table]:
    n, d = int(rng.integers(1, most)), int(rng.integers(1, 4))
    qi = [[int(v) for v in rng.integers(0, int(rng.integers(2, 8)), d)] for _ in range(n)]
    sa = [str(v) for v in rng.choice(list("abcP"), n, p=[0.2, 0.2, 0.2, 0.4])]
    return qi, sa, build(qi, {"s": sa}, domains={"s": ("P", "a", "b", "c")})


def holds(grouping: Grouping, task: Task) -> None:
    """What every grouping of rows promises: a partition, exact counts, satisfied models, labels that cover."""
    summary, allocation = grouping.summary, grouping.allocation
    assert summary.joint is not None
    assert allocation.cells is not None
    taken = np.zeros(len(summary.joint.rows), dtype=np.int64)
    np.add.at(taken, allocation.cells, allocation.rows)
    assert (taken == summary.joint.rows).all()  # every row is in one group, or named as dropped
    assert (np.diff(allocation.cells) >= 0).all()
    keys = set(zip(allocation.cells.tolist(), allocation.groups.tolist(), strict=True))
    assert len(keys) == len(allocation.cells)
    assert (allocation.tuples == summary.joint.tuples[allocation.cells]).all()
    again = allocated_classes(summary, allocation, grouping.classes.n)
    assert (again.sizes == grouping.classes.sizes).all()
    assert again.sizes.min() > 0
    for name, counts in again.sensitive.items():
        mine = grouping.classes.sensitive[name]
        for left, right in (
            (counts.start, mine.start),
            (counts.codes, mine.codes),
            (counts.counts, mine.counts),
        ):
            assert (left == right).all()
    references = References.of(grouping, task.context)
    for model in task.search:
        assert references.check(model, again).ok
    _labels_cover(grouping)


def _labels_cover(grouping: Grouping) -> None:
    allocation = grouping.allocation
    for a, (hierarchy, labels) in enumerate(zip(grouping.summary.attributes, grouping.labels, strict=True)):
        assert len(labels.of_group) == grouping.classes.n
        held: dict[int, set[int]] = {}
        for t, g in zip(allocation.tuples.tolist(), allocation.groups.tolist(), strict=True):
            if g >= 0:
                held.setdefault(g, set()).add(int(grouping.summary.codes[a][t]))
        for g, codes in held.items():
            text, covered = labels.texts[labels.of_group[g]], int(labels.coverage[labels.of_group[g]])
            assert (text is None) == (codes == {0})
            if codes == {0}:
                continue
            if 0 in codes:
                assert (text, covered) == ("*", hierarchy.base)
            assert covered >= len(codes - {0})
            if covered == 1:
                level = [level for level in hierarchy.levels if text in level.labels]
                assert len(codes) == 1
                assert level


def adult_rows(sensitive: str) -> Table:
    """Adult with one sensitive attribute."""
    summary = adult(sensitive)
    counts = summary.sensitive[sensitive]
    joint = Joint(counts.owner.astype(np.int64), counts.codes[None, :].astype(np.int32), counts.counts)
    summary = replace(summary, joint=joint)
    cells = np.repeat(np.arange(len(joint.rows), dtype=np.int32), joint.rows)
    return Table(summary, Rows(summary, cells))


def counts_of(values: Iterable[str]) -> Counter[str]:
    return Counter(values)
