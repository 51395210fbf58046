"""Every snippet of the worked examples runs, and prints what its page says; no example of the papers is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.pages import printed

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "worked-examples"
PAGES = [*sorted(FOLDER.glob("*-*.md")), ROOT / "docs" / "audit.md"]
SHORT = [ROOT / "docs" / "multivalued.md", ROOT / "docs" / "methods" / "codip.md"]
# Shown where the method that needs them is documented.
ELSEWHERE = {"D-gamma-all", "D-gamma-single", "D-gamma-2", "D-gamma-degenerate"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_prints_what_it_says(page: Path) -> None:
    blocks = printed(page)
    assert len(blocks) > 1
    for code, output, said in blocks:
        assert output, f"this prints nothing:\n{code}"
        assert output == said, code


@pytest.mark.parametrize("page", SHORT, ids=lambda p: p.stem)
def test_a_page_with_one_example_prints_what_it_says(page: Path) -> None:
    [(code, output, said)] = printed(page)
    assert output == said, code


def test_no_example_of_the_papers_is_left_out() -> None:
    cases = json.loads((ROOT / "tests" / "golden" / "papers.json").read_text(encoding="utf-8"))
    known = {case["id"] for case in (cases if isinstance(cases, list) else cases["cases"])}
    text = "\n".join(page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md"))
    named = set(re.findall(r"`([WCTDM]-[\w-]+)`", text))
    assert named <= known, "a page names a case that does not exist"
    assert known - named == ELSEWHERE
