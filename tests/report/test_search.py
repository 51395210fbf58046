"""What other settings would give: the same as if one had run them, within the time that is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

import maskwright as mw
from maskwright.domain.method import Part
from maskwright.errors import Cancelled
from maskwright.pipeline import what_if
from maskwright.pipeline.job import Job
from maskwright.pipeline.session import prepared_run
from maskwright.pipeline.what_if import nearby_settings, try_nearby_settings
from maskwright.report.search import OtherSetting, loses_less_when_stricter, search_section
from maskwright.runtime.events import Progress
from tests.patients import POLICY, patients, write_csv


def policy(**changes: Any) -> mw.Policy:
    return mw.Policy.load(yaml.safe_load(POLICY) | changes)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "patients.csv", patients())


@pytest.fixture
def made(source: Path) -> Iterator[Part]:
    yield from pieces(source, policy())


def pieces(source: Path, asked: mw.Policy) -> Iterator[Part]:
    with prepared_run(Job(source, asked)) as ready:
        yield from ready.resolved.method.parts(ready.task)


def test_the_next_usual_settings(made: Part, source: Path) -> None:
    assert [name for name, _ in nearby_settings(made.task)] == ["k = 3", "k = 5"]
    for models, expected in [
        ([{"model": "distinct-l-diversity", "l": 3}], ["l = 2", "l = 4"]),
        ([{"model": "simple-l-diversity", "l": 2}], ["l = 3"]),
        ([{"model": "t-closeness", "t": "0.5"}], []),
        ([{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "l": 2}], ["k = 3"]),
    ]:
        (piece,) = pieces(source, policy(require=models))
        assert [name for name, _ in nearby_settings(piece.task)] == expected


def test_it_is_what_one_would_get(made: Part, source: Path) -> None:
    found = try_nearby_settings([made], False, {"searching": 0.0})
    assert [o.setting for o in found.others] == ["k = 4 (this release)", "k = 3", "k = 5"]
    for other, k in zip(found.others, (4, 3, 5), strict=True):
        release = mw.anonymize(source, policy(require=[{"model": "k-anonymity", "k": k}]))
        assert other.loss == release.metrics["information-loss"]
        assert (other.rows, other.classes) == (release.grouping.published_rows, release.grouping.classes.n)
    listed = mw.minimal_nodes(source, policy())
    assert found.minimal is not None
    assert [n.levels for n in found.minimal] == [n.levels for n in listed]


def test_why_there_would_be_none(source: Path) -> None:
    huge = policy(require=[{"model": "k-anonymity", "k": 20}], method={"name": "optimal-lattice"})
    (piece,) = pieces(source, huge)
    assert (
        try_nearby_settings([piece], False, {}).others[-1].refused == "no release satisfies it"
    )  # k = 50 of 40
    gate = {"model": "highest-risk", "max": "1/10", "use": "gate"}
    (piece,) = pieces(source, policy(require=[{"model": "k-anonymity", "k": 10}, gate]))
    refused = {o.setting: o.refused for o in try_nearby_settings([piece], False, {}).others}
    assert refused["k = 5"] == "refused by the gate highest-risk"
    assert refused["k = 10 (this release)"] == ""


def test_it_takes_no_more_time_than_it_may(made: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    found = try_nearby_settings([made], False, {"searching": 30.0, "reading": 1.0})
    assert not found.others
    assert "k = 3 and k = 5" in found.note and "about 30 s" in found.note
    monkeypatch.setattr(what_if, "AT_LEAST_S", 0.0)
    found = try_nearby_settings([made], False, {"searching": 0.0})
    assert [o.refused[:14] for o in found.others[1:]] == ["not looked at:"] * 2
    assert found.minimal is None


def test_the_user_can_still_stop(made: Part) -> None:
    stopped = replace(made, task=replace(made.task, progress=Progress(None, lambda: True)))
    with pytest.raises(Cancelled, match="nothing was published"):
        try_nearby_settings([stopped], False, {})


def test_the_release_does_not_depend_on_it(source: Path, tmp_path: Path) -> None:
    asked = policy(
        method={"name": "anatomy"}, recoding="bucketize", require=[{"model": "simple-l-diversity", "l": 2}]
    )
    mw.anonymize(source, asked, tmp_path / "a", seed=5)
    mw.anonymize(source, asked, tmp_path / "b", seed=5, keep_private="none")
    for name in ("quasi-identifiers.csv", "sensitive.csv"):
        assert (tmp_path / "a/public" / name).read_bytes() == (tmp_path / "b/public" / name).read_bytes()


def test_the_page_shows_it(source: Path, made: Part) -> None:
    release = mw.anonymize(source, policy())
    text = search_section(release, try_nearby_settings([made], False, {}))
    assert "k = 4 (this release)" in text and "k = 5" in text
    assert f"All minimal choices of levels: {len(mw.minimal_nodes(source, policy()))}" in text
    assert "stricter" not in search_section(release, None)


def test_a_stricter_setting_that_loses_less_is_noticed() -> None:
    at = [OtherSetting(f"k = {k}{more}", Fraction(loss, 10)) for k, more, loss in
          [(2, "", 6), (5, " (this release)", 5), (10, "", 4)]]  # fmt: skip
    assert loses_less_when_stricter(at)
    assert loses_less_when_stricter(at[:2])
    assert not loses_less_when_stricter(
        [at[0], OtherSetting("k = 5", Fraction(6, 10)), OtherSetting("k = 10")]
    )


def test_the_page_shows_how_a_search_went_on(source: Path) -> None:
    release = mw.anonymize(source, policy())
    text = search_section(release, None)
    assert "How the search went on" not in text
    release.grouping.search["curve"] = [
        {"seconds": 0.2, "score": 0.5, "bound": 0.1}, {"seconds": 9.0, "score": 0.4, "bound": 0.3},
    ]  # fmt: skip
    text = search_section(release, None)
    assert "How the search went on" in text and "<td" in text and "25.0%" in text and "80.0%" in text
