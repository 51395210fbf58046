"""The optima of ARX 3.9.2 on Adult and FARS: same scores (its own `entropy` objective is defined differently)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from benchmarks.bench_search import (
    ARX_DROPS_OTHERS,
    ARX_MISJUDGES_A_TIE,
    method_for,
    optima,
    same_optimum,
    task_for,
)
from maskwright.domain.exact import entropy_at_least
from maskwright.domain.method import Task
from maskwright.methods._lattice.lattice import group_tuples

ROWS = [row for row in optima() if row["objective"] != "entropy" and row["score"]]


def name(row: dict[str, str]) -> str:
    return f"{row['data']}-{row['models']}-{row['suppression']}-{row['objective']}".replace(" ", "")


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_same_optimum_as_arx(row: dict[str, str]) -> None:
    task = task_for(row)
    grouping = method_for(row).group(task)
    levels = tuple(int(n) for n in row["levels"].split())
    if (row["data"], row["models"], row["suppression"]) == ARX_MISJUDGES_A_TIE:
        assert grouping.levels == levels
        assert grouping.suppressed_rows + people_in_ties(task, levels, Fraction(3)) == int(row["suppressed"])
        return
    if (row["data"], row["models"], row["suppression"]) == ARX_DROPS_OTHERS:
        # 1,350 people alone in their class, and 31 of the classes of two: which ones is free, and ours cost less
        assert (grouping.levels, grouping.suppressed_rows) == (levels, int(row["suppressed"]))
        assert 0 < float(row["score"]) - float(Fraction(grouping.search["score"])) < 1e-4
        return
    assert same_optimum(row, grouping.search["score"])
    assert grouping.search["nodes"] == int(row["nodes"])
    assert grouping.search["optimal"]
    if grouping.levels == levels:
        assert grouping.suppressed_rows == int(row["suppressed"])


def people_in_ties(task: Task, levels: tuple[int, ...], ell: Fraction) -> int:
    """People in classes of at least five whose entropy is exactly log ell."""
    group_of, n_groups = group_tuples(task.summary, levels)
    counts = task.summary.classes(group_of, n_groups).sensitive["occupation"]
    found = 0
    for c in range(n_groups):
        part = counts.counts[counts.start[c] : counts.start[c + 1]].tolist()
        more = ell + Fraction(1, 10**9)
        if sum(part) >= 5 and entropy_at_least(part, ell) and not entropy_at_least(part, more):
            found += sum(part)
    return found
