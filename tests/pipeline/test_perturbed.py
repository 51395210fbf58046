"""Columns that a policy publishes otherwise than they are, from the file to the recounted release."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import maskwright as mw
from maskwright.errors import InputError, NotVerified, PolicyError, UsageError
from maskwright.policy.policy import Policy
from maskwright.verification.verify import verify_folder

N = 300
PUBLISH: dict[str, Any] = {
    "income": {"role": "sensitive", "publish": {"microaggregate": {"k": 3, "with": ["wealth"]}}},
    "wealth": {"role": "insensitive", "near_unique": "allow"},
    "hours": {"role": "insensitive", "publish": {"noise": {"share": "0.2"}}},
    "rent": {"role": "insensitive", "near_unique": "allow", "publish": {"round": 100, "top-code": 1500}},
    "job": {"role": "sensitive", "publish": {"pram": {"keep": "0.8"}}},
}


@pytest.fixture(scope="module")
def survey() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, N), "sex": rng.choice(["m", "f"], N),
            "income": np.round(rng.lognormal(10, 0.7, N)).astype(int),
            "wealth": np.round(rng.lognormal(11, 1, N)).astype(int),
            "hours": np.round(rng.normal(38, 6, N), 1), "rent": rng.integers(200, 2000, N),
            "job": rng.choice(["a", "b", "c"], N, p=[0.6, 0.3, 0.1]),
        }
    )  # fmt: skip


def policy(method: str = "optimal-lattice", **columns: Any) -> dict[str, Any]:
    age = {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20]}}
    return {
        "columns": {"age": age, "sex": "quasi-identifier", **(columns or PUBLISH)},
        "require": [
            {"model": "k-anonymity", "k": 5},
            {"model": "distinct-l-diversity", "l": 2, "attribute": next(iter(columns or PUBLISH))},
        ],
        "method": method,
    }


@pytest.mark.parametrize("method", ["optimal-lattice", "mondrian", "local-recoding"])
def test_what_was_drawn_is_what_is_published(survey: pd.DataFrame, method: str, tmp_path: Path) -> None:
    release = mw.anonymize(survey, policy(method))
    table = release.table
    assert not set(table["income"]) <= set(survey["income"])
    groups = survey.shape[0] - release.grouping.suppressed_rows
    assert len(table) == groups
    if groups == N:
        assert table.groupby(["income", "wealth"]).size().min() >= 3
        assert abs(table["income"].mean() - survey["income"].mean()) < 1
    assert (table["rent"] % 100 == 0).all()
    assert table["rent"].max() <= 1500
    assert release.promises
    assert all(p.status == "measured" for p in release.promises)
    release.save(tmp_path / "out")
    checked = verify_folder(tmp_path / "out")
    assert checked.ok
    assert any("cannot be counted" in note for note in checked.notes)
    again = {b.attack: b for b in mw.attack(tmp_path / "out")}
    first = {b.attack: b for b in release.beliefs}
    assert again["perturbed-columns"].worst.after == first["perturbed-columns"].worst.after


def test_the_same_table_in_another_order_gives_the_same_release(survey: pd.DataFrame) -> None:
    tables = [
        mw.anonymize(t, policy()).table for t in (survey, survey.sample(frac=1, random_state=1), survey)
    ]
    one, two, three = (t.sort_values(list(t.columns)).reset_index(drop=True) for t in tables)
    assert one.equals(two)
    assert one.equals(three)


def test_another_requirement_draws_nothing_anew(survey: pd.DataFrame) -> None:
    """Otherwise errors would average out over several releases."""
    stricter = policy() | {"require": [{"model": "k-anonymity", "k": 12}]}
    tables = [mw.anonymize(survey, p).table for p in (policy(), stricter)]
    assert sorted(tables[0]["hours"]) == sorted(tables[1]["hours"])
    assert sorted(tables[0]["job"]) == sorted(tables[1]["job"])


def test_other_settings_draw_independently(survey: pd.DataFrame) -> None:
    """Two errors that are multiples of each other would tell the true number."""
    tables = []
    for share in ("0.1", "0.4"):
        column = {"role": "insensitive", "publish": {"noise": {"share": share}, "decimals": 6}}
        rules = policy(hours=column, job="sensitive")
        rules["require"] = rules["require"][:1]
        rules["columns"]["wealth"] = {"role": "insensitive", "near_unique": "allow"}  # tells rows apart
        tables.append(mw.anonymize(survey, rules).table.set_index("wealth")["hours"])
    truth = survey.set_index("wealth")["hours"]
    unique = truth.index[~truth.index.duplicated(keep=False)]
    errors = [np.asarray(t.loc[unique] - truth.loc[unique], dtype=float) for t in tables]
    assert abs(np.corrcoef(errors[0], errors[1])[0, 1]) < 0.25


def test_requirements_are_measured_on_true_values(survey: pd.DataFrame) -> None:
    """Noise makes values differ that are the same: that is no diversity."""
    table = survey.assign(income=40000)
    table.loc[0, "income"] = 40001
    column = {"role": "sensitive", "publish": {"noise": {"share": "1"}}}
    with pytest.raises(mw.errors.PolicyNotMet, match="distinct-l-diversity"):
        rules = policy(income=column)
        rules["require"][1] |= {"use": "gate"}
        mw.anonymize(table, rules)


def test_verify_finds_what_the_settings_exclude(survey: pd.DataFrame, tmp_path: Path) -> None:
    table, folder = tmp_path / "s.csv", tmp_path / "out"
    survey.to_csv(table, index=False)
    mw.anonymize(table, policy(), folder)
    assert verify_folder(folder).ok
    data = folder / "public" / "data.csv"
    changed = pd.read_csv(data, dtype=str)
    changed.loc[0, "rent"] = "1501"
    data.chmod(0o600)
    changed.to_csv(data, index=False)
    problems = verify_folder(folder, recount_only=True).problems
    assert any("'rent'" in p for p in problems)


def test_values_that_are_changed_before_they_are_written_are_noticed(survey: pd.DataFrame) -> None:
    from dataclasses import replace

    from maskwright.pipeline import parts

    before = parts.measured_rows

    def other(*given: Any) -> Any:
        rows = before(*given)
        texts = list(rows.shown.texts)
        texts[-1] = tuple(reversed(texts[-1]))
        return replace(rows, shown=replace(rows.shown, texts=tuple(texts)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "measured_rows", other)
        with pytest.raises(NotVerified, match="published with changes"):
            mw.anonymize(survey, policy())


def test_the_folder_says_what_readers_must_know(survey: pd.DataFrame, tmp_path: Path) -> None:
    mw.anonymize(survey, policy(), tmp_path / "out")
    public = tmp_path / "out" / "public"
    dictionary = json.loads((public / "data-dictionary.json").read_text())
    said = {c["name"]: c.get("perturbed", "") for c in dictionary["columns"]}
    assert said["income"] == said["wealth"] == "the mean of a group of at least 3 similar rows"
    assert "top-coded at 1500" in said["rent"]
    assert "changed on purpose" in (public / "data-card.html").read_text()
    report = (tmp_path / "out" / "private" / "report.html").read_text()
    assert "Which row is whose, by true numbers" in report
    assert Policy.load(tmp_path / "out" / "private" / "policy.yaml").perturbed.keys() == PUBLISH.keys()


def test_refusals(survey: pd.DataFrame) -> None:
    noisy = {"role": "sensitive", "publish": {"noise": {}}}
    for change, words in (
        ({"unit": "sex"}, "averages out|role must be identifier"),
        ({"recoding": "bucketize"}, "recoding: generalise"),
    ):
        with pytest.raises(PolicyError, match=words):
            Policy.load(policy(income=noisy) | change)
    with pytest.raises(PolicyError, match="job holds sets of values"):
        Policy.load(policy(income=noisy, job={"role": "sensitive", "multivalued": ";"}))
    with pytest.raises(PolicyError, match="no other column"):
        Policy.load(
            policy(income={"role": "sensitive", "publish": {"microaggregate": {"k": 3, "with": "wealht"}}})
        )
    with pytest.raises(InputError, match=r"'job'.*changed numbers"):
        mw.anonymize(survey, policy(job=noisy))
    with pytest.raises(UsageError, match="errors that are drawn again average out"):
        mw.Recoder.from_release(mw.anonymize(survey, policy())).transform(survey)


def test_a_bound_on_belief_beside_insensitive_columns_counts_true_values(tmp_path: Path) -> None:
    """What an insensitive column tells as it is published, of sensitive values as they are."""
    incomes, hours = [100, 200, 300, 400] * 3, [1, 2, 1, 2] * 3
    table = pd.DataFrame(
        {"town": ["x"] * 12, "income": list(map(str, incomes)), "hours": list(map(str, hours))}
    )
    for publish, worst in ((None, Fraction(1, 2)), ({"round": 10}, Fraction(1, 4))):
        columns: dict[str, Any] = {
            "town": {"role": "quasi-identifier", "hierarchy": "suppress"},
            "income": {"role": "sensitive", "publish": {"round": 1000}},
            "hours": {"role": "insensitive", **({"publish": publish} if publish else {})},
        }
        asked = {"model": "belief", "max": "1/2", "attribute": "income"}
        policy = {"version": 1, "columns": columns, "require": [{"model": "k-anonymity", "k": 2}, asked]}
        release = mw.anonymize(table, policy)
        [found] = [b for b in release.beliefs if b.attack == "passing-columns"]
        assert found.worst.after == worst
