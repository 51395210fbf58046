"""Small releases of every kind, and what they are row by row: the definitions are tested on the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from maskwright.domain.grouping import Grouping
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.settings import build_registered as registered
from maskwright.errors import PolicyNotMet
from maskwright.methods import METHODS
from maskwright.metrics._shared.supports import supports_of
from maskwright.models import MODELS
from tests.methods.row_tables import build

AGES = [str(n) for n in range(21, 27)]
JOBS = ["clerk", "cook", "nurse", "vet"]
ATTRIBUTES = (
    Hierarchy.of(
        "age", AGES, [("pairs", ["21-22", "21-22", "23-24", "23-24", "25-26", "25-26"])], ordered=True
    ),
    Hierarchy.of("job", JOBS, [("kind", ["office", "service", "health", "health"])]),
)
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("optimal-lattice", {"suppression": "40%"}),
    ("optimal-lattice", {"suppression": "40%", "suppressed_rows": "star"}),
    ("mondrian", {"cut": "relaxed", "labels": "ranges"}),
    ("mondrian", {"cut": "balanced", "labels": "hierarchy"}),
    ("local-recoding", {}),
    ("anatomy", {"l": 2}),
]

rows = st.lists(
    st.tuples(st.sampled_from([*AGES, None]), st.sampled_from([*JOBS, None]), st.sampled_from("abc")),
    min_size=4, max_size=10,
)  # fmt: skip
cases = st.tuples(rows, st.sampled_from(KINDS), st.booleans())


@dataclass(frozen=True)
class Row:
    """One person: true codes, the group (-1: dropped), and the codes that its labels stand for."""

    codes: tuple[int, ...]
    value: int
    group: int
    supports: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Example:
    grouping: Grouping
    rows: list[Row]
    exact: bool

    def shown(self, row: Row, a: int) -> tuple[int, ...]:
        """The values among which somebody who reads the release must choose."""
        if self.exact and row.group != self.grouping.starred:
            return (row.codes[a],)
        known = tuple(c for c in row.supports[a] if c)
        return known or (0,)


def example(case: tuple[Sequence[tuple[Any, ...]], tuple[str, dict[str, Any]], bool]) -> Example:
    """A release of a small table by one of the methods; hypothesis skips tables that have none."""
    table, (method, options), exact = case
    built = build([row[:2] for row in table], {"s": [row[2] for row in table]}, ATTRIBUTES)
    models = [] if method == "anatomy" else [registered(MODELS, "model", "k-anonymity", {"k": 2}, "test")]
    try:
        grouping = registered(METHODS, "method", method, options, "test").group(built.task(models))
    except PolicyNotMet:
        assume(False)
    return Example(grouping, by_row(grouping), exact)


def by_row(grouping: Grouping) -> list[Row]:
    summary, allocation = grouping.summary, grouping.allocation
    assert summary.joint is not None
    supports = [
        [tuple(s.codes[s.start[i] : s.start[i + 1]].tolist()) for i in range(len(s.start) - 1)]
        for s in supports_of(grouping)
    ]
    if allocation.cells is not None:
        entries = list(zip(allocation.cells, allocation.groups, allocation.rows, strict=True))
    else:
        group_of = np.full(summary.n_tuples, -1)
        group_of[allocation.tuples] = allocation.groups
        joint = summary.joint
        entries = [(c, group_of[joint.tuples[c]], joint.rows[c]) for c in range(len(joint.rows))]
    result = []
    for cell, group, count in entries:
        codes = tuple(summary.codes[:, summary.joint.tuples[cell]].tolist())
        inside = tuple(
            supports[a][grouping.labels[a].of_group[group]] if group >= 0 else () for a in range(len(codes))
        )
        row = Row(codes, int(summary.joint.values[0][cell]), int(group), inside)
        result += [row] * int(count)
    return result
