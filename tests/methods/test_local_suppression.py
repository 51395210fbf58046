"""Local suppression: the fewest cells of small tables against every division, and how near large ones come."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import maskwright as mw
from maskwright.domain.grouping import Grouping
from maskwright.methods import local_suppression
from maskwright.methods.local_suppression import LocalSuppression, best_division, suppressed_cells
from maskwright.models.k_anonymity import KAnonymity
from tests.methods.row_tables import build
from tests.support import adult, task_of


def every_division(items: list[int], k: int) -> list[list[list[int]]]:
    """All ways to divide the rows into groups of at least k."""
    if not items:
        return [[]]
    first, rest, found = items[0], items[1:], []
    for bits in range(1 << len(rest)):
        group = [first, *(r for i, r in enumerate(rest) if bits >> i & 1)]
        if len(group) >= k:
            left = [r for i, r in enumerate(rest) if not bits >> i & 1]
            found += [[group, *more] for more in every_division(left, k)]
    return found


def loss(rows: list[list[int]], weights: list[Fraction], groups: list[list[int]]) -> Fraction:
    return sum(
        (w * len(g) for g in groups for a, w in enumerate(weights) if len({rows[i][a] for i in g}) > 1),
        Fraction(0),
    )


def test_the_best_division_is_that_of_all() -> None:
    rng = np.random.default_rng(7)
    for _ in range(60):
        n, width = int(rng.integers(2, 8)), int(rng.integers(1, 5))
        k = min(int(rng.integers(1, 4)), n)
        rows = rng.integers(0, 3, (n, width)).tolist()
        weights = [Fraction(w, 2) for w in rng.integers(0, 4, width).tolist()]
        found = best_division(rows, weights, k)
        assert sorted(i for g in found for i in g) == list(range(n))
        assert min(map(len, found)) >= k
        assert loss(rows, weights, found) == min(
            loss(rows, weights, g) for g in every_division(list(range(n)), k)
        )


def stars(grouping: Grouping) -> int:
    return sum(suppressed_cells(grouping).values())


def test_clustering_is_near_the_fewest_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over random tables of twelve rows: the exact answer, and what is found where tables are large."""
    rng = np.random.default_rng(5)
    exact = near = 0
    for _ in range(15):
        table = build(rng.integers(0, 3, (12, 4)).tolist(), {"s": ["x"] * 12})
        task = table.task([KAnonymity(k=2)])
        best = stars(LocalSuppression().group(task))
        with monkeypatch.context() as small:
            small.setattr(local_suppression, "MOST_EXACT", 0)
            found = stars(LocalSuppression().group(table.task([KAnonymity(k=2)])))
        assert found >= best
        exact, near = exact + best, near + found
    assert exact > 0
    assert near <= 1.25 * exact, (near, exact)


def test_weights_decide_which_column_is_kept() -> None:
    rows = [["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]]
    for column, kept in (("q0", 0), ("q1", 1)):
        task = build(rows, {"s": ["v"] * 4}).task([KAnonymity(k=2)], weights={column: Fraction(5)})
        grouping = LocalSuppression().group(task)
        shown = suppressed_cells(grouping)
        assert shown == {f"q{kept}": 0, f"q{1 - kept}": 4}


def test_adult_in_seconds() -> None:
    summary = adult("occupation")
    grouping = LocalSuppression().group(task_of(summary, [KAnonymity(k=5)]))
    assert int(grouping.classes.sizes.min()) >= 5
    cells = stars(grouping)
    assert cells < 0.5 * summary.n_rows * len(summary.attributes)


def test_as_a_user() -> None:
    import pandas as pd

    frame = pd.DataFrame({"sex": list("fffmmm"), "zip": list("112233"), "disease": list("abcabc")})
    policy = {
        "unit": "none",
        "columns": {"sex": {"role": "quasi-identifier", "weight": 3},
                    "zip": "quasi-identifier", "disease": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 3}],
        "method": "local-suppression",
    }  # fmt: skip
    release = mw.anonymize(frame, policy)
    assert (
        sorted(map(tuple, release.table[["sex", "zip"]].to_numpy().tolist()))
        == [("f", "*")] * 3 + [("m", "*")] * 3
    )
    assert release.as_dict()["search"]["suppressed_cells"] == {"sex": 0, "zip": 6}
    assert all(promise.status == "guaranteed" for promise in release.promises)
