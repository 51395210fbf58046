"""Differentially private releases as a user makes them: what is published, what is refused, and what is spent."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.errors import MaskwrightError, PolicyError, UsageError
from maskwright.kernels.randomness import random_generator, secret_key
from maskwright.methods.dp_sample import DpSample, sampled_rows
from maskwright.pipeline import history
from maskwright.pipeline.privacy_budget import PrivacyBudget
from maskwright.promise.lemmas.private_samples import WORD
from maskwright.runtime.events import Event
from tests.patients import write_csv

AGES = {"intervals": [10, 20], "domain": [0, 99]}
SHARES = [0.6, 0.39, 0.01]
KEY = {"role": "quasi-identifier"}
POLICY: dict[str, Any] = {
    "unit": "none",
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": AGES, "levels": ["width 20"]},
        "sex": {"role": "quasi-identifier", "levels": ["exact"]},
        "disease": "sensitive",
    },
    "require": [{"model": "k-anonymity", "k": 5}],
    "method": {"name": "dp-sample", "epsilon": 1, "delta": "1e-3"},
}  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    rows = [
        [str(rng.integers(20, 60)), str(rng.choice(["f", "m"])), str(rng.choice(["flu", "cold", "gout"], p=SHARES))]
        for _ in range(613)
    ]  # fmt: skip
    return write_csv(tmp_path / "t.csv", rows, ["age", "sex", "disease"])


def changed(**more: Any) -> dict[str, Any]:
    return {**POLICY, **more}


def columns(**more: Any) -> dict[str, Any]:
    return changed(columns={**POLICY["columns"], **more})


def test_published_are_large_classes_of_all_columns(table: Path) -> None:
    release = mw.anonymize(table, POLICY)
    k = DpSample(delta="1e-3").privacy().k
    shown = Counter(release.table.fetchall())
    assert shown
    assert min(shown.values()) >= k
    assert not any("gout" in row for row in shown)  # six people or so, fewer than k
    [promise] = release.promises
    assert promise.status == "guaranteed"
    assert (
        promise.label
        == f"differentially private: ε = 1, δ = {DpSample(delta='1e-3').privacy().delta:.3g}, without random worlds"
    )
    assert "whatever else they know" in promise.why
    stored = json.loads(json.dumps(promise.as_dict()))
    assert type(promise).of(stored).as_dict() == stored


def test_the_folder_tells_readers_and_nothing_that_was_left_out(table: Path, tmp_path: Path) -> None:
    release = mw.anonymize(table, POLICY, tmp_path / "r")
    public = tmp_path / "r" / "public"
    assert {p.name for p in public.iterdir()} == {
        "data.csv",
        "data-card.html",
        "data-dictionary.json",
        "manifest.json",
    }
    said = json.loads((public / "data-dictionary.json").read_text(encoding="utf-8"))
    assert said["differential_privacy"]["epsilon"] == "1"
    card = (public / "data-card.html").read_text(encoding="utf-8")
    assert "whatever else they know" in card
    assert "was kept with the probability 0.6321" in card
    everything = "".join(p.read_text(encoding="utf-8") for p in public.iterdir())
    assert "gout" not in everything
    assert not re.search(r"(?<![0-9a-f])613(?![0-9a-f])", everything)  # the rows of the table
    assert "without random worlds" in (tmp_path / "r" / "private" / "report.html").read_text(encoding="utf-8")
    assert mw.verify(tmp_path / "r").ok
    assert release.ok


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (changed(method={**POLICY["method"], "suppression": "2%"}), "levels follow from the data"),
        (changed(method={**POLICY["method"], "seed": "3"}), "whoever guesses a seed"),
        (changed(method={**POLICY["method"], "counts": "true"}), "sampled out of a class"),
        (changed(method={**POLICY["method"], "suppressed_rows": "star"}), "not even their number"),
        (changed(method={**POLICY["method"], "k": 3}), "k: 11 would suffice|k: [0-9]+ would suffice"),
        (columns(sex="quasi-identifier"), "fixed in advance"),
        (columns(sex={"role": "quasi-identifier", "levels": ["exact", "any"]}), "fixed in advance"),
        (columns(disease={"role": "insensitive"}), "would be left out of it"),
        (columns(age={**KEY, "hierarchy": {"intervals": [10]}, "levels": ["width 10"]}), "whole one"),
        (columns(age={**KEY, "hierarchy": {"mask": "right"}, "levels": ["masked 1"]}), "longest value"),
        (columns(disease={"role": "sensitive", "publish": {"pram": {"keep": "0.9"}}}), "publish"),
        (changed(recoding="permute"), "together"),
        (columns(disease="identifier") | {"unit": "disease"}, "one row is protected"),
        (changed(require=[{"model": "belief", "max": "1/2"}]), "not published"),
        (changed(require=[{"model": "t-closeness", "t": "0.2"}]), "use: gate"),
        (changed(require=[{"model": "individual-risk", "max": "0.1"}]), "not published"),
        (changed(population={"size": 10000}), "population"),
        (changed(keep={"sex": "exact"}), "keep"),
    ],
)  # fmt: skip
def test_what_voids_it_is_refused(table: Path, policy: dict[str, Any], reason: str) -> None:
    with pytest.raises(PolicyError, match=reason):
        mw.anonymize(table, policy)


def test_a_seed_is_refused(table: Path) -> None:
    with pytest.raises(UsageError, match="whoever guesses the seed"):
        mw.anonymize(table, POLICY, seed=1)


def test_a_second_release_is_refused_and_then_added_up(table: Path, tmp_path: Path) -> None:
    mw.anonymize(table, POLICY, tmp_path / "one")
    mw.anonymize(table, POLICY, tmp_path / "again")  # the same bytes: nothing is spent
    assert (tmp_path / "one/public/data.csv").read_bytes() == (
        tmp_path / "again/public/data.csv"
    ).read_bytes()
    other = columns(sex={"role": "quasi-identifier", "levels": ["any"]})
    with pytest.raises(
        PolicyError, match=r"adds up: with this one epsilon 2 .*total_epsilon: 2, total_delta: 0.00"
    ):
        mw.anonymize(table, other)
    allowed = {**other, "method": {**POLICY["method"], "total_epsilon": 2, "total_delta": "0.002"}}
    release = mw.anonymize(table, allowed, tmp_path / "two")
    assert "with earlier releases of the table ε = 2" in release.promises[0].label
    assert release.promises[0].status == "guaranteed"
    mw.anonymize(table, POLICY)  # what was made before costs nothing
    [path] = (history.state_folder() / "inputs").glob("*" + history.SPENT)
    line = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    damaged = [{"epsilon": "1/0"}, {"epsilon": "-5"}, {"delta": math.nan}, {"delta": -1}, {"delta": math.inf}]
    for text in ("damaged", "[" * 100_000, *(json.dumps({**line, **change}) for change in damaged)):
        path.write_text(text + "\n", encoding="utf-8")
        with pytest.raises(MaskwrightError, match="may be any amount"):
            mw.anonymize(table, POLICY)


def test_two_at_the_same_time_do_not_spend_more_than_both_may(table: Path) -> None:
    """The other one is made whole after this one has looked at what was spent."""
    other = columns(sex={"role": "quasi-identifier", "levels": ["any"]})

    def meanwhile(event: Event) -> None:
        if event.kind == "step" and event.text.startswith("measuring usefulness"):
            mw.anonymize(table, other)

    with pytest.raises(UsageError, match="made meanwhile"):
        mw.anonymize(table, POLICY, on_event=meanwhile)
    with pytest.raises(PolicyError, match="adds up"):  # nor later
        mw.anonymize(table, POLICY)


def test_a_delta_too_small_for_a_number_is_added_up() -> None:
    fine = DpSample(epsilon=1, delta="1e-15", k=10**5)
    assert fine.privacy().delta == 0
    with pytest.raises(PolicyError, match=r"total_epsilon: 2, total_delta: 0$"):
        PrivacyBudget((Fraction(1), 0.0), frozenset({"another"})).refuse_overspending(fine)


def test_other_settings_that_were_tried_before_leave_no_label(table: Path) -> None:
    plain = columns(
        sex="quasi-identifier", age={"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20]}}
    )
    mw.anonymize(table, {**plain, "method": "mondrian"})
    release = mw.anonymize(table, POLICY)
    assert release.promises[0].label == "measured: no proof covers earlier runs"


def test_labels_do_not_depend_on_other_rows(tmp_path: Path) -> None:
    """A level that merges nothing here, or everything, is written as it is where it merges something."""
    for values in (["20"], ["20", "39"], ["20", "39", "75"]):
        rows = [[v, "f", "flu"] for v in values for _ in range(200)]
        release = mw.anonymize(
            write_csv(tmp_path / f"{len(values)}.csv", rows, ["age", "sex", "disease"]), POLICY
        )
        shown = {row[0] for row in release.table.fetchall()}
        assert {"20-39"} <= shown <= {"20-39", "60-79"}


def test_sampling_is_that_of_a_coin() -> None:
    rng, rows = random_generator(secret_key(3), "test"), np.array([5, 0, 100_000, 1, 2_000_000])
    kept = sampled_rows(rng, rows, WORD // 4)
    assert (kept <= rows).all()
    assert abs(kept[2] / rows[2] - 0.25) < 0.01
    assert abs(kept[4] / rows[4] - 0.25) < 0.003
    assert sampled_rows(rng, rows, 0).sum() == 0


def test_an_empty_sample_is_refused_with_a_remedy(tmp_path: Path) -> None:
    few = write_csv(tmp_path / "few.csv", [["30", "f", "flu"]] * 5, ["age", "sex", "disease"])
    with pytest.raises(mw.PolicyNotMet, match="coarser levels"):
        mw.anonymize(few, POLICY)
