"""Names and values of the data never become part of a page: reports, data cards and comparisons stay what they are."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

import maskwright as mw
from tests.patients import HEADER, POLICY, forget, patients, write_csv

EVIL = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='alert(1)",
    "</style><script>alert(2)</script>",
    "<!--", "-->", "]]>", "&lt;script&gt;", "</title></table></main>", "javascript:alert(1)",
    "<svg/onload=alert(1)>", "{{7*7}}",
    "${7*7}", "%s", "\u202elive", "url(http://x/)",
]  # fmt: skip


class Tags(HTMLParser):
    """Which elements and attributes a page has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.comments: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.links.update(v or "" for name, v in attrs if name in ("href", "src", "action", "xlink:href"))

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def released(folder: Path, words: list[str], recoding: str) -> list[str]:
    """Pages of a release in which these words are column names, values and labels."""
    folder.mkdir()
    named = dict(zip(HEADER, [HEADER[0], *words[:5]], strict=True))
    rows = patients()
    for i, row in enumerate(rows):
        row[3] = words[5 + i % 2]  # quasi-identifier
        row[4] = words[7 + i // 2 % 4]  # sensitive
        row[5] = words[11 + i % 3]  # insensitive
    source = write_csv(folder / "patients.csv", rows, list(named.values()))
    asked: dict[str, Any] = yaml.safe_load(POLICY)
    asked["columns"] = {named[c]: role for c, role in asked["columns"].items()}
    asked |= {"recoding": recoding, "output": {"formulas": "allow"}}
    forget()
    mw.anonymize(source, asked, folder / "release")
    found = sorted((folder / "release").rglob("*.html"))
    assert {p.name for p in found} == {"report.html", "data-card.html"}
    return [p.read_text(encoding="utf-8") for p in found]


@pytest.mark.parametrize("recoding", ["generalise", "bucketize"])
def test_pages_have_the_same_elements_as_those_of_a_harmless_table(tmp_path: Path, recoding: str) -> None:
    plain = [f"word{i}" for i in range(len(EVIL))]
    for harmless, text in zip(
        released(tmp_path / "a", plain, recoding), released(tmp_path / "b", EVIL, recoding), strict=True
    ):
        allowed, found = Tags(harmless), Tags(text)
        assert found.tags <= allowed.tags
        assert found.attributes <= allowed.attributes
        assert not any(a.startswith("on") for a in found.attributes)
        assert all(link.startswith("#") for link in found.links)
        assert not found.comments
        assert "alert(1)" in unescape(text), "the words are there, as words"
        assert not re.search(r"<(script|img|svg/)", text)


def test_the_sql_of_a_data_card_quotes_names_and_values(tmp_path: Path) -> None:
    """A reader copies it: a hostile column must not be able to add statements to it."""
    evil = ['"; DROP TABLE x; --', "'; DROP TABLE x; --", 'a"b', "a'b", "--", *EVIL[5:]]
    card = next(text for text in released(tmp_path / "c", evil, "bucketize") if "SELECT sum" in text)
    query = unescape(re.search(r"<pre[^>]*>(SELECT.*?)</pre>", card, re.DOTALL)[1])  # type: ignore[index]
    database = duckdb.connect()
    for part in ("quasi-identifiers", "sensitive"):
        path = tmp_path / "c" / "release" / "public" / f"{part}.csv"
        database.read_csv(str(path), all_varchar=True, header=True, sep=",").create(part)
    assert len(database.extract_statements(query)) == 1
    assert database.execute(query).fetchall() is not None


def test_a_comparison_page(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "patients.csv", patients(), [HEADER[0], *EVIL[:2], "sex", EVIL[2], EVIL[4]])
    asked: dict[str, Any] = yaml.safe_load(POLICY)
    renamed = dict(zip(HEADER, [HEADER[0], *EVIL[:2], "sex", EVIL[2], EVIL[4]], strict=True))
    asked["columns"] = {renamed[c]: role for c, role in asked["columns"].items()}
    path = tmp_path / "<img src=x onerror=alert(1)>.yaml"
    path.write_text(yaml.safe_dump(asked), encoding="utf-8")
    mw.compare(source, [path]).save(tmp_path / "comparison")
    for page in (tmp_path / "comparison").rglob("*.html"):
        found = Tags(page.read_text(encoding="utf-8"))
        assert not found.tags & {"script", "img", "iframe"}
        assert not any(a.startswith("on") for a in found.attributes)
    chart = (tmp_path / "comparison" / "chart.svg").read_text(encoding="utf-8")
    assert "<img" not in chart


def test_an_audit_page(tmp_path: Path) -> None:
    rows = [[EVIL[i % 4], EVIL[4 + i % 3], EVIL[8 + i % 4]] for i in range(24)]
    source = write_csv(tmp_path / "published.csv", rows, EVIL[:3])
    text = mw.audit(source, EVIL[:2], EVIL[2:3]).html()
    found = Tags(text)
    assert not found.tags & {"script", "img", "iframe", "object"}
    assert not any(a.startswith("on") for a in found.attributes)
    assert not found.comments
