"""New rows through the recoding of a release: against plain counting, in every kind, and what is refused."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import yaml

import maskwright as mw
from maskwright.errors import HierarchyError, InputError, PolicyNotMet, UsageError
from maskwright.recoder import NewRows
from tests.amounts import repeated
from tests.pages import printed
from tests.patients import HEADER, POLICY, patients, write_csv
from tests.support import needs

QI = ["age", "zip", "sex"]


def frame(rows: list[list[str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=HEADER)


def policy(**changes: Any) -> mw.Policy:
    return mw.Policy.load(yaml.safe_load(POLICY) | changes)


def person(age: int, zip_: str = "13000", sex: str = "m", disease: str = "flu") -> list[str]:
    return [f"N{age}", str(age), zip_, sex, disease, "A"]


@pytest.fixture(scope="module")
def release() -> mw.Release:
    return mw.anonymize(frame(patients()), policy(), seed=1)


def report_of(recoder: mw.Recoder) -> NewRows:
    assert recoder.report_ is not None
    return recoder.report_


def test_the_rows_of_the_release_come_out_as_they_were_published(release: mw.Release) -> None:
    recoder = mw.Recoder.from_release(release)
    out = recoder.transform(frame(patients()))
    columns = list(release.table.columns)
    assert list(out.columns) == columns == list(recoder.get_feature_names_out())
    published = Counter(release.table.itertuples(index=False, name=None))
    assert not published - Counter(out.itertuples(index=False, name=None))
    assert report_of(recoder).ok


def test_a_folder_does_the_same(release: mw.Release, tmp_path: Path) -> None:
    folder = release.save(tmp_path / "release")
    rows = frame(patients(20))
    ours = mw.Recoder.from_release(folder, order="keep").transform(rows)
    theirs = mw.Recoder.from_release(release, order="keep").transform(rows)
    pd.testing.assert_frame_equal(ours, theirs)
    path = write_csv(tmp_path / "new.csv", patients(20))
    relation = mw.Recoder.from_release(str(folder), order="keep").transform(path)
    assert relation.fetchall() == list(theirs.itertuples(index=False, name=None))


def test_order(release: mw.Release) -> None:
    rows = frame([*patients(), *patients(), *patients()])
    kept = mw.Recoder.from_release(release, order="keep").transform(rows)
    assert kept["disease"].tolist() == rows["disease"].tolist()
    assert kept["age"].tolist() == [release.mapping["age"][age][0] for age in rows["age"]]
    drawn = mw.Recoder.from_release(release).transform(rows)
    assert drawn["disease"].tolist() != rows["disease"].tolist()


def brute(released: pd.DataFrame, new: pd.DataFrame, k: int, l: int) -> set[tuple[str, ...]]:  # noqa: E741
    """Classes that are too small or too uniform, counted row by row."""
    both = pd.concat([released, new])
    return {key for key, part in both.groupby(QI) if len(part) < k or part["disease"].nunique() < l}


@pytest.mark.parametrize("seed", repeated(6))
@pytest.mark.parametrize("published", ["together", "alone"])
def test_violations_against_counting(seed: int, published: Any) -> None:
    rng = random.Random(seed)  # noqa: S311
    models = [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "l": 2}]
    release = mw.anonymize(
        frame(patients()),
        policy(require=models, method={"name": "optimal-lattice", "suppression": "10%"}),
        seed=1,
    )
    new = frame(
        [person(rng.randrange(18, 70), rng.choice(["13000", "13011", "14822"]), rng.choice("mf"),
                rng.choice(["flu", "gout"])) for _ in range(25)]
    )  # fmt: skip
    reporting = mw.Recoder.from_release(release, check="report", published=published)
    out = reporting.transform(new)
    assert len(out) == 25
    before = release.table if published == "together" else release.table.iloc[:0]
    expected = brute(before, out, 3, 2)
    report = report_of(reporting)
    assert {tuple(v.labels.values()) for v in report.violations} == expected
    assert bool(expected) == (not report.ok)
    for violation in report.violations:
        for part, count in ((before, violation.released), (out, violation.new)):
            assert count == int((part[QI] == list(violation.labels.values())).all(axis=1).sum())

    refusing = mw.Recoder.from_release(release, published=published)
    suppressing = mw.Recoder.from_release(release, check="suppress", published=published)
    if expected:
        with pytest.raises(PolicyNotMet, match=f"{len(expected)} class(es)? would fail"):
            refusing.transform(new)
    bad = out[QI].apply(tuple, axis=1).isin(expected)
    if bad.all():
        with pytest.raises(PolicyNotMet, match="all 25 new rows"):
            suppressing.transform(new)
        return
    left = suppressing.transform(new)
    assert Counter(left.itertuples(index=False, name=None)) == Counter(
        out[~bad].itertuples(index=False, name=None)
    )
    assert report_of(suppressing).suppressed == int(bad.sum())
    assert not brute(before, left, 3, 2)


@pytest.mark.parametrize(
    "kind", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table], ids=["pandas", "polars", "lazy", "pyarrow"]
)
def test_the_same_kind_comes_back(release: mw.Release, kind: Any) -> None:
    rows = kind({name: [row[i] for row in patients()] for i, name in enumerate(HEADER)})
    out = mw.Recoder.from_release(release).transform(rows)
    assert type(out) is type(rows)


def test_values_that_the_builder_knows_are_recoded(release: mw.Release) -> None:
    """Nobody was 63, but intervals know where that belongs; 60-69 is then too small a class."""
    recoder = mw.Recoder.from_release(release, check="report", order="keep")
    out = recoder.transform(frame([person(63), person(35), person(63)]))
    assert out["age"].tolist() == ["60-69", "30-39", "60-69"]
    assert {v.labels["age"] for v in report_of(recoder).violations} >= {"60-69"}


def test_values_that_nobody_knows_are_refused() -> None:
    columns = yaml.safe_load(POLICY)["columns"] | {
        "sex": {"role": "quasi-identifier", "hierarchy": {"groups": [["m", "f"]]}},
        "zip": "identifier",
    }
    release = mw.anonymize(frame(patients()), policy(columns=columns, unit="none"), seed=1)
    recoder = mw.Recoder.from_release(release, check="report")
    with pytest.raises(HierarchyError, match=r"column 'sex': the hierarchy of the release does not know 'x'"):
        recoder.transform(frame([person(30, sex="x")]))
    with pytest.raises(InputError, match=r"no column 'age'"):
        recoder.transform(frame(patients()).drop(columns="age"))


def test_requirements_that_cannot_be_checked(release: mw.Release) -> None:
    rows = frame(patients()).drop(columns="disease")
    with pytest.raises(PolicyNotMet, match=r"the new rows have no column 'disease'"):
        mw.Recoder.from_release(release).transform(rows)
    recoder = mw.Recoder.from_release(release, check="report")
    assert "disease" not in recoder.transform(rows).columns
    assert report_of(recoder).unchecked
    assert not report_of(recoder).ok
    belief = policy(
        require=[{"model": "k-anonymity", "k": 4}, {"model": "belief", "max": 1, "adversary": "neighbour"}]
    )
    guarded = mw.anonymize(frame(patients()), belief, seed=1)
    with pytest.raises(PolicyNotMet, match="belief: it needs attacks"):
        mw.Recoder.from_release(guarded).transform(frame(patients()))


@pytest.mark.parametrize(
    "changes", [{"method": "mondrian"}, {"recoding": {"name": "permute"}}], ids=["mondrian", "permute"]
)
def test_only_full_domain_releases(changes: dict[str, Any]) -> None:
    made = mw.anonymize(
        frame(patients()), policy(require=[{"model": "k-anonymity", "k": 4}], **changes), seed=1
    )
    with pytest.raises(UsageError, match="not a full-domain recoding"):
        mw.Recoder.from_release(made)


def test_a_unit_is_refused() -> None:
    columns = yaml.safe_load(POLICY)["columns"]
    del columns["name"]
    made = mw.anonymize(frame(patients()), policy(columns=columns, unit="name"), seed=1)
    with pytest.raises(UsageError, match="counts people by a unit"):
        mw.Recoder.from_release(made)


def test_parameters(release: mw.Release) -> None:
    recoder = mw.Recoder.from_release(release, check="report")
    assert recoder.get_params()["check"] == "report"
    assert recoder.set_params(order="keep").order == "keep"
    with pytest.raises(UsageError, match="no parameter 'ordr'"):
        recoder.set_params(ordr="keep")
    with pytest.raises(UsageError, match="check='maybe'"):
        mw.Recoder.from_release(release, check="maybe")
    with pytest.raises(UsageError, match="order='keep'"):
        mw.Recoder.from_release(release).fit(frame(patients()), [1] * 40)


def test_in_a_pipeline(release: mw.Release) -> None:
    needs("sklearn")
    from sklearn.base import clone
    from sklearn.dummy import DummyClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rows = frame(patients()).drop(columns="name")
    recoder = mw.Recoder.from_release(release, order="keep")
    pipeline = make_pipeline(recoder, OneHotEncoder(handle_unknown="ignore"), DummyClassifier())
    pipeline.fit(rows, rows["disease"])
    assert len(pipeline.predict(rows)) == 40
    assert clone(recoder).get_params() == recoder.get_params()


def test_the_page() -> None:
    for code, output, claimed in printed(Path(__file__).parents[2] / "docs/new-rows.md"):
        assert output == (claimed or ""), code


@pytest.mark.parametrize("levels", [["month", "year"], ["week", "month", "year"]])
@pytest.mark.parametrize("values", [["2024-01-01"] * 4, ["2024-01-01", "2024-01-02"] * 2, [None] * 4])
def test_dates_that_levels_do_not_tell_apart(values: list[str | None], levels: list[str]) -> None:
    """All in one month, or missing: several levels are the same partition, and none is finer than another."""
    frame = pd.DataFrame({"day": values, "disease": list("aabb")}, dtype="string")
    columns = {"day": {"role": "quasi-identifier", "hierarchy": {"dates": levels}}, "disease": "sensitive"}
    policy = {
        "unit": "none", "columns": columns, "require": [{"model": "k-anonymity", "k": 2}],
        "method": {"name": "optimal-lattice"},
    }  # fmt: skip
    recoder = mw.Recoder(mw.anonymize(frame, policy), check="report", order="keep").fit(frame)
    assert recoder.transform(frame)["day"].fillna("").tolist() == [v or "" for v in values]
