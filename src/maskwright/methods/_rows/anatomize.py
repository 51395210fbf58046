"""Anatomy inside given blocks of rows: buckets in which all sensitive values differ [Xiao, Tao 2006].

While at least l values have rows left in a block, a bucket takes one random row of each of the l most frequent
ones; the rows that remain each join a random bucket of the block that does not hold their value. Run inside the
groups of another method it is called anatomization. That keeps a bound only where the groups were made without
looking at sensitive values: a refused split cuts across the buckets and can give single rows away.
"""

from __future__ import annotations

import heapq
from itertools import accumulate
from types import ModuleType
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from maskwright.domain.classes import Ints
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Method, Task
from maskwright.errors import PolicyError
from maskwright.kernels import partition
from maskwright.kernels.partition import Int32s
from maskwright.kernels.tuple_orders import sorted_by
from maskwright.methods._rows.group_labels import LabelStyle
from maskwright.methods._rows.group_requirement import refuse_unless_met
from maskwright.methods._rows.rows import Partition, Rows, rows_of, to_grouping

MOST = 1_000_000  # values that somebody could ask for; products with numbers of rows stay whole numbers of 64 bits
Anatomize = Annotated[int | None, Field(default=None, ge=2, le=MOST)]
VOIDED = (
    "the groups of a method that looked at sensitive values were anatomized: a refused split cuts across the "
    "buckets, so the method's bound does not hold for them; what an attack finds is measured"
)


M = TypeVar("M", bound=Method)


def no_stars_in_buckets(method: M) -> M:
    """Refuse to anatomize where suppressed rows are published as `*`: their group would get labels again."""
    if getattr(method, "anatomize", None) and getattr(method, "suppressed_rows", "drop") == "star":
        raise ValueError(
            "anatomize cannot be combined with suppressed_rows: star; write suppressed_rows: drop"
        )
    return method


def sensitive_attribute(task: Task, named: str | None, method: str) -> str:
    """The sensitive column that buckets are about; it must be named where there are several."""
    names = list(task.summary.sensitive)
    if named is not None and named not in names:
        raise PolicyError(
            f"method {method}: there is no sensitive column {named!r}; there is {', '.join(names)}"
        )
    if named is None and len(names) != 1:
        what = (
            f"say which attribute; sensitive are {', '.join(names)}" if names else "needs a sensitive column"
        )
        raise PolicyError(f"method {method}: {what}")
    return named or names[0]


def eligible_blocks(
    values: Int32s,
    n_values: int,
    blocks: Partition,
    l: int,  # noqa: E741
) -> tuple[NDArray[np.bool_], Ints]:
    """In which blocks no value has more than one row in l, and how often each value occurs in each block."""
    keys = _keys(values, n_values, blocks)
    counts = np.bincount(keys, minlength=blocks.n_groups * n_values).reshape(blocks.n_groups, n_values)
    return counts.max(axis=1, initial=0) * l <= blocks.sizes, counts


def bucket_rows(
    values: Int32s,
    n_values: int,
    blocks: Partition,
    l: int,  # noqa: E741
    rng: np.random.Generator,
    kernel: ModuleType | None = partition.compiled,
    shuffled: bool = False,
    counts: Ints | None = None,
) -> Partition:
    """Anatomy inside each block; all of them must be eligible. Which rows of a value are taken is random.

    `shuffled`: the rows of each block are listed in random order already. `counts`: of `eligible`, where known.
    """
    if counts is None:
        good, counts = eligible_blocks(values, n_values, blocks, l)
        if not good.all():
            raise ValueError("a block holds a value too often for buckets of l different values")
    places: Int32s = np.arange(len(blocks.order), dtype=np.int32)
    if not shuffled:
        rng.shuffle(places)
    key = _keys(values, n_values, blocks)[places]
    if blocks.n_groups * n_values < 2**31:
        listed = places[sorted_by(key, blocks.n_groups * n_values)]
    else:
        listed = places[np.argsort(key, kind="stable")]
    bucket = np.full(len(key), -1, dtype=np.int32)
    ends = np.zeros(blocks.n_groups, dtype=np.int64)
    if kernel is not None:
        cursor = np.empty(n_values, dtype=np.int64)
        kernel.anatomy(np.ascontiguousarray(counts), n_values, l, listed, bucket, ends, cursor)
    else:
        _pick(counts, listed, l, bucket, ends)
    _place_left_over(counts, listed, bucket, ends, rng)
    made = Partition.of_groups(bucket)
    return Partition(blocks.order[made.order], made.start)


def bucket_people(
    values: Int32s,
    people: Int32s,
    blocks: Partition,
    l: int,  # noqa: E741
    rng: np.random.Generator,
) -> tuple[Partition, NDArray[np.bool_]]:
    """Anatomy where people have several rows: l people with l different values in every bucket.

    The rows that remain join buckets that do not hold their value, whosever they are: that adds to nobody's share.
    Also the blocks in which that succeeded; the rows of the others are in no bucket.
    """
    made: list[list[int]] = []
    good = np.zeros(blocks.n_groups, dtype=bool)
    for b in range(blocks.n_groups):
        inside = rng.permutation(blocks.order[blocks.start[b] : blocks.start[b + 1]]).tolist()
        buckets = _buckets_of_people(inside, values, people, l, rng)
        good[b] = buckets is not None
        made += buckets or []
    start = np.concatenate([[0], np.cumsum([len(bucket) for bucket in made])]).astype(np.int64)
    return Partition(np.array([row for bucket in made for row in bucket], dtype=np.int32), start), good


def _buckets_of_people(
    inside: list[int],
    values: Int32s,
    people: Int32s,
    l: int,  # noqa: E741
    rng: np.random.Generator,
) -> list[list[int]] | None:
    """The buckets of one block; None: the rows that remain do not fit."""
    waiting: dict[int, list[int]] = {}
    for row, value in zip(inside, values[inside].tolist(), strict=True):
        waiting.setdefault(value, []).append(row)
    heap = [(-len(rows), value) for value, rows in waiting.items()]
    heapq.heapify(heap)
    buckets: list[list[int]] = []
    while True:
        taken: list[int] = []
        tried: list[tuple[int, int, int | None]] = []
        who = set[int]()
        while heap and len(taken) < l:
            left, value = heapq.heappop(heap)
            rows = waiting[value]
            at = next((i for i in reversed(range(len(rows))) if int(people[rows[i]]) not in who), None)
            tried.append((left, value, at))
            if at is not None:
                who.add(int(people[rows[at]]))
                taken.append(value)
        if len(taken) < l:
            break
        buckets.append([waiting[value].pop(at) for _, value, at in tried if at is not None])
        for left, value, at in tried:
            if waiting[value]:
                heapq.heappush(heap, (left + (at is not None), value))
    holds = [{int(values[row]) for row in bucket} for bucket in buckets]
    for value, rows in sorted(waiting.items()):
        free = [b for b, held in enumerate(holds) if value not in held]
        if len(free) < len(rows):
            return None
        for row, b in zip(rows, rng.permutation(free).tolist(), strict=False):
            buckets[b].append(row)
            holds[b].add(value)
    return buckets


def _keys(values: Int32s, n_values: int, blocks: Partition) -> NDArray[Any]:
    """The number of each listed row's block and value."""
    first = np.arange(blocks.n_groups, dtype=np.int64) * n_values
    if blocks.n_groups * n_values < 2**31:  # half the memory, where the numbers fit
        return np.repeat(first.astype(np.int32), blocks.sizes) + values[blocks.order]
    return np.repeat(first, blocks.sizes) + values[blocks.order]


def _pick(counts: Ints, listed: Int32s, l: int, bucket: Int32s, ends: Ints) -> None:  # noqa: E741
    """The twin of the compiled kernel: more rows first, then the smaller code."""
    number = at = 0
    for b, block in enumerate(counts.tolist()):
        cursor = [at, *(at + x for x in accumulate(block))]
        heap = [(-c, v) for v, c in enumerate(block) if c]
        heapq.heapify(heap)
        while len(heap) >= l:
            for left, v in [heapq.heappop(heap) for _ in range(l)]:
                bucket[listed[cursor[v]]] = number
                cursor[v] += 1
                if left + 1 < 0:
                    heapq.heappush(heap, (left + 1, v))
            number += 1
        at += sum(block)
        ends[b] = number


def _place_left_over(
    counts: Ints, listed: Int32s, bucket: Int32s, ends: Ints, rng: np.random.Generator
) -> None:
    """Each row left over joins a random bucket of its block that does not hold its value at that moment."""
    n_values = counts.shape[1]
    runs = np.concatenate([[0], np.cumsum(counts)])  # the rows of each block and value, in `listed`
    for at in np.flatnonzero(bucket[listed] < 0).tolist():
        run = int(np.searchsorted(runs, at, side="right")) - 1
        b = run // n_values
        first, last = int(ends[b - 1]) if b else 0, int(ends[b])
        holding = bucket[listed[runs[run] : runs[run + 1]]]
        taken = np.sort(holding[holding >= 0]) - first
        free = int(rng.integers(last - first - len(taken)))
        # so many buckets are free before each taken one: the place of the drawn one among all
        before = np.searchsorted(taken - np.arange(len(taken)), free, side="right")
        bucket[listed[at]] = first + free + int(before)


def anatomize_groups(
    task: Task,
    grouping: Grouping,
    l: int,  # noqa: E741
    labels: LabelStyle = "hierarchy",
    attribute: str | None = None,
) -> Grouping:
    """Anatomy inside the groups of any method: optimal-lattice, local recoding and so on."""
    rows, groups = rows_of(grouping)
    return anatomize_eligible(task, rows, groups, l, labels, grouping, attribute)


def anatomize_eligible(
    task: Task,
    rows: Rows,
    groups: Partition,
    l: int | None,  # noqa: E741
    labels: LabelStyle,
    grouping: Grouping,
    attribute: str | None = None,
) -> Grouping:
    """Anatomy inside the groups of another method; groups with a too frequent value stay as they are."""
    if l is None:
        return grouping
    attribute = sensitive_attribute(task, attribute, "anatomization")
    values = rows.values(attribute)
    n_values = len(rows.summary.sensitive[attribute].values) + 1
    good, counts = eligible_blocks(values, n_values, groups, l)
    made = None
    if rows.people is not None:
        made, good = bucket_people(values, rows.people, groups, l, task.rng)
    kept = Partition.of_segments(groups.order, groups.start[:-1][~good], groups.start[1:][~good])
    blocks = Partition.of_segments(groups.order, groups.start[:-1][good], groups.start[1:][good])
    if made is None:
        made = blocks
    if blocks.n_groups and rows.people is None:
        made = bucket_rows(values, n_values, blocks, l, task.rng, counts=counts[good])
    parts = Partition(
        np.concatenate([kept.order, made.order]),
        np.concatenate([kept.start, kept.start[-1] + made.start[1:]]),
    )
    search = {
        **grouping.search,
        "anatomized": l,
        "groups_before": groups.n_groups,
        "groups_left_whole": kept.n_groups,
    }
    if any(model.about == "sensitive" for model in task.search):
        search["note"] = " ".join(filter(None, [search.get("note"), VOIDED]))
    search.pop("groups", None)
    result = to_grouping(task, rows, parts, labels, search, grouping.trace)
    refuse_unless_met(task, result.classes, "after anatomization")
    return result
