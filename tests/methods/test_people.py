"""Groups of people with several rows, against listing: sizes, value counts, where greedy groups end, buckets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maskwright as mw
from maskwright.domain.method import Task
from maskwright.domain.summary import Joint, Summary
from maskwright.kernels import partition
from maskwright.kernels.partition import first_rows
from maskwright.methods._rows.anatomize import bucket_people
from maskwright.methods._rows.collecting import group_ends
from maskwright.methods._rows.group_requirement import GroupRequirement
from maskwright.methods._rows.rows import Partition, Rows
from maskwright.models import MODELS
from tests.methods import row_tables as rt

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=8)  # person, value


def visits(rows: list[tuple[int, int]], models: list[Any]) -> tuple[Task, Rows, np.ndarray[Any, Any]]:
    """A task with one cell per row, in order."""
    table = rt.build([[i] for i in range(len(rows))], {"s": ["abc"[v] for _, v in rows]})
    people = np.unique([p for p, _ in rows], return_inverse=True)[1]
    joint = table.summary.joint
    assert joint is not None
    personal = Joint(joint.tuples, joint.values, joint.rows, people[joint.tuples])
    summary = Summary(
        table.summary.attributes, table.summary.codes, table.summary.rows, table.summary.sizes,
        table.summary.sensitive, personal=personal,
    )  # fmt: skip
    task = table.task(models)
    order = np.argsort(joint.tuples).astype(np.int32)
    return Task(summary, task.search, task.context, task.rng), Rows(summary, order), order


@given(ROWS, st.data())
def test_a_person_and_a_value_of_the_person_count_once(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    _, listed, _ = visits(rows, [])
    order = np.array(data.draw(st.permutations(range(len(rows)))), dtype=np.int32)
    bounds = st.tuples(st.integers(0, len(rows)), st.integers(0, len(rows))).map(sorted)
    segments = data.draw(st.lists(bounds, min_size=1, max_size=4))  # they may overlap
    lo, hi = (np.array(side, dtype=np.int64) for side in zip(*segments, strict=True))
    classes = listed.classes(order, lo, hi)
    of_cells = listed.summary.cell_classes
    for i, (a, b) in enumerate(segments):
        inside = [rows[r] for r in order[a:b]]
        codes = [listed.values("s")[r] for r in order[a:b]]
        assert classes.sizes[i] == len({p for p, _ in inside})
        assert classes.rows[i] == b - a
        wanted = {(p, int(c)) for (p, _), c in zip(inside, codes, strict=True)}
        held = {c: sum(1 for _, d in wanted if d == c) for c in {d for _, d in wanted}}
        vc = classes.sensitive["s"]
        part = slice(int(vc.start[i]), int(vc.start[i + 1]))
        assert dict(zip(vc.codes[part].tolist(), vc.counts[part].tolist(), strict=True)) == held
        cells = listed.cells[order[a:b]].astype(np.int64)
        one = of_cells(cells, 0 * cells, np.ones(b - a, dtype=np.int64), 1)
        assert (one.sizes[0], one.rows[0]) == (classes.sizes[i], b - a)
        assert (
            dict(zip(one.sensitive["s"].codes.tolist(), one.sensitive["s"].counts.tolist(), strict=True))
            == held
        )
    twin, compiled = (first_rows(listed.people, 4, order, lo, hi, k) for k in (None, partition.compiled))
    assert all(np.array_equal(x, y) for x, y in zip(twin, compiled, strict=True))


MODEL = {"k-anonymity": {"k": 2}, "distinct-l-diversity": {"l": 2}, "simple-l-diversity": {"l": 2}}


@pytest.mark.parametrize("name", MODEL)
@given(rows=ROWS, bucket=st.integers(1, 2))
def test_greedy_groups_end_where_their_people_satisfy_the_model(
    name: str, rows: list[tuple[int, int]], bucket: int
) -> None:
    rows = rows * 4  # longer than a window
    task, listed, order = visits(rows, [MODELS[name](**MODEL[name])])
    requirement = GroupRequirement(task, listed, "greedy-grouping")
    n = len(rows) // bucket
    found = np.flatnonzero(group_ends(requirement, order, bucket, np.zeros(n, dtype=np.uint8))).tolist()
    begin, wanted = 0, []
    for b in range(n):
        inside = [
            rows[int(listed.summary.personal.tuples[listed.cells[r]])]
            for r in order[begin : (b + 1) * bucket]
        ]
        people = {p for p, _ in inside}
        held = [len({p for p, v in inside if v == value}) for value in {v for _, v in inside}]
        good = {
            "k-anonymity": len(people) >= 2,
            "distinct-l-diversity": len(held) >= 2,
            "simple-l-diversity": max(held) * 2 <= len(people),
        }[name]
        if good:
            wanted.append(b)
            begin = (b + 1) * bucket
    assert found == wanted


@given(ROWS, st.integers(2, 3), st.integers(0, 5))
def test_buckets_of_different_people_with_different_values(
    rows: list[tuple[int, int]],
    l: int,  # noqa: E741
    seed: int,
) -> None:
    values = np.array([v for _, v in rows], dtype=np.int32)
    people = np.array([p for p, _ in rows], dtype=np.int32)
    block = Partition(np.arange(len(rows), dtype=np.int32), np.array([0, len(rows)]))
    made, good = bucket_people(values, people, block, l, np.random.default_rng(seed))
    if not good[0]:
        assert made.n_groups == 0
        return
    assert sorted(made.order.tolist()) == list(range(len(rows)))
    for g in range(made.n_groups):
        inside = made.order[made.start[g] : made.start[g + 1]]
        assert len(set(values[inside].tolist())) == len(inside)  # every value once
        assert len(set(people[inside].tolist())) >= l


@pytest.mark.parametrize("rows", range(3, 9))
def test_greedy_grouping_of_rows_that_fill_no_last_bucket(rows: int) -> None:
    """Where no group can be closed and rows remain beside the buckets: refused, or grouped, and no internal error."""
    table = pa.table({"id": [i % 2 for i in range(rows)], "q": list(range(rows)), "s": ["a"] * rows})
    policy = {
        "version": 1, "unit": "id", "columns": {"id": "identifier", "q": "quasi-identifier", "s": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 2}, {"model": "entropy-l-diversity", "l": 2}],
        "method": {"name": "greedy-grouping"},
    }  # fmt: skip
    with pytest.raises(mw.errors.PolicyNotMet):
        mw.anonymize(table, policy)


def test_other_names_for_the_same_people_change_nothing() -> None:
    """A release cannot be drawn again by renaming people."""
    rows = [(p, 20 + i % 7, "abc"[i % 3]) for i, p in enumerate("AABCDDDEFGHHIJKKLMNOPQ")]

    def published(names: dict[str, str]) -> list[tuple[str, ...]]:
        who, age, value = zip(*rows, strict=True)
        table = pa.table({"id": [names.get(p, p) for p in who], "age": list(age), "s": list(value)})
        columns = {"id": "identifier", "age": {"role": "quasi-identifier"}, "s": "sensitive"}
        asked = {"unit": "id", "columns": columns, "require": [{"model": "k-anonymity", "k": 3}]}
        release = mw.anonymize(table, asked | {"method": "mondrian"})
        return sorted(map(tuple, release.table.to_pandas().astype(str).to_numpy().tolist()))

    assert published({}) == published({"A": "Z9", "H": "0", "Q": "M7"})
