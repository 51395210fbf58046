"""The documentation site: links as the site has them, and every page in a section."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

from supply import site

DOCS = Path(__file__).parents[2] / "docs"


def test_links_of_pages() -> None:
    """A link to another page leads there; one to a file that is not on the site becomes its words."""
    text = "[a](docs/promise.md#the-label) [b](src/maskwright/api.py) [c](CHANGELOG.md) ![d](docs/images/report.png)"
    assert site.for_site("README.md", text) == (
        "[a](promise.md#the-label) b [c](changelog.md) ![d](images/report.png)"
    )
    text = "[a](../promise.md) [b](../../tests/docs/test_pages.py) [c](../../README.md) [d](mondrian.md) [e](https://x.y)"
    assert site.for_site("docs/methods/codip.md", text) == (
        "[a](../promise.md) b [c](../index.md) [d](mondrian.md) [e](https://x.y)"
    )
    assert site.for_site("docs/promise.md", "[a](models/) [b](missing.md)") == "[a](models/README.md) b"


def test_every_page_is_in_one_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "STAGE", tmp_path)
    pages = site.stage_pages()
    listed = [page for section in site.navigation(pages) for names in section.values() for page in names]
    assert len(listed) == len(set(listed))
    assert {*listed, "index.md"} == set(pages)
    assert {p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md")} <= set(pages)
    with pytest.raises(SystemExit, match=r"no section lists lost\.md"):
        site.navigation([*pages, "lost.md"])


def test_every_link_of_a_page_leads_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "STAGE", tmp_path)
    looked = 0
    for page in site.stage_pages():
        for _, _, target in site.LINK.findall((tmp_path / page).read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:|#", target):
                looked += 1
                assert (tmp_path / PurePosixPath(page).parent / target.partition("#")[0]).exists(), (
                    page,
                    target,
                )
    assert looked > 400
