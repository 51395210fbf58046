"""Marginals: how they are merged, what is fitted to them, and a release that is read with them."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import maskwright as mw
from maskwright.domain.grouping import Grouping
from maskwright.domain.marginals import ReadColumn, fitted_shares, merged_marginal
from maskwright.domain.summary import Joint
from maskwright.errors import InputError, PolicyError, UsageError
from maskwright.methods import METHODS
from maskwright.metrics import METRICS
from maskwright.models.k_anonymity import KAnonymity
from maskwright.pipeline.attacking import kept_parts
from maskwright.pipeline.marginal_counts import marginals_of
from tests.patients import write_csv
from tests.support import adult, task_of


def cells(counts: list[int], k: int) -> list[tuple[list[int], int]]:
    return [(codes.tolist(), rows) for codes, rows in merged_marginal("a", np.array(counts), k).cells]


def test_rare_values_are_merged_until_there_are_k() -> None:
    assert cells([0, 7, 9], 5) == [([1], 7), ([2], 9)]
    assert cells([0, 7, 2, 3, 9], 5) == [([1], 7), ([2, 3], 5), ([4], 9)]
    assert cells([0, 7, 2, 0, 9], 5) == [
        ([1, 2], 9),
        ([4], 9),
    ]  # two alone are too few: the next rarest with them
    assert cells([4, 0, 1, 30], 5) == [([0, 2], 5), ([3], 30)]  # missing is a value like others
    assert cells([0, 2, 1], 5) == []
    assert cells([], 5) == []


def test_every_cell_has_k_rows_and_none_is_lost() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        counts, k = rng.integers(0, 9, rng.integers(1, 9)), int(rng.integers(2, 7))
        found = merged_marginal("a", counts, k)
        if counts.sum() >= k:
            assert all(rows >= k for _, rows in found.cells)
            assert sum(rows for _, rows in found.cells) == counts.sum()
            assert found.weights().sum() == pytest.approx(counts.sum())
        else:
            assert found.cells == ()


def test_shares_fit_the_counts_where_labels_overlap() -> None:
    """20-21 three times, 21-22 three times; two people of 20, three of 21, one of 22."""
    label, code = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2])
    found = fitted_shares(label, code, np.array([3, 3]), np.array([2.0, 3.0, 1.0]))
    assert found == pytest.approx([2 / 3, 1 / 3, 2 / 3, 1 / 3])


def test_without_counts_shares_are_even() -> None:
    assert fitted_shares(np.array([0, 0]), np.array([1, 2]), np.array([5]), np.zeros(4)).tolist() == [
        0.5,
        0.5,
    ]
    column = ReadColumn({"20-21": ["20", "21"], "*": ["20"]}, [(["20", "21"], 6)])
    assert column.shares({"20-21": 6}) == {"20-21": {"20": 0.5, "21": 0.5}, "*": {"20": 1.0}}


MARGINALS = Path(__file__).parents[2] / "docs" / "marginals.md"
OPTIONS: dict[str, dict[str, Any]] = {
    "optimal-lattice": {"suppression": "2%"}, "mondrian": {}, "local-recoding": {}
}  # fmt: skip
ELSEWHERE = {
    "optimal-lattice": (0.510, 0.078),
    "mondrian": (0.102, 0.062),
    "local-recoding": (0.058, 0.046),
}


@pytest.mark.parametrize("method", OPTIONS)
def test_two_way_distance_on_adult(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine columns: the figures of the page, and near to them those that others measured, by other searches."""
    [line] = re.findall(rf"^\| `{method}`.*", MARGINALS.read_text(encoding="utf-8"), re.MULTILINE)
    summary = adult(None)
    cells = Joint(np.arange(summary.n_tuples), np.zeros((0, summary.n_tuples), dtype=np.int32), summary.rows)
    task = task_of(replace(summary, joint=cells), [KAnonymity(k=5)])
    grouping = METHODS[method](**OPTIONS[method]).group(task)

    def distance(read: Grouping) -> float:
        return float(METRICS["two-way-distance"].measure(read, {}, False))

    evenly, fitted = distance(grouping), distance(with_counts(grouping))
    monkeypatch.setattr("maskwright.domain.marginals.MOST_ROUNDS", 1)
    found = (evenly, in_proportion := distance(with_counts(grouping)), fitted)
    assert found == pytest.approx([float(x) for x in re.findall(r"0\.\d{3}", line)], abs=0.00051)
    assert found[:2] == pytest.approx(ELSEWHERE[method], rel=0.06)
    assert fitted <= in_proportion
    if method == "mondrian":  # queries over its many groups take seconds
        return
    errors = [METRICS["query-error"].measure(g, {}, False) for g in (grouping, with_counts(grouping))]
    assert errors[1] < errors[0]


def test_two_halves_of_adult() -> None:
    """How far random halves are apart by the same distance: what no release needs to be better than."""
    summary = adult(None)
    columns = [np.repeat(codes, summary.rows).astype(np.int64) for codes in summary.codes]
    halves = len(columns[0]) // 2
    for seed in range(3):
        row = np.random.default_rng(seed).permutation(2 * halves)
        found = []
        for one, other in itertools.combinations(columns, 2):
            pair = one * (int(other.max()) + 1) + other
            first, second = (np.bincount(pair[r], minlength=int(pair.max()) + 1) for r in np.split(row, 2))
            found.append(np.abs(first - second).sum() / 2 / halves)
        assert len(found) == 36
        assert 0.030 < np.mean(found) < 0.034


def with_counts(grouping: Grouping) -> Grouping:
    return replace(grouping, marginals=marginals_of(grouping, 5))


POLICY: dict[str, Any] = {
    "unit": "none",
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
        "sex": "quasi-identifier",
        "disease": "sensitive",
    },
    "require": [{"model": "k-anonymity", "k": 4}],
    "method": "mondrian",
    "publish": {"marginals": True},
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    ages = [20] * 30 + [21] * 9 + [25] * 20 + [33] * 1 + [38] * 20
    rows = [[str(a), "fm"[i % 2], ["flu", "cold"][i % 3 % 2]] for i, a in enumerate(ages)]
    return write_csv(tmp_path / "t.csv", rows, ["age", "sex", "disease"])


def test_a_release_is_read_with_them(table: Path, tmp_path: Path) -> None:
    release = mw.anonymize(table, POLICY, tmp_path / "r", metrics=["two-way-distance"])
    plain = mw.anonymize(table, {**POLICY, "publish": {"marginals": False}}, metrics=["two-way-distance"])
    assert release.metrics["two-way-distance"] < plain.metrics["two-way-distance"]
    assert "setting" in release.promises[0].label  # measured: no proof names it
    stored = json.loads((tmp_path / "r/public/marginals.json").read_text(encoding="utf-8"))["columns"]["age"]
    assert {tuple(c["values"]): c["rows"] for c in stored["cells"]} == {
        ("20",): 30, ("21", "33"): 10, ("25",): 20, ("38",): 20
    }  # fmt: skip
    read = mw.read_release(tmp_path / "r")
    for label, shares in read.shares("age").items():
        assert math.isclose(sum(shares.values()), 1)
        assert set(shares) <= set(stored["labels"][label])
    drawn = read.draws(seed=4, kind="pandas")
    assert len(drawn) == len(read.table(kind="pandas")) == 80
    assert set(drawn["age"]) <= {"20", "21", "25", "33", "38"}
    assert read.draws(seed=4, kind="pandas").equals(drawn)
    assert abs((drawn["age"] == "20").sum() - 30) < 10
    assert mw.verify(tmp_path / "r").ok
    [kept] = kept_parts(tmp_path / "r/private")
    assert kept.grouping.marginals is not None
    assert "read_release" in (tmp_path / "r/public/data-card.html").read_text(encoding="utf-8")
    copied = mw.read_release(tmp_path / "r/public")
    assert copied.columns == read.columns


def test_without_them_there_is_nothing_to_draw(table: Path, tmp_path: Path) -> None:
    mw.anonymize(table, {**POLICY, "publish": {}}, tmp_path / "r")
    read = mw.read_release(tmp_path / "r")
    assert len(read.table(kind="polars")) == 80
    with pytest.raises(UsageError, match=r"publish: \{marginals: true\}"):
        read.draws()
    with pytest.raises(UsageError, match="no marginals of a column 'age'"):
        read.probabilities("age")


def test_a_damaged_folder_is_said(table: Path, tmp_path: Path) -> None:
    mw.anonymize(table, POLICY, tmp_path / "r")
    (tmp_path / "r/public/marginals.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match="is not a manifest of ours"):
        mw.read_release(tmp_path / "r")
    with pytest.raises(mw.MaskwrightError):
        mw.read_release(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "change",
    [
        {"labels": 3}, {"labels": []}, {"labels": {}}, {"labels": {"20-39": [["20"]]}}, {"labels": {"20-39": []}},
        {"labels": {"20-39": ["\ud800"]}}, {"cells": 0}, {"cells": [{"values": [], "rows": 4}]},
        {"cells": [{"values": ["20"], "rows": -4}]}, {"cells": [{"values": "20", "rows": 4}]},
    ],
)  # fmt: skip
def test_counts_that_do_not_fit_the_table_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    public = tmp_path / "public"
    public.mkdir()
    (public / "data.csv").write_text("age\n20-39\n20-39\n", encoding="utf-8")
    table = {"file": "data.csv", "format": "csv", "escaped": False, "columns": ["age"]}
    (public / "manifest.json").write_text(json.dumps({"tables": [table]}), encoding="utf-8")
    good = {"labels": {"20-39": ["20", "21"]}, "cells": [{"values": ["20", "21"], "rows": 2}]}
    for column, wrong in ((good, False), ({**good, **change}, True)):
        (public / "marginals.json").write_text(json.dumps({"columns": {"age": column}}), encoding="utf-8")
        with pytest.raises(InputError, match="does not hold") if wrong else contextlib.nullcontext():
            assert len(mw.read_release(tmp_path).shares("age")["20-39"]) == 2


SEVERAL = {"unit": "id", "columns": {**POLICY["columns"], "id": "identifier"}}


@pytest.mark.parametrize(
    ("more", "reason"), [({"recoding": "permute"}, "has groups instead"), (SEVERAL, "would not")]
)
def test_where_they_say_nothing_they_are_refused(table: Path, more: dict[str, Any], reason: str) -> None:
    with pytest.raises(PolicyError, match=reason):
        mw.anonymize(table, {**POLICY, **more})


def _changed(public: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the counts of the age, and the hash that the manifests have of them."""
    file = public / "marginals.json"
    before = hashlib.sha256(file.read_bytes()).hexdigest()
    stored = json.loads(file.read_text(encoding="utf-8"))
    change(stored["columns"]["age"])
    file.write_text(json.dumps(stored), encoding="utf-8")
    after = hashlib.sha256(file.read_bytes()).hexdigest()
    for manifest in public.parent.glob("*/manifest.json"):
        manifest.write_text(manifest.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")


def _more_of(which: int, rows: int, of_another: int) -> Callable[[dict[str, Any]], None]:
    def change(column: dict[str, Any]) -> None:
        column["cells"][which]["rows"] += rows
        column["cells"][of_another]["rows"] -= rows

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda column: column["cells"].pop(), "not those of 80 rows"),
        (
            lambda column: column["cells"][0].update(rows=3) or column["cells"][2].update(rows=47),
            "fewer than 4",
        ),
        (lambda column: column["labels"].pop("20"), "whose values are not told"),
        (_more_of(0, 15, 2), "45 rows of 'age' are said to be 20, and by their labels 30 to 40 can be"),
    ],
)
def test_counts_that_labels_cannot_have_are_found(
    table: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None], problem: str
) -> None:
    """Whoever has public/ alone counts again: between what labels tell for sure and what they allow."""
    mw.anonymize(table, POLICY, tmp_path / "r")
    shutil.rmtree(tmp_path / "r/private")
    assert mw.verify(tmp_path / "r").ok
    _changed(tmp_path / "r/public", change)
    assert problem in "; ".join(mw.verify(tmp_path / "r").problems)


def test_other_counts_that_labels_could_have_are_found_by_what_was_kept(table: Path, tmp_path: Path) -> None:
    mw.anonymize(table, POLICY, tmp_path / "r")
    assert mw.verify(tmp_path / "r").ok
    _changed(tmp_path / "r/public", _more_of(0, 1, 1))
    assert "marginals.json does not hold the counts of the table" in mw.verify(tmp_path / "r").problems


def test_downcoding_reads_them() -> None:
    """Somebody with the counts knows how ages are distributed; of merged ones how they are together."""
    rows = [("20", "a")] * 3 + [("31", "a")] + [("40", "b")] * 2
    policy = {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}},
            "town": {"role": "quasi-identifier", "hierarchy": "suppress"},
        },
        "require": [{"model": "k-anonymity", "k": 2}], "method": "local-recoding",
    }  # fmt: skip
    table = pd.DataFrame(rows, columns=["age", "town"])
    found = []
    for published in (False, True):
        release = mw.anonymize(table, policy | {"publish": {"marginals": published}})
        [beliefs] = [b for b in release.beliefs if b.attack == "downcoding"]
        found.append(beliefs.measures["columns"]["age"])
    plain, read = found
    assert "by_marginals" not in plain
    # 40 are a third of the rows; merged with 31, of which there is one, it seems to be half of the two's half
    assert (plain["worst"].before, read["by_marginals"].before) == (Fraction(1, 3), Fraction(1, 4))
    assert read["worst"].after == max(plain["worst"].after, read["by_marginals"].after)
