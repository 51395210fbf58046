"""The pages: self-contained, readable in light and dark, and usable by keyboard and by ear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

import maskwright as mw
from maskwright.report.charts import STYLE
from maskwright.report.html import html_page, html_table
from tests.patients import POLICY, patients, write_csv

# What is written on what: text, and (from 3:1 on) lines and marks that carry meaning.
TEXT = [
    ("ink", "paper"), ("ink", "panel"), ("soft", "paper"), ("soft", "panel"), ("link", "paper"), ("good", "goodbg"),
    ("bad", "badbg"), ("warn", "warnbg"), ("ink", "goodbg"), ("ink", "badbg"),
]  # fmt: skip
MARKS = [(f"s{i}", "paper") for i in range(6)]
VOID = {"meta", "br", "img", "input", "link", "hr"}


class Page(HTMLParser):
    """The elements of a page, in order, with their attributes and texts; unbalanced tags are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.shown_tables = 0  # those that are not folded; a folded one is named by its summary
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {k: v or "" for k, v in attrs}))
        self.shown_tables += tag == "table" and "details" not in self._open
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self._open[-1:]:
            self.texts.setdefault(tag, []).append(data)

    def all(self, name: str) -> list[dict[str, str]]:
        return [attrs for tag, attrs in self.elements if tag == name]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The report and the data card of three recodings, and of a release in two tables."""
    folder = tmp_path_factory.mktemp("pages")
    source = write_csv(folder / "patients.csv", patients())
    found = {}
    for name in ("generalise", "bucketize", "permute", "codip"):
        values = yaml.safe_load(POLICY)
        if name == "codip":
            values["columns"]["ward"] = "sensitive"
            values["method"] = {"name": "codip", "plan": [["disease"], ["ward"]]}
            values["require"] = values["require"][:1]
        else:
            values["recoding"] = name
        mw.anonymize(source, mw.Policy.load(values), folder / name)
        for path in ("private/report.html", "public/data-card.html"):
            found[f"{name} {Path(path).stem}"] = (folder / name / path).read_text(encoding="utf-8")
    return found


def each(pages: dict[str, str]) -> Iterator[tuple[str, Page]]:
    for name, text in pages.items():
        yield name, Page(text)


def test_nothing_is_loaded_and_no_script_runs(pages: dict[str, str]) -> None:
    for name, found in each(pages):
        assert "default-src 'none'" in pages[name]
        assert not found.all("script") and not found.all("img") and not found.all("iframe")
        assert not [a for _, a in found.elements if any(k.startswith("on") for k in a)], "no handlers"
        links = [a[key] for _, a in found.elements for key in ("href", "src", "action") if key in a]
        assert links and all(link.startswith("#") for link in links), name
        assert "url(" not in pages[name] and "@import" not in pages[name]


def test_links_lead_somewhere_and_the_first_skips_to_the_content(pages: dict[str, str]) -> None:
    for name, found in each(pages):
        ids = [a["id"] for _, a in found.elements if "id" in a]
        assert len(ids) == len(set(ids)), name
        targets = [a["href"][1:] for a in found.all("a")]
        assert set(targets) <= set(ids), name
        assert (found.all("a")[0]["class"], targets[0]) == ("skip", "content")
        assert next(a for tag, a in found.elements if tag == "main")["id"] == "content"
        labels = [a["aria-labelledby"] for _, a in found.elements if "aria-labelledby" in a]
        assert labels and set(labels) <= set(ids)


def test_headings_are_in_order(pages: dict[str, str]) -> None:
    for name, found in each(pages):
        levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1 and levels.count(1) == 1, name
        assert all(b <= a + 1 for a, b in pairwise(levels)), (name, levels)


def test_pictures_have_words_and_tables_have_names(pages: dict[str, str]) -> None:
    for name, found in each(pages):
        for picture in found.all("svg"):
            assert picture["role"] == "img" and len(picture["aria-label"]) > 10, name
        assert len(found.all("caption")) >= found.shown_tables, name
        assert all(a.get("scope") in ("col", "row") for a in found.all("th")), name
        regions = [a for a in found.all("div") if a.get("class") == "scroll"]
        assert len(regions) == len(found.all("table"))
        assert all(a["tabindex"] == "0" and a["aria-label"] for a in regions), "scrolled by keyboard"
    assert Page(pages["generalise report"]).all("svg"), "a report shows pictures"
    assert Page(pages["generalise report"]).all("summary"), "and folds what not everybody wants"


def colours(dark: bool) -> dict[str, str]:
    """The named colours of the stylesheet, and those of charts."""
    found: dict[str, str] = {}
    for css in (files("maskwright.report").joinpath("style.css").read_text(encoding="utf-8"), STYLE):
        light, _, rest = css.partition("@media screen and (prefers-color-scheme: dark)")
        pattern = r"--([a-z0-9]+): (#[0-9a-f]{6})"
        found |= dict(re.findall(pattern, light))
        if dark:
            found |= dict(re.findall(pattern, rest))
    return found


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_ratio_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast_is_enough(dark: bool) -> None:
    named = colours(dark)
    assert {n for pair in TEXT + MARKS for n in pair} <= set(named)
    weak = {
        (a, b): round(contrast(named[a], named[b]), 2) for a, b in TEXT if contrast(named[a], named[b]) < 4.5
    }
    weak |= {
        (a, b): round(contrast(named[a], named[b]), 2) for a, b in MARKS if contrast(named[a], named[b]) < 3
    }
    assert weak == {}


def test_every_colour_is_a_named_one() -> None:
    """Otherwise the test of contrast would not see it."""
    style = files("maskwright.report").joinpath("style.css").read_text(encoding="utf-8") + STYLE
    rules = re.sub(r"--[a-z0-9]+: #[0-9a-f]{6};?", "", style)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsl\(", rules) == []


def test_print_is_light_and_shows_what_is_folded() -> None:
    style = files("maskwright.report").joinpath("style.css").read_text(encoding="utf-8")
    assert all("screen" in query for query in re.findall(r"@media [^{]*dark\)", style + STYLE))
    printed = style[style.index("@media print") :]
    assert "details::details-content { content-visibility: visible" in printed


def test_texts_of_the_data_are_escaped() -> None:
    nasty = "<script>alert('x')</script>"
    text = html_page(nasty, html_table((nasty,), [(nasty,)], caption=nasty), contents=[("a", nasty)])
    assert "<script>" not in text
    assert "alert" in Page(text).texts["th"][0]
