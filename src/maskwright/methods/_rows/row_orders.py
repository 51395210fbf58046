"""Orders of rows by their quasi-identifiers: lexicographic with a chosen priority, or along a Hilbert curve.

Rows with equal quasi-identifiers are listed at random. An order never looks at a sensitive value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from maskwright.domain.method import Task
from maskwright.domain.settings import did_you_mean
from maskwright.domain.summary import Summary
from maskwright.errors import PolicyError
from maskwright.kernels.partition import Int32s
from maskwright.kernels.tuple_orders import DIGIT, arrange_cells, by_digits, hilbert_digits, sorted_by
from maskwright.methods._rows.axes import Axis, axes_of
from maskwright.methods._rows.rows import Rows, joint_of, refuse_unfit

OrderName = Literal["lexicographic", "hilbert"]


def arranged_rows(task: Task, order: OrderName, priority: Sequence[str] | None, method: str) -> Rows:
    """All rows, numbered along the order; those with equal quasi-identifiers at random."""
    refuse_unfit(task.summary, method)
    numbers = np.arange(len(joint_of(task.summary).rows), dtype=np.int32)
    return Rows(task.summary, _listed(task, tuple_order(task.summary, order, priority, method), numbers))


def arranged_cells(
    task: Task, order: OrderName, priority: Sequence[str] | None, method: str
) -> tuple[Rows, Int32s]:
    """One row of each cell, numbered along the order, and the same list with all rows, each by the row of its cell.

    What is known of rows is then kept once for each cell, and what is listed close together lies close together.
    """
    refuse_unfit(task.summary, method)
    summary, joint = task.summary, joint_of(task.summary)
    sorting = tuple_order(summary, order, priority, method)
    place = np.empty(len(sorting), dtype=np.int32)
    place[sorting] = np.arange(len(sorting), dtype=np.int32)
    cells = sorted_by(place[joint.tuples], len(sorting))
    numbers = np.empty(len(cells), dtype=np.int32)
    numbers[cells] = np.arange(len(cells), dtype=np.int32)
    return Rows(summary, cells), _listed(task, sorting, numbers)


def _listed(task: Task, sorting: Int32s, numbers: Int32s) -> Int32s:
    """The number of each row's cell, tuple after tuple, the rows of a tuple at random."""
    joint, n = joint_of(task.summary), task.summary.n_rows
    if len(joint.rows) == task.summary.n_tuples:  # the rows of a tuple are alike
        keys = np.zeros(n, dtype=np.uint64)
    else:
        keys = task.rng.integers(0, 2**64, n, dtype=np.uint64)
    return arrange_cells(sorting, task.summary.rows, keys, np.repeat(numbers, joint.rows))


def tuple_order(summary: Summary, order: OrderName, priority: Sequence[str] | None, method: str) -> Int32s:
    """The tuples, sorted."""
    axes = axes_of(summary)
    index = attribute_order(axes, priority, method)
    ranks = [axes[a].rank[summary.codes[a]] for a in index]
    sizes = [len(axes[a].code) for a in index]
    if order == "lexicographic":
        return by_digits(*_digits(ranks, sizes, summary.n_tuples))
    lines = np.stack(ranks) if ranks else np.empty((0, summary.n_tuples), dtype=np.int32)
    return by_digits(*hilbert_digits(lines, sizes))


def attribute_order(axes: Sequence[Axis], priority: Sequence[str] | None, method: str) -> list[int]:
    """The named attributes first, then the others, those with the fewest values first.

    Few values first keeps groups that are neighbours in the order alike in most attributes.
    """
    names = [axis.hierarchy.attribute for axis in axes]
    for name in priority or ():
        if name not in names:
            raise PolicyError(
                f"method {method}: priority names {name!r}, which is no quasi-identifier; {did_you_mean(name, names)}"
            )
    if len(set(priority or ())) < len(priority or ()):
        raise PolicyError(f"method {method}: priority names a column twice")
    first = [names.index(name) for name in priority or ()]
    rest = [a for a in range(len(axes)) if a not in first]
    return first + sorted(rest, key=lambda a: (len(axes[a].code), a))


def _digits(ranks: Sequence[Int32s], sizes: Sequence[int], n: int) -> tuple[list[Int32s], list[int]]:
    """The ranks as digits of a number, most significant first, small attributes sharing a digit."""
    digits: list[Int32s] = []
    radix: list[int] = []
    for rank, size in zip(ranks, sizes, strict=True):
        if digits and radix[-1] * size <= 1 << DIGIT:
            digits[-1] = digits[-1] * np.int32(size) + rank
            radix[-1] *= size
        else:
            digits.append(rank)
            radix.append(size)
    return digits or [np.zeros(n, dtype=np.int32)], radix or [1]
