"""Results in a notebook: pages, short texts, completion, data frames, a bar while something runs."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.domain.settings import Settings
from maskwright.notebook import NotebookBar, shown_progress
from maskwright.notebook.result_frames import exact_cells
from maskwright.runtime.events import Event

HOSTILE = "<script>alert(1)</script>"
TABLE = pa.table({
    "age": [20 + i % 12 for i in range(60)],
    "ill": [(HOSTILE, "q", "r")[i // 12 % 3] for i in range(60)],
})  # fmt: skip


def draft() -> mw.PolicyDraft:
    begun: mw.PolicyDraft = mw.Policy()  # type: ignore[call-arg, assignment]
    return begun.quasi_identifier("age", mw.intervals(3, 6)).sensitive("ill").require(mw.KAnonymity(k=3))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One of everything that is shown."""
    folder = tmp_path_factory.mktemp("shown")
    release = mw.anonymize(TABLE, draft())
    table = pa.table({"age": ["20-22"] * 6, "ill": ["q", "r"] * 3}).to_pandas()
    table.to_csv(folder / "published.csv", index=False)
    return {
        "release": release,
        "beliefs": mw.attack(release, "homogeneity"),
        "audit": mw.audit(folder / "published.csv", ["age"], ["ill"]),
        "comparison": mw.compare(TABLE, draft(), grid={"k": [2, 4]}, cache=False),
        "suggestion": mw.suggest_policy(TABLE),
        "policy": draft().build(),
        "draft": draft(),
    }


NAMES = ["release", "beliefs", "audit", "comparison", "suggestion", "policy", "draft"]


class Reader(HTMLParser):
    """The elements of a page, and whether each that was opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert name not in ("src", "href") or (value or "").startswith("#")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", NAMES)
def test_a_page_of_its_own(results: dict[str, Any], name: str) -> None:
    page = results[name]._repr_html_()
    reader = Reader(page)
    assert reader.open == []
    assert "style" in reader.seen
    assert "script" not in reader.seen
    assert "prefers-color-scheme: dark" in page
    assert 'data-jp-theme-light="false"' in page
    assert not re.search(r"(?m)^(body|html|:root|table|p)\b", page), (
        "a rule would reach the rest of the notebook"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_short_text(results: dict[str, Any], name: str) -> None:
    text = repr(results[name])
    assert text.startswith(f"<{type(results[name]).__name__}: ")
    assert len(text) < 250
    assert "\n" not in text


def test_pages_say_what_they_mean(results: dict[str, Any]) -> None:
    """A serious finding is not green, a draft shows its file, and lists have no marks of their own."""
    audit = mw.audit(pd.DataFrame({"age": [1, 2, 3], "ill": ["a", "b", "c"]}), ["age"], ["ill"])
    assert any(severity == "high" for severity, _ in audit.sentences())
    assert re.search(r'<strong class="no">[^<]*serious', audit._repr_html_())
    assert "hierarchy:" in draft()._repr_html_()
    assert not re.search(r"<li>- |\*measured\*", results["suggestion"]._repr_html_().partition("<pre")[0])
    assert repr(results["suggestion"]) == "<Suggestion: 2 quasi-identifiers>"
    told = replace(results["suggestion"], words=["- age is * throughout, with * it is *measured*"])
    assert "<li>age is * throughout, with * it is measured</li>" in told._repr_html_(), "labels stay"
    rows = re.findall(r"<tr><th[^>]*>(\d)</th><td[^>]*>(k=\d)</td>", results["comparison"]._repr_html_())
    assert rows == [("1", "k=2"), ("2", "k=4")], "the numbers on the chart are those of the table"


def test_pictures_of_the_columns(results: dict[str, Any]) -> None:
    page = results["release"]._repr_html_()
    assert page.count("<svg") >= 3
    assert "Columns before and after" in page
    assert HOSTILE not in page


@pytest.mark.parametrize("name", NAMES)
def test_completion_offers_our_names_alone(results: dict[str, Any], name: str) -> None:
    offered = dir(results[name])
    assert offered
    assert not [
        n for n in offered if n.startswith(("_", "model_")) or n in ("copy", "json", "construct", "parse_obj")
    ]
    assert "to_frame" in offered
    assert len(offered) <= 45


def test_completion_of_a_policy_and_its_parts() -> None:
    policy = draft().build()
    assert {"columns", "require", "method", "to_yaml", "quasi_identifiers"} <= set(dir(policy))
    assert dir(mw.Mondrian()) == sorted(dir(mw.Mondrian()))
    assert "model_dump" not in dir(mw.KAnonymity(k=2))
    assert {"k", "check"} <= set(dir(mw.KAnonymity(k=2)))
    assert issubclass(mw.Policy, Settings)
    assert {"anonymize", "load", "verify", "register", "intervals", "PolicyNotMet"} <= set(dir(mw))


def test_frames(results: dict[str, Any]) -> None:
    release = results["release"]
    verdicts = release.to_frame(kind="pandas")
    assert verdicts["holds"].all()
    assert (verdicts["worst"][0], verdicts["worst_exact"][0]) == (
        release.verdicts[0].worst,
        str(release.verdicts[0].worst),
    )
    beliefs = release.to_frame("beliefs", kind="polars")
    assert isinstance(beliefs, pl.DataFrame)
    for belief, row in zip(release.beliefs, beliefs.iter_rows(named=True), strict=True):
        assert row["attack"] == belief.attack
        assert Fraction(row["after_exact"]) == belief.worst.after
        assert row["after"] == pytest.approx(float(belief.worst.after))
    classes = release.to_frame("classes", kind="pandas")
    shown = release.table.to_pandas().astype(str)
    assert classes["rows"].sum() == len(shown)
    assert dict(zip(classes["age"], classes["rows"], strict=True)) == shown["age"].value_counts().to_dict()
    largest = shown.groupby("age")["ill"].value_counts(normalize=True).groupby("age").max()
    assert dict(zip(classes["age"], classes["ill: largest share"], strict=True)) == pytest.approx(
        largest.to_dict()
    )
    metrics = release.to_frame("metrics", kind="pandas").set_index("metric")
    assert Fraction(metrics["value_exact"]["information-loss"]) == release.metrics["information-loss"]
    points = results["comparison"].to_frame(kind="pandas")
    assert points["status"].tolist() == ["holds", "holds"]
    assert isinstance(results["audit"].to_frame(), pd.DataFrame)
    assert results["audit"].to_frame("beliefs", kind="pandas")["attack"].is_unique
    assert results["suggestion"].to_frame(kind="pandas")["name"].tolist() == ["age", "ill"]
    assert len(results["beliefs"].to_frame(kind="pandas")) == 1


def test_what_is_not_computed_counts_as_one() -> None:
    worst = mw.plugins.Belief(Fraction(0), Fraction(0), "nobody", "nothing is known")
    frame = mw.plugins.Beliefs("minimality", "neighbour", "not computed", worst).to_frame(kind="pandas")
    assert frame["after"][0] == 1.0


def test_unknown_figures_are_refused(results: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(mw.UsageError, match="there is no 'clases' here; did you mean 'classes'"):
        results["release"].to_frame("clases")
    with pytest.raises(mw.UsageError, match="'pandas' or 'polars'"):
        results["release"].to_frame(kind="arrow")
    with pytest.raises(mw.UsageError, match="has no figures"):
        results["policy"].to_frame()
    monkeypatch.setattr("maskwright.notebook.result_frames.find_spec", lambda name: None)
    with pytest.raises(mw.UsageError, match="pip install"):
        results["release"].to_frame()


def test_a_draft_says_what_a_file_says(tmp_path: Path) -> None:
    built = (
        mw.Policy()  # type: ignore[call-arg, operator]
        .identifier("name")
        .quasi_identifier("age", mw.intervals(5, 10, above=80), weight=2)
        .quasi_identifier("zip", mw.mask("right"), keep="1")
        .quasi_identifier("sex", mw.suppress())
        .sensitive("disease", order=["flu", "cancer"])
        .insensitive("visits")
        .require(mw.KAnonymity(5))
        .require(mw.SimpleLDiversity(3), use="gate")
        .method(mw.Mondrian(dimensions="widest"))
        .set(missing={"tokens": ["?"]})
    )
    path = tmp_path / "policy.yaml"
    path.write_text(
        """
version: 1
missing: {tokens: ["?"]}
keep: {zip: 1}
columns:
  name: identifier
  age: {role: quasi-identifier, hierarchy: {intervals: [5, 10], above: 80}, weight: 2}
  zip: {role: quasi-identifier, hierarchy: {mask: right}}
  sex: {role: quasi-identifier, hierarchy: suppress}
  disease: {role: sensitive, order: [flu, cancer]}
  visits: insensitive
require:
  - {model: k-anonymity, k: 5}
  - {model: simple-l-diversity, l: 3, use: gate}
method: {name: mondrian, dimensions: widest}
""",
        encoding="utf-8",
    )
    assert built.to_yaml() == mw.Policy.load(path).to_yaml()
    assert mw.Policy.load(built) == mw.Policy.load(built.to_dict())
    begun = mw.Policy().quasi_identifier("age")  # type: ignore[call-arg, operator]
    assert "quasi-identifier" in begun.to_yaml()
    with pytest.raises(mw.PolicyError, match=r"policy.require: this setting is required"):
        begun.build()
    with pytest.raises(mw.PolicyError, match=r"KAnonymity.k: 0 is too small"):
        mw.KAnonymity(0)
    with pytest.raises(TypeError, match="takes k without a name"):
        mw.KAnonymity(5, 6)


def test_a_release_is_loaded_as_it_was_returned(tmp_path: Path) -> None:
    made = mw.anonymize(TABLE, draft(), tmp_path / "release")
    read = mw.load(tmp_path / "release")
    assert [v.as_dict() for v in read.verdicts] == [v.as_dict() for v in made.verdicts]
    assert [b.as_dict() for b in read.beliefs] == [b.as_dict() for b in made.beliefs]
    assert read.metrics == made.metrics
    assert [p.as_dict() for p in read.promises] == [p.as_dict() for p in made.promises]
    assert read.policy.to_yaml() == made.policy.to_yaml()
    assert list(read.tables) == list(made.tables)
    assert read._repr_html_() == made._repr_html_()
    assert mw.attack(read, "homogeneity").as_dict() == mw.attack(made, "homogeneity").as_dict()  # type: ignore[union-attr]
    assert mw.verify(tmp_path / "release").ok
    assert mw.verify(tmp_path / "release", draft()).ok
    (tmp_path / "release" / "public" / "notes.txt").write_text("more", encoding="utf-8")
    with pytest.raises(mw.NotVerified, match="is not what was promised"):
        mw.load(tmp_path / "release")


def test_a_bar_in_a_notebook_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with shown_progress(None) as nobody:
        assert nobody is None
    drawn: list[str] = []

    class Handle:
        def update(self, html: str) -> None:
            drawn.append(html)

    def display(html: str, display_id: bool) -> Handle:
        drawn.append(html)
        return Handle()

    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display, HTML=str))
    heard: list[Event] = []
    with shown_progress(heard.append) as told:
        assert told == heard.append
    mw.anonymize(TABLE, draft())
    assert any("<progress" in html and "searching" in html for html in drawn)
    assert drawn[-1] == ""
    with shown_progress(None) as bar:
        assert isinstance(bar, NotebookBar)
        bar(Event("step", "<b>"))
        bar(Event("progress", "2 s left", share=0.5))
        assert "&lt;b&gt;" in drawn[-1]
        assert 'value="0.5"' in drawn[-1]
    assert drawn[-1] == "", "the bar does not outlive the call"
    drawn.clear()
    with pytest.raises(mw.PolicyNotMet):
        mw.anonymize(TABLE, draft().require(mw.KAnonymity(61)))
    assert any("<progress" in html for html in drawn)
    assert drawn[-1] == "", "nor does it stay beside a refusal"


def test_a_refusal_shows_the_line_that_called_and_the_message() -> None:
    with pytest.raises(mw.PolicyNotMet) as refused:
        mw.anonymize(TABLE, draft().require(mw.KAnonymity(61)))
    shown = refused.value._render_traceback_()
    assert any("mw.anonymize(TABLE, draft()" in line for line in shown)
    assert not any("publish.py" in line for line in shown), "the way through the library is left out"
    assert shown[-1].startswith("PolicyNotMet: ")
    assert shown[-1].endswith(str(refused.value))


def test_figures_computed_with_floats_have_no_false_fraction() -> None:
    assert exact_cells("x", Fraction(0.3)) == {"x": 0.3, "x_exact": "0.3"}
    assert exact_cells("x", Fraction(3, 10)) == {"x": 0.3, "x_exact": "3/10"}
    assert exact_cells("x", Fraction(1, 2)) == {"x": 0.5, "x_exact": "1/2"}
