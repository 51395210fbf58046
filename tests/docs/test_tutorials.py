"""The tutorials run as they stand: code, commands and what they print (docs/tutorials/README.md)."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pandas as pd
import pytest

import maskwright as mw
from tests.pages import TUTORIALS, blocks, matches, run_page

PAGES = sorted(p for p in TUTORIALS.glob("*.md") if p.name not in ("README.md", "on-a-cluster.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_tutorial_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(page, {}) >= 4


SURVEY = TUTORIALS.parent / "survey.md"


@pytest.mark.long
def test_the_survey_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(SURVEY, {}) == 9
    rows_are_as_many_as_expected(tmp_path)


def test_a_smaller_survey_is_published_by_the_same_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of the households, whose classes are too small for a belief of 1/2; the lines without figures."""
    text = SURVEY.read_text(encoding="utf-8").partition("## A file for everybody")[0]
    changes = {
        "2600": "260",
        "[:6000]": "[:600]",
        "belief, max: 1/2": "belief, max: 9/10",
        "```text": "```figures",
    }
    for there, instead in changes.items():
        assert there in text
        text = text.replace(there, instead)
    text = re.sub(r"(?<=```console\n).*?(?=```)", lambda m: without_figures(m[0]), text, flags=re.DOTALL)
    assert text.count("\nMAY BE PUBLISHED: every requirement holds.\n") == 2
    page = tmp_path / "survey.md"
    page.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run_page(page, {}) == 6


def without_figures(shown: str) -> str:
    """Commands and what they print, with `...` for each line that holds a number."""
    lines = [
        line if line.startswith("$") or not re.search(r"\d", line) else "..." for line in shown.splitlines()
    ]
    return "\n".join(lines) + "\n"


def test_the_differentially_private_survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = next(text for language, text in blocks(SURVEY) if language == "python")
    exec(compile(table, SURVEY.name, "exec"), {})  # noqa: S102 - our own page
    Path("private.yaml").write_text(
        next(text for _, text in blocks(SURVEY) if text.startswith("# private.yaml")), encoding="utf-8"
    )
    [promise] = mw.anonymize("survey.csv", "private.yaml", "private").promises
    assert (promise.status, "δ = 9.88e-05" in promise.label) == ("guaranteed", True)
    rows_are_as_many_as_expected(tmp_path)


def rows_are_as_many_as_expected(folder: Path) -> None:
    """The page tells how many rows a differentially private sample of its table has: computed here class by class."""
    table = pd.read_csv(folder / "survey.csv")
    classes = table.groupby([table["age"] // 20, "sex", "region", "education", "occupation"]).size().tolist()
    kept, mean, variance = 1 - math.exp(-1), 0.0, 0.0
    for n in classes:
        chances = {j: math.comb(n, j) * kept**j * (1 - kept) ** (n - j) for j in range(33, n + 1)}
        first, second = (sum(j**power * chance for j, chance in chances.items()) for power in (1, 2))
        mean, variance = mean + first, variance + second - first**2
    told = f"{mean:.0f} of 6,000 rows on average, with a standard deviation of {math.sqrt(variance):.0f},"
    assert told in SURVEY.read_text(encoding="utf-8")
    rows = len(pd.read_csv(folder / "private" / "public" / "data.csv"))
    assert abs(rows - mean) < 5 * math.sqrt(variance)


def test_a_page_that_says_something_else_fails() -> None:
    matches("a ... c", "a b c")
    for shown in ("a c", "a ... d", "b c", "a b"):
        with pytest.raises(AssertionError):
            matches(shown, "a b c")


def test_every_tutorial_is_listed() -> None:
    listed = (TUTORIALS / "README.md").read_text(encoding="utf-8")
    for page in TUTORIALS.glob("*.md"):
        assert page.name == "README.md" or f"]({page.name})" in listed
