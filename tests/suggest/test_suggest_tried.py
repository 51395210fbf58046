"""From a table to a useful release without an edit: what `init` writes publishes, and keeps detail."""

from __future__ import annotations

import random
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import maskwright as mw
from maskwright.pipeline import attempts as trials
from maskwright.pipeline.history import policy_hash
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

    # a method that leaves nothing of a column is passed over where another leaves something of each: the words say so
    passed_over = {a.policy.method.name for a in found.tried if a.drawbacks and not release.great_losses}
    methods = [m for m in COMPARED if m not in passed_over or m == found.policy.method.name]
    best = mw.compare(path, policy, grid={"method": methods}, metrics=(), seed=None, cache=False)
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
    monkeypatch.setattr(trials, "SAMPLED", 100)
    path = tmp_path / "table.csv"
    pyarrow.csv.write_csv(credit(), path)
    found = mw.suggest_policy(path)
    assert f"a sample of 100 of the {N} rows" in found.words[0]
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
    job = trials.Job(path, mw.suggest_policy(path, tried=False).policy)
    attempts = trials.Attempts(job, budget_s=0.0)
    try:
        found = attempts.attempt(job.policy, "as it is")
    finally:
        attempts.close()
    assert attempts.time_is_up
    assert (found.loss, found.useful) == (None, False)
    assert "time" in found.refusal
