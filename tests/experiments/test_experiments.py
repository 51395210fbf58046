"""The experiments run, and the committed numbers are the ones that they compute."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from experiments.common import PAPERS, Experiment, leave, read_csv, shown
from experiments.pages import records, write_pages
from experiments.run import experiments
from maskwright.report.charts import STYLE
from tests.amounts import cases

ALL = experiments()
AGAIN = [e for e in ALL if e.again]


def last_of_each_paper(listed: list[Experiment]) -> list[Experiment]:
    return list({e.name.split("-")[0]: e for e in listed}.values())


BRIEF, BRIEF_AGAIN = (
    last_of_each_paper(ALL),
    last_of_each_paper(AGAIN[::-1]),
)  # others, where a paper has several


@pytest.mark.parametrize("experiment", cases(ALL, brief=BRIEF), ids=lambda e: e.name)
def test_the_quick_version_runs(experiment: Experiment, tmp_path: Path) -> None:
    done = leave(experiment, True, tmp_path)
    rows = read_csv(tmp_path / f"{experiment.name}.csv")
    assert rows and done.found and done.pictures
    committed = read_csv(PAPERS / f"{experiment.name}.csv")
    assert list(rows[0]) == list(committed[0]), "the quick version has the columns of the full one"
    full = next(d for d in records(PAPERS) if d.name == experiment.name)
    assert done.verdict == full.verdict or experiment.quick, "another verdict, and not a word why"


@pytest.mark.parametrize("experiment", cases(AGAIN, brief=BRIEF_AGAIN), ids=lambda e: e.name)
def test_a_sample_of_the_committed_numbers_is_recomputed(experiment: Experiment) -> None:
    assert experiment.again is not None
    committed = read_csv(PAPERS / f"{experiment.name}.csv")
    again = [{k: str(shown(v)) for k, v in row.items()} for row in experiment.again()]
    assert again
    for row in again:
        assert any(_same(row, old) for old in committed), f"{row} is not in {experiment.name}.csv"


def _same(row: dict[str, str], old: dict[str, str]) -> bool:
    return all(_equal(value, old.get(name, "")) for name, value in row.items())


def _equal(a: str, b: str) -> bool:
    if a == b:
        return True
    try:
        return math.isclose(float(a), float(b), rel_tol=1e-5, abs_tol=1e-9)
    except ValueError:
        return False


def test_the_pages_are_those_of_the_records(tmp_path: Path) -> None:
    for file in PAPERS.glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    write_pages(tmp_path)
    for page in tmp_path.glob("*.md"):
        assert page.read_text(encoding="utf-8") == (PAPERS / page.name).read_text(encoding="utf-8")


def test_every_experiment_has_its_results() -> None:
    assert {d.name for d in records(PAPERS)} == {e.name for e in ALL}
    for done in records(PAPERS):
        for name in [*done.pictures, f"{done.name}.csv"]:
            assert (PAPERS / name).is_file()


def test_all_pictures_have_the_style_of_reports() -> None:
    """A picture is drawn when its experiment is run, which may be long ago."""
    pictures = sorted(PAPERS.glob("*.svg"))
    assert pictures
    assert [p.name for p in pictures if STYLE not in p.read_text(encoding="utf-8")] == []
