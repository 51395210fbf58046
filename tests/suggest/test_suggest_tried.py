"""From a table to a useful release without an edit: what `init` writes publishes, and keeps detail."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import maskwright as mw
from maskwright.pipeline import alternatives
from maskwright.pipeline.history import policy_hash
from maskwright.policy.policy import Policy
from maskwright.policy.yaml_text import load_yaml
from maskwright.suggest import _chosen, _sooner, _what_was_tried
from maskwright.suggest.sections import Demand
from tests.amounts import amount

COMPARED = ["optimal-lattice", "mondrian", "local-recoding"]
WITHIN = 1.1  # times the least loss over all methods
N = 400


@pytest.fixture(autouse=True)
def _own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_STATE", str(tmp_path / "state"))


def adult() -> pa.Table:
    """Rows of the bundled Adult table; nine columns, one of them sensitive."""
    table = pyarrow.csv.read_csv(str(files("maskwright").joinpath("data", "adult", "adult.csv")))
    return table.slice(0, amount(1000, 30_162))


def hospital() -> pa.Table:
    """A messy export: several visits of some people, codes, dates in text, gaps."""
    rng = random.Random(1)  # noqa: S311
    people = [rng.randrange(N // 2) for _ in range(N)]
    return pa.table(
        {
            "patient_id": [f"P{p:05d}" for p in people],
            "date_of_birth": [f"{1930 + p * 7 % 80}-{1 + p % 12:02d}-{1 + p % 28:02d}" for p in people],
            "sex": ["FM"[p % 2] for p in people],
            "zip": [f"0{2000 + p % 60}" for p in people],
            "diagnosis": [rng.choice(["J45.0", "I10", "E11.9", "F32.1", "C50.9", "K21.0"]) for _ in people],
        }
    )


def accidents() -> pa.Table:
    """Like FARS: only quasi-identifiers, some of them rare."""
    rng = random.Random(2)  # noqa: S311
    return pa.table(
        {
            "age": [min(99, int(rng.gammavariate(4, 10))) for _ in range(N)],
            "race": [rng.choices(["white", "black", "asian", "other"], [70, 18, 8, 4])[0] for _ in range(N)],
            "month": [rng.randint(1, 12) for _ in range(N)],
            "sex": [rng.choice("FM") for _ in range(N)],
            "state": [rng.choice(["CA", "TX", "NY", "FL", "OH", "WA"]) for _ in range(N)],
        }
    )


def credit() -> pa.Table:
    """Like German credit: few rows, many columns, two sensitive ones with a common value."""
    rng = random.Random(3)  # noqa: S311
    columns: dict[str, list[Any]] = {"age_in_years": [rng.randint(19, 75) for _ in range(N)]}
    for number in range(6):
        columns[f"housing_{number}"] = [rng.choices("abcd", [60, 20, 15, 5])[0] for _ in range(N)]
    columns["income"] = [rng.choices(["low", "middle", "high"], [62, 28, 10])[0] for _ in range(N)]
    columns["diagnosis"] = [rng.choices(["none", "flu", "asthma"], [55, 30, 15])[0] for _ in range(N)]
    return pa.table(columns)


def visits() -> pa.Table:
    """Like msweb: several rows per person, hardly a column."""
    rng = random.Random(4)  # noqa: S311
    people = [rng.randrange(N // 4) for _ in range(N)]
    return pa.table(
        {"user_id": people, "split": ["train" if p % 7 else "test" for p in people], "item": [1] * N}
    )


TABLES = {made.__name__: made for made in (adult, hospital, accidents, credit, visits)}


@pytest.mark.parametrize("name", TABLES)
def test_the_unedited_policy_publishes_and_keeps_what_can_be_kept(name: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(TABLES[name](), path)
    found = mw.suggest_policy(path)
    policy = tmp_path / "policy.yaml"
    policy.write_text(found.text, encoding="utf-8")

    release = mw.anonymize(path, policy)
    assert release.ok
    words = " ".join(found.words)
    assert all(f"! {line}" in words for line in release.great_losses)

    best = mw.compare(path, policy, grid={"method": COMPARED}, metrics=(), seed=None, cache=False)
    losses = [float(p.metrics["information-loss"]) for p in best.points if p.status == "holds"]
    assert float(release.metrics["information-loss"]) <= WITHIN * min(losses) + 1e-9


def test_every_attempt_is_a_look(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(credit(), path)
    found = mw.suggest_policy(path)
    assert len(found.tried) > 1
    release = mw.anonymize(path, found.policy)
    assert release.history["compared"] == len({policy_hash(a.policy) for a in found.tried}) - 1
    assert all(promise.status == "measured" for promise in release.promises)


def test_a_look_at_a_sample_is_a_look_at_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alternatives, "SAMPLED", 100)
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(credit(), path)
    found = mw.suggest_policy(path)
    assert f"a sample of 100 of the {N} rows" in " ".join(found.words[:2])
    release = mw.anonymize(path, found.policy)
    assert release.history["compared"] == len({policy_hash(a.policy) for a in found.tried}) - 1


def test_without_trying_nobody_has_looked(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(credit(), path)
    found = mw.suggest_policy(path, tried=False)
    assert (found.tried, found.words) == ((), ())
    release = mw.anonymize(path, found.policy)
    assert not release.history["chosen_by_looking"]
    assert release.promises
    assert all(promise.status == "guaranteed" for promise in release.promises)


def test_an_attempt_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(credit(), path)
    job = alternatives.Job(path, mw.suggest_policy(path, tried=False).policy)
    attempts = alternatives.Attempts(job, budget_s=0.0)
    try:
        found = attempts.attempt(job.policy, "as it is")
    finally:
        attempts.close()
    assert attempts.time.is_over
    assert (found.loss, found.useful) == (None, False)
    assert "time" in found.refusal


def test_no_time_is_kept_for_later_while_nothing_can_be_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwright.suggest.LAST_S", 100.0)
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(credit(), path)
    found = mw.suggest_policy(path)
    assert any("chosen: " in line for line in found.words)
    assert mw.anonymize(path, found.policy).ok


def test_a_slow_method_is_tried_on_fewer_rows_and_on_all_where_there_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alternatives, "SAMPLED", 300)
    monkeypatch.setattr(alternatives, "FEWER", 200)
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(accidents(), path)
    tried = [a for a in mw.suggest_policy(path).tried if a.policy.method.name == "local-recoding"]
    assert [a.fewer for a in tried[:2]] == [True, False]
    assert "(tried on 8,000 rows)" in tried[0].change
    monkeypatch.setattr("maskwright.suggest.GROWS", {"local-recoding": 1_000})  # all rows would take too long
    found = mw.suggest_policy(path)
    local = [a for a in found.tried if a.policy.method.name == "local-recoding"]
    assert local
    assert all(a.fewer for a in local if "without" not in a.change)
    assert mw.anonymize(path, found.policy).ok


def attempt(loss: float, lost: float = 0.9, drawback: str = "") -> alternatives.Attempt:
    """An attempt that loses so much, and so much of its worst column."""
    return alternatives.Attempt(
        Policy.of({"columns": {"q": "quasi-identifier"}, "require": [{"model": "k-anonymity", "k": 2}]}, "policy"),
        "", loss=Fraction(str(loss)), worst_columns=(("q", Fraction(str(lost))),),
        drawbacks=(drawback,) if drawback else (),
    )  # fmt: skip


def test_where_nothing_is_useful_a_weaker_requirement_has_to_save_more_than_a_tenth() -> None:
    three, two, least = (Demand("mondrian", Fraction(ell)) for ell in ("3", "2", "10/9"))
    local = Demand("local-recoding", Fraction(3))
    lost, half = attempt(0.6, 1, "nothing is left"), attempt(0.62, 0.95, "62 % is lost")
    found = {
        three: lost,
        local: half,
        two: attempt(0.58, 1, "lost"),
        least: attempt(0.57, 0.9, "57 % is lost"),
    }
    assert _chosen(found, sampled=False) == local, "of l = 3 what leaves something of every column"
    words = " ".join(_what_was_tried(found, local, "all rows", 1.0))
    assert "a weaker requirement hardly helps" in words
    assert "would keep 43 %" in words
    assert _chosen({**found, least: attempt(0.52, 0.9, "52 % is lost")}, sampled=False) == least
    assert _chosen({**found, least: attempt(0.4)}, sampled=False) == least, "useful"


def test_a_sample_must_keep_more_than_half() -> None:
    three, two = (Demand("local-recoding", Fraction(ell)) for ell in (3, 2))
    hardly, surely = attempt(0.49), attempt(0.3)
    assert _chosen({three: hardly, two: surely}, sampled=True) == two
    assert _chosen({three: hardly, two: surely}, sampled=False) == three
    assert _chosen({three: hardly}, sampled=True) == three


def test_whoever_waits_long_is_told_before() -> None:
    local, cuts = Demand("local-recoding"), Demand("mondrian")
    found = {cuts: attempt(0.4), local: replace(attempt(0.3), seconds=5.0)}
    words = " ".join(_what_was_tried(found, local, "a sample", 10.0))
    assert "! local-recoding takes long on all rows: perhaps 9 minutes." in words
    assert "minutes" not in " ".join(_what_was_tried(found, local, "all rows", 1.0))


def test_nobody_waits_for_minutes_where_another_method_keeps_nearly_as_much() -> None:
    local, cuts = Demand("local-recoding"), Demand("mondrian")
    slow = replace(attempt(0.2), seconds=5.0)
    near, far = ({cuts: replace(attempt(loss), seconds=1.0), local: slow} for loss in (0.24, 0.3))
    assert _sooner(near, local, 10.0, sampled=True) == cuts, "500 seconds and ten"
    assert _sooner(near, local, 2.0, sampled=True) == local, "20 seconds are no matter"
    assert _sooner(far, local, 10.0, sampled=True) == local, "too much would be lost"
    words = " ".join(_what_was_tried(near, cuts, "a sample", 10.0))
    told = "mondrian, not local-recoding, which keeps 80 % of the detail, not 76 %, but would take perhaps 9 minutes"
    assert f"{told} on all rows. " in words
    assert "not local-recoding" not in " ".join(_what_was_tried(near, cuts, "all rows", 1.0))


def test_the_method_that_was_left_out_can_be_had_as_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No patience at all: the quick method is written, and what the policy says instead keeps more."""
    monkeypatch.setattr(alternatives, "SAMPLED", 300)
    monkeypatch.setattr("maskwright.suggest.PATIENCE_S", 0.0)
    monkeypatch.setattr(
        "maskwright.suggest._sooner", lambda found, *_: next(c for c in found if c.method == "mondrian")
    )
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(accidents(), path)
    found = mw.suggest_policy(path)
    [told] = [words for words in found.words if words.startswith("mondrian, not local-recoding, which keeps")]
    instead = re.search(r"write `(method: \{.*?\})` in place of the policy's method, and run", told)
    assert instead is not None
    [line] = [line for line in found.text.splitlines() if line.startswith("method: ")]
    policies = [found.text, found.text.replace(line, instead[1])]
    quick, slow = (mw.anonymize(path, Policy.of(load_yaml(p.encode(), "policy"), "policy")) for p in policies)
    assert quick.ok
    assert slow.ok
    assert slow.metrics["information-loss"] < quick.metrics["information-loss"]


def few_people() -> pa.Table:
    """Fifty people and two columns in which hardly anybody is like another."""
    rng = random.Random(3)  # noqa: S311
    return pa.table(
        {
            "date_of_birth": [
                f"{rng.randint(1935, 2005)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
                for _ in range(50)
            ],
            "zip": [f"02{rng.randint(100, 140)}" for _ in range(50)],
            "sex": [rng.choice("FM") for _ in range(50)],
            "ward": [rng.choice(["north", "south"]) for _ in range(50)],
            "diagnosis": [rng.choice(["flu", "asthma", "ulcer", "HIV", "cold"]) for _ in range(50)],
        }
    )


def test_columns_of_which_nothing_would_be_left_are_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    pyarrow.csv.write_csv(few_people(), path)
    found = mw.suggest_policy(path)
    assert found.words[0].startswith("! Left out: date_of_birth, zip. ")
    assert set(found.policy.columns) == {"sex", "ward", "diagnosis"}
    release = mw.anonymize(path, found.policy)
    assert release.ok
    assert "* throughout" not in " ".join(release.warnings)
    assert float(release.metrics["information-loss"]) < 0.5
    # a column is published again where the mark before it is taken away
    line = next(line for line in found.text.splitlines() if line.startswith("  # zip: "))
    again = Policy.of(
        load_yaml(found.text.replace(line, line.replace("# ", "", 1)).encode(), "policy"), "policy"
    )
    assert set(again.columns) == {"zip", "sex", "ward", "diagnosis"}
    assert again.columns["zip"].role == "quasi-identifier"


def test_leaving_a_column_out_is_no_question_of_whose_rows_these_are(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    pyarrow.csv.write_csv(few_people(), path)
    policy = mw.suggest_policy(path, tried=False).policy
    assert policy.unit is None
    fewer = alternatives.without_columns(policy, ["ward", "zip"])
    release = mw.anonymize(path, fewer)
    assert release.ok
    loss, halves = Fraction(release.metrics["information-loss"]), 2 * len(fewer.quasi_identifiers)
    assert halves == len(policy.quasi_identifiers), "all columns count as much"
    assert alternatives.loss_with_columns(loss, policy, ["ward", "zip"]) == (loss + 1) / 2


@pytest.mark.parametrize("made", [accidents, credit])
def test_a_busy_machine_and_another_installation_do_not_change_the_policy(
    made: Callable[[], pa.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything takes three times as long by any clock; the samples are small, so that slow methods matter."""
    monkeypatch.setattr(alternatives, "SAMPLED", 300)
    monkeypatch.setattr(alternatives, "FEWER", 200)
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(made(), path)
    usual = mw.suggest_policy(path)
    for clock in ("process_time", "thread_time", "monotonic", "perf_counter"):
        real = getattr(time, clock)
        monkeypatch.setattr(time, clock, lambda real=real: 3 * real())
    monkeypatch.setenv("MASKWRIGHT_STATE", str(tmp_path / "another installation"))
    busy = mw.suggest_policy(path)
    assert busy.text == usual.text
    assert [a.seconds for a in busy.tried] == [a.seconds for a in usual.tried]
