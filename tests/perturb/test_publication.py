"""Columns as policies publish them: what is drawn, who could undo it, compared with plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from maskwright.errors import InputError
from maskwright.perturb.publication import (
    PerturbedFamily,
    linkage_figures,
    perturbed_family,
    transition_matrix,
)
from maskwright.policy.published_column import Publishing

TRUE = [12.0, 12.0, 15.0, 19.5, 30.0, 31.0, 44.0, 90.0, 91.0, 400.0, 401.0, 402.5]
OTHER = [3.0, 5.0, 5.0, 9.0, 2.0, 2.5, 8.0, 7.0, 1.0, 4.0, 6.0, 6.5]


def texts(values: list[float]) -> Any:
    return np.array([f"{v:g}" for v in values], dtype=object)


def family(settings: dict[str, Any], columns: dict[str, Any] | None = None) -> PerturbedFamily:
    columns = columns or {"income": texts(TRUE)}
    return perturbed_family(
        list(columns), Publishing.model_validate(settings), columns, np.random.default_rng(5)
    )


WAYS = [
    {"microaggregate": {"k": 3}}, {"noise": {"share": "0.01"}}, {"rank-swap": "0.2"}, {"round": "10"},
    {"top-code": "80"}, {"top-code": "80", "noise": {"share": "0.05"}},
    {"top-code": {"limit": "80", "shows": "mean"}, "rank-swap": "0.2"},
]  # fmt: skip


@pytest.mark.parametrize("settings", WAYS, ids=str)
def test_beliefs_are_those_of_a_plain_loop(settings: dict[str, Any]) -> None:
    """P(row j is i's) from the definition, person by person."""
    f = family(settings, {"income": texts(TRUE), "other": texts(OTHER)})
    classes = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    rows = np.arange(len(TRUE))
    found = linkage_figures([f], rows, classes, np.random.default_rng(1))
    truth = right = 0.0
    for i in rows:
        here = [j for j in rows if classes[j] == classes[i]]
        weight = [likelihood(f, i, j) for j in here]
        mine = likelihood(f, i, i)
        truth += mine / sum(weight)
        right += (mine == max(weight)) / weight.count(max(weight))
    assert found.truth == pytest.approx(truth / len(TRUE))
    assert found.right == pytest.approx(right / len(TRUE))
    assert found.before == pytest.approx(1 / 6)


def likelihood(f: PerturbedFamily, i: int, j: int) -> float:
    if f.covariance is not None:
        away = f.shown[j] - f.coded[i]
        return math.exp(-float(away @ np.linalg.pinv(f.covariance) @ away) / 2)
    if f.publishing.rank_swap is not None:
        n = len(f.coded)
        window = math.floor(f.publishing.rank_swap.window * n)
        for c in range(f.coded.shape[1]):
            mine = [r for r in range(n) if sorted(f.coded[:, c])[r] == f.coded[i, c]]
            theirs = [r for r in range(n) if sorted(f.coded[:, c])[r] == f.shown[j, c]]
            if min(abs(a - b) for a in mine for b in theirs) > window:
                return 0.0
        return 1.0
    return float((f.shown[i] == f.shown[j]).all())


def test_the_own_row_is_always_possible() -> None:
    for settings in WAYS:
        f = family(settings)
        for i in range(len(TRUE)):
            assert likelihood(f, i, i) > 0


def test_the_published_rare_value_of_the_specification() -> None:
    """π = (.9, .1), P = [[.95, .05], [.45, .55]]: a published rare value is true with 11/20."""
    from maskwright.perturb.publication import changed_statistics

    matrix = {"a": {"a": "0.95", "b": "0.05"}, "b": {"a": "0.45", "b": "0.55"}}
    column = np.array(["a"] * 90 + ["b"] * 10, dtype=object)
    f = family({"pram": {"matrix": matrix}}, {"job": column})
    figures = changed_statistics([f], np.arange(100), {})["job"]
    assert figures["believed"]["b"] == pytest.approx(11 / 20)
    assert f.matrix is not None
    assert np.allclose(np.array([0.9, 0.1]) @ f.matrix, [0.9, 0.1])  # invariant


def test_groups_hold_k_rows_with_one_value_and_the_mean_stays() -> None:
    f = family({"microaggregate": {"k": 3}, "decimals": 6})
    _, sizes = np.unique(f.shown, return_counts=True)
    assert sizes.min() >= 3
    assert f.shown.mean() == pytest.approx(np.mean(TRUE))


def test_published_numbers_have_as_many_decimals_as_the_column() -> None:
    for settings in WAYS:
        for text in family(settings).texts["income"]:
            assert len(text.partition(".")[2]) <= 1
    whole = family({"noise": {"share": "0.1"}}, {"x": texts([1, 5, 9, 12, 20])})
    assert not any("." in t for t in whole.texts["x"])


def test_missing_stays_missing() -> None:
    column = texts(TRUE)
    column[4] = None
    for settings in WAYS:
        f = family(settings, {"income": column})
        assert f.texts["income"][4] is None
        assert sum(t is None for t in f.texts["income"]) == 1


def test_refusals_name_the_column_and_what_would_do() -> None:
    with pytest.raises(InputError, match=r"'income'.*'none'.*prepare"):
        family({"round": "5"}, {"income": np.array(["1", "none"], dtype=object)})
    column = texts(TRUE)
    column[4] = None
    with pytest.raises(InputError, match=r"'income' is missing in 1 rows.*complete"):
        family({"microaggregate": {"k": 3}}, {"income": column, "other": texts(OTHER)})
    with pytest.raises(InputError, match="1 row lies beyond the limit of top-code"):
        family({"top-code": {"limit": "402", "shows": "mean"}})
    with pytest.raises(InputError, match="nothing would be swapped"):
        family({"rank-swap": "0.01"})
    with pytest.raises(InputError, match="says nothing of the value 'b'"):
        transition_matrix(
            Publishing.model_validate({"pram": {"matrix": {"a": {"a": "1"}}}}), ["a", "b"], "job"
        )
